//! What the plan decides at which moment, with the limits as they are by default and a clock that is turned by hand.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quartermaster_proto::provider::Members;

use super::conversation::Event;
use super::effect::{Effect, Input, ProcessId};
use super::error::CallError;
use super::masks::Masks;
use super::messages::Call;
use super::plan::Plan;
use super::settings::ProviderSettings;

const PLAIN: &str = r#"{"name":"p","protocol":"1","actions":{"do":{"attrs":{"x":{"type":"any"}}}}}"#;
const CANCELS: &str = r#"{"name":"p","protocol":"1","actions":{},"x_extensions":{"cancel":true,"max_in_flight":4,"ping":true,"progress":true}}"#;
/// In the middle of a jitter.
const DICE: f64 = 0.5;

/// A plan and its moment. What it wants is kept as short words: `start 1`, `write 1 execute`, `answer 7 host.timeout Unknown`.
struct Table {
    plan: Plan,
    start: Instant,
    now: Instant,
    words: Vec<String>,
}

impl Table {
    fn new(change: impl FnOnce(&mut ProviderSettings)) -> Self {
        let mut settings = ProviderSettings::new("p", "/opt/p");
        change(&mut settings);
        let start = Instant::now();
        let plan = Plan::new(Arc::new(settings), Masks::default());
        Self { plan, start, now: start, words: Vec::new() }
    }

    fn feed(&mut self, input: Input) {
        for effect in self.plan.handle(input, self.now, DICE) {
            if let Some(word) = word(&effect) {
                self.words.push(word);
            }
            // The writer is always quick here, unless a test has it otherwise.
        }
    }

    fn hear(&mut self, process: ProcessId, event: Event) {
        self.feed(Input::Heard(process, event));
    }

    fn line(&mut self, process: ProcessId, line: &str) {
        self.hear(process, Event::Line(Bytes::copy_from_slice(line.as_bytes())));
    }

    /// Brings a process from its start to its first call.
    fn ready(&mut self, process: ProcessId, schema: &str) {
        self.feed(Input::Started(process, Ok(())));
        self.hear(process, Event::Written);
        self.line(process, &format!(r#"{{"id":1,"result":{{"schema":{schema}}}}}"#));
        self.hear(process, Event::Written);
        self.line(process, r#"{"id":2,"result":{}}"#);
    }

    fn ask(&mut self, ticket: u64) {
        self.feed(Input::Ask(ticket, Arc::new(Call::execute("do", Members::new()))));
    }

    fn gone(&mut self, process: ProcessId) {
        self.hear(process, Event::Exited("exited with status 1".to_owned()));
        self.hear(process, Event::OutputClosed);
        self.hear(process, Event::ErrorsClosed);
    }

    /// What it wanted since the last time.
    #[track_caller]
    fn check(&mut self, expected: &[&str]) {
        assert_eq!(std::mem::take(&mut self.words), expected);
    }

    /// The next due moment is so many milliseconds after the start; time goes on to it.
    #[track_caller]
    fn due(&mut self, millis: u64) {
        let due = self.plan.due().expect("nothing is due");
        assert_eq!(due - self.start, Duration::from_millis(millis));
        self.now = due;
        self.feed(Input::Due);
    }

    fn at(&mut self, millis: u64) {
        self.now = self.start + Duration::from_millis(millis);
    }
}

fn word(effect: &Effect) -> Option<String> {
    Some(match effect {
        Effect::Start(process) => format!("start {process}"),
        Effect::Write(process, frame) => {
            let text = String::from_utf8_lossy(&frame.bytes).into_owned();
            let method = text.split(r#""method":""#).nth(1)?.split('"').next()?.to_owned();
            format!("write {process} {method}")
        }
        Effect::CloseInput(process) => format!("close {process}"),
        Effect::Terminate(process) => format!("term {process}"),
        Effect::Kill(process) => format!("kill {process}"),
        Effect::End(process) => format!("end {process}"),
        Effect::Answer(ticket, _, Ok(_)) => format!("answer {ticket} ok"),
        Effect::Answer(ticket, _, Err(error)) => {
            format!("answer {ticket} {} {:?}", error.code(), error.outcome)
        }
        Effect::Closed => "closed".to_owned(),
        Effect::Progress(..) | Effect::Sent(_) | Effect::Note(_) => return None,
    })
}

const UP: [&str; 4] = ["start 1", "write 1 describe", "write 1 configure", "write 1 execute"];

/// A process with one call open since the moment 0.
fn busy(schema: &str, change: impl FnOnce(&mut ProviderSettings)) -> Table {
    let mut table = Table::new(change);
    table.ask(1);
    table.ready(1, schema);
    table.hear(1, Event::Written);
    table.check(&UP);
    table
}

#[test]
fn b3_describe_has_five_seconds_and_configure_thirty() {
    let mut table = Table::new(|_| {});
    table.ask(1);
    table.feed(Input::Started(1, Ok(())));
    table.hear(1, Event::Written);
    table.due(5_000);
    table.check(&["start 1", "write 1 describe", "close 1", "kill 1"]);

    let mut table = Table::new(|_| {});
    table.ask(1);
    table.feed(Input::Started(1, Ok(())));
    table.hear(1, Event::Written);
    table.at(4_000);
    table.line(1, &format!(r#"{{"id":1,"result":{PLAIN}}}"#));
    table.hear(1, Event::Written);
    table.due(34_000);
    table.check(&["start 1", "write 1 describe", "write 1 configure", "close 1", "kill 1"]);
}

#[test]
fn a_call_has_ten_minutes_from_its_frame_and_two_seconds_more_then_the_process_goes() {
    let mut table = busy(PLAIN, |_| {});
    table.due(600_000);
    table.check(&[]);
    table.due(602_000);
    table.check(&["answer 1 host.timeout Unknown", "close 1", "kill 1"]);
    table.gone(1);
    table.check(&["end 1"]);
    table.ask(2);
    table.check(&["start 2"]);
}

#[test]
fn the_clock_of_a_call_starts_when_its_frame_has_been_written_whole() {
    let mut table = Table::new(|_| {});
    table.ask(1);
    table.ready(1, PLAIN);
    table.at(20_000);
    table.hear(1, Event::Written);
    table.due(620_000);
}

#[test]
fn a_blocked_write_has_thirty_seconds() {
    let mut table = Table::new(|_| {});
    table.ask(1);
    table.ready(1, PLAIN);
    table.check(&UP);
    table.due(30_000);
    table.check(&["close 1"]);
    table.due(32_000);
    table.check(&["answer 1 host.timeout Unknown", "kill 1"]);
}

#[test]
fn while_a_call_is_overdue_nothing_new_is_sent_and_the_others_have_their_own_time() {
    let schema = r#"{"name":"p","protocol":"1","actions":{},"x_extensions":{"max_in_flight":4}}"#;
    let mut table = busy(schema, |_| {});
    table.at(100_000);
    table.ask(2);
    table.hear(1, Event::Written);
    table.check(&["write 1 execute"]);
    table.due(600_000);
    table.ask(3);
    table.check(&[]);
    table.due(602_000);
    table.check(&["answer 1 host.timeout Unknown"]);
    table.due(700_000);
    table.at(701_000);
    table.line(1, r#"{"id":4,"result":{}}"#);
    table.check(&["answer 2 ok", "close 1", "kill 1"]);
    table.gone(1);
    table.check(&["end 1", "start 2"]);
    table.ready(2, schema);
    table.check(&["write 2 describe", "write 2 configure", "write 2 execute"]);
}

#[test]
fn a_cancel_is_sent_at_the_limit_and_its_answer_has_ten_seconds() {
    let mut table = busy(CANCELS, |_| {});
    table.due(600_000);
    table.check(&["write 1 x/cancel"]);
    table.hear(1, Event::Written);
    table.ask(2);
    table.check(&["write 1 execute"]);
    table.hear(1, Event::Written);
    table.line(1, r#"{"id":4,"result":{}}"#);
    table.due(610_000);
    table.check(&["answer 2 ok", "answer 1 host.timeout Unknown", "close 1", "kill 1"]);
}

#[test]
fn progress_draws_a_limit_out_but_never_beyond_three_times() {
    let mut table = busy(CANCELS, |_| {});
    for minute in 1..=29 {
        table.at(minute * 60_000);
        table.line(1, r#"{"method":"x/progress","params":{"id":3,"done":1}}"#);
    }
    table.check(&[]);
    table.due(1_800_000);
    table.check(&["write 1 x/cancel"]);
}

#[test]
fn an_idle_provider_is_asked_for_a_sign_of_life_every_thirty_seconds() {
    let mut table = busy(CANCELS, |_| {});
    table.line(1, r#"{"id":3,"result":{}}"#);
    table.check(&["answer 1 ok"]);
    table.due(30_000);
    table.hear(1, Event::Written);
    table.check(&["write 1 x/ping"]);
    table.at(31_000);
    table.line(1, r#"{"id":4,"error":{"code":"unknown_method"}}"#);
    for miss in 0..3 {
        table.due(61_000 + miss * 40_000);
        table.check(&["write 1 x/ping"]);
        table.hear(1, Event::Written);
        table.due(71_000 + miss * 40_000);
    }
    table.check(&["close 1", "kill 1"]);
}

#[test]
fn a_provider_that_declares_nothing_is_never_pinged() {
    let mut table = busy(PLAIN, |_| {});
    table.line(1, r#"{"id":3,"result":{}}"#);
    assert_eq!(table.plan.due(), None);
    let mut table = busy(PLAIN, |settings| settings.compat.ping_probe = true);
    table.line(1, r#"{"id":3,"result":{}}"#);
    table.due(30_000);
    table.check(&["answer 1 ok", "write 1 x/ping"]);
}

#[test]
fn b15_an_end_has_five_seconds_in_all() {
    let mut table = busy(PLAIN, |_| {});
    table.feed(Input::Close(Duration::ZERO));
    table.hear(1, Event::Written);
    table.check(&["write 1 shutdown"]);
    table.due(3_000);
    table.check(&["close 1"]);
    table.due(4_000);
    table.check(&["term 1"]);
    table.due(5_000);
    table.check(&["answer 1 host.closed Unknown", "kill 1"]);
    table.gone(1);
    table.check(&["end 1", "closed"]);
}

#[test]
fn an_answered_shutdown_closes_the_input_at_once() {
    let mut table = busy(PLAIN, |_| {});
    table.line(1, r#"{"id":3,"result":{}}"#);
    table.feed(Input::Close(Duration::from_mins(1)));
    table.hear(1, Event::Written);
    table.line(1, r#"{"id":4}"#);
    table.check(&["answer 1 ok", "write 1 shutdown", "close 1"]);
    table.gone(1);
    table.check(&["kill 1", "end 1", "closed"]);
}

#[test]
fn f6_the_delays_double_and_five_crashes_within_ten_minutes_are_the_end() {
    let mut table = Table::new(|_| {});
    table.ask(1);
    let mut at = 0;
    for (crash, delay) in [(1, 250), (2, 500), (3, 1_000), (4, 2_000)] {
        table.feed(Input::Started(crash, Ok(())));
        table.gone(crash);
        at += delay;
        table.due(at);
    }
    table.words.clear();
    table.feed(Input::Started(5, Ok(())));
    table.gone(5);
    table.check(&["write 5 describe", "close 5", "kill 5", "answer 1 host.exited NotSent", "end 5"]);
    table.ask(2);
    table.check(&["answer 2 host.exited NotSent"]);
    table.at(at + 600_000);
    table.ask(3);
    table.check(&["start 6"]);
}

#[test]
fn crashes_far_apart_do_not_count_together() {
    let mut table = busy(PLAIN, |_| {});
    for crash in 1..=20 {
        table.gone(crash);
        table.at(crash * 601_000);
        table.feed(Input::Due);
        table.ask(crash + 1);
        table.ready(crash + 1, PLAIN);
        table.hear(crash + 1, Event::Written);
    }
    assert!(table.plan.failure().is_none());
}

#[test]
fn nothing_is_started_again_while_nobody_waits_and_nothing_during_an_end() {
    let mut table = busy(PLAIN, |_| {});
    table.gone(1);
    table.check(&["answer 1 host.exited Unknown", "close 1", "kill 1", "end 1"]);
    table.due(250);
    table.check(&[]);
    table.feed(Input::Close(Duration::ZERO));
    table.check(&["closed"]);
    table.ask(2);
    table.check(&["answer 2 host.closed NotSent", "closed"]);
}

#[test]
fn a_schema_that_cannot_be_used_is_not_asked_for_again() {
    let mut table = Table::new(|_| {});
    table.ask(1);
    table.feed(Input::Started(1, Ok(())));
    table.line(1, r#"{"id":1,"result":{"name":"p","protocol":"3"}}"#);
    table.gone(1);
    table.check(&[
        "start 1",
        "write 1 describe",
        "close 1",
        "kill 1",
        "answer 1 host.unsupported_protocol NotSent",
        "end 1",
    ]);
}

#[test]
fn a_process_that_could_not_be_started_counts_as_a_crash() {
    let mut table = Table::new(|settings| settings.restart.limit = 2);
    let error = || {
        CallError::host(super::Outcome::NotSent, quartermaster_proto::provider::HostCode::SpawnFailed, "no")
    };
    table.ask(1);
    table.feed(Input::Started(1, Err(error())));
    table.due(250);
    table.feed(Input::Started(2, Err(error())));
    table.check(&["start 1", "end 1", "start 2", "answer 1 host.spawn_failed NotSent", "end 2"]);
}

#[test]
fn a_call_whose_frame_was_refused_by_a_closed_pipe_is_made_again() {
    let mut table = Table::new(|_| {});
    table.ask(1);
    table.ready(1, PLAIN);
    table.hear(1, Event::WriteFailed(true));
    table.check(&["start 1", "write 1 describe", "write 1 configure", "write 1 execute", "close 1"]);
    table.gone(1);
    table.due(250);
    table.check(&["kill 1", "end 1", "start 2"]);

    let mut table = Table::new(|_| {});
    table.ask(1);
    table.ready(1, PLAIN);
    table.words.clear();
    table.hear(1, Event::WriteFailed(false));
    table.gone(1);
    table.check(&["close 1", "answer 1 host.exited Unknown", "kill 1", "end 1"]);
}

#[test]
fn calls_that_are_given_back_keep_their_order() {
    let schema = r#"{"name":"p","protocol":"1","actions":{},"x_extensions":{"max_in_flight":4}}"#;
    let mut table = Table::new(|_| {});
    for ticket in 1..=3 {
        table.ask(ticket);
    }
    table.ready(1, schema);
    table.words.clear();
    table.hear(1, Event::WriteFailed(true));
    table.gone(1);
    table.due(250);
    table.ready(2, schema);
    for id in 3..=5 {
        table.hear(2, Event::Written);
        table.line(2, &format!(r#"{{"id":{id},"result":{{}}}}"#));
    }
    table.words.retain(|word| word.starts_with("answer"));
    table.check(&["answer 1 ok", "answer 2 ok", "answer 3 ok"]);
}

#[test]
fn of_several_processes_the_first_one_tells_what_the_others_have_to_declare() {
    let mut table = Table::new(|settings| {
        settings.eager = true;
        settings.instances = std::num::NonZeroUsize::new(3).unwrap();
    });
    table.feed(Input::Warm);
    table.check(&["start 1"]);
    table.ready(1, PLAIN);
    table.check(&["write 1 describe", "write 1 configure", "start 2", "start 3"]);
    table.feed(Input::Started(2, Ok(())));
    table.line(2, r#"{"id":1,"result":{"name":"q","protocol":"1"}}"#);
    table.check(&["write 2 describe", "close 2", "kill 2"]);
}

#[test]
fn an_end_does_not_spin_while_a_process_that_closed_its_output_lives() {
    let mut table = busy(PLAIN, |_| {});
    table.line(1, r#"{"id":3,"result":{}}"#);
    table.hear(1, Event::OutputClosed);
    table.feed(Input::Close(Duration::ZERO));
    table.hear(1, Event::Written);
    table.words.clear();
    table.due(3_000);
    table.due(4_000);
    table.due(5_000);
    table.check(&["close 1", "term 1", "kill 1"]);
}

#[test]
fn last_words_are_waited_for_half_a_second() {
    let mut table = busy(PLAIN, |_| {});
    table.hear(1, Event::Exited("exited with status 0".to_owned()));
    table.check(&[]);
    table.line(1, r#"{"id":3,"result":{}}"#);
    table.check(&["answer 1 ok"]);
    table.due(500);
    table.check(&["close 1", "kill 1", "end 1"]);
}

#[test]
fn a_call_that_is_called_back_still_has_its_end() {
    // Told, and answered.
    let mut table = busy(CANCELS, |_| {});
    table.feed(Input::CallBack(1));
    table.check(&["write 1 x/cancel"]);
    table.hear(1, Event::Written);
    table.line(1, r#"{"id":3,"error":{"code":"cancelled","message":"m","x_state":"none"}}"#);
    table.check(&["answer 1 cancelled Failed"]);
    // Not to be told: its answer has two seconds.
    let mut table = busy(PLAIN, |_| {});
    table.feed(Input::CallBack(1));
    table.due(2_000);
    table.check(&["answer 1 host.timeout Unknown", "close 1", "kill 1"]);
    // Never sent.
    let mut table = busy(PLAIN, |_| {});
    table.ask(2);
    table.feed(Input::CallBack(2));
    table.check(&["answer 2 cancelled NotSent"]);
}
