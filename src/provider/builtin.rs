//! `provider builtin NAME`: a provider that is part of this program, as a process of its own.

use std::io::IsTerminal as _;

use quartermaster_actors::builtin::{Builtin, BuiltinHandle, Hands, Voice, serve};
use quartermaster_actors::child::Orphans;
use quartermaster_actors::provider::{EnvironmentRules, Inherit, environment};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;

use super::command::say;
use crate::cli::out::Out;
use crate::exit::Exit;

/// Arguments of `quartermaster provider builtin`.
#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "A configuration needs no process for it: `source: builtin/NAME`. Exit codes: 0 served, 1 the host went away or broke the \
protocol, 2 started by a person."
)]
pub struct Args {
    /// Which one
    #[arg(value_name = "NAME", value_parser = ["exec", "file"])]
    pub name: String,
    /// Print the schema and end
    #[arg(value_name = "schema", value_parser = ["schema"], hide = true)]
    pub what: Option<String>,
}

/// Serves until the host asks for the end or goes away.
pub async fn run(args: &Args, out: &mut Out) -> Exit {
    let Some(builtin) = Builtin::find(&args.name) else { return Exit::Usage };
    if args.what.is_some() {
        out.text(&format!("{}\n", builtin.schema_text()));
        return Exit::Success;
    }
    if std::io::stdin().is_terminal() {
        say("a provider is started by its host and speaks to it; try `quartermaster provider schema`\n");
        return Exit::Usage;
    }
    let rules =
        EnvironmentRules { inherit: Inherit::All, pass: Vec::new(), set: Vec::new(), remove: Vec::new() };
    let (voice, words) = Voice::new();
    tokio::task::spawn_local(speak(words));
    let hands = Hands {
        environment: environment(std::env::vars_os(), &rules),
        directory: None,
        orphans: Orphans::unadopted(),
        voice,
    };
    let handle = BuiltinHandle::start(builtin, hands);
    match serve(handle, tokio::io::stdin(), tokio::io::stdout()).await {
        Ok(()) => Exit::Success,
        Err(error) => {
            say(&format!("{error}\n"));
            Exit::Failure
        }
    }
}

async fn speak(mut words: mpsc::Receiver<String>) {
    let mut errors = tokio::io::stderr();
    while let Some(line) = words.recv().await {
        let _ = errors.write_all(format!("{line}\n").as_bytes()).await;
        let _ = errors.flush().await;
    }
}
