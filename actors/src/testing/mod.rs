//! Fakes and the harness for tests: a fleet of made-up hosts behind the ports of the host's cycle.
mod fakes;

pub use fakes::{FakeFleet, FakeHelper, FakeHost, FakeVault, run_local};
