//! `quartermaster mesh bind`: what a provider serves, said in the place of its helper.

use quartermaster_node::mesh::{Binding, MeshError, Selection, Site, bind as serve, modules, unbind};
use quartermaster_proto::mesh::accounts::Account;
use quartermaster_proto::mesh::bound::Bound;
use quartermaster_proto::mesh::plan::ProvisionPlan;
use serde_json::json;

use super::place::{SiteArgs, clean, json as print, work};
use crate::cli::out::Out;
use crate::exit::Exit;

/// Arguments of `quartermaster mesh bind`.
#[derive(Debug, Clone, clap::Args)]
pub struct BindArgs {
    /// The consumer's machine
    #[arg(value_name = "NODE")]
    node: String,
    /// The consumer
    #[arg(value_name = "MODULE")]
    module: String,
    /// The provision
    #[arg(value_name = "PROVISION")]
    provision: String,
    /// The entry: {"state":"bound","as":..,"user":..,"values":{..}}
    #[arg(value_name = "JSON", required_unless_present_any = ["refuse", "remove"], conflicts_with_all = ["refuse", "remove"])]
    entry: Option<String>,
    /// Which of several, where the module has the provision more than once
    #[arg(long, value_name = "NAME")]
    local: Option<String>,
    /// Refuse instead, for this reason
    #[arg(long, value_name = "REASON", conflicts_with = "remove")]
    refuse: Option<String>,
    /// Take the entry away instead
    #[arg(long)]
    remove: bool,
    /// The provider [default: the one the consumer's plan names]
    #[arg(long, value_name = "MODULE")]
    provider: Option<String>,
    /// The provider's machine [default: the one the plan names, or the only one that has the provider's account]
    #[arg(long, value_name = "NODE")]
    at: Option<String>,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn bind(place: &SiteArgs, args: &BindArgs, out: &mut Out) -> Exit {
    work(async {
        let entry = entry(args)?;
        let site = place.open()?;
        let (provider, at) = match (&args.provider, &args.at) {
            (Some(provider), at) => (provider.clone(), at.clone()),
            (None, at) => {
                let planned = planned(place, &site, args).await?;
                (planned.provider, at.clone().or(planned.at))
            }
        };
        let account = account(&site, &provider, at)?;
        let bus = place.connect(&site, &account).await?;
        let binding = Binding {
            provider: &provider,
            node: &args.node,
            module: &args.module,
            provision: &args.provision,
            local: args.local.as_deref(),
        };
        let (what, revision) = match &entry {
            Some(entry @ Bound::Refused { .. }) => ("refused", serve(&bus, &binding, entry).await?),
            Some(entry) => ("bound", serve(&bus, &binding, entry).await?),
            None => ("unbound", unbind(&bus, &binding).await?),
        };
        if args.json {
            print(
                out,
                &json!({
                    "node": args.node, "module": args.module, "provision": args.provision, "local": args.local,
                    "state": what, "provider": provider, "account": account.name(), "revision": revision,
                }),
            );
            return Ok(Exit::Success);
        }
        out.text(&format!(
            "{} of {} on {} is {what}, as {}\n",
            clean(&args.provision),
            clean(&args.module),
            clean(&args.node),
            account.name()
        ));
        Ok(Exit::Success)
    })
}

fn entry(args: &BindArgs) -> Result<Option<Bound>, MeshError> {
    match (&args.entry, &args.refuse) {
        (_, Some(reason)) => Ok(Some(Bound::Refused { reason: reason.clone() })),
        (Some(text), None) => Ok(Some(Bound::read(text.as_bytes())?)),
        (None, None) => Ok(None),
    }
}

/// The entry of the consumer's plan.
async fn planned(place: &SiteArgs, site: &Site, args: &BindArgs) -> Result<ProvisionPlan, MeshError> {
    let bus = place.connect(site, &Account::Controller).await?;
    let selection = Selection { node: Some(args.node.clone()), module: Some(args.module.clone()) };
    let found = modules(&bus, &site.signer()?.public(), &selection).await?;
    let plan = found.first().and_then(|placed| placed.plan());
    let named = plan.and_then(|plan| {
        let is_meant =
            |entry: &&ProvisionPlan| entry.provision == args.provision && entry.local == args.local;
        plan.contents.provisions.iter().find(is_meant).cloned()
    });
    let asked = args.local.as_ref().map_or_else(String::new, |local| format!(" with the local `{local}`"));
    named.ok_or_else(|| {
        MeshError::Refused(vec![format!(
            "no plan of {} on {} has the provision `{}`{asked}; --provider names a provider all the same",
            args.module, args.node, args.provision
        )])
    })
}

/// The account of the provider's helper.
fn account(site: &Site, provider: &str, at: Option<String>) -> Result<Account, MeshError> {
    let module = provider.to_owned();
    if let Some(node) = at {
        return Ok(Account::Provider { node, module });
    }
    let has = |account: &Account| matches!(account, Account::Provider { module, .. } if module == provider);
    let mut found = site.accounts()?.into_iter().filter(has);
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err(MeshError::NoAccount {
            account: format!("provider.<node>.{provider}"),
            help: "`quartermaster mesh node add NODE --provider MODULE` makes them",
        }),
        (Some(_), Some(_)) => Err(MeshError::Refused(vec![format!(
            "{provider} is on several machines: --at says which one serves"
        )])),
    }
}
