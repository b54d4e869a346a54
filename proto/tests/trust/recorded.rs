//! What a real provisioner and a real server said to each other, taken out of the recordings.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use quartermaster_proto::time::WallClock;
use serde_json::Value;

/// A moment at which the recorded tokens are valid.
pub const RECORDED: WallClock = WallClock::from_seconds(1_795_976_800);

/// The text of one file of the recordings.
pub fn file(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// The `data` of the request and of the reply of one action.
pub fn call(name: &str, action: &str) -> (Value, Value) {
    let mut calls =
        file(name).lines().filter_map(payload).filter(|p| p["action"] == action).collect::<Vec<_>>();
    assert_eq!(calls.len(), 2, "{action} in {name}");
    let reply = calls.pop().unwrap();
    let request = calls.pop().unwrap();
    assert!(reply["statuscode"].is_u64() && request["agent"].is_string());
    (request["data"].clone(), reply["data"].clone())
}

fn payload(line: &str) -> Option<Value> {
    let json = |text: &str| serde_json::from_str::<Value>(text).ok();
    let record = json(line)?;
    let transport = json(record["data"].as_str()?)?;
    let secure = json(&String::from_utf8(STANDARD.decode(transport["data"].as_str()?).ok()?).ok()?)?;
    let decode = |v: &Value| Some(String::from_utf8(STANDARD.decode(v.as_str()?).ok()?).unwrap());
    if let Some(message) = secure["message"].as_str() {
        return json(json(message)?["message"].as_str()?);
    }
    let inner = json(&decode(&secure["request"]).or_else(|| decode(&secure["reply"]))?)?;
    json(&decode(&inner["message"])?)
}

/// The claims of a token as they stand in it.
pub fn claims_text(jwt: &str) -> String {
    String::from_utf8(URL_SAFE_NO_PAD.decode(jwt.split('.').nth(1).unwrap()).unwrap()).unwrap()
}
