use std::path::Path;

use quartermaster_proto::mesh::{
    fill::{Body, Failure, FillFile, Hello, Op, Reply, Request, RequestCode, Write, Written},
    plan::Digest,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    net::{
        UnixListener,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
};
use zeroize::Zeroizing;

use super::*;
use crate::core::EngineAnswer;

/// An engine of a test: it does what the test says.
struct Engine {
    lines: Lines<BufReader<OwnedReadHalf>>,
    write: OwnedWriteHalf,
}

impl Engine {
    async fn accept(listener: &UnixListener) -> Self {
        let (half, write) = listener.accept().await.unwrap().0.into_split();
        Self { lines: BufReader::new(half).lines(), write }
    }

    async fn request(&mut self) -> Request {
        let line = self.lines.next_line().await.unwrap().expect("a request");
        Request::read(line.as_bytes()).unwrap()
    }

    async fn reply(&mut self, id: u64, body: Body) {
        self.write.write_all(&Reply { id, body }.encode()).await.unwrap();
    }

    async fn greet(&mut self, node: &str) {
        let hello = self.request().await;
        assert_eq!(hello.op, Op::Hello { protocol: 1 });
        self.reply(hello.id, Body::Hello(Hello { protocol: 1, node: node.to_owned() })).await;
    }

    /// The module and the content of the next request, which is answered with nothing done.
    async fn serve(&mut self) -> (String, Vec<u8>) {
        let request = self.request().await;
        self.reply(request.id, Body::Written(Written::default())).await;
        let Op::Write(write) = request.op else { panic!("a write") };
        (write.module, write.files[0].content.to_vec())
    }
}

fn write(module: &str) -> Write {
    let content = Zeroizing::new(b"a\0b".to_vec());
    let file =
        FillFile { path: "/a".to_owned(), sha256: Digest::of(&content).hex(), content, sensitive: true };
    Write { module: module.to_owned(), plan: Digest::of(b""), revision: 1, files: vec![file] }
}

fn start(dir: &TempDir) -> (EngineLane, std::path::PathBuf) {
    let socket = dir.path().join("fill.sock");
    let settings = EngineSettings { socket: socket.clone(), node: "web1".to_owned() };
    (EngineLane::start(settings), socket)
}

fn listen(socket: &Path) -> UnixListener {
    UnixListener::bind(socket).unwrap()
}

#[tokio::test]
async fn requests_are_answered_in_order_on_one_connection() {
    let dir = TempDir::new().unwrap();
    let (lane, socket) = start(&dir);
    let listener = listen(&socket);
    let engine = tokio::spawn(async move {
        let mut engine = Engine::accept(&listener).await;
        engine.greet("web1").await;
        let first = engine.serve().await;
        let second = engine.request().await;
        let failure = Failure { code: RequestCode::Behind, reason: String::new() };
        engine.reply(second.id, Body::Failed(failure)).await;
        first
    });
    assert!(matches!(lane.write(write("forge")).await, EngineAnswer::Written(_)));
    let EngineAnswer::Failed(failure) = lane.write(write("blog")).await else { panic!("it failed") };
    assert_eq!(failure.code, RequestCode::Behind);
    assert_eq!(engine.await.unwrap(), ("forge".to_owned(), b"a\0b".to_vec()));
}

#[tokio::test]
async fn many_modules_share_the_connection_and_none_waits_for_another_to_ask() {
    let dir = TempDir::new().unwrap();
    let (lane, socket) = start(&dir);
    let listener = listen(&socket);
    let engine = tokio::spawn(async move {
        let mut engine = Engine::accept(&listener).await;
        engine.greet("web1").await;
        // All are asked before the first is answered.
        let mut ids = Vec::new();
        for _ in 0..20 {
            ids.push(engine.request().await.id);
        }
        for id in ids {
            engine.reply(id, Body::Written(Written::default())).await;
        }
    });
    let asks = (0..20).map(|at| {
        let lane = lane.clone();
        async move { lane.write(write(&at.to_string())).await }
    });
    let answers = futures::future::join_all(asks).await;
    assert!(answers.iter().all(|answer| matches!(answer, EngineAnswer::Written(_))));
    engine.await.unwrap();
}

#[tokio::test]
async fn an_engine_that_is_not_there_is_away_until_it_is() {
    let dir = TempDir::new().unwrap();
    let (lane, socket) = start(&dir);
    assert!(matches!(lane.write(write("forge")).await, EngineAnswer::Away));
    let listener = listen(&socket);
    let engine = tokio::spawn(async move {
        let mut engine = Engine::accept(&listener).await;
        engine.greet("web1").await;
        engine.serve().await;
    });
    assert!(matches!(lane.write(write("forge")).await, EngineAnswer::Written(_)));
    engine.await.unwrap();
    // Its connection is gone with it, and so is the listener.
    assert!(matches!(lane.write(write("forge")).await, EngineAnswer::Away));
}

#[tokio::test]
async fn an_engine_that_goes_away_leaves_nobody_without_an_answer() {
    let dir = TempDir::new().unwrap();
    let (lane, socket) = start(&dir);
    let listener = listen(&socket);
    let engine = tokio::spawn(async move {
        let mut engine = Engine::accept(&listener).await;
        engine.greet("web1").await;
        for _ in 0..3 {
            engine.request().await;
        }
    });
    let asks = (0..3).map(|_| lane.write(write("forge")));
    let answers = futures::future::join_all(asks).await;
    assert!(answers.iter().all(|answer| matches!(answer, EngineAnswer::Away)));
    engine.await.unwrap();
}

#[tokio::test]
async fn an_engine_of_another_machine_or_that_talks_nonsense_is_not_used() {
    for nonsense in [
        "{\"id\":1,\"ok\":{\"protocol\":1,\"node\":\"web2\"}}\n",
        "{\"id\":1,\"ok\":{\"protocol\":2,\"node\":\"web1\"}}\n",
        "{\"id\":1,\"ok\":{\"files\":[]}}\n",
        "hello\n",
    ] {
        let dir = TempDir::new().unwrap();
        let (lane, socket) = start(&dir);
        let listener = listen(&socket);
        let engine = tokio::spawn(async move {
            let mut engine = Engine::accept(&listener).await;
            engine.request().await;
            engine.write.write_all(nonsense.as_bytes()).await.unwrap();
            // No request follows.
            engine.lines.next_line().await.ok().flatten()
        });
        assert!(matches!(lane.write(write("forge")).await, EngineAnswer::Away), "{nonsense}");
        assert_eq!(engine.await.unwrap(), None, "{nonsense}");
    }
}

#[tokio::test]
async fn an_answer_to_what_was_not_asked_ends_the_connection() {
    let dir = TempDir::new().unwrap();
    let (lane, socket) = start(&dir);
    let listener = listen(&socket);
    let engine = tokio::spawn(async move {
        let mut engine = Engine::accept(&listener).await;
        engine.greet("web1").await;
        let request = engine.request().await;
        engine.reply(request.id + 7, Body::Written(Written::default())).await;
        assert!(engine.lines.next_line().await.ok().flatten().is_none());
    });
    assert!(matches!(lane.write(write("forge")).await, EngineAnswer::Away));
    engine.await.unwrap();
}

#[tokio::test]
async fn a_request_that_is_longer_than_the_sockets_buffers_goes_through() {
    let dir = TempDir::new().unwrap();
    let (lane, socket) = start(&dir);
    let listener = listen(&socket);
    let engine = tokio::spawn(async move {
        let mut engine = Engine::accept(&listener).await;
        engine.greet("web1").await;
        engine.serve().await.1.len()
    });
    let mut long = write("forge");
    long.files[0].content = Zeroizing::new(vec![7; 4 * 1024 * 1024]);
    assert!(matches!(lane.write(long).await, EngineAnswer::Written(_)));
    assert_eq!(engine.await.unwrap(), 4 * 1024 * 1024);
}
