//! The last line: a plain thread that ends the process when the overseer itself makes no progress.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant};

/// Why the process cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the process cannot go on: {child}: {why}")]
pub struct Fatal {
    /// The actor that could not be kept alive.
    pub child: &'static str,
    /// The sentence that says why.
    pub why: String,
}

#[derive(Debug, Default)]
struct VitalInner {
    beats: AtomicU64,
    last_beat_ms: AtomicU64,
    fatal: OnceLock<Fatal>,
}

/// Signs of life of the overseer; readable from any thread without waiting.
#[derive(Clone)]
pub struct Vital {
    born: Instant,
    inner: Arc<VitalInner>,
}

impl fmt::Debug for Vital {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vital").field("beats", &self.beats()).field("fatal", &self.fatal()).finish()
    }
}

impl Default for Vital {
    fn default() -> Self {
        Self { born: Instant::now(), inner: Arc::default() }
    }
}

impl Vital {
    /// No sign of life yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A sign of life.
    pub fn beat(&self) {
        let now = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.inner.last_beat_ms.store(now, Ordering::Relaxed);
        self.inner.beats.fetch_add(1, Ordering::Relaxed);
    }

    /// How many signs of life there were.
    pub fn beats(&self) -> u64 {
        self.inner.beats.load(Ordering::Relaxed)
    }

    /// How long ago the last sign of life was, or the creation of this value before the first.
    pub fn silent_for(&self) -> Duration {
        let last = Duration::from_millis(self.inner.last_beat_ms.load(Ordering::Relaxed));
        self.born.elapsed().saturating_sub(last)
    }

    /// Says that the process has to end; the first reason stands.
    pub fn give_up(&self, fatal: Fatal) {
        // A second reason loses against the first, which is the one to report.
        let _ = self.inner.fatal.set(fatal);
    }

    /// Why the process has to end, if it has to.
    pub fn fatal(&self) -> Option<&Fatal> {
        self.inner.fatal.get()
    }
}

/// The watching thread; dropping it disarms it.
#[derive(Debug)]
pub struct Watchdog {
    _disarm: mpsc::Sender<()>,
}

impl Watchdog {
    /// Looks every `every`; after `patience` looks in a row without a new beat, or with a fatal reason that nobody acted
    /// on, calls `last_resort` once with a sentence (log it and exit non-zero) from the watching thread.
    ///
    /// Looks are counted rather than time, so that a process that was suspended as a whole is not ended on waking.
    pub fn start(
        vital: Vital,
        every: Duration,
        patience: u32,
        last_resort: impl FnOnce(String) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (disarm, disarmed) = mpsc::channel();
        std::thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
            let mut stare = Stare::default();
            loop {
                match disarmed.recv_timeout(every) {
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => return,
                }
                if stare.look(vital.beats(), vital.fatal().is_some()) >= patience.max(1) {
                    break;
                }
            }
            last_resort(vital.fatal().map_or_else(
                || format!("the overseer made no progress in {patience} looks, {every:?} apart"),
                ToString::to_string,
            ));
        })?;
        Ok(Self { _disarm: disarm })
    }
}

/// Counts looks in a row at a silent or doomed overseer.
#[derive(Debug, Default)]
struct Stare {
    beats: u64,
    looks: u32,
}

impl Stare {
    const fn look(&mut self, beats: u64, doomed: bool) -> u32 {
        if beats == self.beats || doomed {
            self.looks = self.looks.saturating_add(1);
        } else {
            self.looks = 0;
        }
        self.beats = beats;
        self.looks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_looks_in_a_row_without_progress_count() {
        let mut stare = Stare::default();
        let looks: Vec<u32> = [1, 1, 1, 2, 2].into_iter().map(|beats| stare.look(beats, false)).collect();
        assert_eq!(looks, [0, 1, 2, 0, 1]);
    }

    #[test]
    fn a_doomed_overseer_counts_as_silent_even_while_it_beats() {
        let mut stare = Stare::default();
        assert_eq!([stare.look(1, true), stare.look(2, true), stare.look(3, true)], [1, 2, 3]);
    }

    #[test]
    fn a_silent_overseer_leads_to_the_last_resort_and_the_reason_is_named() {
        let (said, heard) = mpsc::channel();
        let vital = Vital::new();
        vital.give_up(Fatal { child: "link", why: "gone".to_owned() });
        let dog = Watchdog::start(vital, Duration::from_millis(1), 3, move |why| said.send(why).unwrap());
        assert_eq!(heard.recv().unwrap(), "the process cannot go on: link: gone");
        drop(dog);
    }

    #[test]
    fn a_disarmed_watchdog_does_nothing() {
        let (said, heard) = mpsc::channel::<String>();
        let dog =
            Watchdog::start(Vital::new(), Duration::from_hours(1), 1, move |why| said.send(why).unwrap());
        drop(dog.unwrap());
        // The thread ends and with it the sender: a disconnected channel, not a message.
        assert!(heard.recv().is_err());
    }
}
