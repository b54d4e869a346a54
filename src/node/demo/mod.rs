//! `quartermaster demo-node`: a mesh of two machines on this one, watched live, with a rotation and a hand edit put back.
mod catalogue;
mod command;
mod hidden;
mod play;
mod programs;
mod seen;
mod surroundings;
mod told;
mod unit;
mod verbs;

pub use command::{DemoArgs, demo};
