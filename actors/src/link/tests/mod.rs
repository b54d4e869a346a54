//! Pure rules as data, then behaviour through the handle with a fake broker and paused time.
mod calls;
mod connecting;
mod discoveries;
mod pending;
mod servers;
mod srv;
mod support;
