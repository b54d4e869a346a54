//! Wire shapes and codecs, pure: no runtime, socket, clock, file or sibling package.
//!
//! Everything that arrives is decoded as if its sender were hostile: limits come before allocation, and every decoder
//! answers with an error, never with a panic.

pub mod choria;
pub mod fuzzing;
pub mod helper;
pub mod json;
pub mod mesh;
pub mod provider;
pub mod text;
pub mod time;
