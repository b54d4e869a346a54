//! Attributes that are JSON text already: what of them goes on as it stands, and what does not.

use quartermaster_actors::provider::{Ask, Call, CallError, Outcome, Relayed};
use zeroize::Zeroizing;

use super::support::{Bench, json, limited, provider};

/// A provider whose action `do` declares these attributes, as Python.
fn declaring(attrs: &str) -> String {
    format!(
        "schema = dict(LOOSE, actions={{'do': {{'attrs': {attrs}, 'outputs': {{'type': 'any'}}}}}})\n\
         serve(schema, lambda id, params: ok(id, {{'outputs': {{'got': sorted(params['attrs'].items())}}}}))"
    )
}

async fn relay(bench: &Bench, attrs: &str) -> Result<String, CallError> {
    let attrs = Zeroizing::new(attrs.as_bytes().to_vec());
    let relayed = Relayed { action: "do".to_owned(), attrs, context: None };
    let call = Call { ask: Ask::Relay(relayed), timeout: None, about: None };
    match limited(bench.handle.call(call, None)).await? {
        quartermaster_actors::provider::Answer::Executed(done) => Ok(json(&done.outputs)),
        other => panic!("{other:?}"),
    }
}

#[actix::test]
async fn declared_attributes_go_on_as_they_stand_and_others_not_at_all() {
    let Some(site) =
        provider(&declaring("{'a': {'type': 'string'}, 'b': {'type': 'any'}, 'c': {'type': 'any'}}"))
    else {
        return;
    };
    let bench = site.run();
    let attrs = "{\"secret\":\"s3cret\", \"c\":null,\n \"b\":{\"n\": 1.50,\t\"list\":[1,2]},\r\n\"a\":\"x\u{2028}\u{85}\\n\u{e9}\"}";
    relay(&bench, attrs).await.unwrap();
    let frame = bench.received().pop().unwrap();
    assert_eq!(
        frame,
        "{\"id\":3,\"method\":\"execute\",\"params\":{\"action\":\"do\",\"attrs\":{\"a\":\"x\\u2028\\u0085\\n\u{e9}\",\"b\":{\"n\": 1.50, \"list\":[1,2]}}}}"
    );
    bench.close().await;
}

#[actix::test]
async fn what_has_to_be_converted_covered_or_filled_in_is_read_first() {
    let cases = [
        ("{'a': {'type': 'number'}}", "{\"a\":\"17\",\"x\":1}", "{\"got\":[[\"a\",17]]}"),
        (
            "{'a': {'type': 'any', 'x_sensitive': True}}",
            "{\"a\":{\"z\":1,\"b\":2}}",
            "{\"got\":[[\"a\",{\"b\":2,\"z\":1}]]}",
        ),
        (
            "{'a': {'type': 'any'}, 'b': {'type': 'number', 'default': 3}}",
            "{\"a\":1}",
            "{\"got\":[[\"a\",1],[\"b\",3]]}",
        ),
        ("{'a': {'type': 'string', 'x_enum': ['u', 'v']}}", "{\"a\":\"v\"}", "{\"got\":[[\"a\",\"v\"]]}"),
    ];
    for (declared, attrs, got) in cases {
        let Some(site) = provider(&declaring(declared)) else { return };
        let bench = site.run();
        assert_eq!(relay(&bench, attrs).await.unwrap(), got, "{declared}");
        bench.close().await;
    }
}

#[actix::test]
async fn what_does_not_fit_is_refused_before_anything_is_sent() {
    let Some(site) = provider(&declaring("{'a': {'type': 'string', 'required': True}}")) else { return };
    let bench = site.run();
    for (attrs, words) in [
        ("{\"b\":1}", "required"),
        ("{\"a\":null}", "required"),
        ("{\"a\":{}}", "a"),
        ("[1]", "no JSON object"),
        ("{\"a\":", "no JSON object"),
    ] {
        let error = relay(&bench, attrs).await.unwrap_err();
        assert_eq!((error.outcome, error.code().as_str()), (Outcome::NotSent, "invalid_attrs"), "{attrs}");
        assert!(error.message().contains(words), "{attrs}: {error}");
    }
    bench.close().await;
    assert_eq!(bench.received().len(), 3, "describe, configure, shutdown");
}
