//! `quartermaster mesh accounts`: the table of who may publish and hear what.

use quartermaster_node::mesh::{User, configuration};
use quartermaster_proto::mesh::accounts::Account;
use serde::Serialize;

use crate::cli::out::{Out, say};
use crate::exit::Exit;

/// Arguments of `quartermaster mesh accounts`.
#[derive(Debug, Clone, clap::Args)]
pub struct AccountsArgs {
    /// Accounts, each with the public key it logs in with: `provisioner.web1=UABC...`. With --json keys may be left out
    #[arg(value_name = "ACCOUNT[=NKEY]", required = true)]
    accounts: Vec<String>,
    /// Print the table as JSON instead of the broker's configuration
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub(super) fn accounts(args: &AccountsArgs, out: &mut Out) -> Exit {
    match listed(&args.accounts, args.json) {
        Ok(text) => {
            out.text(&text);
            Exit::Success
        }
        Err(why) => {
            say(&format!("error: {why}\n"));
            Exit::Usage
        }
    }
}

/// A row of the table.
#[derive(Serialize)]
struct Row {
    account: String,
    inbox_prefix: String,
    publish: Vec<String>,
    subscribe: Vec<String>,
}

/// How long the public key of a user is, in characters.
const USER_KEY: usize = 56;

fn listed(accounts: &[String], json: bool) -> Result<String, String> {
    let split = |text: &String| {
        // A token holds `=` itself before the two digits of a byte, so what follows the last one is a key only by its length.
        let (name, key) = match text.rsplit_once('=') {
            Some((name, key)) if key.len() == USER_KEY => (name, Some(key)),
            _ if Account::parse(text).is_ok() => (text.as_str(), None),
            Some((name, key)) => (name, Some(key)),
            None => (text.as_str(), None),
        };
        let account = Account::parse(name).map_err(|fault| format!("{name}: {fault}"))?;
        Ok::<_, String>((account, key.map(str::to_owned)))
    };
    let accounts: Vec<_> = accounts.iter().map(split).collect::<Result<_, _>>()?;
    if json {
        let rows: Vec<Row> = accounts
            .into_iter()
            .map(|(account, _)| {
                let grant = account.grant();
                Row {
                    account: account.name(),
                    inbox_prefix: account.inbox_prefix(),
                    publish: grant.publish,
                    subscribe: grant.subscribe,
                }
            })
            .collect();
        return Ok(serde_json::to_string_pretty(&rows).unwrap_or_default() + "\n");
    }
    let users: Vec<User> = accounts
        .into_iter()
        .map(|(account, key)| {
            let name = account.name();
            let key = key.ok_or_else(|| format!("{name}: its public key is missing: {name}=U…"))?;
            let key = key.parse().map_err(|error| format!("{name}: {error}"))?;
            Ok::<_, String>(User { account, key })
        })
        .collect::<Result<_, _>>()?;
    Ok(configuration(&users))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "UAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

    fn check(accounts: &[&str], json: bool, says: &str) {
        let accounts: Vec<String> = accounts.iter().map(|account| (*account).to_owned()).collect();
        let text = listed(&accounts, json).unwrap_or_else(|why| why);
        assert!(text.contains(says), "{text}");
    }

    #[test]
    fn accounts_are_listed_with_their_rows() {
        let key = quartermaster_proto::mesh::signature::PublicNkey::user([0; 32]).to_string();
        assert_eq!(key.len(), KEY.len());
        check(&[&format!("provisioner.web1=2Eexample={key}")], false, "prov.ask.web1=2Eexample");
        check(&["mesh-vault", "engine.web1=2Eexample"], true, "\"account\": \"engine.web1=2Eexample\"");
    }

    #[test]
    fn what_is_no_account_or_has_no_key_is_named() {
        check(&["root"], true, "root: ");
        check(&["mesh-vault"], false, "mesh-vault: its public key is missing");
        check(&["mesh-vault=UABC"], false, "mesh-vault: ");
    }
}
