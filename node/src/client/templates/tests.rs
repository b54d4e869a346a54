use std::{
    collections::BTreeSet, fs, os::unix::fs::PermissionsExt as _, path::Path, sync::Arc, time::Duration,
};

use quartermaster_proto::mesh::{
    plan::{Digest, Reference, Templates as TemplatesPlan},
    report::Why,
};
use tempfile::TempDir;

use super::*;
use crate::{archive::MAX_FETCHED, backoff::Backoff, core::ArchiveState};

fn tar(name: &str, text: &str) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_size(text.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    builder.append_data(&mut header, name, text.as_bytes()).unwrap();
    builder.into_inner().unwrap()
}

struct World {
    dir: TempDir,
}

impl World {
    fn new() -> Self {
        Self { dir: TempDir::new().unwrap() }
    }

    fn archive(&self) -> std::path::PathBuf {
        self.dir.path().join("a.tar")
    }

    fn cached(&self) -> Vec<std::path::PathBuf> {
        fs::read_dir(self.dir.path().join("templates")).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    /// A keeper as after a start of the client.
    fn keeper(&self) -> TemplatesKeeper {
        let cache = Cache::open(self.dir.path().join("templates")).unwrap();
        TemplatesKeeper::new(Fetcher::new(None), Some(cache))
    }

    fn plan(&self, bytes: &[u8]) -> TemplatesPlan {
        let reference = Reference::File(self.archive().to_string_lossy().into_owned());
        TemplatesPlan { reference, digest: Digest::of(bytes) }
    }
}

/// The attempt in short.
fn shown(attempt: &(ArchiveState, Option<Backoff>)) -> String {
    match &attempt.0 {
        ArchiveState::Ready(templates) => templates.keys().cloned().collect::<Vec<_>>().join(","),
        ArchiveState::Waiting(why) => why.as_str().to_owned(),
        ArchiveState::Failed { reason, .. } => reason.clone(),
    }
}

#[tokio::test]
async fn an_archive_is_used_only_when_it_hashes_to_the_plans_digest() {
    let world = World::new();
    let (good, other) = (tar("a", "x"), tar("b", "y"));
    let plan = world.plan(&good);
    let attempt = world.keeper().get(&plan).await;
    assert_eq!((shown(&attempt), attempt.1), ("absent".to_owned(), Some(Backoff::NO_ANSWER)));
    fs::write(world.archive(), &other).unwrap();
    let attempt = world.keeper().get(&plan).await;
    let reason = format!("the archive hashes to {}, and the plan says {}", Digest::of(&other), plan.digest);
    assert_eq!((shown(&attempt), attempt.1), (reason, Some(Backoff::WRONG_ARCHIVE)));
    assert!(world.cached().is_empty());
    fs::write(world.archive(), &good).unwrap();
    assert_eq!(shown(&world.keeper().get(&plan).await), "a", "without a new plan");
}

#[tokio::test]
async fn an_archive_is_fetched_once_and_kept_by_its_digest() {
    let world = World::new();
    let good = tar("a", "x");
    fs::write(world.archive(), &good).unwrap();
    let keeper = world.keeper();
    let plan = world.plan(&good);
    let (ArchiveState::Ready(first), _) = keeper.get(&plan).await else { panic!("it is here") };
    fs::remove_file(world.archive()).unwrap();
    let (ArchiveState::Ready(second), _) = keeper.get(&plan).await else { panic!("it is here") };
    assert!(Arc::ptr_eq(&first, &second), "in memory once");
    assert_eq!(shown(&world.keeper().get(&plan).await), "a", "after a start, from the disk");
    let [path] = world.cached().try_into().unwrap();
    assert_eq!(path.file_name().unwrap().to_string_lossy(), format!("sha256-{}", plan.digest.hex()));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
}

#[tokio::test]
async fn a_damaged_copy_is_dropped_and_fetched_again() {
    let world = World::new();
    let good = tar("a", "x");
    let plan = world.plan(&good);
    fs::write(world.archive(), &good).unwrap();
    world.keeper().get(&plan).await;
    let [path] = world.cached().try_into().unwrap();
    fs::write(&path, tar("evil", "x")).unwrap();
    assert_eq!(shown(&world.keeper().get(&plan).await), "a");
    assert_eq!(fs::read(&path).unwrap(), good);
    fs::write(&path, &good[..600]).unwrap();
    fs::remove_file(world.archive()).unwrap();
    assert_eq!(shown(&world.keeper().get(&plan).await), "absent");
    assert!(world.cached().is_empty());
}

#[tokio::test]
async fn an_archive_that_is_refused_waits_for_another_plan() {
    let world = World::new();
    fs::write(world.archive(), b"no archive").unwrap();
    let attempt = world.keeper().get(&world.plan(b"no archive")).await;
    assert!(shown(&attempt).starts_with("the archive cannot be read"), "{}", shown(&attempt));
    assert_eq!(attempt.1, None);
    let sparse = fs::File::create(world.archive()).unwrap();
    sparse.set_len(MAX_FETCHED as u64 + 1).unwrap();
    let attempt = world.keeper().get(&world.plan(b"x")).await;
    assert_eq!(shown(&attempt), format!("it has more than {MAX_FETCHED} bytes"));
}

#[tokio::test]
async fn an_address_that_cannot_be_reached_is_waited_for() {
    let fetcher = Fetcher::new(None);
    for address in ["https://127.0.0.1:1/a.tar", "https://localhost.invalid/a"] {
        let found = fetcher.fetch(&address.parse().unwrap()).await;
        assert_eq!(found, Err(FetchError::Waiting(Why::NoAnswer)), "{address}");
    }
    let object = fetcher.fetch(&"nats-object:t/a".parse().unwrap()).await;
    assert_eq!(object, Err(FetchError::Waiting(Why::NoAnswer)));
}

fn age(path: &Path, hours: u64) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    let then = modified.checked_sub(Duration::from_hours(hours)).unwrap();
    fs::File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
}

#[test]
fn what_no_plan_has_named_for_a_day_is_dropped() {
    let world = World::new();
    let cache = Cache::open(world.dir.path().join("templates")).unwrap();
    let digests = [b"named".as_slice(), b"young", b"old"].map(Digest::of);
    for digest in &digests {
        cache.store(digest, b"x").unwrap();
    }
    let path = |digest: &Digest| world.dir.path().join("templates").join(format!("sha256-{}", digest.hex()));
    age(&path(&digests[0]), 30);
    age(&path(&digests[1]), 20);
    age(&path(&digests[2]), 30);
    cache.sweep(&BTreeSet::from([digests[0]]));
    assert_eq!(digests.map(|digest| path(&digest).exists()), [true, true, false]);
    cache.sweep(&BTreeSet::new());
    assert!(path(&digests[0]).exists(), "it was named a moment ago");
}
