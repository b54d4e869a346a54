//! The steps of one run: several at a time, each as soon as what it refers to is done.

use std::cell::RefCell;
use std::path::Path;
use std::time::Instant;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use quartermaster_actors::expression::Partial;
use quartermaster_actors::steps::{About, CallEnd, Going, Input, Kind, Move, Record, Step as StepMove};
use quartermaster_proto::provider::{Executed, Invocation, Members, ProviderError, Value};

use super::carry::{Carrier, at, ms_since};
use super::check::{Attributes, Checked, Step};
use super::event::Event;
use super::fault::Faults;
use super::record::{KeeperError, Line};
use super::schedule::{OnFailure, Schedule, Stage};
use super::stop::Stop;
use super::world::{Known, World};

/// The most steps at a time; each provider has a bound of its own.
const MOST: usize = 64;

/// A run under way.
#[derive(Debug)]
pub struct Running<'a> {
    carrier: Carrier<'a>,
    checked: &'a Checked,
    folder: &'a Path,
    run: &'a str,
    /// Answers are recorded, so undos are asked for.
    recorded: bool,
    world: RefCell<World>,
}

/// How the steps of a run ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Steps that were done.
    pub done: usize,
    /// Steps that were not, or are not known to be.
    pub failed: usize,
    /// Steps that were never begun.
    pub skipped: usize,
}

impl<'a> Running<'a> {
    /// A run of these steps, of which none has begun.
    pub fn new(
        carrier: Carrier<'a>,
        checked: &'a Checked,
        folder: &'a Path,
        run: &'a str,
        recorded: bool,
    ) -> Self {
        let mut world = checked.world.clone();
        // What is not done has no outputs; nothing that is begun refers to it.
        world.outputs.clear();
        Self { carrier, checked, folder, run, recorded, world: RefCell::new(world) }
    }

    /// Does them.
    ///
    /// # Errors
    /// The record cannot be written.
    pub async fn all(&self, on_failure: OnFailure, stop: &Stop) -> Result<Tally, KeeperError> {
        let mut schedule =
            Schedule::new(self.checked.graph.clone(), self.checked.order.clone(), MOST, on_failure);
        let mut running = FuturesUnordered::new();
        let (mut broken, mut told) = (None, false);
        loop {
            if let Some(signal) = stop.asked() {
                schedule.stop();
                if !std::mem::replace(&mut told, true) {
                    self.carrier.reporter.say(&Event::Interrupted(signal));
                }
            }
            for node in schedule.begin() {
                if let Some(step) = self.checked.steps.get(node) {
                    running.push(async move { (node, self.step(step, stop).await) });
                }
            }
            let ended = tokio::select! {
                ended = running.next() => ended,
                () = stop.wait(), if stop.asked().is_none() => continue,
            };
            match ended {
                Some((node, Ok(done))) => schedule.ended(node, done),
                // What runs may end: its answers are lost, and that is how the record is read.
                Some((node, Err(error))) => {
                    schedule.ended(node, false);
                    schedule.stop();
                    broken.get_or_insert(error);
                }
                None if schedule.is_over() => break,
                None => {}
            }
        }
        for node in schedule.skip_rest() {
            if let Some(step) = self.checked.steps.get(node) {
                self.carrier.reporter.say(&Event::Skipped(step.id.clone()));
                if broken.is_none() {
                    self.carrier.keeper.write(&Line::NotBegun { step: step.id.clone() }).await?;
                }
            }
        }
        match broken {
            Some(error) => Err(error),
            None => Ok(Tally {
                done: schedule.count(Stage::Done),
                failed: schedule.count(Stage::Failed),
                skipped: schedule.count(Stage::Skipped),
            }),
        }
    }

    /// The outputs of the scenario, as far as they can be told.
    pub fn outputs(&self) -> (Vec<(String, Known)>, Faults) {
        let world = self.world.borrow();
        let mut faults = Faults::default();
        let each = self.checked.outputs.iter().filter_map(|output| match output.value.evaluate(&*world) {
            Ok(evaluated) => {
                let secret = evaluated.secret || output.sensitive;
                Some((output.name.clone(), Known { value: evaluated.value, secret }))
            }
            Err(error) => {
                faults.expression(error);
                None
            }
        });
        let outputs = each.collect();
        (outputs, faults)
    }

    /// Whether the step was done.
    async fn step(&self, step: &Step, signals: &Stop) -> Result<bool, KeeperError> {
        let Carrier { reporter, secrets, keeper, .. } = self.carrier;
        reporter.say(&Event::Begun(step.id.clone()));
        let began = Instant::now();
        let mut faults = Faults::default();
        let attributes =
            Attributes { declared: &step.schema.attrs, line: step.action.line, folder: self.folder };
        let attrs = attributes.check(&step.action.attrs, &self.world.borrow(), &mut faults);
        if !faults.is_right() {
            let whats: Vec<String> = faults
                .errors()
                .into_iter()
                .map(|fault| format!("line {}: {}", fault.line, fault.what))
                .collect();
            let error = whats.join("; ");
            let record = Record::Failed {
                step: step.id.clone(),
                error: error.clone(),
                clean: true,
                undo: Some(Vec::new()),
            };
            keeper.write(&Line::Step(record, Vec::new())).await?;
            reporter.say(&Event::Failed { step: step.id.clone(), error, stderr: Vec::new() });
            return Ok(false);
        }
        let hidden = attrs.values().filter(|known| known.secret).filter_map(|known| known.value.known());
        secrets.cover(hidden);
        let attrs: Members = attrs
            .into_iter()
            .filter_map(|(name, known)| Some((name, known.value.known()?.clone())))
            .collect();
        let about = About {
            step: step.id.clone(),
            provider: step.provider.clone(),
            action: step.action.kind.clone(),
            key: format!("{}/{}", self.run, step.id),
            attrs: Some(attrs),
            index: None,
            timeout: step.action.timeout,
        };
        let mut going = Going::new(about, Kind::Step { tries: step.action.attempts }, 0, false)
            .retrying(step.action.retry.clone());
        let mut input = Input::Begin;
        let mut stderr = Vec::new();
        let end = loop {
            let go = match going.handle::<()>(input, at(signals)) {
                StepMove::End(end) => break end,
                StepMove::Go(go) => go,
            };
            let performed = match go {
                Move::Write(record) => {
                    self.show_again(&record);
                    let undo = self.asks_undo(step);
                    let more = match &record {
                        Record::Sent { .. } if undo => vec![("undo", Value::from(true))],
                        _ => Vec::new(),
                    };
                    keeper.write(&Line::Step(record, more)).await?;
                    Ok(Input::Written)
                }
                Move::Execute(mut call) => {
                    call.undo = self.asks_undo(step);
                    self.carrier.perform::<()>(Move::Execute(call), signals).await?
                }
                go => self.carrier.perform(go, signals).await?,
            };
            match performed {
                Ok(next) => input = next,
                Err(()) => return Ok(false),
            }
            if let Input::Answered(Err(error)) = &input {
                stderr.clone_from(&error.stderr);
            }
        };
        self.ended(step, end, began, stderr).await
    }

    /// Undos are asked for when they are recorded, and nothing else takes the step back.
    fn asks_undo(&self, step: &Step) -> bool {
        self.recorded && step.teardown.is_none() && self.carrier.hosts.asks_undo(&step.provider)
    }

    fn show_again(&self, record: &Record) {
        if let Record::Failed { step, error, clean: true, .. } = record {
            self.carrier.reporter.say(&Event::Again { step: step.clone(), why: error.clone() });
        }
    }

    async fn ended(
        &self,
        step: &Step,
        end: CallEnd,
        began: Instant,
        stderr: Vec<String>,
    ) -> Result<bool, KeeperError> {
        let Carrier { reporter, keeper, .. } = self.carrier;
        let id = step.id.clone();
        let (error, clean) = match end {
            CallEnd::Done(done) => {
                let ms = ms_since(began);
                let (outputs, undo) = self.done(step, done);
                let record = Record::Ok { step: id.clone(), ms, outputs: Some(outputs), undo: Some(undo) };
                keeper.write(&Line::Step(record, Vec::new())).await?;
                reporter.say(&Event::Done { step: id, ms });
                return Ok(true);
            }
            CallEnd::Unknown { why, .. } => {
                keeper.write(&Line::Unknown { step: id.clone(), why: why.clone() }).await?;
                reporter.say(&Event::Unknown { step: id, why });
                return Ok(false);
            }
            CallEnd::Clean(error) => (error, true),
            CallEnd::Failed(error) => (error, false),
        };
        let text = explained(&error);
        let undo = error.more.undo.clone();
        self.cover_undo(step, &undo);
        let record = Record::Failed { step: id.clone(), error: text.clone(), clean, undo: Some(undo) };
        keeper.write(&Line::Step(record, Vec::new())).await?;
        reporter.say(&Event::Failed { step: id, error: text, stderr });
        Ok(false)
    }

    /// What the provider answered, taken in: what later steps see, and what takes this one back.
    fn done(&self, step: &Step, done: Executed) -> (Members, Vec<Invocation>) {
        let secrets = self.carrier.secrets;
        let secret = step.schema.outputs.as_ref().is_some_and(|declared| declared.sensitive);
        let outputs = Value::Object(done.outputs.clone());
        if secret {
            secrets.cover([&outputs]);
        }
        let known = Known { value: Partial::Known(outputs), secret };
        let declared = step.action.teardown.as_ref().zip(step.teardown.as_ref());
        let undo = match declared {
            None => done.undo,
            Some((teardown, (action, schema))) => {
                let world = World { own: Some(known.clone()), ..self.world.borrow().clone() };
                let mut faults = Faults::default();
                let attributes =
                    Attributes { declared: &schema.attrs, line: teardown.line, folder: self.folder };
                let attrs = attributes.check(&teardown.attrs, &world, &mut faults);
                for fault in faults.errors() {
                    let what =
                        format!("the teardown of action.{}, line {}: {}", step.id, fault.line, fault.what);
                    self.carrier.reporter.say(&Event::Warning(what));
                }
                secrets.cover(
                    attrs.values().filter(|known| known.secret).filter_map(|known| known.value.known()),
                );
                let attrs =
                    attrs.into_iter().filter_map(|(name, known)| Some((name, known.value.known()?.clone())));
                // One that cannot be worked out is kept as it is, and refused when it is made.
                vec![Invocation { action: action.clone(), attrs: attrs.collect() }]
            }
        };
        self.cover_undo(step, &undo);
        self.world.borrow_mut().outputs.insert(step.id.clone(), Some(known));
        (done.outputs, undo)
    }

    /// What the actions that take back call sensitive is so in the record too.
    fn cover_undo(&self, step: &Step, undo: &[Invocation]) {
        let Some(schema) = self.checked.schemas.get(&step.provider) else { return };
        for call in undo {
            let Some(action) = schema.actions.get(&call.action) else { continue };
            let hidden = call
                .attrs
                .iter()
                .filter(|(name, _)| action.attrs.get(*name).is_some_and(|attr| attr.sensitive));
            self.carrier.secrets.cover(hidden.map(|(_, value)| value));
        }
    }
}

/// The error at length.
fn explained(error: &ProviderError) -> String {
    match &error.detail {
        Some(detail) => format!("{error}: {detail}"),
        None => error.to_string(),
    }
}
