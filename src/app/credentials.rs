//! The vault as the link sees it.

use std::error::Error;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use quartermaster_actors::link::{Credentials, CredentialsError, Login};
use quartermaster_actors::text::chain;
use quartermaster_actors::vault::VaultHandle;
use quartermaster_proto::choria::envelope::Proof;
use zeroize::Zeroizing;

/// Hands the link what the vault makes, and nothing else of it.
pub struct VaultCredentials(pub VaultHandle);

fn failed(doing: &'static str) -> impl Fn(&dyn Error) -> CredentialsError {
    move |error| CredentialsError { doing, reason: chain(error) }
}

impl Credentials for VaultCredentials {
    fn caller(&self) -> BoxFuture<'static, Result<String, CredentialsError>> {
        let vault = self.0.clone();
        async move { vault.caller().await.map_err(|error| failed("find the caller id")(&error)) }.boxed()
    }

    fn tls_config(&self) -> BoxFuture<'static, Result<Option<Arc<rustls::ClientConfig>>, CredentialsError>> {
        let vault = self.0.clone();
        async move { vault.tls_config().await.map_err(|error| failed("set up TLS")(&error)) }.boxed()
    }

    fn login(&self, nonce: Option<Vec<u8>>) -> BoxFuture<'static, Result<Login, CredentialsError>> {
        let vault = self.0.clone();
        async move {
            let login = vault.login(nonce).await.map_err(|error| failed("prepare the login")(&error))?;
            Ok(Login {
                user: login.user,
                password: login.password,
                token: login.token,
                jwt: login.jwt,
                signature: login.signature,
            })
        }
        .boxed()
    }

    fn sign_request(&self, body: Zeroizing<Vec<u8>>) -> BoxFuture<'static, Result<Proof, CredentialsError>> {
        let vault = self.0.clone();
        async move { vault.sign_request(body).await.map_err(|error| failed("sign a request")(&error)) }
            .boxed()
    }
}
