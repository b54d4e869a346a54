//! The builtin providers, in this process and through a pipe: the same answers either way, and each passes the check.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use actix::Actor as _;
use quartermaster_actors::builtin::Builtin;
use quartermaster_actors::child::Orphans;
use quartermaster_actors::provider::{
    Action, Answer, Ask, Call, ProviderHandle, ProviderParts, ProviderRunner, ProviderSettings, probe,
};
use quartermaster_actors::supervise::Slot;
use quartermaster_proto::provider::{Executed, Limits, Members, Value};
use tempfile::TempDir;

use super::support::program;
use super::verbs::check_good;

fn members(json: &str) -> Members {
    Value::from_json(json, &Limits::PROVIDER).unwrap().as_object().unwrap().clone()
}

fn script(folder: &Path, builtin: Builtin) -> PathBuf {
    let binary = env!("CARGO_BIN_EXE_quartermaster");
    let text = format!("#!/bin/sh\nexec {binary} provider builtin {} \"$@\"\n", builtin.name());
    program(folder, builtin.name(), &text)
}

/// In this process, and as a program.
fn both(folder: &Path, builtin: Builtin) -> [ProviderSettings; 2] {
    [ProviderSettings::builtin("b", builtin), ProviderSettings::new("b", script(folder, builtin))].map(
        |mut settings| {
            settings.environment = vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())];
            // A debug build starts slowly on a busy machine.
            settings.timeouts.schema = Duration::from_mins(1);
            settings.timeouts.describe = Duration::from_mins(1);
            settings
        },
    )
}

fn runner(settings: ProviderSettings) -> ProviderHandle {
    let parts = Arc::new(ProviderParts::new(settings, Arc::new(|_| {}), Orphans::unadopted()));
    let slot = Slot::new("provider", 16);
    slot.set(ProviderRunner::new(Arc::clone(&parts), None).start());
    ProviderHandle::new(slot, parts)
}

async fn act(handle: &ProviderHandle, action: &str, attrs: &str) -> Result<Executed, String> {
    let action = Action { action: action.to_owned(), attrs: members(attrs), undo: true, context: None };
    match handle.call(Call { ask: Ask::Execute(action), timeout: None, about: None }, None).await {
        Ok(Answer::Executed(done)) => Ok(done),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(format!("{:?} {}", error.outcome, error.error)),
    }
}

/// What these calls come to, in words, with the folder's name taken out.
async fn conversation(settings: ProviderSettings, root: &Path, calls: &[(&str, &str)]) -> Vec<String> {
    let handle = runner(settings);
    let mut said = Vec::new();
    for (action, attrs) in calls {
        let answer = match act(&handle, action, attrs).await {
            Ok(done) => {
                let undo =
                    done.undo.iter().map(|call| format!(" undo {} {}", call.action, shown(&call.attrs)));
                format!("{}{}", shown(&done.outputs), undo.collect::<String>())
            }
            Err(error) => error,
        };
        said.push(answer.replace(root.to_str().unwrap(), "ROOT"));
    }
    handle.close(Duration::ZERO).await;
    said
}

fn shown(members: &Members) -> String {
    Value::Object(members.clone()).to_json()
}

#[actix::test]
async fn each_answers_the_same_in_this_process_and_through_a_pipe() {
    let calls: [(Builtin, &[(&str, &str)]); 2] = [
        (
            Builtin::File,
            &[
                ("write", r#"{"path":"a/b","content":"one"}"#),
                ("write", r#"{"path":"a/b","content":"two"}"#),
                ("line_add", r#"{"path":"list","line":"web1"}"#),
                ("line_remove", r#"{"path":"list","line":"web2"}"#),
                ("remove", r#"{"path":"a/b"}"#),
                ("remove", r#"{"path":"a/b"}"#),
                ("write", r#"{"path":"../x","content":""}"#),
                ("write", r#"{"path":"x"}"#),
                ("chmod", "{}"),
            ],
        ),
        (
            Builtin::Exec,
            &[
                ("run", r#"{"command":["cat"],"stdin":"hello","undo":["true"]}"#),
                ("run", r#"{"command":["sh","-c","echo $0 $#","x","y"]}"#),
                ("run", r#"{"command":["false"]}"#),
                ("run", r#"{"command":["/not/there"]}"#),
                ("run", "{}"),
            ],
        ),
    ];
    for (builtin, calls) in calls {
        let (mut heard, folder) = (Vec::new(), TempDir::new().unwrap());
        for mut settings in both(folder.path(), builtin) {
            let root = TempDir::new().unwrap();
            let probed = probe(&settings, &Orphans::unadopted()).await.unwrap();
            if builtin == Builtin::File {
                settings.config = members(&format!(r#"{{"root":{:?}}}"#, root.path()));
            }
            let mut said = vec![probed.schema.to_value().to_json()];
            said.extend(conversation(settings, root.path(), calls).await);
            heard.push(said);
        }
        let [inside, outside] = heard.as_slice() else { panic!() };
        assert_eq!(inside, outside, "{builtin}");
        assert!(inside.iter().any(|answer| answer.contains(" undo ")), "{inside:?}");
        assert!(inside.iter().any(|answer| answer.starts_with("Failed ")), "{inside:?}");
        assert!(inside.iter().any(|answer| answer.starts_with("NotSent invalid_attrs")), "{inside:?}");
    }
}

#[test]
fn each_passes_the_check_of_providers() {
    let folder = TempDir::new().unwrap();
    let config = format!(r#"{{"root":{:?}}}"#, folder.path());
    let file = script(folder.path(), Builtin::File);
    let attempt = r#"write={"path":"tried","content":"x"}"#;
    check_good(&file, &["--config", &config, "--try", attempt], 4);
    assert!(!folder.path().join("tried").exists(), "taken back");
    let attempt = r#"run={"command":["true"],"undo":["true"]}"#;
    check_good(&script(folder.path(), Builtin::Exec), &["--try", attempt], 3);
}
