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
        /// Print what was done as JSON
        #[arg(long)]
        json: bool,
    },
    /// Take a value away
    Unset {
        /// Whose value.
        #[command(flatten)]
        whose: Whose,
        /// Print what was done as JSON
        #[arg(long)]
        json: bool,
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

/// What was done, for scripts.
#[derive(serde::Serialize)]
struct Done<'a> {
    node: &'a str,
    module: &'a str,
    key: &'a str,
    /// As it is stored, with every digit; null where it was taken away.
    value: Option<&'a Json>,
    revision: u64,
}

pub(super) fn config(place: &SiteArgs, command: &ConfigCommand, out: &mut Out) -> Exit {
    let (ConfigCommand::Set { whose, json, .. } | ConfigCommand::Unset { whose, json }) = command;
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
        let revision = match &value {
            Some(value) => set_config(&bus, node, module, key, value).await?,
            None => unset_config(&bus, node, module, key).await?,
        };
        if *json {
            let done = Done { node, module, key, value: value.as_ref(), revision };
            out.text(&format!("{}\n", serde_json::to_string(&done).unwrap_or_default()));
        } else {
            let what = if value.is_some() { "set" } else { "unset" };
            out.text(&format!("{} of {} on {} is {what}\n", clean(key), clean(module), clean(node)));
        }
        Ok(Exit::Success)
    })
}
