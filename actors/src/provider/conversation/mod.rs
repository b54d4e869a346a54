//! What is said with one process, decided: its handshake, its open calls and their limits, its end (provider.md D1 to D9, D16, F2 to
//! F4). Pure: lines and the time go in, frames and answers come out.
mod due;
mod end;
mod hear;
mod state;

pub use state::{Conversation, Ending, Event, Outgoing, Talk};
