//! What is said to the engine's keeper.

use std::sync::Arc;

use actix::Message;
use quartermaster_proto::mesh::fill::{Body, Write};

use crate::engine::declaration::Declarations;

/// Write files of a module, and tell its programs.
#[derive(Debug, Message)]
#[rtype(result = "Body")]
pub(super) struct WriteFiles(pub(super) Write);

/// What is declared has changed.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct DeclarationsChanged(pub(super) Arc<Declarations>);

/// It is time to look at what is owed once more.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct OwedDue;
