//! The servers of one connection: what arrives goes to the right server, what a server wants done is done.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, Message, Subscriber};
use futures::StreamExt as _;
use futures::stream::SelectAll;
use quartermaster_proto::choria::envelope::{OpenRequest, open_request};
use quartermaster_proto::choria::subject;
use tokio::sync::{Barrier, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::connection::{ConnectError, Dialer, Login};
use super::ledger::Ledger;
use super::server::{AGENTS, Action, COLLECTIVE, Server, Serving};
use crate::clock;

/// Servers handled before the task lets others run and the lock go.
const BATCH: usize = 256;

/// The servers that share one connection.
#[derive(Debug)]
pub(super) struct Group {
    servers: Mutex<Vec<Server>>,
    index: HashMap<String, usize>,
    orders: mpsc::Sender<(usize, Order)>,
}

/// What befalls a server from outside.
#[derive(Debug, Clone, Copy)]
pub(super) enum Order {
    /// Its power is cut, and comes back after this long; none: never.
    CutPower { down: Option<Duration> },
    /// It is started for the first time.
    PowerOn,
}

impl Group {
    pub(super) fn new(servers: Vec<Server>, orders: mpsc::Sender<(usize, Order)>) -> Self {
        let index = servers
            .iter()
            .enumerate()
            .map(|(position, server)| (server.identity().to_string(), position))
            .collect();
        Self { servers: Mutex::new(servers), index, orders }
    }

    /// Hands an order to the task; false when the server is not here or too many orders wait.
    pub(super) fn order(&self, identity: &str, order: Order) -> bool {
        self.index.get(identity).is_some_and(|position| self.orders.try_send((*position, order)).is_ok())
    }

    /// Calls `visit` with each server.
    pub(super) fn each(&self, mut visit: impl FnMut(&Server)) {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(&mut visit);
    }

    /// Calls `visit` with the named server, if it is here.
    pub(super) fn one<T>(&self, identity: &str, visit: impl FnOnce(&Server) -> T) -> Option<T> {
        let position = *self.index.get(identity)?;
        self.servers.lock().unwrap_or_else(PoisonError::into_inner).get(position).map(visit)
    }

    fn act(&self, position: usize, act: impl FnOnce(&mut Server) -> Vec<Action>) -> Vec<Action> {
        self.servers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_mut(position)
            .map(act)
            .unwrap_or_default()
    }

    fn len(&self) -> usize {
        self.index.len()
    }
}

/// How a group uses its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subscriptions {
    /// One subscription for each server, exactly as real ones.
    Exact,
    /// One wildcard for all servers there are: for a fleet on a single connection.
    Wildcard,
}

/// What one group's task works with.
pub(super) struct Task {
    pub(super) group: Arc<Group>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) dialer: Dialer,
    pub(super) subscriptions: Subscriptions,
    /// True when the connection belongs to one server and follows its life.
    pub(super) own: bool,
    /// Before the first server of this group starts.
    pub(super) delay: Duration,
    /// Start the servers evenly over this long.
    pub(super) ramp: Duration,
    /// Start nobody before all groups that share this are connected.
    pub(super) together: Option<Arc<Barrier>>,
    /// Start nobody before an order says so.
    pub(super) powered_off: bool,
    pub(super) orders: mpsc::Receiver<(usize, Order)>,
    pub(super) stop: CancellationToken,
}

enum Due {
    Publish(String, Vec<u8>),
    Wake(usize),
    Start(usize),
}

struct Live {
    client: Option<Client>,
    inbox: SelectAll<Subscriber>,
    timers: BTreeMap<(Instant, u64), Due>,
    next: u64,
}

impl Task {
    /// Runs until it is told to stop.
    pub(super) async fn run(self) -> Result<(), ConnectError> {
        let stop = self.stop.clone();
        Box::pin(stop.run_until_cancelled(self.work())).await.unwrap_or(Ok(()))
    }

    async fn work(mut self) -> Result<(), ConnectError> {
        let mut live = Live { client: None, inbox: SelectAll::new(), timers: BTreeMap::new(), next: 0 };
        if let Some(all) = self.together.take() {
            self.connect(&mut live).await?;
            all.wait().await;
            tokio::time::sleep(self.delay).await;
        } else {
            tokio::time::sleep(self.delay).await;
            self.connect(&mut live).await?;
        }
        if !self.powered_off {
            self.start(&mut live).await?;
        }
        loop {
            let due = live.timers.first_key_value().map(|((at, _), _)| *at);
            tokio::select! {
                Some(message) = live.inbox.next(), if !live.inbox.is_empty() => self.arrived(&mut live, message).await?,
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    self.fire(&mut live).await?;
                }
                Some((position, order)) = self.orders.recv() => {
                    let now = clock::now();
                    let actions = self.group.act(position, |server| match order {
                        Order::CutPower { down } => server.cut_power(down, now),
                        Order::PowerOn => server.power_on(now),
                    });
                    self.perform(&mut live, position, actions).await?;
                }
                else => {
                    // Nobody is left to wait for, and the task ends only when it is told to.
                    std::future::pending::<()>().await;
                }
            }
        }
    }

    /// Ends the connection as a process does that is no more.
    fn hang_up(&self, live: &mut Live) {
        live.inbox = SelectAll::new();
        if let Some(client) = live.client.take()
            && client.connection_state() == State::Connected
        {
            // A client that is dropped tells nobody.
            self.ledger.connection(false);
        }
    }

    async fn connect(&self, live: &mut Live) -> Result<(), ConnectError> {
        self.hang_up(live);
        let turn = self.dialer.turn().await;
        let name = self.group.index.keys().next().filter(|_| self.own).cloned();
        let client = self.dialer.connect(name, Login::Node).await?;
        for agent in AGENTS {
            live.inbox.push(subscribe(&client, subject::broadcast(COLLECTIVE, agent)).await?);
        }
        match self.subscriptions {
            Subscriptions::Wildcard => {
                live.inbox.push(subscribe(&client, format!("{COLLECTIVE}.node.>")).await?);
            }
            Subscriptions::Exact => {
                for identity in self.group.index.keys() {
                    live.inbox.push(subscribe(&client, format!("{COLLECTIVE}.node.{identity}")).await?);
                }
            }
        }
        // The events must not overtake the subscriptions: somebody may answer at once.
        self.dialer.up(&client, turn).await?;
        live.client = Some(client);
        Ok(())
    }

    async fn start(&self, live: &mut Live) -> Result<(), ConnectError> {
        let count = u32::try_from(self.group.len()).unwrap_or(u32::MAX).max(1);
        let begin = Instant::now();
        for position in 0..self.group.len() {
            let wait = self.ramp * u32::try_from(position).unwrap_or(u32::MAX) / count;
            if wait.is_zero() {
                let actions = self.group.act(position, |server| server.start(clock::now()));
                self.perform(live, position, actions).await?;
            } else {
                live.schedule_at(begin + wait, Due::Start(position));
            }
            if position % BATCH == BATCH - 1 {
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    async fn arrived(&self, live: &mut Live, message: Message) -> Result<(), ConnectError> {
        let Ok(open) = open_request(&message.payload) else {
            self.ledger.unreadable();
            return Ok(());
        };
        let node =
            message.subject.as_str().strip_prefix(COLLECTIVE).and_then(|rest| rest.strip_prefix(".node."));
        if let Some(identity) = node {
            // The wildcard sees the requests of other fleets on this broker too.
            let Some(position) = self.group.index.get(identity) else { return Ok(()) };
            return self.deliver(live, *position, &open).await;
        }
        for position in 0..self.group.len() {
            self.deliver(live, position, &open).await?;
            if position % BATCH == BATCH - 1 {
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    async fn deliver(
        &self,
        live: &mut Live,
        position: usize,
        open: &OpenRequest,
    ) -> Result<(), ConnectError> {
        let actions = self.group.act(position, |server| server.receive(open, clock::now()));
        self.perform(live, position, actions).await
    }

    async fn fire(&self, live: &mut Live) -> Result<(), ConnectError> {
        let now = Instant::now();
        while let Some(entry) = live.timers.first_entry() {
            if entry.key().0 > now {
                break;
            }
            match entry.remove() {
                Due::Publish(subject, payload) => self.publish(live, subject, payload).await,
                Due::Wake(position) => {
                    let actions = self.group.act(position, |server| server.wake(clock::now()));
                    self.perform(live, position, actions).await?;
                }
                Due::Start(position) => {
                    let actions = self.group.act(position, |server| server.start(clock::now()));
                    self.perform(live, position, actions).await?;
                }
            }
        }
        Ok(())
    }

    async fn perform(
        &self,
        live: &mut Live,
        position: usize,
        actions: Vec<Action>,
    ) -> Result<(), ConnectError> {
        for action in actions {
            match action {
                Action::Note(note) => self.ledger.note(note),
                Action::Publish { subject, payload, delay } if delay.is_zero() => {
                    self.publish(live, subject, payload).await;
                }
                Action::Publish { subject, payload, delay } => {
                    live.schedule(delay, Due::Publish(subject, payload));
                }
                Action::Wake(delay) => live.schedule(delay, Due::Wake(position)),
                // On a shared connection the others live on; a server that is gone answers nothing anyway.
                Action::Leave if self.own => {
                    // What was published just now shall still go out.
                    if let Some(client) = &live.client {
                        let _ = client.flush().await;
                    }
                    self.hang_up(live);
                }
                Action::ComeBack if self.own => self.connect(live).await?,
                Action::Serve(serving) if self.own => self.serve(live, serving).await?,
                Action::Leave | Action::ComeBack | Action::Serve(_) => {}
            }
        }
        Ok(())
    }

    /// Connects as the provisioned server and joins its collectives.
    async fn serve(&self, live: &mut Live, serving: Serving) -> Result<(), ConnectError> {
        self.hang_up(live);
        let login = match serving.login {
            Some((jwt, seed)) => Login::Server { jwt, seed },
            None => Login::None,
        };
        let turn = self.dialer.turn().await;
        let client = self.dialer.connect(Some(serving.identity.clone()), login).await?;
        for collective in &serving.collectives {
            for agent in ["discovery", "rpcutil", "choria_util"] {
                live.inbox.push(subscribe(&client, subject::broadcast(collective, agent)).await?);
            }
            live.inbox.push(subscribe(&client, format!("{collective}.node.{}", serving.identity)).await?);
        }
        self.dialer.up(&client, turn).await?;
        live.client = Some(client);
        Ok(())
    }

    async fn publish(&self, live: &Live, subject: String, payload: Vec<u8>) {
        let Some(client) = &live.client else { return };
        // A request without a reply address gets none.
        if subject.is_empty() {
            return;
        }
        if client.publish(subject, payload.into()).await.is_err() {
            self.ledger.unsendable();
        }
    }
}

impl Live {
    fn schedule(&mut self, delay: Duration, due: Due) {
        self.schedule_at(Instant::now() + delay, due);
    }

    fn schedule_at(&mut self, at: Instant, due: Due) {
        self.next += 1;
        self.timers.insert((at, self.next), due);
    }
}

async fn subscribe(client: &Client, subject: String) -> Result<Subscriber, ConnectError> {
    client.subscribe(subject).await.map_err(ConnectError::Subscribe)
}
