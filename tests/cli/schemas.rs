//! What `check` asks the programs of providers, and what it remembers of their answers.

use std::path::Path;
use std::process::Output;

use sha2::{Digest as _, Sha256};

use super::site::{BINARY, CFG, Site, YAML, code, stdout};

const SCHEMA: &str = r#"{"name":"dns","version":"1","protocol":"1","config":{},"actions":{"make":{"attrs":{"ttl":{"type":"number","required":true}}}}}"#;

/// A provider that notes how it was started, and has no subcommand.
fn program() -> String {
    format!(
        "#!/bin/sh\necho \"$#\" >>\"${{0%/*}}/started\"\n[ $# = 0 ] || exit 9\nwhile read -r line; do case \"$line\" in *describe*) echo '{{\"id\":1,\"result\":{{\"schema\":{SCHEMA}}}}}' ;; *) echo '{{\"id\":2,\"result\":{{}}}}'; exit ;; esac; done\n"
    )
}

fn steps(more: &str, ttl: &str) -> String {
    format!(
        "{YAML}providers:\n  dns: {{source: exec:dns{more}}}\nsteps:\n  before:\n    - {{name: a, provider: dns, action: make, attrs: {{ttl: {ttl}}}}}\n"
    )
}

fn check(site: &Site) -> Output {
    let arguments = ["check", "--config", "p.yaml", "--choria-config", "choria.cfg"];
    site.command(Path::new(BINARY), &arguments).env("HOME", site.folder.path()).output().unwrap()
}

fn site(more: &str, ttl: &str) -> Site {
    let site = Site::new(&steps(more, ttl), CFG);
    site.write("dns", &program(), 0o755);
    site
}

fn started(site: &Site) -> Vec<String> {
    let text = std::fs::read_to_string(site.path("started")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_program_without_the_subcommand_is_told_of_and_with_the_setting_asked_to_describe_itself() {
    let output = check(&site("", "1"));
    code(&output, 4);
    assert!(stdout(&output).contains("schema_probe: describe"), "{}", stdout(&output));
    let described = ", compat: {schema_probe: describe}";
    let site_of = site(described, "1");
    code(&check(&site_of), 0);
    assert_eq!(started(&site_of), ["0"], "once, without an argument");
    let output = check(&site(described, "many"));
    code(&output, 3);
    assert!(stdout(&output).contains("steps.before[0].attrs.ttl"), "{}", stdout(&output));
}

#[test]
fn what_a_pinned_program_said_is_remembered_until_it_is_another() {
    let digest = hex::encode(Sha256::digest(program()));
    let pinned = format!(", compat: {{schema_probe: describe}}, sha256: \"{digest}\"");
    let site = site(&pinned, "1");
    code(&check(&site), 0);
    code(&check(&site), 0);
    assert_eq!(started(&site).len(), 1, "nothing is started when nothing has changed");
    site.write("dns", &format!("{}# another\n", program()), 0o755);
    let output = check(&site);
    code(&output, 4);
    assert!(stdout(&output).contains("is pinned"), "{}", stdout(&output));
    assert_eq!(started(&site).len(), 1, "nor what is not the pinned one");
}
