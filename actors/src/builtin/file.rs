//! `builtin/file`: files and lines of files below one folder, for inventories and whatever reads such.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::LocalBoxFuture;
use quartermaster_proto::provider::{
    ErrorCode, Execute, Executed, Invocation, Members, ProviderError, Value,
};
use tokio_util::sync::CancellationToken;

use super::attrs::{given, members, refused, text};
use super::folder::{Folder, Found, Place};
use super::work::Work;

pub const SCHEMA: &str = r#"{"name":"file","version":"1.0.0","protocol":"1",
"config":{"root":{"type":"string","required":true,"description":"the folder below which everything lies; it must be there"}},
"actions":{
"write":{"description":"write a whole file, or replace it","attrs":{"path":{"type":"string","required":true,"description":"below the root; folders on the way are made"},
"content":{"type":"string","required":true,"x_sensitive":true},"mode":{"type":"string","description":"octal, 0644 if left out"}},
"outputs":{"type":"object({changed=bool,path=string})"},"x_returns_undo":true},
"remove":{"description":"remove a file","attrs":{"path":{"type":"string","required":true}},"x_returns_undo":true},
"line_add":{"description":"have this line in a file, at its end if it is not there","attrs":{"path":{"type":"string","required":true},
"line":{"type":"string","required":true}},"outputs":{"type":"object({changed=bool,path=string})"},"x_idempotent":true,"x_returns_undo":true},
"line_remove":{"description":"remove this line from a file","attrs":{"path":{"type":"string","required":true},"line":{"type":"string","required":true}},
"x_idempotent":true,"x_returns_undo":true}},
"x_extensions":{"max_in_flight":64}}"#;

/// Permissions of a file whose action names none.
const MODE: u32 = 0o644;

/// The work of `builtin/file`.
#[derive(Default)]
pub struct Files {
    /// Held while something is read and written again, so that two lines added at once are both there.
    root: Arc<Mutex<PathBuf>>,
}

impl Work for Files {
    fn configure(&mut self, config: &Members) -> Result<(), ProviderError> {
        let root = PathBuf::from(text(config, "root"));
        if !root.is_absolute() || !root.is_dir() {
            let message = format!("`root`: {} is no folder with an absolute path", root.display());
            return Err(ProviderError::new(ErrorCode::InvalidConfig, message));
        }
        *self.root.lock().unwrap_or_else(PoisonError::into_inner) = root;
        Ok(())
    }

    fn execute(
        &self,
        call: Execute,
        _: CancellationToken,
    ) -> LocalBoxFuture<'static, Result<Executed, ProviderError>> {
        let root = Arc::clone(&self.root);
        Box::pin(async move {
            let act = move || {
                let root = root.lock().unwrap_or_else(PoisonError::into_inner);
                act(&Folder::new(&root), &call)
            };
            let done = tokio::task::spawn_blocking(act).await;
            done.unwrap_or_else(|error| Err(ProviderError::new(ErrorCode::Internal, error.to_string())))
        })
    }
}

fn act(folder: &Folder<'_>, call: &Execute) -> Result<Executed, ProviderError> {
    let path = text(&call.attrs, "path");
    let line = || {
        let line = text(&call.attrs, "line");
        if line.is_empty() || line.contains('\n') {
            return Err(refused("`line` should be one line"));
        }
        Ok(line)
    };
    match call.action.as_str() {
        "write" => write(folder, path, text(&call.attrs, "content"), mode(&call.attrs)?),
        "remove" => remove(folder, path),
        "line_add" => line_add(folder, path, line()?),
        _ => line_remove(folder, path, line()?),
    }
}

fn mode(attrs: &Members) -> Result<u32, ProviderError> {
    let Some(given) = given(attrs, "mode") else { return Ok(MODE) };
    let mode = u32::from_str_radix(given, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| refused("`mode` should be octal, from 0000 to 0777"))
}

fn write(folder: &Folder<'_>, path: &str, content: &str, mode: u32) -> Result<Executed, ProviderError> {
    let place = folder.place(path, true)?;
    let before = place.read()?;
    let changed = before.as_ref().is_none_or(|found| found.content != content || found.mode != mode);
    if changed {
        place.write(content, mode)?;
    }
    let undo = match before {
        Some(found) => put_back(path, &found),
        None => call("remove", [("path", path.into())]),
    };
    Ok(done(&place, changed, undo))
}

fn remove(folder: &Folder<'_>, path: &str) -> Result<Executed, ProviderError> {
    let place = folder.place(path, false)?;
    let found = place.read()?.ok_or_else(|| absent(path))?;
    place.remove()?;
    Ok(Executed { outputs: Members::new(), undo: vec![put_back(path, &found)] })
}

fn line_add(folder: &Folder<'_>, path: &str, line: &str) -> Result<Executed, ProviderError> {
    let place = folder.place(path, true)?;
    let found = place.read()?.unwrap_or(Found { content: String::new(), mode: MODE });
    let changed = !found.content.lines().any(|known| known == line);
    if changed {
        let gap = if found.content.is_empty() || found.content.ends_with('\n') { "" } else { "\n" };
        place.write(&format!("{}{gap}{line}\n", found.content), found.mode)?;
    }
    // Also when it was there: done twice, the first one may have been ours.
    Ok(done(&place, changed, call("line_remove", [("path", path.into()), ("line", line.into())])))
}

fn line_remove(folder: &Folder<'_>, path: &str, line: &str) -> Result<Executed, ProviderError> {
    let place = folder.place(path, false)?;
    let found = place.read()?.ok_or_else(|| absent(path))?;
    let kept: String =
        found.content.split_inclusive('\n').filter(|known| known.trim_end_matches('\n') != line).collect();
    if kept == found.content {
        return Err(ProviderError::new(ErrorCode::NotFound, format!("{path} has no such line")));
    }
    place.write(&kept, found.mode)?;
    let undo = call("line_add", [("path", path.into()), ("line", line.into())]);
    Ok(Executed { outputs: Members::new(), undo: vec![undo] })
}

fn done(place: &Place, changed: bool, undo: Invocation) -> Executed {
    let path = place.path().display().to_string();
    let outputs = members([("changed", changed.into()), ("path", path.as_str().into())]);
    Executed { outputs, undo: vec![undo] }
}

fn put_back(path: &str, found: &Found) -> Invocation {
    let mode = format!("{:04o}", found.mode);
    let content = found.content.as_str().into();
    call("write", [("path", path.into()), ("content", content), ("mode", mode.as_str().into())])
}

fn call<const N: usize>(action: &str, attrs: [(&str, Value); N]) -> Invocation {
    Invocation { action: action.to_owned(), attrs: members(attrs) }
}

fn absent(path: &str) -> ProviderError {
    ProviderError::new(ErrorCode::NotFound, format!("{path} is not there"))
}
