//! Scenarios checked against schemas, as data.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use quartermaster_actors::expression::Partial;
use quartermaster_proto::provider::Schema;

use crate::scenario::check::{Checked, check};
use crate::scenario::fault::Faults;
use crate::scenario::read::read;
use crate::scenario::variables::{Given, values};

const SCHEMA: &str = r#"{"name":"things","version":"1","protocol":"1",
  "config":{"endpoint":{"type":"string","required":true},"token":{"type":"string","x_sensitive":true}},
  "actions":{
    "make":{"attrs":{"name":{"type":"string","required":true},"size":{"type":"number","default":3},
        "tags":{"type":"list(string)"},"old":{"type":"string","x_deprecated":"use name"},"key":{"type":"string","x_sensitive":true}},
      "outputs":{"type":"object({id=string,size=number})"}},
    "unmake":{"attrs":{"id":{"type":"string","required":true}}},
    "secret":{"attrs":{},"outputs":{"type":"string","x_sensitive":true}}}}"#;

fn checked(body: &str) -> (Option<Checked>, Vec<String>) {
    let text = format!(
        "scenario \"s\" {{\nrequired_providers {{ things = {{ source = \"exec:x\" }} }}\nprovider \"things\" {{ endpoint = \"e\" }}\n{body}\n}}\n"
    );
    let scenario = read(&text, None).unwrap();
    let mut faults = Faults::default();
    let variables = values(&scenario, &Given::default(), &mut faults).unwrap();
    let schema = Arc::new(Schema::from_probe(SCHEMA.as_bytes()).unwrap().value);
    let schemas = BTreeMap::from([("things".to_owned(), schema)]);
    let checked = check(&scenario, variables, &schemas, Path::new("/folder"), &mut faults);
    let mut told: Vec<String> =
        faults.errors().into_iter().map(|fault| format!("{}: {}", fault.line, fault.what)).collect();
    told.extend(
        faults.warnings().into_iter().map(|fault| format!("{}: warning: {}", fault.line, fault.what)),
    );
    (checked, told)
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let rows = [
        ("action \"make\" \"a\" {}", "4: `name`: required, string needed"),
        (
            "action \"make\" \"a\" {\nname = \"x\"\ntags = [action.make.a.id]\n}",
            "6: `make.a` refers to itself",
        ),
        (
            "action \"make\" \"a\" {\nname = \"x\"\ntags = action.make.b.size\n}\naction \"make\" \"b\" { name = \"x\" }",
            "6: `tags`: a list needed, a number found",
        ),
        (
            "action \"make\" \"a\" {\nname = \"x\"\ntags = [action.make.b]\n}\naction \"make\" \"b\" { name = \"x\" }",
            "6: `tags[0]`: a string needed, an object found",
        ),
        (
            "action \"make\" \"a\" { name = action.unmake.b.x }\naction \"unmake\" \"b\" { id = \"x\" }",
            "4: `action.unmake.b.x`: the action `unmake.b` gives no outputs",
        ),
        (
            "action \"make\" \"a\" { name = action.make.bb.id }\naction \"make\" \"b\" { name = \"x\" }",
            "4: `action.make.bb.id`: there is no action `make.bb`; did you mean `make.b`?",
        ),
        (
            "action \"make\" \"a\" { name = action.make.b.id }\naction \"make\" \"b\" { name = action.make.a.id }",
            "5: these actions wait for each other: `make.b` before `make.a` before `make.b`",
        ),
        (
            "action \"make\" \"a\" {\nname = \"x\"\ndepends_on = [action.make.c]\n}",
            "6: there is no action `make.c`",
        ),
        (
            "action \"make\" \"a\" {\nname = \"x\"\nprovider = other\n}",
            "6: the provider `other` is not in `required_providers`",
        ),
        (
            "action \"make\" \"a\" {\nname = \"x\"\nlifecycle {\nteardown \"gone\" {}\n}\n}",
            "7: the provider `things` has no action `gone`",
        ),
        (
            "action \"make\" \"a\" {\nname = \"x\"\nlifecycle {\nteardown \"unmake\" {\nid = self.di\n}\n}\n}",
            "8: `self.di`: there is no `di`; known: id, size",
        ),
        (
            "action \"make\" \"a\" { name = self.id }",
            "4: `self.id`: `self` is the action that a `teardown` belongs to",
        ),
        (
            "action \"make\" \"a\" { name = local.x }",
            "4: `local.x`: there is no `local`: a reference begins with var or action",
        ),
        (
            "action \"make\" \"a\" { name = component.x.y }",
            "4: `component.x.y`: components are not supported",
        ),
        ("output \"o\" {\nvalue = action.make.a.id\n}", "5: `action.make.a.id`: there is no action `make.a`"),
        ("variable \"v\" {\ntype = number\ndefault = \"x\"\n}", "6: the default of `v`: number needed"),
        ("variable \"v\" {}", "4: the variable `v` has no value and no default"),
        (
            "action \"make\" \"a\" {\nname = \"x\"\nold = \"y\"\n}",
            "6: warning: `old` is deprecated: use name",
        ),
    ];
    for (body, expected) in rows {
        let (_, told) = checked(body);
        assert!(told.iter().any(|fault| fault.starts_with(expected)), "{body}: {told:?}");
    }
}

#[test]
fn attributes_are_converted_and_completed_as_far_as_they_are_known() {
    let (checked, told) = checked(
        "action \"make\" \"a\" {\nname = 5\ntags = [\"x\", action.make.b.id]\nkey = \"k\"\n}\naction \"make\" \"b\" { name = \"b\" }",
    );
    let checked = checked.unwrap_or_else(|| panic!("{told:?}"));
    assert_eq!(checked.order, [1, 0]);
    let attrs = &checked.steps[0].attrs;
    assert_eq!(attrs["name"].value.known().unwrap().to_json(), "\"5\"");
    assert_eq!(attrs["size"].value.known().unwrap().to_json(), "3");
    assert!(matches!(&attrs["tags"].value, Partial::List(items) if items.len() == 2));
    assert_eq!((attrs["key"].secret, attrs["name"].secret), (true, false));
}

#[test]
fn a_teardown_waits_for_what_it_refers_to() {
    let (checked, told) = checked(
        "action \"make\" \"a\" {\nname = \"a\"\nlifecycle {\nteardown \"unmake\" { id = action.make.b.id }\n}\n}\naction \"make\" \"b\" { name = \"b\" }",
    );
    assert_eq!(checked.unwrap_or_else(|| panic!("{told:?}")).order, [1, 0]);
}

#[test]
fn what_comes_of_sensitive_outputs_and_variables_is_sensitive() {
    let (checked, told) = checked(
        "variable \"v\" {\ndefault = \"x\"\nsensitive = true\n}\naction \"secret\" \"s\" {}\noutput \"a\" { value = action.secret.s }\noutput \"b\" { value = \"${var.v}\" }\noutput \"c\" { value = 1 }",
    );
    let checked = checked.unwrap_or_else(|| panic!("{told:?}"));
    let secret: Vec<bool> = checked.planned_outputs.iter().map(|(_, known)| known.secret).collect();
    assert_eq!(secret, [true, true, false]);
}
