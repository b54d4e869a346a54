//! The state machine against the texts and rules of choria.md 4 and 14, request by request, without a socket.

mod bench;
mod faults;
mod rules;
