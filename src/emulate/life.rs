//! The process of an emulated server and the machine below it: start, restart, end, loss of power (choria.md 4.1, 4.5).

use std::time::Duration;

use quartermaster_proto::choria::event::EventKind;
use quartermaster_proto::time::WallClock;

use super::fault::Fault;
use super::record::Phase;
use super::server::{Action, Lock, Note, Server, after};
use super::{provision, wire};

impl Server {
    /// The process starts: its startup event, after it has subscribed.
    pub fn start(&mut self, now: WallClock) -> Vec<Action> {
        let now = self.own_time(now);
        let mut actions = self.enter(Phase::Provisioning);
        if let Some(Fault::Lock(window)) = self.fault("", |fault| matches!(fault, Fault::Lock(_))) {
            let owner = "stranger.example.net.choria=stranger".to_owned();
            self.lock = Some(Lock { owner, until: after(now, window) });
        }
        actions.push(self.event(EventKind::Startup, now));
        let gone = self.afflictions().iter().find_map(|drawn| match drawn.fault {
            Fault::Vanish(back) if drawn.action.is_none() => Some(back),
            _ => None,
        });
        if let Some(back) = gone {
            actions.extend(self.vanish(back, now));
        }
        actions
    }

    /// A delay asked for by [`Action::Wake`] is over.
    pub fn wake(&mut self, now: WallClock) -> Vec<Action> {
        let now = self.own_time(now);
        match self.record.phase {
            Phase::Restarting => self.restarted(now),
            Phase::Stopping => {
                let mut actions = self.enter(Phase::Stopped);
                actions.push(Action::Leave);
                actions
            }
            // A delay of the life before may end first.
            Phase::Off if self.powered_at.is_some_and(|at| at <= now) => self.boot(false, now),
            _ => Vec::new(),
        }
    }

    /// The machine is switched on for the first time; one that was on before stays as it is.
    pub fn power_on(&mut self, now: WallClock) -> Vec<Action> {
        if self.record.phase == Phase::Down { self.start(now) } else { Vec::new() }
    }

    /// The machine loses its power, whatever it is doing, and has it again after `down`; none: never. What is on its disk
    /// stays, and nobody is told. A machine that is gone already stays as it is, but one without power may lose it for good.
    pub fn cut_power(&mut self, down: Option<Duration>, now: WallClock) -> Vec<Action> {
        match self.record.phase {
            Phase::Down | Phase::Vanished | Phase::Stopped => return Vec::new(),
            Phase::Off if down.is_some() => return Vec::new(),
            _ => {}
        }
        let now = self.own_time(now);
        self.vanish(down, now)
    }

    /// The server is gone when this action arrives, if a fault says so: with a time to come back only once.
    pub(super) fn vanishes(&mut self, action: &str, now: WallClock) -> Option<Vec<Action>> {
        let Some(Fault::Vanish(back)) = self.fault(action, |fault| matches!(fault, Fault::Vanish(_))) else {
            return None;
        };
        if back.is_some() && self.spent.vanished {
            return None;
        }
        Some(self.vanish(back, now))
    }

    fn vanish(&mut self, back: Option<Duration>, now: WallClock) -> Vec<Action> {
        self.lock = None;
        self.ecdh = None;
        let Some(down) = back else {
            self.powered_at = None;
            let mut actions = self.enter(Phase::Vanished);
            actions.push(Action::Leave);
            return actions;
        };
        self.spent.vanished = true;
        self.record.power_cuts += 1;
        self.powered_at = Some(after(now, down));
        let mut actions = self.enter(Phase::Off);
        actions.extend([Action::Note(Note::PowerCut), Action::Leave, Action::Wake(down)]);
        actions
    }

    fn restarted(&mut self, now: WallClock) -> Vec<Action> {
        self.lock = None;
        self.ecdh = None;
        self.record.restarts += 1;
        let mut actions = vec![Action::Note(Note::Restarted)];
        if self.fault("", |fault| matches!(fault, Fault::NoReturn)).is_some() {
            actions.extend(self.vanish(None, now));
            return actions;
        }
        let relapses = match self.fault("", |fault| matches!(fault, Fault::Relapse(_))) {
            Some(Fault::Relapse(times)) if self.spent.relapsed < times => {
                self.spent.relapsed += 1;
                true
            }
            _ => false,
        };
        actions.extend(self.boot(relapses, now));
        actions
    }

    /// The new process reads what is on the disk (choria.md 4.5).
    fn boot(&mut self, relapses: bool, now: WallClock) -> Vec<Action> {
        self.powered_at = None;
        let mut actions = Vec::new();
        match provision::serving(self) {
            Some(serving) if !relapses => {
                actions.extend(self.enter(Phase::Provisioned));
                let version = self.version().to_owned();
                let event = wire::event(
                    EventKind::Startup,
                    &serving.identity,
                    "server",
                    &version,
                    None,
                    self.dice.bytes16(),
                    now,
                );
                actions.push(Action::Serve(serving));
                actions.push(event);
            }
            _ => {
                // A server that was upgraded, not configured, is expected back in this mode.
                if self.disk.config.is_some() {
                    self.record.relapses += 1;
                    actions.push(Action::Note(Note::Relapsed));
                }
                self.record.first_request = None;
                actions.push(Action::ComeBack);
                actions.extend(self.enter(Phase::Provisioning));
                actions.push(self.event(EventKind::Startup, now));
            }
        }
        actions
    }
}
