//! A real browser without a window, driven by its own driver; both end with the test.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::{Value, json};
use tempfile::TempDir;
use thirtyfour::{
    By, CapabilitiesHelper as _, ChromiumLikeCapabilities as _, DesiredCapabilities, LoggingPrefsLogLevel,
    WebDriver,
};

use super::skip;

/// How long the page may take for what a test waits for; far longer than it does on an idle machine.
const LIMIT: Duration = Duration::from_mins(1);

/// The browsers of this machine.
pub struct Browsers {
    chromium: PathBuf,
    chromedriver: PathBuf,
    /// A browser for terminals.
    pub w3m: PathBuf,
}

/// The browsers, found or fetched once per test run. Says so in one line where there are none.
pub fn browsers(test: &str) -> Option<&'static Browsers> {
    static FOUND: OnceLock<Result<Browsers, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/get-chromium");
        let run = Command::new(&tool).stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
        let printed = String::from_utf8_lossy(&run.stdout).into_owned();
        if let [chromium, chromedriver, w3m] =
            printed.lines().map(PathBuf::from).collect::<Vec<_>>().as_slice()
        {
            let [chromium, chromedriver, w3m] = [chromium, chromedriver, w3m].map(Clone::clone);
            return Ok(Browsers { chromium, chromedriver, w3m });
        }
        let why = String::from_utf8_lossy(&run.stderr);
        Err(format!("no chromium: {}", why.lines().last().unwrap_or("tools/get-chromium failed")))
    });
    match found {
        Ok(browsers) => Some(browsers),
        Err(why) => {
            skip(test, why);
            None
        }
    }
}

/// One browser with one window.
pub struct Browser {
    pub driver: WebDriver,
    chromedriver: Child,
    chromium: Option<Pid>,
    _profile: TempDir,
}

impl Browser {
    /// Starts both.
    pub async fn start(browsers: &Browsers) -> Self {
        // The driver's client of HTTP is built to find one for the whole process, though it speaks to loopback in clear text.
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
        let profile = tempfile::tempdir().unwrap();
        let mut chromedriver = Command::new(&browsers.chromedriver)
            .args(["--port=0", "--allowed-ips=127.0.0.1"])
            // What the browser leaves behind goes with the profile.
            .env("TMPDIR", profile.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let output = BufReader::new(chromedriver.stdout.take().unwrap());
        let port = tokio::task::spawn_blocking(move || {
            let mut lines = output.lines().map_while(Result::ok);
            let said = lines.find_map(|line| Some(line.split_once("successfully on port ")?.1.to_owned()));
            // Read on, so that it never writes into a closed pipe.
            std::thread::spawn(move || lines.for_each(drop));
            said.unwrap().trim_end_matches('.').parse::<u16>().unwrap()
        })
        .await
        .unwrap();
        let mut wanted = DesiredCapabilities::chrome();
        wanted.set_binary(browsers.chromium.to_str().unwrap()).unwrap();
        for argument in [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--no-first-run",
            "--hide-scrollbars",
            "--window-size=1280,900",
        ] {
            wanted.add_arg(argument).unwrap();
        }
        wanted.add_arg(&format!("--user-data-dir={}", profile.path().display())).unwrap();
        // The authority of a test's certificate is known to nobody.
        wanted.accept_insecure_certs(true).unwrap();
        for log in ["browser", "performance"] {
            wanted.set_logging_prefs(log, LoggingPrefsLogLevel::All).unwrap();
        }
        let driver = WebDriver::new(format!("http://127.0.0.1:{port}"), wanted).await.unwrap();
        let mut browser = Self { driver, chromedriver, chromium: None, _profile: profile };
        // Its own first page and what that asks for are of no interest.
        browser.go("about:blank").await;
        browser.requests().await;
        browser.complaints().await;
        let process = browser.cdp("SystemInfo.getProcessInfo", json!({})).await;
        let is_main = |process: &&Value| process["type"] == "browser";
        let id = process["processInfo"].as_array().and_then(|all| all.iter().find(is_main)?["id"].as_i64());
        browser.chromium = id.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        browser
    }

    /// A command of the browser's own protocol.
    pub async fn cdp(&self, command: &str, parameters: Value) -> Value {
        self.driver.cdp().send_raw(command, parameters).await.unwrap_or_else(|error| {
            // Not every build tells its processes; the profile's owner ends with the driver then.
            assert!(command.starts_with("SystemInfo"), "{command}: {error}");
            Value::Null
        })
    }

    /// Goes to a page and waits until it is loaded.
    pub async fn go(&self, url: &str) {
        self.driver.goto(url).await.unwrap();
    }

    /// The text of the first element that fits, as a reader sees it; empty when there is none.
    pub async fn text(&self, selector: &str) -> String {
        let Ok(element) = self.driver.find(By::Css(selector.to_owned())).await else { return String::new() };
        element.text().await.unwrap_or_default()
    }

    /// Does this until it succeeds: parts of a live page are replaced under one's hand.
    async fn patiently(&self, what: &str, done: impl AsyncFn() -> bool) {
        let end = Instant::now() + LIMIT;
        while !done().await {
            assert!(Instant::now() < end, "{what}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Clicks the first element that fits.
    pub async fn click(&self, selector: &str) {
        let clicked = async || self.driver.find(By::Css(selector.to_owned())).await?.click().await;
        self.patiently(&format!("{selector} cannot be clicked on"), async || clicked().await.is_ok()).await;
    }

    /// Types into the first element that fits.
    pub async fn enter(&self, selector: &str, text: &str) {
        let typed = async || {
            let element = self.driver.find(By::Css(selector.to_owned())).await?;
            element.clear().await?;
            element.send_keys(text).await?;
            element.prop("value").await
        };
        let is_there = async || typed().await.is_ok_and(|value| value.as_deref() == Some(text));
        self.patiently(&format!("nothing can be typed into {selector}"), is_there).await;
    }

    /// What this expression is on the page.
    pub async fn value(&self, expression: &str) -> Value {
        self.driver.execute(format!("return {expression};"), Vec::new()).await.unwrap().json().clone()
    }

    /// Waits until an element has this text in it.
    pub async fn until(&self, selector: &str, words: &str) {
        let end = Instant::now() + LIMIT;
        loop {
            let text = self.text(selector).await;
            if text.contains(words) {
                return;
            }
            assert!(Instant::now() < end, "{selector} does not say {words:?} but {text:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// What it complained about since the last time: errors of scripts, refused by policy, failed requests.
    pub async fn complaints(&self) -> Vec<String> {
        let log = self.driver.get_log("browser").await.unwrap();
        log.into_iter()
            .filter(|entry| entry.level != "INFO" && entry.level != "DEBUG")
            .map(|entry| entry.message)
            .collect()
    }

    /// Where it sent requests since the last time.
    pub async fn requests(&self) -> Vec<String> {
        let log = self.driver.get_log("performance").await.unwrap();
        let url = |message: &str| {
            let event: Value = serde_json::from_str(message).ok()?;
            let sent = event["message"]["method"] == "Network.requestWillBeSent";
            sent.then(|| event["message"]["params"]["request"]["url"].as_str().map(str::to_owned))?
        };
        log.iter().filter_map(|entry| url(&entry.message)).collect()
    }

    /// A window of this size, with a taste for dark or light.
    pub async fn looks(&self, width: u32, height: u32, scheme: &str) {
        let mobile = width < 500;
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile});
        self.cdp("Emulation.setDeviceMetricsOverride", metrics).await;
        let taste = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.cdp("Emulation.setEmulatedMedia", taste).await;
    }

    /// A picture of the window.
    pub async fn picture(&self) -> Vec<u8> {
        self.driver.screenshot_as_png().await.unwrap()
    }

    /// Ends both.
    pub async fn quit(self) {
        self.driver.clone().quit().await.unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Otherwise it would wait for an answer of the driver that is ended here.
        let _ = self.driver.clone().leak();
        if let Some(chromium) = self.chromium {
            let _ = kill_process(chromium, Signal::KILL);
        }
        let _ = kill_process_group(Pid::from_child(&self.chromedriver), Signal::KILL);
        let _ = self.chromedriver.wait();
    }
}
