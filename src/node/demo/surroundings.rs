//! What this machine offers: root rights, a service manager. Both are used where they are and missed nowhere.

use std::path::Path;
use std::process::{Command, Stdio};

/// An account of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    /// Its name, or its number where it has none.
    pub(super) name: String,
    /// Its number.
    pub(super) uid: u32,
    /// The number of its group.
    pub(super) gid: u32,
}

/// Which service manager may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manager {
    /// The machine's own.
    System,
    /// The user's.
    User,
}

/// What there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Surroundings {
    /// With root rights: the account the clients run as, which is not root.
    pub(super) client: Option<Account>,
    /// The service manager, if one runs.
    pub(super) manager: Option<Manager>,
}

impl Surroundings {
    /// Looks around.
    pub(super) fn look() -> Self {
        let is_root = rustix::process::geteuid().is_root();
        let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        Self { client: if is_root { client(&accounts) } else { None }, manager: manager(is_root) }
    }

    /// In a line.
    pub(super) fn said(&self) -> String {
        let rights = match &self.client {
            Some(client) => {
                format!("root rights are there: the clients run as {}, the engines as root", client.name)
            }
            None => "no root rights, none are needed".to_owned(),
        };
        let manager = match self.manager {
            Some(Manager::System) => "systemd restarts the web app",
            Some(Manager::User) => "the user's systemd restarts the web app",
            None => "no systemd, a command tells the web app",
        };
        format!("{rights}; {manager}")
    }
}

/// The account that a client runs as: its own where the package made one, else that of nobody.
fn client(accounts: &str) -> Option<Account> {
    let find = |wanted: &str| {
        accounts.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next().filter(|name| *name == wanted)?.to_owned();
            let (_, uid, gid) = (fields.next()?, fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
            Some(Account { name, uid, gid })
        })
    };
    find("mesh-provisioner-client").or_else(|| find("nobody"))
}

fn manager(is_root: bool) -> Option<Manager> {
    if is_root {
        return Path::new("/run/systemd/system").is_dir().then_some(Manager::System);
    }
    let mut command = Command::new("systemctl");
    command
        .args(["--user", "show-environment"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success()).then_some(Manager::User)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_its_own_account_or_nobodys() {
        let nobody = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65533:nobody:/:/usr/sbin/nologin\n";
        let expected = Account { name: "nobody".to_owned(), uid: 65_534, gid: 65_533 };
        assert_eq!(client(nobody), Some(expected));
        let own = format!("{nobody}mesh-provisioner-client:x:990:980::/:/bin/false\n");
        assert_eq!(client(&own).map(|account| account.uid), Some(990));
        assert_eq!(client("root:x:0:0:::\nnobody:x:no"), None);
    }

    #[test]
    fn what_there_is_is_said() {
        let said = Surroundings { client: None, manager: None }.said();
        assert_eq!(said, "no root rights, none are needed; no systemd, a command tells the web app");
    }
}
