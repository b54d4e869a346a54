//! `quartermaster mesh init`: keys, the broker's configuration, buckets, streams, registry.

use std::path::Path;

use quartermaster_node::mesh::{Made, MeshError, Site, prepare, register};
use quartermaster_proto::mesh::Kind;
use quartermaster_proto::mesh::accounts::Account;
use serde_json::{Value, json};

use super::place::{SiteArgs, json as print, work};
use crate::cli::out::{Out, say};
use crate::exit::Exit;

/// Arguments of `quartermaster mesh init`.
#[derive(Debug, Clone, clap::Args)]
pub struct InitArgs {
    /// Public key of the vault's deposits, as `quartermaster vault init` prints it
    #[arg(long, value_name = "BASE64")]
    box_key: Option<String>,
    /// Copies of each bucket, in a cluster of brokers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=5))]
    replicas: u8,
    /// Write every entry of the registry as it is first written, also those that were changed
    #[arg(long)]
    anew: bool,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn init(place: &SiteArgs, args: &InitArgs, out: &mut Out) -> Exit {
    work(async {
        let site = Site::create(&place.site)?;
        let mut settings = site.settings()?;
        settings.servers = place.servers.clone().or(settings.servers);
        settings.box_key = args.box_key.clone().or(settings.box_key);
        site.remember(&settings)?;
        let broker = site.write_broker()?;
        let pin = site.signer()?.public().to_string();
        let keys = json!({"site": place.site, "pin": pin, "broker": broker});
        if settings.servers.is_none() {
            let text = format!(
                "keys of the mesh are in {}\npin of the controller: {pin}\nnext: the broker's configuration includes {}, then \
                 `quartermaster mesh init --servers HOST:PORT` makes the buckets\n",
                place.site.display(),
                broker.display()
            );
            show(out, args.json, &text, &keys);
            return Ok(Exit::Success);
        }
        let done = match on_the_broker(place, &site, settings.box_key.as_deref(), args).await {
            Ok(done) => done,
            Err(error) => {
                hint(&error, &broker);
                return Err(error);
            }
        };
        show(out, args.json, &for_people(place, &pin, &done), &for_scripts(keys, &done));
        Ok(Exit::Success)
    })
}

/// A broker that does not know us yet is what the first run meets.
fn hint(error: &MeshError, broker: &Path) {
    if matches!(error, MeshError::Away { .. } | MeshError::Login { .. }) {
        say(&format!("the keys are made; the broker's configuration includes {}\n", broker.display()));
    }
}

type Done = (Vec<Made>, Vec<Kind>);

async fn on_the_broker(
    place: &SiteArgs,
    site: &Site,
    box_key: Option<&str>,
    args: &InitArgs,
) -> Result<Done, MeshError> {
    let bus = place.connect(site, &Account::Controller).await?;
    let made = prepare(&bus, args.replicas.into()).await?;
    let kinds = register(&bus, &site.signer()?, box_key, args.anew).await?;
    Ok((made, kinds))
}

fn for_people(place: &SiteArgs, pin: &str, (made, kinds): &Done) -> String {
    let mut lines = vec![
        format!("keys of the mesh are in {}", place.site.display()),
        format!("pin of the controller: {pin}"),
    ];
    for made in made {
        let what = match (&made.differs, made.is_new) {
            (Some(differs), _) => format!("left alone, but it {differs}"),
            (None, true) => "made".to_owned(),
            (None, false) => "was there".to_owned(),
        };
        lines.push(format!("{}: {what}", made.name));
    }
    let kinds: Vec<_> = kinds.iter().map(|kind| kind.as_str()).collect();
    lines.push(if kinds.is_empty() {
        "registry: nothing to write".to_owned()
    } else {
        format!("registry: wrote {}", kinds.join(" "))
    });
    lines.join("\n") + "\n"
}

fn for_scripts(mut keys: Value, (made, kinds): &Done) -> Value {
    let made: Vec<Value> = made
        .iter()
        .map(|made| json!({"name": made.name, "new": made.is_new, "differs": made.differs}))
        .collect();
    let kinds: Vec<_> = kinds.iter().map(|kind| kind.as_str()).collect();
    if let Some(keys) = keys.as_object_mut() {
        keys.insert("made".to_owned(), made.into());
        keys.insert("registered".to_owned(), kinds.into());
    }
    keys
}

fn show(out: &mut Out, is_json: bool, text: &str, value: &Value) {
    if is_json {
        print(out, value);
    } else {
        out.text(text);
    }
}
