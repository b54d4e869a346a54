//! What is read of a file of steps, and what is refused.

use crate::scenario::read::read;

fn faults(text: &str) -> Vec<String> {
    match read(text, None) {
        Ok(_) => Vec::new(),
        Err(faults) => {
            faults.errors().into_iter().map(|fault| format!("{}: {}", fault.line, fault.what)).collect()
        }
    }
}

#[test]
fn a_scenario_is_read_whatever_the_order_of_its_blocks() {
    let scenario = read(
        r#"
scenario "demo" {
  description = "d"
  tags        = ["x"]
  output "o" { value = action.make.a.id }
  action "make" "a" {
    provider   = dns
    depends_on = [action.make.b]
    name       = "n-${var.v}"
    lifecycle {
      timeout = "90s"
      retry {
        attempts = 3
        codes    = ["unavailable", "busy"]
        base     = "2s"
        max      = "1m"
      }
      teardown "unmake" {
        id = self.id
      }
    }
  }
  provider "dns" { endpoint = "e" }
  action "make" "b" {}
  variable "v" {
    type      = object({ a = string, b = optional(number) })
    default   = { a = "x" }
    sensitive = true
  }
  required_providers { dns = { source = "exec:./p" } }
}
"#,
        None,
    )
    .unwrap();
    assert_eq!((scenario.name.as_str(), scenario.description.as_deref()), ("demo", Some("d")));
    let action = &scenario.actions[0];
    assert_eq!((action.id().as_str(), action.line, action.attempts), ("make.a", 6, 3));
    assert_eq!(action.provider, Some((7, "dns".to_owned())));
    assert_eq!(action.depends_on[0].to_string(), "action.make.b");
    assert_eq!(action.timeout, Some(std::time::Duration::from_secs(90)));
    assert_eq!(action.attrs["name"].line, 9);
    let retry = &action.retry;
    let codes = retry.codes.as_ref().unwrap().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        (codes.join(" ").as_str(), retry.base.as_secs(), retry.max.as_secs()),
        ("unavailable busy", 2, 60)
    );
    let teardown = action.teardown.as_ref().unwrap();
    assert_eq!((teardown.action.as_deref(), teardown.line), (Some("unmake"), 18));
    assert_eq!(scenario.variables["v"].ty.to_string(), "object({a=string,b=optional(number)})");
    assert!(scenario.variables["v"].sensitive);
    assert_eq!(scenario.providers["dns"].config["endpoint"].line, 23);
}

#[test]
fn what_is_not_supported_is_refused_by_its_name_and_line() {
    let rows = [
        ("component \"x\" \"y\" {}", "2: the block `component` is not supported"),
        ("action \"a\" \"b\" {\n  for_each = upper(\"x\")\n}", "3: the function `upper` is not supported"),
        ("action \"a\" \"b\" {\n  nested {}\n}", "3: the block `nested` is not supported here"),
        (
            "action \"a\" \"b\" {\n  lifecycle {\n    on_failure = \"x\"\n  }\n}",
            "4: `on_failure` in `lifecycle` is not supported",
        ),
        ("action \"a\" \"b\" {\n  x = [for y in z : y]\n}", "3: a `for` expression is not supported"),
        (
            "action \"a\" \"b\" {\n  lifecycle {\n    retry { codes = \"x\" }\n  }\n}",
            "4: `codes` is a list of texts",
        ),
        ("action \"a\" \"b\" {\n  lifecycle {\n    retry { base = \"soon\" }\n  }\n}", "4: `base` is a time"),
        ("action \"a\" {}", "2: the block `action` needs a type and a name"),
        ("variable \"v\" {\n  validation {}\n}", "3: the block `validation` is not supported here"),
        ("variable \"v\" {\n  nullable = true\n}", "3: a variable has no attribute `nullable`"),
        ("variable \"v\" {\n  type = strin\n}", "3: no type: "),
        ("locals {\n}", "2: the block `locals` is not supported"),
        ("provider \"dns\" {}", "2: the provider `dns` is not in `required_providers`"),
        ("output \"o\" {}", "2: the output `o` has no `value`"),
        ("timeout = 3", "2: a scenario has no attribute `timeout`"),
        ("action \"a\" \"b\" {\n  depends_on = [action.a]\n}", "3: `depends_on` is a list of actions"),
        ("action \"a\" \"b\" {}\naction \"a\" \"b\" {}", "3: a second action is called `a.b`"),
        ("required_providers {\n  dns = \"exec:x\"\n}", "3: the provider `dns` needs { source = "),
    ];
    for (body, expected) in rows {
        let found = faults(&format!("scenario \"s\" {{\n{body}\n}}\n"));
        assert!(found.iter().any(|fault| fault.starts_with(expected)), "{body}: {found:?}");
    }
}

#[test]
fn faults_outside_of_a_scenario() {
    for (text, expected) in [
        ("", "1: the file has no `scenario` block"),
        ("a = 1\nscenario \"s\" {}", "1: the attribute `a` is not supported here"),
        ("scenario \"s\" {\n  a = \n}", "2: this is no HCL"),
        (
            "scenario \"s\" {}\nscenario \"t\" {}",
            "2: the file has several scenarios (s, t): choose one with --scenario",
        ),
        ("scenario \"s\" {\n  description = \"a\"\n  description = \"b\"\n}", "3: this is no HCL"),
    ] {
        let found = faults(text);
        assert!(found.iter().any(|fault| fault.starts_with(expected)), "{text}: {found:?}");
    }
    let two = "scenario \"s\" {}\nscenario \"t\" {}";
    assert_eq!(read(two, Some("t")).unwrap().line, 2);
    assert!(read(two, Some("u")).is_err());
}
