//! The messages as frames over a pair of streams: a pipe of the standard streams, or one inside this process.

use std::collections::HashMap;
use std::io;

use actix::MailboxError;
use futures::future::LocalBoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use quartermaster_proto::provider::{
    Body, Call, CallId, ErrorCode, FrameError, Incoming, Limits, Lines, Overlong, ProviderError, Reply,
    Request, RequestError, decode_incoming, encode_reply,
};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::handle::BuiltinHandle;

/// The bounds of a frame.
const LIMITS: Limits = Limits::PROVIDER;
/// Bytes taken at once.
const CHUNK: usize = 16 * 1024;
/// Calls open at once; nothing more is read until one has ended.
const OPEN: usize = 64;

/// Why a conversation ended before it was to.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A stream failed.
    #[error("the streams cannot be used")]
    Stream(#[from] io::Error),
    /// A line was too long.
    #[error("a line cannot be read")]
    Line(#[source] FrameError),
    /// The builtin has failed.
    #[error("the builtin has failed")]
    Gone(#[from] MailboxError),
}

type Answer = (CallId, Result<Body, MailboxError>);

/// Calls that have been asked and not been answered yet; dropping them calls them off.
struct Open {
    calls: FuturesUnordered<LocalBoxFuture<'static, Answer>>,
    stops: HashMap<CallId, CancellationToken>,
    all: CancellationToken,
    _dropped: DropGuard,
}

impl Open {
    fn new() -> Self {
        let all = CancellationToken::new();
        Self {
            calls: FuturesUnordered::new(),
            stops: HashMap::new(),
            all: all.clone(),
            _dropped: all.drop_guard(),
        }
    }

    fn ask(&mut self, provider: &BuiltinHandle, Request { id, call }: Request) {
        let (provider, stop) = (provider.clone(), self.all.child_token());
        self.stops.insert(id, stop.clone());
        self.calls.push(Box::pin(async move { (id, ask(&provider, call, stop).await) }));
    }

    fn refuse(&mut self, id: CallId, error: ProviderError) {
        self.calls.push(Box::pin(std::future::ready((id, Ok(Body::Error(Box::new(error)))))));
    }
}

/// Answers requests until the host asks for the end or the input ends. What is open then is called off.
///
/// # Errors
/// The streams fail, or the builtin does.
pub async fn serve(
    provider: BuiltinHandle,
    mut input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
) -> Result<(), ServeError> {
    let mut lines = Lines::new(LIMITS.max_bytes, Overlong::Refuse);
    let mut open = Open::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        tokio::select! {
            read = input.read(&mut chunk), if open.calls.len() < OPEN => {
                let read = read?;
                if read == 0 {
                    return Ok(());
                }
                lines.push(chunk.get(..read).unwrap_or_default());
                while let Some(line) = lines.next_line() {
                    if let Some(last) = take(&provider, &mut open, &line.map_err(ServeError::Line)?) {
                        provider.shutdown().await?;
                        return Ok(answer(&mut output, last, Body::empty()).await?);
                    }
                }
            }
            Some((id, body)) = open.calls.next() => {
                open.stops.remove(&id);
                answer(&mut output, id, body?).await?;
            }
        }
    }
}

/// Takes one line. The id of the request for the end, if it was that.
fn take(provider: &BuiltinHandle, open: &mut Open, line: &[u8]) -> Option<CallId> {
    match decode_incoming(line, &LIMITS) {
        Ok(Incoming::Request(Request { id, call: Call::Shutdown })) => return Some(id),
        Ok(Incoming::Request(request)) => open.ask(provider, request),
        Ok(Incoming::Cancel(cancel)) => {
            if let Some(stop) = open.stops.get(&cancel.id) {
                stop.cancel();
            }
        }
        Err(RequestError { id: Some(id), error }) => open.refuse(id, error),
        Ok(Incoming::Blank | Incoming::Unknown) | Err(_) => {}
    }
    None
}

async fn ask(provider: &BuiltinHandle, call: Call, stop: CancellationToken) -> Result<Body, MailboxError> {
    let result = match call {
        Call::Describe => return Ok(Body::described(&*provider.describe().await?)),
        Call::Configure(configure) => provider.configure(configure.config).await?.map(|()| Body::empty()),
        Call::Execute(call) => provider.execute(call, stop).await?.map(Body::executed),
        other => {
            let message = format!("no such method: {}", other.method());
            Err(ProviderError::new(ErrorCode::UnknownMethod, message))
        }
    };
    Ok(result.unwrap_or_else(|error| Body::Error(Box::new(error))))
}

async fn answer(output: &mut (impl AsyncWrite + Unpin), id: CallId, body: Body) -> io::Result<()> {
    let bytes = encode_reply(&Reply { id, body }, &LIMITS).or_else(|error| {
        let error = ProviderError::new(ErrorCode::Internal, error.to_string());
        encode_reply(&Reply { id, body: Body::Error(Box::new(error)) }, &LIMITS)
    });
    output.write_all(&bytes.map_err(io::Error::other)?).await?;
    output.flush().await
}
