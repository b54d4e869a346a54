//! The `schema` subcommand, and what must be true of a program before anything of it is started.

use std::fs;
use std::time::Duration;

use quartermaster_actors::child::Orphans;
use quartermaster_actors::provider::{CallError, Digest, Outcome, Policy, Probed, SchemaOnly, digest, probe};

use super::support::{Site, limited, members, provider, write_program};

async fn probed(site: &Site) -> Result<Probed, CallError> {
    limited(probe(&site.settings, &Orphans::unadopted())).await
}

#[actix::test]
async fn b16_the_schema_subcommand_in_good_and_in_bad_shape() {
    let print = "print(json.dumps(LOOSE, indent=4))";
    for (text, expected) in [
        (print, Ok(())),
        ("print(json.dumps({'schema': LOOSE}))", Ok(())),
        ("assert sys.stdin.read() == ''\nprint(json.dumps(LOOSE))", Ok(())),
        ("pass", Err(("host.bad_schema", "no schema"))),
        ("sys.stderr.write('no licence\\n'); sys.exit(3)", Err(("host.exited", "exit status: 3"))),
        ("print('[]')", Err(("host.bad_schema", ""))),
        ("print('{')", Err(("host.bad_schema", ""))),
        ("sys.stdout.write(' ' * (4 << 20) + '1')", Err(("host.frame_too_large", "4194304"))),
    ] {
        let Some(site) = provider(&format!("assert sys.argv[1:] == ['schema']\n{text}")) else { return };
        let site = site.with(|settings| settings.timeouts.schema = Duration::from_secs(30));
        match (probed(&site).await, expected) {
            (Ok(probed), Ok(())) => assert_eq!(probed.schema.name, "loose"),
            (Err(error), Err((code, part))) => {
                assert_eq!(
                    (error.code().as_str(), error.outcome),
                    (code, Outcome::NotSent),
                    "{text}: {error}"
                );
                assert!(error.message().contains(part), "{error}");
                assert_eq!(error.stderr.is_empty(), !text.contains("licence"));
            }
            (found, _) => panic!("{text}: {found:?}"),
        }
    }
}

#[actix::test]
async fn b16_a_schema_subcommand_that_hangs_is_killed() {
    let Some(site) = provider("note('pid', str(os.getpid())); time.sleep(600)") else { return };
    let site = site.with(|settings| settings.timeouts.schema = Duration::from_secs(10));
    let error = probed(&site).await.unwrap_err();
    assert_eq!(error.code().as_str(), "host.timeout");
    let pid = fs::read_to_string(site.dir.path().join("pid")).unwrap();
    super::support::eventually("killed", || !super::support::alive(&pid)).await;
}

#[actix::test]
async fn what_is_only_planned_with_can_do_nothing() {
    let Some(site) = provider("print(json.dumps(LOOSE))") else { return };
    let schema = probed(&site.with(|settings| settings.timeouts.schema = Duration::from_secs(30)))
        .await
        .unwrap()
        .schema;
    let planned = SchemaOnly::new("dns".to_owned(), schema);
    assert_eq!(planned.schema().name, "loose");
    assert!(planned.configure(&members("{}")).is_err() && planned.execute("do", &members("{}")).is_err());
}

const GOOD: &str = "if sys.argv[1:]: print(json.dumps(LOOSE))\nelse: serve(LOOSE, lambda id, params: ok(id))";

/// The code with which a start and a probe are refused; none when both go well.
async fn refusal(site: Site) -> Option<String> {
    let site = site.with(|settings| settings.timeouts.schema = Duration::from_secs(30));
    let first = probed(&site).await.err().map(|error| error.code().to_string());
    let bench = site.run();
    let second = limited(bench.handle.start()).await.err().map(|error| error.code().to_string());
    bench.close().await;
    assert_eq!(first, second, "asked for its schema and started alike");
    second
}

#[actix::test]
async fn b22_a_program_with_another_checksum_is_never_started() {
    let Some(site) = provider(GOOD) else { return };
    let right = digest(&site.settings.program).unwrap();
    assert_eq!(Digest::parse(&right.to_string().to_uppercase()), Some(right));
    assert_eq!(refusal(site.with(|settings| settings.trust.sha256 = Some(right))).await, None);
    let Some(site) = provider(GOOD) else { return };
    let wrong = Digest([7; 32]);
    let site = site.with(|settings| settings.trust.sha256 = Some(wrong));
    assert_eq!(refusal(site).await.as_deref(), Some("host.checksum_mismatch"));
}

#[actix::test]
async fn b22_with_a_private_copy_a_program_swapped_after_the_check_does_not_matter() {
    let text = format!("sys.path.insert(0, os.environ['KIT'])\n{GOOD}");
    let Some(site) = provider("") else { return };
    let python = fs::read_to_string(&site.settings.program).unwrap().lines().next().unwrap().to_owned();
    let kit = "import sys, os; sys.path.insert(0, os.environ['KIT'])\nfrom kit import *";
    write_program(&site.settings.program, &format!("{python}\n{kit}\n{text}\n"));
    let pinned = digest(&site.settings.program).unwrap();
    let program = site.settings.program.clone();
    let folder = site.dir.path().as_os_str().to_owned();
    let site = site.with(|settings| {
        settings.trust.sha256 = Some(pinned);
        settings.trust.copy = true;
        settings.environment.push(("KIT".into(), folder));
    });
    let bench = site.run();
    limited(bench.handle.start()).await.unwrap();
    // The copy is what runs: it does not lie beside the kit.
    let exe = |pid: u32| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let children =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    assert!(children.map(exe).any(|line| line.contains("quartermaster-provider-") && !line.contains(program.to_str().unwrap())));
    write_program(&program, "#!/bin/sh\nexit 9\n");
    bench.act("1").await.unwrap();
    bench.close().await;
}

#[actix::test]
async fn programs_outside_the_one_directory_or_the_list_are_not_started() {
    let Some(site) = provider(GOOD) else { return };
    let elsewhere = tempfile::TempDir::new().unwrap();
    let link = elsewhere.path().join("provider");
    std::os::unix::fs::symlink(&site.settings.program, &link).unwrap();
    let site = site.with(|settings| {
        settings.trust.directory = Some(elsewhere.path().to_owned());
        settings.program = link;
    });
    assert_eq!(refusal(site).await.as_deref(), Some("host.checksum_mismatch"), "a link out of it");
    let Some(site) = provider(GOOD) else { return };
    let inside = site.dir.path().to_owned();
    assert_eq!(refusal(site.with(|settings| settings.trust.directory = Some(inside))).await, None);
    let Some(site) = provider(GOOD) else { return };
    let right = digest(&site.settings.program).unwrap();
    assert_eq!(
        refusal(site.with(|settings| settings.trust.policy = Policy::AllowList(vec![right]))).await,
        None
    );
    let Some(site) = provider(GOOD) else { return };
    assert!(refusal(site.with(|settings| settings.trust.policy = Policy::AllowList(vec![]))).await.is_some());
    let Some(site) = provider(GOOD) else { return };
    assert!(refusal(site.with(|settings| settings.trust.policy = Policy::DenyAll)).await.is_some());
}
