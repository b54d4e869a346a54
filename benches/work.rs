//! What decides and what starts: a host's plan, the roster with fifty thousand hosts, and helpers by our child machinery beside
//! the bare `posix_spawn` of the same program: `cargo bench --bench work`. Figures for comparing two states of the code on one
//! machine; nothing asserts them.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "made-up work that does not go as it should is the end of the benchmark"
)]

use std::hint::black_box;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use quartermaster_actors::child::{Launch, Orphans, RunLimits, execute};
use quartermaster_actors::fleet::{RetryPolicy, Roster, RosterSettings, Sighting};
use quartermaster_actors::host::{At, Effect, Ending, Features, Input, Plan, PlanSettings, Step};
use quartermaster_proto::choria::identity::Identity;
use quartermaster_proto::helper::decode_reply;
use secrecy::SecretString;

const HOSTS: usize = 50_000;
const INVENTORY: &str = r#"{"action":"inventory","statuscode":0,"statusmsg":"OK","data":{"agents":["rpcutil"],"facts":{"role":"web","cores":2},"version":"0.29.4","upgradable":false}}"#;
const DONE: &str = r#"{"action":"configure","statuscode":0,"statusmsg":"OK","data":{"message":"done"}}"#;
const DECISION: &str = r#"{"defer":false,"configuration":{"identity":"web1.example.net","loglevel":"info","plugin.choria.server.provision":"false"}}"#;

/// One cycle without keys and tokens: their cost is that of the signatures, which `codec` measures.
fn cycle(settings: &Arc<PlanSettings>, identity: &Identity) -> u32 {
    let mut plan = Plan::new(
        Arc::clone(settings),
        identity.clone(),
        "f1b90c7379f64f9fa59ba0c62730bf5d".to_owned(),
        None,
    );
    let at =
        At { now: Instant::now(), luck: 0.5, paused: false, barred: false, conflict: false, late_keys: 0 };
    let (mut input, mut steps) = (Input::Begin, 0);
    loop {
        steps += 1;
        input = match plan.handle(input, at) {
            Effect::Call { step: Step::Inventory, .. } => Input::Replied(Ok(INVENTORY.into())),
            Effect::Call { .. } => Input::Replied(Ok(DONE.into())),
            Effect::RunHelper { input } => {
                black_box(input);
                Input::Decided(Ok(Box::new(decode_reply(DECISION.as_bytes()).unwrap())))
            }
            Effect::Finish(Ending::Provisioned) => return steps,
            other => panic!("{other:?}"),
        };
    }
}

fn plan(criterion: &mut Criterion) {
    let features = Features { pki: false, jwt: false, ed25519: false, upgrades: false, steps: false };
    let settings = Arc::new(PlanSettings {
        steps: quartermaster_actors::host::SiteSteps::default(),
        features,
        token: SecretString::from("s3cret"),
        deny: Vec::new(),
        upgrades_repository: None,
        upgrades_optional: false,
    });
    let identity = Identity::parse("web1.example.net").unwrap();
    criterion.bench_function("plan/a whole cycle without keys", |bench| {
        bench.iter(|| cycle(&settings, &identity));
    });
}

fn settings() -> RosterSettings {
    let minute = Duration::from_mins(1);
    RosterSettings {
        queue: HOSTS,
        in_flight: 128,
        silent: 4096,
        interval: minute,
        hold: minute,
        busy: 2 * minute,
        retry: RetryPolicy::new(minute, 15 * minute, None).unwrap(),
    }
}

fn full(identities: &[Identity], now: Instant) -> Roster {
    let mut roster = Roster::new(settings());
    for identity in identities {
        roster.notice(identity, Sighting::Answered, now, 0.5);
    }
    roster
}

fn roster(criterion: &mut Criterion) {
    let identities: Vec<Identity> =
        (0..HOSTS).map(|n| Identity::parse(&format!("node{n}.example.net")).unwrap()).collect();
    let now = Instant::now();
    let mut group = criterion.benchmark_group("roster of 50,000");
    group.sample_size(10);
    group.throughput(Throughput::Elements(HOSTS as u64));
    group.bench_function("every host is noticed", |bench| bench.iter(|| full(black_box(&identities), now)));
    group.bench_function("every host is noticed again", |bench| {
        bench.iter_batched_ref(
            || full(&identities, now),
            |roster| {
                for identity in &identities {
                    roster.notice(identity, Sighting::Answered, now, 0.5);
                }
            },
            BatchSize::LargeInput,
        );
    });
    group.bench_function("every host is admitted and provisioned", |bench| {
        bench.iter_batched_ref(
            || full(&identities, now),
            |roster| {
                while let Some(admission) = roster.admit(now) {
                    roster.finish(admission.cycle, Ending::Provisioned, now, 0.5);
                }
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

fn spawns(criterion: &mut Criterion) {
    let script = "cat >/dev/null; echo '{\"defer\":true,\"msg\":\"not yet\"}'";
    let mut group = criterion.benchmark_group("helper process");
    group.sample_size(20);
    // The standard library starts processes by posix_spawn.
    group.bench_function("bare posix_spawn", |bench| {
        bench.iter(|| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", script]).stdin(Stdio::null()).stderr(Stdio::null());
            black_box(command.output().unwrap())
        });
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let launch = Launch {
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
        environment: std::env::vars_os().filter(|(name, _)| name == "PATH").collect(),
        directory: None,
    };
    let limits = RunLimits {
        timeout: Duration::from_secs(10),
        grace: Duration::from_secs(1),
        pipe_grace: Duration::from_millis(200),
        max_stdout: 1 << 20,
    };
    let orphans = Orphans::unadopted();
    for at_once in [1, 4_usize] {
        group.throughput(Throughput::Elements(at_once as u64));
        group.bench_with_input(BenchmarkId::new("ours, at once", at_once), &at_once, |bench, at_once| {
            bench.iter(|| {
                runtime.block_on(async {
                    let run =
                        || execute(&launch, &limits, &orphans, b"{\"identity\":\"x\"}", |_| true, |_| {});
                    let ran = futures::future::join_all((0..*at_once).map(|_| run())).await;
                    for run in ran {
                        assert!(run.unwrap().status.is_some_and(|status| status.success()));
                    }
                });
            });
        });
    }
    group.finish();
}

criterion_group!(work, plan, roster, spawns);
criterion_main!(work);
