//! What happens in the demo, in order; the first thing that is not seen ends it.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

use quartermaster_proto::mesh::report::Action;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::catalogue::{COLLECTED, DB, Facts, Module, WEB};
use super::hidden::{Found, search};
use super::seen::{FileSeen, SIGHTS, Seen};
use super::told::{Screen, Told};
use super::unit::Unit;
use super::verbs::Verbs;
use crate::stage::StageError;

/// How long anything may take that is not due with the minute.
const SOON: Duration = Duration::from_secs(40);
/// How long the minute's writing may take to come round.
const MINUTE: Duration = Duration::from_secs(90);
/// What somebody writes into a file that is not theirs.
const EDIT: &str = "# edited by hand\n";

/// What the play is played on.
pub(super) struct Stage {
    /// The operator's verbs.
    pub(super) verbs: Verbs,
    /// Where the modules' files are.
    pub(super) facts: Facts,
    /// What is reported.
    pub(super) told: Told,
    /// Shows what happens.
    pub(super) screen: Screen,
    /// The web app, where a service manager runs it.
    pub(super) unit: Option<Unit>,
    /// What was seen so far.
    pub(super) seen: Seen,
}

/// The values that nobody but their files may hold.
struct Secrets {
    admin: Zeroizing<String>,
    session: Zeroizing<String>,
    pair: Zeroizing<String>,
}

fn random() -> Zeroizing<String> {
    Zeroizing::new(hex::encode(rand::random::<[u8; 24]>()))
}

impl Stage {
    /// Plays it.
    ///
    /// # Errors
    /// A program or a verb failed.
    pub(super) async fn play(&mut self) -> Result<(), StageError> {
        let modules = self.facts.modules();
        self.check(&modules).await?;
        self.assign(&modules).await?;
        if !self.waits().await {
            return Ok(());
        }
        let Some(pair) = self.consumer().await else { return Ok(()) };
        let mut secrets = Secrets { admin: random(), session: random(), pair };
        self.give(&secrets).await?;
        let is_applied =
            self.told.until(SOON, |told| modules.iter().all(|module| told.is_applied(module.name))).await;
        self.see(3, is_applied, "");
        if !is_applied || !self.holds(&secrets).await {
            return Ok(());
        }
        let from = self.told.count();
        let life = self.unit.as_ref().and_then(Unit::life);
        self.edit();
        let old = self.rotate(&mut secrets).await?;
        if old.is_none() {
            return Ok(());
        }
        self.put_back(from).await;
        self.was_told_once(from, life.as_deref());
        self.table(&modules).await?;
        self.hides(&secrets, old.as_ref());
        Ok(())
    }

    fn see(&mut self, which: usize, seen: bool, note: &str) {
        let what = SIGHTS.get(which).copied().unwrap_or_default();
        self.seen.note(what, seen, note);
        let mark = if seen { "seen" } else { "NOT SEEN" };
        self.screen.say(&format!("{mark}: {what}{}{note}", if note.is_empty() { "" } else { ": " }));
    }

    async fn check(&mut self, modules: &[Module]) -> Result<(), StageError> {
        let catalogue = self.verbs.dir.join("catalogue");
        for module in modules {
            module.write(&catalogue).map_err(StageError::setup("the catalogue"))?;
        }
        let said = self.verbs.mesh(&["check", "catalogue"]).await?;
        let last = said.lines().last().unwrap_or_default().to_owned();
        self.see(0, true, &last);
        Ok(())
    }

    async fn assign(&self, modules: &[Module]) -> Result<(), StageError> {
        for module in modules {
            let (file, templates) = (
                format!("catalogue/{}/module.json", module.name),
                format!("catalogue/{}/templates", module.name),
            );
            let mut words =
                vec!["assign", module.machine, module.name, "--module", &file, "--templates", &templates];
            match module.name {
                "web" | "shell" => words.extend(["--set", "port.http=8080"]),
                _ => words.extend(["--set", "port.sql=5432"]),
            }
            self.verbs.mesh(&words).await?;
        }
        Ok(())
    }

    /// All that is missing is named at once, and nothing is written.
    async fn waits(&mut self) -> bool {
        let lacks = [
            ("config", "title"),
            ("config", "workers"),
            ("secret", "admin-password"),
            ("secret", "session-key"),
        ];
        let all_named = self
            .told
            .until(SOON, |told| {
                let named = told.waits_for("web");
                lacks.iter().all(|lack| named.contains(lack))
                    && named.iter().any(|(kind, _)| *kind == "bound")
            })
            .await;
        let is_unwritten = !self.facts.file(WEB, "etc/web/web.conf").exists();
        self.see(1, all_named && is_unwritten, "");
        all_named && is_unwritten
    }

    /// The provider's file names the consumer; its credential.
    async fn consumer(&mut self) -> Option<Zeroizing<String>> {
        let path = self.facts.file(DB, "etc/db/consumers.json");
        let mut pair = None;
        self.told
            .until(SOON, |told| {
                pair = told.is_applied("db").then(|| credential(&path)).flatten();
                pair.is_some()
            })
            .await;
        self.see(2, pair.is_some(), "");
        pair
    }

    /// Every owner provides what is missing; the database's helper, for which we stand in, comes last.
    async fn give(&self, secrets: &Secrets) -> Result<(), StageError> {
        self.verbs.mesh(&["config", "set", WEB, "web", "title", "Our \"forge\""]).await?;
        self.verbs.mesh(&["config", "set", WEB, "web", "workers", "4"]).await?;
        self.verbs.vault(&["set", "own/web/admin-password"], Some(&secrets.admin)).await?;
        self.verbs.vault(&["set", "own/web/session-key"], Some(&secrets.session)).await?;
        let entry =
            json!({"state": "bound", "user": "web_web1", "values": {"host": "db1.example", "port": 5432}});
        self.verbs.mesh(&["bind", WEB, "web", "sql", &entry.to_string()]).await?;
        Ok(())
    }

    /// Every file holds exactly what its template and the values make.
    async fn holds(&mut self, secrets: &Secrets) -> bool {
        let facts = self.facts.clone();
        let conf = Zeroizing::new(format!(
            "listen = 8080\nadmin = {}\ndatabase = web_web1:{}@db1.example:5432\n",
            *secrets.admin, *secrets.pair
        ));
        let expected: [(&str, &str, &str); 6] = [
            (DB, "etc/db/db.conf", "data = /var/lib/db\nlisten = 5432\n"),
            (WEB, "etc/web/web.conf", &conf),
            (WEB, "etc/web/session.key", &secrets.session),
            (WEB, "etc/web/site.toml", "title = \"Our \\\"forge\\\"\"\nworkers = 4\n"),
            (WEB, "var/web/index.html", "<h1>Our \"forge\"</h1>\n"),
            (WEB, "etc/profile.d/mesh.sh", COLLECTED),
        ];
        let mut wrong = None;
        let hold = self
            .told
            .until(SOON, |_| {
                let other = expected.iter().find(|(machine, path, text)| {
                    std::fs::read(facts.file(machine, path)).ok().as_deref() != Some(text.as_bytes())
                });
                wrong = other.map(|(_, path, _)| *path);
                wrong.is_none()
            })
            .await;
        self.see(4, hold, wrong.unwrap_or("byte for byte"));
        hold
    }

    /// Somebody changes a file that belongs to the mesh.
    fn edit(&self) {
        let path = self.facts.file(WEB, "etc/profile.d/mesh.sh");
        self.screen.say(&format!("$ echo '{}' > {}", EDIT.trim(), path.display()));
        // Whether it was is seen when it is put back.
        let _ = std::fs::write(path, EDIT);
    }

    /// Rotates the web app's password; the old one, once the new one is in its file.
    async fn rotate(&mut self, secrets: &mut Secrets) -> Result<Option<Zeroizing<String>>, StageError> {
        let before = self.others();
        self.verbs.vault(&["rotate", "own/web/admin-password"], None).await?;
        let path = self.facts.file(WEB, "etc/web/web.conf");
        let mut new = None;
        let is_there = self
            .told
            .until(SOON, |_| {
                new = admin(&path).filter(|found| **found != *secrets.admin);
                new.is_some()
            })
            .await;
        let is_alone = before == self.others();
        self.see(
            5,
            is_there && is_alone,
            if is_alone { "no other file was touched" } else { "another file was touched" },
        );
        Ok(new.map(|new| std::mem::replace(&mut secrets.admin, new)))
    }

    /// The files that a rotation of the web app's password does not concern, as the disk has them.
    fn others(&self) -> Vec<Option<(u64, i64, i64)>> {
        let files = [
            (WEB, "etc/web/session.key"),
            (WEB, "etc/web/site.toml"),
            (WEB, "var/web/index.html"),
            (DB, "etc/db/db.conf"),
            (DB, "etc/db/consumers.json"),
        ];
        let stamp = |path: PathBuf| {
            let about = std::fs::metadata(path).ok()?;
            Some((about.ino(), about.mtime(), about.mtime_nsec()))
        };
        files.into_iter().map(|(machine, path)| stamp(self.facts.file(machine, path))).collect()
    }

    async fn put_back(&mut self, from: usize) {
        self.screen.say("every minute all files are written again; now it is waited for that");
        let path = self.facts.file(WEB, "etc/profile.d/mesh.sh");
        let name = path.to_string_lossy().into_owned();
        let is_back = self
            .told
            .until(MINUTE, |told| {
                told.was_done(&name, Action::Restored, from)
                    && std::fs::read_to_string(&path).is_ok_and(|text| text == COLLECTED)
            })
            .await;
        self.see(7, is_back, "");
    }

    /// Told by a command a line is written, told by systemd it lives anew.
    fn was_told_once(&mut self, from: usize, life: Option<&str>) {
        let told = self.told.programs_told("web", from);
        let (witness, is_witnessed) = if let Some(unit) = &self.unit {
            let now = unit.life();
            (format!("{} was restarted", unit.name()), now.is_some() && now.as_deref() != life)
        } else {
            let lines = std::fs::read_to_string(self.verbs.dir.join(WEB).join("told")).unwrap_or_default();
            // Once with the first writing, once with the rotation.
            (format!("{} times in all", lines.lines().count()), lines.lines().count() == 2)
        };
        self.see(6, told == 1 && is_witnessed, &witness);
    }

    /// Every file with what was done to it, its digest, and whether the disk agrees.
    async fn table(&mut self, modules: &[Module]) -> Result<(), StageError> {
        for module in modules {
            let state = self.verbs.dir.join(module.machine).join("client");
            for (path, (action, digest)) in self.told.files(module.name) {
                let is_plain = digest.starts_with("sha256:");
                let on_disk = self.verbs.digest(&PathBuf::from(&path), &state, is_plain).await?;
                let root = self.facts.file(module.machine, "").to_string_lossy().into_owned();
                self.seen.files.push(FileSeen {
                    machine: module.machine.to_owned(),
                    module: module.name.to_owned(),
                    path: path.strip_prefix(&root).unwrap_or(&path).to_owned(),
                    action: action.as_str().to_owned(),
                    agrees: on_disk == digest,
                    digest,
                });
            }
        }
        Ok(())
    }

    /// Looks for every secret in everything that the programs wrote.
    fn hides(&mut self, secrets: &Secrets, old: Option<&Zeroizing<String>>) {
        let file = |machine, path| self.facts.file(machine, path);
        let conf = file(WEB, "etc/web/web.conf");
        let mut wanted = vec![
            (secrets.admin.as_bytes(), vec![conf.clone()]),
            (secrets.session.as_bytes(), vec![file(WEB, "etc/web/session.key")]),
            (secrets.pair.as_bytes(), vec![conf, file(DB, "etc/db/consumers.json")]),
        ];
        wanted.extend(old.map(|old| (old.as_bytes(), Vec::new())));
        match search(&self.verbs.dir, &wanted) {
            Ok(Found { files, elsewhere: None }) => {
                self.see(8, true, &format!("{} values looked for in {files} files", wanted.len()));
            }
            Ok(Found { elsewhere: Some(path), .. }) => self.see(8, false, &path.display().to_string()),
            Err(error) => self.see(8, false, &error.to_string()),
        }
    }
}

/// The credential of the only consumer.
fn credential(path: &std::path::Path) -> Option<Zeroizing<String>> {
    let text = std::fs::read(path).map(Zeroizing::new).ok()?;
    let list: Vec<Value> = serde_json::from_slice(&text).ok()?;
    let [one] = list.as_slice() else { return None };
    let is_it = one.get("consumer")? == WEB && one.get("module")? == "web";
    let value = one.get("value")?.as_str().filter(|value| is_it && !value.is_empty())?;
    Some(Zeroizing::new(value.to_owned()))
}

/// The password in the web app's file.
fn admin(path: &std::path::Path) -> Option<Zeroizing<String>> {
    let text = std::fs::read_to_string(path).map(Zeroizing::new).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("admin = "))?;
    Some(Zeroizing::new(line.to_owned()))
}
