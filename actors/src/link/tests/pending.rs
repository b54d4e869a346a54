use std::time::{Duration, Instant};

use quartermaster_proto::choria::envelope::{Reply, seal_reply};
use quartermaster_proto::choria::{Generation, Identity};
use quartermaster_proto::time::WallClock;

use super::support::HOST;
use crate::link::pending::{Expected, Heard, MAX_EXAMINED, Pending};
use crate::link::{CallError, ConflictFlag};

const ID: &str = "51255f1a19cb456fb666b4e55870a94b";
const OTHER_ID: &str = "61255f1a19cb456fb666b4e55870a94b";
const DEADLINE: Duration = Duration::from_secs(22);
const GRACE: Duration = Duration::from_secs(2);

struct Bench {
    table: Pending<u8>,
    flag: ConflictFlag,
    start: Instant,
}

impl Bench {
    fn new() -> Self {
        let mut bench = Self {
            table: Pending::new(Generation::V1, 100, GRACE, Duration::from_mins(1)),
            flag: ConflictFlag::new(),
            start: Instant::now(),
        };
        assert!(bench.register(ID));
        bench
    }

    fn register(&mut self, id: &str) -> bool {
        let expected = Expected {
            identity: Identity::parse(HOST).unwrap(),
            agent: "choria_provision",
            action: "jwt",
            conflict: self.flag.clone(),
            waiter: 7,
        };
        self.table.register(id, expected, self.start, DEADLINE).is_ok()
    }

    fn hear(&mut self, bytes: &[u8], seconds: u64) -> Heard<u8> {
        self.table.handle(ID, bytes, self.start + Duration::from_secs(seconds))
    }

    /// Which waiters end at `seconds` after the start, and how.
    fn expire(&mut self, seconds: u64) -> Vec<(u8, CallError)> {
        self.table.expire(self.start + Duration::from_secs(seconds))
    }
}

fn reply() -> Reply {
    Reply {
        request: ID.to_owned(),
        sender: HOST.to_owned(),
        agent: "choria_provision".to_owned(),
        time: WallClock::from_seconds(1_795_976_869),
        payload: b"one".to_vec(),
    }
}

fn bytes(change: impl FnOnce(&mut Reply)) -> Vec<u8> {
    let mut reply = reply();
    change(&mut reply);
    seal_reply(Generation::V1, &reply, None).unwrap()
}

/// The reply must be refused with a reason that holds `why`, and the right one still counts afterwards.
fn check_rejected(bytes_of_it: &[u8], why: &str) {
    let mut bench = Bench::new();
    match bench.hear(bytes_of_it, 1) {
        Heard::Rejected { reason, .. } => assert!(reason.contains(why), "`{reason}` should say `{why}`"),
        other => panic!("it counted: {other:?}"),
    }
    assert!(matches!(bench.hear(&bytes(|_| {}), 2), Heard::Answered { .. }), "the true reply still counts");
    assert!(!bench.flag.is_raised(), "rubbish raises no flag");
}

#[test]
fn the_right_reply_counts() {
    let mut bench = Bench::new();
    match bench.hear(&bytes(|_| {}), 3) {
        Heard::Answered { waiter, answer } => {
            assert_eq!((waiter, answer.payload.as_slice()), (7, b"one".as_slice()));
            assert_eq!(answer.took, Duration::from_secs(3));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(bench.table.waiting(), 0);
    assert_eq!(bench.expire(1000), []);
}

#[test]
fn another_hosts_reply_does_not_count() {
    check_rejected(
        &bytes(|reply| reply.sender = "evil.example.net".to_owned()),
        "sender is `evil.example.net`",
    );
}

#[test]
fn a_reply_whose_layers_name_different_senders_does_not_count() {
    let text = String::from_utf8(bytes(|_| {})).unwrap();
    let forged = text.replacen(&format!(r#""mc_sender":"{HOST}""#), r#""mc_sender":"evil.example.net""#, 1);
    assert_ne!(text, forged);
    check_rejected(forged.as_bytes(), "sender is `evil.example.net`");
}

#[test]
fn another_agents_reply_does_not_count() {
    check_rejected(&bytes(|reply| reply.agent = "rpcutil".to_owned()), "agent `rpcutil`");
}

#[test]
fn a_reply_to_another_request_does_not_count() {
    check_rejected(&bytes(|reply| reply.request = OTHER_ID.to_owned()), "another request");
}

#[test]
fn a_reply_of_the_other_generation_does_not_count() {
    check_rejected(&seal_reply(Generation::V2, &reply(), None).unwrap(), "generation");
}

#[test]
fn a_wrong_hash_does_not_count() {
    // The true reply's bytes with one character of the payload changed inside the secure layer.
    use base64::Engine as _;
    let engine = base64::engine::general_purpose::STANDARD;
    let mut transport: serde_json::Value = serde_json::from_slice(&bytes(|_| {})).unwrap();
    let secure = engine.decode(transport["data"].as_str().unwrap()).unwrap();
    let forged = String::from_utf8(secure).unwrap().replacen("one", "two", 1);
    assert!(forged.contains("two"));
    transport["data"] = engine.encode(forged).into();
    check_rejected(transport.to_string().as_bytes(), "hash");
}

#[test]
fn rubbish_does_not_count() {
    check_rejected(b"", "");
    check_rejected(b"\xff\xfe", "");
    check_rejected(br#"{"protocol":"choria:transport:1","data":"e30=","headers":null}"#, "");
}

#[test]
fn a_call_with_only_invalid_replies_ends_soon_and_says_why() {
    let mut bench = Bench::new();
    bench.hear(b"rubbish", 1);
    bench.hear(&bytes(|reply| reply.agent = "rpcutil".to_owned()), 2);
    assert_eq!(bench.expire(2), [], "two seconds of grace from the first");
    match bench.expire(3).as_slice() {
        [(7, CallError::Malformed { reason })] => {
            assert!(reason.contains("rpcutil"), "the last reason: {reason}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_invalid_reply_never_moves_the_end_back() {
    let mut bench = Bench::new();
    bench.hear(b"rubbish", 21);
    assert_eq!(bench.expire(22).len(), 1);
}

#[test]
fn silence_ends_at_the_deadline() {
    let mut bench = Bench::new();
    assert_eq!(bench.expire(21), []);
    assert_eq!(bench.expire(22), [(7, CallError::TimedOut { after: DEADLINE })]);
    assert!(matches!(bench.hear(&bytes(|_| {}), 23), Heard::Late));
}

#[test]
fn the_same_reply_twice_is_no_conflict() {
    let mut bench = Bench::new();
    bench.hear(&bytes(|_| {}), 1);
    assert_eq!(bench.hear(&bytes(|_| {}), 2), Heard::Repeated);
    assert!(!bench.flag.is_raised());
}

#[test]
fn a_second_different_reply_is_a_conflict() {
    let mut bench = Bench::new();
    bench.hear(&bytes(|_| {}), 1);
    let heard = bench.hear(&bytes(|reply| reply.payload = b"two".to_vec()), 2);
    assert!(matches!(heard, Heard::Conflict { action: "jwt", .. }), "{heard:?}");
    assert!(bench.flag.is_raised());
}

#[test]
fn after_its_cycle_an_answered_request_is_forgotten() {
    let mut bench = Bench::new();
    bench.hear(&bytes(|_| {}), 1);
    assert_eq!(bench.table.remembered(), 1);
    bench.flag = ConflictFlag::new();
    assert_eq!(bench.hear(&bytes(|reply| reply.payload = b"two".to_vec()), 2), Heard::Late);
    bench.expire(3);
    assert_eq!(bench.table.remembered(), 0);
}

#[test]
fn a_cycle_that_ended_quietly_leaves_nothing_behind() {
    let mut bench = Bench::new();
    bench.hear(&bytes(|_| {}), 1);
    bench.flag = ConflictFlag::new();
    bench.expire(3);
    assert_eq!(bench.table.remembered(), 0);
}

#[test]
fn an_answered_request_is_not_remembered_for_ever() {
    let mut bench = Bench::new();
    bench.hear(&bytes(|_| {}), 1);
    bench.expire(60);
    assert_eq!(bench.table.remembered(), 1);
    bench.expire(61);
    assert_eq!(bench.table.remembered(), 0);
}

#[test]
fn a_reply_to_a_request_that_was_given_up_is_noted_once() {
    let mut bench = Bench::new();
    assert_eq!(bench.expire(22).len(), 1);
    assert_eq!(bench.flag.late("jwt"), 0);
    assert!(matches!(bench.hear(b"rubbish", 23), Heard::Rejected { .. }));
    assert_eq!(bench.hear(&bytes(|_| {}), 30), Heard::Late);
    assert_eq!((bench.flag.late("jwt"), bench.flag.late("gen25519")), (1, 0));
    assert_eq!(bench.hear(&bytes(|_| {}), 31), Heard::Late);
    assert_eq!(bench.flag.late("jwt"), 1, "the same one again");
    assert!(!bench.flag.is_raised());
    bench.flag = ConflictFlag::new();
    bench.expire(100);
    assert_eq!(bench.table.remembered(), 0);
}

#[test]
fn a_flood_of_rubbish_is_not_looked_at_for_ever() {
    let mut bench = Bench::new();
    for _ in 0..MAX_EXAMINED {
        assert!(matches!(bench.hear(b"rubbish", 1), Heard::Rejected { .. }));
    }
    assert_eq!(bench.hear(b"rubbish", 1), Heard::Excess);
}

#[test]
fn a_full_table_gives_the_request_back() {
    let mut bench = Bench::new();
    bench.table = Pending::new(Generation::V1, 1, GRACE, DEADLINE);
    assert!(bench.register(ID));
    assert!(!bench.register(OTHER_ID));
    bench.table.withdraw(ID);
    assert!(bench.register(OTHER_ID));
}

#[test]
fn a_lost_connection_brings_every_end_closer_but_replies_still_count() {
    let mut bench = Bench::new();
    assert!(bench.register(OTHER_ID));
    bench.table.hasten(Duration::from_secs(8), bench.start + Duration::from_secs(1));
    assert!(matches!(bench.hear(&bytes(|_| {}), 5), Heard::Answered { .. }));
    assert_eq!(bench.expire(8), []);
    assert_eq!(bench.expire(9).len(), 1);
}
