//! Values with references: read, checked before anything is known, and evaluated.

use quartermaster_proto::provider::{Limits, Path, Type, Value};

use super::super::*;

fn json(text: &str) -> Value {
    Value::from_json(text, &Limits::PROVIDER).unwrap()
}

fn scope() -> Scope {
    let roots = json(
        r#"{"server":{"identity":"web1.example.net","facts":{"os":"linux","cpus":8,"tags":["a","b"],"x.y":1}},
            "helper":{"configuration":{"dns":"yes"},"key":"PEM","defer":false}}"#,
    );
    let steps = [
        ("record".to_owned(), json(r#"{"id":"r-1","big":12345678901234567890.5,"nested":{"list":[1]}}"#)),
        ("skipped".to_owned(), Value::Null),
    ];
    Scope { roots: roots.as_object().unwrap().clone(), steps: steps.into() }
}

fn types() -> TypeScope {
    let ty = |text: &str| -> Type { text.parse().unwrap() };
    TypeScope {
        roots: [
            ("server".to_owned(), ty("object({identity=string,facts=any})")),
            ("helper".to_owned(), ty("object({configuration=map(string),key=string,defer=bool})")),
        ]
        .into(),
        steps: [
            (
                "record".to_owned(),
                Some(ty("object({id=string,big=number,nested=object({list=list(number)})})")),
            ),
            ("mute".to_owned(), None),
        ]
        .into(),
    }
}

fn evaluate(text: &str) -> Result<String, String> {
    let template = Template::read(&text.into()).map_err(|found| found[0].to_string())?;
    template.evaluate(&scope()).map(|found| found.value.to_json()).map_err(|error| error.to_string())
}

#[test]
fn what_texts_stand_for() {
    let cases = [
        ("plain \\n text", r#""plain \\n text""#),
        ("${server.identity}", r#""web1.example.net""#),
        ("host ${server.identity}, ${server.facts.cpus} cpus", r#""host web1.example.net, 8 cpus""#),
        ("${server.facts.cpus}", "8"),
        ("${server.facts.tags}", r#"["a","b"]"#),
        ("${server.facts.tags[1]}", r#""b""#),
        ("${server.facts[\"x.y\"]}", "1"),
        ("${steps.record.big}", "12345678901234567890.5"),
        ("${steps.record.nested.list[0]}", "1"),
        ("${steps.skipped.anything.at.all}", "null"),
        ("$${server.identity}", r#""${server.identity}""#),
        ("${helper.configuration.dns == \"yes\"}", "true"),
        ("${helper.configuration.dns == \"no\" || !helper.defer}", "true"),
        ("${server.facts.cpus >= 8 && server.facts.cpus < 9}", "true"),
        ("${server.facts.os != \"linux\" ? 1 : [\"a\", {b = 2}]}", r#"["a",{"b":2}]"#),
        ("${try(server.facts.none, \"none\")}", r#""none""#),
        (
            "${try(server.facts.os, server.facts.none)}-${try(steps.none.x, steps.record.id)}",
            r#""linux-r-1""#,
        ),
        ("${\"a-${server.facts.os}\"}", r#""a-linux""#),
    ];
    for (text, expected) in cases {
        assert_eq!(evaluate(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn what_cannot_be_evaluated_is_named_without_a_value() {
    let cases = [
        ("${server.facts.none}", "`server.facts.none`: it is not there"),
        ("${steps.unknown.id}", "`steps.unknown.id`: it is not there"),
        ("x ${server.facts.tags}", "a list cannot stand in a text"),
        ("${!server.facts.cpus}", "true or false is needed here"),
        ("${server.facts.os < 3}", "a number is needed here"),
        ("${server.facts.tags[7]}", "`server.facts.tags[7]`: it is not there"),
        ("${upper(server.identity)}", "the function `upper` is not supported"),
        ("${1 + 2}", "the operator `+` is not supported"),
        ("${var.x}", "there is no `var`; known: server, helper, steps"),
        ("%{ if true }x%{ endif }", "the template directive `%{ if }` is not supported"),
        ("${[for x in server.facts.tags : x]}", "a `for` expression is not supported"),
        ("${server.facts.tags.*}", "a splat (`*`) is not supported"),
        ("${server.identity", "not a text with ${…}"),
    ];
    for (text, expected) in cases {
        let error = evaluate(text).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn what_surely_does_not_fit_is_known_before() {
    let check = |text: &str, ty: &str| {
        let template = Template::read(&json(text)).unwrap();
        let found = template.check(&Path::of("a"), &ty.parse().unwrap(), &types());
        found.first().map_or_else(|| "fits".to_owned(), ToString::to_string)
    };
    let cases = [
        (r#""${server.identity}""#, "string", "fits"),
        (r#""${server.facts.cpus}""#, "number", "fits"),
        (r#""${steps.record.big}""#, "string", "fits"),
        (r#""${steps.record.id}""#, "number", "fits"),
        (r#""${steps.record.nested.list}""#, "set(string)", "fits"),
        (r#""${helper.defer}""#, "number", "`a`: a number needed, a bool found"),
        (r#""${steps.record.nested}""#, "string", "`a`: a string needed, an object found"),
        (
            r#""${steps.record.idd}""#,
            "string",
            "`a`: `steps.record.idd`: there is no `idd`; known: big, id, nested",
        ),
        (
            r#""${steps.later.id}""#,
            "string",
            "`a`: `steps.later.id`: no step of this name comes before; known: mute, record",
        ),
        (r#""${steps.mute.id}""#, "string", "`a`: `steps.mute.id`: this step has no outputs"),
        (r#""${server.name}""#, "string", "`a`: `server.name`: there is no `name`; known: facts, identity"),
        (r#""${helper.configuration.x.y}""#, "string", "`a`: `helper.configuration.x.y`: `y` of a string"),
        (
            r#""x${helper.configuration}""#,
            "string",
            "`a`: only a string, a number or a bool can stand in a text",
        ),
        (r#"["${server.identity}", 3]"#, "list(number)", "fits"),
        (r#"["${helper.defer}", 3]"#, "list(number)", "`a[0]`: a number needed, a bool found"),
        (
            r#"{"x":"${server.identity}","y":1}"#,
            "object({x=string,z=optional(number)})",
            "`a.y`: there is no `y`; known: x, z",
        ),
        (
            r#"{"x":"${server.identity}"}"#,
            "object({x=string,z=number})",
            "`a.z`: a number needed, nothing found",
        ),
        (r#"{"x":"${helper.defer}"}"#, "map(number)", "`a.x`: a number needed, a bool found"),
        (r#""${helper.defer ? steps.record.nested : steps.record.id}""#, "number", "fits"),
        (r#""${steps.record.nested ? 1 : 2}""#, "number", "`a`: true or false is needed here"),
    ];
    for (text, ty, expected) in cases {
        assert_eq!(check(text, ty), expected, "{text} as {ty}");
    }
    let condition =
        |text: &str| Template::read(&text.into()).unwrap().check_condition(&Path::of("when"), &types()).len();
    assert_eq!(
        ["true", "${helper.defer}", "server.identity", "${steps.record.nested}"].map(condition),
        [0, 0, 1, 1]
    );
}

#[test]
fn what_came_from_the_helper_or_from_outputs_is_known_as_secret() {
    let template = Template::read(&json(
        r#"{"a":"${helper.key}","b":"${server.identity}","c":["x ${steps.record.id}"]}"#,
    ))
    .unwrap();
    let found = template.evaluate(&scope()).unwrap();
    assert_eq!(found.secret, [Value::from("PEM"), Value::from("r-1")]);
    assert_eq!(template.references().len(), 3);
}

#[test]
fn every_text_that_cannot_be_read_is_told_with_its_path() {
    let found = Template::read(&json(r#"{"a":["${x.y}"],"b":{"c":"${1 - 2}"}}"#)).unwrap_err();
    let found: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found[0], "`a[0]`: there is no `x`; known: server, helper, steps");
    assert_eq!(found[1], "`b.c`: the operator `-` is not supported");
}
