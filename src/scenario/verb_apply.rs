//! `quartermaster apply FILE`: the steps are done, and what was done is recorded.

use std::path::{Path, PathBuf};

use quartermaster_actors::expression::Partial;
use quartermaster_actors::journal::Seal;
use quartermaster_proto::provider::{Members, Severity};

use super::arguments::{VariableArgs, record_key};
use super::carry::Carrier;
use super::check::Checked;
use super::event::Event;
use super::hosts::Hosts;
use super::prepare::{Prepared, complain, given, prepare};
use super::record::{Cover, Header, Keeper, Line, RecordKey, SeenProvider};
use super::reporter::Reporter;
use super::running::{Running, Tally};
use super::schedule::OnFailure;
use super::secrets::Secrets;
use super::stop::Stop;
use crate::cli::out::{Out, say};
use crate::exit::Exit;
use crate::provider::{TraceFile, explained};

/// What happens to what was done when a signal ends a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum OnInterrupt {
    /// It is taken back.
    #[default]
    Undo,
    /// It stays; the record says what it is.
    Keep,
}

/// Arguments of `quartermaster apply`.
#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "What was done is written to quartermaster_SCENARIO_run_ID.jsonl, from which `quartermaster undo` takes it back. SIGINT \
and SIGTERM call off what runs and take back what was done; a second one leaves the rest to `quartermaster undo`. Exit codes: 0 all was \
done, 1 the record cannot be written, 2 a variable was given that cannot be used, 3 the file is wrong, 4 the file, the record or a program \
cannot be used, 6 not all was done, 9 a signal ended it."
)]
pub struct ApplyArgs {
    /// The file of steps
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The scenario, where the file has several
    #[arg(long, value_name = "NAME")]
    pub scenario: Option<String>,
    /// Values of variables.
    #[command(flatten)]
    pub variables: VariableArgs,
    /// When a step fails: begin nothing more, go on with what does not depend on it, or take everything back
    #[arg(long, value_enum, default_value_t = OnFailure::Stop)]
    pub on_failure: OnFailure,
    /// What a signal does with what was done
    #[arg(long, value_enum, default_value_t = OnInterrupt::Undo)]
    pub on_interrupt: OnInterrupt,
    /// Where the record is written
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub record_dir: PathBuf,
    /// Write no record: nothing can be taken back afterwards
    #[arg(long)]
    pub no_record: bool,
    /// The key that seals secrets which an undo needs [default: quartermaster/record.key below XDG_STATE_HOME]
    #[arg(long, value_name = "FILE")]
    pub record_key: Option<PathBuf>,
    /// Write every frame that passes to this file, secrets covered
    #[arg(long, value_name = "FILE")]
    pub trace_wire: Option<PathBuf>,
    /// Show what happens as JSON lines
    #[arg(long)]
    pub json: bool,
    /// Accepted for scripts; nothing is coloured
    #[arg(long)]
    pub no_color: bool,
}

/// Does the steps.
pub fn run(args: &ApplyArgs, out: Out) -> Exit {
    actix_rt::System::new().block_on(apply(args, out)).unwrap_or_else(|exit| exit)
}

async fn apply(args: &ApplyArgs, out: Out) -> Result<Exit, Exit> {
    let stop = Stop::listen().map_err(|error| {
        say(&format!("cannot listen for signals: {error}\n"));
        Exit::Failure
    })?;
    let given = given(&args.variables)?;
    let (mut prepared, mut faults) =
        prepare(&args.file, args.scenario.as_deref(), &given, None, Secrets::default()).await?;
    let checked = prepared.check(&mut faults)?;
    if stop.asked().is_some() {
        return Ok(Exit::Interrupted);
    }
    let run = run_id();
    let trace = args.trace_wire.as_deref().map(TraceFile::create).transpose().map_err(|error| {
        complain(&error);
        Exit::Files
    })?;
    let settings = prepared.sources.values().map(|source| source.settings.clone());
    let hosts = Hosts::new(&run, settings, &prepared.secrets, trace.as_ref());
    let reporter = Reporter::new(out, prepared.secrets.clone(), args.json);
    let ended = with_hosts(args, &prepared, &checked, &hosts, &reporter, &run, &stop).await;
    hosts.close().await;
    if let Ok((_, status)) = &ended {
        reporter.say(&Event::End(status));
    }
    ended.map(|(exit, _)| exit)
}

/// From the start of the providers to the last line of the record.
async fn with_hosts(
    args: &ApplyArgs,
    prepared: &Prepared,
    checked: &Checked,
    hosts: &Hosts,
    reporter: &Reporter,
    run: &str,
    stop: &Stop,
) -> Result<(Exit, &'static str), Exit> {
    let failed = tokio::select! {
        failed = hosts.start_all() => failed,
        () = stop.wait() => return Ok((Exit::Interrupted, "interrupted")),
    };
    if !failed.is_empty() {
        for error in failed {
            say(&format!("{}\n", prepared.secrets.text(&explained(&error))));
        }
        return Err(Exit::Files);
    }
    tokio::select! {
        validated = validate(prepared, checked, hosts) => validated?,
        () = stop.wait() => return Ok((Exit::Interrupted, "interrupted")),
    }
    let keeper = keeper(args, prepared, run)?;
    keeper.write(&Line::Run(header(prepared, run))).await.map_err(|error| {
        complain(&error);
        Exit::Files
    })?;
    if let Some(path) = keeper.path() {
        reporter.say(&Event::Record(path.display().to_string()));
    }
    let carrier = Carrier { hosts, keeper: &keeper, reporter, secrets: &prepared.secrets };
    let folder = prepared.file.parent().unwrap_or(Path::new("/"));
    let running = Running::new(carrier, checked, folder, run, !args.no_record);
    let ended = steps(args, &running, carrier, stop).await;
    ended.map_err(|error| {
        complain(&error);
        Exit::Failure
    })
}

/// The steps, and what follows from how they ended.
async fn steps(
    args: &ApplyArgs,
    running: &Running<'_>,
    carrier: Carrier<'_>,
    stop: &Stop,
) -> Result<(Exit, &'static str), super::record::KeeperError> {
    let Carrier { keeper, reporter, .. } = carrier;
    let Tally { failed, skipped, .. } = running.all(args.on_failure, stop).await?;
    let interrupted = stop.asked();
    let mut complete = failed == 0 && skipped == 0;
    let status = if interrupted.is_some() && !complete {
        "interrupted"
    } else if complete {
        "succeeded"
    } else {
        "failed"
    };
    if complete {
        let (outputs, faults) = running.outputs();
        for fault in faults.errors() {
            complete = false;
            reporter.say(&Event::Warning(format!("line {}: {}", fault.line, fault.what)));
        }
        let mut shown = Members::new();
        for (name, known) in outputs {
            let value = known.value.known().cloned().filter(|_| !known.secret);
            if let Some(value) = &value {
                shown.insert(name.clone(), value.clone());
            }
            reporter.say(&Event::Output { name, value });
        }
        keeper.write(&Line::Outputs(shown)).await?;
    } else {
        let why = match (interrupted, args.on_interrupt, args.on_failure) {
            (Some(signal), OnInterrupt::Undo, _) => Some(format!("interrupted by {signal}")),
            (None, _, OnFailure::Undo) => Some("a step failed".to_owned()),
            _ => None,
        };
        if let Some(why) = why {
            let taken = carrier.take_back(&why, &stop.next()).await?;
            for left in &taken.left {
                reporter.say(&Event::Left(left.to_string()));
            }
        }
    }
    keeper.write(&Line::End { status: status.to_owned() }).await?;
    let exit = match (status, complete) {
        ("interrupted", _) => Exit::Interrupted,
        (_, true) => Exit::Success,
        _ => Exit::Incomplete,
    };
    Ok((exit, status))
}

/// Asks the providers that can tell what they think of each step, before anything is done (provider.md F17).
async fn validate(prepared: &Prepared, checked: &Checked, hosts: &Hosts) -> Result<(), Exit> {
    use quartermaster_proto::provider::{Extension, Path as Place};
    let mut wrong = false;
    for node in &checked.order {
        let Some(step) = checked.steps.get(*node) else { continue };
        let Some(schema) = checked.schemas.get(&step.provider) else { continue };
        if !schema.extensions.as_ref().is_some_and(|extensions| extensions.has(Extension::Validate)) {
            continue;
        }
        let hidden = step.attrs.values().filter(|known| known.secret).filter_map(|known| known.value.known());
        prepared.secrets.cover(hidden);
        let attrs = step.attrs.iter().map(|(name, known)| (name.clone(), known.value.with_nulls())).collect();
        let unknown =
            step.attrs.iter().flat_map(|(name, known)| known.value.unknown(&Place::of(name))).collect();
        match hosts.validate(&step.provider, &step.action.kind, attrs, unknown).await {
            Ok(diagnostics) => {
                for diagnostic in diagnostics {
                    let line = place(step, &diagnostic.path);
                    let word = if diagnostic.severity == Severity::Error { "" } else { "warning: " };
                    wrong |= diagnostic.severity == Severity::Error;
                    let at = if diagnostic.path.0.is_empty() {
                        String::new()
                    } else {
                        format!("`{}`: ", diagnostic.path)
                    };
                    let text = format!(
                        "{}:{line}: {word}action.{}: {at}{} (says the provider `{}`)",
                        prepared.file.display(),
                        step.id,
                        diagnostic.message,
                        step.provider
                    );
                    say(&format!("{}\n", one_line(&prepared.secrets.text(&text))));
                }
            }
            Err(error) => {
                say(&format!("{}\n", prepared.secrets.text(&explained(&error))));
                return Err(Exit::Files);
            }
        }
    }
    if wrong { Err(Exit::Config) } else { Ok(()) }
}

fn one_line(text: &str) -> String {
    quartermaster_actors::child::printable(text.as_bytes())
}

/// The line of the attribute a remark is about.
fn place(step: &super::check::Step, path: &quartermaster_proto::provider::Path) -> usize {
    let name = path.0.first().and_then(|segment| match segment {
        quartermaster_proto::provider::Segment::Key(name) => Some(name),
        quartermaster_proto::provider::Segment::Index(_) => None,
    });
    let line = name.and_then(|name| step.action.attrs.get(name)).map(|expression| expression.line);
    line.unwrap_or(step.action.line)
}

fn keeper(args: &ApplyArgs, prepared: &Prepared, run: &str) -> Result<Keeper, Exit> {
    let seal = if args.no_record { None } else { seal(args.record_key.as_ref())? };
    let cover = Cover::new(prepared.secrets.clone(), seal, run.to_owned());
    if args.no_record {
        return Ok(Keeper::nowhere(cover));
    }
    let name = format!("quartermaster_{}_run_{run}.jsonl", prepared.scenario.name);
    Keeper::create(&args.record_dir.join(name), cover).map_err(|error| {
        complain(&error);
        Exit::Files
    })
}

/// The key that seals, made if there is none.
fn seal(given: Option<&PathBuf>) -> Result<Option<Seal>, Exit> {
    let Some(path) = given.cloned().or_else(record_key) else { return Ok(None) };
    let key = RecordKey(path);
    key.open().map(Some).map_err(|error| {
        say(&format!("the key {} cannot be used: {error}\n", key.path().display()));
        Exit::Files
    })
}

fn header(prepared: &Prepared, run: &str) -> Header {
    let (shown, masked): (Vec<_>, Vec<_>) = prepared.variables.iter().partition(|(_, known)| !known.secret);
    let vars = shown.into_iter().filter_map(|(name, known)| match &known.value {
        Partial::Known(value) => Some((name.clone(), value.clone())),
        _ => None,
    });
    let providers = prepared.asked.iter().map(|(name, asked)| {
        let seen = SeenProvider {
            version: asked.schema.version.clone(),
            sha256: asked.sha256.clone(),
            schema_sha256: hex::encode(asked.schema.digest()),
        };
        (name.clone(), seen)
    });
    Header {
        run: run.to_owned(),
        scenario: prepared.scenario.name.clone(),
        file: prepared.file.to_string_lossy().into_owned(),
        vars: vars.collect::<Members>(),
        masked: masked.into_iter().map(|(name, _)| name.clone()).collect(),
        providers: providers.collect(),
    }
}

/// When it begins, to the second, and eight random digits: names sort by time.
fn run_id() -> String {
    let seconds = crate::clock::now().seconds();
    let time = time::OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(time::OffsetDateTime::UNIX_EPOCH);
    let format = time::macros::format_description!("[year][month][day]T[hour][minute][second]Z");
    let time = time.format(&format).unwrap_or_default();
    format!("{time}_{:08x}", rand::random::<u32>())
}
