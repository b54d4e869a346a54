//! docs/operations.md tells what every series and every log line of a fact means.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quartermaster_actors::metrics::{Fact, Found, HelperOutcome, Recorder, StepFact, StepNews};
use tokio::time::Instant;
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, SubscriberExt as _};

use super::monitored::{families, first_scrape};
use super::shipped::REPOSITORY;

const SOON: Duration = Duration::from_secs(1);

fn page() -> String {
    std::fs::read_to_string(Path::new(REPOSITORY).join("docs/operations.md")).unwrap()
}

#[actix::test]
async fn every_series_is_explained() {
    let Some(scrape) = first_scrape().await else { return };
    let page = page();
    let missing: Vec<_> =
        families(&scrape).into_keys().filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/operations.md does not explain {missing:?}");
}

/// The messages of events.
#[derive(Clone, Default)]
struct Messages(Arc<Mutex<Vec<String>>>);

impl Visit for Messages {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0.lock().unwrap().push(format!("{value:?}"));
        }
    }
}

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Messages {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        event.record(&mut self.clone());
    }
}

fn step(what: StepNews) -> Fact {
    Fact::Step(StepFact { host: "HOST".to_owned(), step: "STEP".to_owned(), what })
}

/// One of each fact, what varies in capitals as the page has it.
fn facts() -> Vec<Fact> {
    let host = || "HOST".to_owned();
    let provider = || "PROVIDER".to_owned();
    let error = || "ERROR".to_owned();
    let msg = || "MESSAGE".to_owned();
    vec![
        Fact::HostFound { host: host(), by: Found::Discovery },
        Fact::HostFound { host: host(), by: Found::Event },
        Fact::DiscoveryRan { found: 4321, took: SOON },
        Fact::DiscoveryFailed { error: error() },
        Fact::DiscoverySkipped,
        Fact::EventRejected { error: error() },
        Fact::SightingDropped { lane: "LANE" },
        Fact::RpcFinished { host: host(), agent: "AGENT", action: "ACTION", took: SOON, error: None },
        Fact::RpcFinished {
            host: host(),
            agent: "AGENT",
            action: "ACTION",
            took: SOON,
            error: Some(error()),
        },
        Fact::HelperRan {
            host: host(),
            took: SOON,
            waited: SOON,
            outcome: HelperOutcome::Answered,
            error: None,
        },
        Fact::HelperRan {
            host: host(),
            took: SOON,
            waited: SOON,
            outcome: HelperOutcome::Failed,
            error: Some(error()),
        },
        Fact::ShutdownRequested { host: host(), msg: msg() },
        Fact::CycleStarted { host: host(), attempt: 1, waited: SOON },
        Fact::HostProvisioned { host: host(), took: SOON },
        Fact::HostConfirmed { host: host(), took: SOON },
        Fact::HostUnconfirmed { host: host() },
        Fact::HostUpdating { host: host(), took: SOON },
        Fact::HostShutDown { host: host(), took: SOON },
        Fact::HostServing { host: host() },
        Fact::HostAgedOut { host: host() },
        Fact::HostInterrupted { host: host() },
        Fact::HostFailed { host: host(), cause: "csr", error: error(), attempt: 1, retry_in: None },
        Fact::HostDeferred { host: host(), msg: msg(), retry_in: SOON },
        Fact::HostBusy { host: host(), retry_in: SOON },
        Fact::ReplyConflict { host: host(), agent: "AGENT", action: "ACTION" },
        Fact::ReplyRejected { host: host(), reason: error() },
        Fact::HelperSaid { host: host(), line: "LINE".to_owned() },
        Fact::FleetCounted { waiting: 1, queued: 1, busy: 1 },
        Fact::Paused { paused: true },
        Fact::Paused { paused: false },
        step(StepNews::Done {
            provider: provider(),
            action: "ACTION".to_owned(),
            took_ms: 1,
            no_undo: false,
        }),
        step(StepNews::Done { provider: provider(), action: "ACTION".to_owned(), took_ms: 1, no_undo: true }),
        step(StepNews::Failed { provider: provider(), error: error(), unclear: false }),
        step(StepNews::Failed { provider: provider(), error: error(), unclear: true }),
        step(StepNews::Skipped { why: None }),
        step(StepNews::Skipped { why: Some("WHY".to_owned()) }),
        step(StepNews::TakingBack { why: "WHY".to_owned() }),
        step(StepNews::Undone),
        step(StepNews::UndoFailed { error: error() }),
        step(StepNews::Left { what: "WHAT".to_owned(), asks_operator: false }),
        step(StepNews::Left { what: "WHAT".to_owned(), asks_operator: true }),
        step(StepNews::GivenUp { what: "WHAT".to_owned() }),
        step(StepNews::Decided),
        Fact::LeadershipWon,
        Fact::LeadershipLost,
        Fact::LeadershipHandedOver,
        Fact::LeaderHeard { name: host(), anew: true, since: Instant::now(), until: Instant::now() },
        Fact::ClaimContended { host: host() },
        Fact::ClaimLost { host: host() },
        Fact::ActorEnded { actor: "PART", cause: "failed", decision: "DECISION".to_owned() },
        Fact::JournalFailed { error: error() },
        Fact::LinkChanged { connected: true, detail: "DETAIL".to_owned() },
        Fact::LinkChanged { connected: false, detail: "DETAIL".to_owned() },
    ]
}

/// A fact that is not in [`facts`] stops the compiler here: it needs a line there and one on the page.
const fn is_listed(fact: &Fact) -> bool {
    match fact {
        Fact::Step(_)
        | Fact::HostFound { .. }
        | Fact::DiscoveryRan { .. }
        | Fact::DiscoveryFailed { .. }
        | Fact::DiscoverySkipped
        | Fact::EventRejected { .. }
        | Fact::SightingDropped { .. }
        | Fact::RpcFinished { .. }
        | Fact::HelperRan { .. }
        | Fact::ShutdownRequested { .. }
        | Fact::CycleStarted { .. }
        | Fact::HostProvisioned { .. }
        | Fact::HostConfirmed { .. }
        | Fact::HostUnconfirmed { .. }
        | Fact::HostUpdating { .. }
        | Fact::HostShutDown { .. }
        | Fact::HostServing { .. }
        | Fact::HostAgedOut { .. }
        | Fact::HostInterrupted { .. }
        | Fact::HostFailed { .. }
        | Fact::HostDeferred { .. }
        | Fact::HostBusy { .. }
        | Fact::ReplyConflict { .. }
        | Fact::ReplyRejected { .. }
        | Fact::HelperSaid { .. }
        | Fact::FleetCounted { .. }
        | Fact::Paused { .. }
        | Fact::LeadershipWon
        | Fact::LeadershipLost
        | Fact::LeadershipHandedOver
        | Fact::LeaderHeard { .. }
        | Fact::ClaimContended { .. }
        | Fact::ClaimLost { .. }
        | Fact::ActorEnded { .. }
        | Fact::JournalFailed { .. }
        | Fact::LinkChanged { .. } => true,
        // Numbers only.
        Fact::Campaigned { .. }
        | Fact::ClaimsCounted { .. }
        | Fact::CampaignDue { .. }
        | Fact::JournalCommitted { .. }
        | Fact::JournalDurable { .. } => false,
    }
}

#[test]
fn every_log_line_of_a_fact_is_explained() {
    let messages = Messages::default();
    let recorder = Recorder::new("lab").unwrap();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(messages.clone()), || {
        for fact in facts() {
            assert!(is_listed(&fact));
            recorder.record(fact);
        }
    });
    let said = messages.0.lock().unwrap().clone();
    assert!(said.len() >= facts().len(), "{said:#?}");
    let page = page();
    let missing: Vec<_> = said
        .into_iter()
        .map(|line| line.replace("4321", "COUNT"))
        .filter(|line| {
            !page.contains(&format!("`{line}`")) && !line.starts_with("No restart is confirmed here")
        })
        .collect();
    assert!(missing.is_empty(), "docs/operations.md does not explain {missing:#?}");
}

/// What a heading is called in a link.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    kept.chars()
        .filter(|c| c.is_alphanumeric() || *c == ' ' || *c == '-' || *c == '_')
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[test]
fn every_link_of_the_documentation_leads_somewhere() {
    let root = Path::new(REPOSITORY);
    let link = regex::Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    let pages = std::fs::read_dir(root.join("docs")).unwrap().flatten().map(|entry| entry.path());
    let pages =
        pages.filter(|path| path.extension().is_some_and(|end| end == "md")).chain([root.join("README.md")]);
    let mut broken = Vec::new();
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        for found in link.captures_iter(&text).filter(|found| !found[1].contains("://")) {
            let (file, place) = found[1].split_once('#').unwrap_or((&found[1], ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let there = match place {
                "" => target.exists(),
                place => std::fs::read_to_string(&target).is_ok_and(|text| {
                    text.lines().any(|line| line.starts_with('#') && anchor(line) == place)
                }),
            };
            if !there {
                broken.push(format!("{}: {}", page.display(), &found[1]));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}
