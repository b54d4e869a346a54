use std::convert::Infallible;

use proptest::prelude::*;
use quartermaster_proto::mesh::value::Json;
use zeroize::Zeroizing;

use super::*;
use crate::value::Value;

fn value(text: &str) -> Value {
    Value::bytes(Zeroizing::new(text.as_bytes().to_vec()))
}

/// Fills every placeholder with `<kind:name>`.
fn shown(template: &str) -> String {
    let template = Template::parse(template.as_bytes(), false).unwrap();
    let filled = template.fill(
        |found| Ok::<_, Infallible>(value(&format!("<{}:{}>", found.kind, found.name))),
        |_, _| unreachable!("no filter is there"),
    );
    String::from_utf8(filled.unwrap().to_vec()).unwrap()
}

#[track_caller]
fn check(template: &str, expected: &str) {
    assert_eq!(shown(template), expected);
}

#[test]
fn only_the_one_form_is_a_placeholder() {
    check("a${config:port}b", "a<config:port>b");
    check("${config:http.port}${dir:data:sub}", "<config:http.port><dir:data:sub>");
    check("${v:1:2} ${a-1:é b} ${config:a|json}", "<v:1:2> <a-1:é b> <config:a|json>");
    for text in [
        "",
        "$",
        "$$",
        "$$$",
        "${",
        "${}",
        "${HOME}",
        "$${HOME}",
        "$HOME",
        "${v:-x}",
        "${v:=x}",
        "${v:+x}",
        "${v:?x}",
        "${v: x}",
        "${v:}",
        "${:x}",
        "${V:x}",
        "${1v:x}",
        "${v:x",
        "${v:a{b}",
        "${v:a\nb}",
        "${v:a\tb}",
        "{{ .Values.x }}",
        "{% if a %}${% endif %}",
        "rate(x{job=\"$job\"}[5m])",
        "{config:a}",
        "${con fig:a}",
        "${v:|x}",
    ] {
        check(text, text);
    }
    check("${v:a${config:b}", "${v:a<config:b>");
}

#[test]
fn dollars_before_the_brace_escape_each_other() {
    check("$${config:a}", "${config:a}");
    check("$$${config:a}", "$<config:a>");
    check("$$$${config:a}", "$${config:a}");
    check("$$$$${config:a}", "$$<config:a>");
    check("$$${HOME}", "$$${HOME}");
    check("$${config:a}${config:b}", "${config:a}<config:b>");
}

#[test]
fn bytes_that_are_no_text_are_copied() {
    let template = Template::parse(b"\xff${config:\xff}\x00${config:a}\xfe", false).unwrap();
    let filled =
        template.fill(|_| Ok::<_, Infallible>(value("v")), |_, _| unreachable!("no filter")).unwrap();
    assert_eq!(filled.as_slice(), b"\xff${config:\xff}\x00v\xfe");
}

#[test]
fn a_value_is_never_read_as_a_template() {
    let template = Template::parse(b"${config:a}${secret:pw}", false).unwrap();
    let filled = template.fill(
        |found| {
            Ok::<_, Infallible>(value(if found.kind == "config" {
                "${secret:pw}"
            } else {
                "$1 \\1 $$ ${config:a}"
            }))
        },
        |_, _| unreachable!("no filter"),
    );
    assert_eq!(filled.unwrap().as_slice(), b"${secret:pw}$1 \\1 $$ ${config:a}");
}

#[test]
fn a_placeholder_knows_its_line() {
    let template = Template::parse(b"a\n${config:a}\n\n${config:b}${config:c}", false).unwrap();
    let lines: Vec<_> = template.placeholders().map(|found| (found.name.as_str(), found.line)).collect();
    assert_eq!(lines, [("a", 2), ("b", 4), ("c", 4)]);
}

fn filtered(placeholder: &str, value: &Value) -> Result<String, String> {
    let template = Template::parse(placeholder.as_bytes(), true).map_err(|error| error.to_string())?;
    let filled = template.fill(|_| Ok(value.clone()), |found, error| format!("{}: {error}", found.name))?;
    Ok(String::from_utf8(filled.to_vec()).unwrap())
}

#[test]
fn filters_run_from_left_to_right_where_the_file_asks_for_them() {
    let text = value("it's a \"b\"\n=\u{1}");
    for (placeholder, expected) in [
        ("${secret:a}", "it's a \"b\"\n=\u{1}"),
        ("${secret:a|json}", r#""it's a \"b\"\n=\u0001""#),
        ("${secret:a|toml}", r#""it's a \"b\"\n=\u0001""#),
        ("${secret:a|shell}", "'it'\\''s a \"b\"\n=\u{1}'"),
        ("${secret:a|base64}", "aXQncyBhICJiIgo9AQ=="),
        ("${secret:a|base64|line}", "aXQncyBhICJiIgo9AQ=="),
        ("${secret:a|json|shell}", r#"'"it'\''s a \"b\"\n=\u0001"'"#),
    ] {
        assert_eq!(filtered(placeholder, &text).as_deref(), Ok(expected), "{placeholder}");
    }
}

#[test]
fn a_filter_that_cannot_names_the_key_and_not_the_value() {
    let cannot = "a: the value holds a character that it may not hold here (CR, LF or NUL)".to_owned();
    assert_eq!(filtered("${secret:a|line}", &value("x\ny")), Err(cannot.clone()));
    assert_eq!(filtered("${secret:a|shell}", &value("x\0y")), Err(cannot));
    let bytes = Value::bytes(Zeroizing::new(b"\xff".to_vec()));
    assert_eq!(filtered("${secret:a|json}", &bytes), Err("a: the value is not UTF-8".to_owned()));
    assert_eq!(
        filtered("\n${secret:a|jsn}", &bytes),
        Err("line 2: secret a: unknown filter `jsn`".to_owned())
    );
    assert_eq!(filtered("${secret:a|}", &bytes), Err("line 1: secret a: unknown filter ``".to_owned()));
}

#[test]
fn a_stored_value_that_is_no_string_stays_json() {
    for (stored, json) in [
        ("3000", "3000"),
        ("[1, 2]", "[1, 2]"),
        (r#""a""#, r#""a""#),
        ("9007199254740993", "9007199254740993"),
    ] {
        let value = Value::stored(&Json::read(stored).unwrap()).unwrap();
        assert_eq!(filtered("${config:a|json}", &value).as_deref(), Ok(json));
    }
    let number = Value::stored(&Json::read("3000").unwrap()).unwrap();
    assert_eq!(filtered("${config:a|toml}", &number).as_deref(), Ok("\"3000\""));
}

/// What a shell makes of one single-quoted word with escaped quotes.
fn unshell(word: &str) -> String {
    word.trim_start_matches('\'').trim_end_matches('\'').replace("'\\''", "'")
}

proptest! {
    #[test]
    fn text_without_a_dollar_is_copied(text in "[^$]{0,200}") {
        prop_assert_eq!(shown(&text), text);
    }

    #[test]
    fn what_has_two_dollars_comes_out_with_one(kind in "[a-z][a-z0-9-]{0,8}", name in "[a-z0-9.:/ é]{1,20}") {
        prop_assume!(!name.starts_with(' '));
        prop_assert_eq!(shown(&format!("$${{{kind}:{name}}}")), format!("${{{kind}:{name}}}"));
        prop_assert_eq!(shown(&format!("${{{kind}:{name}}}")), format!("<{kind}:{name}>"));
    }

    #[test]
    fn any_bytes_are_read_and_nothing_is_lost(bytes in prop::collection::vec(prop_oneof![Just(b'$'), Just(b'{'), Just(b':'), Just(b'}'), any::<u8>()], 0..200)) {
        // Filled with what stands there, the template comes back but for the dollars that escape.
        let template = Template::parse(&bytes, false).unwrap();
        let filled = template
            .fill(|found| Ok::<_, Infallible>(value(&format!("${{{}:{}}}", found.kind, found.name))), |_, _| unreachable!())
            .unwrap();
        let without = |bytes: &[u8]| bytes.iter().copied().filter(|byte| *byte != b'$').collect::<Vec<_>>();
        prop_assert_eq!(without(&filled), without(&bytes));
    }

    #[test]
    fn json_and_toml_parse_back_to_the_value(text in any::<String>()) {
        let json = filtered("${secret:a|json}", &value(&text)).unwrap();
        prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text.clone());
        let toml = filtered("a = ${secret:a|toml}", &value(&text)).unwrap();
        let document: toml_edit::DocumentMut = toml.parse().unwrap();
        prop_assert_eq!(document["a"].as_str().unwrap(), text);
    }

    #[test]
    fn a_shell_reads_the_value_back(text in "[^\\x00']{0,40}('[^\\x00']{1,20}){0,3}x") {
        let text = format!("x{text}");
        prop_assert_eq!(unshell(&filtered("${secret:a|shell}", &value(&text)).unwrap()), text);
    }
}
