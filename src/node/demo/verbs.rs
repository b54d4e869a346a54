//! The operator's verbs as an operator would run them, each shown before it is run.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use zeroize::Zeroizing;

use super::told::Screen;
use crate::stage::StageError;

/// Runs our own verbs.
#[derive(Debug, Clone)]
pub(super) struct Verbs {
    /// Our own program.
    pub(super) program: PathBuf,
    /// The folder of the whole demo.
    pub(super) dir: PathBuf,
    /// Where the broker is, once it is somewhere.
    pub(super) servers: Option<String>,
    /// What happens is shown here.
    pub(super) screen: Screen,
}

impl Verbs {
    /// `quartermaster mesh …`; what it printed.
    pub(super) async fn mesh(&self, arguments: &[&str]) -> Result<String, StageError> {
        let mut command = self.command("mesh", arguments);
        command.arg("--site").arg(self.dir.join("mesh"));
        if let Some(servers) = &self.servers {
            command.args(["--servers", servers]);
        }
        self.run("mesh", arguments, command, None).await
    }

    /// `quartermaster vault …` of the running vault.
    pub(super) async fn vault(
        &self,
        arguments: &[&str],
        value: Option<&Zeroizing<String>>,
    ) -> Result<String, StageError> {
        let mut command = self.command("vault", arguments);
        command.arg("--socket").arg(self.dir.join("vault/admin.sock"));
        self.run("vault", arguments, command, value).await
    }

    /// `quartermaster vault init`; the key that deposits are sealed to.
    pub(super) async fn vault_init(&self) -> Result<String, StageError> {
        let mut command = self.command("vault", &["init"]);
        command.arg("--store").arg(self.dir.join("vault/store"));
        command.arg("--key-file").arg(self.dir.join("vault/key"));
        self.run("vault", &["init"], command, None).await
    }

    /// `quartermaster node digest` of a machine's file, as its client would report it.
    pub(super) async fn digest(
        &self,
        file: &Path,
        state: &Path,
        is_plain: bool,
    ) -> Result<String, StageError> {
        let mut command = self.command("node", &["digest"]);
        command.arg(file).arg("--state").arg(state);
        if is_plain {
            command.arg("--plain");
        }
        ended("quartermaster node digest", command.output().await)
    }

    fn command(&self, verb: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(verb).args(arguments).current_dir(&self.dir).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    async fn run(
        &self,
        verb: &str,
        arguments: &[&str],
        mut command: Command,
        value: Option<&Zeroizing<String>>,
    ) -> Result<String, StageError> {
        let quoted: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
        let shown = format!("quartermaster {verb} {}", quoted.join(" "));
        self.screen.say(&format!("$ {shown}{}", if value.is_some() { " < (a secret)" } else { "" }));
        let Some(value) = value else { return ended(&shown, command.output().await) };
        command.stdin(Stdio::piped());
        let output = async {
            let mut child = command.spawn()?;
            if let Some(mut input) = child.stdin.take() {
                input.write_all(value.as_bytes()).await?;
            }
            child.wait_with_output().await
        };
        ended(&shown, output.await)
    }
}

/// As a shell would want it.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,+".contains(&byte);
    if word.bytes().all(is_plain) { word.to_owned() } else { format!("'{word}'") }
}

fn ended(shown: &str, output: std::io::Result<Output>) -> Result<String, StageError> {
    let output = output.map_err(StageError::setup("a verb of this program"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let log = String::from_utf8_lossy(&output.stderr).lines().map(str::to_owned).collect();
    Err(StageError::Ended { how: format!("{shown} ended with {}", output.status), log })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_wants_it() {
        assert_eq!(quoted("port.http=8080"), "port.http=8080");
        assert_eq!(quoted(r#"{"a":1}"#), r#"'{"a":1}'"#);
    }
}
