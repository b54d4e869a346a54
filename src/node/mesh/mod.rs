//! `quartermaster mesh …`: what an operator of the mesh sets up, publishes and looks at.
mod accounts;
mod bind;
mod check;
mod command;
mod init;
mod look;
mod machines;
mod modules;
mod place;
mod show;
mod values;

pub use command::{MeshArgs, MeshCommand, mesh};
pub(super) use look::said;
