//! `quartermaster undo RECORD`: what a run has done is taken back, newest first, as far as its record says.

use std::path::PathBuf;

use quartermaster_actors::steps::{EntryState, Ledger, Record, Taken, UndoState};

use super::arguments::{VariableArgs, record_key};
use super::carry::Carrier;
use super::event::Event;
use super::fault::Faults;
use super::hosts::Hosts;
use super::prepare::{Prepared, complain, given, prepare};
use super::record::{Cover, Folded, Keeper, KeeperError, Line, RecordError, RecordKey};
use super::reporter::Reporter;
use super::secrets::Secrets;
use super::stop::Stop;
use crate::cli::out::{Out, say};
use crate::exit::Exit;
use crate::provider::{TraceFile, explained};

/// Arguments of `quartermaster undo`.
#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "What is taken back is added to the record at once, so another undo does only what is left. Variables are taken from the \
record; sensitive ones have to be given again. Exit codes: 0 nothing is left, 1 the record cannot be written, 2 a variable was given that \
cannot be used, 3 the file of steps is wrong, 4 the record, the file of steps or a program cannot be used, 6 something is left, 9 a signal \
ended it."
)]
pub struct UndoArgs {
    /// The record of a run
    #[arg(value_name = "RECORD")]
    pub record: PathBuf,
    /// The file of steps, if it is not where the record says
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Values of variables.
    #[command(flatten)]
    pub variables: VariableArgs,
    /// An operator has looked after everything whose outcome is unknown: such steps count as not done, such undos are made again
    #[arg(long)]
    pub decided: bool,
    /// Go on although a provider declares something else than it did
    #[arg(long)]
    pub accept_changes: bool,
    /// The key that sealed secrets [default: quartermaster/record.key below XDG_STATE_HOME]
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

/// Takes a run back.
pub fn run(args: &UndoArgs, out: Out) -> Exit {
    actix_rt::System::new().block_on(undo(args, out)).unwrap_or_else(|exit| exit)
}

async fn undo(args: &UndoArgs, mut out: Out) -> Result<Exit, Exit> {
    let stop = Stop::listen().map_err(|error| {
        say(&format!("cannot listen for signals: {error}\n"));
        Exit::Failure
    })?;
    let secrets = Secrets::default();
    let opened = Keeper::open(&args.record, |run| {
        // Without the key what was sealed is told as lost.
        let key = args.record_key.clone().or_else(record_key).map(RecordKey);
        let seal = key.and_then(|key| key.read().ok());
        Cover::new(secrets.clone(), seal, run.to_owned())
    });
    let (keeper, folded) = match opened {
        Ok(opened) => opened,
        Err(KeeperError::Record { source: RecordError::Empty, .. }) => {
            out.text("the run had not begun: nothing to take back\n");
            return Ok(Exit::Success);
        }
        Err(error) => {
            complain(&error);
            return Err(Exit::Files);
        }
    };
    let mut ledger = folded.ledger.clone();
    if args.decided {
        ledger.apply(&Record::Decided);
        keeper.write(&Line::Step(Record::Decided, Vec::new())).await.map_err(|error| unwritten(&error))?;
    }
    let needed = needed(&ledger);
    if needed.is_empty() && ledger.left().is_empty() {
        let reporter = Reporter::new(out, secrets, args.json);
        reporter.say(&Event::End("nothing is left to take back"));
        return Ok(Exit::Success);
    }
    let mut given = given(&args.variables)?;
    given.recorded.clone_from(&folded.header.vars);
    let file = args.file.clone().unwrap_or_else(|| PathBuf::from(&folded.header.file));
    let scenario = folded.header.scenario.as_str();
    let (mut prepared, mut faults): (Prepared, Faults) =
        prepare(&file, Some(scenario), &given, Some(&needed), secrets.clone()).await?;
    prepared.check_configs(&mut faults)?;
    is_same(args, &prepared, &folded)?;
    let trace = args.trace_wire.as_deref().map(TraceFile::create).transpose().map_err(|error| {
        complain(&error);
        Exit::Files
    })?;
    let settings = prepared.sources.values().map(|source| source.settings.clone());
    let hosts = Hosts::new(&folded.header.run, settings, &secrets, trace.as_ref());
    let reporter = Reporter::new(out, secrets.clone(), args.json);
    let taken = take_back(&hosts, &keeper, &reporter, &secrets, &stop).await;
    hosts.close().await;
    let Taken { left, stopped, .. } = taken?;
    for left in &left {
        reporter.say(&Event::Left(left.to_string()));
    }
    if left.iter().any(quartermaster_actors::steps::Left::asks_operator) {
        reporter.say(&Event::Warning(
            "nobody but you can tell what became of those: look, and then say --decided".to_owned(),
        ));
    }
    let (exit, status) = match (left.is_empty(), stopped) {
        (true, _) => (Exit::Success, "taken back"),
        (false, true) => (Exit::Interrupted, "interrupted"),
        (false, false) => (Exit::Incomplete, "not all was taken back"),
    };
    reporter.say(&Event::End(status));
    Ok(exit)
}

async fn take_back(
    hosts: &Hosts,
    keeper: &Keeper,
    reporter: &Reporter,
    secrets: &Secrets,
    stop: &Stop,
) -> Result<Taken, Exit> {
    let failed = tokio::select! {
        failed = hosts.start_all() => failed,
        () = stop.wait() => return Err(Exit::Interrupted),
    };
    for error in &failed {
        // The others are taken back all the same; what this one has done is left, and told.
        say(&format!("{}\n", secrets.text(&explained(error))));
    }
    let carrier = Carrier { hosts, keeper, reporter, secrets };
    carrier.take_back("asked for", stop).await.map_err(|error| unwritten(&error))
}

fn unwritten(error: &KeeperError) -> Exit {
    complain(error);
    Exit::Failure
}

/// The providers that have something to take back, or to tell.
fn needed(ledger: &Ledger) -> Vec<String> {
    let open = |undos: &quartermaster_actors::steps::Undos| {
        undos.iter().flatten().any(|undo| undo.state != UndoState::Done)
    };
    let mut names: Vec<String> = ledger
        .entries()
        .iter()
        .filter(|entry| match &entry.state {
            EntryState::Sent => true,
            EntryState::Done(_, undos) | EntryState::Failed { undo: undos, .. } => open(undos),
        })
        .map(|entry| entry.provider.clone())
        .collect();
    names.sort();
    names.dedup();
    names
}

/// A provider that declares something else than it did may do something else by the same name.
fn is_same(args: &UndoArgs, prepared: &Prepared, folded: &Folded) -> Result<(), Exit> {
    let mut changed = false;
    for (name, asked) in &prepared.asked {
        let Some(seen) = folded.header.providers.get(name) else { continue };
        if seen.schema_sha256 != hex::encode(asked.schema.digest()) {
            changed = true;
            say(&format!(
                "the provider `{name}` declares something else than it did (version {}, then {})\n",
                asked.schema.version, seen.version
            ));
        }
    }
    if changed && !args.accept_changes {
        say("look at what has changed, and then say --accept-changes\n");
        return Err(Exit::Files);
    }
    Ok(())
}
