//! Crashes and what follows: calls of unknown end, new processes, giving up; several processes behind one name.

use std::num::NonZeroUsize;
use std::time::Duration;

use futures::future::join_all;
use quartermaster_actors::provider::{Call, Happening, Outcome};

use super::support::{Bench, eventually, json, limited, members, provider, shown};

#[actix::test]
async fn b11_a_crash_leaves_its_call_unknown_and_the_next_one_meets_a_new_process() {
    let text = r#"
def execute(id, params):
    if params["attrs"]["x"] == "crash":
        sys.stderr.write("out of cheese\n"); sys.stderr.flush(); os._exit(7)
    ok(id)
serve(LOOSE, execute)
"#;
    let Some(site) = provider(text) else { return };
    let bench = site.run();
    let (crash, next) = tokio::join!(bench.act("\"crash\""), bench.act("1"));
    let error = crash.unwrap_err();
    assert_eq!(shown(&error), "host.exited Unknown: provider `dns`: exited with status 7 during `do`");
    assert_eq!(error.stderr, ["out of cheese"]);
    next.unwrap();
    bench.close().await;
    let methods: Vec<_> =
        bench.received().iter().map(|frame| frame.split('"').nth(5).unwrap().to_owned()).collect();
    assert_eq!(methods, ["describe", "configure", "execute", "describe", "configure", "execute", "shutdown"]);
}

#[actix::test]
async fn b12_five_crashes_are_enough() {
    let Some(site) = provider("note('starts'); sys.exit(1)") else { return };
    let bench = site.run();
    let error = bench.act("1").await.unwrap_err();
    assert_eq!((error.outcome, error.code().as_str()), (Outcome::NotSent, "host.exited"));
    assert!(error.message().contains("given up after 5 crashes within 600s"), "{error}");
    let again = bench.act("2").await.unwrap_err();
    assert_eq!(again.message(), error.message(), "and the next ones fail at once");
    assert_eq!((bench.file("starts").lines().count(), bench.handle.snapshot().started), (5, 5));
    assert!(bench.handle.snapshot().failure.is_some());
    bench.close().await;
}

#[actix::test]
async fn a_restarted_provider_must_declare_what_it_declared_before() {
    let text = r#"
note("starts")
schema = dict(LOOSE, version=str(os.path.getsize(os.path.join(here, "starts"))))
serve(schema, lambda id, params: os._exit(1))
"#;
    let Some(site) = provider(text) else { return };
    let bench = site.run();
    assert_eq!(bench.act("1").await.unwrap_err().outcome, Outcome::Unknown);
    let error = bench.act("2").await.unwrap_err();
    assert_eq!((error.outcome, error.code().as_str()), (Outcome::NotSent, "host.schema_changed"));
    assert!(error.message().contains("version"), "{error}");
    bench.close().await;
}

#[actix::test]
async fn several_processes_serve_one_name() {
    let text = r#"
def execute(id, params):
    note("open")
    while open(os.path.join(here, "open")).read().count("\n") < 3: time.sleep(0.01)
    ok(id, {"outputs": {"pid": os.getpid()}})
serve(LOOSE, execute)
"#;
    let Some(site) = provider(text) else { return };
    let bench = site.with(|settings| settings.instances = NonZeroUsize::new(3).unwrap()).run();
    let ends = join_all((0..3).map(|number: i32| {
        let bench = &bench;
        async move { json(&bench.act(&number.to_string()).await.unwrap().outputs) }
    }))
    .await;
    let mut pids = ends.clone();
    pids.sort();
    pids.dedup();
    assert_eq!(pids.len(), 3, "each open at the same time on a process of its own: {ends:?}");
    bench.close().await;
}

#[actix::test]
async fn an_exclusive_action_waits_for_silence() {
    let text = r#"
schema = declaring(max_in_flight=8)
schema["actions"] = {"do": {"attrs": {"x": {"type": "any"}}, "outputs": {"type": "any"}},
                     "alone": {"attrs": {"x": {"type": "any"}}, "x_exclusive": True}}
busy = []
def work(id, name):
    busy.append(name)
    time.sleep(0.2)
    if "alone" in busy and len(busy) > 1: note("crowded", str(busy))
    busy.remove(name)
    ok(id)
def execute(id, params): threading.Thread(target=work, args=(id, params["action"])).start()
serve(schema, execute)
"#;
    let Some(site) = provider(text) else { return };
    let bench = site.run();
    let alone = |bench: &Bench| {
        let handle = bench.handle.clone();
        async move { limited(handle.execute("alone", super::support::members("{}"))).await }
    };
    let ends = tokio::join!(
        bench.act("1"),
        bench.act("2"),
        alone(&bench),
        bench.act("3"),
        alone(&bench),
        bench.act("4")
    );
    assert!(
        ends.0.is_ok()
            && ends.1.is_ok()
            && ends.2.is_ok()
            && ends.3.is_ok()
            && ends.4.is_ok()
            && ends.5.is_ok()
    );
    assert_eq!(bench.file("crowded"), "");
    bench.close().await;
}

#[actix::test]
async fn a_call_that_was_surely_not_sent_is_made_on_the_next_process() {
    let text = r#"
note("starts")
first = open(os.path.join(here, "starts")).read().count("\n") == 1
def execute(id, params):
    if first: os.close(0); time.sleep(0.5); os._exit(1)
    ok(id)
serve(LOOSE, execute)
"#;
    let Some(site) = provider(text) else { return };
    let bench = site.run();
    let (first, second) = tokio::join!(bench.act("1"), bench.act("2"));
    assert_eq!(first.unwrap_err().outcome, Outcome::Unknown);
    second.unwrap();
    bench.close().await;
}

#[actix::test]
async fn a_missing_program_is_told_with_what_to_do_about_it() {
    let Some(site) = provider("") else { return };
    let bench = site
        .with(|settings| {
            settings.program = settings.program.with_file_name("missing");
            settings.install_hint = Some("get it from the package dns-provider".to_owned());
            settings.restart.limit = 1;
        })
        .run();
    let error = bench.act("1").await.unwrap_err();
    assert_eq!((error.outcome, error.code().as_str()), (Outcome::NotSent, "host.spawn_failed"));
    assert!(error.message().contains("get it from the package dns-provider"), "{error}");
}

#[actix::test]
async fn a_forced_end_in_the_middle_restarts_nothing_during_the_shutdown() {
    let Some(site) = provider("serve(LOOSE, lambda id, params: os._exit(1))") else { return };
    let bench = site.with(|settings| settings.restart.min = Duration::from_secs(20)).run();
    assert!(bench.act("1").await.is_err());
    eventually("a restart is planned", || bench.has_fact("Crashed")).await;
    bench.close().await;
    assert_eq!(bench.handle.snapshot().started, 1);
}

#[actix::test]
async fn as_many_processes_as_it_takes_have_so_many_calls_open() {
    let text = r#"
def wait(id):
    note("pids", str(os.getpid()))
    open_now = lambda: len(open(os.path.join(here, "pids")).read().split())
    while open_now() < 6: time.sleep(0.01)
    ok(id)
def execute(id, params): threading.Thread(target=wait, args=(id,)).start()
serve(declaring(max_in_flight=4), execute)
"#;
    let Some(site) = provider(text) else { return };
    let bench = site.with(|settings| settings.at_once = NonZeroUsize::new(6)).run();
    let ends = join_all((0..6).map(|number: i32| {
        let bench = &bench;
        async move { bench.act(&number.to_string()).await.is_ok() }
    }))
    .await;
    assert!(ends.into_iter().all(|ok| ok));
    assert_eq!(bench.handle.snapshot().started, 2, "each takes four");
    bench.close().await;
}

#[actix::test]
async fn what_is_said_while_one_call_is_open_is_about_that_one() {
    let text = r#"
def execute(id, params):
    sys.stderr.write("alone\n"); sys.stderr.flush()
    sys.stderr.write('{"level":"warn","msg":"named","host":"db1"}\n'); sys.stderr.flush()
    ok(id)
serve(LOOSE, execute)
"#;
    let Some(site) = provider(text) else { return };
    let bench = site.run();
    for host in ["web1", "web2"] {
        let about = Some(host.into());
        let call = Call { about, ..Call::execute("do", members("{}")) };
        limited(bench.handle.call(call, None)).await.unwrap();
    }
    bench.close().await;
    let said: Vec<String> = bench
        .facts
        .lock()
        .unwrap()
        .iter()
        .filter_map(|fact| match &fact.what {
            Happening::Said(_, said) => {
                Some(format!("{} {}", said.about.as_deref().unwrap_or("-"), said.text))
            }
            _ => None,
        })
        .collect();
    assert_eq!(said, ["web1 alone", "db1 named", "web2 alone", "db1 named"]);
}
