//! One call: its tries, and what becomes of one whose outcome is not known.

use std::collections::BTreeMap;
use std::time::Duration;

use quartermaster_proto::provider::{
    DoneState, ErrorCode, Executed, Found, HostCode, Invocation, ProviderError,
};

use super::super::call::{CallEnd, CallMove, CallPlan, Input, Kind};
use super::world::lost;
use crate::provider::{CallError, Outcome};

const STEP: Kind = Kind::Step { tries: 2 };
const UNDO: Kind = Kind::Undo { tries: 2 };

fn answered(code: ErrorCode) -> Input {
    Input::Answered(Err(CallError::answered(ProviderError::new(code, "x"))))
}

fn not_sent(code: HostCode) -> Input {
    Input::Answered(Err(CallError::host(Outcome::NotSent, code, "x")))
}

fn no_lookup() -> Input {
    Input::Found(Err(CallError::refused(ErrorCode::UnknownMethod, "x")))
}

/// Everything that is wanted, in short.
fn walk(kind: Kind, unknown: bool, inputs: Vec<Input>) -> Vec<String> {
    let mut plan = CallPlan::new(kind, 0, unknown);
    let mut said = vec![short(&plan.handle(Input::Begin, 0.5))];
    for input in inputs {
        said.push(short(&plan.handle(input, 0.5)));
    }
    said
}

fn short(go: &CallMove) -> String {
    match go {
        CallMove::NoteSent(attempt) => format!("note {attempt}"),
        CallMove::Send(attempt) => format!("send {attempt}"),
        CallMove::Lookup => "lookup".to_owned(),
        CallMove::AskRepeatable => "repeatable?".to_owned(),
        CallMove::Wait(wait) => format!("wait {}", wait.as_millis()),
        CallMove::End(CallEnd::Done(_)) => "done".to_owned(),
        CallMove::End(CallEnd::Clean(error)) => format!("clean {}", error.code),
        CallMove::End(CallEnd::Failed(error)) => format!("failed {}", error.code),
        CallMove::End(CallEnd::Unknown { later, .. }) => format!("unknown, later {later}"),
    }
}

#[test]
fn tries_are_for_calls_that_surely_did_nothing() {
    use Input::{Answered, Due, Written};
    let done = || Answered(Ok(Executed::default()));
    let cases: Vec<(Kind, Vec<Input>, &str)> = vec![
        (STEP, vec![Written, done()], "note 1, send 1, done"),
        (
            STEP,
            vec![Written, answered(ErrorCode::Unavailable), Due, Written, done()],
            "note 1, send 1, wait 500, note 2, send 2, done",
        ),
        (
            STEP,
            vec![Written, answered(ErrorCode::RateLimited), Due, Written, answered(ErrorCode::RateLimited)],
            "note 1, send 1, wait 500, note 2, send 2, clean rate_limited",
        ),
        (
            STEP,
            vec![Written, not_sent(HostCode::Overloaded), Due, Written, done()],
            "note 1, send 1, wait 500, note 2, send 2, done",
        ),
        (
            STEP,
            vec![Written, not_sent(HostCode::ChecksumMismatch)],
            "note 1, send 1, clean host.checksum_mismatch",
        ),
        (STEP, vec![Written, answered(ErrorCode::Conflict)], "note 1, send 1, clean conflict"),
        (STEP, vec![Written, answered(ErrorCode::Failed)], "note 1, send 1, failed failed"),
        (
            UNDO,
            vec![Written, answered(ErrorCode::Failed), Due, Written, answered(ErrorCode::NotFound)],
            "note 1, send 1, wait 500, note 2, send 2, done",
        ),
        (UNDO, vec![Written, answered(ErrorCode::Denied)], "note 1, send 1, failed denied"),
        (
            UNDO,
            vec![Written, answered(ErrorCode::Internal), Due, Written, answered(ErrorCode::Internal)],
            "note 1, send 1, wait 500, note 2, send 2, failed internal",
        ),
    ];
    for (kind, inputs, expected) in cases {
        assert_eq!(walk(kind, false, inputs).join(", "), expected);
    }
}

#[test]
fn an_unknown_outcome_is_looked_up_else_repeated_if_that_is_safe_else_left() {
    use Input::{Answered, Due, Found as F, Repeatable, Written};
    let done = || Answered(Ok(Executed::default()));
    let failed = |code| F(Ok(Found::Failed(Box::new(ProviderError::new(code, "x")))));
    let down = || F(Err(CallError::host(Outcome::NotSent, HostCode::Closed, "x")));
    let cases: Vec<(Kind, bool, Vec<Input>, &str)> = vec![
        (
            STEP,
            false,
            vec![Written, Answered(Err(lost())), F(Ok(Found::Done(Executed::default())))],
            "note 1, send 1, lookup, done",
        ),
        (
            STEP,
            false,
            vec![Written, Answered(Err(lost())), F(Ok(Found::Absent)), Due, Written, done()],
            "note 1, send 1, lookup, wait 500, note 2, send 2, done",
        ),
        (
            STEP,
            true,
            vec![F(Ok(Found::Running)), Due, failed(ErrorCode::Failed)],
            "lookup, wait 1000, lookup, failed failed",
        ),
        (Kind::Settle, true, vec![F(Ok(Found::Absent))], "lookup, clean unavailable"),
        (
            Kind::Settle,
            true,
            vec![no_lookup(), Repeatable(Ok(true)), Written, done()],
            "lookup, repeatable?, note 1, send 1, done",
        ),
        (
            Kind::Settle,
            true,
            vec![no_lookup(), Repeatable(Ok(false))],
            "lookup, repeatable?, unknown, later false",
        ),
        (
            Kind::Settle,
            true,
            vec![down(), Due, down(), Due, down(), Due, down()],
            "lookup, wait 1000, lookup, wait 2000, lookup, wait 3000, lookup, unknown, later true",
        ),
        (STEP, true, vec![no_lookup(), Repeatable(Err(lost()))], "lookup, repeatable?, unknown, later true"),
        // What a repetition says of itself says nothing of what came before it.
        (
            STEP,
            true,
            vec![no_lookup(), Repeatable(Ok(true)), Written, answered(ErrorCode::Unavailable)],
            "lookup, repeatable?, note 1, send 1, unknown, later true",
        ),
        (
            STEP,
            true,
            vec![no_lookup(), Repeatable(Ok(true)), Written, not_sent(HostCode::Closed)],
            "lookup, repeatable?, note 1, send 1, unknown, later true",
        ),
        (UNDO, true, vec![no_lookup(), Repeatable(Ok(false))], "lookup, repeatable?, unknown, later false"),
        (
            UNDO,
            true,
            vec![no_lookup(), Repeatable(Ok(true)), Written, answered(ErrorCode::NotFound)],
            "lookup, repeatable?, note 1, send 1, done",
        ),
    ];
    for (kind, unknown, inputs, expected) in cases {
        assert_eq!(walk(kind, unknown, inputs).join(", "), expected);
    }
}

#[test]
fn repeating_ends() {
    let mut plan = CallPlan::new(Kind::Settle, 4, true);
    plan.handle(Input::Begin, 0.5);
    for attempt in 5..8 {
        assert_eq!(plan.handle(no_lookup(), 0.5), CallMove::AskRepeatable);
        assert_eq!(plan.handle(Input::Repeatable(Ok(true)), 0.5), CallMove::NoteSent(attempt));
        assert_eq!(plan.handle(Input::Written, 0.5), CallMove::Send(attempt));
        assert_eq!(plan.handle(Input::Answered(Err(lost())), 0.5), CallMove::Lookup);
    }
    plan.handle(no_lookup(), 0.5);
    assert!(matches!(
        plan.handle(Input::Repeatable(Ok(true)), 0.5),
        CallMove::End(CallEnd::Unknown { later: true, .. })
    ));
}

#[test]
fn what_a_provider_says_of_a_failure_counts() {
    let partial = |state, undo| {
        let mut error = ProviderError::new(ErrorCode::Unavailable, "x").with_state(state);
        error.more.undo = undo;
        error.more.retry_after = Some(Duration::from_secs(9));
        Input::Answered(Err(CallError::answered(error)))
    };
    let begun = |input| {
        let mut plan = CallPlan::new(STEP, 0, false);
        plan.handle(Input::Begin, 0.5);
        plan.handle(Input::Written, 0.5);
        plan.handle(input, 0.5)
    };
    assert_eq!(
        begun(partial(DoneState::None, Vec::new())),
        CallMove::Wait(Duration::from_secs(9)),
        "its own delay wins"
    );
    assert!(matches!(begun(partial(DoneState::Partial, Vec::new())), CallMove::End(CallEnd::Failed(_))));
    let undo = vec![Invocation { action: "drop".to_owned(), attrs: BTreeMap::default() }];
    assert!(
        matches!(begun(partial(DoneState::None, undo)), CallMove::End(CallEnd::Failed(error)) if error.more.undo.len() == 1)
    );
}
