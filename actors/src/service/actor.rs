//! The Attendant: listens on every connection anew, hands requests on, sends their answers.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix::{Actor, AsyncContext, Context, WrapFuture};
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{BoxStream, SelectAll};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

use super::messages::{Lane, Reply, Request, ServiceSettings, ServiceSnapshot};
use super::micro::{Book, ERROR, ERROR_CODE, Verb};
use crate::link::{Asked, PublishFault, Session};
use crate::supervise::ExitNotice;

/// Only its owner writes to it; requests wait in the connection's subscriptions.
const MAILBOX: usize = 16;
/// Commands being carried out at once; one more is told to try again.
const COMMANDS: usize = 32;
/// Questions being answered at once.
const QUESTIONS: usize = 64;
/// How long subscribing may take, and the wait after it did not work.
const LISTEN_LIMIT: Duration = Duration::from_secs(10);
const LISTEN_AGAIN: Duration = Duration::from_secs(1);
/// The longest text in a header.
const MAX_HEADER: usize = 300;

/// What outlives one life.
#[derive(Debug, Clone)]
pub(super) struct Shared {
    pub(super) book: Arc<Mutex<Book>>,
    pub(super) state: Arc<watch::Sender<ServiceSnapshot>>,
}

/// The actor.
pub struct Attendant {
    desk: Desk,
    _notice: ExitNotice,
}

impl std::fmt::Debug for Attendant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attendant").finish_non_exhaustive()
    }
}

impl Attendant {
    pub(super) fn new(settings: Arc<ServiceSettings>, shared: Shared, notice: ExitNotice) -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        let desk = Desk { settings, shared, commands: places(COMMANDS), questions: places(QUESTIONS) };
        Self { desk, _notice: notice }
    }
}

impl Actor for Attendant {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        ctx.spawn(self.desk.clone().attend().into_actor(self));
    }
}

impl Drop for Attendant {
    fn drop(&mut self) {
        self.desk.listening(false);
    }
}

crate::supervised!(Attendant);

/// What a request is for.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    Protocol(Verb),
    Endpoint(usize),
}

type Arriving = SelectAll<BoxStream<'static, (Purpose, Asked)>>;

/// The subscriptions of one connection, by lane.
struct Lanes {
    commands: Arriving,
    questions: Arriving,
}

#[derive(Clone)]
struct Desk {
    settings: Arc<ServiceSettings>,
    shared: Shared,
    commands: Arc<Semaphore>,
    questions: Arc<Semaphore>,
}

impl Desk {
    /// Listens on one connection after another, for ever.
    async fn attend(self) {
        let mut sessions = self.settings.link.watch_client();
        while let Some(session) = sessions.session().await {
            let lanes = match tokio::time::timeout(LISTEN_LIMIT, self.listen(session.as_ref())).await {
                Ok(Ok(lanes)) => lanes,
                Ok(Err(fault)) => {
                    tracing::warn!(component = "control", "The control service does not listen: {fault}");
                    tokio::time::sleep(LISTEN_AGAIN).await;
                    continue;
                }
                Err(_) => {
                    tracing::warn!(component = "control", "The control service could not listen in time");
                    continue;
                }
            };
            self.listening(true);
            tokio::select! {
                () = sessions.changed() => {}
                () = self.take(lanes, &session) => {}
            }
            self.listening(false);
        }
    }

    async fn listen(&self, session: &dyn Session) -> Result<Lanes, PublishFault> {
        let mut lanes = Lanes { commands: SelectAll::new(), questions: SelectAll::new() };
        let ServiceSettings { name, prefix, instance, endpoints, .. } = self.settings.as_ref();
        for (number, endpoint) in endpoints.iter().enumerate() {
            let everybody = format!("{prefix}.{}", endpoint.name);
            for subject in [format!("{everybody}.{instance}"), everybody] {
                let asked = session.listen(subject).await?;
                let asked = asked.map(move |asked| (Purpose::Endpoint(number), asked)).boxed();
                match endpoint.lane {
                    Lane::Command => lanes.commands.push(asked),
                    Lane::Question => lanes.questions.push(asked),
                }
            }
        }
        let id = self.book().id().to_owned();
        for verb in Verb::ALL {
            for subject in verb.subjects(name, &id) {
                let asked = session.listen(subject).await?;
                lanes.questions.push(asked.map(move |asked| (Purpose::Protocol(verb), asked)).boxed());
            }
        }
        session.flush().await?;
        Ok(lanes)
    }

    /// Takes in requests, each lane for itself, so that nothing on the one holds up the other. Ends never: the end of a
    /// connection shows elsewhere.
    async fn take(&self, lanes: Lanes, session: &Arc<dyn Session>) {
        futures::join!(self.take_lane(lanes.commands, session), self.take_lane(lanes.questions, session));
        std::future::pending::<()>().await;
    }

    async fn take_lane(&self, mut lane: Arriving, session: &Arc<dyn Session>) {
        while let Some((purpose, asked)) = lane.next().await {
            match purpose {
                Purpose::Protocol(verb) => {
                    let answer = self.book().answer(verb);
                    respond(session.as_ref(), asked.reply, Reply::Answer(answer)).await;
                }
                Purpose::Endpoint(number) => self.hand_on(number, asked, session).await,
            }
        }
    }

    /// Lets a request be answered beside the others, or refuses it when too many are.
    async fn hand_on(&self, number: usize, asked: Asked, session: &Arc<dyn Session>) {
        let Some(endpoint) = self.settings.endpoints.get(number) else { return };
        let places = match endpoint.lane {
            Lane::Command => &self.commands,
            // Nobody would learn the answer.
            Lane::Question if asked.reply.is_none() => return,
            Lane::Question => &self.questions,
        };
        let Ok(place) = Arc::clone(places).try_acquire_owned() else {
            self.book().note(number, Duration::ZERO, Some("too many requests are under way".to_owned()));
            return respond(session.as_ref(), asked.reply, self.settings.busy.clone()).await;
        };
        let request =
            Request { endpoint: endpoint.name, payload: asked.payload, most: session.max_payload() };
        let work = UnderWay::begin(&self.shared, place);
        let (answering, session) = ((self.settings.handler)(request), Arc::clone(session));
        // In a task of its own: a panic costs this one request.
        actix_rt::spawn(async move {
            let began = Instant::now();
            let reply = answering.await;
            let error = match &reply {
                Reply::Answer(_) => None,
                Reply::Fault { status, text, .. } => Some(format!("{status}:{text}")),
            };
            work.shared.book.lock().unwrap_or_else(PoisonError::into_inner).note(
                number,
                began.elapsed(),
                error,
            );
            respond(session.as_ref(), asked.reply, reply).await;
            // Written out before it counts as done: the process may be waiting for that to end.
            if session.flush().await.is_err() {
                tracing::debug!(component = "control", "the connection ended before an answer was sent");
            }
            drop(work);
        });
    }

    fn book(&self) -> std::sync::MutexGuard<'_, Book> {
        // Numbers that a panic left behind are numbers all the same.
        self.shared.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listening(&self, listening: bool) {
        let before = self.shared.state.borrow().listening;
        self.shared.state.send_modify(|state| state.listening = listening);
        if listening && !before {
            let prefix = &self.settings.prefix;
            tracing::info!(component = "control", "The control service listens on {prefix}.>");
        }
    }
}

/// A request that is being answered.
struct UnderWay {
    shared: Shared,
    _place: OwnedSemaphorePermit,
}

impl UnderWay {
    fn begin(shared: &Shared, place: OwnedSemaphorePermit) -> Self {
        shared.state.send_modify(|state| state.under_way = state.under_way.saturating_add(1));
        Self { shared: shared.clone(), _place: place }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.shared.state.send_modify(|state| state.under_way = state.under_way.saturating_sub(1));
    }
}

/// Sends an answer. What fails here fails with the connection, and whoever asked notices that.
async fn respond(session: &dyn Session, to: Option<String>, reply: Reply) {
    let Some(to) = to else { return };
    let (headers, payload): (Vec<(&'static str, String)>, Bytes) = match reply {
        Reply::Answer(payload) => (Vec::new(), payload),
        Reply::Fault { status, text, body } => {
            let text = quartermaster_proto::text::escape_bounded(&text, MAX_HEADER);
            (vec![(ERROR, text), (ERROR_CODE, status.to_string())], body)
        }
    };
    if let Err(fault) = session.answer(to, headers, payload).await {
        tracing::debug!(component = "control", "an answer was not sent: {fault}");
    }
}
