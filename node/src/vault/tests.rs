use quartermaster_proto::mesh::accounts::Account;
use quartermaster_proto::mesh::plan::read_assignment;
use quartermaster_proto::mesh::vault::{GetReply, GetRequest, PutReply, PutRequest, SecretChanged};
use quartermaster_proto::time::WallClock;
use zeroize::Zeroizing;

use super::audit::Audit;
use super::core::{AdminError, Vault};
use super::key::StoreKey;
use super::policy::{Mirror, Verdict, may_get, readers};
use super::rules::Rules;
use super::store::{Store, Value};
use crate::sealed::{BoxKey, seal};

const NOW: WallClock = WallClock::from_seconds(1_795_975_200);

fn provisioner(node: &str) -> Account {
    Account::Provisioner { node: node.to_owned() }
}

fn provider(node: &str, module: &str) -> Account {
    Account::Provider { node: node.to_owned(), module: module.to_owned() }
}

/// web1 has forge, which has a secret and binds postgres (a pair) and hub (issued); web2 has forge likewise, but only to
/// the postgres on db1; db1 and db2 have postgres, db1 has hub.
fn mirror() -> Mirror {
    let digest = format!("sha256:{}", "0".repeat(64));
    let forge = |at: &str| {
        format!(
            r#""provisioning":{{"templates":{{"reference":"file:/t","digest":"{digest}"}},"secrets":[{{"name":"pw"}}],"provisions":[{{"provision":"db","provider":"postgres","credential":"pair","local":"main","name":"db-pw"{at}}},{{"provision":"read","provider":"hub","credential":"issued","name":"token"}},{{"provision":"dns","provider":"dns","credential":"none"}},{{"provision":"db","provider":"postgres","credential":"pair","local":"unnamed"}}]}}"#
        )
    };
    let mut mirror = Mirror::default();
    let mut put = |node: &str, module: &str, plan: &str| {
        let comma = if plan.is_empty() { "" } else { "," };
        let text = format!(r#"{{"node":"{node}","module":"{module}"{comma}{plan}}}"#);
        mirror.put(read_assignment(&format!("{node}.{module}"), text.as_bytes()).unwrap().0);
    };
    put("web1", "forge", &forge(""));
    put("web2", "forge", &forge(r#","at":"db1""#));
    put("db1", "postgres", "");
    put("db2", "postgres", "");
    put("db1", "hub", "");
    put("db1", "dns", "");
    mirror
}

#[track_caller]
fn check_may(account: &Account, name: &str, expected: Result<&[&str], &str>) {
    let verdict = may_get(&Rules::default(), &mirror(), account, &name.parse().unwrap());
    match (verdict, expected) {
        (Verdict::Granted { rows, .. }, Ok(expected)) => assert_eq!(rows, expected),
        (Verdict::Refused(reason), Err(says)) => assert!(reason.contains(says), "{reason}"),
        (verdict, _) => panic!("{verdict:?}"),
    }
}

#[test]
fn an_own_secret_goes_to_the_machines_whose_plan_names_it() {
    check_may(&provisioner("web1"), "own/forge/pw", Ok(&["own/forge/pw/web1", "own/forge/pw"]));
    check_may(&provisioner("web1"), "own/forge/other", Err("is not in the plan of web1.forge"));
    check_may(&provisioner("db1"), "own/forge/pw", Err("is not in the plan of db1.forge"));
    check_may(&provisioner("web1"), "own/forge/pw/web2", Err("without its machine"));
    check_may(&Account::Engine { node: "web1".to_owned() }, "own/forge/pw", Err("may ask for nothing"));
    check_may(&provider("web1", "forge"), "own/forge/pw", Err("may ask for nothing"));
}

#[test]
fn a_credential_goes_to_its_consumer() {
    let pair = "provision/postgres/db/web1/forge/main";
    check_may(&provisioner("web1"), pair, Ok(&["pair/postgres/db/web1/forge/main"]));
    check_may(&provisioner("web2"), pair, Err("is not in the plan of web2.forge"));
    check_may(&provisioner("web1"), "provision/postgres/db/web1/forge", Err("is not in the plan"));
    check_may(&provisioner("web1"), "provision/postgres/db/web1/forge/unnamed", Err("is not in the plan"));
    let issued = "provision/hub/read/web1/forge";
    check_may(&provisioner("web1"), issued, Ok(&[issued]));
    check_may(&provisioner("web1"), "provision/dns/dns/web1/forge", Err("is not in the plan"));
}

#[test]
fn the_other_half_goes_to_every_machine_of_the_provider_that_is_bound() {
    let (one, two) = ("pair/postgres/db/web1/forge/main", "pair/postgres/db/web2/forge/main");
    check_may(&provisioner("db1"), one, Ok(&[one]));
    check_may(&provisioner("db2"), one, Ok(&[one]));
    check_may(&provisioner("db1"), two, Ok(&[two]));
    check_may(&provisioner("db2"), two, Err("web2.forge does not bind postgres on db2 so"));
    check_may(&provisioner("web1"), one, Err("postgres is not assigned to web1"));
    check_may(&provisioner("db1"), "pair/hub/read/web1/forge", Ok(&["pair/hub/read/web1/forge"]));
    check_may(&provisioner("db1"), "pair/dns/dns/web1/forge", Err("hands no credential"));
    check_may(&provisioner("db1"), "pair/postgres/db/web3/forge", Err("does not bind"));
}

#[test]
fn a_site_denies_first_and_allows_last() {
    let rules = Rules::parse("deny provisioner.web1 own/*\nallow provisioner.* own/extra/*").unwrap();
    let may = |node: &str, name: &str| may_get(&rules, &mirror(), &provisioner(node), &name.parse().unwrap());
    assert!(matches!(may("web1", "own/forge/pw"), Verdict::Refused(reason) if reason.contains("denied")));
    assert!(matches!(may("web2", "own/forge/pw"), Verdict::Granted { .. }));
    assert!(matches!(may("web2", "own/extra/x"), Verdict::Granted { rows, .. } if rows == ["own/extra/x"]));
    assert!(matches!(may("web1", "own/extra/x"), Verdict::Refused(_)));
}

#[test]
fn everybody_who_may_have_a_value_hears_of_its_change_and_nobody_else() {
    let names = |row: &str| {
        let found = readers(&Rules::default(), &mirror(), row);
        found.into_iter().map(|(account, name)| format!("{} {name}", account.name())).collect::<Vec<_>>()
    };
    assert_eq!(names("own/forge/pw"), ["provisioner.web1 own/forge/pw", "provisioner.web2 own/forge/pw"]);
    assert_eq!(names("own/forge/pw/web2"), ["provisioner.web2 own/forge/pw"]);
    assert_eq!(
        names("pair/postgres/db/web1/forge/main"),
        [
            "provisioner.web1 provision/postgres/db/web1/forge/main",
            "provisioner.db1 pair/postgres/db/web1/forge/main",
            "provisioner.db2 pair/postgres/db/web1/forge/main",
        ]
    );
    assert_eq!(names("provision/hub/read/web1/forge"), ["provisioner.web1 provision/hub/read/web1/forge"]);
    assert_eq!(names("own/nobody/x"), Vec::<String>::new());
    assert_eq!(names("box-key"), Vec::<String>::new());
}

struct Site {
    folder: tempfile::TempDir,
    vault: Vault,
    key: BoxKey,
}

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let vault = open(&folder, "audit");
        Self { folder, vault, key: BoxKey::generate() }
    }

    fn get(&mut self, node: &str, name: &str) -> Result<(String, u64), String> {
        let request = GetRequest { name: name.parse().unwrap(), key: self.key.public(), revision: 0 };
        match self.vault.get(&provisioner(node), &request, NOW).unwrap() {
            GetReply::Sealed { sealed, version } => {
                Ok((String::from_utf8(self.key.open(&sealed).unwrap().to_vec()).unwrap(), version))
            }
            GetReply::Absent { reason } | GetReply::Refused { reason } => Err(reason),
        }
    }

    fn set(&mut self, name: &str, value: &str) -> u64 {
        self.vault.set(name, &secret(value), NOW).unwrap()
    }

    fn audit(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("audit")).unwrap()
    }

    fn unsent(&mut self) -> Vec<(String, u64)> {
        let unsent = self.vault.store_mut().unsent(100).unwrap();
        unsent
            .into_iter()
            .map(|(_, notice)| (notice.subject, SecretChanged::read(&notice.payload).unwrap().version))
            .collect()
    }
}

fn open(folder: &tempfile::TempDir, audit: &str) -> Vault {
    let store = Store::open(&folder.path().join("vault"), StoreKey::new([1; 32])).unwrap();
    let audit = Audit::open(&folder.path().join(audit)).unwrap();
    let mut vault = Vault::new(store, audit, Rules::default(), "mesh-vault.secret-changed").unwrap();
    *vault.mirror_mut() = mirror();
    vault
}

fn secret(text: &str) -> Value {
    Value::new(Zeroizing::new(text.as_bytes().to_vec()))
}

#[test]
fn a_secret_is_absent_then_sealed_to_its_asker_and_the_audit_tells_both() {
    let mut site = Site::new();
    assert_eq!(site.get("web1", "own/forge/pw"), Err("not stored yet".to_owned()));
    let version = site.set("own/forge/pw", "canary");
    assert_eq!(site.get("web1", "own/forge/pw"), Ok(("canary".to_owned(), version)));
    assert!(site.get("db1", "own/forge/pw").is_err());
    let audit = site.audit();
    let outcomes: Vec<&str> = audit
        .lines()
        .map(|line| line.split("\"outcome\":\"").nth(1).unwrap().split('"').next().unwrap())
        .collect();
    assert_eq!(outcomes, ["absent", "stored", "sealed", "refused"]);
    assert!(!audit.contains("canary") && audit.contains("\"account\":\"provisioner.web1\""));
}

#[test]
fn a_value_for_one_machine_goes_before_the_one_for_all_and_versions_do_not_fall() {
    let mut site = Site::new();
    site.set("own/forge/pw", "all");
    let own = site.set("own/forge/pw/web1", "one");
    assert_eq!(site.get("web1", "own/forge/pw"), Ok(("one".to_owned(), own)));
    assert_eq!(site.get("web2", "own/forge/pw").unwrap().0, "all");
    site.vault.delete("own/forge/pw/web1", NOW).unwrap();
    let (value, version) = site.get("web1", "own/forge/pw").unwrap();
    assert_eq!(value, "all");
    assert!(version > own, "the machine's own row went, and that counts as a change");
}

#[test]
fn both_ends_of_a_pair_get_one_value_whoever_asks_first() {
    for first in ["consumer", "provider"] {
        let mut site = Site::new();
        let mut ask = |who: &str| match who {
            "consumer" => site.get("web1", "provision/postgres/db/web1/forge/main"),
            _ => site.get("db1", "pair/postgres/db/web1/forge/main"),
        };
        let made = ask(first).unwrap();
        assert_eq!(made.0.len(), 43);
        assert_eq!([ask("consumer").unwrap(), ask("provider").unwrap()], [made.clone(), made]);
        assert_eq!(site.unsent().len(), 3, "both ends hear of it");
    }
}

#[test]
fn an_issued_credential_is_deposited_by_its_provider_alone() {
    let mut site = Site::new();
    let name = "provision/hub/read/web1/forge";
    assert_eq!(site.get("web1", name), Err("not stored yet".to_owned()));
    let public =
        base64::Engine::decode(&base64::engine::general_purpose::STANDARD, site.vault.public_box_key())
            .unwrap();
    let sealed = seal(&public.try_into().unwrap(), b"token").unwrap();
    let put = |site: &mut Site, account: &Account, name: &str, sealed: &[u8]| {
        let request = PutRequest { name: name.parse().unwrap(), sealed: sealed.to_vec() };
        site.vault.put(account, &request, NOW).unwrap()
    };
    for (account, name) in [
        (provider("db1", "postgres"), name),
        (provider("db1", "hub"), "provision/hub/read/web3/forge"),
        (provider("db1", "postgres"), "provision/postgres/db/web1/forge/main"),
        (provisioner("web1"), name),
        (provider("db1", "hub"), "own/forge/pw"),
    ] {
        assert!(
            matches!(put(&mut site, &account, name, &sealed), PutReply::Refused { .. }),
            "{account:?} {name}"
        );
    }
    assert!(matches!(put(&mut site, &provider("db1", "hub"), name, &[0; 60]), PutReply::Refused { .. }));
    let PutReply::Stored { version } = put(&mut site, &provider("db1", "hub"), name, &sealed) else {
        panic!()
    };
    assert_eq!(site.get("web1", name), Ok(("token".to_owned(), version)));
    assert_eq!(
        site.unsent(),
        [("mesh-vault.secret-changed.provisioner.web1.provision/hub/read/web1/forge".to_owned(), version)]
    );
}

#[test]
fn a_rotation_makes_another_value_and_is_said_to_all_who_have_it() {
    let mut site = Site::new();
    let first = site.set("own/forge/pw", "first");
    let second = site.vault.rotate("own/forge/pw", 16, NOW).unwrap();
    assert!(second > first);
    let (value, version) = site.get("web1", "own/forge/pw").unwrap();
    assert_eq!((value.len(), version), (22, second));
    let subject = |node: &str| (format!("mesh-vault.secret-changed.provisioner.{node}.own/forge/pw"), second);
    assert_eq!(site.unsent(), [subject("web1"), subject("web2")]);
    assert!(matches!(site.vault.rotate("own/forge/none", 16, NOW), Err(AdminError::Absent(_))));
    assert!(matches!(site.vault.rotate("own/forge/pw", 0, NOW), Err(AdminError::TooLong)));
}

#[test]
fn operators_name_secrets_and_nothing_else() {
    let mut site = Site::new();
    assert!(matches!(site.vault.set("box-key", &secret("x"), NOW), Err(AdminError::Name(_))));
    assert!(matches!(site.vault.delete("box-key", NOW), Err(AdminError::Name(_))));
    assert!(matches!(site.vault.delete("own/forge/pw", NOW), Err(AdminError::Absent(_))));
    assert!(site.vault.list().is_empty());
    let long = "x".repeat(512 * 1024 + 1);
    assert!(matches!(site.vault.set("own/forge/pw", &secret(&long), NOW), Err(AdminError::TooLong)));
}

#[test]
fn nothing_leaves_when_the_audit_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.path().join("full")).unwrap();
    let mut vault = open(&folder, "full");
    let request = GetRequest { name: "own/forge/pw".parse().unwrap(), key: [9; 32], revision: 0 };
    assert!(vault.get(&provisioner("web1"), &request, NOW).is_err());
    assert!(vault.set("own/forge/pw", &secret("x"), NOW).is_err());
}

#[test]
fn the_key_for_deposits_outlives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(&folder, "audit").public_box_key();
    assert_eq!(open(&folder, "audit").public_box_key(), first);
}

#[test]
fn a_change_before_the_assignments_are_known_is_said_once_they_are() {
    let mut site = Site::new();
    site.vault.forget_assignments();
    let first = site.set("own/forge/pw", "one");
    let second = site.set("own/forge/pw", "two");
    let other = site.set("own/forge/pw/web2", "for web2");
    assert!(second > first && site.vault.unsent(100).unwrap().is_empty(), "nobody is known yet");
    let Site { folder, vault, key } = site;
    drop(vault);
    let mut site = Site { vault: open(&folder, "audit"), folder, key };
    site.vault.know_assignments(NOW).unwrap();
    let subject = |node: &str| format!("mesh-vault.secret-changed.provisioner.{node}.own/forge/pw");
    assert_eq!(site.unsent(), [(subject("web1"), second), (subject("web2"), other)]);
    site.vault.know_assignments(NOW).unwrap();
    assert_eq!(site.unsent().len(), 2, "once");
}
