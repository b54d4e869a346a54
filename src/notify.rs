//! What the service manager is told, by the protocol of sd_notify(3): ready, reloading, stopping, what is going on, and signs of
//! life. Where no service manager asked for it (no `NOTIFY_SOCKET`), nothing is said.

use std::sync::mpsc;
use std::time::Duration;

use quartermaster_actors::supervise::Vital;
use sd_notify::NotifyState;

/// Time between two looks at what is going on.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How many looks at the vital sign fit into the time that the service manager waits for one.
const LOOKS_IN_WATCHDOG: u32 = 4;

/// True when a service manager wants to be told.
pub fn is_managed() -> bool {
    std::env::var_os("NOTIFY_SOCKET").is_some()
}

/// The instance is up.
pub fn ready() {
    tell(&[NotifyState::Ready]);
}

/// The instance begins to reload what it reloads; [`ready`] has to follow.
pub fn reloading() {
    // A manager newer than ours wants to know when; without a clock it hears the rest.
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
}

/// The instance has begun to stop.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(component = "notify", %error, "The service manager could not be told");
    }
}

/// Tells the service manager what is going on, and that the overseer lives, from a thread of its own; dropping it ends both.
#[derive(Debug)]
pub struct Pulse {
    _end: mpsc::Sender<()>,
}

impl Pulse {
    /// Begins, when there is a service manager. `status` is asked every few seconds and must not block. A sign of life is
    /// given after the overseer gave one, and never otherwise: an overseer that hangs is the service manager's to end.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        vital: Vital,
        mut status: impl FnMut() -> String + Send + 'static,
    ) -> std::io::Result<Option<Self>> {
        if !is_managed() {
            return Ok(None);
        }
        let watchdog = sd_notify::watchdog_enabled();
        let every = watchdog.map_or(LOOK_EVERY, |limit| {
            limit.checked_div(LOOKS_IN_WATCHDOG).unwrap_or(LOOK_EVERY).min(LOOK_EVERY)
        });
        let (end, ended) = mpsc::channel();
        std::thread::Builder::new().name("notify".to_owned()).spawn(move || {
            let (mut beats, mut said) = (None, String::new());
            loop {
                let now = vital.beats();
                if watchdog.is_some() && beats != Some(now) {
                    beats = Some(now);
                    tell(&[NotifyState::Watchdog]);
                }
                let says = status();
                if says != said {
                    tell(&[NotifyState::Status(&says)]);
                    said = says;
                }
                match ended.recv_timeout(every) {
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => return,
                }
            }
        })?;
        Ok(Some(Self { _end: end }))
    }
}
