//! A small server of http and https, one thread for each connection and one request on it.
#![allow(dead_code, reason = "several test programs share this and each uses a part of it")]

use std::{
    io::{BufRead as _, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use rustls::{
    ServerConfig, ServerConnection, Stream,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};

/// What was asked.
pub struct Asked {
    pub method: String,
    /// With what stands behind the question mark.
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// What is answered: a status, headers and a body.
pub type Answer = (u16, Vec<(&'static str, String)>, Vec<u8>);

/// What answers.
pub type Answers = Arc<dyn Fn(Asked) -> Answer + Send + Sync>;

/// A file of the certificates for tests.
pub fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tls").join(name)
}

/// A server that ends when dropped.
pub struct Web {
    pub address: SocketAddr,
    is_done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Web {
    /// Serves on a port of its own; with `is_tls` with the certificate for localhost.
    pub fn start(is_tls: bool, answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let tls = is_tls.then(|| {
            let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
            let chain = CertificateDer::pem_file_iter(fixture("server.pem")).unwrap();
            let key = PrivateKeyDer::from_pem_file(fixture("server.key")).unwrap();
            let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
            Arc::new(ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).unwrap())
        });
        let is_done = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_done);
        let thread = thread::spawn(move || {
            for connection in listener.incoming() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(mut connection), tls, answers) = (connection, tls.clone(), Arc::clone(&answers))
                else {
                    continue;
                };
                thread::spawn(move || match tls {
                    Some(tls) => {
                        let Ok(mut session) = ServerConnection::new(tls) else { return };
                        serve(&mut Stream::new(&mut session, &mut connection), &answers);
                        session.send_close_notify();
                        let _ = session.complete_io(&mut connection);
                    }
                    None => serve(&mut connection, &answers),
                });
            }
        });
        Self { address, is_done, thread: Some(thread) }
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.is_done.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(connection: &mut (impl Read + Write), answers: &Answers) {
    let Some(asked) = read(connection) else { return };
    let (status, headers, body) = answers(asked);
    let mut text = format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    text.extend(headers.iter().flat_map(|(name, value)| [name, ": ", value.as_str(), "\r\n"]));
    let _ = connection.write_all(text.as_bytes());
    let _ = connection.write_all(b"\r\n");
    let _ = connection.write_all(&body);
    let _ = connection.flush();
}

fn read(connection: &mut impl Read) -> Option<Asked> {
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, length)| length.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { method, path, headers, body })
}
