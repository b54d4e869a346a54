//! `check`, and what every verb says and ends with.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::site::{BINARY, CFG, Site, YAML, code, stderr, stdout};

/// Runs `check` on a changed file and expects an exit code and words in what is said.
#[track_caller]
fn checked(yaml: &str, cfg: &str, exit: i32, words: &[&str]) {
    let output = Site::new(yaml, cfg).check(&[]);
    code(&output, exit);
    for word in words {
        assert!(stdout(&output).contains(word), "{word} is missing in:\n{}", stdout(&output));
    }
}

#[test]
fn a_sound_site_has_no_faults() {
    checked(YAML, CFG, 0, &["no faults"]);
}

#[test]
fn a_warning_is_no_error() {
    checked(
        &format!("{YAML}workerz: 1\n"),
        CFG,
        0,
        &["p.yaml:4:1: warning: `workerz`", "`workers`", "0 errors, 1 warning"],
    );
}

#[test]
fn a_wrong_file_is_3() {
    checked(
        &format!("{YAML}interval: 60\nworkers: \"8\"\n"),
        CFG,
        3,
        &["p.yaml:4:11: error: `interval`", "p.yaml:5:10:", "2 errors"],
    );
    checked("helper:\n\tx: 1\n", CFG, 3, &["p.yaml:2:1: error", "tab"]);
    checked("", CFG, 3, &["empty"]);
    checked(YAML, &CFG.replace("= file", "= fiel"), 3, &["choria.cfg:3:", "`file`"]);
}

#[test]
fn a_login_that_cannot_be_made_is_refused_instead_of_left_out() {
    let cfg = format!("{CFG}\nplugin.nats.credentials = FOLDER/p.yaml\n");
    checked(YAML, &cfg, 3, &["`plugin.nats.credentials`", "NATS credentials files"]);
}

#[test]
fn a_missing_thing_is_4() {
    checked(&YAML.replace("/helper", "/helpre"), CFG, 4, &["p.yaml:1:9: error: `helper`", "helpre"]);
    checked(YAML, &CFG.replace("key.pem", "yek.pem"), 4, &["`plugin.security.file.key`", "yek.pem"]);
    checked(&YAML.replace("FOLDER/helper", "no-such-program-anywhere"), CFG, 4, &["not in the PATH"]);
    checked(&format!("{YAML}logfile: FOLDER/no/such/log\n"), CFG, 4, &["`logfile`"]);
}

#[test]
fn keys_that_do_not_fit_are_4() {
    let site = Site::new(YAML, CFG);
    site.write("key.pem", "-----BEGIN PRIVATE KEY-----\nnonsense\n-----END PRIVATE KEY-----\n", 0o600);
    let output = site.check(&[]);
    code(&output, 4);
    assert!(stdout(&output).contains("choria.cfg:5:"), "{}", stdout(&output));
}

/// The vectors of a real issuer network: our token and seed, and as signing token one without chain data.
#[test]
fn a_signing_token_without_a_chain_is_4() {
    let yaml = format!(
        "{YAML}jwt_signing_key: FOLDER/signer.seed\njwt_signing_token: FOLDER/plain.jwt\njwt_verify_cert: FOLDER/issuer.public\n\
         features: {{ed25519: true}}\n"
    );
    let cfg = "identity = prov.example.net\nplugin.choria.middleware_hosts = 127.0.0.1:1\n\
               plugin.security.provider = choria\nplugin.security.choria.token_file = FOLDER/signer.jwt\n\
               plugin.security.choria.seed_file = FOLDER/signer.seed\n";
    let site = Site::new(&yaml, cfg);
    let signer = include_str!("../../proto/tests/vectors/v2.signer.jwt");
    site.write("signer.jwt", signer, 0o600);
    site.write("signer.seed", include_str!("../../proto/tests/vectors/v2.signer.seed"), 0o600);
    site.write("issuer.public", include_str!("../../proto/tests/vectors/v2.issuer.public"), 0o600);
    site.write("plain.jwt", signer, 0o600);
    code(&site.check(&[]), 0);
    site.write("plain.jwt", &without_chain(signer), 0o600);
    let output = site.check(&[]);
    code(&output, 4);
    assert!(stdout(&output).contains("`jwt_signing_token`"), "{}", stdout(&output));
}

/// The token with its trust chain signature taken out (its own signature, made by somebody else, no longer fits).
fn without_chain(token: &str) -> String {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let mut parts: Vec<String> = token.trim().split('.').map(str::to_owned).collect();
    let mut claims: serde_json::Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(&parts[1]).unwrap()).unwrap();
    claims.as_object_mut().unwrap().remove("tcs").unwrap();
    parts[1] = URL_SAFE_NO_PAD.encode(claims.to_string());
    parts.join(".")
}

#[test]
fn a_helper_that_is_not_executable_is_4() {
    let site = Site::new(YAML, CFG);
    fs::set_permissions(site.path("helper"), fs::Permissions::from_mode(0o644)).unwrap();
    let output = site.check(&[]);
    code(&output, 4);
    assert!(stdout(&output).contains("not executable"), "{}", stdout(&output));
}

#[test]
fn a_wrong_command_line_is_2() {
    let site = Site::new(YAML, CFG);
    for line in [&["run"][..], &["check"], &["nosuchverb"], &["run", "--config", "p.yaml", "--nosuch"], &[]] {
        code(&site.run(line), 2);
    }
}

#[test]
fn loose_modes_are_warned_about() {
    let site = Site::new(&format!("{YAML}logfile: FOLDER/q.log\n"), CFG);
    site.write("q.log", "", 0o644);
    for name in ["p.yaml", "key.pem"] {
        fs::set_permissions(site.path(name), fs::Permissions::from_mode(0o644)).unwrap();
    }
    let output = site.check(&[]);
    code(&output, 0);
    let text = stdout(&output);
    for word in ["`token`", "`plugin.security.file.key`", "`logfile`", "0 errors, 3 warnings"] {
        assert!(text.contains(word), "{word}:\n{text}");
    }
}

/// A site whose web listener has a token file and a certificate.
fn guarded() -> Site {
    let yaml = format!(
        "{YAML}listen: 0.0.0.0:9090\nlisten_tls:\n  certificate: FOLDER/cert.pem\n  key: FOLDER/key.pem\n\
         web:\n  admin_token_file: FOLDER/admin\n  read_token_file: FOLDER/read\n"
    );
    let site = Site::new(&yaml, CFG);
    for name in ["admin", "read"] {
        site.write(name, "0123456789abcdef\n", 0o600);
    }
    site
}

#[test]
fn tokens_and_certificate_of_the_web_listener_are_tried() {
    let faulty = |name: &str, text: &str, mode: u32, words: &str| {
        let site = guarded();
        code(&site.check(&[]), 0);
        assert!(stdout(&site.check(&[])).contains("no faults"), "{}", stdout(&site.check(&[])));
        site.write(name, text, mode);
        let output = site.check(&[]);
        code(&output, 4);
        assert!(stdout(&output).contains(words), "{words} is missing in:\n{}", stdout(&output));
    };
    faulty("admin", "0123456789abcdef\n", 0o644, "`web.admin_token_file`");
    faulty("read", "short\n", 0o600, "5 characters");
    faulty("cert.pem", "nothing\n", 0o600, "`listen_tls.certificate`");
}

#[test]
fn a_token_that_its_group_may_read_is_warned_about() {
    let site = guarded();
    site.write("admin", "0123456789abcdef\n", 0o640);
    let output = site.check(&[]);
    code(&output, 0);
    assert!(stdout(&output).contains("its group may use it (mode 0640)"), "{}", stdout(&output));
}

#[test]
fn a_web_listener_that_others_reach_is_warned_about() {
    checked(
        &format!("{YAML}monitor_port: 9090\n"),
        CFG,
        0,
        &["warning: `monitor_port`", "neither TLS nor a token"],
    );
    checked(&format!("{YAML}listen: 9090\n"), CFG, 0, &["no faults"]);
}

#[test]
fn json_is_for_machines() {
    let output = Site::new(&format!("{YAML}interval: 60\n"), CFG).check(&["--json"]);
    code(&output, 3);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let fault = &report["faults"][0];
    assert_eq!((report["ok"].as_bool(), report["exit"].as_u64()), (Some(false), Some(3)));
    assert_eq!((fault["severity"].as_str(), fault["key"].as_str()), (Some("error"), Some("interval")));
    assert_eq!((fault["line"].as_u64(), fault["column"].as_u64()), (Some(4), Some(11)));
}

#[test]
fn no_secret_is_shown() {
    for yaml in [
        format!("{YAML}interval: 60\n"),
        YAML.replace("\ntoken: ", "\ntoken: ["),
        YAML.replace("token: s3cret", "token: 12s3cret: ["),
    ] {
        for more in [&[][..], &["--json"]] {
            let output = Site::new(&yaml, CFG).check(more);
            let all = stdout(&output) + &stderr(&output);
            assert!(!all.contains("s3cret"), "{all}");
        }
    }
}

#[test]
fn the_default_file_is_printed_and_loads() {
    let site = Site::new(YAML, CFG);
    let output = site.run(&["check", "--print-default"]);
    code(&output, 0);
    site.write("p.yaml", &format!("{}\nhelper: /bin/true\n", stdout(&output)), 0o640);
    let output = site.check(&[]);
    code(&output, 0);
    assert!(stdout(&output).contains("0 errors"), "{}", stdout(&output));
}

#[test]
fn help_version_completions_and_manual_are_answers() {
    let site = Site::new(YAML, CFG);
    for line in [
        &["--help"][..],
        &["--version"],
        &["run", "--help"],
        &["completions", "bash"],
        &["completions", "fish"],
        &["man"],
    ] {
        let output = site.run(line);
        code(&output, 0);
        assert!(!output.stdout.is_empty() && output.stderr.is_empty(), "{line:?}");
    }
    code(&site.run(&["man", "--dir", "pages"]), 0);
    assert!(site.path("pages/quartermaster-run.1").exists());
}

#[test]
fn run_refuses_what_check_refuses() {
    let site = Site::new(&format!("{YAML}cert_deny_list: ['(']\n"), CFG);
    let output = site.run(&["run", "--config", "p.yaml", "--choria-config", "choria.cfg"]);
    code(&output, 3);
    assert!(stderr(&output).contains("does not compile"), "{}", stderr(&output));
    assert!(output.stdout.is_empty());
}

#[test]
fn a_log_file_that_cannot_be_opened_is_4() {
    let site = Site::new(&format!("{YAML}logfile: FOLDER\n"), CFG);
    code(&site.run(&["run", "--config", "p.yaml", "--choria-config", "choria.cfg"]), 4);
}

#[test]
fn a_broker_that_is_not_there_is_5() {
    let output = Site::new(YAML, CFG).check(&["--connect", "--json"]);
    code(&output, 5);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["faults"][0]["kind"], "broker");
}

/// Under the peer's name, the peer's line is understood as far as its configuration.
#[test]
fn a_link_named_as_the_peer_takes_the_peers_line() {
    let site = Site::new(&format!("{YAML}interval: 60\n"), CFG);
    let link = site.path("choria-provisioner");
    symlink(BINARY, &link).unwrap();
    for line in [
        &["--config", "p.yaml", "--choria-config", "choria.cfg", "--pid", "p.pid", "--debug"][..],
        &["--no-debug", "run", "--config=p.yaml", "--choria-config=choria.cfg"],
    ] {
        let output = site.command(&link, line).output().unwrap();
        code(&output, 3);
        assert!(stderr(&output).contains("`interval`"), "{}", stderr(&output));
        assert!(!site.path("p.pid").exists(), "nothing is written before the configuration is right");
    }
    let version = site.command(&link, &["--version"]).output().unwrap();
    code(&version, 0);
    assert!(stdout(&version).starts_with("choria-provisioner "), "{}", stdout(&version));
}
