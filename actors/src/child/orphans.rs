//! Processes that a helper left behind. A helper may start something that leaves its process group (a daemon does). When its
//! parent has gone, the kernel gives it to us, and we kill it when the run is over and reap it, so that a fleet of a hundred
//! thousand hosts leaves neither processes nor defunct entries.
//!
//! Children that this process started itself belong to whoever started them and are never touched: a run's process is entered
//! in the books under the same lock under which orphans are judged, and other parts enter theirs with [`Orphans::own`].

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, set_child_subreaper, waitid,
};

use super::leader::MARK;
use super::procfs::{self, Stat};

/// How often orphans are looked for when no run has ended.
const PERIOD: Duration = Duration::from_secs(1);
/// The least time between two looks.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest sweep.
const SWEEP: Duration = Duration::from_secs(1);
/// A defunct child that could be anybody's is left this long to whoever might wait for it.
const UNCLAIMED: Duration = Duration::from_secs(5);

/// Knows the runs and their processes. Cheap to clone; one per process.
#[derive(Debug, Clone)]
pub struct Orphans {
    books: Arc<Books>,
    /// The thread ends when the last of these is gone.
    _adopting: Option<Arc<Adopting>>,
}

#[derive(Debug)]
struct Adopting(Arc<Books>);

#[derive(Debug)]
struct Books {
    /// Unique to this process among all that ran on this machine, for practical purposes.
    instance: String,
    us: Us,
    state: Mutex<State>,
    wake: Condvar,
}

/// Our own group and session; 0 where they are outside of our container. The system calls' wrappers take that for impossible, so it is
/// read from `/proc`.
#[derive(Debug, Clone, Copy)]
struct Us {
    group: i32,
    session: i32,
}

impl Us {
    fn now() -> Self {
        let stat = procfs::stat(getpid().as_raw_nonzero().get());
        stat.map_or(Self { group: 0, session: 0 }, |stat| Self { group: stat.group, session: stat.session })
    }
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    active: BTreeSet<u64>,
    own: HashSet<i32>,
    strangers: HashMap<i32, Stranger>,
    run_ended: bool,
    closed: bool,
}

/// A child we did not start.
#[derive(Debug, Clone, Copy)]
struct Stranger {
    /// When it was first seen defunct: whoever waits for it has from then on, however long it lived.
    defunct_since: Option<Instant>,
    /// The run whose mark it bears.
    run: Option<u64>,
    /// The first run that had not begun when it was first seen: it belongs to an earlier one.
    before: u64,
}

impl Orphans {
    /// Keeps books of runs but adopts nobody: what leaves its group is then the init process's, as with any program.
    pub fn unadopted() -> Self {
        let instance = uuid::Uuid::new_v4().simple().to_string();
        let us = Us::now();
        let state = Mutex::default();
        Self { books: Arc::new(Books { instance, us, state, wake: Condvar::new() }), _adopting: None }
    }

    /// Makes this process the one that its orphaned descendants are given to, and starts the thread that looks after them.
    /// For a daemon: this changes the whole process.
    pub fn adopt() -> io::Result<Self> {
        let this = Self::unadopted();
        set_child_subreaper(Some(getpid()))?;
        let books = Arc::clone(&this.books);
        std::thread::Builder::new().name("helper-orphans".into()).spawn(move || books.look_after())?;
        let adopting = Arc::new(Adopting(Arc::clone(&this.books)));
        Ok(Self { _adopting: Some(adopting), ..this })
    }

    /// A new run.
    pub fn begin(&self) -> RunMark {
        let mut state = self.books.lock();
        let run = state.next;
        state.next += 1;
        state.active.insert(run);
        RunMark { books: Arc::clone(&self.books), run }
    }

    /// Ends and reaps what ended runs left behind, before the process ends and can no more. Blocks: a moment when there is nothing,
    /// a second at most.
    pub fn sweep(&self) {
        // What was killed a moment ago may not have handed its own children on to us yet.
        std::thread::sleep(PAUSE);
        let limit = Instant::now() + SWEEP;
        while self.books.look() && Instant::now() < limit {
            std::thread::sleep(PAUSE);
        }
    }

    /// Enters a child that some other part of this process started and waits for itself, until the answer is dropped. To be
    /// sure that it is not reaped first, start it within `start`.
    pub fn own(&self, start: impl FnOnce() -> io::Result<Child>) -> io::Result<(Child, OwnChild)> {
        self.books.start(start)
    }
}

/// One run: while it lasts, so may everything it started.
#[derive(Debug)]
pub struct RunMark {
    books: Arc<Books>,
    run: u64,
}

impl RunMark {
    /// The value of the environment variable that marks the run's processes.
    pub fn text(&self) -> String {
        format!("{}-{}", self.books.instance, self.run)
    }

    /// Starts the run's process and enters it in the books before anybody can judge it.
    pub fn start(&self, start: impl FnOnce() -> io::Result<Child>) -> io::Result<(Child, Option<OwnChild>)> {
        self.books.start(start).map(|(child, own)| (child, Some(own)))
    }
}

impl Drop for RunMark {
    fn drop(&mut self) {
        let mut state = self.books.lock();
        state.active.remove(&self.run);
        state.run_ended = true;
        drop(state);
        self.books.wake.notify_one();
    }
}

/// The entry of a child that is waited for elsewhere; dropped after it was reaped.
#[derive(Debug)]
pub struct OwnChild {
    books: Arc<Books>,
    pid: i32,
}

impl Drop for OwnChild {
    fn drop(&mut self) {
        self.books.lock().own.remove(&self.pid);
    }
}

impl Drop for Adopting {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.wake.notify_one();
    }
}

impl Books {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The books are right after each statement, so a panic elsewhere spoils nothing.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(self: &Arc<Self>, start: impl FnOnce() -> io::Result<Child>) -> io::Result<(Child, OwnChild)> {
        let mut state = self.lock();
        let child = start()?;
        let pid = Pid::from_child(&child).as_raw_nonzero().get();
        state.own.insert(pid);
        state.strangers.remove(&pid);
        Ok((child, OwnChild { books: Arc::clone(self), pid }))
    }

    fn look_after(&self) {
        loop {
            let again = self.look();
            let state = self.lock();
            if state.closed {
                return;
            }
            let (mut state, _) = self
                .wake
                .wait_timeout_while(state, if again { PAUSE } else { PERIOD }, |state| {
                    !state.run_ended && !state.closed
                })
                .unwrap_or_else(PoisonError::into_inner);
            state.run_ended = false;
            drop(state);
            std::thread::sleep(PAUSE);
        }
    }

    /// Looks once at all children. True when something was killed or reaped, so that another look is due soon: what the dead
    /// had started comes to us next.
    fn look(&self) -> bool {
        let children = procfs::children();
        let mut busy = false;
        for pid in &children {
            let Some(stat) = self.stranger(*pid) else { continue };
            // Reading this may block on a hung process, hence without the lock.
            let run = procfs::variable(*pid, MARK.as_bytes()).and_then(|mark| self.run_of(&mark));
            busy |= self.treat(*pid, stat, run);
        }
        self.lock().strangers.retain(|pid, _| children.contains(pid));
        busy
    }

    fn stranger(&self, pid: i32) -> Option<Stat> {
        let state = self.lock();
        if state.own.contains(&pid) { None } else { procfs::stat(pid) }
    }

    fn run_of(&self, mark: &[u8]) -> Option<u64> {
        let (instance, run) = std::str::from_utf8(mark).ok()?.rsplit_once('-')?;
        if instance == self.instance { run.parse().ok() } else { None }
    }

    fn treat(&self, pid: i32, seen: Stat, run: Option<u64>) -> bool {
        let Some(id) = Pid::from_raw(pid) else { return false };
        let mut state = self.lock();
        // In the meantime it may have been reaped and its number given to a run of ours.
        if state.own.contains(&pid) || procfs::stat(pid).is_none_or(|now| now.started != seen.started) {
            return false;
        }
        let now = Instant::now();
        let before = state.next;
        let stranger =
            state.strangers.entry(pid).or_insert(Stranger { defunct_since: None, run: None, before });
        stranger.run = stranger.run.or(run);
        stranger.note(seen.defunct, now);
        let stranger = *stranger;
        match judge(&seen, self.us, &stranger, &state.active, now) {
            Verdict::Leave => false,
            Verdict::Kill => {
                tracing::debug!(pid, "killing a process that a helper left behind");
                kill_process(id, Signal::KILL).is_ok()
            }
            Verdict::Reap => {
                state.strangers.remove(&pid);
                waitid(WaitId::Pid(id), WaitIdOptions::EXITED | WaitIdOptions::NOHANG).is_ok()
            }
        }
    }
}

impl Stranger {
    fn note(&mut self, defunct: bool, now: Instant) {
        if defunct {
            self.defunct_since.get_or_insert(now);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Leave,
    Kill,
    Reap,
}

/// What is to become of a child that is in nobody's books.
fn judge(stat: &Stat, us: Us, stranger: &Stranger, active: &BTreeSet<u64>, now: Instant) -> Verdict {
    // Without help of the C library nobody here starts a child in another session, or in the group of a third process. So
    // this one was adopted.
    let adopted = stranger.run.is_some()
        || stat.session != us.session
        || (stat.group != stat.pid && stat.group != us.group);
    if stat.defunct {
        let unclaimed = stranger.defunct_since.is_some_and(|since| now.duration_since(since) >= UNCLAIMED);
        return if adopted || unclaimed { Verdict::Reap } else { Verdict::Leave };
    }
    let over = match stranger.run {
        Some(run) => !active.contains(&run),
        None => adopted && active.first().is_none_or(|oldest| *oldest >= stranger.before),
    };
    if over { Verdict::Kill } else { Verdict::Leave }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Us = Us { group: 10, session: 10 };

    /// A child as seen: number, group, session; whether it is defunct; whose mark it bears; runs going on; for how long it has
    /// been as it is.
    #[track_caller]
    fn check(
        ids: [i32; 3],
        defunct: bool,
        run: Option<u64>,
        active: &[u64],
        age: Duration,
        expected: Verdict,
    ) {
        let [pid, group, session] = ids;
        let stat = Stat { pid, defunct, group, session, started: 1 };
        let first_seen = Instant::now();
        let mut stranger = Stranger { defunct_since: None, run, before: 5 };
        stranger.note(defunct, first_seen);
        let active = active.iter().copied().collect();
        assert_eq!(judge(&stat, US, &stranger, &active, first_seen + age), expected);
    }

    const NEW: Duration = Duration::ZERO;

    #[test]
    fn what_bears_a_mark_lives_as_long_as_its_run() {
        check([20, 20, 20], false, Some(3), &[3, 4], NEW, Verdict::Leave);
        check([20, 20, 20], false, Some(3), &[4], NEW, Verdict::Kill);
        check([20, 20, 10], false, Some(3), &[], NEW, Verdict::Kill);
        check([20, 20, 10], true, Some(3), &[3], NEW, Verdict::Reap);
    }

    #[test]
    fn what_bears_none_lives_as_long_as_every_run_it_may_be_of() {
        check([20, 20, 20], false, None, &[4, 7], NEW, Verdict::Leave);
        check([20, 20, 20], false, None, &[5, 7], NEW, Verdict::Kill);
        check([20, 15, 10], false, None, &[], NEW, Verdict::Kill);
    }

    #[test]
    fn what_may_be_a_child_of_another_part_is_left_alone() {
        check([20, 10, 10], false, None, &[], UNCLAIMED, Verdict::Leave);
        check([20, 20, 10], false, None, &[], UNCLAIMED, Verdict::Leave);
        check([20, 10, 10], true, None, &[], NEW, Verdict::Leave);
        check([20, 10, 10], true, None, &[], UNCLAIMED, Verdict::Reap);
    }

    #[test]
    fn a_child_that_lived_long_is_left_to_its_waiter_as_long_as_any() {
        let born = Instant::now();
        let mut stranger = Stranger { defunct_since: None, run: None, before: 5 };
        stranger.note(false, born);
        let died = born + 10 * UNCLAIMED;
        stranger.note(true, died);
        stranger.note(true, died + UNCLAIMED / 2);
        let stat = Stat { pid: 20, defunct: true, group: 10, session: 10, started: 1 };
        let verdict = |now| judge(&stat, US, &stranger, &BTreeSet::new(), now);
        assert_eq!(verdict(died + UNCLAIMED / 2), Verdict::Leave);
        assert_eq!(verdict(died + UNCLAIMED), Verdict::Reap);
    }
}
