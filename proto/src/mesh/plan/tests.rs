use super::*;
use crate::mesh::{Kind, value::Json};

/// The assignment that the page shows.
const SHOWN: &str = r##"{"node":"web1","module":"forge","serial":81,"provisioning":{
 "templates":{"reference":"nats-object:mesh-templates/forge-1.4.tar.gz","digest":"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
 "files":[
  {"path":"/etc/forge/app.ini","template":"app.ini","owner-at-runtime":"owned","on-change":{"restart":"forge.service"},"owner":"forge","group":"forge","mode":"0640"},
  {"path":"/etc/forge/site.toml","template":"site.toml","owner-at-runtime":"managed","managed":{"format":"toml"},"on-change":{"reload":"forge.service"}},
  {"path":"/etc/profile.d/forge.sh","template":"p.sh","owner-at-runtime":"managed","managed":{"format":"block","comment":"#"}},
  {"path":"/var/lib/forge/motd","template":"motd","owner-at-runtime":"seed","filters":true}],
 "placement":{"dir":{"data":"/var/lib/forge"},"access":{"web":"https://forge.example"},"port":{"http":3000},"seat":{"git":"web1"},"machine":{"name":"web1"}},
 "secrets":[{"name":"admin-password"},{"name":"tls-key","path":"/etc/forge/tls.key","owner":"forge","mode":"0400","on-change":{"reload":"forge.service"}}],
 "provisions":[
  {"provision":"postgres","provider":"postgres","credential":"pair","local":"main","name":"db-password"},
  {"provision":"forge-read","provider":"hub","credential":"issued","name":"read-token","path":"/etc/forge/token"},
  {"provision":"dns","provider":"dns","credential":"none"}],
 "provides":["forge-read"],
 "items":[{"collection":"shell:zsh:normal","template":"zsh.snippet"}],
 "collections":[{"collection":"environment:posix","comment":"#"}]}}"##;

fn read(text: &str) -> (Assignment, Vec<String>) {
    read_assignment("web1.forge", text.as_bytes()).unwrap()
}

#[test]
fn the_shown_assignment_is_read() {
    let (assignment, unknown) = read(SHOWN);
    assert_eq!(
        (assignment.node.as_str(), assignment.module.as_str(), assignment.serial),
        ("web1", "forge", 81)
    );
    assert_eq!(unknown, Vec::<String>::new());
    let plan = assignment.plan().unwrap();
    assert_eq!(plan.templates.reference.to_string(), "nats-object:mesh-templates/forge-1.4.tar.gz");
    assert_eq!(plan.placement[&Kind::Port]["http"], Json::read("3000").unwrap());
    let Contents { files, secrets, provisions, provides, items, collections } = &plan.contents;
    assert_eq!(
        files.iter().map(|file| file.write.as_str()).collect::<Vec<_>>(),
        ["owned", "managed", "managed", "seed"]
    );
    assert_eq!(files[0].attributes.mode.unwrap().to_string(), "0640");
    assert_eq!(
        files[0].on_change,
        Some(OnChange::Restart { unit: "forge.service".to_owned(), start: false })
    );
    assert_eq!(secrets[1].path.as_deref(), Some("/etc/forge/tls.key"));
    assert_eq!(
        provisions.iter().map(|entry| entry.credential.as_str()).collect::<Vec<_>>(),
        ["pair", "issued", "none"]
    );
    assert_eq!(provides, &["forge-read"]);
    assert_eq!(items[0].collection, "shell:zsh:normal");
    assert_eq!(collections[0].comment, "#");
}

#[test]
fn what_is_written_is_read_back() {
    let (assignment, _) = read(SHOWN);
    let written = assignment.encode();
    assert_eq!(read_assignment("web1.forge", &written).unwrap(), (assignment, vec![]));
    let bare = r#"{"node":"web1","module":"forge","serial":0}"#;
    assert_eq!(String::from_utf8(read(bare).0.encode()).unwrap(), bare);
}

#[test]
fn an_assignment_belongs_to_its_key() {
    for (key, text) in [
        ("web2.forge", SHOWN),
        ("web1.blog", SHOWN),
        ("web1", SHOWN),
        ("web1.forge", "{}"),
        ("web1.forge", "[]"),
        ("web1.forge", "not JSON"),
        ("web1.forge", r#"{"node":"web1","module":"forge","serial":-1}"#),
    ] {
        assert!(read_assignment(key, text.as_bytes()).is_err(), "{key} {text}");
    }
    let escaped = r#"{"node":"web1.example","module":"forge"}"#;
    assert!(read_assignment("web1=2Eexample.forge", escaped.as_bytes()).is_ok());
}

#[test]
fn no_plan_is_no_fault() {
    for text in
        [r#"{"node":"web1","module":"forge"}"#, r#"{"node":"web1","module":"forge","provisioning":null}"#]
    {
        assert_eq!(read(text).0.planned, Planned::Nothing);
    }
}

#[test]
fn members_nobody_knows_are_named_and_ignored() {
    let text = SHOWN
        .replace(r#""serial":81"#, r#""serial":81,"new":1"#)
        .replace(r#""provides""#, r#""later":{},"provides""#)
        .replace(r#""filters":true"#, r#""filters":true,"shiny":1"#)
        .replace(r#""format":"toml""#, r#""format":"toml","x\u001b":1"#);
    let (assignment, mut unknown) = read(&text);
    assert!(assignment.plan().is_some());
    unknown.sort();
    let expected =
        ["provisioning.files[1].managed.x\\u{1b}", "provisioning.files[3].shiny", "provisioning.later"];
    assert_eq!(unknown, expected);
}

/// `from` replaced by `to` in the shown plan is unreadable with this fault; the module is assigned all the same.
#[track_caller]
fn check_fault(from: &str, to: &str, fault: &str) {
    assert!(SHOWN.contains(from), "{from}");
    let (assignment, _) = read(&SHOWN.replacen(from, to, 1));
    let Planned::Unreadable(found) = assignment.planned else { panic!("it is readable") };
    assert_eq!(found.to_string(), fault);
}

#[test]
fn a_fault_has_its_place() {
    let file = r#"{"path":"/etc/forge/app.ini""#;
    let path = |path: &str| format!(r#"{{"path":"{path}""#);
    let plain = "provisioning.files[0].path: is not a plain path: it has an empty part, `.` or `..`";
    check_fault(file, &path("etc/forge"), "provisioning.files[0].path: is not an absolute path");
    check_fault(file, &path("/etc/../forge"), plain);
    check_fault(file, &path("/etc//forge"), plain);
    check_fault(file, &path("/etc/forge/"), plain);
    check_fault(file, &path("/a\\u0000b"), "provisioning.files[0].path: holds control characters");
    check_fault(file, &path("/etc/forge/site.toml"), "provisioning.files[1].path: is there twice");
    check_fault(file, &path("/etc/forge/token"), "provisioning.provisions[1].path: is there twice");
    check_fault(file, r#"{"path":7"#, "provisioning.files[0].path: is a number, not a string");
    check_fault(file, "{\"x\":1", "provisioning.files[0].path: is missing");
}

#[test]
fn templates_need_a_known_digest_and_reference() {
    let digest = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    let place = "provisioning.templates";
    check_fault(digest, "md5:00", &format!("{place}.digest: is no digest of a known kind (sha256:…)"));
    let lower = format!("{place}.digest: is not sha256: and 64 lower-case hexadecimal digits");
    check_fault(digest, &digest.replace("9f86", "9F86"), &lower);
    check_fault(&format!(r#","digest":"{digest}""#), "", &format!("{place}.digest: is missing"));
    let reference = "nats-object:mesh-templates/forge-1.4.tar.gz";
    let scheme = format!("{place}.reference: is none of nats-object:, file: and https:");
    check_fault(reference, "http://x/y", &scheme);
    check_fault(reference, "file:x", &format!("{place}.reference: is not an absolute path"));
    check_fault(
        reference,
        "nats-object:x",
        &format!("{place}.reference: is not nats-object:<bucket>/<name>"),
    );
    let address = format!("{place}.reference: is an https address without a host, or with credentials");
    check_fault(reference, "https://u:p@x/y", &address);
    check_fault(reference, "https:///y", &address);
}

#[test]
fn how_a_file_is_written_is_complete() {
    let owned = r#""owner-at-runtime":"owned""#;
    check_fault(owned, r#""x":1"#, "provisioning.files[0].owner-at-runtime: is missing");
    let words = "provisioning.files[0].owner-at-runtime: is none of owned, seed and managed";
    check_fault(owned, r#""owner-at-runtime":"mine""#, words);
    check_fault(owned, r#""owner-at-runtime":"managed""#, "provisioning.files[0].managed: is missing");
    check_fault(r##","comment":"#"}}"##, "}}", "provisioning.files[2].managed.comment: is missing");
    let formats = "provisioning.files[1].managed.format: is none of block, ini, toml, json and yaml";
    check_fault(r#""format":"toml""#, r#""format":"xml""#, formats);
    let restart = r#""on-change":{"restart":"forge.service"}"#;
    let one = "provisioning.files[0].on-change: is not exactly one of restart, reload and command";
    check_fault(restart, r#""on-change":{}"#, one);
    check_fault(restart, r#""on-change":{"restart":"a.service","reload":"a.service"}"#, one);
    let unit = "provisioning.files[0].on-change.restart: is no name of a unit, such as forge.service";
    check_fault(restart, r#""on-change":{"restart":"--now"}"#, unit);
    let program = "provisioning.files[0].on-change.command[0]: is not an absolute path";
    check_fault(restart, r#""on-change":{"command":["sh","-c"]}"#, program);
    let mode = "provisioning.files[0].mode: is not three octal digits, such as 0640";
    for text in ["0999", "4755", "7", "07777", "rw"] {
        check_fault(r#""mode":"0640""#, &format!(r#""mode":"{text}""#), mode);
    }
}

#[test]
fn secrets_and_provisions_are_complete_and_told_apart() {
    let open = "provisioning.secrets[1].mode: lets others read a file that holds a secret";
    check_fault(r#""mode":"0400""#, r#""mode":"0404""#, open);
    let taken = "provisioning.provisions[0].name: is the name of another secret of this plan";
    check_fault(r#""name":"db-password""#, r#""name":"tls-key""#, taken);
    let name = "provisioning.secrets[0].name: is no name: 1 to 255 bytes without `/` and control characters";
    check_fault(r#"{"name":"admin-password"}"#, r#"{"name":"a/b"}"#, name);
    check_fault(r#""provider":"postgres","#, "", "provisioning.provisions[0].provider: is missing");
    check_fault(r#""credential":"pair","#, "", "provisioning.provisions[0].credential: is missing");
    let form = "provisioning.provisions[0].credential: is none of none, pair and issued";
    check_fault(r#""credential":"pair""#, r#""credential":"both""#, form);
    let nothing = "provisioning.provisions[2].name: asks for a credential, and the form is `none`";
    check_fault(r#""credential":"none""#, r#""credential":"none","name":"x""#, nothing);
    check_fault(
        r#""name":"read-token","#,
        "",
        "provisioning.provisions[1].name: is missing, and there is a path for its value",
    );
    let twice = "provisioning.provisions[2].provision: is there twice with the same local";
    check_fault(r#""provision":"dns""#, r#""provision":"forge-read""#, twice);
    let provider =
        "provisioning.provisions[2].provider: is no name of a provider: only A-Z a-z 0-9 _ - may stand in it";
    check_fault(r#""provider":"dns""#, r#""provider":"d.ns""#, provider);
}

#[test]
fn a_collection_stands_once() {
    let item = r#"{"collection":"shell:zsh:normal","template":"zsh.snippet"}"#;
    check_fault(item, &format!("{item},{item}"), "provisioning.items[1].collection: is there twice");
    let found = r##"{"collection":"environment:posix","comment":"#"}"##;
    check_fault(found, &format!("{found},{found}"), "provisioning.collections[1].collection: is there twice");
    check_fault(r##","comment":"#"}]"##, "}]", "provisioning.collections[0].comment: is missing");
}

#[test]
fn a_modules_file_is_a_plan_without_what_belongs_to_a_machine() {
    let text = r#"{"templates":{"reference":"file:/srv/t.tar"},"files":[{"path":"/a","template":"a","owner-at-runtime":"owned"}],"odd":1}"#;
    let (file, unknown) = read_module_file(text.as_bytes()).unwrap();
    assert_eq!(file.reference, Some(Reference::File("/srv/t.tar".to_owned())));
    assert_eq!((file.digest, file.contents.files.len()), (None, 1));
    assert_eq!(unknown, ["odd"]);
}
