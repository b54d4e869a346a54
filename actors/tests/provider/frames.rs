//! Lines: split, joined, too long, stray, answering nothing that was asked.

use std::time::Duration;

use quartermaster_actors::provider::Outcome;

use super::support::{json, limited, provider, shown};

/// An answer of so many bytes without its line's end.
const SIZED: &str = r#"
def execute(id, params):
    size = params["attrs"]["x"]
    empty = '{"id":%d,"result":{"outputs":{"y":""}}}' % id
    raw('{"id":%d,"result":{"outputs":{"y":"%s"}}}\n' % (id, "a" * (size - len(empty))))
serve(LOOSE, execute)
"#;
const MIB16: usize = 16 * 1024 * 1024;

#[actix::test]
async fn b5_an_answer_in_many_writes_and_two_in_one_are_read_alike() {
    let text = r#"
waiting = []
def execute(id, params):
    if params["attrs"]["x"] == "bytes":
        for c in json.dumps({"id": id, "result": {"outputs": {"y": "ü"}}}, ensure_ascii=False) + "\n":
            for byte in c.encode():
                sys.stdout.buffer.write(bytes([byte])); sys.stdout.buffer.flush()
        return
    waiting.append(id)
    if len(waiting) == 2:
        raw("".join(json.dumps({"id": i, "result": {"outputs": {"y": i}}}) + "\n" for i in waiting))
serve(declaring(max_in_flight=2), execute)
"#;
    let Some(site) = provider(text) else { return };
    let bench = site.run();
    assert_eq!(json(&bench.act("\"bytes\"").await.unwrap().outputs), r#"{"y":"ü"}"#);
    let (first, second) = tokio::join!(bench.act("1"), bench.act("2"));
    assert_eq!([json(&first.unwrap().outputs), json(&second.unwrap().outputs)], [r#"{"y":4}"#, r#"{"y":5}"#]);
    bench.close().await;
}

#[actix::test]
async fn b6_a_frame_of_sixteen_mebibytes_passes_and_one_byte_more_is_refused_by_name() {
    let Some(site) = provider(SIZED) else { return };
    let bench = site.run();
    for size in [64 * 1024 - 1, 64 * 1024 + 1, 10 << 20, MIB16 - 1, MIB16] {
        let outputs = bench.act(&size.to_string()).await.unwrap().outputs;
        assert!(outputs["y"].as_str().unwrap().len() > size - 64);
    }
    let error = bench.act(&(MIB16 + 1).to_string()).await.unwrap_err();
    assert_eq!(
        shown(&error),
        "host.frame_too_large Unknown: provider `dns`: wrote a line over the limit of 16777216 bytes"
    );
    assert!(bench.act("100").await.is_ok(), "the next process serves");
    bench.close().await;
}

#[actix::test]
async fn b6_a_call_that_is_too_large_fails_before_anything_is_sent() {
    let Some(site) = provider("serve(LOOSE, lambda id, params: ok(id))") else { return };
    let bench = site.run();
    let frame = r#"{"id":3,"method":"execute","params":{"action":"do","attrs":{"x":""}}}"#.len();
    assert!(bench.act(&format!("\"{}\"", "a".repeat(MIB16 - 1 - frame))).await.is_ok());
    let error = bench.act(&format!("\"{}\"", "a".repeat(MIB16 + 1 - frame))).await.unwrap_err();
    assert_eq!((error.outcome, error.code().as_str()), (Outcome::NotSent, "host.frame_too_large"));
    bench.close().await;
    assert_eq!(bench.received().len(), 4, "describe, configure, the one that fits, shutdown");
}

#[actix::test]
async fn c60_bytes_without_a_line_feed_end_in_the_true_reason_and_bounded_memory() {
    let text = r#"
def execute(id, params):
    while True: sys.stdout.write("x" * 65536)
serve(LOOSE, execute)
"#;
    let Some(site) = provider(text) else { return };
    let bench = site.run();
    let error = bench.act("1").await.unwrap_err();
    assert_eq!(error.code().as_str(), "host.frame_too_large", "{error}");
    bench.close().await;
}

#[actix::test]
async fn b7_a_text_line_ends_the_process_and_is_named_wherever_it_comes() {
    let banner = "raw('Welcome to dns 0.4\\n')\nserve(LOOSE, lambda id, params: ok(id))";
    let Some(site) = provider(banner) else { return };
    let bench = site.with(|settings| settings.restart.limit = 1).run();
    let error = limited(bench.handle.start()).await.unwrap_err();
    assert_eq!((error.outcome, error.code().as_str()), (Outcome::NotSent, "host.bad_frame"), "{error}");
    assert_eq!(error.error.detail.as_deref(), Some("Welcome to dns 0.4"));

    let later = "def execute(id, params): raw('Traceback: oh\\n'); ok(id)\nserve(LOOSE, execute)";
    let Some(site) = provider(later) else { return };
    let bench = site.run();
    let error = bench.act("1").await.unwrap_err();
    assert_eq!((error.outcome, error.code().as_str()), (Outcome::Unknown, "host.bad_frame"), "{error}");
    assert_eq!(error.error.detail.as_deref(), Some("Traceback: oh"));

    let Some(site) = provider(later) else { return };
    let bench = site.with(|settings| settings.compat.log_stray_stdout = true).run();
    assert!(bench.act("1").await.is_ok(), "forgiven where it is set so");
    assert!(bench.has_fact("wrote a line that is no frame: Traceback: oh"), "{:?}", bench.facts());
    bench.close().await;
}

#[actix::test]
async fn c63_bad_utf8_never_ends_a_session_without_an_error() {
    let text = r#"
def execute(id, params):
    sys.stdout.buffer.write(b'{"id":3,"result":{"outputs":{"y":"\xff"}}}\n'); sys.stdout.buffer.flush()
serve(LOOSE, execute)
"#;
    let Some(site) = provider(text) else { return };
    let bench = site.run();
    let error = bench.act("1").await.unwrap_err();
    assert_eq!(error.code().as_str(), "host.bad_frame");
    assert!(error.message().contains("UTF-8"), "{error}");
}

#[actix::test]
async fn b8_an_answer_to_a_call_that_was_never_made_is_a_bad_frame() {
    for answer in [
        r#"{"id": 99, "result": {}}"#,
        r#"{"id": "3", "result": {}}"#,
        r#"{"id": id, "result": {}, "error": {"code": "x"}}"#,
    ] {
        let text = format!("def execute(id, params): send({answer}); ok(id)\nserve(LOOSE, execute)");
        let Some(site) = provider(&text) else { return };
        let bench = site.run();
        let error = bench.act("1").await.unwrap_err();
        assert_eq!((error.outcome, error.code().as_str()), (Outcome::Unknown, "host.bad_frame"), "{answer}");
    }
}

#[actix::test]
async fn b8_a_second_answer_and_a_late_one_are_dropped_and_told() {
    let text = r#"
told = threading.Event()
def execute(id, params):
    if params["attrs"]["x"] == "twice":
        ok(id); ok(id)
    elif params["attrs"]["x"] == "late":
        threading.Timer(1.0, lambda: (ok(id), told.set())).start()
    elif params["attrs"]["x"] == "slow":
        threading.Thread(target=lambda: (told.wait(), time.sleep(0.3), ok(id))).start()
    else:
        ok(id)
serve(declaring(max_in_flight=3), execute)
"#;
    let Some(site) = provider(text) else { return };
    let bench = site.with(|settings| settings.timeouts.abandon = Duration::from_millis(100)).run();
    bench.act("\"twice\"").await.unwrap();
    bench.act("1").await.unwrap();
    assert!(bench.has_fact("answered call 3 twice"), "{:?}", bench.facts());
    // Another call keeps the process until the late answer has come.
    let mut late =
        quartermaster_actors::provider::Call::execute("do", super::support::members(r#"{"x":"late"}"#));
    late.timeout = Some(Duration::from_millis(200));
    let (late, slow) = tokio::join!(limited(bench.handle.call(late, None)), bench.act("\"slow\""));
    assert_eq!(late.unwrap_err().outcome, Outcome::Unknown);
    slow.unwrap();
    super::support::eventually("the late answer was counted", || bench.has_fact("Late")).await;
    super::support::eventually("the process was replaced", || bench.has_fact("Replaced")).await;
    bench.close().await;
}

#[actix::test]
async fn c68_line_separators_of_other_runtimes_pass_in_both_directions() {
    let text = "serve(LOOSE, lambda id, params: ok(id, {\"outputs\": {\"y\": params[\"attrs\"][\"x\"]}}))";
    let Some(site) = provider(text) else { return };
    let bench = site.run();
    let outputs = bench.act("\"a\\u2028b\\u2029c\\u0085d\\fe\"").await.unwrap().outputs;
    assert_eq!(outputs["y"].as_str().unwrap(), "a\u{2028}b\u{2029}c\u{85}d\u{c}e");
    bench.close().await;
    let sent = &bench.received()[2];
    assert!(!sent.contains(['\u{2028}', '\u{2029}']), "escaped in what we send: {sent}");
}
