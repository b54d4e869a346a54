//! Requests answered where the values are kept in a key-value store: the vault decides, notes and numbers; the store is asked in
//! between, while nobody waits for the vault.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use quartermaster_proto::mesh::accounts::Account;
use quartermaster_proto::mesh::vault::{GetReply, GetRequest, PutReply, PutRequest};
use quartermaster_proto::time::WallClock;

use super::server::Shared;
use super::wire::{AdminReply, AdminRequest};
use crate::vault::core::{self, ADMIN, Asked};
use crate::vault::kv::{KvClient, KvError, Read, Seen};
use crate::vault::{AdminError, MADE_BYTES, Operation, StoreError, Value, Vault, VaultError};

/// How often a value is written anew when somebody else writes it at the same time.
const WRITE_TRIES: usize = 3;
/// Names that are asked for at once when what others changed is looked for.
const NAMES_AT_ONCE: usize = 8;
/// Most names that are looked at; more are said and left alone.
const MAX_NAMES: usize = 100_000;
/// The folders of secrets.
const FOLDERS: [&str; 3] = ["own", "provision", "pair"];

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    /// The vault has none.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The key-value store has none.
    #[error(transparent)]
    Kept(#[from] KvError),
    /// The work was lost.
    #[error("the work was lost: {0}")]
    Lost(String),
}

impl From<StoreError> for NoAnswer {
    fn from(error: StoreError) -> Self {
        Self::Vault(error.into())
    }
}

/// Values of the vault that are kept in a key-value store.
pub(super) struct Elsewhere<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) kv: &'a KvClient,
    pub(super) now: WallClock,
}

/// What stands under a row.
enum Row {
    Found(Value),
    Absent { last: u64 },
}

impl Elsewhere<'_> {
    /// Asks the vault for something beside the actors' threads.
    async fn vault<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Vault) -> T + Send + 'static,
    ) -> Result<T, NoAnswer> {
        self.shared.on_disk(act).await.map_err(NoAnswer::Lost)
    }

    /// Answers an account.
    pub(super) async fn get(&self, account: Account, request: GetRequest) -> Result<GetReply, NoAnswer> {
        let now = self.now;
        let (who, name) = (account.clone(), request.name.clone());
        let (rows, is_made) = match self.vault(move |vault| vault.may_get(&who, &name, now)).await?? {
            Asked::Rows { rows, is_made } => (rows, is_made),
            Asked::Refused(reply) => return Ok(reply),
        };
        let value = match self.first_of(&account, &rows, is_made).await {
            Ok(value) => value,
            Err(NoAnswer::Kept(KvError::Refused(why))) => {
                return Ok(self
                    .vault(move |vault| vault.refuse(&account, &request.name, why, now))
                    .await??);
            }
            Err(other) => return Err(other),
        };
        Ok(self.vault(move |vault| vault.answer(&account, &request, &rows, value.as_ref(), now)).await??)
    }

    async fn first_of(
        &self,
        account: &Account,
        rows: &[String],
        is_made: bool,
    ) -> Result<Option<Value>, NoAnswer> {
        let mut first_last = None;
        for row in rows {
            match self.row(row).await? {
                Row::Found(value) => return Ok(Some(value)),
                Row::Absent { last } => first_last = first_last.or(Some(last)),
            }
        }
        let (true, Some(row), Some(last)) = (is_made, rows.first(), first_last) else { return Ok(None) };
        let value = core::random(MADE_BYTES);
        match self.kv.write(row, &value, last).await {
            Ok(mark) => {
                let (account, row, now) = (account.clone(), row.clone(), self.now);
                self.vault(move |vault| {
                    vault.seen(&row, &mark, true, now)?;
                    let version = vault.change_of(&row);
                    vault.note_made(&account, &row, version, now)
                })
                .await??;
                Ok(Some(value))
            }
            // The other end asked at the same time, and its value is the one.
            Err(KvError::Raced) => match self.row(row).await? {
                Row::Found(value) => Ok(Some(value)),
                Row::Absent { .. } => Err(KvError::Raced.into()),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// Reads a row, and takes note of what version it has.
    async fn row(&self, row: &str) -> Result<Row, NoAnswer> {
        let now = self.now;
        let mut is_sure = false;
        loop {
            let name = row.to_owned();
            let change = self.vault(move |vault| vault.change_of(&name)).await?;
            let name = row.to_owned();
            match self.kv.read(row).await? {
                Read::Found { value, mark } => {
                    let seen = self.vault(move |vault| vault.seen(&name, &mark, is_sure, now)).await??;
                    // What was read may be from before a change that was noted meanwhile.
                    if seen != Seen::Old || is_sure {
                        return Ok(Row::Found(value));
                    }
                    is_sure = true;
                }
                Read::Absent { last } => {
                    self.vault(move |vault| vault.gone(&name, change, now)).await??;
                    return Ok(Row::Absent { last });
                }
            }
        }
    }

    /// Writes a value over whatever is there; answers the number of the change.
    async fn write(&self, row: &str, value: &Value) -> Result<u64, NoAnswer> {
        for _ in 0..WRITE_TRIES {
            let last = self.kv.stored(row).await?.last;
            match self.kv.write(row, value, last).await {
                Ok(mark) => {
                    let (row, now) = (row.to_owned(), self.now);
                    let noted = self.vault(move |vault| {
                        vault.seen(&row, &mark, true, now)?;
                        Ok::<_, StoreError>(vault.change_of(&row))
                    });
                    return Ok(noted.await??);
                }
                Err(KvError::Raced) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(KvError::Raced.into())
    }

    /// Takes a deposit.
    pub(super) async fn put(&self, account: Account, request: PutRequest) -> Result<PutReply, NoAnswer> {
        let now = self.now;
        let (who, name) = (account.clone(), request.name.clone());
        let (row, value) = match self.vault(move |vault| vault.may_put(&who, &request, now)).await?? {
            Ok(opened) => opened,
            Err(reply) => return Ok(reply),
        };
        match self.write(&row, &value).await {
            Ok(version) => {
                self.vault(move |vault| {
                    vault.note_stored(Operation::Put, &account.name(), &row, version, now)
                })
                .await??;
                Ok(PutReply::Stored { version })
            }
            Err(NoAnswer::Kept(KvError::Refused(why))) => {
                Ok(self.vault(move |vault| vault.refuse_put(&account, &name, why, now)).await??)
            }
            Err(other) => Err(other),
        }
    }

    /// Does what an operator wants.
    pub(super) async fn admin(&self, request: AdminRequest) -> AdminReply {
        let done = match request {
            AdminRequest::Set { name, value } => self.set(&name, &value.0).await.map(AdminReply::Version),
            AdminRequest::Rotate { name, random } => {
                self.rotate(&name, random).await.map(AdminReply::Version)
            }
            AdminRequest::Delete { name } => self.delete(&name).await.map(AdminReply::Deleted),
            AdminRequest::List => self.list().await,
            AdminRequest::Key => {
                self.vault(|vault| AdminReply::BoxKey(vault.public_box_key())).await.map_err(operator)
            }
        };
        done.unwrap_or_else(|why| {
            tracing::warn!(why, "an operator's wish was not done");
            AdminReply::Error(why)
        })
    }

    async fn set(&self, name: &str, value: &Value) -> Result<u64, String> {
        let (name, now) = (core::may_set(name, value).map_err(refused)?, self.now);
        let version = self.write(&name, value).await.map_err(operator)?;
        let noted =
            self.vault(move |vault| vault.note_stored(Operation::Set, ADMIN, &name, version, now)).await;
        noted.map_err(operator)?.map(|()| version).map_err(|error| error.to_string())
    }

    async fn rotate(&self, name: &str, random: usize) -> Result<u64, String> {
        let (name, now) = (core::may_rotate(name, random).map_err(refused)?, self.now);
        let stored = self.kv.stored(&name).await.map_err(|error| error.to_string())?;
        if stored.mark.is_none() {
            return Err(refused(AdminError::Absent(name)));
        }
        let version = self.write(&name, &core::random(random)).await.map_err(operator)?;
        let noted = self.vault(move |vault| vault.note_rotated(&name, version, now)).await;
        noted.map_err(operator)?.map(|()| version).map_err(|error| error.to_string())
    }

    async fn delete(&self, name: &str) -> Result<String, String> {
        let (name, now) = (core::secret_name(name).map_err(refused)?, self.now);
        let stored = self.kv.stored(&name).await.map_err(|error| error.to_string())?;
        if stored.last > 0 {
            // Every version, also of what somebody else has deleted so that it can be had back.
            self.kv.forget(&name).await.map_err(|error| error.to_string())?;
        }
        if stored.mark.is_none() {
            return Err(refused(AdminError::Absent(name)));
        }
        let row = name.clone();
        let noted = self.vault(move |vault| {
            let change = vault.change_of(&row);
            vault.gone(&row, change, now)?;
            vault.note_deleted(&row, now)
        });
        noted.await.map_err(operator)?.map(|()| name).map_err(|error| error.to_string())
    }

    async fn list(&self) -> Result<AdminReply, String> {
        self.look().await.map_err(operator)?;
        let listed = self.vault(|vault| vault.list()).await.map_err(operator)?;
        Ok(AdminReply::Values(listed.into_iter().map(|listed| (listed.name, listed.version)).collect()))
    }

    /// Looks for what others changed there.
    pub(super) async fn look(&self) -> Result<(), NoAnswer> {
        let mut names = self.names().await?;
        // A name that is listed no more is asked for once more before it is believed to be gone.
        names.extend(self.vault(|vault| vault.list()).await?.into_iter().map(|listed| listed.name));
        let looks = names.into_iter().map(|name| self.look_at(name));
        stream::iter(looks).buffer_unordered(NAMES_AT_ONCE).try_collect::<()>().await
    }

    async fn look_at(&self, name: String) -> Result<(), NoAnswer> {
        let (row, now) = (name.clone(), self.now);
        let change = self.vault(move |vault| vault.change_of(&row)).await?;
        let stored = match self.kv.stored(&name).await {
            Ok(stored) => stored,
            // Whoever asks for it hears of it; the others go on.
            Err(KvError::Refused(why)) => {
                tracing::warn!(name, why, "the key-value store says nothing about a name");
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        self.vault(move |vault| match &stored.mark {
            Some(mark) => vault.seen(&name, mark, false, now).map(drop),
            None => vault.gone(&name, change, now).map(drop),
        })
        .await??;
        Ok(())
    }

    /// Every name of a secret that is listed there.
    async fn names(&self) -> Result<BTreeSet<String>, NoAnswer> {
        let mut names = BTreeSet::new();
        let mut folders: Vec<String> = FOLDERS.iter().map(|&folder| folder.to_owned()).collect();
        while let Some(folder) = folders.pop() {
            for name in self.kv.names(&folder).await? {
                let path = format!("{folder}/{}", name.trim_end_matches('/'));
                if name.ends_with('/') {
                    folders.push(path);
                } else if core::secret_name(&path).is_ok() {
                    names.insert(path);
                }
            }
            if names.len() + folders.len() > MAX_NAMES {
                tracing::warn!(
                    MAX_NAMES,
                    "the key-value store holds too many names: changes of the others are not heard of"
                );
                break;
            }
        }
        Ok(names)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn refused(error: AdminError) -> String {
    error.to_string()
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn operator(error: NoAnswer) -> String {
    error.to_string()
}

/// Looks for what others changed in the key-value store, again and again, once it is known whom a change concerns.
pub(super) async fn poll(shared: Arc<Shared>) {
    let Some(kv) = shared.kv.clone() else { return };
    let mut was_silent = false;
    loop {
        shared.is_mirrored().await;
        let looked = Elsewhere { shared: &shared, kv: &kv, now: shared.now() }.look().await;
        shared.has_changed();
        match &looked {
            Ok(()) if was_silent => tracing::info!("the key-value store answers again"),
            Err(error) if !was_silent => {
                tracing::warn!(%error, "changes in the key-value store cannot be looked for");
            }
            Ok(()) | Err(_) => {}
        }
        was_silent = looked.is_err();
        shared.is_silent.store(was_silent, Ordering::Relaxed);
        if let Some(metrics) = &shared.metrics {
            metrics.is_reachable(!was_silent);
        }
        tokio::time::sleep(kv.settings().poll).await;
    }
}
