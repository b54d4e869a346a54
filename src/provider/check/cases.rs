//! The cases that every provider is tried with.

use std::sync::Arc;
use std::time::Duration;

use quartermaster_actors::child::{Launch, Orphans};
use quartermaster_actors::provider::Probed;
use quartermaster_proto::provider::{
    Body, Call, CallId, ErrorCode, Execute, Members, ProviderError, Request, Schema, Value, encode,
};

use super::command::Bench;
use super::report::{Line, Report, Verdict};
use super::talk::{LIMITS, Talk};

/// How long an end may take.
const END: Duration = Duration::from_secs(5);
/// An action that no provider has.
const NONE_SUCH: &str = "x_no_such_action";

pub async fn describe(
    launch: &Launch,
    orphans: &Orphans,
    limit: Duration,
    probed: Option<&Probed>,
) -> Result<(Arc<Schema>, Verdict), String> {
    let mut talk = Talk::start(launch, orphans).await?;
    let read = talk.ask(Call::Describe, limit).await?.describe().map_err(|error| error.to_string())?;
    let differences = probed.map(|probed| probed.schema.differences(&read.value)).unwrap_or_default();
    let mut odd: Vec<String> = read.warnings.iter().map(ToString::to_string).collect();
    odd.extend(differences.into_iter().map(|difference| format!("not as with `schema`: {difference}")));
    odd.extend_from_slice(talk.remarks());
    let verdict = if odd.is_empty() { Verdict::Good } else { Verdict::Odd(odd.join("; ")) };
    Ok((Arc::new(read.value), verdict))
}

pub async fn run(bench: &Bench, report: &mut Report) {
    let mut line = |case, expected, verdict| report.cases.push(Line { case, expected, verdict });
    let ready = match bench.ready().await {
        Ok(_) => Verdict::Good,
        Err(why) => Verdict::Bad(why),
    };
    let works = ready == Verdict::Good;
    line("configure", "takes its configuration", ready);
    if !works {
        return;
    }
    line(
        "unknown method",
        "answers a method it does not know with `unknown_method`, and goes on",
        judge(unknown_method(bench).await),
    );
    line(
        "unknown action",
        "answers an action it does not have with `unknown_action`, and goes on",
        judge(unknown_action(bench).await),
    );
    line("not configured", "refuses to act before it is configured", judge(unconfigured(bench).await));
    line(
        "white space",
        "takes blank lines and carriage returns for nothing",
        judge(white_space(bench).await),
    );
    line("pieces", "reads a request in many writes, and two in one", judge(pieces(bench).await));
    line("large request", "reads a request of a mebibyte", judge(large(bench).await));
    line("large id", "answers with the id it was asked with, digit for digit", judge(large_id(bench).await));
    line("more members", "ignores members it does not know", judge(more_members(bench).await));
    line("text", "takes line separators inside a text for text", judge(text(bench).await));
    for (action, attrs) in &bench.tries {
        let verdict = judge(attempt(bench, action, attrs).await);
        line("try", "does the action, gives what it declares, and takes it back", verdict);
    }
    line("shutdown", "answers, and exits with status 0 within 5 seconds", judge(shutdown(bench).await));
    line("end of input", "exits within 5 seconds when its input ends", judge(end_of_input(bench).await));
}

pub type Outcome = Result<Option<String>, String>;

pub fn judge(outcome: Outcome) -> Verdict {
    match outcome {
        Ok(None) => Verdict::Good,
        Ok(Some(odd)) => Verdict::Odd(odd),
        Err(why) => Verdict::Bad(why),
    }
}

pub fn execute(action: &str, attrs: Members) -> Call {
    Call::Execute(Execute { action: action.to_owned(), attrs, ..Execute::default() })
}

/// Still there: one more question is answered.
pub async fn goes_on(bench: &Bench, talk: &mut Talk, odd: Option<String>) -> Outcome {
    let answer = talk.ask(execute(NONE_SUCH, Members::new()), bench.limit).await;
    let answer = answer.map_err(|error| format!("afterwards: {error}"))?;
    if let Some(id) = talk.surplus().first() {
        return Err(format!("it answered {id}, which nobody asked"));
    }
    match answer {
        Body::Error(_) => Ok(odd),
        Body::Result(_) | Body::Neither => Err(format!("it says that it did `{NONE_SUCH}`")),
    }
}

fn code(body: Body, expected: &ErrorCode) -> Outcome {
    match body {
        Body::Error(error) if error.code == *expected => Ok(None),
        Body::Error(error) => {
            Ok(Some(format!("the code is `{}`, better is `{}`", error.code, expected.as_str())))
        }
        Body::Result(_) | Body::Neither => Err("it answered with a result".to_owned()),
    }
}

/// A request of any method, written by hand.
fn by_hand(talk: &mut Talk, method: &str, params: &str) -> (CallId, Vec<u8>) {
    let id = CallId(talk.next);
    talk.next += 1;
    (id, format!("{{\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n").into_bytes())
}

async fn unknown_method(bench: &Bench) -> Outcome {
    let mut talk = bench.ready().await?;
    let (id, frame) = by_hand(&mut talk, "x/no_such_method", "{}");
    let body = talk.exchange(&[&frame], id, bench.limit).await?;
    let odd = code(body, &ErrorCode::UnknownMethod)?;
    goes_on(bench, &mut talk, odd).await
}

async fn unknown_action(bench: &Bench) -> Outcome {
    let mut talk = bench.ready().await?;
    let body = talk.ask(execute(NONE_SUCH, Members::new()), bench.limit).await?;
    let odd = code(body, &ErrorCode::UnknownAction)?;
    goes_on(bench, &mut talk, odd).await
}

async fn unconfigured(bench: &Bench) -> Outcome {
    let mut talk = bench.described().await?;
    // An action it does not have, so that nothing can happen.
    match talk.ask(execute(NONE_SUCH, Members::new()), bench.limit).await? {
        Body::Error(_) => Ok(None),
        Body::Result(_) | Body::Neither => Err("it says that it did something".to_owned()),
    }
}

async fn white_space(bench: &Bench) -> Outcome {
    let mut talk = bench.ready().await?;
    let (id, mut frame) = talk.frame(execute(NONE_SUCH, Members::new()))?;
    frame.pop();
    frame.extend_from_slice(b"\r\n\r\n");
    talk.exchange(&[b"\n\n", &frame], id, bench.limit).await?;
    goes_on(bench, &mut talk, None).await
}

async fn pieces(bench: &Bench) -> Outcome {
    let mut talk = bench.ready().await?;
    let (id, frame) = talk.frame(execute(NONE_SUCH, Members::new()))?;
    let bytes: Vec<&[u8]> = frame.chunks(1).collect();
    talk.exchange(&bytes, id, bench.limit).await?;
    if bench.hello.as_ref().is_none_or(|hello| hello.max_in_flight < 2) {
        return goes_on(bench, &mut talk, None).await;
    }
    let (first, mut both) = talk.frame(execute(NONE_SUCH, Members::new()))?;
    let (second, frame) = talk.frame(execute(NONE_SUCH, Members::new()))?;
    both.extend_from_slice(&frame);
    talk.exchange(&[&both], first, bench.limit).await?;
    talk.exchange(&[], second, bench.limit)
        .await
        .map_err(|error| format!("the second of two in one write: {error}"))?;
    goes_on(bench, &mut talk, None).await
}

async fn large(bench: &Bench) -> Outcome {
    let mut talk = bench.ready().await?;
    let attrs = Members::from([("x".to_owned(), Value::from("a".repeat(1024 * 1024)))]);
    talk.ask(execute(NONE_SUCH, attrs), bench.limit).await?;
    goes_on(bench, &mut talk, None).await
}

async fn large_id(bench: &Bench) -> Outcome {
    let mut talk = bench.ready().await?;
    // Beyond what a floating-point number can tell from its neighbours.
    let id = CallId(9_007_199_254_740_993);
    let frame = encode(&Request { id, call: execute(NONE_SUCH, Members::new()) }, &LIMITS)
        .map_err(|error| error.to_string())?;
    match talk.exchange(&[&frame], id, bench.limit).await {
        Ok(_) => goes_on(bench, &mut talk, None).await,
        Err(error) => match talk.surplus().first() {
            Some(other) => Err(format!("asked with id {id} it answered with {other}")),
            None => Err(error),
        },
    }
}

async fn more_members(bench: &Bench) -> Outcome {
    let mut talk = bench.ready().await?;
    let params = format!("{{\"action\":\"{NONE_SUCH}\",\"attrs\":{{}},\"x_later\":{{\"a\":[1]}}}}");
    let (id, frame) = by_hand(&mut talk, "execute", &params);
    match talk.exchange(&[&frame], id, bench.limit).await? {
        Body::Error(error) if error.code == ErrorCode::InvalidRequest => {
            Err(format!("it refuses them: {}", error.message))
        }
        _ => goes_on(bench, &mut talk, None).await,
    }
}

async fn text(bench: &Bench) -> Outcome {
    let mut talk = bench.ready().await?;
    let odd = "a\u{2028}b\u{2029}c\u{85}d\u{c}e\u{1f600}\"\\\n";
    let attrs = Members::from([("x".to_owned(), Value::from(odd))]);
    talk.ask(execute(NONE_SUCH, attrs), bench.limit).await?;
    goes_on(bench, &mut talk, None).await
}

/// An action and what it says takes it back.
async fn attempt(bench: &Bench, action: &str, attrs: &Members) -> Outcome {
    use quartermaster_proto::provider::Declared as _;
    let declared = bench.schema.actions.get(action).ok_or_else(|| format!("`{action}` is not declared"))?;
    let attrs = declared.attrs.check(attrs).map_err(|complaints| {
        let complaints: Vec<_> = complaints.iter().map(ToString::to_string).collect();
        format!("the attributes of `{action}` are not as declared: {}", complaints.join("; "))
    })?;
    let mut talk = bench.ready().await?;
    let call = Execute { action: action.to_owned(), attrs, undo: true, context: None };
    let failed = |error: ProviderError| format!("`{action}`: {error}");
    let done = talk.ask(Call::Execute(call), bench.limit).await?.execute().map_err(failed)?;
    let mut odd: Vec<String> = done.warnings.iter().map(ToString::to_string).collect();
    if let Err(complaints) = declared.check_outputs(&done.value.outputs) {
        odd.extend(
            complaints.iter().map(|complaint| format!("the outputs are not as declared: {complaint}")),
        );
    }
    if declared.returns_undo == Some(true) && done.value.undo.is_empty() {
        odd.push("it declares that it returns an undo, and returned none".to_owned());
    }
    for undo in done.value.undo {
        let back = talk.ask(execute(&undo.action, undo.attrs), bench.limit).await?;
        if let Err(error) = back.execute()
            && !error.code.is_undone()
        {
            return Err(format!("the undo `{}`: {error}", undo.action));
        }
    }
    Ok(if odd.is_empty() { None } else { Some(odd.join("; ")) })
}

async fn shutdown(bench: &Bench) -> Outcome {
    let mut talk = bench.ready().await?;
    talk.ask(Call::Shutdown, END).await?.shutdown().map_err(|error| error.to_string())?;
    match talk.end(END).await?.as_str() {
        "exited with status 0" => Ok(None),
        other => Ok(Some(format!("it {other}"))),
    }
}

async fn end_of_input(bench: &Bench) -> Outcome {
    bench.ready().await?.end(END).await.map(|_| None)
}
