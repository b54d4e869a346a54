//! Messages made by hand: any text inside good layers, with a hash that fits.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha2::{Digest as _, Sha256};

/// A transport layer around any secure layer.
pub fn transport_v1(headers: &str, secure: &str) -> String {
    format!(r#"{{"protocol":"choria:transport:1","data":"{}","headers":{headers}}}"#, STANDARD.encode(secure))
}

pub fn transport_v2(headers: &str, secure: &str) -> String {
    format!(
        r#"{{"protocol":"io.choria.protocol.v2.transport","data":"{}","headers":{headers}}}"#,
        STANDARD.encode(secure)
    )
}

pub fn reply_v1(message: &str) -> String {
    let secure = format!(
        r#"{{"protocol":"choria:secure:reply:1","message":{},"hash":"{}"}}"#,
        serde_json::to_string(message).unwrap(),
        STANDARD.encode(Sha256::digest(message))
    );
    transport_v1(r#"{"mc_sender":"n1"}"#, &secure)
}

pub fn reply_v2(message: &str) -> String {
    let secure = format!(
        r#"{{"protocol":"io.choria.protocol.v2.secure_reply","reply":"{}","hash":"{}"}}"#,
        STANDARD.encode(message),
        STANDARD.encode(Sha256::digest(message))
    );
    transport_v2(r#"{"sender":"n1"}"#, &secure)
}

pub fn request_v1(message: &str) -> String {
    let secure = format!(
        r#"{{"protocol":"choria:secure:request:1","message":{},"signature":"insecure","pubcert":"insecure"}}"#,
        serde_json::to_string(message).unwrap()
    );
    transport_v1(r#"{"reply-to":"a.b","mc_sender":"n1"}"#, &secure)
}

pub fn request_v2(message: &str) -> String {
    let secure = format!(
        r#"{{"protocol":"io.choria.protocol.v2.secure_request","request":"{}","signature":"aW5zZWN1cmU=","caller":"x"}}"#,
        STANDARD.encode(message)
    );
    transport_v2(r#"{"reply":"a.b","sender":"n1"}"#, &secure)
}

pub const REPLY_V1: &str = r#"{"protocol":"choria:reply:1","message":"pong","envelope":{"requestid":"51255f1a19cb456fb666b4e55870a94b","senderid":"n1","agent":"discovery","time":1795976868}}"#;
pub const REPLY_V2: &str = r#"{"protocol":"io.choria.protocol.v2.reply","message":"cG9uZw==","request":"x","sender":"n1","agent":"discovery","time":1795976610702876071}"#;
pub const REQUEST_V1: &str = r#"{"protocol":"choria:request:1","message":"cGluZw==","envelope":{"requestid":"6dc8fa6141484f01838722e1aab10487","senderid":"p","callerid":"choria=p","collective":"provisioning","agent":"discovery","ttl":60,"time":1795976740,"filter":{"fact":[],"cf_class":[],"agent":["choria_provision"],"identity":[],"compound":[]}}}"#;
pub const REQUEST_V2: &str = r#"{"protocol":"io.choria.protocol.v2.request","message":"Y0dsdVp3PT0=","id":"x","sender":"p","caller":"choria=p","collective":"provisioning","agent":"discovery","ttl":60,"time":1795976610697700549,"filter":{"fact":[],"cf_class":[],"agent":["choria_provision"],"identity":[],"compound":[]}}"#;
