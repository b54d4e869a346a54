//! A relay between the provisioner and a broker that can go half open, and a witness of what was handed to the provisioner.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use time::OffsetDateTime;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Unix milliseconds now.
pub fn now_ms() -> i64 {
    i64::try_from(OffsetDateTime::now_utc().unix_timestamp_nanos() / 1_000_000).unwrap()
}

/// When which message was handed over, by the last part of its subject: for a reply, the id of its request.
#[derive(Debug, Clone, Default)]
pub struct Witness(Arc<Mutex<HashMap<String, i64>>>);

impl Witness {
    /// When the reply to this request was handed to the provisioner's socket, Unix milliseconds; none if it never was.
    pub fn delivered(&self, request: &str) -> Option<i64> {
        self.0.lock().unwrap().get(request).copied()
    }

    fn note(&self, subject: &str) {
        let id = subject.rsplit('.').next().unwrap_or_default();
        self.0.lock().unwrap().entry(id.to_owned()).or_insert_with(now_ms);
    }
}

/// The relay. Connections made through it end with it.
pub struct Proxy {
    port: u16,
    /// Connections with a lower number than this are half open.
    frozen: watch::Sender<u64>,
    next: Arc<Mutex<u64>>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Relays to this port on this machine. What goes to whoever connects is read for `witness`: clear text, NATS.
    pub async fn start(target: u16, witness: Option<Witness>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (frozen, watched) = watch::channel(0);
        let next = Arc::new(Mutex::new(0));
        let numbers = Arc::clone(&next);
        let task = tokio::spawn(async move {
            let mut relays = tokio::task::JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let number = {
                    let mut next = numbers.lock().unwrap();
                    *next += 1;
                    *next
                };
                relays.spawn(relay(client, target, number, watched.clone(), witness.clone()));
                while relays.try_join_next().is_some() {}
            }
        });
        Self { port, frozen, next, task }
    }

    /// Where to connect to.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Every connection there is stops carrying anything, either way, and is not closed. Later ones work.
    pub fn half_open(&self) {
        let latest = *self.next.lock().unwrap();
        self.frozen.send_replace(latest);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn relay(
    client: TcpStream,
    target: u16,
    number: u64,
    frozen: watch::Receiver<u64>,
    witness: Option<Witness>,
) {
    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, target)).await else { return };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let there = carry(&mut from_client, &mut to_server, number, frozen.clone(), None);
    let back = carry(&mut from_server, &mut to_client, number, frozen, witness.map(Reader::new));
    // One end that closes closes both, as a process does that ends.
    tokio::select! {
        () = there => {}
        () = back => {}
    }
}

async fn carry(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    number: u64,
    mut frozen: watch::Receiver<u64>,
    mut reader: Option<Reader>,
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = tokio::select! {
            biased;
            _ = async { frozen.wait_for(|latest| number <= *latest).await.is_ok() } => {
                // Half open: what is sent goes nowhere. Once one end has given up, the other hears of it, so that
                // a test does not gather dead connections.
                while from.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
                return;
            }
            read = from.read(&mut buffer) => read,
        };
        let Ok(read) = read else { return };
        if read == 0 || to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
        if let Some(reader) = &mut reader {
            reader.take(&buffer[..read]);
        }
    }
}

/// Reads what a NATS server sends, for the subjects of its messages.
struct Reader {
    witness: Witness,
    line: Vec<u8>,
    /// Bytes of a message's payload that are still to come.
    payload: usize,
    subject: String,
}

impl Reader {
    const fn new(witness: Witness) -> Self {
        Self { witness, line: Vec::new(), payload: 0, subject: String::new() }
    }

    fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.payload > 0 {
                let skipped = self.payload.min(bytes.len());
                self.payload -= skipped;
                bytes = &bytes[skipped..];
                if self.payload == 0 {
                    self.witness.note(&self.subject);
                }
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
                self.line.extend_from_slice(bytes);
                return;
            };
            self.line.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end + 1..];
            let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).trim_end().to_owned();
            let mut words = line.split_whitespace();
            if let Some("MSG" | "HMSG") = words.next() {
                words.next().unwrap_or_default().clone_into(&mut self.subject);
                let size: usize = words.last().and_then(|size| size.parse().ok()).unwrap_or(0);
                // The payload and its line end.
                self.payload = size + 2;
            }
        }
    }
}
