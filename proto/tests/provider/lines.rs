//! Bytes cut into lines under a limit.

use quartermaster_proto::provider::{Frame, FrameError, HostCode, Limits, Lines, Overlong, decode};

/// Feeds `pieces` one by one and takes every line as soon as it is there; then ends the input.
fn cut<'a>(
    limit: usize,
    overlong: Overlong,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<Result<String, FrameError>> {
    let mut lines = Lines::new(limit, overlong);
    let mut found = Vec::new();
    let text =
        |line: Result<bytes::Bytes, FrameError>| line.map(|line| String::from_utf8_lossy(&line).into_owned());
    for piece in pieces {
        lines.push(piece);
        found.extend(std::iter::from_fn(|| lines.next_line()).map(text));
        assert!(lines.held() <= limit + 1, "no more is held than a line and its carriage return");
    }
    found.extend(std::iter::from_fn(|| lines.finish()).map(text));
    found
}

/// The same lines however the bytes arrive.
fn check(text: &str, expected: &[&str]) {
    for size in [1, 2, 3, 7, text.len().max(1)] {
        let found = cut(64, Overlong::Refuse, text.as_bytes().chunks(size));
        let expected: Vec<_> = expected.iter().map(|line| Ok((*line).to_owned())).collect();
        assert_eq!(found, expected, "{text:?} in pieces of {size}");
    }
}

#[test]
fn only_a_line_feed_ends_a_line() {
    check("one\ntwo\n", &["one", "two"]);
    check(
        "one\u{2028}still\u{2029}one\u{85}line\u{b}\u{c}\n",
        &["one\u{2028}still\u{2029}one\u{85}line\u{b}\u{c}"],
    );
    check("one\rstill one\n", &["one\rstill one"]);
}

#[test]
fn one_carriage_return_before_the_line_feed_goes_with_it() {
    check("one\r\ntwo\r\n", &["one", "two"]);
    check("one\r\r\n", &["one\r"]);
    check("\r\n\n\r\n", &["", "", ""]);
}

#[test]
fn what_follows_the_last_line_feed_is_a_line_at_the_end() {
    check("one\ntwo", &["one", "two"]);
    check("one\r", &["one"]);
    check("", &[]);
    check("\n", &[""]);
}

#[test]
fn the_limit_counts_the_line_without_its_end() {
    for (length, end, is_taken) in [
        (15, "\n", true),
        (16, "\n", true),
        (16, "\r\n", true),
        (17, "\n", false),
        (17, "\r\n", false),
        (16, "", true),
        (17, "", false),
    ] {
        let text = format!("{}{end}", "x".repeat(length));
        for size in [1, 5, text.len()] {
            let found = cut(16, Overlong::Refuse, text.as_bytes().chunks(size));
            assert_eq!(found.len(), 1);
            assert_eq!(found[0].is_ok(), is_taken, "{length} {end:?} {size}");
        }
    }
}

#[test]
fn the_reason_of_a_refusal_is_told_once_and_nothing_is_held_after_it() {
    let mut lines = Lines::new(65_536, Overlong::Refuse);
    let mut told = Vec::new();
    // Endless bytes without a line feed.
    for _ in 0..10_000 {
        lines.push(&[b'x'; 4_096]);
        told.extend(lines.next_line());
        assert!(lines.held() <= 65_536 + 4_096);
    }
    assert_eq!(told.len(), 1);
    let error = told.remove(0).unwrap_err();
    assert_eq!(
        (error.code(), error.to_string()),
        (HostCode::FrameTooLarge, "a line over the limit of 65536 bytes".to_owned())
    );
    lines.push(b"\n{}\n");
    assert!(lines.next_line().is_none() && lines.finish().is_none() && lines.held() == 0);
}

#[test]
fn lines_before_one_that_is_too_long_are_delivered() {
    let found =
        cut(8, Overlong::Refuse, [&b"one\ntwo\nmuch too long\nthree\n"[..4], b"two\nmuch too long\nthree\n"]);
    assert_eq!(found.len(), 3);
    assert!(found[0].is_ok() && found[1].is_ok() && found[2].is_err());
}

#[test]
fn sizes_below_the_limit_always_work() {
    for size in [64 * 1024 - 1, 64 * 1024 + 1, 10 * 1024 * 1024] {
        let line = format!("{{\"id\":1,\"result\":\"{}\"}}\n", "x".repeat(size - 20));
        let mut lines = Lines::new(Limits::PROVIDER.max_bytes, Overlong::Refuse);
        let mut found = None;
        for piece in line.as_bytes().chunks(64 * 1024) {
            lines.push(piece);
            found = found.or(lines.next_line());
        }
        let line = found.unwrap().unwrap();
        assert_eq!(line.len(), size);
        assert!(matches!(decode(&line, &Limits::PROVIDER).unwrap().frame, Frame::Reply(_)), "{size}");
    }
}

#[test]
fn an_answer_in_single_bytes_and_two_in_one_write_are_answers() {
    let text = "{\"id\":1,\"result\":{}}\r\n\r\n{\"id\":2,\"result\":{}}\n";
    for size in [1, text.len()] {
        let frames: Vec<_> = cut(100, Overlong::Refuse, text.as_bytes().chunks(size))
            .into_iter()
            .map(|line| decode(line.unwrap().as_bytes(), &Limits::PROVIDER).unwrap().frame)
            .collect();
        assert!(
            matches!(&frames[..], [Frame::Reply(one), Frame::Blank, Frame::Reply(two)] if one.id.0 == 1 && two.id.0 == 2)
        );
    }
}

#[test]
fn log_lines_that_are_too_long_are_cut_between_characters() {
    let found = cut(4, Overlong::Split, [&b"abcdefghij\nkl\n"[..]]);
    assert_eq!(found, ["abcd", "efgh", "ij", "kl"].map(|line| Ok(line.to_owned())));
    let found = cut(4, Overlong::Split, ["aéééé\n".as_bytes()]);
    assert_eq!(found, ["aé", "éé", "é"].map(|line| Ok(line.to_owned())));
    let found = cut(4, Overlong::Split, [&[0x80; 9][..]]);
    assert_eq!(found.len(), 3, "what is no text is cut at the limit");
    let found = cut(4, Overlong::Split, [&b"10%\r20%\r30%\r"[..]]);
    assert_eq!(found.concat_ok(), "10%\r20%\r30%");
}

trait ConcatOk {
    fn concat_ok(self) -> String;
}

impl ConcatOk for Vec<Result<String, FrameError>> {
    fn concat_ok(self) -> String {
        self.into_iter().map(Result::unwrap).collect()
    }
}
