//! What the vault answers: policy, store and audit joined. No bus and no socket: requests come as values and answers leave as
//! such.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use quartermaster_proto::mesh::accounts::Account;
use quartermaster_proto::mesh::key::secret_changed_subject;
use quartermaster_proto::mesh::vault::{
    GetReply, GetRequest, MAX_VALUE, PutReply, PutRequest, SecretChanged, SecretName,
};
use quartermaster_proto::time::WallClock;
use zeroize::Zeroizing;

use super::audit::{self, Audit, Operation, Record, Verdict as Outcome};
use super::kv::KvError;
use super::policy::{self, Mirror, Verdict};
use super::rules::Rules;
use super::store::{Listed, Notice, Store, StoreError, Value};
use super::unaddressed::unaddressed;
use crate::sealed::{BoxKey, seal};

/// The row of the key that deposits are sealed to. It is no name of a secret, so nobody can ask for it.
const BOX_KEY: &str = "box-key";
/// Bytes of a value that the vault makes.
pub const MADE_BYTES: usize = 32;
/// Most random bytes of a value that an operator has made.
pub const MAX_RANDOM_BYTES: usize = 4 * 1024;
/// Who operators are, in the audit.
pub(super) const ADMIN: &str = "admin";

/// Why there is no answer. The asker hears nothing and tries again.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The audit line could not be written, so nothing may leave.
    #[error("the audit cannot be written")]
    Audit(#[source] std::io::Error),
}

/// Why an operator's wish was not done.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The vault could not do it.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The name is none.
    #[error("`{0}` is no name the vault knows: own/…, provision/… or pair/…")]
    Name(String),
    /// There is no value of this name.
    #[error("there is no value {0}")]
    Absent(String),
    /// The value, or what is wanted of it, is longer than it can be.
    #[error("a value holds at most {MAX_VALUE} bytes, and one that is made at most {MAX_RANDOM_BYTES}")]
    TooLong,
    /// The key-value store that keeps the values did not do it.
    #[error(transparent)]
    Kept(#[from] KvError),
}

/// What came of an account's question, before any value is looked at.
#[derive(Debug)]
pub enum Asked {
    /// The first of these rows that has a value.
    Rows {
        /// The rows that decide the answer, the preferred one first.
        rows: Vec<String>,
        /// The vault makes the value where there is none yet.
        is_made: bool,
    },
    /// Nothing; this is the answer.
    Refused(GetReply),
}

/// The vault.
pub struct Vault {
    pub(super) store: Store,
    audit: Audit,
    rules: Rules,
    mirror: Mirror,
    /// The mirror is whole: whoever is not in it has no plan.
    pub(super) knows_all: bool,
    box_key: BoxKey,
    /// Where changes are said, as the registry has it.
    changed: String,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").field("store", &self.store).finish_non_exhaustive()
    }
}

impl Vault {
    /// A vault over this store; a new one gets its key for deposits now.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn new(mut store: Store, audit: Audit, rules: Rules, changed: &str) -> Result<Self, StoreError> {
        let box_key = box_key(&mut store)?;
        let (mirror, changed) = (Mirror::default(), changed.to_owned());
        Ok(Self { store, audit, rules, mirror, knows_all: true, box_key, changed })
    }

    /// The public half of the key that deposits are sealed to, as the registry names it.
    pub fn public_box_key(&self) -> String {
        STANDARD.encode(self.box_key.public())
    }

    /// The assignments that decide.
    pub const fn mirror_mut(&mut self) -> &mut Mirror {
        &mut self.mirror
    }

    /// The store, for what has yet to be said.
    pub const fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }

    /// What has yet to be said and can be, each with the number of its change; at most this many.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn unsent(&self, most: usize) -> Result<Vec<(u64, Notice)>, StoreError> {
        self.store.unsent_from(&self.changed, most)
    }

    /// Opens the audit file of its name once more.
    ///
    /// # Errors
    /// What the system says.
    pub fn reopen_audit(&mut self) -> std::io::Result<()> {
        self.audit.reopen()
    }

    fn note(
        &mut self,
        op: Operation,
        who: &str,
        name: &str,
        outcome: Outcome,
        now: WallClock,
    ) -> Result<(), VaultError> {
        self.note_with(op, who, name, outcome, 0, "", now)
    }

    #[expect(clippy::too_many_arguments, reason = "a line of the audit has as many members")]
    fn note_with(
        &mut self,
        op: Operation,
        who: &str,
        name: &str,
        outcome: Outcome,
        version: u64,
        reason: &str,
        now: WallClock,
    ) -> Result<(), VaultError> {
        let record = Record {
            at: audit::stamp(now),
            op,
            account: who.to_owned(),
            name: name.to_owned(),
            outcome,
            version,
            reason: reason.to_owned(),
        };
        self.audit.write(&record).map_err(VaultError::Audit)
    }

    /// Notes a value that was stored.
    ///
    /// # Errors
    /// [`VaultError::Audit`].
    pub(super) fn note_stored(
        &mut self,
        op: Operation,
        who: &str,
        row: &str,
        version: u64,
        now: WallClock,
    ) -> Result<(), VaultError> {
        self.note_with(op, who, row, Outcome::Stored, version, "", now)
    }

    /// Notes a value that the vault made because this account asked for it.
    ///
    /// # Errors
    /// [`VaultError::Audit`].
    pub(super) fn note_made(
        &mut self,
        account: &Account,
        row: &str,
        version: u64,
        now: WallClock,
    ) -> Result<(), VaultError> {
        self.note_with(Operation::Set, &account.name(), row, Outcome::Made, version, "", now)
    }

    /// A request that is none, or that wants its answer where it must not go.
    ///
    /// # Errors
    /// [`VaultError::Audit`].
    pub fn dropped(
        &mut self,
        op: Operation,
        who: &str,
        reason: &str,
        now: WallClock,
    ) -> Result<(), VaultError> {
        self.note_with(op, who, "", Outcome::Dropped, 0, reason, now)
    }

    /// Answers an account from its own file.
    ///
    /// # Errors
    /// [`VaultError`]: no answer may leave.
    pub fn get(
        &mut self,
        account: &Account,
        request: &GetRequest,
        now: WallClock,
    ) -> Result<GetReply, VaultError> {
        let (rows, is_made) = match self.may_get(account, &request.name, now)? {
            Asked::Rows { rows, is_made } => (rows, is_made),
            Asked::Refused(reply) => return Ok(reply),
        };
        let mut held = None;
        for row in &rows {
            held = self.store.get(row)?;
            if held.is_some() {
                break;
            }
        }
        if let (None, true, Some(row)) = (&held, is_made, rows.first()) {
            let version = self.store_value(row, &random(MADE_BYTES), now)?;
            self.note_made(account, row, version, now)?;
            held = self.store.get(row)?;
        }
        self.answer(account, request, &rows, held.as_ref().map(|held| &held.value), now)
    }

    /// Whether an account may have a value, and which rows decide it. A refusal is in the audit then.
    ///
    /// # Errors
    /// [`VaultError::Audit`].
    pub fn may_get(
        &mut self,
        account: &Account,
        name: &SecretName,
        now: WallClock,
    ) -> Result<Asked, VaultError> {
        match policy::may_get(&self.rules, &self.mirror, account, name) {
            Verdict::Granted { rows, is_made } => Ok(Asked::Rows { rows, is_made }),
            Verdict::Refused(reason) => self.refuse(account, name, reason, now).map(Asked::Refused),
        }
    }

    /// Refuses a value, and notes it.
    ///
    /// # Errors
    /// [`VaultError::Audit`].
    pub fn refuse(
        &mut self,
        account: &Account,
        name: &SecretName,
        reason: String,
        now: WallClock,
    ) -> Result<GetReply, VaultError> {
        let (who, name) = (account.name(), name.to_string());
        self.note_with(Operation::Get, &who, &name, Outcome::Refused, 0, &reason, now)?;
        Ok(GetReply::Refused { reason })
    }

    /// Answers with the value that one of the rows holds, sealed to the asker's key.
    ///
    /// # Errors
    /// [`VaultError::Audit`].
    pub fn answer(
        &mut self,
        account: &Account,
        request: &GetRequest,
        rows: &[String],
        value: Option<&Value>,
        now: WallClock,
    ) -> Result<GetReply, VaultError> {
        let (who, name) = (account.name(), request.name.to_string());
        let Some(value) = value else {
            self.note(Operation::Get, &who, &name, Outcome::Absent, now)?;
            return Ok(GetReply::Absent { reason: "not stored yet".to_owned() });
        };
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        let version = self.store.version_among(&rows);
        let Ok(sealed) = seal(&request.key, value.expose()) else {
            let reason = "the key is none that a value can be sealed to".to_owned();
            return self.refuse(account, &request.name, reason, now);
        };
        self.note_with(Operation::Get, &who, &name, Outcome::Sealed, version, "", now)?;
        Ok(GetReply::Sealed { sealed, version })
    }

    /// Takes a deposit.
    ///
    /// # Errors
    /// [`VaultError`]: no answer may leave.
    pub fn put(
        &mut self,
        account: &Account,
        request: &PutRequest,
        now: WallClock,
    ) -> Result<PutReply, VaultError> {
        match self.may_put(account, request, now)? {
            Ok((row, value)) => {
                let version = self.store_value(&row, &value, now)?;
                self.note_stored(Operation::Put, &account.name(), &row, version, now)?;
                Ok(PutReply::Stored { version })
            }
            Err(reply) => Ok(reply),
        }
    }

    /// Opens a deposit: where it goes, or the refusal, which is in the audit then.
    ///
    /// # Errors
    /// [`VaultError::Audit`].
    pub fn may_put(
        &mut self,
        account: &Account,
        request: &PutRequest,
        now: WallClock,
    ) -> Result<Result<(String, Value), PutReply>, VaultError> {
        let opened = policy::may_put(&self.rules, &self.mirror, account, &request.name).and_then(|row| {
            let value = self.box_key.open(&request.sealed).map_err(|error| error.to_string())?;
            Ok((row, Value::new(value)))
        });
        match opened {
            Ok(opened) => Ok(Ok(opened)),
            Err(reason) => self.refuse_put(account, &request.name, reason, now).map(Err),
        }
    }

    /// Refuses a deposit, and notes it.
    ///
    /// # Errors
    /// [`VaultError::Audit`].
    pub fn refuse_put(
        &mut self,
        account: &Account,
        name: &SecretName,
        reason: String,
        now: WallClock,
    ) -> Result<PutReply, VaultError> {
        let (who, name) = (account.name(), name.to_string());
        self.note_with(Operation::Put, &who, &name, Outcome::Refused, 0, &reason, now)?;
        Ok(PutReply::Refused { reason })
    }

    /// Stores a value for an operator; answers its version.
    ///
    /// # Errors
    /// [`AdminError`].
    pub fn set(&mut self, name: &str, value: &Value, now: WallClock) -> Result<u64, AdminError> {
        let name = may_set(name, value)?;
        let version = self.store_value(&name, value, now).map_err(VaultError::from)?;
        self.note_stored(Operation::Set, ADMIN, &name, version, now)?;
        Ok(version)
    }

    /// Replaces a value by one that nobody has seen; answers its version.
    ///
    /// # Errors
    /// [`AdminError`]; [`AdminError::Absent`] when there is nothing to replace.
    pub fn rotate(&mut self, name: &str, bytes: usize, now: WallClock) -> Result<u64, AdminError> {
        let name = may_rotate(name, bytes)?;
        if self.store.get(&name).map_err(VaultError::from)?.is_none() {
            return Err(AdminError::Absent(name));
        }
        let version = self.store_value(&name, &random(bytes), now).map_err(VaultError::from)?;
        self.note_rotated(&name, version, now)?;
        Ok(version)
    }

    /// Forgets a value.
    ///
    /// # Errors
    /// [`AdminError`]; [`AdminError::Absent`] when there is none.
    pub fn delete(&mut self, name: &str, now: WallClock) -> Result<(), AdminError> {
        let name = secret_name(name)?;
        let notices = self.notices(&name, now);
        if !self.store.delete(&name, &notices).map_err(VaultError::from)? {
            return Err(AdminError::Absent(name));
        }
        self.note_deleted(&name, now)?;
        Ok(())
    }

    pub(super) fn note_rotated(
        &mut self,
        name: &str,
        version: u64,
        now: WallClock,
    ) -> Result<(), VaultError> {
        self.note_with(Operation::Set, ADMIN, name, Outcome::Made, version, "", now)
    }

    pub(super) fn note_deleted(&mut self, name: &str, now: WallClock) -> Result<(), VaultError> {
        self.note(Operation::Delete, ADMIN, name, Outcome::Deleted, now)
    }

    /// Names and versions.
    pub fn list(&self) -> Vec<Listed> {
        self.store.list().into_iter().filter(|listed| secret_name(&listed.name).is_ok()).collect()
    }

    pub(super) fn store_value(
        &mut self,
        row: &str,
        value: &Value,
        now: WallClock,
    ) -> Result<u64, StoreError> {
        let notices = self.notices(row, now);
        self.store.put(row, value, &notices)
    }

    /// What is to be said to whom about the change of a row that comes next.
    pub(super) fn notices(&self, row: &str, now: WallClock) -> Vec<Notice> {
        if !self.knows_all {
            return vec![unaddressed(row)];
        }
        self.notices_of(row, self.store.next_change(), now)
    }

    /// The same about a change of this number.
    pub(super) fn notices_of(&self, row: &str, version: u64, now: WallClock) -> Vec<Notice> {
        policy::readers(&self.rules, &self.mirror, row)
            .into_iter()
            .map(|(account, name)| Notice {
                subject: secret_changed_subject(&self.changed, &account.name(), &name),
                payload: SecretChanged { name, version, at: now }.encode(),
            })
            .collect()
    }
}

/// The key that deposits are sealed to; a store without one gets it now.
///
/// # Errors
/// [`StoreError`].
pub fn box_key(store: &mut Store) -> Result<BoxKey, StoreError> {
    let held = store.get(BOX_KEY)?;
    let stored = held.and_then(|held| <[u8; 32]>::try_from(held.value.expose()).ok().map(Zeroizing::new));
    if let Some(bytes) = stored {
        Ok(BoxKey::from_bytes(&bytes))
    } else {
        let key = BoxKey::generate();
        store.put(BOX_KEY, &Value::new(Zeroizing::new(key.to_bytes().to_vec())), &[])?;
        Ok(key)
    }
}

/// The name under which an operator may store this value.
///
/// # Errors
/// [`AdminError::Name`], [`AdminError::TooLong`].
pub(super) fn may_set(name: &str, value: &Value) -> Result<String, AdminError> {
    let name = secret_name(name)?;
    if value.expose().len() > MAX_VALUE { Err(AdminError::TooLong) } else { Ok(name) }
}

/// The name of which an operator may have so many random bytes made.
///
/// # Errors
/// [`AdminError::Name`], [`AdminError::TooLong`].
pub(super) fn may_rotate(name: &str, bytes: usize) -> Result<String, AdminError> {
    let name = secret_name(name)?;
    if bytes == 0 || bytes > MAX_RANDOM_BYTES { Err(AdminError::TooLong) } else { Ok(name) }
}

pub(super) fn secret_name(name: &str) -> Result<String, AdminError> {
    match name.parse::<SecretName>() {
        Ok(name) => Ok(name.to_string()),
        Err(_) => Err(AdminError::Name(name.to_owned())),
    }
}

/// A value of this many random bytes, in base64url.
pub(super) fn random(bytes: usize) -> Value {
    let mut plain = Zeroizing::new(vec![0; bytes]);
    rand::fill(plain.as_mut_slice());
    // Made to measure, so that the buffer does not grow and leave a copy behind.
    let mut text = Zeroizing::new(vec![0; bytes * 4 / 3 + 4]);
    let length = URL_SAFE_NO_PAD.encode_slice(plain.as_slice(), text.as_mut_slice()).unwrap_or_default();
    text.truncate(length);
    Value::new(text)
}
