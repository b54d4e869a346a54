//! `quartermaster mesh config …`: config values, as `mesh-config` resolves them.

use quartermaster_node::mesh::{set_config, unset_config};
use quartermaster_proto::mesh::accounts::Account;
use quartermaster_proto::mesh::value::Json;

use super::place::{SiteArgs, clean, work};
use crate::cli::out::{Out, say};
use crate::exit::Exit;

/// `quartermaster mesh config …`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum ConfigCommand {
    /// Set a value
    Set {
        /// Whose value.
        #[command(flatten)]
        whose: Whose,
        /// The value as JSON; anything else is a string
        #[arg(value_name = "JSON", allow_hyphen_values = true)]
        value: String,
    },
    /// Take a value away
    Unset {
        /// Whose value.
        #[command(flatten)]
        whose: Whose,
    },
}

/// Which value.
#[derive(Debug, Clone, clap::Args)]
pub struct Whose {
    /// The machine
    #[arg(value_name = "NODE")]
    node: String,
    /// The module
    #[arg(value_name = "MODULE")]
    module: String,
    /// The key
    #[arg(value_name = "KEY")]
    key: String,
}

pub(super) fn config(place: &SiteArgs, command: &ConfigCommand, out: &mut Out) -> Exit {
    let (ConfigCommand::Set { whose, .. } | ConfigCommand::Unset { whose }) = command;
    let Whose { node, module, key } = whose;
    let value = match command {
        ConfigCommand::Set { value, .. } => {
            Some(Json::read(value.trim()).unwrap_or_else(|| Json::string(value)))
        }
        ConfigCommand::Unset { .. } => None,
    };
    if value.as_ref().is_some_and(|value| value.get() == "null") {
        say(
            "refused: null is no value and would fail the module; `quartermaster mesh config unset` takes one away\n",
        );
        return Exit::Failure;
    }
    work(async {
        let site = place.open()?;
        let bus = place.connect(&site, &Account::Config).await?;
        let shown = format!("{} of {} on {}", clean(key), clean(module), clean(node));
        if let Some(value) = &value {
            set_config(&bus, node, module, key, value).await?;
            out.text(&format!("{shown} is set\n"));
        } else {
            unset_config(&bus, node, module, key).await?;
            out.text(&format!("{shown} is unset\n"));
        }
        Ok(Exit::Success)
    })
}
