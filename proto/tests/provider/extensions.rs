//! What a provider declares beyond the common protocol, and what a host agrees to.

use quartermaster_proto::provider::{Extension, HostHello, HostOffer, ProviderError, Schema};

use super::support::json;

fn declares(extensions: &str) -> Schema {
    let document =
        format!("{{\"name\":\"dns\",\"version\":\"1\",\"protocol\":\"1\",\"x_extensions\":{extensions}}}");
    Schema::from_value(&json(&document)).unwrap_or_else(|error| panic!("{extensions}: {error:?}")).value
}

fn agree(offered: &[Extension], extensions: &str) -> Result<HostHello, ProviderError> {
    let offer = HostOffer {
        name: "host".to_owned(),
        version: "0.1.0".to_owned(),
        extensions: offered.to_vec(),
        max_in_flight: 64,
        max_frame_bytes: 16 * 1024 * 1024,
    };
    offer.agree(&declares(extensions).extensions.unwrap())
}

#[test]
fn a_provider_that_declares_nothing_has_no_extensions() {
    assert_eq!(Schema::from_value(&json(r#"{"name":"a","protocol":"1"}"#)).unwrap().value.extensions, None);
    assert_eq!(
        Schema::from_value(&json(r#"{"name":"a","protocol":"1","x_extensions":null}"#))
            .unwrap()
            .value
            .extensions,
        None
    );
}

#[test]
fn every_extension_has_a_name() {
    for extension in Extension::ALL {
        assert_eq!(Extension::from_name(extension.as_str()), Some(extension));
    }
    assert_eq!(Extension::from_name("teleport"), None);
}

#[test]
fn what_is_true_is_declared() {
    let schema = declares(
        r#"{"max_in_flight":8,"cancel":true,"ping":true,"progress":false,"call_context":null,"new":{"a":1},"require":[]}"#,
    );
    let extensions = schema.extensions.unwrap();
    assert_eq!(
        (extensions.max_in_flight, extensions.offered.clone()),
        (8, ["cancel", "new", "ping"].map(str::to_owned).to_vec())
    );
    assert!(extensions.has(Extension::Cancel) && extensions.has(Extension::MaxInFlight));
    assert!(!extensions.has(Extension::Progress) && !extensions.has(Extension::CallContext));
}

#[test]
fn what_both_have_is_in_force() {
    let offered = [Extension::Cancel, Extension::Progress, Extension::Ping];
    let hello =
        agree(&offered, r#"{"max_in_flight":8,"cancel":true,"progress":true,"lookup":true,"new":true}"#)
            .unwrap();
    assert_eq!(hello.extensions, ["cancel", "max_in_flight", "progress"]);
    assert_eq!((hello.max_in_flight, hello.max_frame_bytes, hello.protocol.as_str()), (8, 16_777_216, "1"));
    assert!(hello.has(Extension::Cancel) && !hello.has(Extension::Lookup) && !hello.has(Extension::Ping));
}

#[test]
fn the_smaller_number_of_calls_in_flight_counts_and_one_is_the_least() {
    assert_eq!(agree(&[], r#"{"max_in_flight":1000}"#).unwrap().max_in_flight, 64);
    assert_eq!(agree(&[], r#"{"max_in_flight":99999999999}"#).unwrap().max_in_flight, 64);
    let silent = agree(&[Extension::Ping], r#"{"ping":true}"#).unwrap();
    assert_eq!((silent.max_in_flight, silent.extensions), (1, vec!["ping".to_owned()]));
    assert_eq!(agree(&[], r#"{"max_in_flight":0}"#).unwrap().max_in_flight, 1);
}

#[test]
fn an_extension_that_is_required_and_refused_or_unknown_ends_the_handshake() {
    let error =
        agree(&[Extension::Ping], r#"{"cancel":true,"require":["cancel","teleport","ping"]}"#).unwrap_err();
    assert_eq!(
        error.to_string(),
        "host.unsupported_protocol: the provider cannot do without cancel, teleport; this host offers ping"
    );
    let error = agree(&[], r#"{"require":["cancel"]}"#).unwrap_err();
    assert!(error.to_string().ends_with("this host offers nothing"));
}

#[test]
fn what_is_required_is_declared_too() {
    let hello =
        agree(&[Extension::Cancel], r#"{"require":["cancel","max_in_flight"],"max_in_flight":2}"#).unwrap();
    assert_eq!(hello.extensions, ["cancel", "max_in_flight"]);
}
