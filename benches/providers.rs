//! What a provider costs: `cargo bench --bench providers`. Calls a second one by one and many at once, memory with many waiting, a
//! restart. Figures for docs/performance.md; nothing asserts them.
//!
//! The provider is this program itself, started again with an argument, so that nothing else has to be installed.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a benchmark that does not run is its end")]

use std::collections::VecDeque;
use std::io::{BufRead as _, Write as _, stdin, stdout};
use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use actix::Actor as _;
use futures::stream::{FuturesUnordered, StreamExt as _};
use quartermaster_actors::child::Orphans;
use quartermaster_actors::provider::{
    Ask, Call, ProviderHandle, ProviderParts, ProviderRunner, ProviderSettings, Relayed,
};
use quartermaster_actors::supervise::Slot;
use quartermaster_proto::provider::{Limits, Members, Value};
use zeroize::Zeroizing;

/// How long each figure is measured.
const MEASURED: Duration = Duration::from_secs(5);
/// Calls open at once, where there are many.
const AT_ONCE: usize = 64;
/// Calls that wait, for the figure of memory.
const WAITING: usize = 10_000;
/// Restarts that are measured.
const RESTARTS: u32 = 20;
const AS_PROVIDER: &str = "--as-provider";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == AS_PROVIDER) {
        let delay = arguments.get(at + 1).and_then(|ms| ms.parse().ok()).unwrap_or_default();
        provide(Duration::from_millis(delay), arguments.iter().any(|argument| argument == "serial"));
        return;
    }
    // Cargo runs benches as tests, too; then there is nothing to measure.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    actix_rt::System::new().block_on(measure());
}

async fn measure() {
    println!("{:<58} {:>14}", "provider", "figure");
    let mut figures = Vec::new();
    for (delay, what) in [(0, "answers at once"), (10, "takes 10 ms")] {
        for (at_once, how) in [(1, "one by one"), (AT_ONCE, "64 in flight")] {
            let rate = rate(delay, at_once).await;
            row(&format!("{what}, {how}"), &format!("{rate:.0} calls/s"));
            figures.push(rate);
        }
    }
    if let [.., serial, piped] = figures.as_slice() {
        row("takes 10 ms: 64 in flight against one by one", &format!("{:.1} x", piped / serial));
    }
    memory().await;
    restart().await;
}

fn row(what: &str, figure: &str) {
    println!("{what:<58} {figure:>14}");
}

/// A runner of this program as a provider.
fn provider(delay_ms: u64, serial: bool, change: impl FnOnce(&mut ProviderSettings)) -> ProviderHandle {
    let mut settings = ProviderSettings::new("bench", std::env::current_exe().unwrap());
    settings.arguments = vec![AS_PROVIDER.into(), delay_ms.to_string().into()];
    if serial {
        settings.arguments.push("serial".into());
    }
    change(&mut settings);
    let parts = Arc::new(ProviderParts::new(settings, Arc::new(|_| {}), Orphans::unadopted()));
    let slot = Slot::new("provider", 1);
    slot.set(ProviderRunner::new(Arc::clone(&parts), None).start());
    ProviderHandle::new(slot, parts)
}

/// What a helper is given about one server: some kilobytes, most of them the inventory.
fn server(number: usize) -> Call {
    let facts: Vec<String> =
        (0..60).map(|fact| format!("\\\"fact_{fact}\\\":\\\"value {fact}\\\"")).collect();
    let attrs = format!(
        "{{\"identity\":\"web{number}.example.net\",\"csr\":null,\"ed25519_pubkey\":null,\"inventory\":\"{{\\\"facts\\\":{{{}}}}}\",\"jwt\":null}}",
        facts.join(",")
    );
    let attrs = Zeroizing::new(attrs.into_bytes());
    let relayed = Relayed { action: "provision".to_owned(), attrs, context: None };
    Call { ask: Ask::Relay(relayed), timeout: None, about: None }
}

async fn rate(delay_ms: u64, at_once: usize) -> f64 {
    let handle = provider(delay_ms, at_once == 1, |_| {});
    handle.start().await.unwrap();
    let (begun, mut number, mut done) = (Instant::now(), 0, 0u32);
    let mut calls = FuturesUnordered::new();
    while begun.elapsed() < MEASURED {
        while calls.len() < at_once {
            number += 1;
            calls.push(handle.call(server(number), None));
        }
        calls.next().await.unwrap().unwrap();
        done += 1;
    }
    let rate = f64::from(done) / begun.elapsed().as_secs_f64();
    drop(calls);
    handle.close(Duration::ZERO).await;
    rate
}

async fn memory() {
    let handle = provider(3_600_000, false, |settings| settings.queue = WAITING);
    handle.start().await.unwrap();
    let before = resident();
    let mut calls: FuturesUnordered<_> =
        (0..WAITING).map(|number| handle.call(server(number), None)).collect();
    // Each has to be asked for once before it waits.
    let _ = tokio::time::timeout(Duration::from_secs(2), calls.next()).await;
    let grown = resident().saturating_sub(before);
    let (kib, bytes) = (grown / 1024, grown / WAITING as u64);
    row("memory with 10,000 calls waiting, beside the runner's own", &format!("{kib} KiB"));
    row("of that for each call, its attributes included", &format!("{bytes} bytes"));
    drop(calls);
    handle.close(Duration::ZERO).await;
}

async fn restart() {
    let handle = provider(0, true, |settings| {
        settings.restart.min = Duration::ZERO;
        settings.restart.limit = usize::MAX;
    });
    handle.start().await.unwrap();
    let limits = Limits::PROVIDER;
    let mut took = Duration::ZERO;
    for number in 0..RESTARTS {
        let ask = Value::from_json("{\"identity\":\"die\"}", &limits).unwrap();
        let Value::Object(attrs) = ask else { panic!("no object") };
        let begun = Instant::now();
        assert!(handle.execute("provision", Members::clone(&attrs)).await.is_err());
        handle.call(server(number as usize), None).await.unwrap();
        took += begun.elapsed();
    }
    let each = took.as_secs_f64() * 1e3 / f64::from(RESTARTS);
    row("a crash: from the call that met it to the next answer", &format!("{each:.1} ms"));
    handle.close(Duration::ZERO).await;
}

fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Answers each call so long after it came, any number of them at once.
fn provide(delay: Duration, serial: bool) {
    type Due = (Mutex<VecDeque<(Instant, String)>>, Condvar);
    let due: Arc<Due> = Arc::default();
    let waiting = Arc::clone(&due);
    std::thread::spawn(move || {
        loop {
            let (lock, bell) = &*waiting;
            let mut queue = lock.lock().unwrap();
            let (at, answer) = loop {
                match queue.pop_front() {
                    Some(next) => break next,
                    None => queue = bell.wait(queue).unwrap(),
                }
            };
            drop(queue);
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            say(&answer);
        }
    });
    let most = NonZeroUsize::new(if serial { 1 } else { AT_ONCE }).unwrap();
    let schema = format!(
        "{{\"name\":\"bench\",\"version\":\"1\",\"protocol\":\"1\",\"config\":{{}},\"actions\":{{\"provision\":{{\"attrs\":{{\
         \"identity\":{{\"type\":\"string\",\"required\":true}},\"inventory\":{{\"type\":\"string\"}},\"csr\":{{\"type\":\"any\"}},\
         \"ed25519_pubkey\":{{\"type\":\"any\"}},\"jwt\":{{\"type\":\"any\"}}}},\"outputs\":{{\"type\":\"any\"}}}}}},\
         \"x_extensions\":{{\"max_in_flight\":{most}}}}}"
    );
    for line in stdin().lock().lines() {
        let line = line.unwrap();
        // Of its frames only the number matters here, and that stands first.
        let id = line.trim_start_matches("{\"id\":").split(',').next().unwrap_or_default().to_owned();
        if line.contains("\"identity\":\"die\"") {
            std::process::exit(3);
        }
        if line.contains("\"method\":\"describe\"") {
            say(&format!("{{\"id\":{id},\"result\":{{\"schema\":{schema}}}}}"));
        } else if line.contains("\"method\":\"execute\"") {
            let answer = format!(
                "{{\"id\":{id},\"result\":{{\"outputs\":{{\"configuration\":{{\"plugin.choria.server.provision\":\"false\"}}}}}}}}"
            );
            if delay.is_zero() {
                say(&answer);
            } else {
                let (lock, bell) = &*due;
                lock.lock().unwrap().push_back((Instant::now() + delay, answer));
                bell.notify_one();
            }
        } else {
            say(&format!("{{\"id\":{id},\"result\":{{}}}}"));
            if line.contains("\"method\":\"shutdown\"") {
                return;
            }
        }
    }
}

fn say(frame: &str) {
    let mut out = stdout().lock();
    writeln!(out, "{frame}").and_then(|()| out.flush()).unwrap_or_else(|_| std::process::exit(0));
}
