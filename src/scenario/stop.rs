//! Signals that ask for an end, counted: the first calls off what runs, the next ends the taking back too.

use tokio::sync::watch;

use crate::app::Signals;

/// How often an end was asked for. Clones see the same.
#[derive(Debug, Clone)]
pub struct Stop {
    count: watch::Receiver<(usize, &'static str)>,
    /// So many do not count for this one.
    past: usize,
}

impl Stop {
    /// Listens for SIGINT and SIGTERM from now on, in the background.
    ///
    /// # Errors
    /// The system does not allow it.
    pub fn listen() -> std::io::Result<Self> {
        let mut signals = Signals::listen()?;
        let (sender, count) = watch::channel((0, ""));
        actix_rt::spawn(async move {
            loop {
                let name = signals.next().await;
                sender.send_modify(|(count, last)| {
                    *count += 1;
                    *last = name;
                });
            }
        });
        Ok(Self { count, past: 0 })
    }

    /// The signal that asked for an end, if one has.
    pub fn asked(&self) -> Option<&'static str> {
        let (count, name) = *self.count.borrow();
        (count > self.past).then_some(name)
    }

    /// Over when an end is asked for.
    pub async fn wait(&self) {
        let mut count = self.count.clone();
        if count.wait_for(|(count, _)| *count > self.past).await.is_err() {
            // Nobody listens any more, so nobody asks.
            std::future::pending::<()>().await;
        }
    }

    /// The same for what follows: only a further signal counts.
    #[must_use]
    pub fn next(&self) -> Self {
        let past = self.count.borrow().0;
        Self { count: self.count.clone(), past }
    }
}
