//! A text with `${…}` means the same in a file of steps and in the configuration file.

use quartermaster_actors::expression::{Access, Expression, Found, Partial, Scope};
use quartermaster_actors::steps;
use quartermaster_proto::provider::{Limits, Members, Value};

const LIMITS: Limits = Limits { max_bytes: 10_000, max_depth: 32, max_items: 1_000 };
const SERVER: &str =
    r#"{"identity":"web1","cores":4,"up":true,"none":null,"list":["a","b"],"odd-name":{"x":1.50}}"#;

struct World(Value);

impl Scope for World {
    fn find(&self, path: &[Access]) -> Result<Found, String> {
        match path.first().and_then(Access::name) {
            Some("server") => Ok(Found { value: Partial::Known(self.0.clone()), taken: 1, secret: false }),
            other => Err(format!("there is no {other:?}")),
        }
    }
}

/// What both come to; none where both refuse.
fn both(text: &str) -> (Option<String>, Option<String>) {
    let server = Value::from_json(SERVER, &LIMITS).unwrap();
    let here = Expression::text(text, 1).and_then(|expression| expression.evaluate(&World(server.clone())));
    let here = here.ok().and_then(|evaluated| evaluated.value.known().map(Value::to_json));
    let scope = steps::Scope { roots: Members::from([("server".to_owned(), server)]), ..Default::default() };
    let there = steps::Template::read(&text.into()).ok().and_then(|template| template.evaluate(&scope).ok());
    (here, there.map(|evaluated| evaluated.value.to_json()))
}

#[test]
fn the_same_text_has_the_same_value() {
    for text in [
        "plain",
        "",
        "${server.identity}",
        "${server.cores}",
        "x-${server.identity}-${server.cores}-${server.up}",
        "${server.list[1]}",
        "${server[\"odd-name\"].x}",
        "${[server.cores, \"a\"]}",
        "${{ a = server.identity, \"b\" = 2 }}",
        "${server.up ? server.identity : 1}",
        "${server.up && !(server.cores == 4)}",
        "${server.cores < 5}",
        "${server.cores >= 4.5}",
        "${server.up || server.gone}",
        "${server.none == null}",
        "${(server.cores) != 3}",
        "a \"quoted\" ${\"in ${server.identity}\"}",
        "$${server.identity}",
        "${try(server.gone, server.identity)}",
        "100%",
    ] {
        let (here, there) = both(text);
        assert!(here.is_some() && here == there, "{text}: {here:?}, {there:?}");
    }
}

#[test]
fn both_refuse_the_same() {
    for text in [
        "${server.gone}",
        "${try(server.gone, other.x)}",
        "${try()}",
        "${other.x}",
        "${server.list[7]}",
        "a ${server.list}",
        "a ${server.none}",
        "${server.identity ? 1 : 2}",
        "${server.identity < 2}",
        "${upper(\"x\")}",
        "${server.cores + 1}",
        "${[for x in server.list : x]}",
        "${server.list[*]}",
        "%{ if server.up }x%{ endif }",
        "${server.",
    ] {
        assert_eq!(both(text), (None, None), "{text}");
    }
}
