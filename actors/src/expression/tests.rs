//! What expressions come to, as data.

use quartermaster_proto::provider::{Limits, Path, Type, Value};

use super::*;

const LIMITS: Limits = Limits { max_bytes: 10_000, max_depth: 32, max_items: 1_000 };

/// `known` is whole, `later` has an object of which only the type is known, `secret` is not to be shown.
struct World;

impl Scope for World {
    fn find(&self, path: &[Access]) -> Result<Found, String> {
        let name = path.first().and_then(Access::name).unwrap_or_default();
        let value = match name {
            "known" => Partial::Known(json(
                r#"{"name":"web","count":3,"on":true,"none":null,"list":["a","b"],"odd-name":{"x":1}}"#,
            )),
            "later" => Partial::Unknown(ty("object({id=string,size=number,tags=list(string),any=any})")),
            "secret" => Partial::Known("s3cr3t".into()),
            other => return Err(format!("there is no `{other}`")),
        };
        Ok(Found { value, taken: 1, secret: name == "secret" })
    }
}

fn json(text: &str) -> Value {
    Value::from_json(text, &LIMITS).unwrap()
}

fn ty(text: &str) -> Type {
    text.parse().unwrap()
}

fn read(text: &str) -> Result<Expression, ExpressionError> {
    let hcl: hcl::edit::expr::Expression = text.parse().unwrap();
    Expression::read(&hcl, &Lines::new(text))
}

fn shown(value: &Partial) -> String {
    match value {
        Partial::Known(value) => value.to_json(),
        Partial::Unknown(ty) => format!("<{ty}>"),
        Partial::List(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(",")),
        Partial::Object(members) => {
            let each: Vec<_> = members.iter().map(|(name, part)| format!("{name}:{}", shown(part))).collect();
            format!("{{{}}}", each.join(","))
        }
    }
}

fn come_to(expression: &Expression) -> String {
    match expression.evaluate(&World) {
        Ok(evaluated) => shown(&evaluated.value),
        Err(error) => error.to_string(),
    }
}

#[test]
fn expressions_come_to_what_they_say() {
    let rows = [
        ("1.50", "1.50"),
        ("123456789.123456789123456789", "123456789.123456789123456789"),
        ("-3", "-3"),
        ("true", "true"),
        ("null", "null"),
        (r#""a ${known.name} b""#, r#""a web b""#),
        (r#""${known.count}""#, "3"),
        (r#""${known.count}${known.on}""#, r#""3true""#),
        (r#""a ${~ known.name ~} b""#, r#""awebb""#),
        (r#""$${known.name}""#, r#""${known.name}""#),
        ("known.list[1]", r#""b""#),
        (r#"known["odd-name"].x"#, "1"),
        ("[1, known.name]", r#"[1,"web"]"#),
        ("{ a = known.name, \"b\" = 2, (known.name) = 3 }", r#"{"a":"web","b":2,"web":3}"#),
        ("known.on ? known.name : later.id", r#""web""#),
        ("known.count == 3 && !(known.name == \"db\")", "true"),
        ("known.count < 10", "true"),
        ("known.count >= 3.01", "false"),
        ("-2 < -1.5", "true"),
        ("later.id", "<string>"),
        ("later.any.what.ever", "<any>"),
        ("later.tags[7]", "<string>"),
        (r#""x-${later.size}""#, "<string>"),
        ("[1, later.size]", "[1,<number>]"),
        ("{ a = later.id, b = 1 }", "{a:<string>,b:1}"),
        ("later.size == 1", "<bool>"),
        ("later.size == 1 || true", "true"),
        ("later.size > 1 ? \"a\" : \"b\"", "<string>"),
    ];
    for (text, expected) in rows {
        assert_eq!(come_to(&read(text).unwrap()), expected, "{text}");
    }
}

#[test]
fn what_is_not_there_or_does_not_fit_is_named_with_its_line() {
    let rows = [
        ("[\n  1,\n  nothing.x\n]", "line 3: `nothing.x`: there is no `nothing`"),
        ("known.nme", "line 1: `known.nme`: there is no `nme`; known: count, list, name, none, odd-name, on"),
        ("known.list[2]", "line 1: `known.list[2]`: there is no [2] in a list of 2"),
        ("known.name.x", "line 1: `known.name.x`: `x` of a string"),
        ("later.di", "line 1: `later.di`: there is no `di`; known: any, id, size, tags"),
        (r#""x ${known.list}""#, "line 1: a list cannot stand in a text"),
        (r#""x ${later.tags}""#, "line 1: only a string, a number or a bool can stand in a text"),
        (r#""x ${known.none}""#, "line 1: null cannot stand in a text"),
        ("known.name ? 1 : 2", "line 1: true or false is needed here"),
        ("known.name < 2", "line 1: a number is needed here"),
        ("{ a = 1, (\"a\") = 2 }", "line 1: a name stands twice in one object"),
    ];
    for (text, expected) in rows {
        assert_eq!(come_to(&read(text).unwrap()), expected, "{text}");
    }
}

#[test]
fn what_is_not_supported_is_refused_by_its_name_and_line() {
    let rows = [
        ("[\n\n upper(\"a\")]", "line 3: the function `upper` is not supported"),
        ("[for x in known.list : x]", "line 1: a `for` expression is not supported"),
        ("known.list[*]", "line 1: a splat (`*`) is not supported"),
        ("known.list.*.x", "line 1: a splat (`*`) is not supported"),
        ("known.list[known.count]", "line 1: an index that is computed is not supported"),
        ("[\n 1 + 2]", "line 2: the operator `+` is not supported"),
        ("-known.count", "line 1: the operator `-` is not supported"),
        ("\"%{ if known.on }x%{ endif }\"", "line 1: the template directive `%{ if }` is not supported"),
        ("[1, 2][0]", "line 1: access to a part of something that is no reference is not supported"),
    ];
    for (text, expected) in rows {
        assert_eq!(read(text).unwrap_err().to_string(), expected, "{text}");
    }
}

#[test]
fn a_text_means_the_same_outside_of_a_file() {
    for (text, expected) in [
        ("plain \"quoted\" text", r#""plain \"quoted\" text""#),
        ("${known.count}", "3"),
        ("x-${known.name}", r#""x-web""#),
        ("", r#""""#),
    ] {
        assert_eq!(come_to(&Expression::text(text, 7).unwrap()), expected, "{text}");
    }
    let error = Expression::text("a\n${upper(\"b\")}", 7).unwrap_err();
    assert_eq!(error.to_string(), "line 8: the function `upper` is not supported");
    assert!(
        Expression::text("${known.", 7).unwrap_err().to_string().starts_with("line 7: not a text with ${…}")
    );
}

#[test]
fn whatever_touches_a_secret_is_one() {
    for (text, secret) in [
        ("known.name", false),
        ("secret", true),
        ("\"a ${secret}\"", true),
        ("[{ a = secret }]", true),
        ("known.on ? secret : 1", true),
        ("known.on ? 1 : secret", false),
    ] {
        assert_eq!(read(text).unwrap().evaluate(&World).unwrap().secret, secret, "{text}");
    }
}

#[test]
fn references_are_told_in_order() {
    let expression = read("{ a = known.name, b = \"${later.id} ${known.list[0]}\" }").unwrap();
    let found: Vec<String> = expression.references().iter().map(ToString::to_string).collect();
    assert_eq!(found, ["known.name", "later.id", "known.list[0]"]);
}

#[test]
fn types_are_checked_before_all_is_known() {
    let rows = [
        ("later.id", "string", "<string>"),
        ("later.size", "string", "<string>"),
        ("later.id", "bool", "<bool>"),
        ("later.any", "list(number)", "<list(number)>"),
        ("later.tags", "string", "a string needed, a list found"),
        ("[later.size, 1]", "set(string)", r#"[<string>,"1"]"#),
        ("[later.size, [later.id]]", "list(number)", "`[1]`: a number needed, a tuple found"),
        ("{ a = later.id, b = 5 }", "map(string)", r#"{a:<string>,b:"5"}"#),
        ("{ a = later.id }", "object({a=string,b=optional(number)})", "{a:<string>}"),
        ("{ a = later.id }", "object({a=string,b=number})", "`b`: a number needed, nothing found"),
        ("{ a = later.id, c = 1 }", "object({a=string})", "`c`: there is no `c`; known: a"),
        ("later", "map(string)", "`tags`: a string needed, a list found"),
        (
            "later",
            "object({id=string,size=number,tags=set(string),any=bool})",
            "<object({any=bool,id=string,size=number,tags=set(string)})>",
        ),
        ("later", "object({id=string})", "there is no `any`; known: id"),
    ];
    for (text, wanted, expected) in rows {
        let value = read(text).unwrap().evaluate(&World).unwrap().value;
        let found = match value.check(&ty(wanted)) {
            Ok(value) => shown(&value),
            Err(complaints) => complaints.first().map(ToString::to_string).unwrap_or_default(),
        };
        assert_eq!(found, expected, "{text} as {wanted}");
    }
}

#[test]
fn what_is_not_known_has_its_paths_and_null_in_its_place() {
    let value = read("{ a = [1, later.id], b = later.size, c = 2 }").unwrap().evaluate(&World).unwrap().value;
    let paths: Vec<String> = value.unknown(&Path::of("attrs")).iter().map(ToString::to_string).collect();
    assert_eq!(paths, ["attrs.a[1]", "attrs.b"]);
    assert_eq!(value.with_nulls().to_json(), r#"{"a":[1,null],"b":null,"c":2}"#);
}
