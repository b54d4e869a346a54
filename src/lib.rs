//! Quartermaster: what `main`, the tests and the benches share.

pub mod app;
pub mod check;
pub mod cli;
pub mod clock;
pub mod config;
pub mod control;
pub mod exit;
pub mod machine;
pub mod notify;
pub mod operate;
pub mod telemetry;
pub mod web;

pub mod bench;
pub mod demo;
pub mod emulate;
pub mod helper_test;
pub mod node;
pub mod provider;
pub mod scenario;
mod stage;

pub mod init;
