//! The verb: what it is asked for, and what it prints.

use std::path::PathBuf;
use std::time::Duration;

use super::figures::Figures;
use super::measure::measure;
use super::scene::{BenchError, Scene, Size};
use crate::cli::out::{Out, say};
use crate::exit::Exit;
use crate::node::serve::Chain;
use crate::stage::nats_server;

/// Arguments of `quartermaster node bench`.
#[derive(Debug, Clone, clap::Args)]
pub struct NodeBenchArgs {
    /// Modules of the machine
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    modules: u32,
    /// Files of each module
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    files: u32,
    /// Config values that are changed, one after the other
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    changes: u32,
    /// Seconds during which nothing changes
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    idle: u64,
    /// The nats-server to use [default: on the PATH, or fetched in a source checkout]
    #[arg(long, value_name = "PATH")]
    nats_server: Option<PathBuf>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub fn bench(args: &NodeBenchArgs, out: &mut Out) -> Exit {
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            say(&format!("error: no runtime: {error}\n"));
            return Exit::Failure;
        }
    };
    let size = Size { modules: args.modules, files: args.files };
    let measured = runtime.block_on(async {
        let server = nats_server(args.nats_server.as_deref()).await?;
        tokio::select! {
            figures = run(size, args.changes, Duration::from_secs(args.idle), server) => figures.map(Some),
            _ = tokio::signal::ctrl_c() => Ok(None),
        }
    });
    match measured {
        Ok(Some(figures)) => {
            out.text(&if args.json { figures.as_json() } else { figures.for_people() });
            Exit::Success
        }
        Ok(None) => Exit::Interrupted,
        Err(error) => {
            say(&format!("error: {}\n", Chain(&error)));
            if error.is_missing_broker() { Exit::Files } else { Exit::Failure }
        }
    }
}

async fn run(size: Size, changes: u32, idle: Duration, server: PathBuf) -> Result<Figures, BenchError> {
    let mut scene = Scene::set(size, &server).await?;
    let figures = measure(&mut scene, changes, idle).await;
    scene.strike().await;
    figures
}
