//! What the tests here stand on, from the outside in: the [`lab`] program, one [`network`] of it, the [`tap`] that listens
//! there, the site's helper in [`site`] and its [`repository`] of releases, the [`provisioner`] under test, and the
//! files of one provisioned [`server`].
pub mod json;
pub mod lab;
pub mod network;
pub mod process;
pub mod provisioner;
pub mod repository;
pub mod server;
pub mod site;
pub mod tap;

use std::time::{Duration, Instant};

/// How long anything may take that normally takes seconds: generous, because the machine is shared, and it only bounds a
/// failure.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// Looks for something another process writes until it is there.
///
/// # Panics
/// When it is not there after `limit`, naming what was waited for.
pub fn wait_for<T>(what: &str, limit: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < limit, "{what}: not seen within {limit:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
