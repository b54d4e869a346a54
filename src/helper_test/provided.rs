//! A helper that is a provider, started, asked once, and ended.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use quartermaster_actors::helper::HelperSettings;
use quartermaster_actors::provider::{
    Answer, Ask, Call, CallError, Happening, Note, Outcome, ProviderFact, ProviderHandle, Relayed,
};
use quartermaster_proto::helper::{HelperReply, HelperReplyError, PROVISION, misfits, reply_of_outputs};
use quartermaster_proto::provider::Value;
use zeroize::Zeroizing;

use crate::app::lone::lone_provider;
use crate::app::settings;
use crate::config::Config;

/// What one call showed.
pub struct Told {
    /// The reply, if its outputs are one.
    pub reply: Result<HelperReply, NotTold>,
    /// The outputs as JSON; empty when there are none.
    pub outputs: Zeroizing<Vec<u8>>,
    /// From the call to its end, the start of the process left out.
    pub took: Duration,
    /// What its process said on standard error, and what is odd about it.
    pub said: Vec<String>,
}

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub enum NotTold {
    /// It could not be started, or does not get as far as being asked.
    #[error("the provider did not start: {0}")]
    Start(CallError),
    /// What it declares is no helper.
    #[error("the provider is no helper: {0}")]
    NoHelper(String),
    /// Its answer was an error, or none came.
    #[error("{0}")]
    Call(CallError),
    /// Its outputs are no reply.
    #[error("the outputs are not usable: {0}")]
    Reply(HelperReplyError),
}

/// Starts the helper's provider, asks it about this input, and ends it.
pub fn ask(config: &Config, helper: &HelperSettings, input: &[u8]) -> Told {
    actix_rt::System::new().block_on(asked(config, helper, input))
}

async fn asked(config: &Config, helper: &HelperSettings, input: &[u8]) -> Told {
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&said);
    let record = Arc::new(move |fact: ProviderFact| {
        let line = match fact.what {
            Happening::Said(_, said) => said.text,
            Happening::Noted(Note::Odd(_, what)) => format!("(provider: {what})"),
            _ => return,
        };
        heard.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    });
    let mut settings = settings::helper_provider(config);
    "test".clone_into(&mut settings.run);
    // One try, and no patience with a second.
    settings.restart.limit = 1;
    let provider = lone_provider(settings, record);

    let mut outputs = Zeroizing::default();
    let mut took = Duration::ZERO;
    let reply = match started(&provider, config).await {
        Ok(()) => {
            let begun = Instant::now();
            let answer = provision(&provider, helper.timeout, input).await;
            took = begun.elapsed();
            answer.and_then(|answer| {
                outputs = Zeroizing::new(answer.to_json().into_bytes());
                reply_of_outputs(&answer).map_err(NotTold::Reply)
            })
        }
        Err(error) => Err(error),
    };
    provider.close(Duration::ZERO).await;
    let said = std::mem::take(&mut *said.lock().unwrap_or_else(PoisonError::into_inner));
    Told { reply, outputs, took, said }
}

async fn started(provider: &ProviderHandle, config: &Config) -> Result<(), NotTold> {
    let schema = provider.start().await.map_err(NotTold::Start)?;
    let misfits = misfits(&schema, &settings::helper_always(config));
    if misfits.is_empty() { Ok(()) } else { Err(NotTold::NoHelper(misfits.join("; "))) }
}

async fn provision(provider: &ProviderHandle, limit: Duration, input: &[u8]) -> Result<Value, NotTold> {
    let relayed =
        Relayed { action: PROVISION.to_owned(), attrs: Zeroizing::new(input.to_vec()), ..Relayed::default() };
    let call = Call { ask: Ask::Relay(relayed), timeout: Some(limit), about: None };
    match provider.call(call, None).await {
        Ok(Answer::Executed(done)) => Ok(Value::Object(done.outputs)),
        Ok(_) => Ok(Value::Null),
        Err(mut error) => {
            if error.outcome == Outcome::Unknown {
                // It may repeat what stood on standard output.
                error.error.detail = None;
            }
            Err(NotTold::Call(error))
        }
    }
}
