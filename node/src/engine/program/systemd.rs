//! Units over D-Bus.

use std::time::Duration;

use futures::StreamExt as _;
use zbus::zvariant::{OwnedObjectPath, OwnedValue};

use super::{Program, Told};

/// How long a unit may take.
const LIMIT: Duration = Duration::from_secs(90);

const SERVICE: &str = "org.freedesktop.systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const UNIT: &str = "org.freedesktop.systemd1.Unit";
const ROOT: &str = "/org/freedesktop/systemd1";

/// Tells a unit, or says why the service manager could not be asked at all.
pub(super) async fn tell(program: &Program, is_user: bool) -> zbus::Result<Told> {
    let connection =
        if is_user { zbus::Connection::session().await? } else { zbus::Connection::system().await? };
    let manager = zbus::Proxy::new(&connection, SERVICE, ROOT, MANAGER).await?;
    manager.call_method("Subscribe", &()).await?;
    match tokio::time::timeout(LIMIT, told(&connection, &manager, program)).await {
        Ok(Ok(told)) => Ok(told),
        // What the manager itself answered is an answer; everything else is none.
        Ok(Err(zbus::Error::MethodError(name, text, _))) => {
            Ok(Told::Failed(text.unwrap_or_else(|| name.to_string())))
        }
        Ok(Err(error)) => Err(error),
        Err(_) => Ok(Told::Failed(format!("it was not done after {} s", LIMIT.as_secs()))),
    }
}

async fn told(
    connection: &zbus::Connection,
    manager: &zbus::Proxy<'_>,
    program: &Program,
) -> zbus::Result<Told> {
    let (method, unit, start) = match program {
        Program::Restart { unit, start: true } => ("RestartUnit", unit, true),
        Program::Restart { unit, start: false } => ("TryRestartUnit", unit, false),
        Program::Reload { unit, start: true } => ("ReloadOrRestartUnit", unit, true),
        Program::Reload { unit, start: false } => ("ReloadUnit", unit, false),
        Program::Command(_) => return Ok(Told::Failed("a command is no unit".to_owned())),
    };
    let path: OwnedObjectPath = manager.call("LoadUnit", &(unit,)).await?;
    let proxy = zbus::Proxy::new(connection, SERVICE, path, UNIT).await?;
    let state = |value: OwnedValue| String::try_from(value).unwrap_or_default();
    if state(proxy.get_property("LoadState").await?) == "not-found" {
        return Ok(Told::Failed(format!("there is no unit {unit}")));
    }
    let active = state(proxy.get_property("ActiveState").await?);
    if !start && matches!(active.as_str(), "inactive" | "failed" | "deactivating") {
        // A unit that does not run reads its files when it starts.
        return Ok(Told::Done);
    }
    // Heard from before the job is there, so that its end cannot be missed.
    let mut ends = manager.receive_signal("JobRemoved").await?;
    let job: OwnedObjectPath = manager.call(method, &(unit, "replace")).await?;
    while let Some(end) = ends.next().await {
        let body = end.body();
        let (_, ended, _, result): (u32, OwnedObjectPath, String, String) = body.deserialize()?;
        if ended == job {
            return Ok(match result.as_str() {
                "done" | "skipped" => Told::Done,
                other => Told::Failed(format!("its job ended as {other}")),
            });
        }
    }
    Ok(Told::Failed("the service manager went away".to_owned()))
}
