//! What passes through unharmed: numbers, sets, maps, nulls, `any`; undo in all its forms; order and number of answers.

use std::time::Duration;

use futures::future::join_all;
use quartermaster_actors::provider::CallError;
use quartermaster_proto::provider::{AnyEncoding, Executed};

use super::support::{Bench, Site, executed, json, limited, members, provider, shown, undoable};

/// Answers with what it got, as it came: Python would make floats of numbers.
const MIRROR: &str = r#"
for line in sys.stdin:
    note("received", line.rstrip("\n"))
    frame = json.loads(line)
    if frame["method"] == "describe": ok(frame["id"], {"schema": SCHEMA})
    elif frame["method"] == "execute":
        attrs = line[line.index('"attrs":') + 8:line.rindex("}}")]
        raw('{"id":%d,"result":{"outputs":{"got":%s}}}\n' % (frame["id"], attrs))
    else: ok(frame["id"])
"#;

fn mirror(attrs: &str) -> Option<Site> {
    let schema = format!(
        r#"SCHEMA = {{"name":"m","protocol":"1","actions":{{"do":{{"attrs":{attrs},"outputs":{{"type":"any"}}}}}}}}"#
    );
    provider(&format!("{schema}\n{MIRROR}"))
}

/// What comes back of these attributes.
async fn back(bench: &Bench, attrs: &str) -> Result<String, CallError> {
    let outputs = limited(bench.handle.execute("do", members(attrs))).await?.outputs;
    Ok(outputs["got"].to_json())
}

#[actix::test]
async fn b18_numbers_keep_every_digit() {
    let Some(site) = mirror(r#"{"n": {"type": "number"}, "x": {"type": "any"}}"#) else { return };
    let bench = site.run();
    for number in
        ["9223372036854775808", "0.1", "123456789012345678901234567890", "-0.000000000000000000000000000001"]
    {
        let expected = format!(r#"{{"n":{number},"x":[{number}]}}"#);
        assert_eq!(back(&bench, &format!(r#"{{"n":{number},"x":[{number}]}}"#)).await.unwrap(), expected);
    }
    // The value is the same; on the wire there is never an exponent.
    let large = back(&bench, r#"{"n":1e400}"#).await.unwrap();
    assert_eq!(large, format!("{{\"n\":1{}}}", "0".repeat(400)));
    bench.close().await;
}

#[actix::test]
async fn b19_sets_and_maps_are_sorted_and_nulls_stay_where_they_mean_something() {
    let Some(site) = mirror(
        r#"{"s": {"type": "set(string)"}, "m": {"type": "map(number)"},
        "o": {"type": "object({a=string,b=optional(number)})"}, "l": {"type": "list(string)"}, "d": {"type": "number", "default": 7}}"#,
    ) else {
        return;
    };
    let bench = site.run();
    for (sent, expected) in [
        (r#"{"s":["b","a","b"]}"#, r#"{"d":7,"s":["a","b"]}"#),
        (r#"{"m":{"z":1,"a":2}}"#, r#"{"d":7,"m":{"a":2,"z":1}}"#),
        (r#"{"s":null,"d":null}"#, r#"{"d":7}"#),
        (r#"{"o":{"a":"x"},"d":1}"#, r#"{"d":1,"o":{"a":"x","b":null}}"#),
        (r#"{"l":["x",null]}"#, r#"{"d":7,"l":["x",null]}"#),
        (r#"{"l":[1,true]}"#, r#"{"d":7,"l":["1","true"]}"#),
    ] {
        assert_eq!(back(&bench, sent).await.unwrap(), expected, "{sent}");
    }
    let error = back(&bench, r#"{"m":{"z":"many"},"o":{"b":1}}"#).await.unwrap_err();
    assert!(error.message().contains("m.z") && error.message().contains("o.a"), "{error}");
    bench.close().await;
}

#[actix::test]
async fn b20_any_is_plain_and_in_ctys_wrapper_where_it_is_set_so() {
    let attrs = r#"{"x": {"type": "any"}, "t": {"type": "string"}}"#;
    let Some(site) = mirror(attrs) else { return };
    let bench = site.run();
    assert_eq!(back(&bench, r#"{"x":{"a":[1]},"t":"y"}"#).await.unwrap(), r#"{"t":"y","x":{"a":[1]}}"#);
    bench.close().await;

    let Some(site) = mirror(attrs) else { return };
    let bench = site.with(|settings| settings.compat.any_encoding = AnyEncoding::Cty).run();
    limited(bench.handle.execute("do", members(r#"{"x":"a","t":"y"}"#))).await.unwrap();
    bench.close().await;
    assert!(
        bench.received()[2].contains(r#""attrs":{"t":"y","x":{"value":"a","type":"string"}}"#)
            || bench.received()[2].contains(r#""attrs":{"t":"y","x":{"type":"string","value":"a"}}"#),
        "{}",
        bench.received()[2]
    );
}

/// What an answer's `result` is read as.
async fn undo_of(result: &str) -> Option<(Executed, Vec<String>)> {
    let text = format!(
        "serve(LOOSE, lambda id, params: raw('{{\"id\":%d,\"result\":%s}}\\n' % (id, '''{result}''')))"
    );
    let bench = provider(&text)?.run();
    let answer = limited(bench.handle.call(undoable("do", "{}"), None)).await.unwrap();
    bench.close().await;
    let facts = bench.facts();
    Some((executed(answer), facts))
}

#[actix::test]
async fn b17_undo_is_read_in_every_form() {
    let call = r#"{"action":"do","attrs":{"x":1}}"#;
    for (result, undos, outputs) in [
        (r#"{"outputs":{"a":1}}"#.to_owned(), 0, r#"{"a":1}"#),
        (r#"{"outputs":{"a":1},"undo":null}"#.to_owned(), 0, r#"{"a":1}"#),
        (format!(r#"{{"outputs":null,"undo":{call}}}"#), 1, "{}"),
        (format!(r#"{{"inverse":{call}}}"#), 1, "{}"),
        (format!(r#"{{"outputs":{{}},"undo":[{call},{call}]}}"#), 2, "{}"),
        (r#"{"bare":true}"#.to_owned(), 0, r#"{"bare":true}"#),
        ("null".to_owned(), 0, "{}"),
        ("{}".to_owned(), 0, "{}"),
    ] {
        let Some((done, _)) = undo_of(&result).await else { return };
        assert_eq!((done.undo.len(), json(&done.outputs).as_str()), (undos, outputs), "{result}");
        assert!(done.undo.iter().all(|undo| undo.action == "do" && json(&undo.attrs) == r#"{"x":1}"#));
    }
    let Some((done, facts)) = undo_of(r#"{"outputs":{},"undo":{"action":"elsewhere","attrs":{}}}"#).await
    else {
        return;
    };
    assert_eq!(done.undo[0].action, "elsewhere", "kept");
    assert!(facts.iter().any(|fact| fact.contains("elsewhere")), "and told: {facts:?}");
}

#[actix::test]
async fn b17_undo_is_never_asked_for_where_it_is_set_so() {
    let Some(site) = provider("serve(LOOSE, lambda id, params: ok(id))") else { return };
    let bench = site.with(|settings| settings.compat.undo = false).run();
    limited(bench.handle.call(undoable("do", "{}"), None)).await.unwrap();
    bench.close().await;
    assert!(!bench.received()[2].contains("undo"));
}

#[actix::test]
async fn outputs_that_are_not_as_declared_warn_or_fail_and_their_undo_is_kept() {
    let text = r#"serve(SCHEMA, lambda id, params: ok(id, {"outputs": {"fqdn": 1, "record_id": {}}, "undo": {"action": "record_delete", "attrs": {}}}))"#;
    let attrs = r#"{"zone":"example.test","name":"www"}"#;
    for strict in [false, true] {
        let Some(site) = provider(text) else { return };
        let bench =
            site.config(r#"{"endpoint":"x"}"#).with(|settings| settings.strict_outputs = strict).run();
        let answer = limited(bench.handle.call(undoable("record_create", attrs), None)).await;
        if strict {
            let error = answer.unwrap_err();
            assert_eq!(error.code().as_str(), "host.bad_outputs");
            assert_eq!(error.error.more.undo[0].action, "record_delete");
        } else {
            assert_eq!(executed(answer.unwrap()).undo.len(), 1);
            assert!(bench.has_fact("not as declared"), "{:?}", bench.facts());
        }
        bench.close().await;
    }
}

#[actix::test]
async fn errors_keep_code_message_detail_and_what_is_ours() {
    let text = r#"
def execute(id, params):
    fail(id, "quota_exhausted", "second record refused", detail="10 of 10", x_state="partial", x_retry_after_ms=1500,
         x_undo={"action": "do", "attrs": {"x": 1}},
         x_diagnostics=[{"severity": "error", "path": ["records", 1, "ttl"], "message": "ttl below 30"}])
serve(LOOSE, execute)
"#;
    let Some(site) = provider(text) else { return };
    let bench = site.run();
    let error = bench.act("1").await.unwrap_err();
    assert_eq!(shown(&error), "quota_exhausted Failed: second record refused");
    let more = &error.error.more;
    assert_eq!((error.error.detail.as_deref(), more.undo.len()), (Some("10 of 10"), 1));
    assert_eq!(more.retry_after, Some(Duration::from_millis(1500)));
    assert_eq!(more.diagnostics[0].path.to_string(), "records[1].ttl");
    assert!(
        bench.act("2").await.is_err_and(|error| error.code().as_str() == "quota_exhausted"),
        "and goes on"
    );
    bench.close().await;
}

#[actix::test]
async fn b9_answers_in_reverse_order_find_their_calls() {
    let text = r#"
held = []
def execute(id, params):
    held.append((id, params["attrs"]["x"]))
    if len(held) == 8:
        for id, x in reversed(held): ok(id, {"outputs": {"y": x}})
serve(declaring(max_in_flight=8), execute)
"#;
    let Some(site) = provider(text) else { return };
    let bench = site.run();
    let calls = (0..8).map(|number: i32| {
        let bench = &bench;
        async move { (number, json(&bench.act(&number.to_string()).await.unwrap().outputs)) }
    });
    for (number, outputs) in join_all(calls).await {
        assert_eq!(outputs, format!(r#"{{"y":{number}}}"#));
    }
    bench.close().await;
}

#[actix::test]
async fn a_provider_that_declares_nothing_is_asked_one_thing_at_a_time() {
    let text = r#"
import select
def execute(id, params):
    time.sleep(0.05)
    if select.select([sys.stdin], [], [], 0)[0]: note("crowded")
    ok(id)
serve(LOOSE, execute)
"#;
    let Some(site) = provider(text) else { return };
    let bench = site.run();
    let ends = join_all((0..5).map(|number| {
        let number = number.to_string();
        let bench = &bench;
        async move { bench.act(&number).await }
    }))
    .await;
    assert!(ends.iter().all(Result::is_ok));
    assert_eq!(bench.file("crowded"), "");
    bench.close().await;
}

#[actix::test]
async fn b25_ten_thousand_calls_pass_through_one_pipelined_provider() {
    let text = r#"
import kit
kit.note = lambda *_: None
kit.send = lambda frame: (sys.stdout.write(json.dumps(frame) + "\n"), sys.stdout.flush())
serve(declaring(max_in_flight=64), lambda id, params: ok(id, {"outputs": {"y": params["attrs"]["x"]}}))
"#;
    let Some(site) = provider(text) else { return };
    let bench = site.with(|settings| settings.queue = 10_000).run();
    let calls = (0..10_000).map(|number: i32| {
        let bench = &bench;
        async move {
            json(&bench.act(&number.to_string()).await.unwrap().outputs) == format!(r#"{{"y":{number}}}"#)
        }
    });
    assert!(join_all(calls).await.into_iter().all(|right| right));
    let snapshot = bench.handle.snapshot();
    assert_eq!((snapshot.open, snapshot.queued, snapshot.started), (0, 0, 1));
    bench.close().await;
}

#[actix::test]
async fn a_full_queue_refuses_by_name_and_nothing_is_sent() {
    let text = "def execute(id, params):\n    while not os.path.exists(os.path.join(here, 'go')): time.sleep(0.01)\n    ok(id)\nserve(LOOSE, execute)";
    let Some(site) = provider(text) else { return };
    let bench = site.with(|settings| settings.queue = 2).run();
    limited(bench.handle.start()).await.unwrap();
    let calls = (0..4).map(|number: i32| {
        let bench = &bench;
        async move {
            let end = bench.act(&number.to_string()).await;
            if end.is_err() {
                std::fs::write(bench.dir.path().join("go"), "").unwrap();
            }
            end
        }
    });
    let ends = join_all(calls).await;
    let refused: Vec<_> = ends.into_iter().filter_map(Result::err).collect();
    assert_eq!(refused.len(), 1);
    assert_eq!(shown(&refused[0]), "host.overloaded NotSent: provider `dns` has 2 calls waiting already");
    bench.close().await;
}
