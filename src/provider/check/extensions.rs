//! The cases of what a provider declares beyond the common protocol.

use quartermaster_proto::provider::{
    Call, Cancel, Extension, Found, HostHello, HostOffer, Members, Schema, Validate, encode_cancel,
};
use tokio::time::Instant;

use super::cases::{Outcome, execute, goes_on, judge};
use super::command::Bench;
use super::report::{Line, Report, Verdict};
use super::talk::LIMITS;

/// The most calls tried at a time.
const MOST: u32 = 64;

/// What is in force with a provider that declares this; none when it declares nothing.
pub fn agree(schema: &Schema) -> Result<Option<HostHello>, String> {
    let offer = HostOffer {
        name: "quartermaster".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        extensions: Extension::ALL.to_vec(),
        max_in_flight: MOST,
        max_frame_bytes: LIMITS.max_bytes,
    };
    schema
        .extensions
        .as_ref()
        .map(|declared| offer.agree(declared))
        .transpose()
        .map_err(|error| error.message)
}

pub async fn run(bench: &Bench, report: &mut Report) {
    if report.cases.iter().any(|line| line.case == "configure" && line.verdict != Verdict::Good) {
        return;
    }
    let has = |extension| bench.hello.as_ref().is_some_and(|hello| hello.has(extension));
    let mut line = |case, expected, verdict| report.cases.push(Line { case, expected, verdict });
    let skipped = || Verdict::Skipped("not declared".to_owned());
    let verdict = if has(Extension::MaxInFlight) { judge(crowd(bench).await) } else { skipped() };
    line("in flight", "answers as many calls at a time as it declares", verdict);
    let verdict = if has(Extension::Ping) { judge(ping(bench).await) } else { skipped() };
    line("ping", "gives a sign of life", verdict);
    let verdict = if has(Extension::Cancel) { judge(cancel(bench).await) } else { skipped() };
    line("cancel", "ignores the cancel of a call that is not open, and answers none", verdict);
    let verdict = if has(Extension::Lookup) { judge(lookup(bench).await) } else { skipped() };
    line("lookup", "says `absent` of a key that it has never seen", verdict);
    let verdict = if has(Extension::Validate) { judge(validate(bench).await) } else { skipped() };
    line("validate", "finds fault with attributes without acting", verdict);
}

async fn crowd(bench: &Bench) -> Outcome {
    let many = bench.hello.as_ref().map_or(1, |hello| hello.max_in_flight);
    let mut talk = bench.ready().await?;
    let (mut ids, mut frames) = (Vec::new(), Vec::new());
    for _ in 0..many {
        let (id, frame) = talk.frame(execute("x_no_such_action", Members::new()))?;
        ids.push(id);
        frames.extend_from_slice(&frame);
    }
    talk.write(&frames).await?;
    let deadline = Instant::now() + bench.limit;
    for id in ids {
        talk.answer(id, deadline).await.map_err(|error| format!("with {many} open: {error}"))?;
    }
    goes_on(bench, &mut talk, None).await
}

async fn ping(bench: &Bench) -> Outcome {
    let mut talk = bench.ready().await?;
    talk.ask(Call::Ping, bench.limit).await?.ping().map_err(|error| error.to_string())?;
    goes_on(bench, &mut talk, None).await
}

async fn cancel(bench: &Bench) -> Outcome {
    let mut talk = bench.ready().await?;
    let (id, frame) = talk.frame(execute("x_no_such_action", Members::new()))?;
    talk.exchange(&[&frame], id, bench.limit).await?;
    let late = Cancel { id, reason: "cancelled".to_owned(), grace_ms: 10_000 };
    let frame = encode_cancel(&late, &LIMITS).map_err(|error| error.to_string())?;
    talk.write(&frame).await?;
    goes_on(bench, &mut talk, None).await
}

async fn lookup(bench: &Bench) -> Outcome {
    let mut talk = bench.ready().await?;
    let key = "quartermaster-check/never".to_owned();
    match talk
        .ask(Call::Lookup { key }, bench.limit)
        .await?
        .lookup()
        .map_err(|error| error.to_string())?
        .value
    {
        Found::Absent => goes_on(bench, &mut talk, None).await,
        _ => Err("it says that it has seen it".to_owned()),
    }
}

async fn validate(bench: &Bench) -> Outcome {
    let mut talk = bench.ready().await?;
    let Some(action) = bench.schema.actions.keys().next() else { return Ok(None) };
    let call = Validate { action: action.clone(), ..Validate::default() };
    talk.ask(Call::Validate(call), bench.limit).await?.validate().map_err(|error| error.to_string())?;
    goes_on(bench, &mut talk, None).await
}
