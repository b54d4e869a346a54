//! The actor of a builtin.

use std::fmt;
use std::sync::Arc;

use actix::{Actor, ActorContext as _, Context, Handler, MessageResult, ResponseFuture};
use quartermaster_proto::provider::{
    Complaint, Declared as _, ErrorCode, Executed, Members, ProviderError, Schema,
};

use super::catalog::Builtin;
use super::messages::{Configure, Describe, Execute, Shutdown};
use super::work::{Hands, Work};

/// Messages that may wait: those of one conversation, which has no more calls open than this.
const MAILBOX: usize = 64;

/// One builtin, as one process of a provider would be: configured once, then asked to do things. Its owner is the conversation with it.
pub struct BuiltinProvider {
    builtin: Builtin,
    work: Box<dyn Work>,
    schema: Arc<Schema>,
    configured: bool,
}

impl fmt::Debug for BuiltinProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuiltinProvider").field("builtin", &self.builtin).finish_non_exhaustive()
    }
}

impl BuiltinProvider {
    /// A builtin that is not configured yet.
    pub fn new(builtin: Builtin, hands: Hands) -> Self {
        // A test reads each of them.
        let schema = Schema::from_probe(builtin.schema_text().as_bytes()).map(|read| read.value);
        let schema = Arc::new(schema.unwrap_or_default());
        Self { builtin, work: builtin.work(hands), schema, configured: false }
    }

    fn checked(&self, call: &Execute) -> Result<Members, ProviderError> {
        if !self.configured {
            return Err(ProviderError::new(ErrorCode::NotConfigured, "configure comes first"));
        }
        let Some(action) = self.schema.actions.get(&call.call.action) else {
            let known: Vec<&str> = self.schema.actions.keys().map(String::as_str).collect();
            let message = format!("no such action: {}; known: {}", call.call.action, known.join(", "));
            return Err(ProviderError::new(ErrorCode::UnknownAction, message));
        };
        action.attrs.check(&call.call.attrs).map_err(|found| refused(ErrorCode::InvalidAttrs, &found))
    }
}

fn refused(code: ErrorCode, complaints: &[Complaint]) -> ProviderError {
    let each: Vec<String> = complaints.iter().map(ToString::to_string).collect();
    ProviderError::new(code, each.join("; "))
}

impl Actor for BuiltinProvider {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
    }
}

impl Handler<Describe> for BuiltinProvider {
    type Result = MessageResult<Describe>;

    fn handle(&mut self, _: Describe, _: &mut Self::Context) -> Self::Result {
        MessageResult(Arc::clone(&self.schema))
    }
}

impl Handler<Configure> for BuiltinProvider {
    type Result = Result<(), ProviderError>;

    fn handle(&mut self, Configure(config): Configure, _: &mut Self::Context) -> Self::Result {
        let config = self.schema.config.check(&config);
        self.work.configure(&config.map_err(|found| refused(ErrorCode::InvalidConfig, &found))?)?;
        self.configured = true;
        Ok(())
    }
}

impl Handler<Execute> for BuiltinProvider {
    type Result = ResponseFuture<Result<Executed, ProviderError>>;

    fn handle(&mut self, mut asked: Execute, _: &mut Self::Context) -> Self::Result {
        match self.checked(&asked) {
            Ok(attrs) => {
                asked.call.attrs = attrs;
                let wants_undo = asked.call.undo;
                let work = self.work.execute(asked.call, asked.stop);
                Box::pin(async move {
                    let mut done = work.await?;
                    if !wants_undo {
                        done.undo.clear();
                    }
                    Ok(done)
                })
            }
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

impl Handler<Shutdown> for BuiltinProvider {
    type Result = ();

    fn handle(&mut self, _: Shutdown, ctx: &mut Self::Context) {
        ctx.stop();
    }
}
