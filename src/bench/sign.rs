//! The helper of an emulated x509 network: reads a request, signs the certificate request in it, answers.

use std::io::{Read as _, Write as _};
use std::path::Path;

use serde_json::{Value, json};

use crate::emulate::{Authority, sign};
use crate::exit::Exit;

/// Answers the request on standard input with the files of the authority in `dir`.
pub(super) fn answer(dir: &Path) -> Exit {
    match decide(dir) {
        Ok(text) => {
            let written = writeln!(std::io::stdout(), "{text}");
            if written.is_ok() { Exit::Success } else { Exit::Failure }
        }
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "{why}");
            Exit::Failure
        }
    }
}

fn decide(dir: &Path) -> Result<String, String> {
    let mut input = String::new();
    std::io::stdin()
        .read_to_string(&mut input)
        .map_err(|error| format!("could not read the request: {error}"))?;
    let request = serde_json::from_str(&input).map_err(|error| format!("the request is no JSON: {error}"))?;
    decision(dir, &request).map(|decision| decision.to_string())
}

/// What a server becomes whose request this is.
pub(super) fn decision(dir: &Path, request: &Value) -> Result<Value, String> {
    let text = |pointer: &str| request.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let read = |name: &str| {
        std::fs::read_to_string(dir.join(name)).map_err(|error| format!("could not read {name}: {error}"))
    };
    let authority = Authority { certificate: read("ca.pem")?, key: read("ca.key")? };
    let certificate = sign(&authority, text("/csr/csr")).map_err(|error| error.to_string())?;
    let ssldir = text("/csr/ssldir");
    Ok(json!({
        "defer": false,
        "certificate": certificate,
        "ca": authority.certificate,
        "ssldir": ssldir,
        "configuration": {
            "identity": text("/identity"),
            "plugin.choria.server.provision": "false",
            "plugin.choria.use_srv": "false",
            "plugin.security.provider": "file",
            "plugin.security.file.certificate": format!("{ssldir}/certificate.pem"),
            "plugin.security.file.key": format!("{ssldir}/private.pem"),
            "plugin.security.file.ca": format!("{ssldir}/ca.pem"),
        },
    }))
}
