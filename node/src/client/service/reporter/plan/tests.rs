use std::sync::Arc;

use quartermaster_proto::mesh::{collect::Item, need::Need};

use super::*;
use crate::client::service::world::Items;

const NOW: WallClock = WallClock::from_seconds(1_795_975_200);

/// A book and buckets that acknowledge everything.
struct World {
    book: Book,
    buckets: BTreeMap<(Place, String), Vec<u8>>,
    said: Vec<String>,
}

impl World {
    fn new() -> Self {
        let book = Book::new("web1".to_owned(), "run2".to_owned());
        Self { book, buckets: BTreeMap::new(), said: Vec::new() }
    }

    fn holds(mut self, place: Place, key: &str) -> Self {
        self.buckets.insert((place, key.to_owned()), b"old".to_vec());
        self
    }

    fn read(&mut self) {
        self.book.unsure();
        for place in Place::ALL {
            let entries = self.buckets.iter().filter(|((one, _), _)| *one == place);
            let entries: Vec<_> = entries.map(|((_, key), value)| (key.clone(), Digest::of(value))).collect();
            self.book.read(place, entries);
        }
    }

    /// Does all there is to do; answers how many tasks that were and the modules that are over with.
    fn settle(&mut self) -> (usize, Vec<String>) {
        let (mut count, mut over) = (0, Vec::new());
        loop {
            let tasks = self.book.next(NOW);
            if tasks.is_empty() {
                return (count, over);
            }
            for task in tasks {
                count += 1;
                let at = (task.place, task.key.clone());
                match task.act.clone() {
                    Act::Put(value) => drop(self.buckets.insert(at, value)),
                    Act::Delete => drop(self.buckets.remove(&at)),
                    Act::Report(value) => {
                        self.said.push(Report::read(&value).unwrap().outcome.as_str().to_owned());
                        self.buckets.insert(at, value);
                    }
                    Act::Farewell(value) => {
                        self.said.push(Report::read(&value).unwrap().outcome.as_str().to_owned());
                        self.buckets.remove(&at);
                    }
                }
                over.extend(self.book.done(&task, true));
            }
        }
    }

    fn keys(&self, place: Place) -> Vec<&str> {
        self.buckets.keys().filter(|(one, _)| *one == place).map(|(_, key)| key.as_str()).collect()
    }
}

fn need(name: &str) -> Need {
    Need {
        node: "web1".to_owned(),
        module: "forge".to_owned(),
        kind: "config".to_owned(),
        name: name.to_owned(),
        owner: None,
        by: Vec::new(),
    }
}

fn item(collection: &str) -> (String, Arc<Item>) {
    let item = Item {
        node: "web1".to_owned(),
        collection: collection.to_owned(),
        contributor: "forge".to_owned(),
        text: "x".to_owned(),
    };
    (collection.to_owned(), Arc::new(item))
}

fn report(outcome: Outcome) -> Arc<Report> {
    let (node, module, run) = ("web1".to_owned(), "forge".to_owned(), "run2".to_owned());
    Arc::new(Report { node, module, run, revision: 3, at: NOW, outcome })
}

fn waiting() -> Records {
    Records {
        needs: Some(Arc::new(vec![need("a"), need("b")])),
        items: Some(Items {
            keep: BTreeSet::from(["kept".to_owned(), "filled".to_owned()]),
            filled: BTreeMap::from([item("filled")]),
        }),
        report: Some(report(Outcome::Waiting { waiting: Vec::new() })),
        is_gone: false,
    }
}

fn record(world: &mut World, records: Records) {
    world.book.record("forge".to_owned(), Some(records));
}

#[test]
fn what_is_there_becomes_what_is_to_be_there() {
    let mut world = World::new()
        .holds(Place::Needs, "web1.forge.config.a")
        .holds(Place::Needs, "web1.forge.config.old")
        .holds(Place::Needs, "web1.hub.config.a")
        .holds(Place::Items, "web1.kept.forge")
        .holds(Place::Items, "web1.dropped.forge")
        .holds(Place::Items, "web1.dropped.hub");
    record(&mut world, waiting());
    assert_eq!(world.settle().0, 0, "nothing is done before it is known what lies there");
    world.read();
    assert_eq!(world.settle().0, 6);
    assert_eq!(world.keys(Place::Needs), ["web1.forge.config.a", "web1.forge.config.b", "web1.hub.config.a"]);
    assert_eq!(world.keys(Place::Items), ["web1.dropped.hub", "web1.filled.forge", "web1.kept.forge"]);
    assert_eq!(world.said, ["waiting"]);
    assert!(world.book.is_idle());
    world.read();
    record(&mut world, waiting());
    assert_eq!(world.settle().0, 0, "what lies there is not written again");
}

#[test]
fn what_was_not_said_in_this_run_is_left_as_it_is() {
    let mut world =
        World::new().holds(Place::Needs, "web1.forge.config.a").holds(Place::Items, "web1.kept.forge");
    world.read();
    record(&mut world, Records { report: waiting().report, ..Records::default() });
    assert_eq!(world.settle().0, 1);
    assert_eq!(world.keys(Place::Needs).len() + world.keys(Place::Items).len(), 2);
}

#[test]
fn a_module_that_is_gone_leaves_nothing_and_says_so() {
    let mut world = World::new();
    world.read();
    record(&mut world, waiting());
    world.settle();
    record(&mut world, Records { report: Some(report(Outcome::Removed)), ..waiting() });
    assert_eq!(world.settle().0, 0, "it is said with the rest");
    record(
        &mut world,
        Records { report: Some(report(Outcome::Removed)), is_gone: true, ..Records::default() },
    );
    assert_eq!(world.settle(), (4, vec!["forge".to_owned()]));
    assert!(world.buckets.is_empty());
    assert_eq!(world.said, ["waiting", "removed"]);
    assert!(world.book.is_idle() && world.book.strangers().is_empty());
}

#[test]
fn a_module_that_an_earlier_run_left_is_a_stranger_until_it_is_parted_with() {
    let mut world =
        World::new().holds(Place::Reports, "web1.forge").holds(Place::Needs, "web1.forge.config.a");
    world.read();
    assert_eq!(world.book.strangers(), BTreeSet::from(["forge".to_owned()]));
    record(&mut world, Records { is_gone: true, ..Records::default() });
    world.settle();
    assert!(world.buckets.is_empty());
    assert_eq!(world.said, ["removed"]);
}

#[test]
fn what_fails_is_tried_again_and_a_key_is_written_by_one_at_a_time() {
    let mut world = World::new();
    world.read();
    record(&mut world, Records { needs: Some(Arc::new(vec![need("a")])), ..Records::default() });
    let tasks = world.book.next(NOW);
    assert_eq!(tasks.len(), 1);
    record(&mut world, Records { needs: Some(Arc::new(vec![need("a")])), ..Records::default() });
    assert_eq!(world.book.next(NOW), [], "it is open");
    assert_eq!(world.book.done(&tasks[0], false), None);
    assert!(!world.book.is_idle());
    assert_eq!(world.book.next(NOW), [], "not at once");
    world.book.again();
    assert_eq!(world.settle().0, 1);
    assert!(world.book.is_idle());
}

#[test]
fn many_needs_are_written_in_parts() {
    let mut world = World::new();
    world.read();
    let needs = (0..200).map(|number| need(&format!("n{number}"))).collect();
    record(&mut world, Records { needs: Some(Arc::new(needs)), ..Records::default() });
    assert_eq!(world.book.next(NOW).len(), AT_ONCE);
    let mut world = World::new();
    world.read();
    let needs = (0..200).map(|number| need(&format!("n{number}"))).collect();
    record(&mut world, Records { needs: Some(Arc::new(needs)), ..Records::default() });
    assert_eq!(world.settle().0, 200);
}
