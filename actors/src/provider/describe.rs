//! The question for a schema of a program that has no `schema` subcommand: a process that is asked to describe itself and to leave,
//! and nothing else (setting `compat.schema_probe: describe`, provider.md D14).

use std::sync::Arc;
use std::time::Duration;

use quartermaster_proto::provider::{HostCode, Limits, ProviderError, Schema, Value};

use super::error::{CallError, Outcome};
use super::probe::{Probed, known};
use super::process::{command, untrusted};
use super::settings::ProviderSettings;
use crate::child::{Ending, Orphans, RunError, RunLimits, execute};

/// What the process is sent, all at once.
const QUESTION: &[u8] =
    b"{\"id\":1,\"method\":\"describe\",\"params\":{}}\n{\"id\":2,\"method\":\"shutdown\",\"params\":{}}\n";
const LIMITS: Limits = Limits { max_bytes: 4 * 1024 * 1024, max_depth: 128, max_items: 1_000_000 };
const GRACE: Duration = Duration::from_millis(500);

/// Asks a program for its schema by `describe`. Nothing is configured, nothing executed, no secret handed out.
pub async fn probe_by_describe(settings: &ProviderSettings, orphans: &Orphans) -> Result<Probed, CallError> {
    if let Some(builtin) = settings.builtin {
        return known(settings, builtin);
    }
    let (trust, program) = (settings.trust.clone(), settings.program.clone());
    let failed = |code, what: &str| {
        let message = format!("provider `{}`, describe: {what}", settings.name);
        CallError::host(Outcome::NotSent, code, message)
    };
    let verified = tokio::task::spawn_blocking(move || trust.verify(&program))
        .await
        .map_err(|error| failed(HostCode::SpawnFailed, &error.to_string()))?
        .map_err(|error| untrusted(settings, &error))?;
    let limits = RunLimits {
        timeout: settings.timeouts.describe,
        grace: GRACE,
        pipe_grace: GRACE,
        max_stdout: LIMITS.max_bytes,
    };
    let launch = command(settings, &verified.path, &[]);
    let whole = |output: &[u8]| answer(output).is_some();
    let run = execute(&launch, &limits, orphans, QUESTION, whole, |_| {}).await.map_err(|error| {
        let (RunError::Start(source) | RunError::Follow(source)) = &error;
        failed(HostCode::SpawnFailed, &format!("{error}: {source}"))
    })?;
    let wrong = |code, what: &str| {
        let mut error = failed(code, what);
        error.stderr.clone_from(&run.stderr);
        error
    };
    let Some(answer) = answer(&run.stdout) else {
        return Err(match run.ending {
            Ending::TimedOut => {
                let limit = settings.timeouts.describe;
                wrong(HostCode::Timeout, &format!("did not describe itself within {limit:?}"))
            }
            Ending::Overflowed => wrong(HostCode::FrameTooLarge, "wrote more than a schema may have"),
            Ending::Ended => wrong(HostCode::BadFrame, "gave no answer"),
        });
    };
    let read = Schema::from_value(&answer).map_err(|error| {
        let error = ProviderError::from(error);
        wrong(error.host_code().unwrap_or(HostCode::BadSchema), &error.message)
    })?;
    let printed = answer.to_json().into_bytes();
    Ok(Probed { schema: Arc::new(read.value), warnings: read.warnings, digest: verified.digest, printed })
}

/// The result of the first request, once it is there.
fn answer(output: &[u8]) -> Option<Value> {
    let lines = output.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    let mut answers = lines.filter_map(|line| {
        let answer = Value::from_json(std::str::from_utf8(line).ok()?, &LIMITS).ok()?;
        let members = answer.as_object()?;
        let is_first = members.get("id")?.as_number()?.as_i64() == Some(1);
        is_first.then(|| members.get("result").cloned())?
    });
    answers.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_answer_to_the_first_question_counts() {
        let answered = |text: &str| answer(text.as_bytes()).map(|value| value.to_json());
        assert_eq!(answered("{\"id\":1,\"result\":{\"a\":1}}"), None);
        assert_eq!(answered("hello\n\n{\"id\":1,\"result\":{\"a\":1}}\n").as_deref(), Some("{\"a\":1}"));
        assert_eq!(answered("{\"id\":2,\"result\":{}}\n{\"id\":1,\"error\":{\"code\":\"x\"}}\n"), None);
    }
}
