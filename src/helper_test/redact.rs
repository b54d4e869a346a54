//! Secrets out of what is shown.

use serde_json::Value;

/// What stands in the place of a secret.
pub const REDACTED: &str = "(secret; --show-secrets shows it)";

/// Words in the last part of a key that mean a secret, unless the value is a path.
const SECRET_WORDS: [&str; 4] = ["passw", "secret", "token", "credential"];
/// Keys that are always secret: the token and the password in the claims, our token in requests.
const SECRET_KEYS: [&str; 4] = ["cht", "chpwd", "token", "key"];

/// Replaces every secret in `value`, wherever it stands.
pub fn redact(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                if is_secret(key, member) {
                    *member = REDACTED.into();
                } else {
                    redact(member);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::String(text) if holds_private_key(text) => *value = REDACTED.into(),
        Value::String(text) => {
            if let Some(without) = nested(text) {
                *text = without;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The inventory and the configuration are JSON in a string. Gives the text without its secrets, if it held any.
fn nested(text: &str) -> Option<String> {
    let before: Value = text.starts_with('{').then(|| serde_json::from_str(text).ok()).flatten()?;
    let mut after = before.clone();
    redact(&mut after);
    (after != before).then(|| after.to_string())
}

fn is_secret(key: &str, value: &Value) -> bool {
    let Value::String(text) = value else { return false };
    if text.is_empty() || text.starts_with('(') {
        return false;
    }
    if SECRET_KEYS.contains(&key) {
        return true;
    }
    let last = key.rsplit('.').next().unwrap_or(key).to_ascii_lowercase();
    let is_path = text.starts_with('/') || last.ends_with("_file");
    !is_path && (last == "pass" || SECRET_WORDS.iter().any(|word| last.contains(word)))
}

fn holds_private_key(text: &str) -> bool {
    text.contains("PRIVATE KEY-----")
}
