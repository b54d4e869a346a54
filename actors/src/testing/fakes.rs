//! Made-up hosts, helper and vault behind the cycle's ports.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quartermaster_proto::choria::chain::ServerTokenOrder;
use quartermaster_proto::choria::identity::Identity;
use quartermaster_proto::choria::token::ProvisioningClaims;
use quartermaster_proto::helper::decode_reply;
use secrecy::SecretString;

use crate::discovery::{Look, LookPort};
use crate::host::{
    Answer, Boxed, CallFailure, HelperAnswer, HelperFailure, HelperPort, HostCall, LinkPort, SealedForHost,
    Tools, VaultPort,
};
use crate::journal::{HelperRecord, JournalHandle};

/// The time a call to a host that is not there takes: the peer's 20 s and 2 s.
const NO_REPLY_AFTER: Duration = Duration::from_secs(22);

/// One made-up host.
#[derive(Debug, Clone, Copy, Default)]
pub struct FakeHost {
    /// It never answers.
    pub vanished: bool,
    /// How often `configure` fails before it succeeds.
    pub configure_fails: u32,
    /// How often it was configured.
    pub configured: u32,
    /// How often it was told to restart.
    pub restarted: u32,
    /// Calls of any kind.
    pub calls: u32,
}

/// The made-up hosts; clones share them.
#[derive(Debug, Clone, Default)]
pub struct FakeFleet {
    hosts: Arc<Mutex<HashMap<String, FakeHost>>>,
    talking: Arc<AtomicUsize>,
    most_talking: Arc<AtomicUsize>,
}

impl FakeFleet {
    /// Adds a host.
    pub fn add(&self, name: &str, host: FakeHost) {
        self.hosts().insert(name.to_owned(), host);
    }

    /// One host as it is now.
    pub fn host(&self, name: &str) -> FakeHost {
        self.hosts().get(name).copied().unwrap_or_default()
    }

    /// How many hosts were told to restart.
    pub fn restarted(&self) -> usize {
        self.hosts().values().filter(|host| host.restarted > 0).count()
    }

    /// The names of hosts that were configured more than once.
    pub fn configured_twice(&self) -> Vec<String> {
        self.hosts().iter().filter(|(_, host)| host.configured > 1).map(|(name, _)| name.clone()).collect()
    }

    /// The most calls under way at once so far.
    pub fn most_talking(&self) -> usize {
        self.most_talking.load(Ordering::SeqCst)
    }

    fn hosts(&self) -> MutexGuard<'_, HashMap<String, FakeHost>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, call: &HostCall) -> Option<String> {
        let mut hosts = self.hosts();
        let host = hosts.get_mut(call.identity.as_str())?;
        host.calls += 1;
        if host.vanished {
            return None;
        }
        let (code, text, data) = match call.action {
            "inventory" => (0, "OK", r#"{"version":"0.29.4","upgradable":false,"facts":{}}"#),
            "configure" if host.configure_fails > 0 => {
                host.configure_fails -= 1;
                (1, "something broke", "{}")
            }
            "configure" => {
                host.configured += 1;
                (0, "OK", r#"{"message":"Wrote 3 lines"}"#)
            }
            "restart" => {
                host.restarted += 1;
                (0, "OK", r#"{"message":"Restarting Choria Server after 2s"}"#)
            }
            _ => (2, "Unknown action", "{}"),
        };
        drop(hosts);
        Some(format!(
            r#"{{"action":"{}","statuscode":{code},"statusmsg":"{text}","data":{data}}}"#,
            call.action
        ))
    }
}

impl LinkPort for FakeFleet {
    fn call(&self, call: HostCall) -> Boxed<Answer> {
        let me = self.clone();
        Box::pin(async move {
            let talking = me.talking.fetch_add(1, Ordering::SeqCst) + 1;
            me.most_talking.fetch_max(talking, Ordering::SeqCst);
            let answer = me.answer(&call);
            let wait = if answer.is_some() { Duration::from_millis(5) } else { NO_REPLY_AFTER };
            tokio::time::sleep(wait).await;
            me.talking.fetch_sub(1, Ordering::SeqCst);
            answer.map(String::into_bytes).ok_or(CallFailure {
                reason: "no reply within 22s".into(),
                again: true,
                silent: true,
                sent: true,
            })
        })
    }
}

impl LookPort for FakeFleet {
    fn look(&self, each: Arc<dyn Fn(Identity) + Send + Sync>) -> Boxed<Result<Look, String>> {
        let there: Vec<_> = {
            let hosts = self.hosts();
            let there = hosts.iter().filter(|(_, host)| !host.vanished && host.restarted == 0);
            there.filter_map(|(name, _)| Identity::parse(name).ok()).collect()
        };
        Box::pin(async move {
            let found = there.len();
            for identity in there {
                each(identity);
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
            Ok(Look { found })
        })
    }

    fn connected(&self) -> Boxed<()> {
        Box::pin(std::future::pending())
    }
}

/// What a made-up helper answers for a host.
type HelperReplies = Arc<dyn Fn(&Identity) -> Result<String, HelperFailure> + Send + Sync>;

/// A made-up helper: a reply, or a failure, for every host.
#[derive(Clone)]
pub struct FakeHelper {
    reply: HelperReplies,
    takes: Duration,
    runs: Arc<AtomicUsize>,
}

impl std::fmt::Debug for FakeHelper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeHelper").finish_non_exhaustive()
    }
}

impl FakeHelper {
    /// A helper that answers so, after this time.
    pub fn new(
        takes: Duration,
        reply: impl Fn(&Identity) -> Result<String, HelperFailure> + Send + Sync + 'static,
    ) -> Self {
        Self { reply: Arc::new(reply), takes, runs: Arc::default() }
    }

    /// A helper that configures every host.
    pub fn willing() -> Self {
        let reply = r#"{"configuration":{"plugin.choria.server.provision":"false"}}"#;
        Self::new(Duration::from_millis(20), |_| Ok(reply.to_owned()))
    }

    /// How often it ran.
    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

impl HelperPort for FakeHelper {
    fn run(&self, identity: Identity, _: Vec<u8>) -> Boxed<HelperAnswer> {
        let me = self.clone();
        Box::pin(async move {
            me.runs.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(me.takes).await;
            let failed = |error: String| HelperFailure { reason: error, paused: false };
            let decision = (me.reply)(&identity).and_then(|text| {
                decode_reply(text.as_bytes()).map(Box::new).map_err(|error| failed(error.to_string()))
            });
            let took_ms = u64::try_from(me.takes.as_millis()).unwrap_or(u64::MAX);
            let (exit, ending) = (Some(i32::from(decision.is_err())), "made up".to_owned());
            let run = Some(HelperRecord { exit, ending, took_ms, stderr: vec!["a made-up line".to_owned()] });
            HelperAnswer { decision, run }
        })
    }
}

/// A vault that holds nothing: for cycles without tokens and keys.
#[derive(Debug, Clone, Copy)]
pub struct FakeVault;

impl VaultPort for FakeVault {
    fn verify(&self, _: String) -> Boxed<Result<Box<ProvisioningClaims>, String>> {
        Box::pin(async { Err("this vault is empty".to_owned()) })
    }

    fn issue(&self, _: Box<ServerTokenOrder>) -> Boxed<Result<SecretString, String>> {
        Box::pin(async { Err("this vault is empty".to_owned()) })
    }

    fn seal(&self, _: SecretString, _: String) -> Boxed<Result<SealedForHost, String>> {
        Box::pin(async { Err("this vault is empty".to_owned()) })
    }
}

/// The tools of a cycle over made-up hosts and this helper.
impl FakeFleet {
    /// What a cycle needs, all of it made up.
    pub fn tools(&self, helper: &FakeHelper) -> Tools {
        Tools {
            steps: None,
            link: Arc::new(self.clone()),
            helper: Arc::new(helper.clone()),
            vault: Arc::new(FakeVault),
            journal: Arc::new(JournalHandle::in_memory()),
            claims: None,
        }
    }
}

/// Runs a test body where actors can be started on the test's own thread, so that paused time drives them.
pub async fn run_local<F: Future>(body: F) -> F::Output {
    tokio::task::LocalSet::new().run_until(body).await
}
