//! Units by way of `systemctl`, where D-Bus does not answer.

use std::time::Duration;

use tokio::process::Command;

use super::{Program, Told, command};

/// How long a unit may take.
const LIMIT: Duration = Duration::from_secs(90);

pub(super) async fn tell(program: &Program, is_user: bool) -> Told {
    let (verb, unit) = match program {
        Program::Restart { unit, start: true } => ("restart", unit),
        Program::Restart { unit, start: false } => ("try-restart", unit),
        Program::Reload { unit, start: true } => ("reload-or-restart", unit),
        Program::Reload { unit, start: false } => ("reload", unit),
        Program::Command(_) => return Told::Failed("a command is no unit".to_owned()),
    };
    let mut systemctl = Command::new("systemctl");
    if is_user {
        systemctl.arg("--user");
    }
    let mut asked = Command::new("systemctl");
    if is_user {
        asked.arg("--user");
    }
    asked.args(["--no-ask-password", "--quiet", "is-active", "--", unit]);
    if verb == "reload" && command::run(asked, LIMIT).await != Told::Done {
        // A unit that does not run reads its files when it starts.
        return Told::Done;
    }
    systemctl.args(["--no-ask-password", verb, "--", unit]);
    command::run(systemctl, LIMIT).await
}
