//! The client's connection to the broker: a login that is read anew at every connect, and watchers with consumers of their own,
//! because the library's cannot be limited by permissions.

mod connect;
mod credentials;
mod frames;
mod read_all;
mod watch;

pub use connect::{Bus, BusError, BusSettings};
pub use credentials::{Credentials, CredentialsError};
pub use frames::{Arrived, FrameError, Policy};
pub use read_all::read_all;
pub use watch::{FromBus, Target, watch};
