//! Calls and their answers: the whole exchange, errors, undo, values, order.

use quartermaster_actors::provider::Outcome;

use super::support::{executed, json, limited, provider, shown, undoable};

const DNS: &str = r#"
def execute(id, params):
    attrs = params["attrs"]
    if params["action"] == "record_create":
        result = {"outputs": {"fqdn": attrs["name"] + "." + attrs["zone"], "record_id": "r-81"}}
        if params.get("undo"):
            result["undo"] = {"action": "record_delete", "attrs": {"record_id": "r-81", "zone": attrs["zone"]}}
        ok(id, result)
    elif params["action"] == "record_delete":
        ok(id, {"outputs": {}})
    else:
        fail(id, "unknown_action", "no such action: " + params["action"])
serve(SCHEMA, execute)
note("left")
"#;

#[actix::test]
async fn b1_a_provider_in_the_tutorials_style_gets_exactly_what_orchard_sends() {
    let Some(site) = provider(DNS) else { return };
    let bench = site.config(r#"{"endpoint":"https://dns.example.test"}"#).run();
    let schema = limited(bench.handle.start()).await.unwrap();
    assert_eq!((schema.name.as_str(), schema.version.as_str()), ("dns", "0.4.1"));
    let made = limited(
        bench.handle.call(undoable("record_create", r#"{"zone":"example.test","name":"www"}"#), None),
    )
    .await
    .unwrap();
    let made = executed(made);
    assert_eq!(json(&made.outputs), r#"{"fqdn":"www.example.test","record_id":"r-81"}"#);
    let undo = &made.undo[0];
    assert_eq!(
        (undo.action.as_str(), json(&undo.attrs).as_str()),
        ("record_delete", r#"{"record_id":"r-81","zone":"example.test"}"#)
    );
    let unknown =
        limited(bench.handle.execute("record_sign", super::support::members(r#"{"zone":"example.test"}"#)))
            .await
            .unwrap_err();
    assert_eq!(shown(&unknown), "unknown_action Failed: no such action: record_sign");
    let gone = limited(bench.handle.execute(&undo.action, undo.attrs.clone())).await.unwrap();
    assert!(gone.outputs.is_empty() && gone.undo.is_empty());
    bench.close().await;
    assert_eq!(
        bench.received(),
        [
            r#"{"id":1,"method":"describe","params":{}}"#,
            r#"{"id":2,"method":"configure","params":{"config":{"endpoint":"https://dns.example.test","retries":3}}}"#,
            r#"{"id":3,"method":"execute","params":{"action":"record_create","attrs":{"name":"www","ttl":300,"zone":"example.test"},"undo":true}}"#,
            r#"{"id":4,"method":"execute","params":{"action":"record_sign","attrs":{"zone":"example.test"}}}"#,
            r#"{"id":5,"method":"execute","params":{"action":"record_delete","attrs":{"record_id":"r-81","zone":"example.test"}}}"#,
            r#"{"id":6,"method":"shutdown","params":{}}"#,
        ]
    );
    assert_eq!(bench.file("left"), "\n", "it left its loop by itself");
    let late = limited(bench.handle.execute("record_delete", undo.attrs.clone())).await.unwrap_err();
    assert_eq!((late.outcome, late.code().as_str()), (Outcome::NotSent, "host.closed"));
}
