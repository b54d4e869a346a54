//! A helper that is a provider, through the helper's runner.

use std::sync::Arc;
use std::time::Duration;

use actix::Actor as _;
use quartermaster_actors::child::Orphans;
use quartermaster_actors::control::RunState;
use quartermaster_actors::helper::{
    HelperError, HelperHandle, HelperParts, HelperRun, HelperRunner, HelperSettings, RunHelper,
};
use quartermaster_actors::supervise::Slot;
use quartermaster_proto::choria::Identity;
use tokio::sync::watch;

use super::support::{Bench, Site, eventually, limited, provider};

struct Helper {
    bench: Bench,
    handle: HelperHandle,
    state: watch::Sender<RunState>,
}

impl Helper {
    fn of(site: Site) -> Self {
        let bench = site.run();
        let (state, run_state) = watch::channel(RunState::working());
        let settings = HelperSettings::new("/opt/site-helper", Vec::new());
        let parts = HelperParts::new(settings, run_state, Arc::new(|_| {}), Orphans::unadopted());
        let parts = Arc::new(parts.provided(bench.handle.clone()));
        let slot = Slot::new("helper", 16);
        slot.set(HelperRunner::new(Arc::clone(&parts), None).start());
        Self { bench, handle: HelperHandle::new(slot, parts), state }
    }

    async fn ask(&self) -> Result<HelperRun, HelperError> {
        let input = b"{\"identity\":\"web1\",\"csr\":null,\"inventory\":\"{}\",\"jwt\":null}".to_vec();
        limited(self.handle.run(RunHelper { identity: Identity::parse("web1").unwrap(), input })).await
    }
}

const SCHEMA: &str = "\
attrs = {'identity': {'type': 'string'}, 'inventory': {'type': 'string'}, 'jwt': {'type': 'any'}}
schema = dict(LOOSE, actions={'provision': {'attrs': attrs, 'outputs': {'type': 'any'}}})
";

#[actix::test]
async fn its_outputs_are_the_reply_and_its_errors_name_the_key() {
    let text = format!(
        "{SCHEMA}\nanswers = [{{'msg': 'hello', 'defer': True}}, {{'configuration': {{'a': 1}}}}]\nserve(schema, lambda id, params: ok(id, {{'outputs': answers.pop(0)}}))"
    );
    let Some(site) = provider(&text) else { return };
    let helper = Helper::of(site);
    let run = helper.ask().await.unwrap();
    assert_eq!((run.reply.msg.as_str(), run.reply.defer, run.exited), ("hello", true, false));
    let error = helper.ask().await.unwrap_err().chain();
    assert!(
        error.contains("/opt/site-helper") && error.contains("`configuration[\"a\"]` should be a string"),
        "{error}"
    );
    let frame = helper.bench.received().into_iter().nth(2).unwrap();
    assert_eq!(
        frame,
        r#"{"id":3,"method":"execute","params":{"action":"provision","attrs":{"identity":"web1","inventory":"{}"}}}"#
    );
    helper.bench.close().await;
}

#[actix::test]
async fn a_host_that_waits_for_a_provider_which_is_started_again_is_let_go_by_a_pause() {
    let Some(site) = provider("note('starts'); sys.exit(1)") else { return };
    let site = site.with(|settings| {
        // Whatever part of it is drawn, the test is over before.
        settings.restart.min = Duration::from_hours(24 * 365);
        settings.restart.max = settings.restart.min;
    });
    let helper = Helper::of(site);
    let pause = async {
        eventually("it has crashed", || helper.bench.has_fact("Crashed")).await;
        helper.state.send_replace(RunState { leading: false, ..RunState::working() });
    };
    let (end, ()) = tokio::join!(helper.ask(), pause);
    let error = end.unwrap_err();
    assert!(matches!(&error, HelperError::Paused { .. }), "{error:?}");
    assert!(error.to_string().contains("/opt/site-helper"), "{error}");
    eventually("the call has left the provider's queue", || helper.bench.handle.snapshot().queued == 0).await;
    assert_eq!(helper.bench.file("starts").lines().count(), 1);
    helper.bench.close().await;
}
