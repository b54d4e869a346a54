//! Providers that are part of the program, in a file of steps: no process is started for them.

use std::fs;

use super::site::Site;

const STEPS: &str = r#"scenario "demo" {
  required_providers {
    files = { source = "builtin/file" }
    run   = { source = "builtin/exec" }
  }
  variable "root" { type = string }
  provider "files" { root = var.root }
  action "run" "greeting" {
    command = ["sh", "-c", "echo hello; echo told >&2"]
    undo    = ["sh", "-c", "echo gone >>${var.root}/undone"]
  }
  action "write" "page" {
    path    = "pages/${var.name}"
    content = action.run.greeting.stdout
  }
  variable "name" { default = "index" }
  action "line_add" "list" {
    path       = "list"
    line       = "page ${var.name}"
    depends_on = [action.write.page]
  }
  FAILS
  output "page" { value = action.write.page.path }
}
"#;

fn site(fails: &str) -> Option<(Site, String)> {
    let site = Site::new("")?;
    site.steps(&STEPS.replace("FAILS", fails));
    fs::create_dir(site.path("root")).unwrap();
    let root = format!("root={}", site.path("root").display());
    Some((site, root))
}

#[test]
fn builtin_providers_are_planned_applied_and_taken_back() {
    let Some((site, root)) = site("") else { return };
    site.run(&["plan", "steps.hcl", "--var", &root]).ended(0).says(&["action.write.page (files)"]);
    let ran = site.run(&["apply", "steps.hcl", "--var", &root, "--debug"]).ended(0);
    assert!(ran.err.contains("told"), "what a program says on standard error is logged: {ran:?}");
    assert_eq!(site.read("root/pages/index"), "hello\n");
    assert_eq!(site.read("root/list"), "page index\n");
    site.undo().ended(0);
    assert_eq!((site.read("root/list"), site.path("root/pages/index").exists()), (String::new(), false));
    assert_eq!(site.read("root/undone"), "gone\n");
    assert!(!fs::read_to_string(site.record()).unwrap().contains("hello\\n\",\"path"), "content is covered");
}

#[test]
fn what_a_builtin_cannot_do_is_told_before_anything_is_done() {
    let Some((site, root)) = site("action \"write\" \"bad\" { path = \"x\" }") else { return };
    site.run(&["apply", "steps.hcl", "--var", &root]).ended(3).says(&["content"]);
    site.steps(&STEPS.replace("FAILS", "").replace("builtin/exec", "builtin/http"));
    site.run(&["plan", "steps.hcl", "--var", &root]).ended(3).says(&["no builtin provider", "exec, file"]);
    site.steps(
        &STEPS.replace("FAILS", "").replace("\"builtin/exec\" }", "\"builtin/exec\", pin = \"copy\" }"),
    );
    site.run(&["plan", "steps.hcl", "--var", &root]).ended(3).says(&["a builtin provider is no program"]);
    site.steps(&STEPS.replace("FAILS", ""));
    site.run(&["apply", "steps.hcl", "--var", "root=/not/there"]).ended(4).says(&["is no folder"]);
    assert!(fs::read_dir(site.path("root")).unwrap().next().is_none(), "nothing was done");
}
