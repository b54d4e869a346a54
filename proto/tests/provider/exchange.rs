//! A whole exchange with a provider that declares nothing, byte for byte (vectors/provider-exchange.txt).

use quartermaster_proto::provider::{
    Body, Call, CallId, CallIds, Configure, Declared as _, ErrorCode, Execute, Executed, Frame, Incoming,
    Invocation, Limits, Members, ProviderError, Reply, Request, Schema, Value, decode, decode_incoming,
    encode, encode_reply,
};

const EXCHANGE: &str = include_str!("../vectors/provider-exchange.txt");

/// One process of the exchange: what the host writes and what the provider answers.
fn processes() -> Vec<Vec<(&'static str, &'static str)>> {
    let mut processes = vec![Vec::new()];
    let mut lines = EXCHANGE.lines();
    while let Some(line) = lines.next() {
        match line.strip_prefix("> ") {
            Some(asked) => {
                let answered = lines.next().and_then(|line| line.strip_prefix("< ")).unwrap();
                processes.last_mut().unwrap().push((asked, answered));
            }
            None => processes.push(Vec::new()),
        }
    }
    processes
}

fn reply(line: &str) -> Reply {
    let decoded = decode(line.as_bytes(), &Limits::PROVIDER).unwrap();
    assert!(decoded.warnings.is_empty(), "{:?}", decoded.warnings);
    match decoded.frame {
        Frame::Reply(reply) => reply,
        other => panic!("{other:?}"),
    }
}

fn members(fields: &[(&str, Value)]) -> Members {
    fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

fn described(line: &str) -> Schema {
    reply(line).body.describe().unwrap().value
}

/// What a host asks of that provider, its values given as people would give them.
fn calls(schema: &Schema, first: bool) -> Vec<Call> {
    let config = schema.config.check(&members(&[("endpoint", "https://dns.example.test".into())])).unwrap();
    let configure = Call::Configure(Configure { config, host: None });
    let zone = ("zone", Value::from("example.test"));
    let execute = |action: &str, attrs: Members, undo: bool| {
        Call::Execute(Execute { action: action.to_owned(), attrs, undo, context: None })
    };
    if first {
        let create = &schema.actions["record_create"].attrs;
        let create = create.check(&members(&[zone.clone(), ("name", "www".into())])).unwrap();
        vec![
            Call::Describe,
            configure,
            execute("record_create", create, true),
            execute("record_sign", members(&[zone]), false),
            Call::Shutdown,
        ]
    } else {
        let delete = members(&[("record_id", "r-81".into()), zone]);
        vec![Call::Describe, configure, execute("record_delete", delete, false), Call::Shutdown]
    }
}

#[test]
fn every_request_is_written_byte_for_byte_and_read_back() {
    let processes = processes();
    let schema = described(processes[0][0].1);
    assert_eq!(processes.iter().map(Vec::len).collect::<Vec<_>>(), [5, 4]);
    for (process, first) in processes.iter().zip([true, false]) {
        let mut ids = CallIds::new();
        for (call, (asked, _)) in calls(&schema, first).into_iter().zip(process) {
            let request = Request { id: ids.issue().unwrap(), call };
            let line = encode(&request, &Limits::PROVIDER).unwrap();
            assert_eq!(String::from_utf8(line.to_vec()).unwrap(), format!("{asked}\n"));
            assert_eq!(decode_incoming(&line, &Limits::PROVIDER), Ok(Incoming::Request(request)));
        }
    }
}

#[test]
fn every_answer_says_what_it_should() {
    let [first, second] = processes().try_into().unwrap();
    let schema = described(first[0].1);
    assert_eq!((schema.name.as_str(), schema.version.as_str()), ("dns", "0.4.1"));
    assert_eq!(schema.actions.keys().collect::<Vec<_>>(), ["record_create", "record_delete"]);
    assert!(schema.extensions.is_none());

    assert_eq!(reply(first[1].1).body.configure(), Ok(()));
    let created = reply(first[2].1).body.execute().unwrap();
    assert!(created.warnings.is_empty());
    assert_eq!(
        Value::from(created.value.outputs.clone()).to_json(),
        r#"{"fqdn":"www.example.test","record_id":"r-81"}"#
    );
    assert_eq!(schema.actions["record_create"].check_outputs(&created.value.outputs), Ok(()));
    let undo = Invocation {
        action: "record_delete".to_owned(),
        attrs: members(&[("record_id", "r-81".into()), ("zone", "example.test".into())]),
    };
    assert_eq!(created.value.undo, [undo]);
    let refused = reply(first[3].1).body.execute().unwrap_err();
    assert_eq!(refused.to_string(), "unknown_action: no such action: record_sign");
    assert_eq!(reply(first[4].1).body.shutdown(), Ok(()));

    assert_eq!(described(second[0].1).name, "dns");
    assert_eq!(reply(second[2].1).body.execute().unwrap().value, Executed::default());
    assert_eq!(reply(second[3].1).id, CallId(4));
}

#[test]
fn a_provider_of_ours_answers_byte_for_byte() {
    let [first, second] = processes().try_into().unwrap();
    let write = |id, body| {
        let line = encode_reply(&Reply { id: CallId(id), body }, &Limits::PROVIDER).unwrap();
        String::from_utf8(line.to_vec()).unwrap()
    };
    let executed = reply(first[2].1).body.execute().unwrap().value;
    let unknown = ProviderError::new(ErrorCode::UnknownAction, "no such action: record_sign");
    for (written, expected) in [
        (write(2, Body::empty()), first[1].1),
        (write(3, Body::executed(executed)), first[2].1),
        (write(4, Body::Error(Box::new(unknown))), first[3].1),
        (write(3, Body::executed(Executed::default())), second[2].1),
    ] {
        assert_eq!(written, format!("{expected}\n"));
    }
    // The order of a schema's members is ours, what it says is the same.
    let schema = described(first[0].1);
    let again = described(&write(1, Body::described(&schema)));
    assert_eq!(again, schema);
    assert_eq!(again.digest(), schema.digest());
    assert!(schema.differences(&again).is_empty());
}
