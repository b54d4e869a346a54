//! `quartermaster mesh config …`: config values, as `mesh-config` resolves them.

use quartermaster_node::client::bus::Bus;
use quartermaster_node::mesh::{Selection, needs, set_config, unset_config};
use quartermaster_node::near::near;
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

/// The key that a module needs, where it needs none of this name and one that is like it. Who sets values before a plan names them is
/// told nothing.
async fn meant(bus: &Bus, whose: &Whose) -> Option<String> {
    let selection = Selection { node: Some(whose.node.clone()), module: Some(whose.module.clone()) };
    let needs = needs(bus, &selection).await.ok()?;
    let keys: Vec<&str> =
        needs.iter().filter(|need| need.kind == "config").map(|need| need.name.as_str()).collect();
    if keys.contains(&whose.key.as_str()) {
        return None;
    }
    near(&whose.key, keys).map(str::to_owned)
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
        if value.is_some()
            && let Some(needed) = meant(&bus, whose).await
        {
            say(&format!(
                "warning: {} on {} needs `{}`, and nothing that is called `{}`\n",
                clean(module),
                clean(node),
                clean(&needed),
                clean(key)
            ));
        }
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
