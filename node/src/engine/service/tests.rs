use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use quartermaster_proto::mesh::fill::{
    Body, FileCode, FillFile, LIMITS, Op, Reply, Request, RequestCode, Write, Written,
};
use quartermaster_proto::mesh::plan::Digest;
use quartermaster_proto::mesh::report::Action;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::sync::{oneshot, watch};
use zeroize::Zeroizing;

use super::run::run_with;
use super::{EngineError, Settings, Source, Status};
use crate::engine::keeper::digest;
use crate::engine::program::{Program, Runner, Told};

/// Remembers what it was to tell, and fails while it is told to.
#[derive(Debug, Default)]
struct Ear {
    told: Mutex<Vec<Program>>,
    fails: Mutex<bool>,
}

impl Runner for Arc<Ear> {
    fn tell(&self, program: Program) -> BoxFuture<'static, Told> {
        self.told.lock().unwrap().push(program);
        let told = if *self.fails.lock().unwrap() { Told::Failed("no".to_owned()) } else { Told::Done };
        std::future::ready(told).boxed()
    }
}

struct Bench {
    folder: tempfile::TempDir,
    ear: Arc<Ear>,
    client: String,
}

struct Engine {
    stop: oneshot::Sender<()>,
    ended: tokio::task::JoinHandle<Result<(), EngineError>>,
}

impl Engine {
    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.ended.await.unwrap().unwrap();
    }
}

impl Bench {
    /// Waits for such a status: it is written soon, not with every request.
    async fn status(&self, is_meant: impl Fn(&Status) -> bool) {
        while !Status::read(&self.at("state")).is_ok_and(|status| is_meant(&status)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["root", "declared"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let client = rustix::process::geteuid().as_raw().to_string();
        Self { folder, ear: Arc::default(), client }
    }

    fn at(&self, rest: &str) -> PathBuf {
        fs::canonicalize(self.folder.path()).unwrap().join(rest)
    }

    fn path(&self, rest: &str) -> String {
        self.at("root").join(rest).to_str().unwrap().to_owned()
    }

    async fn start(&self) -> Engine {
        let settings = Settings {
            node: "web1".to_owned(),
            state: self.at("state"),
            socket: self.at("run/fill.sock"),
            roots: vec![self.at("root").to_str().unwrap().to_owned()],
            commands: None,
            client: self.client.clone(),
            source: Source::Folder { folder: self.at("declared"), every: Duration::from_millis(20) },
            user_units: false,
            metrics: None,
        };
        let (stop, stopped) = oneshot::channel();
        let runner = Arc::new(Arc::clone(&self.ear));
        let ended = actix_rt::spawn(run_with(settings, runner, |_| (), async move {
            let _ = stopped.await;
        }));
        while !self.at("run/fill.sock").exists() {
            assert!(!ended.is_finished(), "the engine did not start");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Engine { stop, ended }
    }

    /// Declares a module with these members of its plan; answers the declaration's digest.
    fn declare(&self, module: &str, members: &str) -> Digest {
        let templates = format!(r#"{{"reference":"file:/t.tar","digest":"{}"}}"#, Digest::of(b""));
        let text = format!(
            r#"{{"node":"web1","module":"{module}","provisioning":{{"templates":{templates},{members}}}}}"#
        );
        let beside = self.at(&format!("declared/{module}.new"));
        fs::write(&beside, &text).unwrap();
        fs::rename(beside, self.at(&format!("declared/{module}.json"))).unwrap();
        Digest::of(text.as_bytes())
    }

    fn files(&self, names: &[&str]) -> String {
        let each = names.iter().map(|name| {
            format!(
                r#"{{"path":"{}","template":"t","owner-at-runtime":"owned","on-change":{{"restart":"forge.service"}}}}"#,
                self.path(name)
            )
        });
        format!(r#""files":[{}]"#, each.collect::<Vec<_>>().join(","))
    }

    async fn connect(&self) -> Client {
        Client(BufReader::new(UnixStream::connect(self.at("run/fill.sock")).await.unwrap()))
    }

    fn fill(&self, name: &str, content: &str) -> FillFile {
        FillFile {
            path: self.path(name),
            content: Zeroizing::new(content.as_bytes().to_vec()),
            sha256: digest(content.as_bytes()),
            sensitive: false,
        }
    }
}

struct Client(BufReader<UnixStream>);

impl Client {
    async fn send(&mut self, line: &[u8]) {
        self.0.get_mut().write_all(line).await.unwrap();
    }

    async fn reply(&mut self) -> Option<Reply> {
        let mut line = String::new();
        let read = self.0.read_line(&mut line).await.unwrap_or(0);
        (read > 0).then(|| Reply::read(line.trim_end().as_bytes()).unwrap())
    }

    async fn write(&mut self, module: &str, plan: Digest, files: Vec<FillFile>) -> Body {
        let write = Write { module: module.to_owned(), plan, revision: 7, files };
        self.send(&Request { id: 5, op: Op::Write(write) }.encode()).await;
        let reply = self.reply().await.unwrap();
        assert_eq!(reply.id, 5);
        reply.body
    }
}

fn actions(body: Body) -> Vec<Result<Action, FileCode>> {
    let Body::Written(Written { files, .. }) = body else { panic!("{body:?}") };
    files.into_iter().map(|file| file.action.ok_or_else(|| file.err.unwrap().code)).collect()
}

fn code(body: Body) -> RequestCode {
    let Body::Failed(failure) = body else { panic!("{body:?}") };
    failure.code
}

fn restart() -> Program {
    Program::Restart { unit: "forge.service".to_owned(), start: false }
}

#[actix::test]
async fn files_are_written_over_the_socket_and_their_program_is_told_once() {
    let bench = Bench::new();
    let plan = bench.declare("forge", &bench.files(&["a", "b"]));
    let engine = bench.start().await;
    let mode = fs::metadata(bench.at("run/fill.sock")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    let mut client = bench.connect().await;
    client.send(br#"{"id":1,"op":"hello","protocol":1}"#).await;
    client.send(b"\n").await;
    assert!(matches!(client.reply().await.unwrap().body, Body::Hello(hello) if hello.node == "web1"));
    let both = || vec![bench.fill("a", "1"), bench.fill("b", "2")];
    assert_eq!(actions(client.write("forge", plan, both()).await), [Ok(Action::Written); 2]);
    assert_eq!(actions(client.write("forge", plan, both()).await), [Ok(Action::Unchanged); 2]);
    assert_eq!(*bench.ear.told.lock().unwrap(), [restart()]);
    assert_eq!(fs::read_to_string(bench.path("b")).unwrap(), "2");
    let files = [bench.path("a"), bench.path("b")];
    bench.status(|status| status.modules.get("forge").is_some_and(|forge| forge.files == files)).await;
    engine.stop().await;
    assert!(!bench.at("run/fill.sock").exists());
}

#[actix::test]
async fn a_program_that_could_not_be_told_is_told_after_a_restart() {
    let bench = Bench::new();
    let plan = bench.declare("forge", &bench.files(&["a"]));
    *bench.ear.fails.lock().unwrap() = true;
    let engine = bench.start().await;
    let mut client = bench.connect().await;
    let Body::Written(written) = client.write("forge", plan, vec![bench.fill("a", "1")]).await else {
        panic!()
    };
    assert_eq!(written.programs[0].reason.as_deref(), Some("no"));
    engine.stop().await;
    bench.ear.told.lock().unwrap().clear();
    *bench.ear.fails.lock().unwrap() = false;
    let engine = bench.start().await;
    bench.status(|status| status.modules.get("forge").is_some_and(|forge| forge.owed == 0)).await;
    assert_eq!(*bench.ear.told.lock().unwrap(), [restart()]);
    let mut client = bench.connect().await;
    let Body::Written(written) = client.write("forge", plan, vec![bench.fill("a", "1")]).await else {
        panic!()
    };
    assert!(written.programs.is_empty());
    engine.stop().await;
}

#[actix::test]
async fn a_declaration_that_comes_late_is_waited_for() {
    let bench = Bench::new();
    let engine = bench.start().await;
    let mut client = bench.connect().await;
    let members = bench.files(&["a"]);
    let plan = bench.declare("forge", &members);
    assert_eq!(actions(client.write("forge", plan, vec![bench.fill("a", "1")]).await), [Ok(Action::Written)]);
    engine.stop().await;
}

#[actix::test]
async fn what_the_declaration_drops_goes_also_when_the_engine_was_down() {
    let bench = Bench::new();
    let plan = bench.declare("forge", &bench.files(&["deep/a", "b"]));
    let engine = bench.start().await;
    let both = vec![bench.fill("deep/a", "1"), bench.fill("b", "1")];
    actions(bench.connect().await.write("forge", plan, both).await);
    bench.declare("forge", &bench.files(&["b"]));
    while fs::exists(bench.path("deep")).unwrap() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(fs::exists(bench.path("b")).unwrap());
    engine.stop().await;
    fs::remove_file(bench.at("declared/forge.json")).unwrap();
    let engine = bench.start().await;
    while fs::exists(bench.path("b")).unwrap() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    bench.status(|status| !status.removed.is_empty()).await;
    engine.stop().await;
}

#[actix::test]
async fn requests_that_are_none_are_answered_by_their_code() {
    let bench = Bench::new();
    let plan = bench.declare("forge", &bench.files(&["a"]));
    bench.declare("other", &bench.files(&["o"]));
    let engine = bench.start().await;
    let mut client = bench.connect().await;
    client.send(b"{\"id\":3,\"op\":\"dance\"}\nnonsense\n").await;
    let reply = client.reply().await.unwrap();
    assert_eq!((reply.id, code(reply.body)), (3, RequestCode::BadRequest));
    assert_eq!(code(client.reply().await.unwrap().body), RequestCode::BadRequest);
    let foreign = vec![bench.fill("o", "1"), bench.fill("undeclared", "1")];
    let refused = actions(client.write("forge", plan, foreign).await);
    assert_eq!(refused, [Err(FileCode::NotDeclared), Err(FileCode::NotDeclared)]);
    let mut wrong = bench.fill("a", "1");
    wrong.sha256 = digest(b"2");
    assert_eq!(actions(client.write("forge", plan, vec![wrong]).await), [Err(FileCode::HashMismatch)]);
    assert!(fs::read_dir(bench.at("root")).unwrap().next().is_none());
    engine.stop().await;
}

#[actix::test]
async fn an_old_plan_and_an_unknown_module_are_told_after_a_wait() {
    let bench = Bench::new();
    bench.declare("forge", &bench.files(&["a"]));
    let engine = bench.start().await;
    let (mut one, mut other) = (bench.connect().await, bench.connect().await);
    let old = one.write("forge", Digest::of(b"old"), vec![bench.fill("a", "1")]);
    let unknown = other.write("nobody", Digest::of(b"old"), vec![bench.fill("a", "1")]);
    let (old, unknown) = tokio::join!(old, unknown);
    assert_eq!((code(old), code(unknown)), (RequestCode::Behind, RequestCode::UnknownModule));
    engine.stop().await;
}

#[actix::test]
async fn a_line_that_is_too_long_ends_the_connection() {
    let bench = Bench::new();
    let engine = bench.start().await;
    let mut client = bench.connect().await;
    let (read, mut write) = client.0.into_inner().into_split();
    let sending = actix_rt::spawn(async move {
        let chunk = vec![b'x'; 1 << 20];
        for _ in 0..=LIMITS.max_bytes >> 20 {
            if write.write_all(&chunk).await.is_err() {
                break;
            }
        }
        write
    });
    let mut line = String::new();
    let mut read = BufReader::new(read);
    read.read_line(&mut line).await.unwrap();
    assert_eq!(code(Reply::read(line.trim_end().as_bytes()).unwrap().body), RequestCode::TooLarge);
    drop(sending.await.unwrap());
    line.clear();
    assert_eq!(read.read_line(&mut line).await.unwrap_or(0), 0);
    client = bench.connect().await;
    client.send(b"{}\n").await;
    assert!(client.reply().await.is_some(), "others are answered");
    engine.stop().await;
}

#[actix::test]
async fn another_account_is_not_listened_to() {
    let mut bench = Bench::new();
    bench.client = (rustix::process::geteuid().as_raw() + 1).to_string();
    let engine = bench.start().await;
    let mut client = bench.connect().await;
    let _ = client.0.get_mut().write_all(b"{\"id\":1,\"op\":\"hello\",\"protocol\":1}\n").await;
    assert!(client.reply().await.is_none());
    engine.stop().await;
}

#[actix::test]
async fn an_engine_without_its_account_does_not_start() {
    let mut bench = Bench::new();
    bench.client = "nobody-of-that-name".to_owned();
    let (_keep, _) = watch::channel(());
    let settings = Settings {
        node: "web1".to_owned(),
        state: bench.at("state"),
        socket: bench.at("run/fill.sock"),
        roots: Vec::new(),
        commands: None,
        client: bench.client.clone(),
        source: Source::Folder { folder: bench.at("declared"), every: Duration::from_secs(1) },
        user_units: false,
        metrics: None,
    };
    let error = super::run(settings, |_| (), std::future::pending()).await.unwrap_err();
    assert!(error.is_configuration(), "{error}");
}
