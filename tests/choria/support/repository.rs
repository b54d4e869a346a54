//! A site's repository of server releases: a web server that knows the one release in `tests/choria/release`.
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The version of the release.
pub const VERSION: &str = "0.99.0";

/// A running repository; it ends on drop.
pub struct Repository {
    address: SocketAddr,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Repository {
    /// Starts it on a free port.
    pub fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address");
        let ending = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ending);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if end.load(Ordering::Relaxed) {
                    return;
                }
                answer(&stream);
            }
        });
        Self { address, ending, thread: Some(thread) }
    }

    /// Its address, as a provisioner is told.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        TcpStream::connect(self.address).ok(); // wakes the listener, which then sees that it is over
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn answer(mut stream: &TcpStream) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let asked = lines.next().unwrap_or_default();
    for _header in lines.take_while(|line| !line.is_empty()) {}
    let release = format!("/{VERSION}/");
    let file: &[u8] = match asked.split(' ').nth(1) {
        Some(path) if path.starts_with(&release) && path.ends_with("/release.json") => {
            include_bytes!("../release/release.json")
        }
        Some(path) if path.starts_with(&release) && path.ends_with("/choria.bz2") => {
            include_bytes!("../release/choria.bz2")
        }
        _ => {
            stream.write_all(b"HTTP/1.0 404 Not Found\r\n\r\n").ok();
            return;
        }
    };
    let head = format!("HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n", file.len());
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(file)).ok();
}
