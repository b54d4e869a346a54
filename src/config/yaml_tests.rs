use proptest::prelude::*;

use super::*;

fn root(text: &str) -> Value {
    parse(text).unwrap().root.map_or(Value::Null, |node| node.value)
}

/// The value of the only key.
fn value(text: &str) -> Value {
    match root(&format!("k: {text}\n")) {
        Value::Map(mut entries) => entries.remove(0).1.value,
        other => panic!("{other:?}"),
    }
}

fn refused(text: &str, line: usize, column: usize, why: &str) {
    let error = parse(text).unwrap_err();
    assert!(error.what.contains(why), "{error}");
    assert_eq!((error.place.line, error.place.column), (line, column), "{error}");
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

#[rustfmt::skip]
mod scalars {
    use super::*;
    #[test] fn yes_and_on_are_booleans() { for yes in ["yes", "on", "y", "True"] { assert_eq!(value(yes), Value::Bool(true), "{yes}") } }
    #[test] fn no_and_off_are_booleans() { for no in ["no", "OFF", "n", "false"] { assert_eq!(value(no), Value::Bool(false), "{no}") } }
    #[test] fn quoted_is_text() { assert_eq!(value("\"8\""), text("8")); assert_eq!(value("'yes'"), text("yes")) }
    #[test] fn numbers() { assert_eq!(value("8"), Value::Integer(8)); assert_eq!(value("-3"), Value::Integer(-3)); assert_eq!(value("8.5"), Value::Float(8.5)) }
    #[test] fn numbers_of_other_bases() { assert_eq!(value("010"), Value::Integer(8)); assert_eq!(value("0x1f"), Value::Integer(31)); assert_eq!(value("1_000"), Value::Integer(1000)) }
    #[test] fn durations_and_addresses_are_text() { for t in ["1m", "1h30m", "127.0.0.1", "10.0.0.1:80", "+", "1e", "0x", "1.2.3"] { assert!(matches!(value(t), Value::Text(_) | Value::List(_)), "{t}: {:?}", value(t)) } }
    #[test] fn too_large_a_number_is_text() { assert_eq!(value("1e400"), text("1e400")); assert!(matches!(value("99999999999999999999"), Value::Float(_))) }
    #[test] fn nothing_is_null() { for nothing in ["", "~", "null"] { assert_eq!(value(nothing), Value::Null) } }
    #[test] fn tags_decide() { assert_eq!(value("!!str 60"), text("60")); assert_eq!(value("!!int \"60\""), Value::Integer(60)); assert_eq!(value("!site 60"), text("60")) }
}

#[test]
fn values_know_their_place() {
    let Value::Map(entries) = root("# é\nfeatures:\n  pki: yes\n") else { panic!() };
    let Value::Map(features) = &entries[0].1.value else { panic!() };
    let place = features[0].1.place;
    assert_eq!((place.line, place.column, place.offset, place.length), (3, 8, 22, 3));
    assert_eq!(features[0].0.place.column, 3);
}

#[test]
fn aliases_and_merge_keys_are_followed() {
    let Value::Map(entries) = root("a: &x {p: 1, q: 2}\nb: *x\nc: {p: 9, <<: *x, q: 3}\n") else { panic!() };
    assert_eq!(entries[0].1.value, entries[1].1.value);
    let Value::Map(merged) = &entries[2].1.value else { panic!() };
    let seen: Vec<_> = merged.iter().map(|(key, node)| (key.text.as_str(), &node.value)).collect();
    assert_eq!(seen, [("p", &Value::Integer(1)), ("q", &Value::Integer(2)), ("q", &Value::Integer(3))]);
}

#[test]
fn a_tab_after_a_colon_is_white_space() {
    let Value::Map(entries) = root("a:\t1\nb:\n  c: \t2\n  d:\t\t3\ne: \"x:\ty\"\n") else { panic!() };
    assert_eq!((&entries[0].1.value, &entries[2].1.value), (&Value::Integer(1), &text("x:\ty")));
    assert_eq!(entries[0].1.place.column, 4);
}

#[test]
fn duplicates_are_kept_for_whoever_wants_to_warn() {
    let Value::Map(entries) = root("a: 1\na: 2\n") else { panic!() };
    assert_eq!(entries.len(), 2);
}

#[test]
fn only_the_first_document_counts() {
    let document = parse("a: 1\n---\nb: [\n").unwrap();
    assert_eq!(document.second.map(|place| place.line), Some(2));
    assert!(matches!(document.root.unwrap().value, Value::Map(entries) if entries.len() == 1));
}

#[test]
fn empty_texts_hold_no_document() {
    assert_eq!(root(""), Value::Null);
    assert_eq!(root("# nothing\n\n"), Value::Null);
}

#[rustfmt::skip]
mod syntax {
    use super::*;
    #[test] fn a_tab_indent_is_named() { refused("features:\n\tpki: true\n", 2, 1, "tab") }
    #[test] fn an_unclosed_bracket() { refused("a: [1, 2\nb: 3\n", 2, 2, "YAML") }
    #[test] fn an_unclosed_quote() { refused("a: \"b\n", 1, 4, "YAML") }
    #[test] fn a_map_as_key() { refused("? {a: 1}\n: 2\n", 1, 3, "key") }
    #[test] fn endless_nesting() { refused(&"[".repeat(40), 1, 33, "nested") }
    #[test] fn endless_aliases() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        let line = |n: usize| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 9].join(", "));
        bomb.extend((1..8).map(line));
        assert!(parse(&bomb).unwrap_err().what.contains("more than 20000 values"));
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[a-c0-9:&*<>|\\-\\[\\]{}'\"#!?, \n\t~]{0,60}") {
        let _ = parse(&text);
    }
}
