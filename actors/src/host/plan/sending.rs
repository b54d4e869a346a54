//! What a cycle sends: to the host, to the helper and to the vault.

use std::borrow::Cow;
use std::sync::Arc;

use quartermaster_proto::choria::agents::{
    ConfigureInput, CsrInput, Gen25519Input, JwtInput, RestartInput, ShutdownInput, UpdateInput,
};
use quartermaster_proto::choria::chain::ServerTokenOrder;
use quartermaster_proto::helper::{HelperInput, HelperReply};
use quartermaster_proto::json;
use secrecy::ExposeSecret;
use zeroize::Zeroizing;

use super::super::error::HostError;
use super::super::messages::Ending;
use super::super::resume::Material;
use super::super::steps::Step;
use super::super::terms::Effect;
use super::{Plan, Stop};

/// The restart splay sent, in seconds: always exactly two seconds of delay on the host (choria.md 4.4).
const RESTART_SPLAY: u32 = 1;

impl Plan {
    pub(super) fn helper_input(&self) -> Result<Vec<u8>, Stop> {
        let inventory = match &self.inventory {
            Some(inventory) => json::sorted(inventory.raw.get())
                .map_err(|error| HostError::Answer { step: Step::Inventory, reason: error.to_string() })?,
            None => String::new(),
        };
        let claims = self.claims.as_ref().map(|claims| claims.helper_json());
        let input = HelperInput {
            identity: self.identity.clone(),
            csr: self.csr.clone(),
            ed25519_pubkey: self.pubkey.clone(),
            inventory,
            jwt: claims.transpose().map_err(|error| HostError::Token(error.to_string()))?,
        };
        Ok(input.to_json())
    }

    pub(super) fn token_order(&self) -> Result<ServerTokenOrder, Stop> {
        let (Some(key), Some(decision)) = (self.proven_key, self.decision.as_ref()) else {
            return Err(HostError::ServerToken("the host has proven no key".to_owned()).into());
        };
        let HelperReply { server_claims, configuration, .. } = decision.0.as_ref();
        Ok(ServerTokenOrder::new(&self.identity, key, server_claims.as_ref(), configuration))
    }

    pub(super) fn seal(&self) -> Result<Effect, Stop> {
        let Some(pem) = self.decision.as_ref().and_then(|kept| kept.0.key.clone()) else {
            return Err(HostError::SealKey("there is none".to_owned()).into());
        };
        if self.ecdh_public.is_empty() {
            let reason = "the host offered no ECDH key; the feature `jwt` fetches one".to_owned();
            return Err(HostError::SealKey(reason).into());
        }
        Ok(Effect::SealKey { pem, host_public: self.ecdh_public.clone() })
    }

    pub(super) fn call_data(&mut self, step: Step) -> Result<Zeroizing<String>, Stop> {
        let settings = Arc::clone(&self.settings);
        let token = settings.token.expose_secret();
        Ok(match step {
            Step::Jwt => JwtInput { token: token.into() }.to_json(),
            Step::Gen25519 => {
                Gen25519Input { token: token.into(), nonce: self.nonce.as_str().into() }.to_json()
            }
            Step::Inventory => Zeroizing::new("{}".to_owned()),
            Step::Gencsr => {
                CsrInput { token: token.into(), cn: self.identity.as_str().into(), ..CsrInput::default() }
                    .to_json()
            }
            Step::Shutdown => ShutdownInput { token: token.into() }.to_json(),
            Step::Update => UpdateInput {
                token: token.into(),
                repository: self.settings.upgrades_repository.as_deref().unwrap_or_default().into(),
                version: self.decision.as_ref().map_or("", |kept| kept.0.upgrade.as_str()).into(),
            }
            .to_json(),
            Step::Restart => RestartInput { token: token.into(), splay: RESTART_SPLAY }.to_json(),
            Step::Configure => return self.configure_data(),
            Step::Helper
            | Step::ServerToken
            | Step::SealKey
            | Step::Before
            | Step::After
            | Step::TakeBack => return Err(Stop(Ending::Interrupted)),
        })
    }

    /// What `configure` sends: made once, so that every try sends the same.
    fn configure_data(&mut self) -> Result<Zeroizing<String>, Stop> {
        let material = match &self.material {
            Some(material) => material.clone(),
            None => Material::new(self.configure_material()?),
        };
        let mut input: ConfigureInput<'_> = serde_json::from_str(material.expose())
            .map_err(|error| HostError::Helper(format!("its decision cannot be read again: {error}")))?;
        input.token = self.settings.token.expose_secret().into();
        let data = input.to_json();
        self.material = Some(material);
        Ok(data)
    }

    fn configure_material(&self) -> Result<Zeroizing<String>, Stop> {
        let Some(decision) = self.decision.as_ref().map(|kept| kept.0.as_ref()) else {
            return Err(HostError::EmptyConfiguration.into());
        };
        let ssldir = self.csr.as_ref().map_or(decision.ssldir.as_str(), |csr| csr.ssldir.as_str());
        let config = ConfigureInput::config_text(&decision.configuration);
        Ok(ConfigureInput {
            action_policies: Cow::Borrowed(&decision.action_policies),
            ca: decision.ca.as_str().into(),
            certificate: decision.certificate.as_str().into(),
            config: config.as_str().into(),
            ecdh_public: self.sealed.as_ref().map_or("", |sealed| sealed.ecdh_public.as_str()).into(),
            key: self.sealed.as_ref().map_or("", |sealed| sealed.pem.as_str()).into(),
            opa_policies: Cow::Borrowed(&decision.opa_policies),
            server_jwt: self.server_jwt.as_ref().map_or("", |token| token.expose_secret()).into(),
            ssldir: ssldir.into(),
            token: "".into(),
        }
        .to_json())
    }
}
