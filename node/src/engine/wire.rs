//! Between the engine's own words and those on the wire.

use quartermaster_proto::mesh::fill::{Body, Failure, FileReply, FillFile, RequestCode, Written};
use quartermaster_proto::mesh::plan::{
    self as mesh, Assignment, Attributes, Contents, Digest, MarkerPlace, OnChange, Planned, WriteMode,
    read_assignment,
};
use quartermaster_proto::mesh::report;
use quartermaster_proto::mesh::{Fault as MeshFault, key};

use super::declaration::{Declaration, DeclaredFile, Writing};
use super::disk::{FilePath, PathError};
use super::keeper::Outcome;
use super::managed::Format;
use super::plan::{Action, Filled};
use super::program::{Program, Told};

/// Reads one module's declaration from its assignment's value.
///
/// # Errors
/// The value is no assignment of this machine and module.
pub fn declaration(node: &str, module: &str, value: &[u8], revision: u64) -> Result<Declaration, MeshFault> {
    let (assignment, _) = read_assignment(&key::module_key(node, module)?, value)?;
    Ok(declared(assignment, value, revision))
}

/// The declaration of an assignment with this value.
pub fn declared(assignment: Assignment, value: &[u8], revision: u64) -> Declaration {
    let plan = Digest::of(value);
    let module = assignment.module;
    let files = match assignment.planned {
        Planned::Nothing => Some(Vec::new()),
        Planned::Unreadable(fault) => {
            tracing::warn!(module, %fault, "the plan of a module cannot be read; what it has stays");
            None
        }
        Planned::Plan(plan) => match files(&plan.contents) {
            Ok(files) => Some(files),
            Err(error) => {
                tracing::warn!(module, %error, "the plan of a module cannot be read; what it has stays");
                None
            }
        },
    };
    Declaration { module, plan: plan.to_string(), revision, files }
}

fn files(contents: &Contents) -> Result<Vec<DeclaredFile>, PathError> {
    let secrets = contents
        .secrets
        .iter()
        .filter_map(|secret| Some((secret.path.as_deref()?, &secret.attributes, &secret.on_change)));
    let credentials = contents.provisions.iter().filter_map(|provision| {
        Some((provision.path.as_deref()?, &provision.attributes, &provision.on_change))
    });
    let alone = secrets.chain(credentials).map(|(path, attributes, on_change)| {
        file(path, Writing::Owned, attributes, on_change.as_ref(), true)
    });
    let templates = contents
        .files
        .iter()
        .map(|plan| file(&plan.path, writing(&plan.write), &plan.attributes, plan.on_change.as_ref(), false));
    alone.chain(templates).collect()
}

fn file(
    path: &str,
    writing: Writing,
    attributes: &Attributes,
    on_change: Option<&OnChange>,
    is_secret: bool,
) -> Result<DeclaredFile, PathError> {
    Ok(DeclaredFile {
        path: FilePath::parse(path)?,
        writing,
        owner: attributes.owner.clone(),
        group: attributes.group.clone(),
        mode: attributes.mode.map(|mode| u32::from(mode.bits())),
        program: on_change.map(program),
        is_secret,
    })
}

fn writing(mode: &WriteMode) -> Writing {
    match mode {
        WriteMode::Owned => Writing::Owned,
        WriteMode::Seed => Writing::Seed,
        WriteMode::Managed(managed) => Writing::Managed(match managed.format {
            mesh::Format::Block => Format::Block {
                comment: managed.comment.clone().unwrap_or_default(),
                end: managed.comment_end.clone(),
                at_start: managed.place == MarkerPlace::Start,
            },
            mesh::Format::Ini => Format::Ini,
            mesh::Format::Toml => Format::Toml,
            mesh::Format::Json => Format::Json,
            mesh::Format::Yaml => Format::Yaml,
        }),
    }
}

fn program(on_change: &OnChange) -> Program {
    match on_change {
        OnChange::Restart { unit, start } => Program::Restart { unit: unit.clone(), start: *start },
        OnChange::Reload { unit, start } => Program::Reload { unit: unit.clone(), start: *start },
        OnChange::Command(words) => Program::Command(words.clone()),
    }
}

/// What a request wants written.
pub fn filled(file: FillFile) -> Filled {
    Filled { path: file.path, content: file.content, sha256: file.sha256, is_sensitive: file.sensitive }
}

/// The answer about files and programs.
pub fn written(outcomes: Vec<Outcome>, told: Vec<(Program, Told)>) -> Body {
    let files = outcomes.into_iter().map(|outcome| match outcome.done {
        Ok(done) => FileReply {
            path: outcome.path,
            action: Some(action(done.action)),
            sha256: done.sha256,
            err: None,
        },
        Err(fault) => FileReply {
            path: outcome.path,
            action: None,
            sha256: None,
            err: Some(Failure { code: fault.code, reason: fault.reason }),
        },
    });
    let programs = told.into_iter().map(|(program, told)| {
        let (result, reason) = match told {
            Told::Done => (report::ProgramResult::Done, None),
            Told::Skipped(why) => (report::ProgramResult::Skipped, Some(why)),
            Told::Failed(why) => (report::ProgramResult::Failed, Some(why)),
        };
        report::ProgramReport { program: reported(program), result, reason }
    });
    Body::Written(Written { files: files.collect(), programs: programs.collect() })
}

fn reported(program: Program) -> report::Program {
    match program {
        Program::Restart { unit, .. } => report::Program::Restart(unit),
        Program::Reload { unit, .. } => report::Program::Reload(unit),
        Program::Command(words) => report::Program::Command(words),
    }
}

/// A refusal of a whole request.
pub fn failed(code: RequestCode, reason: impl Into<String>) -> Body {
    Body::Failed(Failure { code, reason: reason.into() })
}

const fn action(action: Action) -> report::Action {
    match action {
        Action::Written => report::Action::Written,
        Action::Restored => report::Action::Restored,
        Action::Unchanged => report::Action::Unchanged,
        Action::Seeded => report::Action::Seeded,
        Action::Kept => report::Action::Kept,
    }
}
