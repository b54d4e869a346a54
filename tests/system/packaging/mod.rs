//! What is shipped: the Debian package, its units under the real service manager, what the service manager is told, and the
//! container's files.
//!
//! Needs Debian's tools and, for the service, root; where that is not to be had a test says so in one line and passes, unless
//! `QM_REQUIRE_ALL=1` asks for everything.
mod content;
mod documented;
mod machine;
mod monitored;
mod node_notified;
mod node_service;
mod notified;
mod service;
mod shipped;
