//! The web listener's wiring: its tokens, its certificate, and who answers.

use std::io::{Read as _, Seek as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use quartermaster_actors::control::ControlHandle;
use quartermaster_actors::metrics::MetricsHandle;
use secrecy::SecretString;
use zeroize::Zeroizing;

use super::web_tls::Renewing;
use crate::config::Config;
use crate::operate::Operator;
use crate::web::{
    AccessSettings, BoundWeb, MAX_TOKEN, MIN_TOKEN, TokenError, TokenSource, WebError, WebServer, WebState,
};

/// Takes the listener into service.
pub(super) fn serve(
    bound: BoundWeb,
    config: &Config,
    metrics: MetricsHandle,
    control: &ControlHandle,
    operator: &Operator,
) -> Result<WebServer, WebError> {
    let source = |file: &Option<std::path::PathBuf>| {
        let file = file.clone()?;
        Some(TokenSource::new(move || read_token(&file)))
    };
    let tls = match &config.web.tls {
        Some(files) => Some(Renewing::server(files.clone()).map_err(|error| WebError::Tls(Box::new(error)))?),
        None => None,
    };
    let access = AccessSettings {
        admin: source(&config.web.admin_token_file),
        read: source(&config.web.read_token_file),
        names: config.web.names.clone(),
        tls: tls.is_some(),
    };
    let state =
        WebState { metrics, desk: Arc::new(operator.clone()), run_state: control.subscribe(), access };
    bound.serve(state, tls.as_ref())
}

/// The token in this file: one line, long enough, and not for everybody to read.
pub(crate) fn read_token(path: &Path) -> Result<SecretString, TokenError> {
    let mut file = std::fs::File::open(path).map_err(TokenError::Unreadable)?;
    let metadata = file.metadata().map_err(TokenError::Unreadable)?;
    if !metadata.is_file() {
        return Err(TokenError::NoFile);
    }
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o027 != 0 {
        return Err(TokenError::Open { mode });
    }
    file.rewind().map_err(TokenError::Unreadable)?;
    let mut text = Zeroizing::new(Vec::with_capacity(MAX_TOKEN + 64));
    let most = u64::try_from(MAX_TOKEN + 64).unwrap_or(u64::MAX);
    file.take(most).read_to_end(&mut text).map_err(TokenError::Unreadable)?;
    let token = std::str::from_utf8(&text).map_err(|_| TokenError::NoText)?.trim_end();
    if !(MIN_TOKEN..=MAX_TOKEN).contains(&token.len()) {
        return Err(TokenError::Length { length: token.len() });
    }
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(TokenError::NoText);
    }
    Ok(SecretString::from(token))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    fn read(content: &str, mode: u32) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, content).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        read_token(&file).map(|token| token.expose_secret().to_owned()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_line_of_a_private_file_is_a_token() {
        assert_eq!(read("0123456789abcdef\n", 0o600), Ok("0123456789abcdef".to_owned()));
        assert_eq!(read("0123456789abcdef", 0o440), Ok("0123456789abcdef".to_owned()));
    }

    #[test]
    fn a_file_for_everybody_is_refused() {
        for mode in [0o644, 0o602, 0o620, 0o601] {
            assert!(
                read("0123456789abcdef", mode).unwrap_err().contains("may read or change it"),
                "{mode:o}"
            );
        }
    }

    #[test]
    fn what_is_no_token_is_refused() {
        assert!(read("short\n", 0o600).unwrap_err().contains("5 characters"));
        assert!(read("", 0o600).unwrap_err().contains("0 characters"));
        assert!(read("0123456789\nabcdef0123", 0o600).unwrap_err().contains("one line"));
        assert!(read("0123456789 abcdef", 0o600).unwrap_err().contains("one line"));
        assert!(read(&"x".repeat(MAX_TOKEN + 1), 0o600).unwrap_err().contains("1025 characters"));
        assert!(read(&"é".repeat(20), 0o600).unwrap_err().contains("one line"));
        assert!(matches!(read_token(Path::new("/no/such/file")), Err(TokenError::Unreadable(_))));
        assert!(matches!(read_token(Path::new("/")), Err(TokenError::NoFile)));
    }
}
