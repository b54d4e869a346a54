//! The measurements, one after the other.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use quartermaster_node::client::asking::Answer;
use quartermaster_node::client::vault::VaultClient;
use quartermaster_node::mesh::set_config;
use quartermaster_proto::mesh::accounts::Account;
use quartermaster_proto::mesh::registry::{Entry, Source, VaultSource};
use quartermaster_proto::mesh::report::Report;
use quartermaster_proto::mesh::value::Json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::figures::{Figures, Share};
use super::scene::{BenchError, NODE, Scene, module, secret};
use crate::stage::{Running, StageError};

/// How long all modules may take.
const APPLY_LIMIT: Duration = Duration::from_mins(10);
/// How long one change may take.
const CHANGE_LIMIT: Duration = Duration::from_secs(20);
/// How long nothing happens before the idle time is measured.
const CALM: Duration = Duration::from_secs(3);
/// How often a file is looked at.
const LOOK_EVERY: Duration = Duration::from_micros(200);
/// How long the vault is asked.
const ASK_FOR: Duration = Duration::from_secs(5);
/// Questions that are open at once, as many as a client has.
const ASK_AT_ONCE: usize = 16;

/// Measures everything.
pub(super) async fn measure(scene: &mut Scene, changes: u32, idle: Duration) -> Result<Figures, BenchError> {
    let mut figures = Figures { modules: scene.size.modules, files: scene.size.files, ..Figures::default() };
    let began = Instant::now();
    let mut client = scene.client()?;
    all_applied(scene, &mut client).await?;
    figures.first_start = began.elapsed();
    client.stop(CHANGE_LIMIT).await;

    let began = Instant::now();
    let mut client = scene.client()?;
    all_applied(scene, &mut client).await?;
    figures.start = began.elapsed();

    figures.changes = change_all(scene, &client, changes).await?;
    idle_time(scene, &client, idle, &mut figures).await?;
    figures.answers = answers(scene).await?;
    client.stop(CHANGE_LIMIT).await;
    Ok(figures)
}

/// Waits until every module has said that it is applied.
async fn all_applied(scene: &Scene, client: &mut Running) -> Result<(), BenchError> {
    let late =
        |client: &Running| BenchError::Late { what: "not every module was applied", log: client.tail(20) };
    let heard = scene.controller.client().subscribe("prov.applied.>").await;
    let mut heard = heard.map_err(|_| late(client))?;
    let mut applied: BTreeSet<String> = BTreeSet::new();
    let all = usize::try_from(scene.size.modules).unwrap_or(usize::MAX);
    let wait = async {
        while applied.len() < all {
            let Some(message) = heard.next().await else { return };
            if let Ok(report) = Report::read(&message.payload)
                && report.outcome.as_str() == "applied"
            {
                applied.insert(report.module);
            }
        }
    };
    let ended = tokio::select! {
        done = tokio::time::timeout(APPLY_LIMIT, wait) => done.map_err(|_| None),
        how = client.ended() => Err(Some(how)),
    };
    match ended {
        Ok(()) => Ok(()),
        Err(None) => Err(late(client)),
        Err(Some(how)) => Err(StageError::Ended { how, log: client.tail(20) }.into()),
    }
}

/// Changes one config value after the other, each of another module; the time from the change to its file.
async fn change_all(scene: &Scene, client: &Running, changes: u32) -> Result<Vec<Duration>, BenchError> {
    let mut times = Vec::new();
    for change in 0..changes {
        // A stride that meets every module before one is met again.
        let number = change.wrapping_mul(7_919) % scene.size.modules;
        let value = format!("change-{change}");
        let path = scene.file(number, 0);
        let began = Instant::now();
        let looked = tokio::task::spawn_blocking({
            let value = value.clone();
            move || look_for(&path, &value, began)
        });
        set_config(&scene.configurer, NODE, &module(number), "first", &Json::string(&value)).await?;
        match looked.await {
            Ok(Some(time)) => times.push(time),
            _ => return Err(BenchError::Late { what: "a change was not on the disk", log: client.tail(20) }),
        }
    }
    Ok(times)
}

fn look_for(path: &Path, value: &str, began: Instant) -> Option<Duration> {
    let line = format!("value = {value}\n");
    while began.elapsed() < CHANGE_LIMIT {
        if is_there(path, &line) {
            return Some(began.elapsed());
        }
        std::thread::sleep(LOOK_EVERY);
    }
    None
}

fn is_there(path: &Path, line: &str) -> bool {
    std::fs::read(path).is_ok_and(|text| text.windows(line.len()).any(|window| window == line.as_bytes()))
}

/// A time in which nothing changes, and every file is looked at each minute.
async fn idle_time(
    scene: &Scene,
    client: &Running,
    idle: Duration,
    figures: &mut Figures,
) -> Result<(), BenchError> {
    tokio::time::sleep(CALM).await;
    let used = || [client, &scene.engine, &scene.broker].map(|program| program.usage().unwrap_or_default());
    let (before, bytes) = (used(), bus_bytes(scene.monitor).await?);
    tokio::time::sleep(idle).await;
    let (after, bytes_after) = (used(), bus_bytes(scene.monitor).await?);
    figures.idle = idle;
    figures.bytes = bytes_after.saturating_sub(bytes);
    for ((name, before), after) in ["client", "engine", "broker"].into_iter().zip(before).zip(after) {
        let cpu = after.cpu.saturating_sub(before.cpu);
        let (rss, peak) = (after.rss_kib.unwrap_or_default(), after.peak_kib.unwrap_or_default());
        figures.shares.push(Share { name, cpu, rss_kib: rss, peak_kib: peak });
    }
    Ok(())
}

/// Bytes that came into the broker and went out of it so far.
async fn bus_bytes(port: u16) -> Result<u64, BenchError> {
    let setup = BenchError::setup;
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.map_err(setup("a look at the broker"))?;
    let request = "GET /varz HTTP/1.0\r\nHost: localhost\r\n\r\n";
    stream.write_all(request.as_bytes()).await.map_err(setup("a look at the broker"))?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.map_err(setup("a look at the broker"))?;
    let text = String::from_utf8_lossy(&answer);
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let numbers: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    let of = |name: &str| numbers.get(name).and_then(serde_json::Value::as_u64).unwrap_or_default();
    Ok(of("in_bytes") + of("out_bytes"))
}

/// How many answers the vault gives in a second, each on the disk of its audit before.
async fn answers(scene: &Scene) -> Result<f64, BenchError> {
    let bus = scene.as_client().await?;
    let account = Account::Provisioner { node: NODE.to_owned() };
    let client = Arc::new(VaultClient::new(bus, account));
    let source: VaultSource = Entry::defaults(None)
        .into_iter()
        .find_map(|entry| match entry.source {
            Source::Vault(source) => Some(source),
            Source::Bucket(_) | Source::Plan => None,
        })
        .ok_or_else(|| BenchError::Late { what: "no vault is registered", log: Vec::new() })?;
    let (modules, answered) = (scene.size.modules, Arc::new(AtomicU64::new(0)));
    let began = Instant::now();
    let ask = |worker: usize| {
        let (client, source, answered) = (Arc::clone(&client), source.clone(), Arc::clone(&answered));
        async move {
            let mut number = u32::try_from(worker).unwrap_or_default();
            while began.elapsed() < ASK_FOR {
                number = number.wrapping_add(17) % modules;
                let Ok(name) = secret(number).parse() else { return };
                if matches!(client.ask(&source, &name, 0).await, Answer::Value(..)) {
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    };
    futures::future::join_all((0..ASK_AT_ONCE).map(ask)).await;
    #[expect(clippy::cast_precision_loss, reason = "answers of a few seconds, far below 2^52")]
    let answered = answered.load(Ordering::Relaxed) as f64;
    Ok(answered / began.elapsed().as_secs_f64())
}
