//! When every actor panics in the middle of its work, neither the panics nor the recovery show a secret.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use quartermaster::app::{App, RunOptions};
use quartermaster::config::{LogConfig, LogLevel, LogTarget};
use quartermaster::emulate::{Fleet, FleetSettings, Network, PrepareSettings, prepare};
use quartermaster::telemetry::{self, LogFormat};
use quartermaster_actors::fleet::ForceHosts;
use quartermaster_actors::supervise::{Ending, Force};
use rustix::process::{Pid, Signal, kill_process};

use super::canary_forms::Canaries;
use super::canary_run::{POLICY, SETTING, TOKEN, decision, write_helper};
use super::prove_site::{PATIENCE, Site};
use super::support::{Authority, BrokerOptions, eventually, replace};

const CHILD_FILES: &str = "QM_CANARY_FILES";
/// What a forced panic says; the log's own line repeats it.
const FORCED: &str = "A part of the program failed unexpectedly: forced by a fail point";

/// Not a test by itself: the next one runs it in a process of its own.
#[test]
fn process_whose_actors_panic() {
    let Ok(files) = std::env::var(CHILD_FILES).map(PathBuf::from) else { return };
    let log = LogConfig { target: LogTarget::Stderr, level: LogLevel::Debug };
    telemetry::init(&log, Some(LogFormat::Json)).unwrap();
    let mut config = Site::inside_files(&files.join("provisioner.yaml"), &files.join("choria.cfg"));
    config.interval = Duration::from_secs(3);
    (config.retry.first, config.retry.cap) = (Duration::from_secs(1), Duration::from_secs(2));
    let exit = actix_rt::System::new().block_on(async move {
        let app = App::start(&Arc::new(config), &RunOptions::default()).unwrap();
        let (at, mut numbers) = (app.positions().clone(), app.fleet().subscribe());
        actix_rt::spawn(async move {
            for ending in [Ending::Panic, Ending::PanicInFuture] {
                numbers.wait_for(|now| now.counts.in_flight >= 2).await.unwrap();
                at.fleet.try_send(ForceHosts { ending, most: 2 }).unwrap();
                at.vault.try_send(Force(ending)).unwrap();
                at.helper.try_send(Force(ending)).unwrap();
                at.link.try_send(Force(ending)).unwrap();
                at.metrics.try_send(Force(ending)).unwrap();
                at.discovery.try_send(Force(ending)).unwrap();
                at.fleet.try_send(Force(ending)).unwrap();
                at.control.try_send(Force(ending)).unwrap();
                tokio::time::sleep(Duration::from_secs(3)).await;
            }
        });
        app.serve().await
    });
    std::process::exit(i32::from(exit.code()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_panic_shows_a_secret() {
    let Some(broker) = BrokerOptions::new().start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let settings = PrepareSettings {
        broker: format!("127.0.0.1:{}", broker.port()),
        token: TOKEN.to_owned(),
        workers: Some(2),
        ..PrepareSettings::default()
    };
    let files = prepare(dir.path(), &settings).unwrap().plain;
    let key = Authority::new("panic").client_rsa("node").key;
    write_helper(&files, &key);
    // Slow enough for servers to wait while things panic.
    replace(&files.helper, "request=$(cat)", "request=$(cat); sleep 0.3");
    std::fs::write(files.dir.join("answers/default"), decision(&key).to_string()).unwrap();

    let mut canaries = Canaries::default();
    canaries.text("the provisioning token", TOKEN);
    canaries.text("a setting of the helper", SETTING);
    canaries.text("a policy of the helper", POLICY);
    canaries.text("the signing seed", &std::fs::read_to_string(files.dir.join("signer.seed")).unwrap());
    canaries.text("the header of a token", "eyJhbGciOi");
    canaries.key("the helper's key", &key);

    let mut servers = FleetSettings::new(Network::load(&files.dir).unwrap(), broker.url(), 60);
    servers.identity_format = "panic{}.example.net".to_owned();
    servers.tls = false;
    servers.restart_delay = Some(Duration::from_millis(50));
    servers.ramp = Duration::from_secs(6);
    let fleet = Fleet::start(servers).await.unwrap();
    let log = files.dir.join("stderr");
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "canary_panic::process_whose_actors_panic", "--nocapture"])
        .env(CHILD_FILES, &files.dir)
        .env("RUST_BACKTRACE", "full")
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let mut child = Held(child);
    let text = || std::fs::read_to_string(&log).unwrap();
    fleet.wait_until_all_provisioned(PATIENCE).await.unwrap_or_else(|error| panic!("{error}\n{}", text()));
    eventually("every actor has panicked", || text().matches(FORCED).count() >= 14).await;
    kill_process(Pid::from_child(&child.0), Signal::TERM).unwrap();
    let status = child.0.wait().unwrap();
    assert_eq!(status.code(), Some(0), "{}", text());
    canaries.assert_unseen(&[("the log".to_owned(), text().into_bytes())].into());
}

/// Ended with the test, however that ends.
struct Held(Child);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
