//! The web page in a real browser, on a running provisioner with a fleet: it changes by itself, keeps to its own origin, finds
//! hosts and their history, and lets an admin pause, resume and retry; on a phone, in the dark, without scripts, in a terminal.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use quartermaster::emulate::{
    Fleet, FleetHandle, FleetSettings, Network, NetworkFiles, PrepareSettings, prepare,
};
use serde_json::{Value, json};

use super::support::browser::{Browser, browsers};
use super::support::{Broker, BrokerOptions, Daemon, append, eventually, replace};

const TOKEN: &str = "a-token-that-only-the-test-knows";

/// What the helper says of servers that it refuses.
const REFUSED: &str = "no record in the asset database";

struct Watched {
    _broker: Broker,
    daemon: Daemon,
    files: NetworkFiles,
    url: String,
    fleet_url: String,
    _dir: tempfile::TempDir,
}

impl Watched {
    async fn start(helper_seconds: &str) -> Option<Self> {
        let broker = BrokerOptions::new().start()?;
        let dir = tempfile::tempdir().unwrap();
        let settings = PrepareSettings {
            broker: format!("127.0.0.1:{}", broker.port()),
            seed: Some(9),
            workers: Some(4),
            ..PrepareSettings::default()
        };
        let files = prepare(dir.path(), &settings).unwrap().plain;
        picky(&files.helper, helper_seconds);
        // By a name that is the same on every machine, since pictures show it; the daemon's working folder is this one.
        replace(&files.config, files.helper.to_str().unwrap(), "./helper.sh");
        let token = files.dir.join("admin.token");
        std::fs::write(&token, TOKEN).unwrap();
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
        replace(&files.config, "site: emulated", "site: lab");
        let web = format!(
            "listen: 127.0.0.1:0\nin_flight: 24\nretry:\n  first: 10m\nweb:\n  admin_token_file: {}\n",
            token.display()
        );
        append(&files.config, &web);
        let mut daemon = Daemon::start(&files);
        daemon.listens().await;
        let url = daemon.web_url();
        let fleet_url = broker.url();
        Some(Self { _broker: broker, daemon, files, url, fleet_url, _dir: dir })
    }

    async fn fleet(&self, servers: usize, ramp: Duration) -> FleetHandle {
        let network = Network::load(&self.files.dir).unwrap();
        let mut settings = FleetSettings::new(network, self.fleet_url.clone(), servers);
        settings.tls = false;
        settings.ramp = ramp;
        settings.restart_delay = Some(Duration::from_millis(50));
        Fleet::start(settings).await.unwrap()
    }

    fn status(&self) -> Value {
        serde_json::from_str(&self.daemon.get("/api/v1/status").1).unwrap()
    }

    fn history(&self, host: &str) -> Vec<Value> {
        let (_, report) = self.daemon.get(&format!("/api/v1/hosts/{host}"));
        let report: Value = serde_json::from_str(&report).unwrap();
        report["history"].as_array().cloned().unwrap_or_default()
    }

    fn page(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }
}

/// Makes the helper refuse a few servers, node3 among them, and say why in three lines. Others take it this long.
fn picky(helper: &Path, seconds: &str) {
    let kind = helper.with_extension("kind");
    std::fs::rename(helper, &kind).unwrap();
    let script = format!(
        "#!/bin/sh\ninput=$(cat)\ncase \"$input\" in\n*'\"node3.example.net\"'*|*'\"node3'?'3.example.net\"'*)\n  \
         echo 'asking assets.example.net' >&2\n  echo 'HTTP 404 in 12 ms' >&2\n  echo '{REFUSED}' >&2\n  exit 1 ;;\nesac\n\
         sleep {seconds}\nprintf '%s' \"$input\" | {}\n",
        kind.display()
    );
    std::fs::write(helper, script).unwrap();
    std::fs::set_permissions(helper, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[actix::test]
async fn the_page_lives_finds_hosts_and_obeys_an_admin() {
    let Some(browsers) = browsers("the web page in a browser") else { return };
    let Some(watched) = Watched::start("0").await else { return };
    let browser = Browser::start(browsers).await;

    // It changes by itself.
    browser.go(&watched.url).await;
    browser.value("window.stays = true").await;
    browser.until("#live", "live").await;
    let fleet = watched.fleet(12, Duration::ZERO).await;
    browser.until("#failures", "node3.example.net").await;
    browser.until("#failures", REFUSED).await;
    browser.until("#numbers", "Provisioned\n11 in all").await;
    assert_eq!(browser.value("window.stays").await, json!(true), "without being loaded anew");
    let title = browser.driver.title().await.unwrap();
    assert!(title.starts_with("Working · "), "{title}");

    // The helper's words unfold, and stay unfolded when the part changes.
    browser.click("#failures summary").await;
    browser.until("#failures pre", "HTTP 404 in 12 ms").await;
    browser.value("document.activeElement.blur()").await;
    browser.value("(document.querySelector('#failures pre').id = 'old')").await;
    let fresh = "document.querySelector('#failures pre') && document.querySelector('#failures pre').id !== 'old' \
                 && document.querySelector('#failures details').open";
    let mut unfolded = false;
    for _ in 0..600 {
        unfolded = browser.value(fresh).await == json!(true);
        if unfolded {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(unfolded, "the part was replaced and its words stayed unfolded");

    // Search, and a host's history.
    browser.enter("#find", "node3").await;
    browser.click(".search button").await;
    browser.until(".found", "1 host").await;
    browser.click("table.hosts a.host").await;
    browser.until("h1", "node3.example.net").await;
    browser.until(".attempt", "failed").await;
    browser.until(".attempt", "helper").await;
    let seen = browser.text("main").await;
    assert!(seen.contains("Cooling") && seen.contains(REFUSED) && !seen.contains("Retry now"), "{seen}");
    assert_eq!(browser.complaints().await, Vec::<String>::new());

    // A wrong token, then the right one.
    browser.go(&watched.page("/login")).await;
    log_in(&browser, "not-the-token-of-this-test").await;
    browser.until("[role=alert]", "the token is wrong").await;
    browser.enter("#token", TOKEN).await;
    browser.click("main button").await;
    browser.until(".person", "kim@ops").await;
    assert!(!browser.driver.current_url().await.unwrap().as_str().contains("token"));
    let visible = browser.value("document.cookie").await;
    assert_eq!(visible, json!(""), "no script can read the cookie");

    // Pause and resume.
    browser.enter("#why", "broker <upgrade>").await;
    browser.click("button[value=pause]").await;
    browser.until("#state", "Paused").await;
    browser.until("#notices", "Paused by kim@ops").await;
    browser.until("#notices", "broker <upgrade>").await;
    assert_eq!(watched.status()["run_state"]["paused"]["who"], "kim@ops");
    browser.click("button[value=resume]").await;
    browser.until("#state", "Working").await;
    assert_eq!(watched.status()["run_state"]["paused"], Value::Null);

    // Retry, which does not wait for the ten minutes of its first delay.
    let before = watched.history("node3.example.net").len();
    browser.click("#failures button[name=retry]").await;
    eventually("node3 is tried again", || watched.history("node3.example.net").len() > before).await;
    browser.go(&watched.page("/hosts/node3.example.net")).await;
    browser.enter("#why", "the record is there now").await;
    browser.click("button[name=retry]").await;
    browser.until(".notice.good", "tried again").await;
    let log = watched.daemon.stderr();
    assert!(
        log.contains("the record is there now") && !log.contains(TOKEN),
        "logged with who and why, never with the token"
    );

    browser.click(".person button").await;
    browser.until("a.person", "Log in").await;

    // Nothing was asked of anybody else, and nothing was refused but the wrong token.
    let foreign: Vec<_> =
        browser.requests().await.into_iter().filter(|url| !url.starts_with(&watched.url)).collect();
    assert_eq!(foreign, Vec::<String>::new());
    let complaints = browser.complaints().await;
    assert!(complaints.iter().all(|line| line.contains("/login") && line.contains("401")), "{complaints:#?}");

    browser.quit().await;
    fleet.stop().await;
}

async fn log_in(browser: &Browser, token: &str) {
    browser.enter("#who", "kim@ops").await;
    browser.enter("#token", token).await;
    browser.click("main button").await;
}

#[actix::test]
async fn the_page_fits_a_phone_and_works_without_scripts_and_in_a_terminal() {
    let Some(browsers) = browsers("the web page on a phone and in a terminal") else { return };
    let Some(watched) = Watched::start("0").await else { return };
    let fleet = watched.fleet(12, Duration::ZERO).await;
    eventually("all but one are provisioned", || watched.status()["fleet"]["provisioned_total"] == 11).await;
    let browser = Browser::start(browsers).await;

    let pages = ["/", "/hosts", "/hosts/node3.example.net", "/login", "/hosts?q=nobody"];
    for scheme in ["light", "dark"] {
        browser.looks(360, 740, scheme).await;
        for page in pages {
            browser.go(&watched.page(page)).await;
            let wide = browser.value("document.documentElement.scrollWidth").await;
            assert!(wide.as_i64().unwrap() <= 360, "{page} is {wide} wide in {scheme}");
        }
    }
    let dark = browser.value("getComputedStyle(document.body).backgroundColor").await;
    browser.looks(360, 740, "light").await;
    assert_ne!(browser.value("getComputedStyle(document.body).backgroundColor").await, dark);

    // Without scripts: forms are plain forms, and one refreshes by hand.
    browser.cdp("Emulation.setScriptExecutionDisabled", json!({"value": true})).await;
    browser.go(&watched.page("/login")).await;
    log_in(&browser, TOKEN).await;
    browser.until(".person", "kim@ops").await;
    browser.enter("#why", "a look").await;
    browser.click("button[value=pause]").await;
    browser.until("#state", "Paused").await;
    browser.click("button[value=resume]").await;
    browser.until("#state", "Working").await;
    browser.click("#refresh").await;
    browser.until("#failures", REFUSED).await;
    browser.quit().await;

    let terminal = |page: &str| {
        let mut command = Command::new(&browsers.w3m);
        command.args(["-dump", "-cols", "100", "-o", "use_proxy=0"]).arg(watched.page(page));
        let home = watched.files.dir.join("home");
        let run = command.env("HOME", home).output().unwrap();
        String::from_utf8(run.stdout).unwrap()
    };
    let front = terminal("/");
    // Side by side in a table, so either may come first.
    for failure in ["node3.example.net", REFUSED] {
        let order = ["Working", "Rate", "Queue", "Hosts by state", "Failures", failure, "Broker", "Refresh"];
        let place = |words: &&str| front.find(*words).unwrap_or_else(|| panic!("{words}: {front}"));
        assert!(order.iter().map(place).is_sorted(), "{front}");
    }
    assert!(terminal("/hosts/node3.example.net").contains("Attempt 1"));
    assert!(terminal("/hosts?q=node3").contains("1 host"));
    fleet.stop().await;
}

#[actix::test]
async fn an_admin_is_obeyed_over_tls() {
    let Some(browsers) = browsers("the web page over TLS") else { return };
    let Some(broker) = BrokerOptions::new().start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let broker_address = format!("127.0.0.1:{}", broker.port());
    let settings = PrepareSettings { broker: broker_address, seed: Some(9), ..PrepareSettings::default() };
    let files = prepare(dir.path(), &settings).unwrap().plain;
    let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = issued.signing_key.serialize_pem();
    for (name, text) in [("web.pem", issued.cert.pem()), ("web.key", key), ("admin", TOKEN.to_owned())] {
        std::fs::write(files.dir.join(name), text).unwrap();
        std::fs::set_permissions(files.dir.join(name), std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let web = "listen: 127.0.0.1:0\nlisten_tls: {certificate: web.pem, key: web.key}\nweb: {admin_token_file: admin}\n";
    append(&files.config, web);
    let mut daemon = Daemon::start(&files);
    daemon.listens().await;
    let browser = Browser::start(browsers).await;
    browser.go(&format!("https://localhost:{}/login", daemon.port())).await;
    log_in(&browser, TOKEN).await;
    browser.until(".person", "kim@ops").await;
    browser.enter("#why", "a look").await;
    browser.click("button[value=pause]").await;
    browser.until("#state", "Paused").await;
    browser.until("#live", "live").await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
    browser.quit().await;
}

/// Not a test of anything: draws the pictures of the docs, into the folder that `QM_PICTURES` names.
#[actix::test]
async fn pictures_for_the_docs_are_drawn_on_request() {
    let Ok(folder) = std::env::var("QM_PICTURES") else { return };
    let Some(browsers) = browsers("the pictures of the docs") else { return };
    let Some(watched) = Watched::start("0.3").await else { return };
    let fleet = watched.fleet(1000, Duration::from_secs(70)).await;
    let browser = Browser::start(browsers).await;
    browser.go(&watched.page("/login")).await;
    log_in(&browser, TOKEN).await;
    tokio::time::sleep(Duration::from_secs(64)).await;
    let draw = async |name: &str, page: &str, size: (u32, u32), scheme: &str| {
        browser.looks(size.0, size.1, scheme).await;
        browser.go(&watched.page(page)).await;
        browser.until("#live", "live").await;
        std::fs::write(Path::new(&folder).join(name), browser.picture().await).unwrap();
    };
    draw("fleet.png", "/", (1180, 860), "light").await;
    draw("fleet-dark.png", "/", (1180, 860), "dark").await;
    draw("phone.png", "/", (360, 740), "dark").await;
    draw("host.png", "/hosts/node3.example.net", (1180, 760), "light").await;
    browser.quit().await;
    fleet.stop().await;
}
