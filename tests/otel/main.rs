//! Traces, with a collector of the test's own: each cycle arrives as a span with its steps.
#![cfg(test)]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// One request of the exporter: its first line and its body.
fn receive(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length =
                head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok())?;
            let mut body = bytes.split_off(end + 4);
            while body.len() < length {
                let read = stream.read(&mut chunk).ok().filter(|read| *read > 0)?;
                body.extend_from_slice(&chunk[..read]);
            }
            return Some((head.lines().next()?.to_owned(), body));
        }
        let read = stream.read(&mut chunk).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&chunk[..read]);
    }
}

/// The first line and the body of every request that arrived.
type Arrived = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// What a collector on this listener is sent.
fn collect(listener: TcpListener) -> Arrived {
    let arrived = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&arrived);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, keep) = (stream.unwrap(), Arc::clone(&keep));
            std::thread::spawn(move || {
                while let Some(request) = receive(&mut stream) {
                    keep.lock().unwrap().push(request);
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n").unwrap();
                }
            });
        }
    });
    arrived
}

#[test]
fn every_cycle_arrives_at_the_collector_with_its_steps() {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/get-nats-server");
    let found = Command::new(tool).stdin(Stdio::null()).output().unwrap();
    if !found.status.success() {
        assert_ne!(std::env::var("QM_REQUIRE_ALL").as_deref(), Ok("1"), "there is no nats-server");
        return eprintln!("SKIPPED traces: there is no nats-server");
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let arrived = collect(listener);
    let demo = Command::new(env!("CARGO_BIN_EXE_quartermaster"))
        .args([
            "demo",
            "--servers",
            "3",
            "--json",
            "--nats-server",
            String::from_utf8(found.stdout).unwrap().trim(),
        ])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &address)
        .env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=lab")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        demo.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&demo.stdout),
        String::from_utf8_lossy(&demo.stderr)
    );
    let arrived = arrived.lock().unwrap();
    assert!(arrived.iter().all(|(line, _)| line == "post /v1/traces http/1.1"), "{:?}", arrived.first());
    // Texts stand in the encoding as they are.
    let all: Vec<u8> = arrived.iter().flat_map(|(_, body)| body.clone()).collect();
    let count = |text: &str| all.windows(text.len()).filter(|bytes| *bytes == text.as_bytes()).count();
    for text in [
        "quartermaster",
        "service.version",
        "deployment.environment",
        "attempt",
        "configure",
        "restart",
        "inventory",
        "helper",
    ] {
        assert!(count(text) > 0, "no {text} in {} bytes", all.len());
    }
    for server in 1..=3 {
        assert!(count(&format!("node{server}.example.net")) > 0, "server {server}");
    }
    assert!(count("\x05cycle") >= 3, "a span for each cycle");
}
