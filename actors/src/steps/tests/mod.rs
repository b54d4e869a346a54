//! The pure core of steps, cut off at every point, and the language of their values.
mod calls;
mod expressions;
mod records;
mod walks;
mod world;
