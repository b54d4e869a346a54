//! The question for a schema without a long-lived process: `<program> schema` (provider.md 1.10, D14).

use std::process::ExitStatus;
use std::sync::Arc;

use quartermaster_proto::provider::{Executed, HostCode, Members, ProviderError, Schema, Warning};

use super::error::{CallError, Outcome};
use super::pin::Digest;
use super::process::{command, untrusted};
use super::settings::ProviderSettings;
use crate::builtin::Builtin;
use crate::child::{Ending, Orphans, RunError, RunLimits, execute};

/// The most the program may print, in bytes.
const MAX_STDOUT: usize = 4 * 1024 * 1024;
const GRACE: std::time::Duration = std::time::Duration::from_millis(500);
const PIPE_GRACE: std::time::Duration = std::time::Duration::from_millis(200);

/// What a program says of itself when it is asked.
#[derive(Debug, Clone)]
pub struct Probed {
    /// Its schema.
    pub schema: Arc<Schema>,
    /// What was forgiven while reading it.
    pub warnings: Vec<Warning>,
    /// The digest of the program, if its pin or policy asked for one.
    pub digest: Option<Digest>,
    /// What it printed.
    pub printed: Vec<u8>,
}

/// Asks a program for its schema. Nothing is configured, nothing executed, no secret handed out. A builtin's is known.
pub async fn probe(settings: &ProviderSettings, orphans: &Orphans) -> Result<Probed, CallError> {
    if let Some(builtin) = settings.builtin {
        return known(settings, builtin);
    }
    let (trust, program) = (settings.trust.clone(), settings.program.clone());
    let verified = tokio::task::spawn_blocking(move || trust.verify(&program))
        .await
        .map_err(|error| failed(settings, HostCode::SpawnFailed, &error.to_string()))?
        .map_err(|error| untrusted(settings, &error))?;
    let limits = RunLimits {
        timeout: settings.timeouts.schema,
        grace: GRACE,
        pipe_grace: PIPE_GRACE,
        max_stdout: MAX_STDOUT,
    };
    let launch = command(settings, &verified.path, &["schema"]);
    let whole = |output: &[u8]| Schema::from_probe(output).is_ok();
    let run = execute(&launch, &limits, orphans, b"", whole, |_| {}).await.map_err(|error| {
        let (RunError::Start(source) | RunError::Follow(source)) = &error;
        failed(settings, HostCode::SpawnFailed, &format!("{error}: {source}"))
    })?;
    let tail = run.stderr.clone();
    let wrong = |code, what: &str| {
        let mut error = failed(settings, code, what);
        error.stderr.clone_from(&tail);
        error
    };
    match run.ending {
        Ending::TimedOut => {
            let limit = settings.timeouts.schema;
            return Err(wrong(HostCode::Timeout, &format!("did not print its schema within {limit:?}")));
        }
        Ending::Overflowed => {
            let what = format!("printed a schema of more than {MAX_STDOUT} bytes");
            return Err(wrong(HostCode::FrameTooLarge, &what));
        }
        Ending::Ended => {}
    }
    if !run.status.is_some_and(|status| status.success()) {
        let how =
            run.status.map_or_else(|| "no exit status".to_owned(), |status: ExitStatus| status.to_string());
        return Err(wrong(HostCode::Exited, &format!("did not print its schema: {how}")));
    }
    let read = Schema::from_probe(&run.stdout).map_err(|error| {
        let error = ProviderError::from(error);
        let code = error.host_code().unwrap_or(HostCode::BadSchema);
        wrong(code, &error.message)
    })?;
    Ok(Probed {
        schema: Arc::new(read.value),
        warnings: read.warnings,
        digest: verified.digest,
        printed: run.stdout.to_vec(),
    })
}

pub(super) fn known(settings: &ProviderSettings, builtin: Builtin) -> Result<Probed, CallError> {
    let printed = builtin.schema_text().as_bytes().to_vec();
    let read = Schema::from_probe(&printed)
        .map_err(|error| failed(settings, HostCode::BadSchema, &ProviderError::from(error).message))?;
    Ok(Probed { schema: Arc::new(read.value), warnings: read.warnings, digest: None, printed })
}

fn failed(settings: &ProviderSettings, code: HostCode, what: &str) -> CallError {
    let message = format!("provider `{}`, schema: {what}", settings.name);
    CallError::host(Outcome::NotSent, code, message)
}

/// A provider that only has a schema. It refuses to do anything, on purpose: whoever asks it to reached into what is only being
/// planned.
#[derive(Debug, Clone)]
pub struct SchemaOnly {
    name: String,
    schema: Arc<Schema>,
}

impl SchemaOnly {
    /// The provider of this local name, with what it declared.
    pub const fn new(name: String, schema: Arc<Schema>) -> Self {
        Self { name, schema }
    }

    /// What it declared.
    pub const fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Refuses.
    pub fn configure(&self, _: &Members) -> Result<(), CallError> {
        Err(self.refuse("configured"))
    }

    /// Refuses.
    pub fn execute(&self, _: &str, _: &Members) -> Result<Executed, CallError> {
        Err(self.refuse("asked to do anything"))
    }

    fn refuse(&self, what: &str) -> CallError {
        let message = format!("provider `{}` is only being planned with; it must not be {what}", self.name);
        CallError::host(Outcome::NotSent, HostCode::Closed, message)
    }
}
