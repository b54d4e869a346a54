//! One module's life as data: events in, effects out, on a clock that is set.

mod collections;
mod drive;
mod engine;
mod life;
mod values;
