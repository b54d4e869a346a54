//! The command `quartermaster bench`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use super::args::Args;
use super::contender::{Contender, words};
use super::figures::Figures;
use super::machine::{Machine, Versions, version_of};
use super::measure::{BrokerProgram, Children, Programs, Run};
use super::report::Report;
use super::setting::Setting;
use super::soak::Soak;
use super::sweep::Sweep;
use super::{chart, provide, sign};
use crate::exit::Exit;
use crate::stage::{StageError, View, complain, nats_server};

/// Measures and says what came of it.
pub fn run(args: &Args) -> Exit {
    if let Some(dir) = &args.sign_as {
        return sign::answer(dir);
    }
    if let Some(dir) = &args.provide_as {
        return provide::serve(dir, &args.rest);
    }
    let against = match args.against.as_deref().map(Contender::parse).transpose() {
        Ok(against) => against,
        Err(error) => return usage("--against", &error),
    };
    if args.helper == "provider" && !args.helper_delay.is_zero() {
        let _ =
            writeln!(std::io::stderr(), "error: --helper-delay: the long-lived helper cannot be made slow");
        return Exit::Usage;
    }
    let broker = match args.broker.as_deref().map(words).transpose() {
        Ok(broker) => broker,
        Err(error) => return usage("--broker", &error),
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(source) => return complain(&StageError::Setup { what: "the runtime", source }),
    };
    match runtime.block_on(bench(args, against.as_ref(), broker)) {
        Ok(exit) => exit,
        Err(error) => complain(&error),
    }
}

fn usage(option: &str, error: &dyn std::error::Error) -> Exit {
    let _ = writeln!(std::io::stderr(), "error: {option}: {error}");
    Exit::Usage
}

async fn bench(
    args: &Args,
    against: Option<&Contender>,
    broker: Option<Vec<String>>,
) -> Result<Exit, StageError> {
    let own = std::env::current_exe().map_err(StageError::OwnFile)?;
    let broker = match broker {
        Some(words) => BrokerProgram::Other(words),
        None => BrokerProgram::Nats(nats_server(args.nats_server.as_deref()).await?),
    };
    let programs = Programs { own, broker };
    let mut interrupt = signal(SignalKind::interrupt()).map_err(StageError::setup("signals"))?;
    let mut terminate = signal(SignalKind::terminate()).map_err(StageError::setup("signals"))?;
    let mut hangup = signal(SignalKind::hangup()).map_err(StageError::setup("signals"))?;
    let mut children = Children::default();
    let outcome = tokio::select! {
        outcome = work(args, &programs, against, &mut children) => outcome.map(Some),
        _ = interrupt.recv() => Ok(None),
        _ = terminate.recv() => Ok(None),
        _ = hangup.recv() => Ok(None),
    };
    children.stop().await;
    let Some((text, good)) = outcome? else {
        let _ = writeln!(std::io::stderr(), "interrupted: everything is stopped");
        return Ok(Exit::Failure);
    };
    let _ = writeln!(std::io::stdout(), "{text}");
    Ok(if good { Exit::Success } else { Exit::Incomplete })
}

/// Does what is asked for; the text to print, and whether all went as it should.
async fn work(
    args: &Args,
    programs: &Programs,
    against: Option<&Contender>,
    children: &mut Children,
) -> Result<(String, bool), StageError> {
    if let Some(length) = args.soak {
        let soak = soak(args, length, programs, children).await?;
        let text = if args.json { serde_json::to_string(&soak).unwrap_or_default() } else { soak.text() };
        return Ok((text, soak.good()));
    }
    let reports = reports(args, programs, against, children).await?;
    let complete = reports.iter().all(Report::complete);
    let text = if args.sweep.is_some() {
        let sweep = Sweep { sweep: reports };
        let panels = sweep.panels();
        std::fs::write(&args.svg, chart::svg(&panels)).map_err(StageError::setup("the picture"))?;
        if args.json {
            serde_json::to_string(&sweep).unwrap_or_default()
        } else {
            let tables: Vec<String> = sweep.sweep.iter().map(Report::text).collect();
            format!("{}\n\n{}picture: {}", tables.join("\n\n"), chart::text(&panels), args.svg.display())
        }
    } else {
        let text = |report: &Report| {
            if args.json { serde_json::to_string(report).unwrap_or_default() } else { report.text() }
        };
        reports.first().map(text).unwrap_or_default()
    };
    Ok((text, complete))
}

async fn soak(
    args: &Args,
    length: Duration,
    programs: &Programs,
    children: &mut Children,
) -> Result<Soak, StageError> {
    let setting = Setting { warm_up: 0, ..Setting::of(args, args.servers) };
    let (machine, versions) = (Machine::here(), versions(args, programs));
    let (dir, _temporary) = folder(args.keep.as_deref(), &Contender::Ours, setting.servers, 1)?;
    let mut view = View::new(length.as_secs());
    view.say(&format!("waves of {} servers for {} s", setting.servers, length.as_secs()));
    let mut run =
        Run { programs, setting: &setting, contender: &Contender::Ours, dir: &dir, view: &mut view };
    let soak = run.soak(length, machine, versions, children).await;
    view.clear();
    children.stop().await;
    soak
}

/// One report, or one for each size of a sweep.
async fn reports(
    args: &Args,
    programs: &Programs,
    against: Option<&Contender>,
    children: &mut Children,
) -> Result<Vec<Report>, StageError> {
    let sizes = args.sweep.as_ref().map_or_else(|| vec![args.servers], |sizes| sizes.0.clone());
    let mut reports = Vec::new();
    for servers in sizes {
        reports.push(report(args, servers, programs, against, children).await?);
    }
    Ok(reports)
}

async fn report(
    args: &Args,
    servers: usize,
    programs: &Programs,
    against: Option<&Contender>,
    children: &mut Children,
) -> Result<Report, StageError> {
    let setting = Setting::of(args, servers);
    let machine = Machine::here();
    let ours = runs(args, programs, &setting, &Contender::Ours, children).await?;
    let theirs = match against {
        Some(against) => runs(args, programs, &setting, against, children).await?,
        None => Vec::new(),
    };
    Ok(Report::new(machine, versions(args, programs), setting, ours, theirs))
}

fn versions(args: &Args, programs: &Programs) -> Versions {
    Versions {
        quartermaster: format!("quartermaster {}", env!("CARGO_PKG_VERSION")),
        broker: match &programs.broker {
            BrokerProgram::Nats(program) => version_of(program),
            BrokerProgram::Other(words) => words.join(" "),
        },
        against: args.against.clone(),
    }
}

/// All runs of one provisioner, each with everything started anew and ended.
async fn runs(
    args: &Args,
    programs: &Programs,
    setting: &Setting,
    contender: &Contender,
    children: &mut Children,
) -> Result<Vec<Figures>, StageError> {
    let mut all = Vec::new();
    for number in 1..=args.runs {
        let (dir, _temporary) = folder(args.keep.as_deref(), contender, setting.servers, number)?;
        let mut view = View::new(setting.servers as u64);
        view.say(&format!(
            "{}, run {number} of {}: {} servers",
            contender.title(),
            args.runs,
            setting.servers
        ));
        let mut run = Run { programs, setting, contender, dir: &dir, view: &mut view };
        let figures = run.measure(children).await;
        view.clear();
        children.stop().await;
        all.push(figures?);
    }
    Ok(all)
}

/// The folder of one run; a temporary one goes when the second value is dropped.
fn folder(
    keep: Option<&Path>,
    contender: &Contender,
    servers: usize,
    number: u32,
) -> Result<(PathBuf, Option<tempfile::TempDir>), StageError> {
    let setup = StageError::setup;
    if let Some(keep) = keep {
        let name = if *contender == Contender::Ours { "ours" } else { "theirs" };
        let dir = keep.join(format!("{name}-{servers}-{number}"));
        std::fs::create_dir_all(&dir).map_err(setup("the directory to keep"))?;
        return Ok((std::path::absolute(dir).map_err(setup("the directory to keep"))?, None));
    }
    let temporary = tempfile::Builder::new().prefix("quartermaster-bench-").tempdir();
    let temporary = temporary.map_err(setup("a temporary directory"))?;
    Ok((temporary.path().to_owned(), Some(temporary)))
}
