//! The roster from the journal, and for it.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use quartermaster_proto::choria::identity::Identity;

use super::super::entry::{Entry, Failure, State};
use super::{RESTART_GRACE, Roster, UPDATE_GRACE};
use crate::host::{Ending, Resume, Step};
use crate::journal::{Restored, Stand, Standing, StoredFailure, Unfinished};

/// A restored host whose wait is over is waited for this long, so that discovery can see first whether it is still there.
const LOOK_FIRST: Duration = Duration::from_secs(10);

/// Both clocks at one moment, to turn the one's times into the other's.
#[derive(Debug, Clone, Copy)]
pub struct Clocks {
    /// Now, by tokio's clock.
    pub now: Instant,
    /// Now, Unix milliseconds.
    pub wall_ms: i64,
}

impl Clocks {
    fn wall(self, then: Instant) -> i64 {
        let ms = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        match then.checked_duration_since(self.now) {
            Some(ahead) => self.wall_ms.saturating_add(ms(ahead)),
            None => self.wall_ms.saturating_sub(ms(self.now.duration_since(then))),
        }
    }

    /// A moment of the past; one of the future is taken for now, since the wall clock was set back.
    fn past(self, wall_ms: i64) -> Instant {
        let ago = u64::try_from(self.wall_ms.saturating_sub(wall_ms)).unwrap_or(0);
        self.now.checked_sub(Duration::from_millis(ago)).unwrap_or(self.now)
    }

    /// How long it is until then.
    fn until(self, wall_ms: i64) -> Duration {
        Duration::from_millis(u64::try_from(wall_ms.saturating_sub(self.wall_ms)).unwrap_or(0))
    }
}

impl Roster {
    /// What has to be remembered of a host; none when that is nothing.
    pub fn standing(&self, identity: &Identity, clocks: Clocks) -> Option<Standing> {
        let entry = self.hosts.get(identity)?;
        let stand = match &entry.state {
            State::Held { since, began, ending, confirmed } => Stand::Held {
                ending: ending.name().to_owned(),
                since_ms: clocks.wall(*since),
                began_ms: clocks.wall(*began),
                confirmed: *confirmed,
            },
            State::Cooling { since, until, began } => Stand::Cooling {
                since_ms: clocks.wall(*since),
                until_ms: clocks.wall(*until),
                began_ms: clocks.wall(*began),
            },
            State::GaveUp { since } => Stand::GaveUp { since_ms: clocks.wall(*since) },
            State::Known | State::Waiting { .. } | State::InFlight { .. } | State::Done => Stand::Idle,
        };
        let in_flight = matches!(entry.state, State::InFlight { .. });
        let plain = entry.failures == 0 && entry.lost == 0 && entry.resume.is_none();
        if stand == Stand::Idle && plain && !in_flight {
            return None;
        }
        Some(Standing {
            stand,
            failures: entry.failures,
            lost: entry.lost,
            failing_since_ms: entry.failing_since.map(|since| clocks.wall(since)),
            failure: entry.failure.as_ref().map(|failure| StoredFailure {
                cause: failure.cause.to_string(),
                error: failure.error.clone(),
                at_ms: clocks.wall(failure.at),
                helper: failure.helper.clone(),
            }),
            first_seen_ms: clocks.wall(entry.first_seen),
            last_seen_ms: clocks.wall(entry.last_seen),
            newest_event: entry.newest_event,
            unfinished: entry.resume.as_ref().and_then(|resume| match resume {
                Resume::Configure(_) => Some(Unfinished::Configure),
                Resume::Restart { sent: false } => Some(Unfinished::Restart),
                Resume::Restart { sent: true } => Some(Unfinished::Restarted),
                // The records of what is to be taken back tell that.
                Resume::TakeBack => None,
            }),
        })
    }

    /// Takes back a host as the journal knew it. Called before anything else happens.
    pub fn restore(&mut self, restored: Restored, clocks: Clocks) {
        let Restored { host, standing, cut_off, material, steps } = restored;
        let mut entry = Entry::new(clocks.now);
        entry.first_seen = clocks.past(standing.first_seen_ms);
        entry.last_seen = clocks.past(standing.last_seen_ms);
        entry.failures = standing.failures;
        entry.lost = standing.lost;
        entry.failing_since = standing.failing_since_ms.map(|since| clocks.past(since));
        entry.failure = standing.failure.map(|failure| Failure {
            cause: Cow::Owned(failure.cause),
            error: failure.error,
            at: clocks.past(failure.at_ms),
            helper: failure.helper,
        });
        entry.newest_event = standing.newest_event;
        entry.resume = match standing.unfinished {
            // Without what was sent, the cycle begins anew.
            Some(Unfinished::Configure) => {
                material.map(|json| Resume::Configure(crate::host::Material::new(json)))
            }
            Some(Unfinished::Restart) => Some(Resume::Restart { sent: false }),
            Some(Unfinished::Restarted) => Some(Resume::Restart { sent: true }),
            None => None,
        };
        let steps_over = steps.and_then(|ledger| entry.restore_steps(ledger, &standing.stand));
        let unfinished = entry.resume.is_some();
        self.hosts.insert(host.clone(), entry);
        if steps_over.is_some() {
            self.steps_over.push(host.clone());
        }
        self.counts.known += 1;
        if let Some(cut_off) = cut_off {
            let touched = cut_off.touched.as_ref().map(|(step, at_ms)| (step.as_str(), *at_ms));
            return self.restore_cut_off(&host, touched, unfinished, clocks);
        }
        self.restore_standing(&host, &standing.stand, unfinished, clocks);
    }

    /// A host whose cycle ended with the instance.
    fn restore_cut_off(
        &mut self,
        host: &Identity,
        touched: Option<(&str, i64)>,
        unfinished: bool,
        clocks: Clocks,
    ) {
        // It was there when the instance ended, so it is worth a call.
        if let Some(entry) = self.hosts.get_mut(host)
            && (unfinished || clocks.now.duration_since(entry.last_seen) < self.settings.interval)
        {
            entry.last_seen = clocks.now;
        }
        let ending = match touched {
            Some((step, _)) if step == Step::Update.name() => Some(Ending::Updating),
            Some((step, _)) if step == Step::Shutdown.name() => Some(Ending::ShutDown { msg: String::new() }),
            _ => None,
        };
        let since = clocks.past(touched.map_or(clocks.wall_ms, |(_, at_ms)| at_ms));
        match ending {
            // Whether it heard that is not known; if it did not, it is seen again after a while.
            Some(ending) if clocks.now.duration_since(since) < UPDATE_GRACE.max(RESTART_GRACE) => {
                self.hold(host, ending, since, since, false);
            }
            _ => {
                self.enqueue(host, clocks.now, true);
            }
        }
    }

    fn restore_standing(&mut self, host: &Identity, stand: &Stand, unfinished: bool, clocks: Clocks) {
        match stand {
            Stand::Held { ending, since_ms, began_ms, confirmed } => {
                let ending = match ending.as_str() {
                    "updating" => Ending::Updating,
                    "shut_down" => Ending::ShutDown { msg: String::new() },
                    "already_serving" => Ending::AlreadyServing,
                    _ => Ending::Provisioned,
                };
                self.hold(host, ending, clocks.past(*began_ms), clocks.past(*since_ms), *confirmed);
            }
            Stand::Cooling { since_ms, until_ms, began_ms } => {
                let wait = clocks.until(*until_ms).max(LOOK_FIRST);
                self.cool(host, clocks.past(*began_ms), wait, clocks.now);
                if let Some(entry) = self.hosts.get_mut(host)
                    && let State::Cooling { since, .. } = &mut entry.state
                {
                    *since = clocks.past(*since_ms);
                }
            }
            Stand::GaveUp { since_ms } => {
                self.give_up(host, clocks.past(*since_ms));
                // Unseen for as long as nobody looked.
                self.schedule(host, clocks.now + self.gone_after());
            }
            Stand::Idle if unfinished => {
                if let Some(entry) = self.hosts.get_mut(host) {
                    entry.last_seen = clocks.now;
                }
                self.enqueue(host, clocks.now, true);
            }
            Stand::Idle => {
                self.schedule(host, clocks.now + 2 * self.settings.interval);
            }
        }
    }

    /// The first number for a cycle.
    pub fn count_cycles_from(&mut self, next: u64) {
        self.next_cycle = self.next_cycle.max(next);
    }
}
