//! The four messages of a provider.

use std::sync::Arc;

use actix::Message;
use quartermaster_proto::provider::{Execute as Call, Executed, Members, ProviderError, Schema};
use tokio_util::sync::CancellationToken;

/// What do you declare?
#[derive(Message)]
#[rtype(result = "Arc<Schema>")]
pub(super) struct Describe;

/// Take this configuration.
#[derive(Message)]
#[rtype(result = "Result<(), ProviderError>")]
pub(super) struct Configure(pub Members);

/// Do this, until `stop` says that nobody wants it any more.
#[derive(Message)]
#[rtype(result = "Result<Executed, ProviderError>")]
pub(super) struct Execute {
    pub call: Call,
    pub stop: CancellationToken,
}

/// Nothing more comes.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Shutdown;
