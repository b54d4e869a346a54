//! Completion scripts and manual pages, made from the command line's own definition.

use std::path::PathBuf;

use clap_complete::Shell;

use super::out::Out;
use crate::exit::Exit;

/// Arguments of `quartermaster completions`.
#[derive(Debug, Clone, clap::Args)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// Arguments of `quartermaster man`.
#[derive(Debug, Clone, clap::Args)]
pub struct ManArgs {
    /// Write one page for each verb into this folder instead of printing the main one
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

pub(super) fn completions(args: &CompletionsArgs, command: &mut clap::Command, out: &mut Out) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, command, "quartermaster", &mut script);
    out.bytes(&script);
    Exit::Success
}

pub(super) fn man(args: &ManArgs, command: clap::Command, out: &mut Out) -> Exit {
    let written = if let Some(dir) = &args.dir {
        std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(command, dir))
    } else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page).map(|()| out.bytes(&page))
    };
    match written {
        Ok(()) => Exit::Success,
        Err(error) => {
            tracing::error!(%error, "the manual page cannot be written");
            Exit::Files
        }
    }
}
