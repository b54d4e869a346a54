//! The broker's configuration, from the one table of who may do what.

use std::fmt::Write as _;

use quartermaster_proto::mesh::accounts::Account;
use quartermaster_proto::mesh::signature::PublicNkey;

/// One user of the broker: a program, and the key it logs in with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The program.
    pub account: Account,
    /// The public half of its key.
    pub key: PublicNkey,
}

/// The part of a nats-server's configuration that lets these users in, each with what its row of the table grants and with
/// nothing else.
///
/// All of them belong to one account of the broker, which must have JetStream.
pub fn configuration(users: &[User]) -> String {
    let mut text = String::from("authorization {\n  users = [\n");
    for user in users {
        let grant = user.account.grant();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "    # {}\n    {{\n      nkey: {}\n      permissions: {{\n        publish: {{ allow: [\n{}        ] }}\n        \
             subscribe: {{ allow: [\n{}        ] }}\n      }}\n    }}\n",
            user.account.name(),
            user.key,
            subjects(&grant.publish),
            subjects(&grant.subscribe),
        );
    }
    text.push_str("  ]\n}\n");
    text
}

/// Each in quotes, where a dollar stands for itself.
fn subjects(subjects: &[String]) -> String {
    subjects.iter().fold(String::new(), |mut text, subject| {
        let _ = writeln!(text, "          \"{subject}\"");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_written_with_its_grant_alone() {
        let user = User {
            account: Account::ToolRunner { node: "web1.example".to_owned() },
            key: PublicNkey::user([0; 32]),
        };
        let key = user.key.to_string();
        assert_eq!(
            configuration(&[user]),
            format!(
                "authorization {{\n  users = [\n    # toolrunner.web1=2Eexample\n    {{\n      nkey: {key}\n      permissions: \
                 {{\n        publish: {{ allow: [\n          \"prov.ask.web1=2Eexample\"\n        ] }}\n        subscribe: {{ \
                 allow: [\n          \"prov.changed.web1=2Eexample.>\"\n          \
                 \"_INBOX_toolrunner.web1=2Eexample.>\"\n        ] }}\n      }}\n    }}\n  ]\n}}\n"
            )
        );
    }
}
