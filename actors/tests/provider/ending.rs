//! The end of a provider: asked, insisted, forced; nothing is left behind.

use std::time::{Duration, Instant};

use quartermaster_actors::provider::Outcome;

use super::support::{alive, eventually, limited, members, provider, there};

/// Ignores the given ways of being asked to end, in this order of insistence.
async fn check_ends(what: &str, text: &str) {
    let Some(site) = provider(text) else { return };
    let bench = site.run();
    limited(bench.handle.start()).await.unwrap();
    let pids = bench.file("pids");
    let start = Instant::now();
    bench.close().await;
    // The limit is five seconds; a busy machine may be late by some.
    assert!(start.elapsed() < Duration::from_mins(1), "{what}: {:?}", start.elapsed());
    eventually("nothing is left, not even defunct", || pids.lines().all(|pid| !there(pid))).await;
    assert!(bench.has_fact("Ended"), "{what}: {:?}", bench.facts());
}

#[actix::test]
async fn b15_shutdown_closed_input_and_term_may_all_be_ignored() {
    let describe = "note('pids', str(os.getpid()))\nfor frame in frames():\n    if frame['method'] == 'describe': ok(frame['id'], {'schema': LOOSE})\n    elif frame['method'] != 'shutdown': ok(frame['id'])\n";
    check_ends("shutdown ignored", describe).await;
    check_ends("input ignored too", &format!("{describe}time.sleep(600)")).await;
    check_ends(
        "TERM ignored too",
        &format!("signal.signal(signal.SIGTERM, signal.SIG_IGN)\n{describe}time.sleep(600)"),
    )
    .await;
    check_ends(
        "answered, and stays",
        "note('pids', str(os.getpid()))\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nserve(LOOSE, None)\ntime.sleep(600)",
    )
    .await;
}

#[actix::test]
async fn c66_what_a_provider_started_goes_with_it() {
    let child = "child = subprocess.Popen(['sleep', '600'])\nnote('pids', str(os.getpid())); note('pids', str(child.pid))\n";
    let Some(site) = provider(&format!("{child}serve(LOOSE, None)")) else { return };
    let bench = site.run();
    limited(bench.handle.start()).await.unwrap();
    let pids = bench.file("pids");
    bench.close().await;
    eventually("the child is gone too", || pids.lines().all(|pid| !alive(pid))).await;
}

#[actix::test]
async fn a_runner_that_ends_kills_its_processes_and_callers_hear_of_it() {
    let text = "child = subprocess.Popen(['sleep', '600'])\nnote('pids', str(os.getpid())); note('pids', str(child.pid))\nserve(LOOSE, lambda id, params: time.sleep(600))";
    let Some(site) = provider(text) else { return };
    let bench = site.run();
    limited(bench.handle.start()).await.unwrap();
    let pids = bench.file("pids");
    let stop = async {
        eventually("sent", || bench.received().len() == 3).await;
        bench.runner.do_send(quartermaster_actors::supervise::Stop);
    };
    let (end, ()) = tokio::join!(bench.act("1"), stop);
    let error = end.unwrap_err();
    assert_eq!((error.outcome, error.code().as_str()), (Outcome::Unknown, "host.exited"), "{error}");
    eventually("gone with its child", || pids.lines().all(|pid| !alive(pid))).await;
    let snapshot = bench.handle.snapshot();
    assert_eq!((snapshot.ready, snapshot.open), (0, 0));
}

#[actix::test]
async fn closing_lets_open_calls_end_and_refuses_those_that_wait() {
    let text = "def execute(id, params): time.sleep(0.5); ok(id)\nserve(LOOSE, execute)";
    let Some(site) = provider(text) else { return };
    let bench = site.run();
    limited(bench.handle.start()).await.unwrap();
    let close = async {
        eventually("one is open, one waits", || {
            let snapshot = bench.handle.snapshot();
            (snapshot.open, snapshot.queued) == (1, 1)
        })
        .await;
        limited(bench.handle.close(Duration::from_secs(30))).await;
    };
    let (first, second, ()) = tokio::join!(bench.act("1"), bench.act("2"), close);
    assert!(first.is_ok());
    let second = second.unwrap_err();
    assert_eq!((second.outcome, second.code().as_str()), (Outcome::NotSent, "host.closed"));
}

#[actix::test]
async fn closing_without_patience_leaves_an_open_call_unknown() {
    let Some(site) = provider("serve(LOOSE, lambda id, params: time.sleep(600))") else { return };
    let bench = site.with(|settings| settings.timeouts.shutdown = Duration::from_millis(500)).run();
    limited(bench.handle.start()).await.unwrap();
    let close = async {
        eventually("open", || bench.handle.snapshot().open == 1).await;
        bench.close().await;
    };
    let (end, ()) = tokio::join!(bench.act("1"), close);
    let error = end.unwrap_err();
    assert_eq!((error.outcome, error.code().as_str()), (Outcome::Unknown, "host.closed"), "{error}");
}

#[actix::test]
async fn a_provider_without_work_is_ended_and_started_again_when_there_is_some() {
    let Some(site) = provider("serve(LOOSE, lambda id, params: ok(id))\nnote('left')") else { return };
    let bench = site.with(|settings| settings.idle_stop = Some(Duration::from_millis(100))).run();
    bench.act("1").await.unwrap();
    eventually("it was told to end", || bench.file("left") == "\n").await;
    eventually("it has ended", || bench.has_fact("Ended(1)")).await;
    bench.act("2").await.unwrap();
    assert_eq!(bench.handle.snapshot().started, 2);
    bench.close().await;
}

#[actix::test]
async fn a_process_starts_with_the_first_call_or_with_the_runner_as_it_is_set() {
    let text = "note('pids', str(os.getpid()))\nserve(LOOSE, lambda id, params: ok(id))";
    let Some(site) = provider(text) else { return };
    let lazy = site.run();
    let Some(site) = provider(text) else { return };
    let eager = site.with(|settings| settings.eager = true).run();
    eventually("the eager one runs", || eager.handle.snapshot().ready == 1).await;
    assert_eq!((lazy.handle.snapshot().started, lazy.file("pids")), (0, String::new()));
    limited(lazy.handle.execute("do", members("{}"))).await.unwrap();
    assert_eq!(lazy.handle.snapshot().started, 1);
    lazy.close().await;
    eager.close().await;
}
