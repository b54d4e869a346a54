//! Inputs: what an action is asked with. Keys are written in the order of the peer, which sorts them (choria.md 4.3, 12.3).

use std::{borrow::Cow, collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use crate::{
    choria::rpc::RpcError,
    json::{self, Limits},
};

/// The inputs of `choria_provision#jwt`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JwtInput<'a> {
    /// The shared provisioning token.
    #[serde(default, borrow)]
    pub token: Cow<'a, str>,
}

/// The inputs of `choria_provision#gen25519`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gen25519Input<'a> {
    /// The text the host must sign with its new key, at most 64 characters.
    #[serde(default, borrow)]
    pub nonce: Cow<'a, str>,
    /// The shared provisioning token.
    #[serde(default, borrow)]
    pub token: Cow<'a, str>,
}

/// The inputs of `choria_provision#gencsr`. Subject parts that are `None` are not sent.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CsrInput<'a> {
    /// Country.
    #[serde(rename = "C", borrow, skip_serializing_if = "Option::is_none")]
    pub country: Option<Cow<'a, str>>,
    /// Locality.
    #[serde(rename = "L", borrow, skip_serializing_if = "Option::is_none")]
    pub locality: Option<Cow<'a, str>>,
    /// Organisation.
    #[serde(rename = "O", borrow, skip_serializing_if = "Option::is_none")]
    pub organisation: Option<Cow<'a, str>>,
    /// Organisational unit.
    #[serde(rename = "OU", borrow, skip_serializing_if = "Option::is_none")]
    pub unit: Option<Cow<'a, str>>,
    /// State; hosts accept and ignore it.
    #[serde(rename = "ST", borrow, skip_serializing_if = "Option::is_none")]
    pub state: Option<Cow<'a, str>>,
    /// Common name, the host's identity.
    #[serde(default, borrow)]
    pub cn: Cow<'a, str>,
    /// The shared provisioning token.
    #[serde(default, borrow)]
    pub token: Cow<'a, str>,
}

/// The inputs of `choria_provision#configure`. All ten keys are always sent, empty when unused.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConfigureInput<'a> {
    /// Action policies: file name ending in `.policy` → text.
    pub action_policies: Cow<'a, BTreeMap<String, String>>,
    /// CA certificates, PEM.
    #[serde(borrow)]
    pub ca: Cow<'a, str>,
    /// The host's certificate, PEM.
    #[serde(borrow)]
    pub certificate: Cow<'a, str>,
    /// The configuration as the text of a JSON object of strings, see [`ConfigureInput::config_text`].
    #[serde(borrow)]
    pub config: Cow<'a, str>,
    /// Public half of our X25519 pair, hex, when `key` is sent.
    #[serde(borrow)]
    pub ecdh_public: Cow<'a, str>,
    /// The host's private key, encrypted PEM.
    #[serde(borrow)]
    pub key: Cow<'a, str>,
    /// Open Policy Agent policies: file name ending in `.rego` → text.
    pub opa_policies: Cow<'a, BTreeMap<String, String>>,
    /// The host's server token.
    #[serde(borrow)]
    pub server_jwt: Cow<'a, str>,
    /// Directory for the TLS files.
    #[serde(borrow)]
    pub ssldir: Cow<'a, str>,
    /// The shared provisioning token.
    #[serde(borrow)]
    pub token: Cow<'a, str>,
}

/// The inputs of `choria_provision#restart`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestartInput<'a> {
    /// Seconds over which the restart is spread; 1 restarts after exactly 2 s, 0 means 10.
    #[serde(default)]
    pub splay: u32,
    /// The shared provisioning token.
    #[serde(default, borrow)]
    pub token: Cow<'a, str>,
}

/// The inputs of `choria_provision#shutdown`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShutdownInput<'a> {
    /// The shared provisioning token.
    #[serde(default, borrow)]
    pub token: Cow<'a, str>,
}

/// The inputs of `choria_provision#release_update`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateInput<'a> {
    /// Base URL of the releases.
    #[serde(default, borrow)]
    pub repository: Cow<'a, str>,
    /// The shared provisioning token.
    #[serde(default, borrow)]
    pub token: Cow<'a, str>,
    /// The version to change to.
    #[serde(default, borrow)]
    pub version: Cow<'a, str>,
}

impl ConfigureInput<'_> {
    /// The text for `config`.
    pub fn config_text(configuration: &BTreeMap<String, String>) -> Zeroizing<String> {
        json::to_secret_text(configuration)
    }
}

macro_rules! input {
    ($($name:ident),*) => {$(
        impl $name<'_> {
            /// The arguments as JSON text, wiped when dropped.
            pub fn to_json(&self) -> Zeroizing<String> {
                json::to_secret_text(self)
            }
        }

        impl fmt::Debug for $name<'_> {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )*};
}

input!(JwtInput, Gen25519Input, CsrInput, ConfigureInput, RestartInput, ShutdownInput, UpdateInput);

/// The arguments of an action as a host reads them: unknown keys are ignored, absent ones are empty.
///
/// # Errors
/// [`RpcError::Json`] when `data` is no object of the shape, which a host answers with status 4.
pub fn decode_input<'de, T: Deserialize<'de>>(data: &'de RawValue) -> Result<T, RpcError> {
    json::object(data.get().as_bytes(), &Limits::FRAME).map_err(RpcError::Json)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn keys_are_written_in_the_order_of_the_peer() {
        assert_eq!(*JwtInput { token: "t".into() }.to_json(), r#"{"token":"t"}"#);
        assert_eq!(
            *Gen25519Input { nonce: "n".into(), token: "t".into() }.to_json(),
            r#"{"nonce":"n","token":"t"}"#
        );
        assert_eq!(*RestartInput { splay: 1, token: "t".into() }.to_json(), r#"{"splay":1,"token":"t"}"#);
        assert_eq!(*ShutdownInput { token: "t".into() }.to_json(), r#"{"token":"t"}"#);
        assert_eq!(
            *UpdateInput { repository: "r".into(), token: "t".into(), version: "v".into() }.to_json(),
            r#"{"repository":"r","token":"t","version":"v"}"#
        );
        let csr = CsrInput {
            country: Some("MT".into()),
            unit: Some("x".into()),
            cn: "n1".into(),
            token: "t".into(),
            ..CsrInput::default()
        };
        assert_eq!(*csr.to_json(), r#"{"C":"MT","OU":"x","cn":"n1","token":"t"}"#);
    }

    #[test]
    fn configure_always_writes_all_ten_keys() {
        assert_eq!(
            *ConfigureInput::default().to_json(),
            r#"{"action_policies":{},"ca":"","certificate":"","config":"","ecdh_public":"","key":"","opa_policies":{},"server_jwt":"","ssldir":"","token":""}"#
        );
    }

    #[test]
    fn the_configuration_travels_as_text_with_sorted_keys() {
        let configuration =
            BTreeMap::from([("b".to_owned(), "1".to_owned()), ("a".to_owned(), "\"".to_owned())]);
        assert_eq!(*ConfigureInput::config_text(&configuration), r#"{"a":"\"","b":"1"}"#);
    }

    #[test]
    fn a_host_reads_what_was_written() {
        let written = raw(&Gen25519Input { nonce: "n\n".into(), token: "t".into() }.to_json());
        let read: Gen25519Input<'_> = decode_input(&written).unwrap();
        assert_eq!((read.nonce.as_ref(), read.token.as_ref()), ("n\n", "t"));
    }

    #[test]
    fn absent_arguments_are_empty_and_wrong_ones_refused() {
        assert_eq!(decode_input::<RestartInput<'_>>(&raw(r#"{"other":1}"#)).unwrap().splay, 0);
        for text in [r#"{"splay":1.5}"#, r#"{"splay":-1}"#, r#"{"splay":"1"}"#, "[1,\"t\"]", "null"] {
            assert!(decode_input::<RestartInput<'_>>(&raw(text)).is_err(), "{text}");
        }
        let configured = raw(r#"{"config":"{}","token":"t"}"#);
        assert_eq!(decode_input::<ConfigureInput<'_>>(&configured).unwrap().config, "{}");
    }

    #[test]
    fn tokens_do_not_show_in_debug_output() {
        assert_eq!(format!("{:?}", JwtInput { token: "s3cret".into() }), "JwtInput { .. }");
    }
}
