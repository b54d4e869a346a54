use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::sync::Arc;

use zeroize::Zeroizing;

use super::declaration::{Declaration, Declarations, DeclaredFile, Standing, Writing};
use super::disk::{Accounts, FilePath, Roots};
use super::fault::FileCode;
use super::keeper::{Keeper, digest};
use super::ledger::Store;
use super::managed::Format;
use super::plan::{Action, Filled};
use super::program::Program;
use super::removal::TakenHow;

/// A root of files, a ledger beside it, and what is declared.
struct Machine {
    root: tempfile::TempDir,
    state: tempfile::TempDir,
    keeper: Keeper,
    declared: BTreeMap<String, Arc<Declaration>>,
}

fn open(root: &tempfile::TempDir, state: &tempfile::TempDir) -> Keeper {
    let store = Store::open(&state.path().join("ledger")).unwrap();
    let roots = Roots::parse([fs::canonicalize(root.path()).unwrap().to_str().unwrap()]).unwrap();
    Keeper::new(store, roots, Accounts::default())
}

impl Machine {
    fn new() -> Self {
        let (root, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let keeper = open(&root, &state);
        Self { root, state, keeper, declared: BTreeMap::new() }
    }

    fn restart(self) -> Self {
        let Self { root, state, keeper, declared } = self;
        drop(keeper);
        let keeper = open(&root, &state);
        Self { root, state, keeper, declared }
    }

    fn path(&self, rest: &str) -> String {
        fs::canonicalize(self.root.path()).unwrap().join(rest).to_str().unwrap().to_owned()
    }

    fn file(&self, rest: &str, writing: Writing) -> DeclaredFile {
        DeclaredFile {
            path: FilePath::parse(&self.path(rest)).unwrap(),
            writing,
            owner: None,
            group: None,
            mode: None,
            program: Some(restart("forge.service")),
            is_secret: false,
        }
    }

    fn declare(&mut self, module: &str, files: Vec<DeclaredFile>) {
        let declaration =
            Declaration { module: module.to_owned(), plan: "p".to_owned(), revision: 1, files: Some(files) };
        self.declared.insert(module.to_owned(), Arc::new(declaration));
    }

    fn declarations(&self) -> Declarations {
        Declarations::from_mirror(self.declared.clone())
    }

    fn request(&mut self, module: &str, filled: &[Filled]) -> Vec<(String, Result<Action, FileCode>)> {
        let declarations = self.declarations();
        let declaration = self.declared[module].clone();
        let outcomes = self.keeper.write(&declarations, &declaration, filled).unwrap();
        let short = |path: &str| path.rsplit('/').next().unwrap().to_owned();
        outcomes
            .into_iter()
            .map(|outcome| {
                (short(&outcome.path), outcome.done.map(|done| done.action).map_err(|fault| fault.code))
            })
            .collect()
    }

    fn write(&mut self, rest: &str, content: &str) -> Result<Action, FileCode> {
        let filled = self.filled(rest, content);
        self.request("forge", &[filled]).remove(0).1
    }

    fn filled(&self, rest: &str, content: &str) -> Filled {
        Filled {
            path: self.path(rest),
            content: Zeroizing::new(content.as_bytes().to_vec()),
            sha256: digest(content.as_bytes()),
            is_sensitive: false,
        }
    }

    fn read(&self, rest: &str) -> String {
        fs::read_to_string(self.path(rest)).unwrap()
    }

    fn mode(&self, rest: &str) -> u32 {
        fs::metadata(self.path(rest)).unwrap().permissions().mode() & 0o7777
    }

    fn owed(&mut self) -> Vec<Program> {
        let owed = self.keeper.owed_by("forge");
        self.keeper.told(owed.clone()).unwrap();
        owed.into_iter().map(|owed| owed.program).collect()
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.root.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn take_away(&mut self) -> Vec<Result<TakenHow, FileCode>> {
        let taken = self.keeper.take_away(&self.declarations()).unwrap();
        taken.into_iter().map(|taken| taken.done.map_err(|fault| fault.code)).collect()
    }
}

fn restart(unit: &str) -> Program {
    Program::Restart { unit: unit.to_owned(), start: false }
}

fn block() -> Writing {
    Writing::Managed(Format::Block { comment: "#".to_owned(), end: None, at_start: false })
}

#[test]
fn an_owned_file_is_written_kept_and_put_back() {
    let mut machine = Machine::new();
    machine.declare("forge", vec![machine.file("etc/app.ini", Writing::Owned)]);
    assert_eq!(machine.write("etc/app.ini", "one"), Ok(Action::Written));
    assert_eq!((machine.read("etc/app.ini").as_str(), machine.mode("etc/app.ini")), ("one", 0o644));
    assert_eq!(machine.mode("etc"), 0o750);
    assert_eq!(machine.owed(), [restart("forge.service")]);

    let before = fs::metadata(machine.path("etc/app.ini")).unwrap();
    let ledger = fs::metadata(machine.state.path().join("ledger")).unwrap();
    for _ in 0..20 {
        assert_eq!(machine.write("etc/app.ini", "one"), Ok(Action::Unchanged));
    }
    let after = fs::metadata(machine.path("etc/app.ini")).unwrap();
    assert_eq!((before.ino(), before.mtime_nsec()), (after.ino(), after.mtime_nsec()));
    let ledger_after = fs::metadata(machine.state.path().join("ledger")).unwrap();
    assert_eq!(
        ledger.modified().unwrap(),
        ledger_after.modified().unwrap(),
        "nothing is written down either"
    );
    assert!(machine.owed().is_empty());

    fs::write(machine.path("etc/app.ini"), "edited").unwrap();
    assert_eq!(machine.write("etc/app.ini", "one"), Ok(Action::Restored));
    assert_eq!(machine.owed(), [restart("forge.service")]);
    fs::remove_file(machine.path("etc/app.ini")).unwrap();
    assert_eq!(machine.write("etc/app.ini", "one"), Ok(Action::Restored));
    assert_eq!(machine.write("etc/app.ini", "two"), Ok(Action::Written));
    assert_eq!(machine.read("etc/app.ini"), "two");
}

#[test]
fn a_mode_is_kept_or_as_declared_and_never_wider() {
    let mut machine = Machine::new();
    for mode in [0o440, 0o600, 0o2755] {
        machine.declare("forge", vec![machine.file("x", Writing::Owned)]);
        let _ = fs::remove_file(machine.path("x"));
        fs::write(machine.path("x"), "theirs").unwrap();
        fs::set_permissions(machine.path("x"), fs::Permissions::from_mode(mode)).unwrap();
        machine.write("x", &format!("{mode}")).unwrap();
        assert_eq!(machine.mode("x"), mode, "an existing file keeps its own");
        fs::remove_file(machine.path("x")).unwrap();
        assert_eq!(machine.write("x", &format!("{mode}")), Ok(Action::Restored));
        assert_eq!(machine.mode("x"), mode, "also when it comes back");
    }
    let declared = DeclaredFile { mode: Some(0o640), ..machine.file("x", Writing::Owned) };
    machine.declare("forge", vec![declared]);
    assert_eq!(machine.write("x", "a"), Ok(Action::Written));
    assert_eq!(machine.mode("x"), 0o640);
    fs::set_permissions(machine.path("x"), fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(machine.write("x", "a"), Ok(Action::Restored));
    assert_eq!(machine.mode("x"), 0o640);
}

#[test]
fn a_sensitive_file_is_private_and_never_declared_open() {
    let mut machine = Machine::new();
    let open = DeclaredFile { mode: Some(0o644), ..machine.file("open", Writing::Owned) };
    let secret = DeclaredFile { is_secret: true, ..machine.file("deep/secret", Writing::Owned) };
    machine.declare("forge", vec![open, secret, machine.file("ordinary", Writing::Owned)]);
    let sensitive =
        |rest: &str, machine: &Machine| Filled { is_sensitive: true, ..machine.filled(rest, "pw") };
    let filled = sensitive("open", &machine);
    assert_eq!(machine.request("forge", &[filled])[0].1, Err(FileCode::NotDeclared));
    let filled = sensitive("ordinary", &machine);
    assert_eq!(machine.request("forge", &[filled])[0].1, Ok(Action::Written));
    assert_eq!(machine.mode("ordinary"), 0o600);
    assert_eq!(machine.write("deep/secret", "pw"), Ok(Action::Written));
    assert_eq!((machine.mode("deep/secret"), machine.mode("deep")), (0o600, 0o700));
}

#[test]
fn a_seed_is_written_once() {
    let mut machine = Machine::new();
    machine.declare("forge", vec![machine.file("motd", Writing::Seed)]);
    assert_eq!(machine.write("motd", "one"), Ok(Action::Seeded));
    fs::write(machine.path("motd"), "edited").unwrap();
    assert_eq!(machine.write("motd", "two"), Ok(Action::Kept));
    assert_eq!(machine.read("motd"), "edited");
}

#[test]
fn a_managed_file_keeps_the_rest() {
    let mut machine = Machine::new();
    machine.declare("forge", vec![machine.file("site.toml", Writing::Managed(Format::Toml))]);
    fs::write(machine.path("site.toml"), "# mine\na = 1\n").unwrap();
    assert_eq!(machine.write("site.toml", "b = 1\nc = 1\n"), Ok(Action::Written));
    assert_eq!(machine.read("site.toml"), "# mine\na = 1\nb = 1\nc = 1\n");
    assert_eq!(machine.write("site.toml", "b = 1\nc = 1\n"), Ok(Action::Unchanged));
    fs::write(machine.path("site.toml"), "# mine\na = 2\nb = 5\nc = 1\n").unwrap();
    assert_eq!(machine.write("site.toml", "b = 1\nc = 1\n"), Ok(Action::Restored));
    let mut machine = machine.restart();
    assert_eq!(machine.write("site.toml", "b = 1\n"), Ok(Action::Written));
    assert_eq!(
        machine.read("site.toml"),
        "# mine\na = 2\nb = 1\n",
        "a key that left the part leaves the file"
    );
    fs::write(machine.path("site.toml"), "a = = 2\n").unwrap();
    assert_eq!(machine.write("site.toml", "b = 1\n"), Err(FileCode::ManagedDamaged));
    assert_eq!(machine.read("site.toml"), "a = = 2\n");
    fs::hard_link(machine.path("site.toml"), machine.path("other")).unwrap();
    assert_eq!(machine.write("site.toml", "b = 1\n"), Err(FileCode::PathRefused));
}

#[test]
fn only_what_is_declared_is_written() {
    let mut machine = Machine::new();
    machine.declare("forge", vec![machine.file("x", Writing::Owned)]);
    machine.declare("alpha", vec![machine.file("x", Writing::Owned), machine.file("y", Writing::Owned)]);
    assert_eq!(machine.write("z", ""), Err(FileCode::NotDeclared));
    assert_eq!(machine.write("y", ""), Err(FileCode::NotDeclared));
    assert_eq!(machine.write("x", ""), Err(FileCode::PathTaken));
    assert_eq!(machine.write("../x", ""), Err(FileCode::PathRefused));
    let filled = Filled { sha256: digest(b"other"), ..machine.filled("x", "content") };
    assert_eq!(machine.request("forge", &[filled])[0].1, Err(FileCode::HashMismatch));
    let nobody = DeclaredFile { owner: Some("nobody-here".to_owned()), ..machine.file("n", Writing::Owned) };
    machine.declare("forge", vec![nobody]);
    assert_eq!(machine.write("n", ""), Err(FileCode::NoSuchUser));
    let outside =
        DeclaredFile { path: FilePath::parse("/etc/outside").unwrap(), ..machine.file("o", Writing::Owned) };
    machine.declare("forge", vec![outside]);
    let filled = Filled { path: "/etc/outside".to_owned(), ..machine.filled("o", "") };
    assert_eq!(machine.request("forge", &[filled])[0].1, Err(FileCode::PathRefused));
    assert!(machine.names().is_empty());
}

#[test]
fn new_content_is_placed_together_and_old_content_is_put_back_alone() {
    let mut machine = Machine::new();
    let files = ["old", "new", "bad"].map(|rest| machine.file(rest, Writing::Owned));
    machine.declare("forge", files.to_vec());
    machine.write("old", "old").unwrap();
    let _ = machine.owed();
    fs::write(machine.path("old"), "edited").unwrap();
    symlink("/etc/passwd", machine.path("bad")).unwrap();
    let request = ["old", "new", "bad"].map(|rest| machine.filled(rest, rest));
    let expected = [
        ("old".to_owned(), Ok(Action::Restored)),
        ("new".to_owned(), Err(FileCode::Io)),
        ("bad".to_owned(), Err(FileCode::PathRefused)),
    ];
    assert_eq!(machine.request("forge", &request), expected);
    assert_eq!(machine.read("old"), "old");
    assert_eq!(machine.names(), ["bad", "old"], "nothing is left beside them");
}

#[test]
fn what_is_owed_outlives_a_restart_and_is_told_once() {
    let mut machine = Machine::new();
    let files = ["a", "b"].map(|rest| machine.file(rest, Writing::Owned));
    machine.declare("forge", files.to_vec());
    let request = ["a", "b"].map(|rest| machine.filled(rest, rest));
    machine.request("forge", &request);
    let mut machine = machine.restart();
    assert_eq!(machine.owed(), [restart("forge.service")]);
    assert!(machine.restart().owed().is_empty());
}

#[test]
fn what_is_no_longer_declared_goes() {
    let mut machine = Machine::new();
    let files = vec![
        machine.file("made/deep/owned", Writing::Owned),
        machine.file("seed", Writing::Seed),
        machine.file("edited", Writing::Seed),
        machine.file("block", block()),
        machine.file("made/block", block()),
    ];
    fs::write(machine.path("block"), "theirs\n").unwrap();
    machine.declare("forge", files);
    for rest in ["made/deep/owned", "seed", "edited", "block", "made/block"] {
        machine.write(rest, "content\n").unwrap();
    }
    fs::write(machine.path("edited"), "mine now").unwrap();
    assert!(machine.take_away().is_empty(), "what is declared stays");
    machine.declare("forge", Vec::new());
    let taken = machine.take_away();
    assert_eq!(taken.iter().filter(|done| **done == Ok(TakenHow::Removed)).count(), 3);
    assert!(taken.contains(&Ok(TakenHow::Withdrawn)) && taken.contains(&Ok(TakenHow::Left)));
    assert_eq!(machine.names(), ["block", "edited"]);
    assert_eq!((machine.read("block").as_str(), machine.read("edited").as_str()), ("theirs\n", "mine now"));
    assert_eq!(machine.keeper.ledger().files().count(), 0);
    assert_eq!(machine.keeper.ledger().folders().count(), 0);
}

#[test]
fn a_folder_of_ours_with_something_of_others_stays() {
    let mut machine = Machine::new();
    machine.declare("forge", vec![machine.file("made/x", Writing::Owned)]);
    machine.write("made/x", "x").unwrap();
    fs::write(machine.path("made/theirs"), "").unwrap();
    machine.declared.clear();
    assert_eq!(machine.take_away(), [Ok(TakenHow::Removed)]);
    assert!(machine.owed().is_empty(), "nobody is told of a removal");
    assert!(fs::exists(machine.path("made/theirs")).unwrap());
}

#[test]
fn a_plan_that_cannot_be_read_takes_nothing_away() {
    let mut machine = Machine::new();
    machine.declare("forge", vec![machine.file("x", Writing::Owned)]);
    machine.write("x", "x").unwrap();
    Arc::make_mut(machine.declared.get_mut("forge").unwrap()).files = None;
    assert!(machine.take_away().is_empty());
    assert_eq!(machine.read("x"), "x");
}

#[test]
fn a_removal_does_not_follow_what_stands_there_now() {
    let mut machine = Machine::new();
    machine.declare("forge", vec![machine.file("x", Writing::Owned)]);
    machine.write("x", "x").unwrap();
    fs::write(machine.path("precious"), "p").unwrap();
    fs::remove_file(machine.path("x")).unwrap();
    symlink("precious", machine.path("x")).unwrap();
    machine.declared.clear();
    assert_eq!(machine.take_away(), [Err(FileCode::PathRefused)]);
    assert_eq!(machine.read("precious"), "p");
}

#[test]
fn leftovers_of_a_killed_life_are_swept() {
    let mut machine = Machine::new();
    machine.declare("forge", vec![machine.file("x", Writing::Owned)]);
    machine.write("x", "x").unwrap();
    fs::write(machine.path(".x.qm-0123abcd"), "half").unwrap();
    let machine = machine.restart();
    assert_eq!(machine.keeper.sweep(), 1);
    assert_eq!(machine.names(), ["x"]);
}

#[test]
fn the_first_module_that_declares_a_path_holds_it() {
    let mut machine = Machine::new();
    let (x, y) = (machine.file("x", Writing::Owned), machine.file("y", Writing::Owned));
    machine.declare("b", vec![y.clone(), x.clone()]);
    machine.declare("a", vec![x.clone()]);
    let held = |machine: &Machine, file: &DeclaredFile| {
        let declarations = machine.declarations();
        declarations.holder(&file.path).map(|(holder, file)| (holder.module.clone(), file.path.clone()))
    };
    assert_eq!(held(&machine, &x), Some(("a".to_owned(), x.path.clone())));
    assert_eq!(held(&machine, &y), Some(("b".to_owned(), y.path.clone())));
    machine.declared.remove("a");
    assert_eq!(held(&machine, &x), Some(("b".to_owned(), x.path.clone())));
    machine.declared.remove("b");
    assert_eq!(held(&machine, &x), None);
}

#[test]
fn a_request_stands_where_its_plan_and_revision_say() {
    let declaration =
        Arc::new(Declaration { module: "m".to_owned(), plan: "p".to_owned(), revision: 5, files: None });
    let by_token = BTreeMap::from([("m".to_owned(), Arc::clone(&declaration))]);
    let mirror = Declarations::from_mirror(by_token.clone());
    assert_eq!(mirror.standing("m", "p", 5), Standing::Same(&declaration));
    assert_eq!(mirror.standing("m", "q", 6), Standing::Behind(5));
    assert_eq!(mirror.standing("m", "p", 6), Standing::Behind(5));
    assert_eq!(mirror.standing("m", "o", 4), Standing::Stale(5));
    assert_eq!(mirror.standing("m", "o", 5), Standing::Stale(5));
    assert_eq!(mirror.standing("n", "p", 5), Standing::Unknown);
    let folder = Declarations::from_folder(by_token);
    assert_eq!(folder.standing("m", "p", 99), Standing::Same(&declaration));
    assert_eq!(folder.standing("m", "q", 1), Standing::Behind(5));
}
