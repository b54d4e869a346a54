//! What pages look like: markup from plain values, nothing else.
mod failures;
mod figures;
mod host;
mod hosts;
mod login;
mod overview;
mod parts;
mod shell;

pub(super) use host::host;
pub(super) use hosts::hosts;
pub(super) use login::{login, message};
pub(super) use overview::overview;
pub(super) use parts::{Glance, parts, title};
pub(super) use shell::{Place, Shell};
