//! The verb: from arguments to exit code.

use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use quartermaster_actors::helper::{Execution, HelperError, HelperSettings, Orphans, execute};
use quartermaster_actors::text::causes;
use quartermaster_proto::choria::identity::Identity;
use quartermaster_proto::helper::HelperReply;
use secrecy::ExposeSecret as _;
use zeroize::Zeroizing;

use super::outcome::{self, Server, Site};
use super::provided::{self, NotTold};
use super::report::{Report, Source};
use super::sample;
use crate::app::settings;
use crate::check::{Style, render};
use crate::cli::out::Out;
use crate::config::{Config, Faults, HelperProtocol, load};
use crate::exit::Exit;

/// The largest recorded input that is read.
const MAX_INPUT: u64 = 64 * 1024 * 1024;

/// Arguments of `quartermaster helper test`.
#[derive(Debug, Clone, clap::Args)]
#[command(
    group = clap::ArgGroup::new("whom").required(true),
    after_help = "Nothing is sent to any server. Exit codes: 0 the answer is good (deferring and stopping a server are good answers), \
3 the configuration is wrong, 4 the helper cannot be started or the recorded input cannot be read, 6 the answer cannot be used."
)]
pub struct Args {
    /// YAML configuration file; only what concerns the helper has to be right
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Choria client configuration file; a helper does not depend on it
    #[arg(long, value_name = "FILE", hide = true)]
    pub choria_config: Option<PathBuf>,
    /// Give the helper this recorded input, byte for byte (- is standard input)
    #[arg(long, value_name = "FILE", group = "whom")]
    pub server: Option<PathBuf>,
    /// Give the helper the input of a made-up server of this name, with what the configured features bring
    #[arg(long, value_name = "NAME", group = "whom")]
    pub identity: Option<String>,
    /// Show tokens, keys and passwords
    #[arg(long)]
    pub show_secrets: bool,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// What goes wrong before there is anything to report.
#[derive(Debug, thiserror::Error)]
enum TestError {
    #[error("cannot read {}", .file.display())]
    Read {
        file: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{} is no helper input: a JSON object with a string `identity`", .file.display())]
    Input {
        file: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    #[error("--identity")]
    Identity(#[from] quartermaster_proto::choria::identity::IdentityError),
    #[error(transparent)]
    Sample(#[from] sample::SampleError),
    #[error("cannot start")]
    Runtime(#[from] std::io::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// Runs the helper once and shows everything about it.
pub fn run(args: &Args) -> Exit {
    let config = match configuration(args) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    match test(args, &config) {
        Ok((report, exit)) => {
            let mut out = Out::stdout();
            if args.json {
                out.text(&report.json());
            } else {
                out.text(&report.text());
            }
            exit
        }
        Err(error) => {
            say(&format!("{}\n", causes(&error)));
            match error {
                TestError::Identity(_) => Exit::Usage,
                TestError::Read { .. } | TestError::Input { .. } => Exit::Files,
                TestError::Sample(_) | TestError::Runtime(_) | TestError::Json(_) => Exit::Failure,
            }
        }
    }
}

/// Standard error may have no reader any more; that changes no exit code.
fn say(text: &str) {
    use std::io::Write as _;
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Loads the configuration; only faults that concern the helper stop us. They are on standard error by then.
fn configuration(args: &Args) -> Result<Config, Exit> {
    let around = crate::machine::surroundings();
    // An author's machine has no choria.cfg, and nothing of it reaches a helper.
    let choria = args.choria_config.as_deref().unwrap_or_else(|| Path::new("/dev/null"));
    let loaded = load(&args.config, Some(choria), &around);
    let mut relevant = Faults::default();
    for fault in loaded.faults.list() {
        let key = fault.key.as_deref().unwrap_or_default();
        if loaded.config.is_none() || key.starts_with("helper") || key.starts_with("features") {
            relevant.push(fault.clone());
        }
    }
    if !relevant.list().is_empty() {
        say(&render(&relevant, Style::of_terminal(false, around.env)));
    }
    match loaded.config {
        Some(config) if relevant.may_start() => Ok(config),
        _ => Err(relevant.exit()),
    }
}

fn test(args: &Args, config: &Config) -> Result<(Report, Exit), TestError> {
    let now = crate::clock::now().seconds();
    let (input, server, source) = input(args, config, now)?;
    let settings = settings::helper(config);
    let (mut report, exit) = match config.helper.protocol {
        HelperProtocol::Exec => executed(config, &settings, &input, &server, source, now)?,
        HelperProtocol::Provider => provided(config, &settings, &input, &server, source, now),
    };
    if !args.show_secrets {
        report.redact();
    }
    Ok((report, exit))
}

fn provided(
    config: &Config,
    settings: &HelperSettings,
    input: &[u8],
    server: &Server,
    source: Source,
    now: i64,
) -> (Report, Exit) {
    let told = provided::ask(config, settings, input);
    let mut report = Report::new(settings, &server.identity, source, input, told.took, told.said);
    report.answered(&told.outputs);
    let exit = match told.reply {
        Ok(reply) => decided(&mut report, &reply, &told.outputs, settings, server, config, now, told.took),
        Err(error) => {
            report.fail(error.to_string());
            if matches!(error, NotTold::Start(_)) { Exit::Files } else { Exit::Incomplete }
        }
    };
    (report, exit)
}

fn executed(
    config: &Config,
    settings: &HelperSettings,
    input: &[u8],
    server: &Server,
    source: Source,
    now: i64,
) -> Result<(Report, Exit), TestError> {
    let mut stderr = Vec::new();
    let started = Instant::now();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // As in the daemon, what the helper leaves behind is ended with its run.
    let orphans = Orphans::adopt()?;
    let execution = runtime.block_on(execute(settings, &orphans, input, |line| stderr.push(line)));
    let took = started.elapsed();
    orphans.sweep();

    let mut report = Report::new(settings, &server.identity, source, input, took, stderr);
    let exit = match execution {
        Ok(execution) => judge(&mut report, &execution, settings, server, config, now, took),
        Err(error) => {
            report.fail(error.chain());
            if matches!(error, HelperError::Start { .. }) { Exit::Files } else { Exit::Incomplete }
        }
    };
    Ok((report, exit))
}

fn judge(
    report: &mut Report,
    execution: &Execution,
    settings: &HelperSettings,
    server: &Server,
    config: &Config,
    now: i64,
    took: Duration,
) -> Exit {
    report.ended(execution);
    match execution.reply(settings) {
        Ok(reply) => decided(report, &reply, &execution.stdout, settings, server, config, now, took),
        Err(error) => {
            report.fail(error.chain());
            Exit::Incomplete
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "a reply and everything it is judged by")]
fn decided(
    report: &mut Report,
    reply: &HelperReply,
    text: &[u8],
    settings: &HelperSettings,
    server: &Server,
    config: &Config,
    now: i64,
    took: Duration,
) -> Exit {
    let site = Site {
        features: config.features,
        upgrades: &config.upgrades,
        token: config.token.expose_secret(),
        now,
    };
    let mut outcome = outcome::outcome(reply, server, &site);
    outcome.warnings.extend(outcome::unknown_keys(text));
    if took * 2 > settings.timeout {
        outcome
            .warnings
            .push(format!("it took {took:?} of the {:?} it may (helper_timeout)", settings.timeout));
    }
    let good = outcome.errors.is_empty();
    report.decided(outcome);
    if good { Exit::Success } else { Exit::Incomplete }
}

fn input(args: &Args, config: &Config, now: i64) -> Result<(Zeroizing<Vec<u8>>, Server, Source), TestError> {
    if let Some(file) = &args.server {
        let bytes = read(file).map_err(|source| TestError::Read { file: file.clone(), source })?;
        let server = serde_json::from_slice(&bytes)
            .map_err(|source| TestError::Input { file: file.clone(), source })?;
        return Ok((bytes, server, Source::Recorded(file.clone())));
    }
    let identity = Identity::parse(args.identity.as_deref().unwrap_or_default())?;
    let sample = sample::input(&identity, config.features, config.token.expose_secret(), now)?;
    let bytes = Zeroizing::new(sample.to_json());
    let server = serde_json::from_slice(&bytes)?;
    Ok((bytes, server, Source::Sample))
}

fn read(file: &Path) -> std::io::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::new());
    if file.as_os_str() == "-" {
        let stdin = std::io::stdin();
        if stdin.is_terminal() {
            return Err(std::io::Error::other("standard input is a terminal"));
        }
        stdin.lock().take(MAX_INPUT).read_to_end(&mut bytes)?;
    } else {
        std::fs::File::open(file)?.take(MAX_INPUT).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
