//! A helper that is a provider: a real broker, emulated servers, `quartermaster run`, and a Python program that lives on.

use std::collections::BTreeSet;
use std::time::Instant;

use rustix::process::Signal;

use super::helper_provider_site::Provided;
use super::prove_site::PATIENCE;
use super::support::eventually;

#[tokio::test]
async fn one_process_for_each_worker_decides_about_every_server() {
    let Some(provided) = Provided::new("serve()") else { return };
    let mut process = provided.site.run();
    process.ready().await;
    assert!(provided.noted("started").is_empty(), "nothing is started before there is a server");
    let fleet = provided.site.servers("web", 200, |_| ()).await;
    fleet.wait_until_all_provisioned(PATIENCE).await.unwrap();

    assert_eq!(provided.noted("asked").len(), 200);
    assert!((1..=2).contains(&provided.noted("started").len()), "{:?}", provided.noted("started"));
    let first = provided.noted("received")[..2].join("\n");
    assert_eq!(
        first,
        "{\"id\":1,\"method\":\"describe\",\"params\":{}}\n{\"id\":2,\"method\":\"configure\",\"params\":{\"config\":{}}}"
    );
    assert_eq!(process.metric("choria_provisioner_helper_time_count"), 200);
    assert_eq!(process.metric("choria_provisioner_helper_errors"), 0);
    let calls = "quartermaster_provider_calls_total";
    let label = "action=\"provision\",code=\"ok\",method=\"execute\",provider=\"helper\"";
    assert_eq!(process.metric_with(calls, label), 200, "{:?}", process.series());

    process.signal(Signal::TERM);
    assert_eq!(process.wait(PATIENCE).await.code(), Some(0), "{}", process.log());
    assert_eq!(provided.noted("ended").len(), provided.noted("started").len(), "each was asked to end");
    assert_eq!(provided.processes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_provider_that_crashes_is_started_again_while_servers_wait() {
    let body = "\
def crash(host, attrs):
    if host.startswith('crash') and first(host):
        print('going down with', host, file=sys.stderr, flush=True)
        os._exit(7)
    return decide(host, attrs)
serve(decide=crash)";
    let Some(provided) = Provided::new(body) else { return };
    provided.site.yaml("workers: 1");
    let mut process = provided.site.run();
    process.ready().await;
    let fleet = provided.site.servers("web", 30, |_| ()).await;
    let crashing = provided.site.servers("crash", 2, |_| ()).await;
    fleet.wait_until_all_provisioned(PATIENCE).await.unwrap();
    crashing.wait_until_all_provisioned(PATIENCE).await.unwrap();

    let log = process.log();
    assert_eq!(provided.noted("started").len(), 3, "{log}");
    assert_eq!(
        process.metric("choria_provisioner_helper_errors"),
        2,
        "only those that it had in its hands: {log}"
    );
    assert_eq!(process.metric_with("quartermaster_provider_restarts_total", "why=\"crashed\""), 2);
    for host in ["crash1.example.net", "crash2.example.net"] {
        assert!(
            log.contains(&format!("{host}: going down with {host}")),
            "with the server's other lines: {log}"
        );
        assert!(
            log.lines().any(|line| line.contains("Could not provision")
                && line.contains(host)
                && line.contains("status 7")),
            "{log}"
        );
    }
    assert_eq!(fleet.report().duplicate_configures + crashing.report().duplicate_configures, 0);
}

#[tokio::test]
async fn a_provider_that_hangs_costs_its_server_the_time_limit_and_itself_its_process() {
    let body = "\
def hang(host, attrs):
    if host.startswith('hang') and first(host):
        note('grandchild', str(subprocess.Popen(['sleep', '600']).pid))
        time.sleep(600)
    return decide(host, attrs)
serve(decide=hang)";
    let Some(provided) = Provided::new(body) else { return };
    provided.site.yaml("helper_timeout: 5s");
    let mut process = provided.site.run();
    process.ready().await;
    let fleet = provided.site.servers("web", 30, |_| ()).await;
    let hanging = provided.site.servers("hang", 3, |_| ()).await;
    fleet.wait_until_all_provisioned(PATIENCE).await.unwrap();
    hanging.wait_until_all_provisioned(PATIENCE).await.unwrap();
    let log = process.log();
    assert_eq!(process.metric("choria_provisioner_helper_errors"), 3, "{log}");
    assert_eq!(process.metric_with("quartermaster_provider_restarts_total", "why=\"replaced\""), 3);
    assert_eq!(
        log.matches("it did not finish within 5s").count() / 3,
        2,
        "the run and the cycle say so: {log}"
    );
    for pid in provided.noted("grandchild") {
        let proc = format!("/proc/{pid}");
        eventually("what it started is gone with it", || !std::path::Path::new(&proc).exists()).await;
    }
}

#[tokio::test]
async fn a_provider_that_floods_both_its_outputs_loses_no_server() {
    let body = "\
def flood(host, attrs):
    if host.startswith('loud'):
        for _ in range(20000):
            sys.stderr.write('all work and no play makes for a dull provider\\n')
        sys.stderr.flush()
    if host.startswith('stray') and first(host):
        with lock:
            sys.stdout.write('x' * 3000000 + '\\n')
            sys.stdout.flush()
    return decide(host, attrs)
serve(decide=flood)";
    let Some(provided) = Provided::new(body) else { return };
    // Not the time limit of a call is meant here.
    provided.site.yaml("helper_timeout: 60s");
    let mut process = provided.site.run();
    process.ready().await;
    let began = Instant::now();
    let loud = provided.site.servers("loud", 10, |_| ()).await;
    let stray = provided.site.servers("stray", 2, |_| ()).await;
    loud.wait_until_all_provisioned(PATIENCE).await.unwrap();
    stray.wait_until_all_provisioned(PATIENCE).await.unwrap();
    // They are counted when the second is over in which there were too many.
    eventually("lines beyond the limit are counted", || {
        process.metric("quartermaster_provider_stderr_dropped_total") > 0
    })
    .await;
    assert_eq!(process.metric("quartermaster_provider_bad_frames_total"), 2, "{}", process.log());
    let logged = process.log().matches("all work and no play").count();
    let seconds = usize::try_from(began.elapsed().as_secs()).unwrap() + 2;
    let most = 1000 * seconds * provided.noted("started").len();
    assert!(logged > 0 && logged <= most, "{logged} of at most {most}");
}

#[tokio::test]
async fn a_provider_that_declares_how_much_it_takes_is_one_process_with_as_many_calls_open() {
    let body = "\
both = threading.Barrier(8)
def together(host, attrs):
    both.wait(60)
    return decide(host, attrs)
serve(dict(SCHEMA, x_extensions={'max_in_flight': 8, 'call_context': True}), together, threads=True)";
    let Some(provided) = Provided::new(body) else { return };
    provided.site.yaml("workers: 8\nhelper_timeout: 30s");
    let mut process = provided.site.run();
    process.ready().await;
    let fleet = provided.site.servers("web", 80, |_| ()).await;
    fleet.wait_until_all_provisioned(PATIENCE).await.unwrap();
    assert_eq!(provided.noted("started").len(), 1);
    let received = provided.noted("received");
    let keys: BTreeSet<&str> = received
        .iter()
        .filter_map(|line| Some(line.split_once("\"key\":\"")?.1.split_once('"')?.0))
        .collect();
    assert_eq!(keys.len(), 80, "each call says which server it is about: {}", received[2]);
}

#[tokio::test]
async fn what_passes_is_written_down_without_secrets_and_can_be_played_again() {
    let body = "\
def quiet(host, attrs):
    return {'outputs': {'configuration': dict(CONFIGURATION, identity=host, **{'site.password': 'hunter2'})}}
serve(decide=quiet)";
    let Some(provided) = Provided::new(body) else { return };
    let site = &provided.site;
    let trace = site.path("trace");
    let mut process = site.run_with(&["--trace-wire", trace.to_str().unwrap()]);
    process.ready().await;
    let fleet = site.servers("web", 20, |_| ()).await;
    fleet.wait_until_all_provisioned(PATIENCE).await.unwrap();
    process.signal(Signal::TERM);
    assert_eq!(process.wait(PATIENCE).await.code(), Some(0), "{}", process.log());
    drop(fleet);
    let text = std::fs::read_to_string(&trace).unwrap();
    assert_eq!(text.matches("\\\"method\\\":\\\"execute\\\"").count(), 20);
    assert!(!text.contains("hunter2"), "{text}");
    let token = std::fs::read_to_string(&site.files.config).unwrap();
    let token =
        token.lines().find_map(|line| line.strip_prefix("token: ")).unwrap().trim_matches('"').to_owned();
    assert!(token.len() > 4 && !text.contains(&token), "{token}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&trace).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);

    let replay = format!("{} provider replay {}", env!("CARGO_BIN_EXE_quartermaster"), trace.display());
    site.yaml(&format!("helper: {replay}"));
    let mut process = site.run();
    process.ready().await;
    let fleet = site.servers("web", 20, |_| ()).await;
    let provisioned = fleet.wait_until_all_provisioned(PATIENCE).await;
    assert!(provisioned.is_ok(), "{}\n{text}", process.log());
    assert_eq!(provided.noted("asked").len(), 20, "the provider itself was not asked again");
    assert_eq!(process.metric("choria_provisioner_helper_errors"), 0, "{}", process.log());
}
