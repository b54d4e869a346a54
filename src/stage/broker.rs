//! The broker of a demo or a measurement: which program, and which port it took.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;
use tokio::time::Instant;

use super::child::Running;
use super::error::{START_LIMIT, StageError};

/// The nats-server to use: named, on the PATH, or fetched by the script of a source checkout.
pub(crate) async fn nats_server(named: Option<&Path>) -> Result<PathBuf, StageError> {
    if let Some(named) = named {
        return if named.exists() { Ok(named.to_owned()) } else { Err(StageError::NoBroker) };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    if let Some(found) =
        std::env::split_paths(&path).map(|dir| dir.join("nats-server")).find(|file| file.is_file())
    {
        return Ok(found);
    }
    let tool = Path::new("tools/get-nats-server");
    if !tool.is_file() {
        return Err(StageError::NoBroker);
    }
    let mut command = Command::new(tool);
    command.stdin(Stdio::null()).stderr(Stdio::inherit()).kill_on_drop(true);
    let output = command.output().await.map_err(|_| StageError::NoBroker)?;
    let found = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() && !found.is_empty() { Ok(found.into()) } else { Err(StageError::NoBroker) }
}

/// The port the broker took, from the file it writes.
pub(crate) async fn broker_port(broker: &mut Running, dir: &Path) -> Result<u16, StageError> {
    let read = || {
        let entries = std::fs::read_dir(dir).ok()?;
        let file = entries
            .flatten()
            .map(|entry| entry.path())
            .find(|path| path.extension().is_some_and(|is| is == "ports"))?;
        let ports: Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
        let url = ports.get("nats")?.get(0)?.as_str()?.to_owned();
        url.rsplit_once(':')?.1.parse::<u16>().ok()
    };
    let begin = Instant::now();
    loop {
        if let Some(port) = read() {
            return Ok(port);
        }
        tokio::select! {
            how = broker.ended() => return Err(StageError::Ended { how, log: broker.tail(20) }),
            () = tokio::time::sleep(Duration::from_millis(20)) => {}
        }
        if begin.elapsed() > START_LIMIT {
            return Err(StageError::NotReady { what: "the broker did not start", log: broker.tail(20) });
        }
    }
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> Result<u16, StageError> {
    TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|source| StageError::Setup { what: "a port for the metrics", source })
}

/// A free port below the range that the kernel gives to outgoing connections, so that none of these takes it between this look
/// and the broker's start.
pub(crate) fn quiet_port() -> Result<u16, StageError> {
    for _ in 0..200 {
        let port = rand::random_range(12_000..30_000);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    free_port()
}
