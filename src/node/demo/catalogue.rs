//! The demo's catalogue: a web app, the database that serves it on another machine, and a collector of shell snippets.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// The machine of the web app and the collector.
pub(super) const WEB: &str = "web1";
/// The machine of the database.
pub(super) const DB: &str = "db1";

/// Everything that a module has to say where it lies on this machine.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    /// The machines' roots lie below this folder, under their names.
    pub(super) below: PathBuf,
    /// How the web app takes a change.
    pub(super) on_change: Value,
    /// Who owns the web app's files, where we may give them away.
    pub(super) owner: Option<String>,
}

/// One module of the catalogue.
pub(super) struct Module {
    /// Its name.
    pub(super) name: &'static str,
    /// The machine it is for.
    pub(super) machine: &'static str,
    declared: Value,
    templates: &'static [(&'static str, &'static str)],
}

impl Facts {
    /// A file of a machine.
    pub(super) fn file(&self, machine: &str, path: &str) -> PathBuf {
        self.below.join(machine).join("root").join(path)
    }

    fn path(&self, machine: &str, path: &str) -> String {
        self.file(machine, path).to_string_lossy().into_owned()
    }

    /// The three modules, providers first.
    pub(super) fn modules(&self) -> [Module; 3] {
        [self.db(), self.web(), self.shell()]
    }

    fn db(&self) -> Module {
        let declared = json!({
            "files": [
                {"path": self.path(DB, "etc/db/db.conf"), "template": "db.conf", "owner-at-runtime": "owned"},
                {"path": self.path(DB, "etc/db/consumers.json"), "template": "consumers.json", "owner-at-runtime": "owned", "mode": "0600"},
            ],
            "placement": {"dir": {"data": "/var/lib/db"}},
            "provides": ["sql"],
        });
        let templates = &[
            ("db.conf", "data = ${dir:data}\nlisten = ${port:sql}\n"),
            ("consumers.json", "${consumers:sql}"),
        ];
        Module { name: "db", machine: DB, declared, templates }
    }

    fn web(&self) -> Module {
        let mut conf = json!({
            "path": self.path(WEB, "etc/web/web.conf"), "template": "web.conf", "owner-at-runtime": "owned",
            "on-change": self.on_change,
        });
        if let (Some(owner), Some(conf)) = (&self.owner, conf.as_object_mut()) {
            conf.insert("owner".to_owned(), owner.as_str().into());
        }
        let declared = json!({
            "files": [
                conf,
                {"path": self.path(WEB, "etc/web/site.toml"), "template": "site.toml", "owner-at-runtime": "managed", "managed": {"format": "toml"}, "filters": true},
                {"path": self.path(WEB, "var/web/index.html"), "template": "index.html", "owner-at-runtime": "seed"},
            ],
            "secrets": [
                {"name": "admin-password"},
                {"name": "session-key", "path": self.path(WEB, "etc/web/session.key")},
            ],
            "provisions": [{"provision": "sql", "provider": "db", "credential": "pair", "name": "db-password"}],
            "items": [{"collection": "shell:sh:normal", "template": "web.sh"}],
        });
        let templates = &[
            (
                "web.conf",
                "listen = ${port:http}\nadmin = ${secret:admin-password}\n\
                 database = ${bound:sql:user}:${secret:db-password}@${bound:sql:host}:${bound:sql:port}\n",
            ),
            ("site.toml", "title = ${config:title|toml}\nworkers = ${config:workers}\n"),
            ("index.html", "<h1>${config:title}</h1>\n"),
            ("web.sh", "export WEB_PORT=${port:http}\n"),
        ];
        Module { name: "web", machine: WEB, declared, templates }
    }

    fn shell(&self) -> Module {
        let declared = json!({
            "files": [
                {"path": self.path(WEB, "etc/profile.d/mesh.sh"), "template": "mesh.sh", "owner-at-runtime": "owned"},
            ],
            "items": [{"collection": "shell:sh:normal", "template": "alias.sh"}],
            "collections": [{"collection": "shell:sh:normal", "comment": "#"}],
        });
        let templates = &[
            ("mesh.sh", "# For every login; ${HOME} is left as it is.\n${shell:sh:normal}"),
            ("alias.sh", "alias ll='ls -l'\n"),
        ];
        Module { name: "shell", machine: WEB, declared, templates }
    }
}

impl Module {
    /// Writes the module's folder into a catalogue.
    pub(super) fn write(&self, catalogue: &Path) -> io::Result<()> {
        let folder = catalogue.join(self.name);
        std::fs::create_dir_all(folder.join("templates"))?;
        std::fs::write(folder.join("module.json"), format!("{:#}\n", self.declared))?;
        for (name, text) in self.templates {
            std::fs::write(folder.join("templates").join(name), text)?;
        }
        Ok(())
    }
}

/// What the collector's file holds in the end.
pub(super) const COLLECTED: &str =
    "# For every login; ${HOME} is left as it is.\n# shell\nalias ll='ls -l'\n# web\nexport WEB_PORT=8080\n";

#[cfg(test)]
mod tests {
    use quartermaster_node::offline::{check_plan, read_templates};

    use super::*;

    #[test]
    fn the_catalogue_is_sound() {
        let dir = tempfile::tempdir().unwrap();
        let facts = Facts {
            below: "/x".into(),
            on_change: json!({"command": ["/x/reload"]}),
            owner: Some("nobody".to_owned()),
        };
        for module in facts.modules() {
            module.write(dir.path()).unwrap();
            let folder = dir.path().join(module.name);
            let text = std::fs::read(folder.join("module.json")).unwrap();
            let templates = read_templates(&folder.join("templates")).unwrap();
            let found = check_plan(&text, Some(&templates));
            assert_eq!((found.faults, found.unknown), (vec![], vec![]), "{}", module.name);
        }
    }
}
