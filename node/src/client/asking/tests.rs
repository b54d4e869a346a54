use quartermaster_proto::time::WallClock;
use zeroize::Zeroizing;

use super::*;

const A: &str = "own/forge/a";

struct Drive {
    asking: Asking,
    now: Duration,
    asked: Vec<String>,
    told: Vec<String>,
    older: usize,
    wake: Option<Duration>,
}

impl Drive {
    fn new(names: &[&str]) -> Self {
        let mut drive = Self {
            asking: Asking::new(1),
            now: Duration::ZERO,
            asked: Vec::new(),
            told: Vec::new(),
            older: 0,
            wake: None,
        };
        drive.want(names, 1);
        drive
    }

    fn want(&mut self, names: &[&str], revision: u64) {
        let wants = names.iter().map(|name| (name.parse().unwrap(), revision)).collect();
        self.handle(AskingEvent::Want(wants));
    }

    fn handle(&mut self, event: AskingEvent) {
        let seconds = i64::try_from(self.now.as_secs()).unwrap();
        let now = Moment { mono: self.now, wall: WallClock::from_seconds(seconds) };
        self.wake = None;
        for effect in self.asking.handle(now, event) {
            match effect {
                AskingEffect::Ask(name, revision) => self.asked.push(format!("{name}@{revision}")),
                AskingEffect::Tell(name, found) => self.told.push(match found {
                    Found::Here(Stored::Secret(value)) => {
                        format!("{name}={}", String::from_utf8_lossy(value.as_bytes()))
                    }
                    Found::Missing(why) => format!("{name} {}", why.as_str()),
                    Found::Refused { reason, retry_at } => {
                        format!("{name} refused {reason} until {}", retry_at.unwrap().seconds())
                    }
                    other @ Found::Here(_) => panic!("{other:?}"),
                }),
                AskingEffect::WakeAt(at) => self.wake = Some(at),
                AskingEffect::Older { .. } => self.older += 1,
            }
        }
    }

    fn answer(&mut self, answer: Answer) {
        self.handle(AskingEvent::Answered(A.parse().unwrap(), answer));
    }

    fn value(&mut self, value: &str, version: u64) {
        self.answer(Answer::Value(Value::bytes(Zeroizing::new(value.as_bytes().to_vec())), version));
    }

    fn changed(&mut self, version: u64) {
        self.handle(AskingEvent::Changed(A.parse().unwrap(), version));
    }

    /// Passes time; the clock wakes the asking when it asked for it.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.wake.filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.handle(AskingEvent::Woke);
        }
        self.now = end;
    }

    #[track_caller]
    fn check(&mut self, asked: &[&str], told: &[&str]) {
        assert_eq!(
            (std::mem::take(&mut self.asked), std::mem::take(&mut self.told)),
            (owned(asked), owned(told))
        );
    }
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

const ASK: &str = "own/forge/a@1";

#[test]
fn a_value_is_asked_for_once_a_run() {
    let mut drive = Drive::new(&[A]);
    drive.check(&[ASK], &[]);
    drive.value("x", 3);
    drive.check(&[], &["own/forge/a=x"]);
    drive.want(&[A], 7);
    drive.want(&[A], 8);
    drive.handle(AskingEvent::BusBack);
    drive.pass(Duration::from_hours(1));
    drive.check(&[], &[]);
    assert!(matches!(drive.asking.known(&A.parse().unwrap()), Some(Found::Here(_))));
}

#[test]
fn it_is_asked_again_when_it_changed_and_the_old_one_serves_meanwhile() {
    let mut drive = Drive::new(&[A]);
    drive.value("x", 3);
    drive.changed(3);
    drive.changed(2);
    drive.check(&[ASK], &["own/forge/a=x"]);
    drive.changed(4);
    drive.check(&[ASK], &[]);
    drive.answer(Answer::Nothing);
    drive.check(&[], &[]);
    drive.pass(Duration::from_secs(2));
    drive.check(&[ASK], &[]);
    drive.value("y", 4);
    drive.check(&[], &["own/forge/a=y"]);
}

#[test]
fn a_change_while_a_question_is_open_asks_once_more() {
    let mut drive = Drive::new(&[A]);
    for version in 2..12 {
        drive.changed(version);
    }
    drive.check(&[ASK], &[]);
    drive.value("x", 1);
    drive.check(&[ASK], &["own/forge/a=x"]);
    drive.value("y", 11);
    drive.check(&[], &["own/forge/a=y"]);
}

#[test]
fn the_word_of_a_change_that_is_slower_than_its_answer_asks_for_nothing() {
    let mut drive = Drive::new(&[A]);
    drive.changed(3);
    drive.value("x", 3);
    drive.changed(3);
    drive.check(&[ASK], &["own/forge/a=x"]);
}

#[test]
fn an_older_value_is_not_used_and_said() {
    let mut drive = Drive::new(&[A]);
    drive.value("x", 3);
    drive.changed(4);
    drive.value("old", 2);
    drive.check(&[ASK, ASK], &["own/forge/a=x"]);
    assert_eq!(drive.older, 1);
}

#[test]
fn silence_and_absence_are_asked_again_with_growing_delays() {
    for (answer, told, total, times) in [
        (Answer::Nothing, "own/forge/a no-answer", 60, 5..9),
        (Answer::Absent, "own/forge/a absent", 120, 5..9),
    ] {
        let mut drive = Drive::new(&[A]);
        let end = Duration::from_secs(total);
        let mut asked = 0;
        drive.answer(answer.clone());
        while let Some(at) = drive.wake.filter(|at| *at <= end) {
            drive.pass(at.saturating_sub(drive.now));
            asked += 1;
            drive.answer(answer.clone());
        }
        assert!(times.contains(&asked), "{asked} in {total} s");
        drive.asked.clear();
        drive.check(&[], &[told]);
    }
}

#[test]
fn a_refusal_is_asked_again_after_ten_minutes_or_for_a_new_plan() {
    let mut drive = Drive::new(&[A]);
    drive.answer(Answer::Refused("no".to_owned()));
    drive.check(&[ASK], &["own/forge/a refused no until 600"]);
    drive.handle(AskingEvent::BusBack);
    drive.pass(Duration::from_secs(599));
    drive.want(&[A], 1);
    drive.check(&[], &[]);
    drive.pass(Duration::from_secs(1));
    drive.check(&[ASK], &[]);
    drive.answer(Answer::Refused("no".to_owned()));
    drive.check(&[], &["own/forge/a refused no until 1200"]);
    drive.want(&[A], 2);
    drive.check(&["own/forge/a@2"], &[]);
    drive.value("x", 1);
    drive.check(&[], &["own/forge/a=x"]);
}

#[test]
fn a_value_that_is_refused_or_absent_now_is_said() {
    let mut drive = Drive::new(&[A]);
    drive.value("x", 3);
    drive.changed(4);
    drive.answer(Answer::Absent);
    drive.check(&[ASK, ASK], &["own/forge/a=x", "own/forge/a absent"]);
    drive.changed(5);
    drive.check(&[ASK], &[]);
}

#[test]
fn the_return_of_the_bus_asks_the_silent_at_once() {
    let mut drive = Drive::new(&[A]);
    for _ in 0..6 {
        drive.answer(Answer::Nothing);
        drive.pass(Duration::from_secs(40));
    }
    drive.asked.clear();
    drive.answer(Answer::Nothing);
    drive.handle(AskingEvent::BusBack);
    assert_eq!(drive.asked, [ASK]);
}

#[test]
fn at_most_sixteen_questions_are_open() {
    let names: Vec<String> = (0..40).map(|at| format!("own/forge/{at:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut drive = Drive::new(&names);
    assert_eq!((drive.asked.len(), drive.asking.open().len()), (16, 16));
    for (answered, name) in names.iter().enumerate() {
        assert_eq!(drive.asked.len(), (16 + answered).min(40));
        drive.handle(AskingEvent::Answered(name.parse().unwrap(), Answer::Absent));
    }
    assert_eq!(drive.asked.len(), 40);
}

#[test]
fn what_nobody_wants_any_more_is_left_alone() {
    let mut drive = Drive::new(&[A]);
    drive.answer(Answer::Absent);
    drive.want(&[], 2);
    drive.asked.clear();
    drive.pass(Duration::from_hours(1));
    drive.changed(9);
    assert!(drive.asked.is_empty());
    drive.want(&[A], 3);
    assert_eq!(drive.asked, ["own/forge/a@3"]);
}

#[test]
fn what_nobody_wanted_for_a_while_is_asked_for_again_before_it_serves() {
    let mut drive = Drive::new(&[A]);
    drive.value("x", 3);
    drive.want(&[], 1);
    drive.asked.clear();
    drive.want(&[A], 2);
    // Nobody tells an account of the change of a value that no plan of it names.
    assert_eq!(drive.asked, ["own/forge/a@2"]);
    assert_eq!(drive.asking.known(&A.parse().unwrap()), None, "it may be an older one");
    drive.told.clear();
    drive.value("y", 4);
    assert_eq!(drive.told, ["own/forge/a=y"]);
}

#[test]
fn what_nobody_wanted_for_a_while_serves_where_the_vault_has_nothing_better() {
    for (answer, told) in [
        (Answer::Nothing, "own/forge/a=x"),
        (Answer::Value(Value::bytes(Zeroizing::new(b"older".to_vec())), 2), "own/forge/a=x"),
        (Answer::Absent, "own/forge/a absent"),
    ] {
        let mut drive = Drive::new(&[A]);
        drive.value("x", 3);
        drive.want(&[], 1);
        drive.want(&[A], 2);
        drive.told.clear();
        drive.answer(answer);
        assert_eq!(drive.told, [told]);
    }
    // A change that was heard of meanwhile leaves nothing to serve.
    let mut drive = Drive::new(&[A]);
    drive.value("x", 3);
    drive.want(&[], 1);
    drive.changed(4);
    drive.want(&[A], 2);
    drive.told.clear();
    drive.answer(Answer::Nothing);
    assert_eq!(drive.told, ["own/forge/a no-answer"]);
}

#[test]
fn a_vault_that_was_set_back_is_asked_again_where_nothing_is_held() {
    let mut drive = Drive::new(&[A]);
    drive.value("x", 3);
    drive.want(&[], 1);
    drive.changed(4);
    drive.want(&[A], 2);
    drive.asked.clear();
    drive.told.clear();
    drive.answer(Answer::Value(Value::bytes(Zeroizing::new(b"older".to_vec())), 2));
    assert_eq!(drive.told, ["own/forge/a no-answer"], "the older value is not used");
    drive.pass(Duration::from_mins(10));
    assert!(!drive.asked.is_empty(), "and it is asked for again");
}

#[test]
fn a_change_of_what_nobody_wants_now_is_asked_for_by_who_wants_it_next() {
    let mut drive = Drive::new(&[A]);
    drive.value("x", 3);
    drive.want(&[], 1);
    drive.changed(4);
    drive.asked.clear();
    drive.want(&[A], 1);
    assert_eq!(drive.asked, [ASK]);
}
