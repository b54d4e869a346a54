//! The run state through its handle, and through every ending of the actor that writes it.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use quartermaster_actors::control::{ControlHandle, Controller, PausedBy, RunState};
use quartermaster_actors::metrics::{Fact, FactLog, Recorder};
use quartermaster_actors::supervise::{
    AskError, ChildState, Ending, Force, Overseer, OverseerHandle, OverseerSettings, Owned, RestartPolicy,
    Slot, release_blocked_threads,
};
use tokio::sync::watch;

const SOON: Duration = Duration::from_secs(20);

struct Instance {
    control: ControlHandle,
    slot: Slot<Controller>,
    overseer: OverseerHandle,
    facts: FactLog,
}

impl Instance {
    async fn start() -> Self {
        let (recorder, facts) = Recorder::tapped().unwrap();
        let (state, receiver) = watch::channel(RunState::working());
        let slot = Slot::new("control", 8);
        let control = ControlHandle::new(slot.clone(), receiver);
        let state = Arc::new(state);
        let policy = RestartPolicy::new(Duration::from_millis(1), Duration::from_millis(5), 0.0).unwrap();
        let owned = Owned::new(slot.clone(), policy, move |birth, _| {
            Controller::new(Arc::clone(&state), recorder.clone(), birth.notice)
        });
        let settings = OverseerSettings {
            ping_every: Duration::from_millis(10),
            stuck_after: Duration::from_secs(1),
            restarts_at_once: 1,
        };
        let overseer = Overseer::launch(settings, vec![Box::new(owned)], Arc::new(|_| {}));
        let me = Self { control, slot, overseer, facts };
        me.until_life(1).await;
        me
    }

    /// Waits for this life or a later one.
    async fn until_life(&self, generation: u64) {
        let mut states = self.overseer.subscribe();
        let reached = states.wait_for(|now| {
            now.children[0].child.generation >= generation && now.children[0].state == ChildState::Running
        });
        tokio::time::timeout(SOON, reached).await.unwrap().unwrap();
    }

    /// The changes between paused and working that were recorded, the first life's own report included.
    fn pauses(&self) -> Vec<bool> {
        let facts = self.facts.lock().unwrap();
        let pauses = facts.iter().map(|fact| match fact {
            Fact::Paused { paused } => *paused,
            other => panic!("the Controller records nothing else: {other:?}"),
        });
        pauses.collect()
    }

    async fn end(self) {
        release_blocked_threads();
        assert_eq!(self.overseer.stop(SOON).await, Some(vec![]));
    }
}

#[actix::test]
async fn a_pause_names_who_why_and_since_when_until_it_is_lifted() {
    let instance = Instance::start().await;
    instance.control.pause("kim".to_owned(), "maintenance".to_owned(), 1_700_000_000).await.unwrap();
    let by = PausedBy { who: "kim".to_owned(), why: "maintenance".to_owned(), since: 1_700_000_000 };
    let paused = RunState { paused: Some(Arc::new(by)), ..RunState::working() };
    assert_eq!(instance.control.state(), paused);
    assert!(paused.is_paused() && !paused.admits());
    instance.control.resume().await.unwrap();
    assert_eq!(instance.control.state(), RunState::working());
    assert_eq!(instance.pauses(), [false, true, false]);
    instance.end().await;
}

#[actix::test]
async fn a_lost_leadership_pauses_and_an_operators_pause_outlasts_its_return() {
    let instance = Instance::start().await;
    instance.control.lead(false).await.unwrap();
    assert!(instance.control.state().is_paused());
    instance.control.pause("kim".to_owned(), String::new(), 0).await.unwrap();
    instance.control.lead(true).await.unwrap();
    assert!(instance.control.state().is_paused(), "the operator's pause holds");
    instance.control.resume().await.unwrap();
    assert!(!instance.control.state().is_paused());
    assert_eq!(instance.pauses(), [false, true, false], "paused for two reasons is paused once");
    instance.end().await;
}

#[actix::test]
async fn draining_admits_nothing_and_lets_steps_finish() {
    let instance = Instance::start().await;
    instance.control.drain().await.unwrap();
    let state = instance.control.state();
    assert!(state.draining && !state.admits() && !state.is_paused());
    instance.end().await;
}

#[actix::test]
async fn a_command_without_a_controller_says_so_and_changes_nothing() {
    let instance = Instance::start().await;
    instance.slot.clear();
    let refused = instance.control.pause("kim".to_owned(), String::new(), 0).await;
    assert_eq!(refused, Err(AskError::Down { slot: "control" }));
    assert_eq!(instance.control.state(), RunState::working());
    instance.end().await;
}

#[actix::test]
async fn a_command_in_the_moment_in_which_a_controller_ends_is_carried_out_by_the_next_one() {
    for ending in [Ending::Stop, Ending::Panic, Ending::PanicInFuture] {
        let instance = Instance::start().await;
        instance.slot.try_send(Force(ending)).unwrap();
        instance.control.pause("kim".to_owned(), "maintenance".to_owned(), 7).await.unwrap();
        assert!(instance.control.state().is_paused(), "{ending:?}");
        // And while nobody is there at all.
        instance.until_life(2).await;
        instance.slot.try_send(Force(ending)).unwrap();
        let mut states = instance.overseer.subscribe();
        let gone = states.wait_for(|now| now.children[0].endings.iter().sum::<u64>() >= 2);
        tokio::time::timeout(SOON, gone).await.unwrap().unwrap();
        instance.control.resume().await.unwrap();
        assert!(!instance.control.state().is_paused(), "{ending:?}");
        instance.end().await;
    }
}

/// A pause outlives this ending of the Controller, and the next life takes commands.
async fn check_pause_survives(ending: Ending) {
    let instance = Instance::start().await;
    instance.control.pause("kim".to_owned(), "maintenance".to_owned(), 7).await.unwrap();
    let paused = instance.control.state();
    instance.slot.try_send(Force(ending)).unwrap();
    instance.until_life(2).await;
    assert_eq!(instance.control.state(), paused);
    assert_eq!(instance.pauses().last(), Some(&true), "the new life reports what it found");
    instance.control.resume().await.unwrap();
    assert_eq!(instance.control.state(), RunState::working());
    instance.end().await;
}

#[actix::test]
async fn a_pause_survives_a_controller_that_stops() {
    check_pause_survives(Ending::Stop).await;
}

#[actix::test]
async fn a_pause_survives_a_controller_that_panics() {
    check_pause_survives(Ending::Panic).await;
}

#[actix::test]
async fn a_pause_survives_a_controller_that_panics_in_a_future() {
    check_pause_survives(Ending::PanicInFuture).await;
}

#[actix::test]
async fn a_pause_survives_a_controller_that_hangs() {
    check_pause_survives(Ending::Hang).await;
}

#[actix::test]
async fn a_pause_survives_a_controller_that_blocks_its_thread() {
    check_pause_survives(Ending::BlockThread).await;
}
