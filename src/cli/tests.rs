use super::*;

fn parsed(line: &str) -> Result<Cli, clap::Error> {
    parse(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
}

/// The arguments of a line that runs the provisioner.
fn run_args(line: &str) -> (RunArgs, LogArgs) {
    match parsed(line) {
        Ok(Cli { command: Command::Run(args), log }) => (args, log),
        other => panic!("{line}: {other:?}"),
    }
}

fn refused(line: &str, words: &str) {
    let error = parsed(line).unwrap_err().to_string();
    assert!(error.contains(words), "{line}: {error}");
}

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
    PeerCli::command().debug_assert();
}

#[test]
fn the_peers_command_line_works_under_its_name() {
    for line in [
        "choria-provisioner --config p.yaml --choria-config c.cfg --pid p.pid --debug",
        "/usr/sbin/choria-provisioner run --config=p.yaml --choria-config=c.cfg --pid=p.pid --debug",
        "choria-provisioner --debug run --pid p.pid --choria-config c.cfg --config p.yaml",
        "choria-provisioner --config p.yaml run --debug --choria-config c.cfg --pid p.pid",
    ] {
        let (args, log) = run_args(line);
        assert_eq!(args.config, Path::new("p.yaml"), "{line}");
        assert_eq!(args.choria_config.as_deref(), Some(Path::new("c.cfg")), "{line}");
        assert_eq!(args.pid.as_deref(), Some(Path::new("p.pid")), "{line}");
        assert!(log.debug, "{line}");
    }
}

#[test]
fn our_own_verb_is_the_same() {
    let (args, log) = run_args("quartermaster run --config p.yaml --debug --log-format json");
    assert_eq!(
        (args.config.to_str(), log.debug, log.log_format),
        (Some("p.yaml"), true, Some(LogFormat::Json))
    );
}

#[rustfmt::skip]
mod debug_can_be_undone {
    use super::*;
    #[test] fn after() { assert!(!run_args("choria-provisioner --debug --no-debug --config p").1.debug) }
    #[test] fn before() { assert!(run_args("choria-provisioner --no-debug --debug --config p").1.debug) }
    #[test] fn alone() { assert!(!run_args("quartermaster run --no-debug --config p").1.debug) }
}

#[rustfmt::skip]
mod refused {
    use super::*;
    #[test] fn no_config() { refused("choria-provisioner", "--config"); refused("quartermaster run", "--config"); refused("quartermaster check", "--config") }
    #[test] fn no_verb() { assert!(parsed("quartermaster").is_err()) }
    #[test] fn our_verbs_under_the_peers_name() { refused("choria-provisioner check --config p", "check") }
    #[test] fn unknown_flags() { refused("quartermaster run --config p --confg q", "--config") }
}

#[test]
fn completions_and_the_manual_name_every_verb() {
    let mut script = Vec::new();
    clap_complete::generate(clap_complete::Shell::Bash, &mut Cli::command(), "quartermaster", &mut script);
    let script = String::from_utf8(script).unwrap();
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page).unwrap();
    // The page writes a hyphen in the way of its format.
    let page = String::from_utf8(page).unwrap().replace("\\-", "-");
    for verb in [
        "run",
        "check",
        "helper",
        "plan",
        "apply",
        "undo",
        "emulate",
        "demo",
        "demo-node",
        "completions",
        "man",
        "status",
        "hosts",
        "host",
        "pause",
        "resume",
        "flip",
        "drain",
        "discover",
        "retry",
        "forget",
        "watch",
        "config",
    ] {
        assert!(script.contains(verb) && page.contains(verb), "{verb}");
    }
}
