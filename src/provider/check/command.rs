//! The verb: sets the cases up and runs them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quartermaster_actors::child::{Launch, Orphans};
use quartermaster_actors::provider::{ProviderSettings, command, probe};
use quartermaster_proto::provider::{Body, Call, Configure, Declared as _, HostHello, Members, Schema};

use super::report::{Line, Report, Verdict};
use super::talk::Talk;
use super::{cases, extensions};
use crate::cli::out::Out;
use crate::exit::Exit;
use crate::provider::command::say;
use crate::provider::program::{explained, members, settings};

/// Arguments of `quartermaster provider check`.
#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "Starts the program several times, configures it and asks it for things that do not exist; an action is only done when --try names \
it. Exit codes: 0 nothing is bad, 2 an argument is no JSON object, 4 a file cannot be read or the program cannot be started, 6 something is bad."
)]
pub struct Args {
    /// The provider's program
    #[arg(value_name = "PROGRAM")]
    pub program: PathBuf,
    /// Its configuration: a JSON object, or @ and the name of a file that holds one
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub config: String,
    /// Do this action with these attributes, and what takes it back: ACTION=JSON; may be given several times
    #[arg(long = "try", value_name = "ACTION=JSON")]
    pub tries: Vec<String>,
    /// How long an answer may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    pub timeout: u64,
    /// One JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

/// What every case needs.
pub struct Bench {
    pub launch: Launch,
    pub orphans: Orphans,
    pub schema: Arc<Schema>,
    pub config: Members,
    pub hello: Option<HostHello>,
    pub limit: Duration,
    pub tries: Vec<(String, Members)>,
}

impl Bench {
    /// A process that has described itself.
    pub async fn described(&self) -> Result<Talk, String> {
        let mut talk = Talk::start(&self.launch, &self.orphans).await?;
        talk.ask(Call::Describe, self.limit)
            .await?
            .describe()
            .map_err(|error| format!("describe: {error}"))?;
        Ok(talk)
    }

    /// A process that is ready for calls.
    pub async fn ready(&self) -> Result<Talk, String> {
        let mut talk = self.described().await?;
        self.configure(&mut talk).await?.configure().map_err(|error| format!("configure: {error}"))?;
        Ok(talk)
    }

    pub async fn configure(&self, talk: &mut Talk) -> Result<Body, String> {
        let configure = Configure { config: self.config.clone(), host: self.hello.clone() };
        talk.ask(Call::Configure(configure), self.limit).await.map_err(|error| format!("configure: {error}"))
    }
}

pub async fn run(args: &Args, out: &mut Out) -> Exit {
    let (config, tries) = match given(args) {
        Ok(given) => given,
        Err((error, exit)) => {
            say(&format!("{error}\n"));
            return exit;
        }
    };
    let mut settings = settings(&args.program);
    let limit = Duration::from_secs(args.timeout.max(1));
    settings.timeouts.schema = limit;
    if !settings.program.is_file() {
        say(&format!("{} is no file\n", args.program.display()));
        return Exit::Files;
    }
    let report = check(settings, config, tries, limit).await;
    out.text(&if args.json { report.json() } else { report.text() });
    report.exit()
}

type Tries = Vec<(String, Members)>;

fn given(args: &Args) -> Result<(Members, Tries), (String, Exit)> {
    let exit = |error: crate::provider::program::GivenError| {
        let exit = match error {
            crate::provider::program::GivenError::Read { .. } => Exit::Files,
            crate::provider::program::GivenError::Json { .. } => Exit::Usage,
        };
        (quartermaster_actors::text::causes(&error), exit)
    };
    let config = members("--config", &args.config).map_err(exit)?;
    let mut tries = Vec::new();
    for one in &args.tries {
        let (action, attrs) = one.split_once('=').unwrap_or((one, "{}"));
        tries.push((action.to_owned(), members("--try", attrs).map_err(exit)?));
    }
    Ok((config, tries))
}

async fn check(settings: ProviderSettings, config: Members, tries: Tries, limit: Duration) -> Report {
    let mut report = Report { program: settings.program.display().to_string(), ..Report::default() };
    let orphans = Orphans::unadopted();
    let launch = command(&settings, &settings.program, &[]);
    let mut line = |case, expected, verdict| report.cases.push(Line { case, expected, verdict });

    let probed = probe(&settings, &orphans).await;
    let printed = "prints its schema with the subcommand `schema`, and exits";
    match &probed {
        Ok(probed) if probed.warnings.is_empty() => line("schema", printed, Verdict::Good),
        Ok(probed) => {
            let warnings: Vec<_> = probed.warnings.iter().map(ToString::to_string).collect();
            line("schema", printed, Verdict::Odd(warnings.join("; ")));
        }
        Err(error) => line("schema", printed, Verdict::Bad(explained(error))),
    }
    let described = cases::describe(&launch, &orphans, limit, probed.as_ref().ok()).await;
    let expected = "describes itself in time, as it does with `schema`";
    let schema = match described {
        Ok((schema, verdict)) => {
            line("describe", expected, verdict);
            schema
        }
        Err(why) => {
            line("describe", expected, Verdict::Bad(why));
            return report;
        }
    };
    report.provider = Some(format!("{} {}", schema.name, schema.version).trim().to_owned());
    let config = match schema.config.check(&config) {
        Ok(config) => config,
        Err(complaints) => {
            let complaints: Vec<_> = complaints.iter().map(ToString::to_string).collect();
            let verdict = Verdict::Bad(format!("--config is not as declared: {}", complaints.join("; ")));
            report.cases.push(Line { case: "configure", expected: "takes its configuration", verdict });
            return report;
        }
    };
    let hello = match extensions::agree(&schema) {
        Ok(hello) => hello,
        Err(why) => {
            let expected = "needs no extension that this host does not have";
            report.cases.push(Line { case: "require", expected, verdict: Verdict::Bad(why) });
            return report;
        }
    };
    let bench = Bench { launch, orphans, schema, config, hello, limit, tries };
    cases::run(&bench, &mut report).await;
    extensions::run(&bench, &mut report).await;
    report
}
