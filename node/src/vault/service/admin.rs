//! The actor that listens to operators: root, and the account the vault itself runs as.

use std::os::unix::net::UnixListener;
use std::sync::Arc;

use actix::{Actor, ActorContext as _, AsyncContext as _, Context, Handler, WrapFuture as _};
use quartermaster_actors::supervise::{Birth, ExitNotice, Liveness, Ping, Stop};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;

use super::elsewhere::Elsewhere;
use super::server::Shared;
use super::wire::{AdminReply, AdminRequest};
use crate::lines::Lines;
use crate::peers;
use crate::vault::{AdminError, Vault};

/// Its mailbox: pings, and nothing else.
const MAILBOX: usize = 4;
/// Connections at once; one more waits until one of them ends.
const MAX_CONNECTIONS: usize = 8;
/// Longest line, in bytes: a value in base64 with its name, or a long list.
pub(super) const MAX_LINE: usize = 16 * 1024 * 1024;

/// Answers operators.
pub(super) struct AdminListener {
    socket: Arc<UnixListener>,
    shared: Arc<Shared>,
    notice: ExitNotice,
}

impl AdminListener {
    pub(super) fn new(socket: Arc<UnixListener>, shared: Arc<Shared>, birth: Birth) -> Self {
        Self { socket, shared, notice: birth.notice }
    }
}

impl Actor for AdminListener {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        match self.socket.try_clone().and_then(tokio::net::UnixListener::from_std) {
            Ok(listener) => {
                ctx.spawn(serve(listener, Arc::clone(&self.shared)).into_actor(self));
            }
            Err(error) => {
                self.notice.fail(format!("the socket cannot be listened on: {error}"));
                ctx.stop();
            }
        }
    }
}

impl Handler<Ping> for AdminListener {
    type Result = Liveness;

    fn handle(&mut self, Ping: Ping, _: &mut Self::Context) -> Liveness {
        Liveness::Alive
    }
}

impl Handler<Stop> for AdminListener {
    type Result = ();

    fn handle(&mut self, Stop: Stop, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

async fn serve(listener: tokio::net::UnixListener, shared: Arc<Shared>) {
    let own = rustix::process::geteuid().as_raw();
    let may = |uid| uid == 0 || uid == own;
    peers::serve(listener, MAX_CONNECTIONS, may, |stream| converse(stream, Arc::clone(&shared))).await;
}

async fn converse(stream: UnixStream, shared: Arc<Shared>) {
    let (read, mut write) = stream.into_split();
    let mut lines = Lines::new(read, MAX_LINE);
    while let Ok(Some(line)) = lines.next().await {
        let reply = match serde_json::from_slice::<AdminRequest>(&line) {
            Ok(request) => {
                let now = shared.now();
                let done = if let Some(kv) = &shared.kv {
                    Elsewhere { shared: &shared, kv, now }.admin(request).await
                } else {
                    let done = shared.on_disk(move |vault| answer(vault, request, now)).await;
                    done.unwrap_or_else(AdminReply::Error)
                };
                shared.has_changed();
                done
            }
            // What is wrong with a line may repeat what is in it.
            Err(_) => AdminReply::Error("the request is none".to_owned()),
        };
        drop(line);
        let mut text = serde_json::to_vec(&reply).unwrap_or_default();
        text.push(b'\n');
        if write.write_all(&text).await.is_err() {
            return;
        }
    }
}

fn answer(vault: &mut Vault, request: AdminRequest, now: quartermaster_proto::time::WallClock) -> AdminReply {
    let done: Result<AdminReply, AdminError> = match request {
        AdminRequest::Set { name, value } => vault.set(&name, &value.0, now).map(AdminReply::Version),
        AdminRequest::Rotate { name, random } => vault.rotate(&name, random, now).map(AdminReply::Version),
        AdminRequest::Delete { name } => vault.delete(&name, now).map(|()| AdminReply::Deleted(name)),
        AdminRequest::List => Ok(AdminReply::Values(
            vault.list().into_iter().map(|listed| (listed.name, listed.version)).collect(),
        )),
        AdminRequest::Key => Ok(AdminReply::BoxKey(vault.public_box_key())),
    };
    done.unwrap_or_else(|error| {
        tracing::warn!(error = &error as &dyn std::error::Error, "an operator's wish was not done");
        AdminReply::Error(error.to_string())
    })
}
