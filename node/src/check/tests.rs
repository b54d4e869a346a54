use std::collections::BTreeMap;

use quartermaster_proto::mesh::{
    Kind,
    plan::{Plan, Planned, read_assignment},
    registry::Entry,
};

use super::*;
use crate::archive::Templates;

/// A plan of these members, with templates of these names and texts.
fn plan(members: &str) -> Plan {
    let text = format!(
        r#"{{"node":"web1","module":"forge","provisioning":{{"templates":{{"reference":"file:/t","digest":"sha256:{}"}},{members}}}}}"#,
        "0".repeat(64)
    );
    let (assignment, unknown) = read_assignment("web1.forge", text.as_bytes()).unwrap();
    assert!(unknown.is_empty(), "{unknown:?}");
    match assignment.planned {
        Planned::Plan(plan) => *plan,
        other => panic!("{other:?}"),
    }
}

fn templates(texts: &[(&str, &str)]) -> Templates {
    texts.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().into())).collect()
}

const MEMBERS: &str = r##""files":[{"path":"/a","template":"a","owner-at-runtime":"owned"}],
    "secrets":[{"name":"pw"},{"name":"key","path":"/key"}],
    "provisions":[
      {"provision":"postgres","provider":"postgres","credential":"pair","local":"main","name":"db"},
      {"provision":"postgres","provider":"postgres","credential":"pair","local":"log"},
      {"provision":"cache","provider":"redis","credential":"none","local":"l"},
      {"provision":"read","provider":"hub","credential":"issued","name":"token","path":"/token"}],
    "provides":["forge-read"],
    "items":[{"collection":"shell:zsh","template":"i"}],
    "collections":[{"collection":"environment:posix","comment":"#"}]"##;

fn checked(members: &str, file: &str, item: &str) -> Result<Prepared, String> {
    let plan = plan(members);
    let sources =
        read(&plan.contents, &templates(&[("a", file), ("i", item)])).map_err(|error| error.to_string())?;
    prepare("web1", "forge", &plan, sources).map_err(|error| error.to_string())
}

/// What a file with this text wants beyond what the plan itself wants.
#[track_caller]
fn check_wants(file: &str, expected: &[&str]) {
    let base = checked(MEMBERS, "", "").unwrap().wants;
    let prepared = checked(MEMBERS, file, "").unwrap();
    let found: Vec<String> = prepared.wants.difference(&base).map(|want| format!("{want:?}")).collect();
    assert_eq!(found, expected, "{file}");
}

#[test]
fn placeholders_want_values_of_their_owners() {
    check_wants("${config:http.port}", &[r#"Config("http.port")"#]);
    check_wants("${dir:data} ${port:http} ${machine:a:b}", &[]);
    check_wants(
        "${environment:posix} ${collected:environment:posix}",
        &[r#"Collection("environment:posix")"#],
    );
    let bound = |provider: &str, provision: &str, local: &str| {
        format!("Bound {{ provider: {provider:?}, provision: {provision:?}, local: Some({local:?}) }}")
    };
    check_wants("${bound:postgres.main:host}", &[&bound("postgres", "postgres", "main")]);
    check_wants("${bound:cache:a}${bound:cache.l:b}", &[&bound("redis", "cache", "l")]);
}

#[test]
fn every_secret_that_the_plan_names_is_asked_for() {
    let names: Vec<String> = checked(MEMBERS, "", "")
        .unwrap()
        .wants
        .iter()
        .map(|want| match want {
            Want::Vault(name) => name.to_string(),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [
        "own/forge/key",
        "own/forge/pw",
        "provision/hub/read/web1/forge",
        "provision/postgres/postgres/web1/forge/main",
    ];
    assert_eq!(names, expected);
}

#[test]
fn files_that_hold_one_secret_are_written_before_those_that_name_them() {
    let prepared = checked(MEMBERS, "${secret:pw}", "").unwrap();
    let files: Vec<_> = prepared.files.iter().map(|file| (file.path.as_str(), file.sensitive)).collect();
    assert_eq!(files, [("/key", true), ("/token", true), ("/a", true)]);
    assert!(!checked(MEMBERS, "${config:a}", "").unwrap().files[2].sensitive);
}

#[track_caller]
fn check_fault(file: &str, item: &str, fault: &str) {
    assert_eq!(checked(MEMBERS, file, item).map(drop), Err(fault.to_owned()));
}

#[test]
fn what_can_never_be_filled_names_template_line_and_placeholder() {
    check_fault("\n${foo:bar}", "", "template `a`, line 2: foo bar: no such kind of placeholder is known");
    check_fault("${v:1:2}", "", "template `a`, line 1: v 1:2: no such kind of placeholder is known");
    check_fault("${secret:x}", "", "template `a`, line 1: secret x: the plan names no such secret");
    let several = "the plan has this provision more than once: name its local";
    check_fault(
        "${bound:postgres:host}",
        "",
        &format!("template `a`, line 1: bound postgres:host: {several}"),
    );
    check_fault(
        "${bound:mysql:host}",
        "",
        "template `a`, line 1: bound mysql:host: the plan has no such provision",
    );
    check_fault("${bound:x}", "", "template `a`, line 1: bound x: it is not <provision>:<key>");
    let collects = "the plan does not collect this collection";
    check_fault("${collected:x}", "", &format!("template `a`, line 1: collected x: {collects}"));
    check_fault("${shell:zsh}", "", &format!("template `a`, line 1: shell zsh: {collects}"));
    check_fault("${consumers:x}", "", "template `a`, line 1: consumers x: the module does not provide this");
}

#[test]
fn an_item_holds_no_secret_no_consumers_and_no_collection() {
    check_fault(
        "",
        "${secret:pw}",
        "template `i`, line 1: secret pw: an item is kept in a bucket, and no secret is",
    );
    let consumers = "an item is kept in a bucket, and no consumer's credential is";
    check_fault(
        "",
        "${consumers:forge-read}",
        &format!("template `i`, line 1: consumers forge-read: {consumers}"),
    );
    let collection = "an item may not hold a collection";
    check_fault(
        "",
        "${environment:posix}",
        &format!("template `i`, line 1: environment posix: {collection}"),
    );
}

#[test]
fn files_with_secrets_are_closed_and_those_with_consumers_owned() {
    let with = |file: &str| MEMBERS.replacen(r#""owner-at-runtime":"owned""#, file, 1);
    let check = |members: &str, text: &str, fault: &str| {
        assert_eq!(checked(&with(members), text, "").map(drop), Err(fault.to_owned()));
    };
    let owned = r#""owner-at-runtime":"owned","mode":"#;
    check(
        &format!(r#"{owned}"0644""#),
        "${secret:pw}",
        "/a: a secret goes into it, and its mode lets others read it",
    );
    assert!(checked(&with(&format!(r#"{owned}"0640""#)), "${secret:pw}", "").is_ok());
    assert!(checked(&with(&format!(r#"{owned}"0644""#)), "${config:a}", "").is_ok());
    check(
        &format!(r#"{owned}"0640""#),
        "${consumers:forge-read}",
        "/a: a file with consumers must have the mode 0600",
    );
    check(
        r#""owner-at-runtime":"seed""#,
        "${consumers:forge-read}",
        "/a: a file with consumers must be `owned`",
    );
    assert!(checked(MEMBERS, "${consumers:forge-read}", "").unwrap().files[2].sensitive);
}

#[test]
fn a_template_that_is_not_there_and_a_filter_nobody_knows_fail() {
    let plan = plan(MEMBERS);
    let missing = read(&plan.contents, &templates(&[("a", "")])).map(drop).map_err(|error| error.to_string());
    assert_eq!(missing, Err("template `i` is not in the archive".to_owned()));
    let filters =
        MEMBERS.replacen(r#""owner-at-runtime":"owned""#, r#""owner-at-runtime":"owned","filters":true"#, 1);
    let unknown = checked(&filters, "${config:a|jsn}", "").map(drop);
    assert_eq!(unknown, Err("template `a`, line 1: config a: unknown filter `jsn`".to_owned()));
    assert!(checked(MEMBERS, "${config:a|jsn}", "").is_ok(), "without filters it is part of the name");
}

#[test]
fn needs_are_recorded_once_with_owner_and_everything_that_names_them() {
    let plan = plan(MEMBERS);
    let text = "${config:a} ${config:a} ${foo:x} ${bound:postgres.main:host} ${environment:posix}";
    let sources = read(&plan.contents, &templates(&[("a", text), ("i", "${config:a}")])).unwrap();
    let registry: BTreeMap<Kind, Entry> =
        Entry::defaults(None).into_iter().map(|entry| (entry.kind, entry)).collect();
    let needs = needs("web1", "forge", &plan, &sources, &registry);
    let shown: Vec<_> = needs
        .iter()
        .map(|need| (need.kind.as_str(), need.name.as_str(), need.owner.as_deref(), need.by.join(" ")))
        .collect();
    assert_eq!(
        shown,
        [
            ("bound", "postgres.main:host", Some("postgres"), "/a".to_owned()),
            ("config", "a", Some("mesh-config"), "/a item:shell:zsh".to_owned()),
            ("environment", "posix", Some("mesh-provisioner"), "/a".to_owned()),
            ("foo", "x", None, "/a".to_owned()),
        ]
    );
}
