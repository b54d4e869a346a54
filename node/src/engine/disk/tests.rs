use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;

use super::folder::NewFolder;
use super::*;
use crate::engine::fault::FileCode;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, rest: &str) -> FilePath {
        let root = fs::canonicalize(self.0.path()).unwrap();
        FilePath::parse(root.join(rest).to_str().unwrap()).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn mine(mode: u32) -> Attributes {
    Attributes { user: rustix::process::geteuid().as_raw(), group: rustix::process::getegid().as_raw(), mode }
}

fn new_folder() -> NewFolder {
    NewFolder { user: mine(0).user, group: mine(0).group, mode: 0o750 }
}

fn mode(path: &FilePath) -> u32 {
    fs::metadata(path.as_str()).unwrap().permissions().mode() & 0o7777
}

#[test]
fn only_plain_absolute_paths_are_paths() {
    for (path, error) in [
        ("etc/x", PathError::Relative),
        ("", PathError::Relative),
        ("/", PathError::Part),
        ("/etc//x", PathError::Part),
        ("/etc/../x", PathError::Part),
        ("/etc/./x", PathError::Part),
        ("/etc/", PathError::Part),
        ("/etc/a\nb", PathError::Control),
        ("/etc/a\0b", PathError::Control),
    ] {
        assert_eq!(FilePath::parse(path), Err(error), "{path:?}");
    }
    let path = FilePath::parse("/etc/forge/app.ini").unwrap();
    assert_eq!((path.folder_parts(), path.name()), (vec!["etc", "forge"], "app.ini"));
    assert_eq!(FilePath::parse(&format!("/{}", "x".repeat(256))), Err(PathError::TooLong));
}

#[test]
fn roots_bound_by_whole_parts() {
    let admits = |roots: &[&str], path: &str| {
        let path = FilePath::parse(path).unwrap();
        Roots::parse(roots.iter().copied()).unwrap().admit(&path).is_ok()
    };
    assert!(admits(&["/etc"], "/etc/x") && admits(&["/etc/"], "/etc/a/b") && admits(&["/"], "/x"));
    assert!(!admits(&["/etc"], "/etcetera/x") && !admits(&["/etc"], "/etc") && !admits(&[], "/etc/x"));
}

#[test]
fn content_takes_the_targets_place_and_leaves_nothing_beside_it() {
    let place = Place::new();
    let path = place.path("app.ini");
    fs::write(path.as_str(), "old").unwrap();
    fs::hard_link(path.as_str(), place.path("other").as_str()).unwrap();
    let folder = Arc::new(Folder::open(&path).unwrap().unwrap());
    let staged = Unsynced::write(&folder, &path, b"new", mine(0o640)).unwrap().sync().unwrap();
    assert_eq!(fs::read(path.as_str()).unwrap(), b"old", "nothing shows before it takes its place");
    assert_eq!(staged.replace().unwrap(), Placed::There);
    assert_eq!(fs::read(path.as_str()).unwrap(), b"new");
    assert_eq!(fs::read(place.path("other").as_str()).unwrap(), b"old", "the other name keeps the old file");
    assert_eq!(mode(&path), 0o640);
    assert_eq!(place.names(), ["app.ini", "other"]);
}

#[test]
fn a_staged_file_that_is_dropped_leaves_nothing() {
    let place = Place::new();
    let path = place.path("app.ini");
    let folder = Arc::new(Folder::open(&path).unwrap().unwrap());
    drop(Unsynced::write(&folder, &path, b"new", mine(0o600)).unwrap().sync().unwrap());
    assert!(place.names().is_empty());
}

#[test]
fn an_absent_file_is_made_and_a_present_one_is_left() {
    let place = Place::new();
    let path = place.path("motd");
    let folder = Arc::new(Folder::open(&path).unwrap().unwrap());
    let place_it = |content: &[u8]| {
        Unsynced::write(&folder, &path, content, mine(0o644))
            .unwrap()
            .sync()
            .unwrap()
            .place_if_absent()
            .unwrap()
    };
    assert_eq!(place_it(b"one"), Placed::There);
    assert_eq!(place_it(b"two"), Placed::Taken);
    assert_eq!(fs::read(path.as_str()).unwrap(), b"one");
    assert_eq!(place.names(), ["motd"]);
}

#[test]
fn missing_folders_are_made_with_their_owner_and_mode() {
    let place = Place::new();
    let path = place.path("a/b/x");
    assert!(Folder::open(&path).unwrap().is_none());
    let folder = Folder::open_or_make(&path, new_folder()).unwrap();
    let root = fs::canonicalize(place.0.path()).unwrap();
    let made: Vec<String> = ["a", "a/b"].map(|rest| root.join(rest).to_str().unwrap().to_owned()).into();
    assert_eq!(folder.made(), made);
    for rest in ["a", "a/b"] {
        assert_eq!(mode(&place.path(rest)), 0o750);
    }
    assert!(Folder::open_or_make(&path, new_folder()).unwrap().made().is_empty());
}

#[test]
fn links_and_files_on_the_way_are_refused_by_name() {
    let place = Place::new();
    fs::create_dir(place.path("real").as_str()).unwrap();
    symlink("real", place.path("link").as_str()).unwrap();
    fs::write(place.path("file").as_str(), "").unwrap();
    for (rest, says) in [
        ("link/x", "link is a symbolic link"),
        ("link/deeper/x", "link is a symbolic link"),
        ("file/x", "file is no folder"),
    ] {
        let path = place.path(rest);
        for fault in
            [Folder::open(&path).unwrap_err(), Folder::open_or_make(&path, new_folder()).unwrap_err()]
        {
            assert_eq!(fault.code, FileCode::PathRefused);
            assert!(fault.reason.ends_with(says), "{fault}");
        }
    }
    assert!(fs::read_dir(place.path("real").as_str()).unwrap().next().is_none());
}

#[test]
fn a_target_that_is_no_regular_file_is_refused_and_not_opened() {
    let place = Place::new();
    symlink("/etc/passwd", place.path("link").as_str()).unwrap();
    fs::create_dir(place.path("folder").as_str()).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, place.path("fifo").as_str(), rustix::fs::Mode::RUSR).unwrap();
    let folder = Folder::open(&place.path("x")).unwrap().unwrap();
    for (name, says) in [("link", "a symbolic link"), ("folder", "a folder"), ("fifo", "a FIFO")] {
        let fault = Found::look(&folder, name).unwrap_err();
        assert_eq!(fault.code, FileCode::PathRefused);
        assert!(fault.reason.contains(says), "{fault}");
        assert!(remove_file(&place.path(name)).is_err());
    }
    assert!(Path::new("/etc/passwd").exists());
}

#[test]
fn an_open_folder_is_written_into_wherever_its_name_leads_now() {
    let place = Place::new();
    for name in ["a", "trap"] {
        fs::create_dir(place.path(name).as_str()).unwrap();
    }
    let path = place.path("a/x");
    let folder = Arc::new(Folder::open(&path).unwrap().unwrap());
    let staged = Unsynced::write(&folder, &path, b"secret", mine(0o600)).unwrap().sync().unwrap();
    fs::rename(place.path("a").as_str(), place.path("moved").as_str()).unwrap();
    symlink("trap", place.path("a").as_str()).unwrap();
    staged.replace().unwrap();
    assert!(fs::read_dir(place.path("trap").as_str()).unwrap().next().is_none());
    assert_eq!(fs::read(place.path("moved/x").as_str()).unwrap(), b"secret");
}

#[test]
fn only_our_own_leftovers_are_swept() {
    let place = Place::new();
    let (ours, theirs) = (
        [".a.qm-0123abcd", ".b.ini.qm-ffffffff"],
        ["a.qm-0123abcd", ".a.qm-0123ABCD", ".qm-0123abcd", ".a.qm-0123abcde"],
    );
    for name in ours.iter().chain(&theirs) {
        fs::write(place.path(name).as_str(), "").unwrap();
    }
    symlink("x", place.path(".l.qm-00000000").as_str()).unwrap();
    assert_eq!(sweep(&place.path("any")).unwrap(), ours.len());
    assert_eq!(place.names().len(), theirs.len() + 1);
    assert_eq!(sweep(&place.path("not/there")).unwrap(), 0);
}

#[test]
fn folders_go_only_when_they_are_empty() {
    let place = Place::new();
    let folder = place.path("a");
    fs::create_dir(folder.as_str()).unwrap();
    fs::write(place.path("a/x").as_str(), "").unwrap();
    assert_eq!(remove_folder(&folder).unwrap(), RemoveEffect::NotEmpty);
    assert_eq!(remove_file(&place.path("a/x")).unwrap(), RemoveEffect::Removed);
    assert_eq!(remove_file(&place.path("a/x")).unwrap(), RemoveEffect::Absent);
    assert_eq!(remove_folder(&folder).unwrap(), RemoveEffect::Removed);
    assert_eq!(remove_folder(&folder).unwrap(), RemoveEffect::Absent);
}

#[test]
fn very_long_names_have_room_beside_them() {
    let place = Place::new();
    let path = place.path(&"é".repeat(127));
    let folder = Arc::new(Folder::open(&path).unwrap().unwrap());
    Unsynced::write(&folder, &path, b"x", mine(0o600)).unwrap().sync().unwrap().replace().unwrap();
    assert_eq!(fs::metadata(path.as_str()).unwrap().len(), 1);
}

#[test]
fn accounts_are_found_by_name_and_number() {
    let place = Place::new();
    fs::write(place.path("passwd").as_str(), "root:x:0:0::/:/bin/sh\nforge:x:990:991::/:/bin/sh\n").unwrap();
    fs::write(place.path("group").as_str(), "forge:x:991:\n").unwrap();
    let accounts =
        Accounts::from_files(place.path("passwd").as_str().into(), place.path("group").as_str().into());
    assert_eq!(
        (accounts.user("forge"), accounts.group("forge"), accounts.user("12")),
        (Ok(990), Ok(991), Ok(12))
    );
    assert_eq!(accounts.user("nobody-here").unwrap_err().code, FileCode::NoSuchUser);
    assert_eq!(fs::metadata(place.path("group").as_str()).unwrap().uid(), mine(0).user);
}

#[test]
fn files_that_are_synced_together_come_back_in_their_order() {
    let place = Place::new();
    let folder = Arc::new(Folder::open(&place.path("x")).unwrap().unwrap());
    for count in [0, 1, 3, 4, 5, 17] {
        let unsynced = (0..count).map(|file| {
            let path = place.path(&format!("{count}-{file}"));
            Unsynced::write(&folder, &path, format!("{file}").as_bytes(), mine(0o600)).unwrap()
        });
        for staged in sync_all(unsynced.collect()) {
            staged.unwrap().replace().unwrap();
        }
        for file in 0..count {
            let path = place.path(&format!("{count}-{file}"));
            assert_eq!(fs::read_to_string(path.as_str()).unwrap(), file.to_string());
        }
    }
    assert_eq!(place.names().len(), 30);
}
