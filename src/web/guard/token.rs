//! Where tokens come from, and the error of a token that cannot be used.

use std::fmt;
use std::sync::Arc;

use secrecy::SecretString;

/// The shortest token that is taken: 16 characters cannot be guessed through the throttle.
pub const MIN_TOKEN: usize = 16;
/// The longest.
pub const MAX_TOKEN: usize = 1024;

/// Why a token file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// It cannot be read.
    #[error("it cannot be read")]
    Unreadable(#[source] std::io::Error),
    /// It is no plain file.
    #[error("it is no file")]
    NoFile,
    /// Others may read or change it.
    #[error("users other than its owner and group may read or change it (mode {mode:04o})")]
    Open {
        /// Its mode.
        mode: u32,
    },
    /// It holds something else than one line of visible characters.
    #[error("it is not one line of visible ASCII characters")]
    NoText,
    /// It is too short to be safe, or too long.
    #[error("its token has {length} characters; {MIN_TOKEN} to {MAX_TOKEN} are taken")]
    Length {
        /// Characters.
        length: usize,
    },
}

/// Reads one token, anew at each use, so that a changed file counts at once.
#[derive(Clone)]
pub struct TokenSource(Arc<dyn Fn() -> Result<SecretString, TokenError> + Send + Sync>);

impl TokenSource {
    /// A source that reads by this function.
    pub fn new(read: impl Fn() -> Result<SecretString, TokenError> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// The token now.
    pub fn read(&self) -> Result<SecretString, TokenError> {
        (self.0)()
    }
}

/// Shows no token.
impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenSource")
    }
}
