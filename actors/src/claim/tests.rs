use std::time::Duration;

use quartermaster_proto::choria::identity::Identity;
use tokio::time::Instant;

use super::board::{Board, Chance, Turn};
use super::record::{Record, RecordState};

const LIVES: Duration = Duration::from_mins(1);
const INTERVAL: Duration = Duration::from_mins(1);

/// The board of p1 among p1, p2 and p3, and a clock.
struct Bench {
    board: Board,
    now: Instant,
    seq: u64,
}

fn host(number: usize) -> Identity {
    Identity::parse(&format!("web{number}.example.net")).unwrap()
}

fn says(by: &str, state: RecordState) -> Record {
    Record { by: by.to_owned(), life: format!("life of {by}"), state }
}

impl Bench {
    fn among(members: &[&str]) -> Self {
        Self::of("p1", members)
    }

    fn of(own: &str, members: &[&str]) -> Self {
        let mut board = Board::new(own, &format!("life of {own}"), 1000, INTERVAL);
        board.set_lives(LIVES);
        let now = Instant::now();
        for member in members {
            board.hear_member(member, &says(member, RecordState::Member), now);
        }
        Self { board, now, seq: 0 }
    }

    fn three() -> Self {
        Self::among(&["p2", "p3"])
    }

    fn pass(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }

    fn hear(&mut self, host: &Identity, by: &str, state: RecordState) -> bool {
        self.seq += 1;
        self.board.hear(host, &says(by, state), self.seq, self.now)
    }

    fn notice(&mut self, host: &Identity) -> Turn {
        self.board.notice(host, self.now)
    }

    /// A host that is p1's first, or another's.
    fn host_of(&mut self, own: bool) -> Identity {
        (1..1000).map(host).find(|host| (self.notice(host) == Turn::Ours) == own).unwrap()
    }

    fn taken(&mut self, room: usize) -> Vec<Identity> {
        self.board.take_over(room, 9, self.now)
    }
}

#[test]
fn every_host_is_one_instances_first_and_the_shares_are_even() {
    let names = ["p1", "p2", "p3"];
    let mut benches: Vec<_> = names
        .iter()
        .map(|own| Bench::of(own, &names.iter().filter(|name| *name != own).copied().collect::<Vec<_>>()))
        .collect();
    let mut shares = [0_usize; 3];
    for number in 0..900 {
        let firsts: Vec<_> = (0..3).filter(|who| benches[*who].notice(&host(number)) == Turn::Ours).collect();
        assert_eq!(firsts.len(), 1, "{number}");
        shares[firsts[0]] += 1;
    }
    assert!(shares.iter().all(|share| share.abs_diff(300) <= 60), "{shares:?}");
}

#[test]
fn alone_every_host_is_ours() {
    let mut bench = Bench::among(&[]);
    assert!((1..100).all(|number| bench.notice(&host(number)) == Turn::Ours));
}

#[test]
fn another_ones_host_is_taken_after_a_while_if_there_is_room_and_nobody_has_begun() {
    let mut bench = Bench::three();
    let theirs = bench.host_of(false);
    assert_eq!(bench.taken(9), []);
    bench.pass(3);
    assert_eq!(bench.taken(0), []);
    assert_eq!(bench.taken(9), std::slice::from_ref(&theirs));
    assert_eq!(bench.taken(9), [], "once");
    bench.notice(&theirs);
    bench.hear(&theirs, "p2", RecordState::Working);
    bench.pass(30);
    assert_eq!(bench.taken(9), [], "p2 is at work on it");
    bench.hear(&theirs, "p2", RecordState::Free);
    assert_eq!(bench.taken(9), [theirs]);
}

#[test]
fn a_claim_that_nobody_renews_is_no_claim_any_more() {
    let mut bench = Bench::three();
    let theirs = bench.host_of(false);
    bench.hear(&theirs, "p2", RecordState::Working);
    assert_eq!(bench.board.chance(&theirs, false, bench.now), Chance::Taken);
    bench.pass(59);
    bench.notice(&theirs);
    assert_eq!(bench.taken(9), []);
    bench.pass(1);
    assert_eq!(bench.board.chance(&theirs, false, bench.now), Chance::After(0));
    assert_eq!(bench.taken(9), [theirs]);
}

#[test]
fn a_host_that_another_is_done_with_is_dropped_and_left_alone() {
    let mut bench = Bench::three();
    let ours = bench.host_of(true);
    assert!(bench.hear(&ours, "p2", RecordState::Done), "whoever has it in a queue shall drop it");
    assert_eq!(bench.notice(&ours), Turn::Done, "it answers until it is down");
    assert_eq!(bench.board.chance(&ours, false, bench.now), Chance::Taken);
    bench.pass(16);
    assert_eq!(bench.notice(&ours), Turn::Theirs, "back so soon, it is p2's to look after");
    bench.pass(44);
    assert!(bench.taken(9).contains(&ours), "unless p2 does not");
}

#[test]
fn what_this_instance_left_unfinished_in_an_earlier_life_is_its_own_and_what_it_was_done_with_is_done() {
    let mut bench = Bench::three();
    let host = bench.host_of(true);
    let earlier = |state| Record { by: "p1".to_owned(), life: "earlier".to_owned(), state };
    assert!(!bench.board.hear(&host, &earlier(RecordState::Working), 7, bench.now));
    assert_eq!(bench.board.chance(&host, false, bench.now), Chance::After(7));
    bench.board.hear(&host, &earlier(RecordState::Committed), 8, bench.now);
    assert_eq!(bench.board.chance(&host, false, bench.now), Chance::Taken, "it may be about to restart");
    assert_eq!(bench.board.chance(&host, true, bench.now), Chance::After(8), "unless the journal knows");
    assert!(bench.board.hear(&host, &earlier(RecordState::Done), 9, bench.now));
    assert_eq!(bench.board.chance(&host, false, bench.now), Chance::Taken);
    bench.board.hear(&host, &says("p1", RecordState::Done), 10, bench.now);
    assert_eq!(
        bench.board.chance(&host, false, bench.now),
        Chance::After(10),
        "this life knows what it does"
    );
}

#[test]
fn old_news_change_nothing() {
    let mut bench = Bench::three();
    let host = bench.host_of(true);
    bench.board.hear(&host, &says("p2", RecordState::Free), 9, bench.now);
    bench.board.hear(&host, &says("p2", RecordState::Working), 8, bench.now);
    assert_eq!(bench.board.chance(&host, false, bench.now), Chance::After(9));
}

#[test]
fn the_hosts_of_an_instance_that_left_or_fell_silent_are_others_at_once() {
    let mut bench = Bench::among(&["p2"]);
    let theirs = bench.host_of(false);
    assert_eq!(bench.board.members(bench.now), ["p1", "p2"]);
    bench.board.hear_member("p2", &says("p2", RecordState::Free), bench.now);
    assert_eq!(bench.board.members(bench.now), ["p1"]);
    assert_eq!(bench.taken(9), std::slice::from_ref(&theirs));
    let mut bench = Bench::among(&["p2"]);
    bench.notice(&theirs);
    bench.pass(60);
    assert_eq!(bench.board.members(bench.now), ["p1"]);
    assert_eq!(bench.taken(9), [theirs]);
}

#[test]
fn a_host_of_another_that_is_not_seen_again_is_forgotten() {
    let mut bench = Bench::three();
    let theirs = bench.host_of(false);
    bench.pass(59);
    bench.notice(&theirs);
    bench.pass(119);
    bench.taken(0);
    assert_eq!(bench.board.kept(), 1);
    bench.pass(1);
    bench.taken(0);
    assert_eq!(bench.board.kept(), 0);
}

#[test]
fn no_more_hosts_are_kept_in_mind_than_there_is_room_for() {
    let mut bench = Bench::three();
    let kept = (0..5000).filter(|number| bench.notice(&host(*number)) == Turn::Theirs).count();
    assert_eq!((kept, bench.board.kept()), (1000, 1000));
    assert_eq!(bench.board.keep(&host(9999), bench.now), Turn::Full);
}

#[test]
fn only_so_many_hosts_are_taken_from_an_instance_that_is_there() {
    let mut bench = Bench::among(&["p2"]);
    let theirs = (0..200).filter(|number| bench.notice(&host(*number)) == Turn::Theirs).count();
    bench.pass(3);
    assert_eq!(bench.board.take_over(50, 2, bench.now).len(), 2);
    bench.board.hear_member("p2", &says("p2", RecordState::Free), bench.now);
    assert_eq!(bench.board.take_over(50, 2, bench.now).len(), 50, "one that left is another matter");
    assert_eq!(bench.board.take_over(500, 2, bench.now).len(), theirs - 52);
}
