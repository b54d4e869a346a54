//! How the four messages are sent.

use std::sync::Arc;

use actix::{Actor as _, Addr, MailboxError};
use quartermaster_proto::provider::{Execute as Call, Executed, Members, ProviderError, Schema};
use tokio_util::sync::CancellationToken;

use super::actor::BuiltinProvider;
use super::catalog::Builtin;
use super::messages::{Configure, Describe, Execute, Shutdown};
use super::work::Hands;

/// A builtin that runs. Its end shows in every further message; whoever started it starts another.
#[derive(Debug, Clone)]
pub struct BuiltinHandle(Addr<BuiltinProvider>);

impl BuiltinHandle {
    /// Starts a builtin on this thread.
    pub fn start(builtin: Builtin, hands: Hands) -> Self {
        Self(BuiltinProvider::new(builtin, hands).start())
    }

    pub(super) async fn describe(&self) -> Result<Arc<Schema>, MailboxError> {
        self.0.send(Describe).await
    }

    pub(super) async fn configure(&self, config: Members) -> Result<Result<(), ProviderError>, MailboxError> {
        self.0.send(Configure(config)).await
    }

    pub(super) async fn execute(
        &self,
        call: Call,
        stop: CancellationToken,
    ) -> Result<Result<Executed, ProviderError>, MailboxError> {
        self.0.send(Execute { call, stop }).await
    }

    pub(super) async fn shutdown(&self) -> Result<(), MailboxError> {
        self.0.send(Shutdown).await
    }
}
