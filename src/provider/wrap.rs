//! `provider wrap -- CMD`: an older helper, which is a process for each server, as a provider, so that a site can mix both.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::num::NonZeroU32;
use std::rc::Rc;

use quartermaster_actors::helper::{HelperError, HelperSettings, Orphans, execute};
use quartermaster_proto::helper::{ATTRS, PROVISION};
use quartermaster_proto::provider::{
    Body, Call, CallId, DoneState, ErrorCode, Execute, Executed, Incoming, Limits, Lines, Members, Overlong,
    ProviderError, Reply, Request, RequestError, Schema, Value, decode_incoming, encode_reply,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use zeroize::Zeroizing;

use super::command::say;
use crate::config::parse_duration;
use crate::exit::Exit;

/// The bounds of a frame.
const LIMITS: Limits = Limits::PROVIDER;
/// Bytes taken from standard input at once.
const CHUNK: usize = 64 * 1024;
/// Answers that may wait for standard output, beside one for each call.
const ANSWERS: usize = 16;

/// Arguments of `quartermaster provider wrap`.
#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "A configuration names it so:\n  helper: quartermaster provider wrap -- /opt/helpers/helper.rb --site london\n  \
helper_protocol: provider\nWhen the last word of CMD is `schema`, only the schema is printed; a helper that needs that word last goes into a script."
)]
pub struct Args {
    /// Helpers that may run at once; the host's `workers` is the other bound
    #[arg(long, value_name = "N", default_value = "64")]
    pub at_once: NonZeroU32,
    /// How long one helper may take; the host's `helper_timeout` is the other limit
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = duration)]
    pub timeout: std::time::Duration,
    /// The helper and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<String>,
}

fn duration(text: &str) -> Result<std::time::Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

/// Serves until the host asks for the end or goes away.
pub async fn run(args: &Args) -> Exit {
    let schema = schema(args.at_once);
    let (program, arguments) = match args.command.split_last() {
        Some((last, _)) if last == "schema" => {
            return write_all(schema.as_bytes()).await;
        }
        _ => match args.command.split_first() {
            Some((program, arguments)) => (program, arguments),
            None => return Exit::Usage,
        },
    };
    if std::io::stdin().is_terminal() {
        say(
            "this is a provider: a host starts it and speaks to it. Set `helper_protocol: provider`, and `helper` to this command.\n",
        );
        return Exit::Failure;
    }
    let orphans = match Orphans::adopt() {
        Ok(orphans) => orphans,
        Err(error) => {
            say(&format!("processes that the helper leaves behind cannot be adopted: {error}\n"));
            Orphans::unadopted()
        }
    };
    let mut helper = HelperSettings::new(program.clone(), arguments.to_vec());
    helper.timeout = args.timeout;
    helper.environment = inherited();
    match Schema::from_probe(schema.as_bytes()) {
        Ok(read) => Wrap::new(helper, orphans.clone(), read.value).serve().await,
        Err(_) => Exit::Failure,
    }
}

/// What the host gave us, but for what it said to a provider.
fn inherited() -> Vec<(OsString, OsString)> {
    let ours = |name: &OsString| name.to_string_lossy().starts_with("X_PROVIDER_");
    std::env::vars_os().filter(|(name, _)| !ours(name)).collect()
}

fn schema(at_once: NonZeroU32) -> String {
    format!(
        "{{\"name\":\"wrapped-helper\",\"version\":\"{}\",\"protocol\":\"1\",\"config\":{{}},\"actions\":{{\"{PROVISION}\":{{\
         \"description\":\"run the helper once for a server\",\"attrs\":{{\
         \"identity\":{{\"type\":\"string\",\"required\":true}},\"csr\":{{\"type\":\"any\"}},\"ed25519_pubkey\":{{\"type\":\"any\"}},\
         \"inventory\":{{\"type\":\"string\"}},\"jwt\":{{\"type\":\"any\"}}}},\"outputs\":{{\"type\":\"any\"}}}}}},\
         \"x_extensions\":{{\"max_in_flight\":{at_once},\"cancel\":true}}}}\n",
        env!("CARGO_PKG_VERSION")
    )
}

async fn write_all(text: &[u8]) -> Exit {
    let mut out = tokio::io::stdout();
    match out.write_all(text).await {
        Ok(()) if out.flush().await.is_ok() => Exit::Success,
        _ => Exit::Failure,
    }
}

/// A call that runs, and what became of it.
type Ended = (CallId, Result<Body, ProviderError>);

struct Wrap {
    helper: Rc<HelperSettings>,
    orphans: Orphans,
    schema: Schema,
    configured: bool,
    runs: JoinSet<Ended>,
    open: HashMap<CallId, AbortHandle>,
    answers: mpsc::Sender<Zeroizing<Vec<u8>>>,
    writing: tokio::task::JoinHandle<()>,
}

impl Wrap {
    fn new(helper: HelperSettings, orphans: Orphans, schema: Schema) -> Self {
        let (answers, frames) = mpsc::channel(ANSWERS);
        let writing = tokio::task::spawn_local(write(frames));
        Self {
            helper: Rc::new(helper),
            orphans,
            schema,
            configured: false,
            runs: JoinSet::new(),
            open: HashMap::new(),
            answers,
            writing,
        }
    }

    /// Ends with the input, at the host's wish, or when nobody reads the answers; every helper that runs is ended then.
    async fn serve(mut self) -> Exit {
        let mut input = tokio::io::stdin();
        let mut lines = Lines::new(LIMITS.max_bytes, Overlong::Refuse);
        let mut chunk = vec![0; CHUNK];
        'serving: loop {
            tokio::select! {
                read = input.read(&mut chunk) => {
                    let read = read.unwrap_or(0);
                    if read == 0 {
                        break 'serving;
                    }
                    lines.push(chunk.get(..read).unwrap_or_default());
                    while let Some(line) = lines.next_line() {
                        let goes_on = match line {
                            Ok(line) => self.line(&line).await,
                            Err(_) => false,
                        };
                        if !goes_on {
                            break 'serving;
                        }
                    }
                }
                Some(ended) = self.runs.join_next() => {
                    // One that was stopped has been answered.
                    if let Ok((id, result)) = ended
                        && self.open.remove(&id).is_some()
                    {
                        self.answer(id, result).await;
                    }
                }
            }
        }
        self.runs.shutdown().await;
        self.orphans.sweep();
        drop(self.answers);
        if self.writing.await.is_ok() { Exit::Success } else { Exit::Failure }
    }

    /// False when this was the last.
    async fn line(&mut self, line: &[u8]) -> bool {
        match decode_incoming(line, &LIMITS) {
            Ok(Incoming::Request(Request { id, call: Call::Shutdown })) => {
                self.answer(id, Ok(Body::empty())).await;
                return false;
            }
            Ok(Incoming::Request(Request { id, call: Call::Execute(execute) })) if self.configured => {
                if execute.action == PROVISION {
                    self.start(id, execute);
                } else {
                    let message = format!("no such action; known: {PROVISION}");
                    self.answer(id, Err(ProviderError::new(ErrorCode::UnknownAction, message))).await;
                }
            }
            Ok(Incoming::Request(Request { id, call })) => {
                let result = self.other(&call);
                self.answer(id, result).await;
            }
            Ok(Incoming::Cancel(cancel)) => {
                if let Some(run) = self.open.remove(&cancel.id) {
                    run.abort();
                    let error = ProviderError::new(ErrorCode::Cancelled, "the helper was stopped on request")
                        .with_state(DoneState::Partial);
                    self.answer(cancel.id, Err(error)).await;
                }
            }
            Err(RequestError { id: Some(id), error }) => self.answer(id, Err(error)).await,
            Ok(Incoming::Blank | Incoming::Unknown) | Err(_) => {}
        }
        true
    }

    fn other(&mut self, call: &Call) -> Result<Body, ProviderError> {
        match call {
            Call::Describe => Ok(Body::described(&self.schema)),
            Call::Configure(_) => {
                self.configured = true;
                Ok(Body::empty())
            }
            Call::Execute(_) => Err(ProviderError::new(ErrorCode::NotConfigured, "configure comes first")),
            other => {
                let message = format!("no such method: {}", other.method());
                Err(ProviderError::new(ErrorCode::UnknownMethod, message))
            }
        }
    }

    fn start(&mut self, id: CallId, execute: Execute) {
        let (helper, orphans) = (Rc::clone(&self.helper), self.orphans.clone());
        let run =
            self.runs.spawn_local(async move { (id, provision(&helper, &orphans, &execute.attrs).await) });
        self.open.insert(id, run);
    }

    async fn answer(&self, id: CallId, result: Result<Body, ProviderError>) {
        let body = result.unwrap_or_else(|error| Body::Error(Box::new(error)));
        let bytes = encode_reply(&Reply { id, body }, &LIMITS).or_else(|error| {
            let error = ProviderError::new(ErrorCode::Internal, error.to_string());
            encode_reply(&Reply { id, body: Body::Error(Box::new(error)) }, &LIMITS)
        });
        if let Ok(bytes) = bytes {
            // A host that has gone reads nothing; our input ends in a moment.
            let _ = self.answers.send(bytes).await;
        }
    }
}

async fn write(mut frames: mpsc::Receiver<Zeroizing<Vec<u8>>>) {
    let mut out = tokio::io::stdout();
    while let Some(frame) = frames.recv().await {
        if out.write_all(&frame).await.is_err() || out.flush().await.is_err() {
            return;
        }
    }
}

/// Runs the helper once. Dropping the future ends it with everything it started.
async fn provision(
    helper: &HelperSettings,
    orphans: &Orphans,
    attrs: &Members,
) -> Result<Body, ProviderError> {
    let identity = attrs.get("identity").and_then(Value::as_str).unwrap_or_default();
    let failed = |error: &HelperError| ProviderError::new(ErrorCode::Failed, error.chain());
    let input = input(attrs);
    let run = execute(helper, orphans, &input, |line| complain(identity, &line));
    let execution = run.await.map_err(|error| failed(&error))?;
    // Seen by the same rules as in the daemon, so that what is wrong is said in the same words.
    execution.reply(helper).map_err(|error| failed(&error))?;
    let text = String::from_utf8_lossy(&execution.stdout);
    match Value::from_json(&text, &LIMITS) {
        Ok(Value::Object(outputs)) => Ok(Body::executed(Executed { outputs, undo: Vec::new() })),
        _ => Err(ProviderError::new(ErrorCode::Failed, "the reply of the helper is no JSON object")),
    }
}

/// What a helper reads: its five members in their order, null where there is nothing.
fn input(attrs: &Members) -> Zeroizing<Vec<u8>> {
    let mut text = Zeroizing::new(String::from("{"));
    for (index, name) in ATTRS.iter().enumerate() {
        let value = Zeroizing::new(attrs.get(*name).unwrap_or(&Value::Null).to_json());
        let comma = if index == 0 { "" } else { "," };
        for part in [comma, "\"", name, "\":", &value] {
            text.push_str(part);
        }
    }
    text.push('}');
    Zeroizing::new(std::mem::take(&mut *text).into_bytes())
}

/// A line of a helper's standard error, for the host's log: about that server.
fn complain(identity: &str, line: &str) {
    let event: Value = [("level", "info"), ("msg", line), ("host", identity)]
        .into_iter()
        .map(|(name, text)| (name, Value::from(text)))
        .collect();
    say(&format!("{}\n", event.to_json()));
}
