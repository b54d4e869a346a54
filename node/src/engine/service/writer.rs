//! The keeper of files with everything around one request: what is declared, who is told, what is shown.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quartermaster_proto::mesh::fill::{Body, RequestCode, Write};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::EngineMetrics;
use super::status::Status;
use crate::engine::declaration::{Declaration, Declarations, Standing};
use crate::engine::fault::Fault;
use crate::engine::keeper::Keeper;
use crate::engine::ledger::Owed;
use crate::engine::program::{Program, Runner, Told, in_order};
use crate::engine::wire;

/// How long a request waits for a declaration that is not here yet.
const BEHIND_WAIT: Duration = Duration::from_secs(5);

/// How often the status is written at most.
const SHOW_EVERY: Duration = Duration::from_secs(1);
/// After how long a status that was due is no longer waited for.
const SHOW_LOST: Duration = Duration::from_secs(10);

/// What is declared, as it changes; none until it is known for the first time.
pub(super) type Declared = watch::Receiver<Option<Arc<Declarations>>>;

/// When the status was written, and when it will be.
#[derive(Debug, Default)]
struct Shown {
    last: Option<Instant>,
    due: Option<Instant>,
}

/// Shared by every life of the actor: the ledger's file can be open only once.
#[derive(Debug)]
pub(super) struct Writer {
    keeper: Mutex<Keeper>,
    status: Mutex<Status>,
    state: PathBuf,
    shown: Mutex<Shown>,
    declared: Declared,
    runner: Arc<dyn Runner>,
    /// What is counted.
    metrics: Option<EngineMetrics>,
    /// One turn a module: its programs are told of one change after the other.
    turns: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>,
    /// Dropped last, when the ledger is closed.
    _closing: oneshot::Sender<()>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Writer {
    pub(super) fn new(
        node: &str,
        keeper: Keeper,
        state: PathBuf,
        declared: Declared,
        (runner, metrics): (Arc<dyn Runner>, Option<EngineMetrics>),
        closing: oneshot::Sender<()>,
    ) -> Self {
        let status = Status { node: node.to_owned(), ..Status::default() };
        let (keeper, status) = (Mutex::new(keeper), Mutex::new(status));
        let (turns, shown) = (Mutex::default(), Mutex::default());
        Self { keeper, status, state, shown, declared, runner, metrics, turns, _closing: closing }
    }

    /// Runs something that waits on the disk beside the actor's own thread.
    async fn on_disk<T: Send + 'static>(
        self: &Arc<Self>,
        act: impl FnOnce(&mut Keeper) -> T + Send + 'static,
    ) -> Result<T, String> {
        let me = Arc::clone(self);
        tokio::task::spawn_blocking(move || act(&mut held(&me.keeper)))
            .await
            .map_err(|error| if error.is_panic() { "it panicked".to_owned() } else { error.to_string() })
    }

    /// Waits until a request and what is declared mean the same; at most for a while.
    async fn standing(&self, write: &Write) -> Result<(Arc<Declarations>, Arc<Declaration>), Body> {
        let mut declared = self.declared.clone();
        let until = Instant::now() + BEHIND_WAIT;
        loop {
            let known = declared.borrow_and_update().clone();
            let refusal = match &known {
                None => wire::failed(RequestCode::Behind, "knows no declarations yet"),
                Some(known) => match known.standing(&write.module, &write.plan.to_string(), write.revision) {
                    Standing::Same(declaration) => return Ok((Arc::clone(known), Arc::clone(declaration))),
                    Standing::Unknown => {
                        wire::failed(RequestCode::UnknownModule, "the module is not declared here")
                    }
                    Standing::Behind(0) => wire::failed(RequestCode::Behind, "knows another plan"),
                    Standing::Behind(known) => {
                        wire::failed(RequestCode::Behind, format!("knows revision {known}"))
                    }
                    Standing::Stale(known) => {
                        let reason = format!("knows revision {known}");
                        return Err(wire::failed(RequestCode::Stale, reason));
                    }
                },
            };
            match tokio::time::timeout_at(until, declared.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return Err(refusal),
            }
        }
    }

    /// Does what a request asks.
    pub(super) async fn write(self: Arc<Self>, write: Write) -> Body {
        let (declarations, declaration) = match self.standing(&write).await {
            Ok(known) => known,
            Err(refusal) => return refusal,
        };
        let module = declaration.module.clone();
        let files: Vec<_> = write.files.into_iter().map(wire::filled).collect();
        let (declared, since) = (self.declared.clone(), Instant::now());
        let done = self.on_disk(move |keeper| {
            // What changed meanwhile may have been acted upon: nothing is written that it no longer names.
            let is_still_so = declared
                .borrow()
                .as_deref()
                .is_some_and(|now| now.of(&declaration.module) == Some(&declaration));
            is_still_so.then(|| keeper.write(&declarations, &declaration, &files))
        });
        let outcomes = match done.await {
            Ok(None) => return wire::failed(RequestCode::Behind, "the declaration has just changed"),
            Ok(Some(Ok(outcomes))) => outcomes,
            Ok(Some(Err(error))) => {
                tracing::error!(module, error = &error as &dyn std::error::Error, "nothing was written");
                return wire::failed(RequestCode::Behind, error.to_string());
            }
            Err(why) => {
                tracing::error!(module, why, "writing failed");
                return wire::failed(RequestCode::Behind, "the writing failed");
            }
        };
        if let Some(metrics) = &self.metrics {
            metrics.wrote(&outcomes, since.elapsed().as_secs_f64());
        }
        for outcome in &outcomes {
            log(&module, &outcome.path, outcome.done.as_ref().map(|done| done.action));
        }
        let has_changed =
            outcomes.iter().any(|outcome| outcome.done.as_ref().is_ok_and(|done| done.action.is_change()));
        let told = self.settle(&module).await;
        if has_changed || !told.is_empty() {
            self.show();
        }
        wire::written(outcomes, told)
    }

    /// Tells the programs of a module what they have yet to be told.
    async fn settle(self: &Arc<Self>, module: &str) -> Vec<(Program, Told)> {
        if held(&self.keeper).owed_by(module).is_empty() {
            return Vec::new();
        }
        let turn = Arc::clone(held(&self.turns).entry(module.to_owned()).or_default());
        let _turn = turn.lock().await;
        let owed = held(&self.keeper).owed_by(module);
        let programs: Vec<Program> = owed.iter().map(|owed| owed.program.clone()).collect();
        let mut results = Vec::new();
        let mut settled: Vec<Owed> = Vec::new();
        for program in in_order(&programs) {
            let told = self.runner.tell(program.clone()).await;
            if let Some(metrics) = &self.metrics {
                metrics.told(&told);
            }
            if let Told::Failed(why) = &told {
                tracing::warn!(
                    module,
                    ?program,
                    why,
                    "a program could not be told of a change; it stays owed"
                );
            } else {
                settled.extend(owed.iter().filter(|owed| is_settled(&owed.program, &program)).cloned());
            }
            results.push((program, told));
        }
        match self.on_disk(move |keeper| keeper.told(settled)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::error!(
                    module,
                    error = &error as &dyn std::error::Error,
                    "a program will be told once more"
                );
            }
            Err(why) => tracing::error!(module, why, "a program will be told once more"),
        }
        results
    }

    /// Tells every program that has yet to be told.
    pub(super) async fn settle_all(self: Arc<Self>) {
        let debtors: Vec<String> =
            held(&self.keeper).ledger().debtors().into_iter().map(str::to_owned).collect();
        for module in &debtors {
            self.settle(module).await;
        }
        if !debtors.is_empty() {
            self.show();
        }
    }

    /// Takes away what is no longer declared.
    pub(super) async fn take_away(self: Arc<Self>, declarations: Arc<Declarations>) {
        if !declarations.is_sure() {
            return;
        }
        match self.on_disk(move |keeper| keeper.take_away(&declarations)).await {
            Ok(Ok(taken)) => {
                for taken in &taken {
                    match &taken.done {
                        Ok(how) => tracing::info!(
                            module = taken.module,
                            path = taken.path,
                            ?how,
                            "no longer declared"
                        ),
                        Err(fault) => tracing::warn!(
                            module = taken.module, path = taken.path, %fault,
                            "no longer declared, but it cannot be taken away"
                        ),
                    }
                    held(&self.status).note(taken);
                }
            }
            Ok(Err(error)) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "taking away what is not declared failed"
                );
            }
            Err(why) => tracing::error!(why, "taking away what is not declared failed"),
        }
        self.show();
    }

    /// Has the status file written: soon, but not more than once in a while, since it tells of every file of the machine.
    fn show(self: &Arc<Self>) {
        let due = {
            let now = Instant::now();
            let mut shown = held(&self.shown);
            // One that has been due for long went with the thread it was to be written on.
            if shown.due.is_some_and(|due| now < due + SHOW_LOST) {
                return;
            }
            let due = shown.last.map_or(now, |last| now.max(last + SHOW_EVERY));
            shown.due = Some(due);
            due
        };
        let me = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep_until(due).await;
            if let Some(me) = me.upgrade() {
                me.show_now().await;
            }
        });
    }

    async fn show_now(self: &Arc<Self>) {
        *held(&self.shown) = Shown { due: None, last: Some(Instant::now()) };
        let me = Arc::clone(self);
        let status = self.on_disk(move |keeper| {
            let declared = me.declared.borrow().clone();
            let mut status = held(&me.status).clone();
            status.refresh(keeper.ledger(), declared.as_deref());
            if let Some(metrics) = &me.metrics {
                metrics.stands(status.modules.len(), status.modules.values().map(|module| module.owed).sum());
            }
            status
        });
        let Ok(status) = status.await else { return };
        let state = self.state.clone();
        let written = tokio::task::spawn_blocking(move || status.write(&state)).await;
        if let Ok(Err(error)) = written {
            tracing::warn!(%error, "the engine's status cannot be shown");
        }
    }
}

/// True when telling `told` settles what is owed to `owed`: a restart settles the reload of the same unit.
fn is_settled(owed: &Program, told: &Program) -> bool {
    let unit = |program: &Program| match program {
        Program::Restart { unit, .. } | Program::Reload { unit, .. } => Some(unit.clone()),
        Program::Command(_) => None,
    };
    owed == told || (unit(owed).is_some() && unit(owed) == unit(told))
}

fn log(module: &str, path: &str, done: Result<crate::engine::plan::Action, &Fault>) {
    match done {
        Ok(action) if action.is_change() => tracing::info!(module, path, ?action, "file"),
        Ok(action) => tracing::trace!(module, path, ?action, "file"),
        Err(fault) => {
            tracing::warn!(module, path, code = fault.code.as_str(), %fault, "a file was not written");
        }
    }
}
