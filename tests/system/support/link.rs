//! A link under its owner, and a host that answers it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use quartermaster_actors::link::fake::{FakeResolver, reply_to};
use quartermaster_actors::link::{
    Call, ConflictFlag, Credentials, CredentialsError, LinkHandle, LinkParts, LinkSettings, Login,
    NatsBroker, ServerAddress, Servers,
};
use quartermaster_actors::metrics::Fact;
use quartermaster_actors::supervise::{Overseer, OverseerHandle, OverseerSettings, Owned, RestartPolicy};
use quartermaster_proto::choria::envelope::Proof;
use quartermaster_proto::choria::{Generation, Identity};
use quartermaster_proto::time::WallClock;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use secrecy::SecretString;
use zeroize::Zeroizing;

use super::{Authority, Broker, Issued};

/// Credentials that a test may change while the link runs.
#[derive(Clone, Default)]
pub struct TestCredentials(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    login: Login,
    tls: Option<Arc<rustls::ClientConfig>>,
    nonces: Vec<Option<Vec<u8>>>,
}

impl TestCredentials {
    /// Logs in with user and password from now on.
    pub fn set_password(&self, user: &str, password: &str) {
        let mut kept = self.0.lock().unwrap();
        kept.login.user = Some(user.to_owned());
        kept.login.password = Some(SecretString::from(password.to_owned()));
    }

    /// Speaks TLS from now on, trusting this authority, with a certificate of its own if one is given.
    pub fn set_tls(&self, authority: &Authority, own: Option<&Issued>) {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap()).unwrap();
        let builder = rustls::ClientConfig::builder().with_root_certificates(roots);
        let config = match own {
            None => builder.with_no_client_auth(),
            Some(own) => {
                let certificate = CertificateDer::from_pem_slice(own.certificate.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(vec![certificate], key).unwrap()
            }
        };
        self.0.lock().unwrap().tls = Some(Arc::new(config));
    }

    /// The nonces the broker asked to have signed, one per login.
    pub fn nonces(&self) -> Vec<Option<Vec<u8>>> {
        self.0.lock().unwrap().nonces.clone()
    }
}

impl Credentials for TestCredentials {
    fn caller(&self) -> BoxFuture<'static, Result<String, CredentialsError>> {
        async { Ok("choria=test".to_owned()) }.boxed()
    }

    fn tls_config(&self) -> BoxFuture<'static, Result<Option<Arc<rustls::ClientConfig>>, CredentialsError>> {
        let tls = self.0.lock().unwrap().tls.clone();
        async move { Ok(tls) }.boxed()
    }

    fn login(&self, nonce: Option<Vec<u8>>) -> BoxFuture<'static, Result<Login, CredentialsError>> {
        let mut kept = self.0.lock().unwrap();
        kept.nonces.push(nonce);
        let login = kept.login.clone();
        async move { Ok(login) }.boxed()
    }

    fn sign_request(&self, _: Zeroizing<Vec<u8>>) -> BoxFuture<'static, Result<Proof, CredentialsError>> {
        async { Ok(Proof::Insecure) }.boxed()
    }
}

/// A running link.
pub struct Link {
    pub handle: LinkHandle,
    pub credentials: TestCredentials,
    pub resolver: FakeResolver,
    facts: Arc<Mutex<Vec<Fact>>>,
    overseer: OverseerHandle,
}

impl Link {
    /// Starts one with short waits; `change` says where the brokers are and what else differs.
    pub fn start(credentials: TestCredentials, change: impl FnOnce(&mut LinkSettings)) -> Self {
        Self::watched(credentials, OverseerSettings::default(), change)
    }

    /// As [`Link::start`], under an owner with these settings.
    pub fn watched(
        credentials: TestCredentials,
        watching: OverseerSettings,
        change: impl FnOnce(&mut LinkSettings),
    ) -> Self {
        let mut settings =
            LinkSettings::new(Servers::List(Vec::new()), "provisioner.example.net", Generation::V1);
        settings.require_tls = false;
        settings.backoff_scale = 0.05;
        settings.connect_timeout = Duration::from_secs(10);
        change(&mut settings);
        let resolver = FakeResolver::default();
        let facts = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&facts);
        let parts = LinkParts {
            credentials: Arc::new(credentials.clone()),
            broker: Arc::new(NatsBroker),
            resolver: Arc::new(resolver.clone()),
            clock: Arc::new(|| WallClock::from_seconds(1_795_976_869)),
            random: Arc::new(rand::random),
            random_u32: Arc::new(rand::random),
            facts: Arc::new(move |fact| heard.lock().unwrap().push(fact)),
        };
        let handle = LinkHandle::new(settings, parts);
        let policy = RestartPolicy::new(Duration::from_millis(10), Duration::from_secs(1), 0.0).unwrap();
        let owned = Owned::new(handle.slot().clone(), policy, handle.factory());
        let overseer = Overseer::launch(watching, vec![Box::new(owned)], Arc::new(|_| {}));
        Self { handle, credentials, resolver, facts, overseer }
    }

    /// One to this broker.
    pub fn to(broker: &Broker) -> Self {
        Self::start(TestCredentials::default(), |settings| settings.servers = at(&[broker]))
    }

    /// Waits until it is connected.
    pub async fn ready(&self) {
        let connected = self.handle.ready(Duration::from_secs(30)).await;
        assert!(connected, "the link did not connect: {:?}", self.handle.snapshot());
    }

    /// Calls the host of [`Host`] and answers the payload of its reply as text.
    pub async fn call(&self, host: &str) -> String {
        let answer = self.handle.call(call(host, &ConflictFlag::new())).await;
        String::from_utf8(answer.expect("the call is answered").payload).unwrap()
    }

    /// The facts so far.
    pub fn facts(&self) -> Vec<Fact> {
        self.facts.lock().unwrap().clone()
    }

    /// What was said about the connection so far.
    pub fn said(&self) -> Vec<String> {
        let said = |fact| match fact {
            Fact::LinkChanged { detail, .. } => Some(detail),
            _ => None,
        };
        self.facts().into_iter().filter_map(said).collect()
    }

    /// Stops it; its connection must go with it.
    pub async fn stop(self) {
        self.overseer.stop(Duration::from_secs(5)).await;
    }
}

/// These brokers as a list.
pub fn at(brokers: &[&Broker]) -> Servers {
    Servers::List(brokers.iter().map(|broker| ServerAddress::new("127.0.0.1", broker.port())).collect())
}

/// A call of action jwt.
pub fn call(host: &str, conflict: &ConflictFlag) -> Call {
    Call {
        identity: Identity::parse(host).unwrap(),
        agent: "choria_provision",
        action: "jwt",
        data: Zeroizing::new(r#"{"token":"t0ken"}"#.to_owned()),
        conflict: conflict.clone(),
    }
}

/// Waits until the broker has taken in everything this client has sent so far, subscriptions above all: a flush alone says
/// only that it was written.
pub async fn settle(client: &async_nats::Client) {
    let inbox = client.new_inbox();
    let mut echo = client.subscribe(inbox.clone()).await.unwrap();
    client.publish(inbox, "".into()).await.unwrap();
    next(&mut echo).await;
}

/// The next message of a subscription; panics when none comes.
pub async fn next(messages: &mut async_nats::Subscriber) -> async_nats::Message {
    let limit = Duration::from_secs(30);
    tokio::time::timeout(limit, messages.next())
        .await
        .expect("a message comes")
        .expect("the connection stands")
}

/// A host that answers requests and discoveries, each with the payloads given.
pub struct Host {
    pub client: async_nats::Client,
    task: tokio::task::JoinHandle<()>,
}

impl Host {
    /// Connects a host of this name to the broker and waits until its subscriptions stand.
    pub async fn connect(url: &str, name: &str, payloads: &[&str]) -> Self {
        Self::with(async_nats::connect(url).await.unwrap(), name, payloads).await
    }

    /// As [`Host::connect`], over a connection that exists.
    pub async fn with(client: async_nats::Client, name: &str, payloads: &[&str]) -> Self {
        let requests = client.subscribe(format!("provisioning.node.{name}")).await.unwrap();
        let discoveries = client.subscribe("provisioning.broadcast.agent.discovery").await.unwrap();
        settle(&client).await;
        let mut arriving = futures::stream::select(requests, discoveries);
        let payloads: Vec<String> = payloads.iter().map(|&payload| payload.to_owned()).collect();
        let (publisher, name) = (client.clone(), name.to_owned());
        let task = tokio::spawn(async move {
            while let Some(request) = arriving.next().await {
                for payload in &payloads {
                    let reply = reply_to(&request.payload, &name, payload.as_bytes()).unwrap();
                    publisher.publish(reply.subject, reply.payload).await.unwrap();
                }
            }
        });
        Self { client, task }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.task.abort();
    }
}
