//! JSON whose objects keep the order of their keys, to compare what one program wrote with what another did.
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A JSON value.
#[derive(Clone, PartialEq, Debug)]
pub enum Json {
    /// `null`, a boolean or a number, as its text.
    Bare(String),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Json>),
    /// An object in the order it was written.
    Object(Vec<(String, Json)>),
}

impl Json {
    fn kind(&self) -> &'static str {
        match self {
            Self::Bare(text) if text == "null" => "null",
            Self::Bare(text) if text == "true" || text == "false" => "boolean",
            Self::Bare(_) => "number",
            Self::Text(_) => "string",
            Self::List(_) => "array",
            Self::Object(_) => "object",
        }
    }
}

/// Every difference between `recorded` and `made` as one sentence each. At the paths in `varying` only the type counts: these
/// values differ from run to run.
pub fn differences(recorded: &Json, made: &Json, varying: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    compare("", recorded, made, varying, &mut found);
    found
}

fn compare(path: &str, recorded: &Json, made: &Json, varying: &[&str], found: &mut Vec<String>) {
    if recorded.kind() != made.kind() {
        found.push(format!("{path}: {} was recorded, {} is here", recorded.kind(), made.kind()));
    } else if let (Json::Object(recorded), Json::Object(made)) = (recorded, made) {
        let keys =
            |of: &[(String, Json)]| of.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>().join(" ");
        if keys(recorded) != keys(made) {
            found.push(format!(
                "{path}: the keys [{}] were recorded, [{}] are here",
                keys(recorded),
                keys(made)
            ));
        }
        for (key, recorded) in recorded {
            if let Some((_, made)) = made.iter().find(|(k, _)| k == key) {
                compare(&format!("{path}/{key}"), recorded, made, varying, found);
            }
        }
    } else if recorded != made && !varying.contains(&path) {
        found.push(format!("{path}: {recorded:?} was recorded, {made:?} is here"));
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Json;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }
            fn visit_unit<E>(self) -> Result<Json, E> {
                Ok(Json::Bare("null".to_owned()))
            }
            fn visit_bool<E>(self, v: bool) -> Result<Json, E> {
                Ok(Json::Bare(v.to_string()))
            }
            fn visit_i64<E>(self, v: i64) -> Result<Json, E> {
                Ok(Json::Bare(v.to_string()))
            }
            fn visit_u64<E>(self, v: u64) -> Result<Json, E> {
                Ok(Json::Bare(v.to_string()))
            }
            fn visit_f64<E>(self, v: f64) -> Result<Json, E> {
                Ok(Json::Bare(v.to_string()))
            }
            fn visit_str<E>(self, v: &str) -> Result<Json, E> {
                Ok(Json::Text(v.to_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    list.push(item);
                }
                Ok(Json::List(list))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
                let mut object = Vec::new();
                while let Some(entry) = entries.next_entry()? {
                    object.push(entry);
                }
                Ok(Json::Object(object))
            }
        }
        from.deserialize_any(Any)
    }
}

#[test]
fn a_comparison_names_each_difference_by_its_path() {
    let parse = |text| serde_json::from_str::<Json>(text).unwrap();
    let recorded = parse(r#"{"a":1,"b":{"c":"x","d":null},"e":[true]}"#);
    assert_eq!(differences(&recorded, &recorded, &[]), Vec::<String>::new());
    let made = parse(r#"{"a":"1","b":{"d":null,"c":"y"},"e":[false]}"#);
    let found = differences(&recorded, &made, &["/b/c"]);
    assert_eq!(
        found,
        [
            "/a: number was recorded, string is here",
            "/b: the keys [c d] were recorded, [d c] are here",
            "/e: List([Bare(\"true\")]) was recorded, List([Bare(\"false\")]) is here",
        ]
    );
}
