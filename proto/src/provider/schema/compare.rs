//! Two schemas of one provider, compared.

use crate::{
    provider::values::{Path, Segment, Value},
    text::escape_bounded,
};

use super::document::Schema;

/// Most differences told.
const MAX_DIFFERENCES: usize = 20;

impl Schema {
    /// What is different in `other`, one sentence each, up to twenty; empty when both mean the same.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut found = Vec::new();
        compare(&mut Path::default(), &self.to_value(), &other.to_value(), &mut found);
        found
    }
}

fn compare(path: &mut Path, before: &Value, after: &Value, found: &mut Vec<String>) {
    if found.len() >= MAX_DIFFERENCES || before == after {
        return;
    }
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        found.push(format!("`{path}` was {}, is {}", text(before), text(after)));
        return;
    };
    for name in old.keys().chain(new.keys().filter(|name| !old.contains_key(*name))) {
        path.0.push(Segment::Key(name.clone()));
        match (old.get(name), new.get(name)) {
            (Some(before), Some(after)) => compare(path, before, after, found),
            (Some(_), None) => found.push(format!("`{path}` is gone")),
            _ => found.push(format!("`{path}` is new")),
        }
        path.0.pop();
        if found.len() >= MAX_DIFFERENCES {
            return;
        }
    }
}

fn text(value: &Value) -> String {
    escape_bounded(&value.to_json(), 60)
}
