//! The certificate of the web listener, read anew when its files change.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::config::ListenTls;

/// How often the files are looked at, at most: at a handshake.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Why the certificate of the listener cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListenTlsError {
    /// A file cannot be read, or holds no PEM of the kind.
    #[error("`{path}` holds no {what} that can be read")]
    File {
        /// The file.
        path: PathBuf,
        /// `certificate` or `private key`.
        what: &'static str,
        /// Why.
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    /// The certificate file holds none.
    #[error("`{path}` holds no certificate")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The two do not belong together, or cannot be used.
    #[error("certificate and key cannot be used together")]
    Unusable(#[source] rustls::Error),
}

/// Reads both files.
pub(crate) fn read(files: &ListenTls) -> Result<CertifiedKey, ListenTlsError> {
    let wrong = |path: &Path, what: &'static str| {
        let path = path.to_owned();
        move |source| ListenTlsError::File { path, what, source }
    };
    let chain: Vec<_> = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect)
        .map_err(wrong(&files.certificate, "certificate"))?;
    if chain.is_empty() {
        return Err(ListenTlsError::Empty { path: files.certificate.clone() });
    }
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(wrong(&files.key, "private key"))?;
    CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider()).map_err(ListenTlsError::Unusable)
}

/// When the two files were changed last, and which files they are.
type Stamp = [Option<[i64; 3]>; 2];

struct Current {
    key: Arc<CertifiedKey>,
    stamp: Stamp,
    looked: Instant,
}

/// The certificate now. A new pair that cannot be used leaves the old one in place, with a line in the log.
pub(super) struct Renewing {
    files: ListenTls,
    current: Mutex<Current>,
}

/// Shows no key.
impl fmt::Debug for Renewing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renewing").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Renewing {
    /// A TLS server that shows it: TLS 1.2 or newer, no client certificates.
    pub fn server(files: ListenTls) -> Result<ServerConfig, ListenTlsError> {
        let current = Current { stamp: stamp(&files), key: Arc::new(read(&files)?), looked: Instant::now() };
        let renewing = Self { files, current: Mutex::new(current) };
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(ListenTlsError::Unusable)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(renewing));
        Ok(config)
    }

    fn now(&self, now: Instant) -> Arc<CertifiedKey> {
        let mut current: MutexGuard<'_, Current> =
            self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(current.looked) >= LOOK_EVERY {
            current.looked = now;
            let stamp = stamp(&self.files);
            if stamp != current.stamp {
                current.stamp = stamp;
                match read(&self.files) {
                    Ok(key) => {
                        current.key = Arc::new(key);
                        tracing::info!(
                            component = "web",
                            "The certificate of the web listener was read anew"
                        );
                    }
                    Err(error) => {
                        let error = quartermaster_actors::text::chain(&error);
                        tracing::error!(
                            component = "web",
                            "The new certificate cannot be used, the old one stays: {error}"
                        );
                    }
                }
            }
        }
        Arc::clone(&current.key)
    }
}

impl ResolvesServerCert for Renewing {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.now(Instant::now()))
    }
}

fn stamp(files: &ListenTls) -> Stamp {
    [&files.certificate, &files.key].map(|path| {
        let metadata = std::fs::metadata(path).ok()?;
        Some([metadata.mtime(), metadata.mtime_nsec(), i64::from_ne_bytes(metadata.ino().to_ne_bytes())])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(files: &ListenTls, name: &str) {
        let issued = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        std::fs::write(&files.certificate, issued.cert.pem()).unwrap();
        std::fs::write(&files.key, issued.signing_key.serialize_pem()).unwrap();
    }

    #[test]
    fn a_changed_certificate_is_shown_and_a_broken_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let files = ListenTls { certificate: at("c.pem"), key: at("k.pem") };
        write(&files, "one.example.net");
        let key = Arc::new(read(&files).unwrap());
        let born = Instant::now();
        let current = Mutex::new(Current { key: Arc::clone(&key), stamp: [None, None], looked: born });
        let renewing = Renewing { files: files.clone(), current };
        write(&files, "two.example.net");
        assert_eq!(renewing.now(born).cert, key.cert, "not looked at again yet");
        let second = renewing.now(born + LOOK_EVERY);
        assert_ne!(second.cert, key.cert);
        std::fs::write(&files.key, "nothing").unwrap();
        renewing.current.lock().unwrap().stamp = [None, None];
        assert_eq!(renewing.now(born + LOOK_EVERY * 2).cert, second.cert);
    }

    #[test]
    fn what_is_wrong_with_the_files_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let files = ListenTls { certificate: at("c.pem"), key: at("k.pem") };
        assert!(read(&files).unwrap_err().to_string().contains("no certificate that can be read"));
        write(&files, "one.example.net");
        std::fs::write(&files.certificate, "").unwrap();
        assert!(read(&files).unwrap_err().to_string().ends_with("holds no certificate"));
        write(&files, "one.example.net");
        let other = rcgen::generate_simple_self_signed(["x".to_owned()]).unwrap();
        std::fs::write(&files.key, other.signing_key.serialize_pem()).unwrap();
        assert_eq!(read(&files).unwrap_err().to_string(), "certificate and key cannot be used together");
        assert!(Renewing::server(files).is_err());
    }
}
