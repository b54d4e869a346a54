//! Nothing is left behind: processes that leave their group, defunct entries, file descriptors. One test, because it changes the
//! whole process and counts its children.

#[cfg(test)]
mod helper_support;

use std::num::NonZeroUsize;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use actix::Actor as _;
use helper_support::{Script, alive_in, children, defunct_children, eventually, open_files, script};
use quartermaster_actors::control::RunState;
use quartermaster_actors::helper::{
    HelperError, HelperHandle, HelperParts, HelperRun, HelperRunner, Orphans, RunHelper,
};
use quartermaster_actors::supervise::Slot;
use quartermaster_proto::choria::Identity;
use tokio::sync::watch;

/// What the helper does depends on the last digit of the host's name. All leave something running.
const KINDS: &str = r#"
read line
answer='{"defer":true}'
case $line in
  *0.*) echo "$answer" ;;
  *1.*) (setsid sleep 600 >/dev/null 2>&1 </dev/null &) ; echo "$answer" ;;
  *2.*) setsid sh -c 'sleep 600 & sleep 600 & exit' >/dev/null 2>&1 & echo "$answer" ;;
  *3.*) exit 0 ;;
  *4.*) (setsid sleep 600 &) ; echo "$answer" ;;
  *5.*) env -i setsid sleep 600 >/dev/null 2>&1 & echo "$answer" ;;
  *6.*) (true &) ; (setsid true &) ; exit 4 ;;
  *7.*) setsid setsid setsid sleep 600 >/dev/null 2>&1 & exit 5 ;;
  *8.*) kill -9 $$ ;;
  *9.*) (setsid sh -c 'trap "" TERM; sleep 600' &) ; trap '' TERM; sleep 600 ;;
esac"#;

struct Bench {
    script: Script,
    handle: HelperHandle,
    _state: watch::Sender<RunState>,
}

#[cfg(test)]
impl Bench {
    fn start(orphans: Orphans) -> Self {
        let mut script = script(KINDS).within(Duration::from_secs(3));
        script.settings.grace = Duration::from_millis(50);
        script.settings.slots = NonZeroUsize::new(8).unwrap();
        script.settings.queue = 1_000;
        let (state, run_state) = watch::channel(RunState::working());
        let parts = Arc::new(HelperParts::new(script.settings.clone(), run_state, Arc::new(|_| {}), orphans));
        let slot = Slot::new("helper", 16);
        slot.set(HelperRunner::new(Arc::clone(&parts), None).start());
        Self { script, handle: HelperHandle::new(slot, parts), _state: state }
    }

    async fn run(&self, hosts: std::ops::Range<u32>) -> Vec<Result<HelperRun, HelperError>> {
        futures::future::join_all(hosts.map(|number| {
            let identity = Identity::parse(&format!("h{number}.example.net")).unwrap();
            let input = format!("{identity}\n").into_bytes();
            self.handle.run(RunHelper { identity, input })
        }))
        .await
    }
}

#[actix::test]
async fn five_hundred_runs_leave_no_process_no_defunct_entry_and_no_descriptor() {
    let orphans = Orphans::adopt().unwrap();
    let bench = Bench::start(orphans.clone());
    // A child of somebody else's that exits at once and is waited for only later. It is in the books.
    let (mut neighbour, entry) = orphans.own(|| Command::new("true").spawn()).unwrap();

    bench.run(0..10).await;
    eventually("the first ten left nothing", || alive_in(bench.script.dir.path()).is_empty()).await;
    // And one that nobody was told of.
    let mut stranger = Command::new("true").spawn().unwrap();
    bench.run(10..11).await;
    assert!(stranger.wait().unwrap().success(), "who waits for a child within seconds gets its status");
    let files = open_files();

    let results = bench.run(20..520).await;
    let answered = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(answered, 250, "kinds 0, 1, 2, 4 and 5 answer");
    let timed_out =
        results.iter().filter(|result| matches!(result, Err(HelperError::TimedOut { .. }))).count();
    assert_eq!(timed_out, 50, "kind 9 does not");

    // Kind 5 bears no mark, so it is looked for among our children.
    eventually("no process is left", || alive_in(bench.script.dir.path()).is_empty()).await;
    let neighbour_id = i32::try_from(neighbour.id()).unwrap();
    eventually("nor a child but the neighbour's", || children().keys().all(|pid| *pid == neighbour_id)).await;
    assert!(neighbour.wait().unwrap().success(), "a child in the books is never taken from its owner");
    drop(entry);
    assert_eq!(defunct_children(), 0);
    assert!(open_files() <= files, "{} > {files}", open_files());

    // One that nobody claims at all is reaped in the end.
    start_and_forget();
    eventually("the unclaimed child is reaped", || children().is_empty()).await;
}

#[expect(clippy::zombie_processes, reason = "that nobody waits for it is what is tested")]
#[cfg(test)]
fn start_and_forget() {
    Command::new("true").spawn().unwrap();
}
