//! `provider replay FILE`: a provider that answers what a recorded one answered, for tests of whatever uses one.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _, stdin, stdout};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::command::say;
use super::trace::{From, Traced};
use crate::exit::Exit;

/// Arguments of `quartermaster provider replay`.
#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "Answers each call with what the recorded provider answered to the same; the same call made again gets the next answer, \
and in the end the last one. Attributes that were covered match anything. A call that was not recorded gets the answer to the one of the same \
action that has most attributes in common with it, and fails with `failed` when there is none. \
Exit codes: 0 served, 4 the file cannot be read or holds no frames."
)]
pub struct Args {
    /// A file written with --trace-wire
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The provider that is to be played, when the file has several
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// Print the schema and end
    #[arg(value_name = "schema", value_parser = ["schema"], hide = true)]
    pub what: Option<String>,
}

/// A question and its answer.
struct Pair {
    method: String,
    params: Value,
    /// `result` or `error`, and what it holds.
    answer: (&'static str, Value),
    played: bool,
}

/// Serves until the input ends or the host asks for the end.
pub fn run(args: &Args) -> Exit {
    let mut pairs = match pairs(&args.file, args.provider.as_deref()) {
        Ok(pairs) if !pairs.is_empty() => pairs,
        Ok(_) => {
            say(&format!("{} holds no frames of such a provider\n", args.file.display()));
            return Exit::Files;
        }
        Err(error) => {
            say(&format!("cannot read {}: {error}\n", args.file.display()));
            return Exit::Files;
        }
    };
    let mut out = stdout().lock();
    let mut write = |value: &Value| writeln!(out, "{value}").and_then(|()| out.flush()).is_ok();
    if args.what.is_some() {
        let described = pairs.iter().find(|pair| pair.method == "describe");
        let schema = described.map(|pair| pair.answer.1.get("schema").unwrap_or(&pair.answer.1));
        return if schema.is_some_and(write) { Exit::Success } else { Exit::Files };
    }
    for line in stdin().lock().lines().map_while(Result::ok) {
        let Ok(frame) = serde_json::from_str::<Value>(&line) else { continue };
        let Some(id) = frame.get("id") else { continue };
        let method = frame.get("method").and_then(Value::as_str).unwrap_or_default();
        let (kind, answer) = play(&mut pairs, method, &params(&frame));
        if !write(&json!({"id": id, kind: answer})) || method == "shutdown" {
            break;
        }
    }
    Exit::Success
}

/// What is asked, without what differs from run to run.
fn params(frame: &Value) -> Value {
    let mut params = frame.get("params").cloned().unwrap_or_default();
    if let Value::Object(members) = &mut params {
        members.retain(|name, _| !name.starts_with("x_"));
    }
    params
}

fn play(pairs: &mut [Pair], method: &str, params: &Value) -> (&'static str, Value) {
    let fits = |pair: &Pair| pair.method == method && same(&pair.params, params);
    let fresh = pairs.iter().position(|pair| !pair.played && fits(pair));
    let found = fresh.or_else(|| pairs.iter().rposition(fits)).or_else(|| most_alike(pairs, method, params));
    match found.and_then(|index| pairs.get_mut(index)) {
        Some(pair) => {
            pair.played = true;
            pair.answer.clone()
        }
        None if method == "shutdown" => ("result", json!({})),
        None => ("error", json!({"code": "failed", "message": "this call was not recorded"})),
    }
}

/// The call of the same action with the most attributes in common, one at least: a server that is asked about again may say other things
/// of itself.
fn most_alike(pairs: &[Pair], method: &str, params: &Value) -> Option<usize> {
    let attrs = |params: &Value| params.get("attrs").and_then(Value::as_object).cloned().unwrap_or_default();
    let asked = attrs(params);
    let alike = |pair: &Pair| {
        let of_action = pair.method == method && pair.params.get("action") == params.get("action");
        let recorded = attrs(&pair.params);
        let common = recorded.iter().filter(|(name, value)| {
            !value.as_str().is_some_and(covered) && asked.get(*name).is_some_and(|asked| same(value, asked))
        });
        if of_action { common.count() } else { 0 }
    };
    let counted = pairs.iter().map(alike).enumerate().filter(|(_, common)| *common > 0);
    counted.max_by_key(|(index, common)| (*common, std::cmp::Reverse(*index))).map(|(index, _)| index)
}

/// Whether two questions are the same, where what was covered in the first matches anything.
fn same(recorded: &Value, asked: &Value) -> bool {
    match (recorded, asked) {
        (Value::String(text), _) if covered(text) => true,
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, value)| other.get(name).is_some_and(|other| same(value, other)))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::String(one), Value::String(other)) if one.contains("***") => {
            // Text around what was covered.
            one.split("***")
                .try_fold(other.as_str(), |rest, part| {
                    rest.find(part).and_then(|at| rest.get(at + part.len()..))
                })
                .is_some()
        }
        _ => recorded == asked,
    }
}

fn covered(text: &str) -> bool {
    text == "***" || text.starts_with("(secret;")
}

fn pairs(file: &Path, provider: Option<&str>) -> std::io::Result<Vec<Pair>> {
    let mut asked: Vec<(u64, Value, Pair)> = Vec::new();
    let mut pairs = Vec::new();
    for line in BufReader::new(File::open(file)?).lines() {
        let Ok(traced) = serde_json::from_str::<Traced>(&line?) else { continue };
        if provider.is_some_and(|name| name != traced.provider) {
            continue;
        }
        let Ok(frame) = serde_json::from_str::<Value>(&traced.frame) else { continue };
        let Some(id) = frame.get("id").cloned() else { continue };
        match traced.from {
            From::Host => {
                let method = frame.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
                let answer = ("result", Value::Null);
                asked.push((
                    traced.process,
                    id,
                    Pair { method, params: params(&frame), answer, played: false },
                ));
            }
            From::Provider => {
                let Some(index) =
                    asked.iter().position(|(process, open, _)| (*process, open) == (traced.process, &id))
                else {
                    continue;
                };
                let (_, _, mut pair) = asked.swap_remove(index);
                pair.answer = match frame.get("error") {
                    Some(error) => ("error", error.clone()),
                    None => ("result", frame.get("result").cloned().unwrap_or_else(|| json!({}))),
                };
                pairs.push(pair);
            }
        }
    }
    Ok(pairs)
}
