//! The proof against the real thing: `quartermaster run`, started with the two files of an existing Choria Provisioner,
//! provisions real Choria servers behind a real broker in the three kinds of network, and survives what goes wrong there.
//!
//! The broker, the servers and the certificates come from `lab/`, a small Go program built on Choria's own module; this
//! driver starts everything on free loopback ports in a folder per test and ends it again. Without Go or OpenSSL the tests
//! say so in one line and pass, unless `QM_REQUIRE_ALL=1` makes that a failure.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail loudly anywhere, in its helpers too"
)]

mod busy;
mod control;
mod elected;
mod emulated;
mod endings;
mod networks;
mod support;
mod trouble;
mod upgrades;
