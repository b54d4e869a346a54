//! The node side as a whole, by the numbers of its conformance tests (README.md): a real broker with the accounts of the table,
//! vault, engines and clients as processes, machines as folders. Where a test says less than "end to end", its name says where
//! the rest stands.
#![cfg(test)]

#[path = "../../node/tests/support/kv_lab.rs"]
mod kv_lab;

#[path = "../system/canary_forms.rs"]
#[allow(dead_code, reason = "shared with the system tests, which use all of it")]
mod forms;

mod archives;
mod asking;
mod collections;
mod consumers;
mod filling;
mod forged;
mod kept_elsewhere;
mod killed;
mod missing;
mod numbers;
mod outage;
mod panics;
mod places;
mod rights;
mod rotation;
mod secrets;
mod starting;
mod support;
mod works;
mod writing;
