//! What `quartermaster engine status` shows: a file beside the ledger, since the ledger itself is in use.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::EngineError;
use crate::engine::declaration::Declarations;
use crate::engine::ledger::Ledger;
use crate::engine::removal::{Taken, TakenHow};

/// The status file's name in the state folder.
const FILE: &str = "status.json";
/// How many removals are remembered.
const MAX_REMOVALS: usize = 100;

/// What the engine knows, for people and scripts. No content and no hash of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The machine.
    pub node: String,
    /// Each module that is declared or has files.
    pub modules: BTreeMap<String, ModuleStatus>,
    /// The last files that were taken away, newest last: path, module, and how.
    pub removed: Vec<(String, String, String)>,
}

/// What is known of one module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleStatus {
    /// The mirror's revision of its declaration; 0 from a folder.
    pub revision: u64,
    /// It is declared.
    pub declared: bool,
    /// Its plan can be read.
    pub readable: bool,
    /// Its files on this machine.
    pub files: Vec<String>,
    /// Programs that have yet to be told.
    pub owed: usize,
}

impl Status {
    /// Reads the status of the engine with this state folder.
    ///
    /// # Errors
    /// [`EngineError::File`].
    pub fn read(state: &Path) -> Result<Self, EngineError> {
        let path = state.join(FILE);
        let file = |source| EngineError::File { path: path.display().to_string(), source };
        let text = std::fs::read(&path).map_err(file)?;
        serde_json::from_slice(&text).map_err(|error| file(error.into()))
    }

    pub(super) fn refresh(&mut self, ledger: &Ledger, declarations: Option<&Declarations>) {
        self.modules.clear();
        for declaration in declarations.iter().flat_map(|declarations| declarations.iter()) {
            let module = self.modules.entry(declaration.module.clone()).or_default();
            module.declared = true;
            module.readable = declaration.files.is_some();
            module.revision = declaration.revision;
        }
        for (path, row) in ledger.files() {
            self.modules.entry(row.module.clone()).or_default().files.push(path.to_string());
        }
        for module in ledger.debtors() {
            self.modules.entry(module.to_owned()).or_default().owed = ledger.owed_by(module).len();
        }
    }

    pub(super) fn note(&mut self, taken: &Taken) {
        let how = match &taken.done {
            Ok(TakenHow::Removed) => "removed".to_owned(),
            Ok(TakenHow::Withdrawn) => "withdrawn".to_owned(),
            Ok(TakenHow::Left) => "left to its program".to_owned(),
            Ok(TakenHow::Absent) => return,
            Err(fault) => format!("not removed: {fault}"),
        };
        let entry = (taken.path.clone(), taken.module.clone(), how);
        // A removal that fails is tried at every change, and said once.
        if self.removed.last() != Some(&entry) {
            self.removed.push(entry);
        }
        let surplus = self.removed.len().saturating_sub(MAX_REMOVALS);
        self.removed.drain(..surplus);
    }

    pub(super) fn write(&self, state: &Path) -> std::io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(state)?;
        // Whole, since the file is not buffered.
        std::io::Write::write_all(&mut file, &serde_json::to_vec(self)?)?;
        file.persist(state.join(FILE)).map_err(|error| error.error)?;
        Ok(())
    }
}
