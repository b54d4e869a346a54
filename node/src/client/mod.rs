//! The client's own decisions beyond one module (what the vault is asked, what a bucket holds, who is bound to whom), and its
//! connection to the broker.

pub mod asking;
pub mod bus;
pub mod mirror;
pub mod watching;
