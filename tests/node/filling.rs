//! T1 to T11: values found, filled in and waited for.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::Command;

use quartermaster_proto::mesh::plan::Digest;
use quartermaster_proto::mesh::{Kind, esc, key, registry, unesc};
use serde_json::json;

use crate::support::Site;

const APPLIED_ONE: &str = "applied a=written";

/// T1: exact bytes, mode and owner; the same report on the subject and in the bucket, with the right digests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t1_a_module_with_everything_there_is_filled_and_its_report_is_published_and_kept() {
    let Some(mut site) = Site::running(&["web1"], 1).await else { return };
    site.store("own/forge/pw", b"s3cret of t1");
    site.config("web1", "forge", "http.port", "3000").await;
    let module = site
        .web1()
        .module("forge")
        .file_with("etc/app.ini", "port=${config:http.port}\npw=${secret:pw}\n", json!({"mode": "0640"}))
        .file_with("etc/plain", "data=${dir:data}\n", json!({"mode": "0644"}))
        .secret("pw")
        .with("placement", json!({"dir": {"data": "/var/lib/forge"}}));
    site.assign(&module).await;
    site.says("web1", "forge", "applied etc/app.ini=written, etc/plain=written").await;
    assert_eq!(site.web1().read("etc/app.ini").unwrap(), "port=3000\npw=s3cret of t1\n");
    assert_eq!(site.web1().read("etc/plain").unwrap(), "data=/var/lib/forge\n");
    for (file, mode) in [("etc/app.ini", 0o640), ("etc/plain", 0o644)] {
        let found = std::fs::metadata(site.web1().path(file)).unwrap();
        assert_eq!(found.permissions().mode() & 0o7777, mode, "{file}");
        assert_eq!(found.uid(), rustix::process::geteuid().as_raw(), "{file}");
    }
    let kept = site.bus.get(key::APPLIED, "web1.forge").await.unwrap();
    let published = site.tap.since(0, "prov.applied.web1.forge");
    assert_eq!(published.last().unwrap().body, kept);
    let report = site.report("web1", "forge").await.unwrap();
    let plain = Digest::of(b"data=/var/lib/forge\n").to_string();
    assert_eq!(report["files"][1]["digest"], json!(plain));
    let secret = report["files"][0]["digest"].as_str().unwrap().to_owned();
    assert!(secret.starts_with("hmac-sha256:"), "{secret}");
    let file = site.web1().path("etc/app.ini");
    let printed = Command::new(env!("CARGO_BIN_EXE_quartermaster"))
        .args(["node", "digest"])
        .arg(file)
        .arg("--state")
        .arg(site.web1().state())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
    assert!(printed.contains(&secret), "{printed} {secret}");
    site.check_secrets();
}

/// T2, C43: what is missing is named all at once, and the report gets shorter as it comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t2_c43_everything_missing_is_named_at_once_and_one_by_one_it_comes() {
    let Some(mut site) = Site::running(&["web1"], 1).await else { return };
    let module = site.web1().module("forge").file("a", "${config:a}${config:b}${secret:pw}").secret("pw");
    std::fs::write(site.web1().path("a"), "as before").unwrap();
    site.assign(&module).await;
    let (a, b, pw) = ("config a no-entry", "config b no-entry", "secret pw absent");
    site.says("web1", "forge", &format!("waiting {a}, {b}, {pw}")).await;
    assert_eq!(site.web1().read("a").unwrap(), "as before");
    let log = site.web1().log();
    assert!(log.contains("waiting"), "the log says so at an ordinary level");
    site.config("web1", "forge", "b", "\"2\"").await;
    site.says("web1", "forge", &format!("waiting {a}, {pw}")).await;
    site.store("own/forge/pw", b"t2-secret");
    site.says("web1", "forge", &format!("waiting {a}")).await;
    site.config("web1", "forge", "a", "\"1\"").await;
    site.says("web1", "forge", APPLIED_ONE).await;
    assert_eq!(site.web1().read("a").unwrap(), "12t2-secret");
    site.check_secrets();
}

/// T3: a placement value that the plan lacks, and a kind without an owner, are waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t3_a_placement_value_and_an_owner_of_a_kind_are_waited_for() {
    let Some(site) = Site::running(&["web1"], 1).await else { return };
    let module = site.web1().module("forge").file("a", "${port:http}");
    site.assign(&module).await;
    site.says("web1", "forge", "waiting port http absent").await;
    site.assign(&module.with("placement", json!({"port": {"http": 3000}}))).await;
    site.says("web1", "forge", APPLIED_ONE).await;
    assert_eq!(site.web1().read("a").unwrap(), "3000");

    site.bus.delete(key::REGISTRY, "config").await;
    site.config("web1", "hub", "a", "1").await;
    site.assign(&site.web1().module("hub").file("b", "${config:a}")).await;
    site.says("web1", "hub", "waiting registry config no-entry").await;
    let entries = registry::Entry::defaults(None);
    site.register(entries.iter().find(|entry| entry.kind == Kind::Config).unwrap()).await;
    site.says("web1", "hub", "applied b=written").await;
}

/// T4, C44: what can never be right fails its module with the place, and the others go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t4_c44_what_can_never_be_right_fails_its_module_and_no_other() {
    let Some(site) = Site::running(&["web1"], 1).await else { return };
    let module = |name: &str, text: &str| site.web1().module(name).file(name, text);
    site.assign(&module("kind", "\n${foo:bar}")).await;
    site.assign(&module("secret", "${secret:x}")).await;
    site.assign_text("web1.noplan", r#"{"node":"web1","module":"noplan","serial":1000,"provisioning":7}"#)
        .await;
    site.assign_text("web1.broken", "{").await;
    site.assign(&module("good", "fine")).await;
    site.says("web1", "good", "applied good=written").await;
    site.says(
        "web1",
        "kind",
        "failed template `kind.tpl`, line 2: foo bar: no such kind of placeholder is known",
    )
    .await;
    site.says(
        "web1",
        "secret",
        "failed template `secret.tpl`, line 1: secret x: the plan names no such secret",
    )
    .await;
    let said = site.is("web1", "noplan", "failed").await;
    assert!(said.contains("the plan cannot be read: provisioning"), "{said}");
    // Not an assignment at all, so nothing is said of a module.
    assert_eq!(site.said("web1", "broken").await, "");
    assert_eq!(site.web1().files().into_keys().collect::<Vec<_>>(), ["good"]);
}

/// T5, T6, T8: an empty value is a value and null is none; values go in as they are stored, byte for byte, and are never read as
/// templates.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t5_t6_t8_values_go_in_as_they_are_stored() {
    let Some(mut site) = Site::running(&["web1"], 1).await else { return };
    site.store("own/t6/pw", b"${config:a} $1 \\1 $$ t6");
    for (module, name, stored) in [
        ("t5", "empty", "\"\""),
        ("t5null", "none", "null"),
        ("t6", "a", r#""${secret:pw}""#),
        ("t6", "b", r#""$1 \\1 $$""#),
        ("t8", "big", "9007199254740993"),
        ("t8", "huge", "1e400"),
        ("t8", "yes", "true"),
        ("t8", "list", "[1, 2]"),
        ("t8", "object", r#"{"b": 1, "a":[]}"#),
        ("t8", "text", "no JSON at all"),
    ] {
        site.config("web1", module, name, stored).await;
    }
    let module = |name: &str, text: &str| site.web1().module(name).file(name, text);
    site.assign(&module("t5", "<${config:empty}>")).await;
    site.assign(&module("t5null", "<${config:none}>")).await;
    site.assign(&module("t6", "${config:a}|${secret:pw}|${config:b}").secret("pw")).await;
    let all = "${config:big} ${config:huge} ${config:yes} ${config:list} ${config:object} ${config:text}";
    site.assign(&module("t8", all)).await;
    for (module, text) in [
        ("t5", "<>"),
        ("t6", "${secret:pw}|${config:a} $1 \\1 $$ t6|$1 \\1 $$"),
        ("t8", r#"9007199254740993 1e400 true [1, 2] {"b": 1, "a":[]} no JSON at all"#),
    ] {
        site.says("web1", module, &format!("applied {module}=written")).await;
        assert_eq!(site.web1().read(module).unwrap(), text);
    }
    let said = site.is("web1", "t5null", "failed").await;
    assert!(said.starts_with("failed config none: "), "{said}");
    assert_eq!(site.web1().read("t5null"), None);
    site.check_secrets();
}

/// T7, C47: only the exact form is a placeholder, dollars escape it, and everybody else's braces stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t7_c47_only_the_exact_form_is_a_placeholder() {
    let Some(site) = Site::running(&["web1"], 1).await else { return };
    site.config("web1", "forge", "a", "3000").await;
    let rest = "${HOME} $${HOME} ${v:-x} ${v:=x} {{ .Values.x }} {% if a %} rate(x{job=\"$job\"}[5m]) $$";
    let module = site
        .web1()
        .module("forge")
        .file("a", &format!("$${{config:a}} $$${{config:a}} ${{config:a}} {rest} $${{v:1:2}}"));
    site.assign(&module).await;
    site.says("web1", "forge", APPLIED_ONE).await;
    assert_eq!(site.web1().read("a").unwrap(), format!("${{config:a}} $3000 3000 {rest} ${{v:1:2}}"));
}

/// T9: filters where the file asks for them; without, a `|` is part of the name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t9_filters_write_a_value_in_a_formats_own_form() {
    let Some(mut site) = Site::running(&["web1"], 1).await else { return };
    let value = "it's \"q\"\nx=1 \\ t9";
    site.store("own/forge/pw", value.as_bytes());
    site.store("own/line/pw", value.as_bytes());
    let with = json!({"filters": true});
    let module = site
        .web1()
        .module("forge")
        .file_with("json", "{\"v\":${secret:pw|json}}", with.clone())
        .file_with("toml", "v = ${secret:pw|toml}\n", with.clone())
        .file_with("sh", "v=${secret:pw|shell}\n", with.clone())
        .file_with("base64", "${secret:pw|base64}", with.clone())
        .secret("pw");
    site.assign(&module).await;
    site.assign(&site.web1().module("line").file_with("line", "${secret:pw|line}", with).secret("pw")).await;
    site.config("web1", "plain", "a|json", "\"part of the name\"").await;
    site.assign(&site.web1().module("plain").file("plain", "${config:a|json}")).await;
    site.is("web1", "forge", "applied").await;
    let machine = site.web1();
    let parsed: serde_json::Value = serde_json::from_str(&machine.read("json").unwrap()).unwrap();
    assert_eq!(parsed["v"], json!(value));
    assert_eq!(machine.read("toml").unwrap(), "v = \"it's \\\"q\\\"\\nx=1 \\\\ t9\"\n");
    let script = format!(". {}; printf %s \"$v\"", machine.path("sh").display());
    let printed = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8(printed.stdout).unwrap(), value);
    let decoded =
        base64::Engine::decode(&base64::engine::general_purpose::STANDARD, machine.read("base64").unwrap());
    assert_eq!(decoded.unwrap(), value.as_bytes());
    site.says("web1", "plain", "applied plain=written").await;
    assert_eq!(machine.read("plain").unwrap(), "part of the name");
    let said = site.is("web1", "line", "failed").await;
    assert!(said.starts_with("failed secret pw: "), "{said}");
    site.check_secrets();
}

/// T10, as text: every byte as a token and back, and no second spelling of any text.
#[test]
fn t10_every_text_is_one_token_and_no_token_has_two_texts() {
    for byte in 1..=255_u8 {
        let text = char::from(byte).to_string();
        let token = esc(&text);
        assert_eq!(unesc(&token).as_ref(), Some(&text), "{token}");
        assert!(!token.bytes().any(|byte| byte == b'.' || byte <= b' '), "{token}");
        // The same escape in lower case is no second spelling.
        let lower: String =
            token.chars().map(|c| if token.contains('=') { c.to_ascii_lowercase() } else { c }).collect();
        assert!(lower == token || unesc(&lower).is_none(), "{lower}");
    }
    for (text, token) in
        [("web1.example.com", "web1=2Eexample=2Ecom"), ("shell:zsh:normal", "shell=3Azsh=3Anormal")]
    {
        assert_eq!(esc(text), token);
    }
    for token in ["", "=", "=4", "=41", "=2e", "a.b", "=GG", "=FF"] {
        assert_eq!(unesc(token), None, "{token}");
    }
}

/// T10 with programs: a machine whose name has dots, and a collection with colons.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t10_names_with_dots_and_colons_are_tokens_in_every_key() {
    let node = "web1.example.com";
    let Some(site) = Site::running(&[node], 1).await else { return };
    site.config(node, "forge", "http.port", "1").await;
    // Written with plain dots by a lenient hand; the escaped form wins where both are there.
    site.bus.put(key::CONFIG, "web1=2Eexample=2Ecom.forge.http.host", "\"dotted\"").await;
    site.bus.put(key::CONFIG, "web1=2Eexample=2Ecom.forge.http.port", "2").await;
    site.bus.put(key::CONFIG, "web1=2Eexample=2Ecom.forge.=61", "3").await;
    let module = site
        .web1()
        .module("forge")
        .file("a", "${config:http.port} ${config:http.host}")
        .item("shell:zsh:normal", "text\n");
    site.assign(&module).await;
    site.says(node, "forge", APPLIED_ONE).await;
    assert_eq!(site.web1().read("a").unwrap(), "1 dotted");
    let items = site.bus.entries(key::COLLECT, "").await;
    assert_eq!(items.into_keys().collect::<Vec<_>>(), ["web1=2Eexample=2Ecom.shell=3Azsh=3Anormal.forge"]);
    assert_eq!(site.needs(node, "forge").await, ["config.http=2Ehost", "config.http=2Eport"]);
}

/// T11: needs are recorded while values are missing, once per kind and name; what a new plan no longer names goes, and nothing that
/// is held is asked for again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t11_needs_are_recorded_at_once_and_dropped_with_their_placeholders() {
    let Some(mut site) = Site::running(&["web1"], 1).await else { return };
    site.store("own/forge/pw", b"t11-secret");
    let module = site
        .web1()
        .module("forge")
        .file("a", "${config:a}${config:b}${secret:pw}")
        .file("b", "${config:a}")
        .item("c", "${config:a}")
        .secret("pw");
    site.assign(&module).await;
    site.says("web1", "forge", "waiting config a no-entry, config b no-entry").await;
    assert_eq!(site.needs("web1", "forge").await, ["config.a", "config.b", "secret.pw"]);
    let need: serde_json::Value =
        serde_json::from_slice(&site.bus.get(key::NEEDS, "web1.forge.config.a").await.unwrap()).unwrap();
    let path = |name: &str| site.web1().path(name).to_str().unwrap().to_owned();
    let expected = json!({
        "node": "web1", "module": "forge", "kind": "config", "name": "a", "owner": "mesh-config",
        "by": [path("a"), path("b"), "item:c"],
    });
    assert_eq!(need, expected);
    let fewer = site.web1().module("forge").file("a", "${config:a}${secret:pw}").secret("pw");
    site.assign(&fewer).await;
    site.says("web1", "forge", "waiting config a no-entry").await;
    crate::support::eventually_async(vec!["config.a".to_owned(), "secret.pw".to_owned()], || {
        site.needs("web1", "forge")
    })
    .await;
    site.config("web1", "forge", "a", "1").await;
    site.says("web1", "forge", APPLIED_ONE).await;
    let asked = site.audit().iter().filter(|line| line.starts_with("get ")).count();
    assert_eq!(asked, 1, "{:?}", site.audit());
    site.check_secrets();
}
