//! The vault asked: one question, one box, opened with a key that was made at start and lives in memory alone.

use std::time::Duration;

use quartermaster_proto::mesh::{
    accounts::Account,
    registry::VaultSource,
    vault::{GetReply, GetRequest, SecretChanged, SecretName},
};
use tokio::time::timeout;

use super::{
    asking::Answer,
    bus::{Arrived, Bus, Target},
};
use crate::{sealed::BoxKey, value::Value};

/// Longest wait for an answer.
const LIMIT: Duration = Duration::from_secs(5);

/// Asks in the own account's name.
#[derive(Debug)]
pub struct VaultClient {
    bus: Bus,
    account: Account,
    key: BoxKey,
}

impl VaultClient {
    /// A client with a new key.
    pub fn new(bus: Bus, account: Account) -> Self {
        Self { bus, account, key: BoxKey::generate() }
    }

    /// The public half of the key, which goes into every question.
    pub fn public_key(&self) -> [u8; 32] {
        self.key.public()
    }

    /// Asks for a value, where the registry says, as of this revision of the mirror. Whatever is not exactly an answer is none, a
    /// box that does not open included.
    pub async fn ask(&self, source: &VaultSource, name: &SecretName, revision: u64) -> Answer {
        let request = GetRequest { name: name.clone(), key: self.key.public(), revision };
        let subject = format!("{}.{}", source.request, self.account.name());
        let answer = timeout(LIMIT, self.bus.client().request(subject, request.encode().into())).await;
        let Ok(Ok(answer)) = answer else { return Answer::Nothing };
        match GetReply::read(&answer.payload) {
            Ok(GetReply::Sealed { sealed, version }) => match self.key.open(&sealed) {
                Ok(value) => Answer::Value(Value::bytes(value), version),
                Err(error) => {
                    tracing::warn!(%name, %error, "the vault's answer is not used");
                    Answer::Nothing
                }
            },
            Ok(GetReply::Absent { .. }) => Answer::Absent,
            Ok(GetReply::Refused { reason }) => Answer::Refused(reason),
            Err(error) => {
                tracing::warn!(%name, %error, "the vault's answer cannot be understood");
                Answer::Nothing
            }
        }
    }

    /// Where the vault says what changed for this account; what it said while nobody listened comes first.
    pub fn changes(&self, source: &VaultSource) -> Target {
        let filter = format!("{}.{}.>", source.changed, self.account.name());
        Target { stream: source.stream.clone(), filter, is_bucket: false }
    }

    /// Reads one word of the vault: which value changed, and its version.
    pub fn read_change(entry: &Arrived) -> Option<(SecretName, u64)> {
        let changed = SecretChanged::read(entry.body.as_ref()?).ok()?;
        Some((changed.name.parse().ok()?, changed.version))
    }
}
