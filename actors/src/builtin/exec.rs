//! `builtin/exec`: an action is a program that runs to its end.

use std::time::Duration;

use futures::future::LocalBoxFuture;
use quartermaster_proto::provider::{
    DoneState, ErrorCode, Execute, Executed, Invocation, Members, ProviderError, Value,
};
use tokio_util::sync::CancellationToken;

use super::attrs::{members, refused, text, texts};
use super::work::{Hands, Work};
use crate::child::{Ending, Execution, Launch, RunError, RunLimits, execute};

pub const SCHEMA: &str = r#"{"name":"exec","version":"1.0.0","protocol":"1","config":{},"actions":{
"run":{"description":"run a program to its end; a status other than 0 is a failure",
"attrs":{"command":{"type":"list(string)","required":true,"description":"the program, looked up in the PATH, and its arguments; no shell, and no secrets, since others on the machine can read them"},
"stdin":{"type":"string","x_sensitive":true,"description":"its standard input"},
"undo":{"type":"list(string)","description":"the command that takes it back"}},
"outputs":{"type":"object({stdout=string})"},"x_returns_undo":true}},
"x_extensions":{"max_in_flight":64,"cancel":true}}"#;

/// The host's limit of a call comes first.
const LONGEST: Duration = Duration::from_hours(24 * 7);
/// Between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);
const PIPE_GRACE: Duration = Duration::from_millis(200);
/// The most a program may print, in bytes.
const MAX_STDOUT: usize = 1024 * 1024;

/// The work of `builtin/exec`.
pub struct Exec {
    hands: Hands,
}

impl Exec {
    pub const fn new(hands: Hands) -> Self {
        Self { hands }
    }
}

impl Work for Exec {
    fn configure(&mut self, _: &Members) -> Result<(), ProviderError> {
        Ok(())
    }

    fn execute(
        &self,
        call: Execute,
        stop: CancellationToken,
    ) -> LocalBoxFuture<'static, Result<Executed, ProviderError>> {
        let hands = self.hands.clone();
        Box::pin(async move {
            tokio::select! {
                result = run(&call.attrs, &hands) => result,
                // The program goes with the future that runs it.
                () = stop.cancelled() => Err(called_off()),
            }
        })
    }
}

fn called_off() -> ProviderError {
    let mut error = ProviderError::new(ErrorCode::Cancelled, "the program was ended on request");
    error.more.state = Some(DoneState::Partial);
    error
}

async fn run(attrs: &Members, hands: &Hands) -> Result<Executed, ProviderError> {
    let mut command = texts(attrs, "command").unwrap_or_default().into_iter();
    let Some(program) = command.next().filter(|program| !program.is_empty()) else {
        return Err(refused("`command` names no program"));
    };
    let launch = Launch {
        program: program.clone().into(),
        arguments: command.map(Into::into).collect(),
        environment: hands.environment.clone(),
        directory: hands.directory.clone(),
    };
    let limits = RunLimits { timeout: LONGEST, grace: GRACE, pipe_grace: PIPE_GRACE, max_stdout: MAX_STDOUT };
    let input = text(attrs, "stdin").as_bytes();
    let say = |line| hands.voice.say(line);
    match execute(&launch, &limits, &hands.orphans, input, |_| true, say).await {
        Ok(run) => ended(&program, &run, attrs),
        Err(RunError::Start(error)) => Err(refused(format!("{program} could not be started: {error}"))),
        Err(error @ RunError::Follow(_)) => Err(ProviderError::new(ErrorCode::Internal, error.to_string())),
    }
}

fn ended(program: &str, run: &Execution, attrs: &Members) -> Result<Executed, ProviderError> {
    let failed = |what: String| {
        let mut error = ProviderError::new(ErrorCode::Failed, what);
        error.detail = Some(run.stderr.join("\n")).filter(|said| !said.is_empty());
        error
    };
    if run.ending == Ending::Overflowed {
        return Err(failed(format!("{program} printed more than {MAX_STDOUT} bytes")));
    }
    match run.status {
        Some(status) if status.success() => {
            let printed = String::from_utf8_lossy(&run.stdout);
            let undo = texts(attrs, "undo").filter(|command| !command.is_empty()).map(|command| {
                let command = command.into_iter().map(Value::from).collect();
                Invocation { action: "run".to_owned(), attrs: members([("command", Value::List(command))]) }
            });
            Ok(Executed {
                outputs: members([("stdout", Value::from(&*printed))]),
                undo: undo.into_iter().collect(),
            })
        }
        Some(status) => Err(failed(format!("{program} ended with {status}"))),
        None => Err(failed(format!("{program} has no exit status"))),
    }
}
