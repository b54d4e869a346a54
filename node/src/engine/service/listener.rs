//! The actor that listens: connections, their lines, and answers in order.

use std::os::unix::net::UnixListener;
use std::sync::Arc;

use actix::{Actor, ActorContext as _, AsyncContext as _, Context, Handler, WrapFuture as _};
use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::FuturesOrdered;
use quartermaster_actors::supervise::{Birth, ExitNotice, Liveness, Ping, Stop};
use quartermaster_proto::mesh::fill::{Body, Hello, LIMITS, Op, PROTOCOL, Reply, Request, RequestCode};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::sync::{Semaphore, mpsc};

use super::handle::EngineHandle;
use crate::engine::wire;
use crate::lines::{LineError, Lines};
use crate::peers;

/// Its mailbox: pings, and nothing else.
const MAILBOX: usize = 4;
/// Connections at once; one more waits until one of them ends.
const MAX_CONNECTIONS: usize = 8;
/// Requests of one connection that are under way at once.
const MAX_AHEAD: usize = 16;
/// What all lines that are under way may hold together, in KiB.
const MAX_KIB: usize = 192 * 1024;

/// What every connection needs.
#[derive(Debug, Clone)]
pub(super) struct Audience {
    /// The machine's name.
    pub(super) node: String,
    /// The only account that is listened to.
    pub(super) client: u32,
    /// Who writes.
    pub(super) engine: EngineHandle,
}

/// Accepts connections of the client's account and speaks with them.
pub(super) struct FillListener {
    socket: Arc<UnixListener>,
    audience: Audience,
    notice: ExitNotice,
}

impl FillListener {
    pub(super) fn new(socket: Arc<UnixListener>, audience: Audience, birth: Birth) -> Self {
        Self { socket, audience, notice: birth.notice }
    }
}

impl Actor for FillListener {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        // Each life registers the socket with its own thread.
        let listener = self.socket.try_clone().and_then(tokio::net::UnixListener::from_std);
        match listener {
            Ok(listener) => {
                ctx.spawn(serve(listener, self.audience.clone()).into_actor(self));
            }
            Err(error) => {
                self.notice.fail(format!("the socket cannot be listened on: {error}"));
                ctx.stop();
            }
        }
    }
}

impl Handler<Ping> for FillListener {
    type Result = Liveness;

    fn handle(&mut self, Ping: Ping, _: &mut Self::Context) -> Liveness {
        Liveness::Alive
    }
}

impl Handler<Stop> for FillListener {
    type Result = ();

    fn handle(&mut self, Stop: Stop, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

async fn serve(listener: tokio::net::UnixListener, audience: Audience) {
    let client = audience.client;
    peers::serve(listener, MAX_CONNECTIONS, |uid| uid == client, |stream| converse(stream, audience.clone()))
        .await;
}

/// One connection: lines are read ahead, answers leave in the order of their requests.
async fn converse(stream: UnixStream, audience: Audience) {
    let (read, mut write) = stream.into_split();
    let (hand_on, mut handed) = mpsc::channel::<BoxFuture<'static, Reply>>(1);
    let reading = async move {
        let mut lines = Lines::new(read, LIMITS.max_bytes);
        let room = Arc::new(Semaphore::new(MAX_KIB));
        loop {
            let line = match lines.next().await {
                Ok(Some(line)) => line,
                Ok(None) => return,
                Err(LineError::Io(error)) => {
                    tracing::debug!(%error, "a connection broke");
                    return;
                }
                Err(error @ LineError::TooLong { .. }) => {
                    let body = wire::failed(RequestCode::TooLarge, error.to_string());
                    // What follows cannot be told from the rest of the line, so this is the last answer.
                    let _ = hand_on.send(std::future::ready(Reply { id: 0, body }).boxed()).await;
                    return;
                }
            };
            let kib = u32::try_from(line.len() / 1024 + 1).unwrap_or(u32::MAX);
            let Ok(permit) = Arc::clone(&room).acquire_many_owned(kib).await else { return };
            let audience = audience.clone();
            let answer = async move {
                let reply = answer(Request::read(&line), &audience);
                drop(line);
                let reply = reply.await;
                drop(permit);
                reply
            };
            if hand_on.send(answer.boxed()).await.is_err() {
                return;
            }
        }
    };
    let writing = async move {
        let mut answers = FuturesOrdered::new();
        let mut is_open = true;
        while is_open || !answers.is_empty() {
            tokio::select! {
                next = handed.recv(), if is_open && answers.len() < MAX_AHEAD => match next {
                    Some(answer) => answers.push_back(answer),
                    None => is_open = false,
                },
                Some(reply) = answers.next(), if !answers.is_empty() => {
                    if write.write_all(&reply.encode()).await.is_err() {
                        return;
                    }
                }
            }
        }
    };
    // Whoever ends first ends both: a reader without a writer has nobody to answer, and the other way round the last
    // answers are still written, because the writer ends only after them.
    tokio::select! {
        () = writing => {}
        () = async { reading.await; std::future::pending::<()>().await } => {}
    }
}

async fn answer(
    request: Result<Request, (Option<u64>, quartermaster_proto::mesh::Fault)>,
    audience: &Audience,
) -> Reply {
    let (id, op) = match request {
        Ok(request) => (request.id, request.op),
        Err((id, fault)) => {
            let body = wire::failed(RequestCode::BadRequest, fault.to_string());
            return Reply { id: id.unwrap_or_default(), body };
        }
    };
    let body = match op {
        Op::Hello { protocol: PROTOCOL } => {
            Body::Hello(Hello { protocol: PROTOCOL, node: audience.node.clone() })
        }
        Op::Hello { .. } => wire::failed(RequestCode::BadRequest, format!("speaks protocol {PROTOCOL}")),
        Op::Write(write) => audience.engine.write(write).await,
    };
    Reply { id, body }
}
