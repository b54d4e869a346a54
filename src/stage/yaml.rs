//! Changes to a written provisioner.yaml.

use std::path::Path;

use super::error::StageError;

/// Sets a key of the first level, which stands on one line or is not there yet.
pub(crate) fn set_key(file: &Path, key: &str, value: &serde_json::Value) -> Result<(), StageError> {
    let text = std::fs::read_to_string(file).map_err(StageError::setup("the configuration"))?;
    std::fs::write(file, changed(&text, key, value)).map_err(StageError::setup("the configuration"))
}

fn changed(text: &str, key: &str, value: &serde_json::Value) -> String {
    let line = format!("{key}: {value}");
    let is_key = |text: &str| text.strip_prefix(key).is_some_and(|rest| rest.starts_with(':'));
    let mut lines: Vec<&str> =
        text.lines().map(|text| if is_key(text) { line.as_str() } else { text }).collect();
    if !text.lines().any(is_key) {
        lines.push(&line);
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_replaced_or_added() {
        let text = "workers: 4\nhelper: /a\nhelper_timeout: 1s\n";
        assert_eq!(
            changed(text, "helper", &"/b c".into()),
            "workers: 4\nhelper: \"/b c\"\nhelper_timeout: 1s\n"
        );
        assert_eq!(changed("a: 1\n", "state_dir", &"/s".into()), "a: 1\nstate_dir: \"/s\"\n");
    }
}
