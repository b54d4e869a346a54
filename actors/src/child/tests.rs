//! What is decided without a process: the life of a run, the lines of standard error, the environment.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use super::environment::allowed_environment;
use super::plan::{Effect, Ending, Input, KILL_WAIT, Life};
use super::stderr::{MAX_BYTES, MAX_LINE, MAX_LINES, StderrLines, TAIL_LINES};
use crate::helper::DEFAULT_ENVIRONMENT;

const TIMEOUT: Duration = Duration::from_secs(10);
const GRACE: Duration = Duration::from_secs(1);
const PIPE_GRACE: Duration = Duration::from_millis(200);

const EXITED: Input = Input::Exited { success: true };

/// Plays events, each at its millisecond, and compares the effects and the time of the next due event.
#[track_caller]
fn check(events: &[(u64, Input, Effect)], next_due: Option<u64>) {
    let start = Instant::now();
    let mut life = Life::new(start + TIMEOUT, GRACE, PIPE_GRACE);
    for (number, (at, input, expected)) in events.iter().enumerate() {
        let now = start + Duration::from_millis(*at);
        assert_eq!(life.handle(*input, now), *expected, "event {number}: {input:?} at {at} ms");
    }
    if let Some(due) = next_due {
        assert_eq!(life.due(), start + Duration::from_millis(due));
    }
}

#[test]
fn an_exited_helper_with_closed_pipes_has_ended() {
    check(
        &[
            (5, Input::StdoutClosed, Effect::Wait),
            (5, Input::StderrClosed, Effect::Wait),
            (6, EXITED, Effect::Finish(Ending::Ended)),
        ],
        None,
    );
    check(
        &[
            (5, EXITED, Effect::Wait),
            (6, Input::StderrClosed, Effect::Wait),
            (6, Input::StdoutClosed, Effect::Finish(Ending::Ended)),
        ],
        None,
    );
}

#[test]
fn closed_pipes_alone_end_nothing() {
    check(
        &[
            (5, Input::StdoutClosed, Effect::Wait),
            (5, Input::StderrClosed, Effect::Wait),
            (10_000, Input::Due, Effect::Terminate),
        ],
        Some(11_000),
    );
}

#[test]
fn a_whole_reply_counts_soon_after_the_exit_although_somebody_holds_the_pipe() {
    check(
        &[
            (50, EXITED, Effect::Wait),
            (250, Input::Due, Effect::CheckReply),
            (250, Input::ReplyChecked { complete: true }, Effect::Finish(Ending::Ended)),
        ],
        None,
    );
}

#[test]
fn a_partial_reply_is_waited_for_up_to_the_deadline() {
    check(&[(50, EXITED, Effect::Wait)], Some(250));
    check(
        &[
            (9_700, EXITED, Effect::Wait),
            (9_900, Input::Due, Effect::CheckReply),
            (9_900, Input::ReplyChecked { complete: false }, Effect::Wait),
            (10_000, Input::Due, Effect::Finish(Ending::Ended)),
        ],
        None,
    );
}

#[test]
fn a_failed_helper_is_not_waited_for() {
    check(
        &[
            (50, Input::Exited { success: false }, Effect::Wait),
            (250, Input::Due, Effect::Finish(Ending::Ended)),
        ],
        None,
    );
}

#[test]
fn held_standard_error_costs_only_the_pipe_grace() {
    check(
        &[
            (50, Input::StdoutClosed, Effect::Wait),
            (60, EXITED, Effect::Wait),
            (260, Input::Due, Effect::Finish(Ending::Ended)),
        ],
        None,
    );
}

#[test]
fn the_deadline_asks_then_kills() {
    check(
        &[
            (10_000, Input::Due, Effect::Terminate),
            (11_000, Input::Due, Effect::Kill),
            (11_001, EXITED, Effect::Wait),
            (11_001, Input::StdoutClosed, Effect::Wait),
            (11_001, Input::StderrClosed, Effect::Finish(Ending::TimedOut)),
        ],
        None,
    );
}

#[test]
fn a_group_that_stops_when_asked_is_not_kept_waiting() {
    check(
        &[
            (10_000, Input::Due, Effect::Terminate),
            (10_002, EXITED, Effect::Wait),
            (10_002, Input::StderrClosed, Effect::Wait),
            (10_003, Input::StdoutClosed, Effect::Finish(Ending::TimedOut)),
        ],
        None,
    );
}

#[test]
fn children_of_a_shell_that_died_at_once_still_have_their_grace() {
    check(&[(10_000, Input::Due, Effect::Terminate), (10_002, EXITED, Effect::Wait)], Some(11_000));
}

#[test]
fn a_pipe_held_by_somebody_who_left_the_group_cannot_hold_the_run() {
    check(
        &[
            (10_000, Input::Due, Effect::Terminate),
            (10_002, EXITED, Effect::Wait),
            (11_000, Input::Due, Effect::Kill),
            (11_200, Input::Due, Effect::Finish(Ending::TimedOut)),
        ],
        None,
    );
}

#[test]
fn what_cannot_be_killed_is_given_up() {
    let gone = 11_000 + u64::try_from(KILL_WAIT.as_millis()).unwrap();
    check(
        &[
            (10_000, Input::Due, Effect::Terminate),
            (11_000, Input::Due, Effect::Kill),
            (gone, Input::Due, Effect::Finish(Ending::TimedOut)),
        ],
        None,
    );
}

#[test]
fn too_much_output_stops_it_at_once() {
    check(
        &[
            (70, Input::Overflowed, Effect::Terminate),
            (71, EXITED, Effect::Wait),
            (71, Input::StderrClosed, Effect::Finish(Ending::Overflowed)),
        ],
        None,
    );
    check(&[(70, Input::Overflowed, Effect::Terminate), (1_070, Input::Due, Effect::Kill)], None);
}

/// Feeds chunks and gives the logged lines and the tail.
fn lines(chunks: &[&[u8]]) -> (Vec<String>, Vec<String>) {
    let mut logged = Vec::new();
    let mut log = |line| logged.push(line);
    let mut lines = StderrLines::default();
    for chunk in chunks {
        lines.push(chunk, &mut log);
    }
    let tail = lines.finish(&mut log);
    (logged, tail)
}

#[track_caller]
fn check_lines(chunks: &[&[u8]], expected: &[&str]) {
    assert_eq!(lines(chunks).0, expected);
}

#[test]
fn lines_are_whole_however_they_arrive() {
    check_lines(&[b"one\ntw", b"o\n", b"\n\nthree"], &["one", "two", "three"]);
}

#[test]
fn a_carriage_return_before_the_newline_is_no_part_of_the_line() {
    check_lines(&[b"dos\r\nx\r", b"\n"], &["dos", "x"]);
}

#[test]
fn a_line_cannot_forge_another_or_drive_the_terminal() {
    check_lines(&[b"a\rb\x1b[2Jc\x00\tt\n"], &["a\\u{d}b\\u{1b}[2Jc\\u{0}\tt"]);
    check_lines(&["x\u{2028}y\u{202e}z\u{85}\n".as_bytes()], &["x\\u{2028}y\\u{202e}z\\u{85}"]);
    check_lines(&[b"not \xff utf\n"], &["not \u{fffd} utf"]);
}

#[test]
fn an_endless_line_is_cut_and_counted() {
    let chunk = [b'x'; 1024];
    let chunks: Vec<&[u8]> = (0..300).map(|_| chunk.as_slice()).collect();
    let (logged, tail) = lines(&chunks);
    let rest = 300 * 1024 - MAX_LINE;
    assert_eq!(logged, [format!("{}… ({rest} bytes more)", "x".repeat(MAX_LINE))]);
    assert!(tail[0].len() < MAX_LINE);
}

#[test]
fn a_chatty_run_is_bounded_and_its_last_lines_are_kept() {
    let text: String = (0..5_000).fold(String::new(), |text, n| text + &format!("line {n}\n"));
    let (logged, tail) = lines(&[text.as_bytes()]);
    assert_eq!(logged.len(), MAX_LINES + 1);
    assert_eq!(logged.last().unwrap(), "… 4800 more lines (42400 bytes) not logged");
    assert_eq!(tail.len(), TAIL_LINES);
    assert_eq!(tail.last().unwrap(), "line 4999");

    let long = "y".repeat(MAX_LINE - 1) + "\n";
    let logged = lines(&[long.repeat(150).as_bytes()]).0;
    assert!(logged.iter().map(String::len).sum::<usize>() < MAX_BYTES + 200, "{}", logged.len());
}

#[test]
fn multibyte_text_is_cut_between_characters() {
    let text = "ä".repeat(MAX_LINE) + "\n";
    let (logged, tail) = lines(&[text.as_bytes()]);
    assert!(logged[0].starts_with("ää") && tail[0].ends_with("ä…"));
}

#[test]
fn only_allowed_variables_reach_a_helper() {
    let ours = ["PATH", "PATHOLOGY", "HOME", "HELPER_DB", "HELPER", "NATS_PASSWORD", "QM_TOKEN"];
    let variables = ours.map(|name| (OsString::from(name), OsString::from("v")));
    let names: Vec<_> =
        allowed_environment(variables, &DEFAULT_ENVIRONMENT).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["PATH", "HOME", "HELPER_DB"]);
}
