//! Time limits and what follows from them; pipes that are full on both sides.

use std::time::Duration;

use quartermaster_actors::provider::{Call, Outcome};
use tokio::sync::mpsc;

use super::support::{alive, eventually, json, limited, members, provider, shown};

fn within(x: &str, timeout: Duration) -> Call {
    Call { timeout: Some(timeout), ..Call::execute("do", members(&format!("{{\"x\":{x}}}"))) }
}

#[actix::test]
async fn b10_a_provider_that_never_reads_is_given_up_at_the_write_limit() {
    let text = r#"
def execute(id, params):
    note("pid", str(os.getpid()))
    ok(id)
    time.sleep(600)
serve(declaring(max_in_flight=4), execute)
"#;
    let Some(site) = provider(text) else { return };
    let bench = site
        .with(|settings| {
            settings.timeouts.write = Duration::from_millis(500);
            settings.timeouts.abandon = Duration::from_millis(100);
        })
        .run();
    bench.act("1").await.unwrap();
    let large = format!("\"{}\"", "a".repeat(1 << 20));
    let error = bench.act(&large).await.unwrap_err();
    assert_eq!(shown(&error), "host.timeout Unknown: provider `dns`: `do` was not read within 500ms");
    let pid = bench.file("pid");
    eventually("it was killed", || !alive(&pid)).await;
    assert!(bench.act("2").await.is_ok(), "another process serves");
    bench.close().await;
}

#[actix::test]
async fn b10_floods_on_both_outputs_while_we_write_lock_nobody_up() {
    let text = r#"
def flood():
    for _ in range(400): sys.stderr.write("noise " * 2000 + "\n")
def execute(id, params):
    noise = threading.Thread(target=flood); noise.start()
    for _ in range(2000): raw(json.dumps({"method": "x/progress", "params": {"id": id, "message": "z" * 1000}}) + "\n")
    noise.join()
    ok(id, {"outputs": {"y": len(params["attrs"]["x"])}})
serve(declaring(max_in_flight=2, progress=True), execute)
"#;
    let Some(site) = provider(text) else { return };
    let bench = site.run();
    let large = format!("\"{}\"", "a".repeat(10 << 20));
    let (first, second) = tokio::join!(bench.act(&large), bench.act(&large));
    for end in [first, second] {
        assert_eq!(json(&end.unwrap().outputs), format!(r#"{{"y":{}}}"#, 10 << 20));
    }
    bench.close().await;
}

#[actix::test]
async fn c61_a_mebibyte_of_stderr_in_each_call_and_carriage_returns_alone_do_not_hold_it_up() {
    let text = r#"
def execute(id, params):
    sys.stderr.write("p" * 1000 + "\r"); sys.stderr.write("log line\n" * 120000); sys.stderr.flush()
    ok(id)
serve(LOOSE, execute)
"#;
    let Some(site) = provider(text) else { return };
    let bench = site.run();
    for _ in 0..3 {
        bench.act("1").await.unwrap();
    }
    bench.close().await;
    let said = bench.facts().iter().filter(|fact| fact.starts_with("Said")).count();
    assert!(bench.has_fact("log line") && bench.has_fact("more lines not logged"), "{said}");
}

#[actix::test]
async fn c61_what_was_not_logged_is_told_when_its_second_is_over_though_nothing_more_is_said() {
    let text = r#"
def execute(id, params):
    sys.stderr.write("log line\n" * 20000); sys.stderr.flush()
    ok(id)
serve(LOOSE, execute)
"#;
    let Some(site) = provider(text) else { return };
    let bench = site.run();
    bench.act("1").await.unwrap();
    eventually("told while it lives", || bench.has_fact("more lines not logged")).await;
    bench.close().await;
}

#[actix::test]
async fn b13_a_call_that_does_not_end_is_unknown_and_its_process_goes_with_its_children() {
    let text = r#"
def execute(id, params):
    child = subprocess.Popen(["sleep", "600"])
    note("pids", str(os.getpid())); note("pids", str(child.pid))
    time.sleep(600)
serve(LOOSE, execute)
"#;
    let Some(site) = provider(text) else { return };
    let bench = site.with(|settings| settings.timeouts.abandon = Duration::from_millis(100)).run();
    limited(bench.handle.start()).await.unwrap();
    let error = limited(bench.handle.call(within("1", Duration::from_secs(4)), None)).await.unwrap_err();
    assert_eq!(shown(&error), "host.timeout Unknown: provider `dns`: `do` did not end within 4s");
    let pids = bench.file("pids");
    assert_eq!(pids.lines().count(), 2);
    eventually("both are gone", || pids.lines().all(|pid| !alive(pid))).await;
    eventually("told", || bench.has_fact("Replaced")).await;
    bench.close().await;
}

#[actix::test]
async fn an_answer_in_the_grace_after_the_limit_still_counts_and_spares_the_process() {
    let text =
        "def execute(id, params): time.sleep(0.6); ok(id, {'outputs': {'y': 1}})\nserve(LOOSE, execute)";
    let Some(site) = provider(text) else { return };
    let bench = site.with(|settings| settings.timeouts.abandon = Duration::from_secs(30)).run();
    limited(bench.handle.start()).await.unwrap();
    let end = limited(bench.handle.call(within("1", Duration::from_millis(200)), None)).await;
    assert!(end.is_ok());
    bench.act("2").await.unwrap();
    assert_eq!(bench.handle.snapshot().started, 1, "the same process");
    bench.close().await;
}

/// Waits for the cancel of the one call and deals with it as `how` says.
fn cancellable(how: &str) -> String {
    format!(
        r#"
open_calls = {{}}
def execute(id, params):
    if params["attrs"]["x"] == "quick": return ok(id)
    note("open")
    open_calls[id] = True
def other(frame):
    if frame["method"] == "x/cancel":
        id = frame["params"]["id"]
        {how}
serve(declaring(max_in_flight=2, cancel=True), execute, other=other)
"#
    )
}

#[actix::test]
async fn b14_a_cancelled_call_ends_as_its_provider_says() {
    for (how, expected) in [
        ("ok(id, {'outputs': {'y': 'done'}})", Ok(r#"{"y":"done"}"#)),
        (
            "fail(id, 'cancelled', 'stopped on request', x_state='none')",
            Err("cancelled Failed: stopped on request"),
        ),
    ] {
        let Some(site) = provider(&cancellable(how)) else { return };
        let bench = site.run();
        limited(bench.handle.start()).await.unwrap();
        let end = limited(bench.handle.call(within("1", Duration::from_millis(300)), None)).await;
        let end =
            end.map(|answer| json(&super::support::executed(answer).outputs)).map_err(|error| shown(&error));
        assert_eq!(end, expected.map(str::to_owned).map_err(str::to_owned));
        bench.act("\"quick\"").await.unwrap();
        assert_eq!(bench.handle.snapshot().started, 1, "the same process");
        bench.close().await;
        let cancel = &bench.received()[3];
        assert_eq!(cancel, r#"{"method":"x/cancel","params":{"id":3,"reason":"timeout","grace_ms":10000}}"#);
    }
}

#[actix::test]
async fn b14_a_cancel_that_is_not_answered_costs_the_process() {
    let Some(site) = provider(&cancellable("pass")) else { return };
    let bench = site.with(|settings| settings.timeouts.cancel = Duration::from_millis(300)).run();
    limited(bench.handle.start()).await.unwrap();
    let error = limited(bench.handle.call(within("1", Duration::from_millis(200)), None)).await.unwrap_err();
    assert_eq!((error.outcome, error.code().as_str()), (Outcome::Unknown, "host.timeout"));
    eventually("replaced", || bench.has_fact("Replaced")).await;
    bench.act("\"quick\"").await.unwrap();
    assert_eq!(bench.handle.snapshot().started, 2);
    bench.close().await;
}

#[actix::test]
async fn whoever_goes_away_cancels_and_a_call_that_was_not_sent_is_simply_not_made() {
    let how = "fail(id, 'cancelled', 'stopped')";
    let Some(site) = provider(&cancellable(how)) else { return };
    let bench = site.with(|settings| settings.max_in_flight = std::num::NonZeroUsize::MIN).run();
    limited(bench.handle.start()).await.unwrap();
    let (first, second) = (bench.act("1"), bench.act("2"));
    {
        tokio::pin!(first, second);
        tokio::select! {
            biased;
            _ = &mut first => panic!("ended"),
            _ = &mut second => panic!("ended"),
            () = eventually("the first is open", || bench.file("open").lines().count() == 1) => {}
        }
    }
    bench.act("\"quick\"").await.unwrap();
    bench.close().await;
    let received = bench.received();
    assert!(received.iter().any(|frame| frame.contains(r#""reason":"cancelled""#)), "{received:?}");
    assert!(!received.iter().any(|frame| frame.contains(r#""x":2"#)), "the second was never sent");
}

#[actix::test]
async fn progress_is_handed_on_and_draws_the_limit_out() {
    let text = r#"
def execute(id, params):
    for done in range(4):
        time.sleep(1.0)
        send({"method": "x/progress", "params": {"id": id, "done": done, "total": 4, "message": "signing"}})
    ok(id)
serve(declaring(progress=True), execute)
"#;
    let Some(site) = provider(text) else { return };
    let bench = site.run();
    limited(bench.handle.start()).await.unwrap();
    let (sender, mut progress) = mpsc::channel(16);
    let call = within("1", Duration::from_millis(3_500));
    limited(bench.handle.call(call, Some(sender))).await.unwrap();
    let first = progress.recv().await.unwrap();
    assert_eq!((first.message.as_deref(), first.total.unwrap().as_str()), (Some("signing"), "4"));
    bench.close().await;
}

#[actix::test]
async fn a_silent_provider_that_answers_pings_is_asked_and_one_that_stops_is_restarted() {
    let text = r#"
first = not os.path.exists(os.path.join(here, "once")); note("once")
answered = []
def other(frame):
    answered.append(1)
    if not first or len(answered) < 3: ok(frame["id"])
serve(declaring(ping=True), lambda id, params: ok(id), other=other)
"#;
    let Some(site) = provider(text) else { return };
    let bench = site
        .with(|settings| {
            settings.timeouts.ping_every = Duration::from_millis(100);
            settings.timeouts.ping = Duration::from_secs(1);
        })
        .run();
    limited(bench.handle.start()).await.unwrap();
    eventually("restarted", || bench.has_fact("gave no sign of life, 3 times in a row")).await;
    bench.act("1").await.unwrap();
    bench.close().await;
}
