//! The vault as the link's keeper of keys.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use quartermaster_proto::choria::envelope::Proof;
use zeroize::Zeroizing;

use super::credentials::{Credentials, CredentialsError, Login};
use crate::vault::{VaultError, VaultHandle};

impl Credentials for VaultHandle {
    fn caller(&self) -> BoxFuture<'static, Result<String, CredentialsError>> {
        let vault = self.clone();
        async move { VaultHandle::caller(&vault).await.map_err(fault("name the caller")) }.boxed()
    }

    fn tls_config(&self) -> BoxFuture<'static, Result<Option<Arc<rustls::ClientConfig>>, CredentialsError>> {
        let vault = self.clone();
        async move { VaultHandle::tls_config(&vault).await.map_err(fault("prepare TLS")) }.boxed()
    }

    fn login(&self, nonce: Option<Vec<u8>>) -> BoxFuture<'static, Result<Login, CredentialsError>> {
        let vault = self.clone();
        async move {
            let login = VaultHandle::login(&vault, nonce).await.map_err(fault("prepare the login"))?;
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
        let vault = self.clone();
        async move { VaultHandle::sign_request(&vault, body).await.map_err(fault("sign the request")) }
            .boxed()
    }
}

/// The vault's error with all its causes in one line.
fn fault(doing: &'static str) -> impl FnOnce(VaultError) -> CredentialsError {
    move |error| CredentialsError { doing, reason: crate::text::chain(&error) }
}
