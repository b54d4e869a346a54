//! One run of a helper that is a provider: a call of its action `provision`.

use std::time::Duration;

use quartermaster_proto::helper::{HelperReply, PROVISION, reply_of_outputs};
use quartermaster_proto::provider::{CallContext, HostCode, Value};
use zeroize::Zeroizing;

use super::error::HelperError;
use super::settings::HelperSettings;
use crate::control::RunStateReceiver;
use crate::provider::{Answer, Ask, Call, CallError, Outcome, ProviderHandle, Relayed};

/// How often a paused instance looks whether the process that has the call is still there.
const LOOK: Duration = Duration::from_millis(500);

/// Has the provider decide about one host. The limit of the call runs from the moment the provider has it: a host waits while its
/// provider is being started again, unless this instance is paused meanwhile, which starts nothing.
pub(super) async fn provision(
    settings: &HelperSettings,
    provider: &ProviderHandle,
    run_state: &RunStateReceiver,
    host: &str,
    input: Zeroizing<Vec<u8>>,
) -> Result<HelperReply, HelperError> {
    let context = CallContext {
        run: provider.run_id().to_owned(),
        step: PROVISION.to_owned(),
        attempt: 1,
        key: host.to_owned(),
        ..CallContext::default()
    };
    let ask = Ask::Relay(Relayed { action: PROVISION.to_owned(), attrs: input, context: Some(context) });
    let call = Call { ask, timeout: Some(settings.timeout), about: Some(host.into()) };
    let answer = tokio::select! {
        answer = provider.call(call, None) => answer,
        () = paused_without_process(provider, run_state.clone()) => {
            return Err(HelperError::Paused { program: settings.program.clone() });
        }
    };
    match answer {
        Ok(Answer::Executed(done)) => reply_of_outputs(&Value::Object(done.outputs)).map_err(|source| {
            HelperError::Reply { program: settings.program.clone(), source, stderr: Vec::new() }
        }),
        Ok(Answer::Found(_) | Answer::Diagnosed(_)) => Err(HelperError::Lost),
        Err(error) => Err(failed(settings, error)),
    }
}

/// Ends once this instance is paused and no process is there that could have the call.
async fn paused_without_process(provider: &ProviderHandle, mut run_state: RunStateReceiver) {
    loop {
        if run_state.wait_for(|state| !state.starts_helpers()).await.is_err() {
            // Nobody decides over the run state any more; the owner is about to end everything.
            return std::future::pending().await;
        }
        if provider.snapshot().ready == 0 {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn failed(settings: &HelperSettings, mut error: CallError) -> HelperError {
    let program = settings.program.clone();
    let stderr = std::mem::take(&mut error.stderr);
    match (error.outcome, error.host_code()) {
        (Outcome::Unknown, Some(HostCode::Timeout)) => {
            HelperError::TimedOut { program, after: settings.timeout, stderr }
        }
        (_, Some(_)) => {
            // It may repeat what stood on standard output, where secrets of the host are.
            error.error.detail = None;
            HelperError::Provider { program, source: error, stderr }
        }
        (_, None) => HelperError::Provider { program, source: error, stderr },
    }
}
