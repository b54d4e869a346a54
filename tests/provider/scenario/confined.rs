//! What a provider's processes may not: they begin without it, and so does whatever they start.

use super::site::Site;
use crate::support::program;

/// Tells what the system says of it as the description of its schema's action, and of its answer.
const TELLING: &str = r#"
import json, os, sys
limits = {line[:26].strip(): line[26:].split()[0] for line in open("/proc/self/limits").read().splitlines()[1:]}
status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
told = {"files": limits["Max open files"], "memory": limits["Max address space"], "processes": limits["Max processes"],
        "rights": status["NoNewPrivs"].strip(), "uid": str(os.getuid()), "gid": str(os.getgid()),
        "groups": ",".join(map(str, os.getgroups()))}
SCHEMA = {"name": "telling", "version": "1", "protocol": "1", "config": {}, "actions": {"tell": {"attrs": {}, "outputs": {"type": "map(string)"}}}}
if sys.argv[1:] == ["schema"]:
    print(json.dumps(SCHEMA))
    sys.exit()
for line in sys.stdin:
    frame = json.loads(line)
    result = {"describe": {"schema": SCHEMA}, "execute": {"outputs": told}}.get(frame["method"], {})
    print(json.dumps({"id": frame["id"], "result": result}), flush=True)
    if frame["method"] == "shutdown":
        break
"#;

/// The same of its user alone; an interpreter may lie where another user cannot go.
const TELLING_IDS: &str = r#"#!/bin/sh
schema='{"name":"telling","version":"1","protocol":"1","config":{},"actions":{"tell":{"attrs":{},"outputs":{"type":"map(string)"}}}}'
[ "$1" = schema ] && { echo "$schema"; exit 0; }
while read -r line; do
  case "$line" in
  *'"describe"'*) echo "{\"id\":1,\"result\":{\"schema\":$schema}}" ;;
  *'"configure"'*) echo '{"id":2,"result":{}}' ;;
  *'"execute"'*) echo "{\"id\":3,\"result\":{\"outputs\":{\"ids\":\"$(id -u) $(id -g) $(id -G)\"}}}" ;;
  *) echo '{"id":4,"result":{}}'; exit ;;
  esac
done
"#;

fn site(confine: &str) -> Option<Site> {
    let site = Site::new("")?;
    let python = site.read("bin/things").lines().next().unwrap().to_owned();
    program(&site.path("bin"), "telling", &format!("{python}\n{TELLING}"));
    site.steps(&format!(
        r#"scenario "demo" {{
  required_providers {{
    telling = {{ source = "exec:bin/telling", confine = {{ {confine} }} }}
  }}
  action "tell" "it" {{ }}
  output "told" {{ value = action.tell.it }}
}}
"#
    ));
    Some(site)
}

/// What it told, for a provider that is confined so.
#[track_caller]
fn told(confine: &str) -> Option<serde_json::Value> {
    let ran = site(confine)?.run(&["apply", "steps.hcl"]).ended(0);
    let line =
        ran.out.lines().find_map(|line| line.strip_prefix("told = ")).unwrap_or_else(|| panic!("{ran:?}"));
    Some(serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
}

#[test]
fn limits_and_given_up_rights_are_those_of_the_provider_from_its_first_instruction() {
    let Some(free) = told("") else { return };
    assert_eq!(free["rights"], "0", "{free}");
    let told = told(r#"no_new_privileges = true, open_files = 64, memory = "2G", processes = 512"#).unwrap();
    assert_eq!((&told["rights"], &told["files"]), (&"1".into(), &"64".into()), "{told}");
    assert_eq!((&told["memory"], &told["processes"]), (&"2147483648".into(), &"512".into()), "{told}");
    assert_eq!(told["uid"], free["uid"]);
}

#[test]
fn another_user_and_group_are_taken_or_the_provider_is_not_started() {
    let confine = "uid = 65534, gid = 65533";
    if rustix::process::getuid().is_root() {
        let Some(site) = site(confine) else { return };
        program(&site.path("bin"), "telling", TELLING_IDS);
        // Another user has to reach the program.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(site.dir.path(), open).unwrap();
        let ran = site.run(&["apply", "steps.hcl"]).ended(0);
        assert!(ran.out.contains("65534 65533 65533\""), "and no other group: {ran:?}");
    } else if let Some(site) = site(confine) {
        site.run(&["apply", "steps.hcl"]).ended(6).says(&["as the user or group that is set"]);
    }
}

#[test]
fn what_cannot_be_is_told_by_its_name() {
    for (confine, words) in [
        ("open_files = 1", "between 16 and"),
        ("memory = \"1M\"", "no size of at least 8 MiB"),
        ("memory = \"lots\"", "no size"),
        ("uid = -1", "between 0 and"),
        ("rights = 1", "no such key"),
    ] {
        let Some(site) = site(confine) else { return };
        site.run(&["plan", "steps.hcl"]).ended(3).says(&["confine", words]);
    }
    // What it may not have shows as what the provider could not do.
    let Some(site) = site("memory = \"8M\"") else { return };
    let ran = site.run(&["plan", "steps.hcl"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
}
