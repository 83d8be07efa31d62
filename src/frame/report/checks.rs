//! What the tests of every benchmark ask of its document, the published schema and the journal.

use super::facts::Field;
use super::journal::read;
use super::views::{parse, Views};
use crate::frame::records::{Outcome, Record, Warning};

/// A document fits the schema and reads back, and one with a field of `list` that nobody knows does not fit.
pub(crate) fn assert_fits<R: Views + PartialEq + std::fmt::Debug>(schema: &serde_json::Value, result: &R, list: &str) {
    let bytes = result.document(&result.derived()).unwrap();
    assert_valid(schema, &bytes);
    assert_eq!(parse::<R>(&bytes).unwrap(), *result);
    let mut document: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    document[list][0]["speed"] = 1.into();
    assert!(!jsonschema::validator_for(schema).unwrap().is_valid(&document));
}

/// A field that is missing is named with the schema that describes it.
pub(crate) fn assert_missing_is_named<R: Views + std::fmt::Debug>() {
    let head = serde_json::json!({"program": "beff-raw", "schema_version": 1, "benchmark": R::BENCHMARK});
    let message = parse::<R>(head.to_string().as_bytes()).unwrap_err().to_string();
    assert!(message.contains("missing field") && message.contains(R::SCHEMA), "{message}");
}

/// The document fits the schema.
pub(crate) fn assert_valid(schema: &serde_json::Value, document: &[u8]) {
    let validator = jsonschema::validator_for(schema).unwrap();
    let document = serde_json::from_slice(document).unwrap();
    let errors: Vec<String> = validator.iter_errors(&document).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

/// The schema cannot rot: every object in it is closed, and every property of it is required, but for the two texts
/// that only derived warnings have and for fields that came later: these say what their absence means.
pub(crate) fn assert_closed(schema: &serde_json::Value) {
    fn check(node: &serde_json::Value, path: &str) {
        if let Some(properties) = node.get("properties").and_then(|p| p.as_object()) {
            assert_eq!(node.get("additionalProperties"), Some(&serde_json::Value::Bool(false)), "{path}");
            let required: Vec<&str> = node["required"].as_array().unwrap().iter().filter_map(|r| r.as_str()).collect();
            for (name, property) in properties.iter().filter(|(n, _)| !["cause", "next_step"].contains(&n.as_str())) {
                let came_later = property.get("default").is_some();
                assert_ne!(required.contains(&name.as_str()), came_later, "{path}: {name}");
            }
        }
        match node {
            serde_json::Value::Object(map) => {
                map.iter()
                    .filter(|(key, _)| *key != "default")
                    .for_each(|(key, child)| check(child, &format!("{path}/{key}")));
            }
            serde_json::Value::Array(items) => {
                items.iter().for_each(|child| check(child, path));
            }
            _ => {}
        }
    }
    assert!(jsonschema::meta::is_valid(schema));
    check(schema, "");
}

/// The bytes of a journal with these lines.
pub(crate) fn journal_of<L: serde::Serialize>(lines: &[L]) -> Vec<u8> {
    lines.iter().flat_map(|line| [serde_json::to_vec(line).unwrap(), vec![b'\n']].concat()).collect()
}

/// The fifth line of a journal is cut after 100 bytes: what was before it is kept, and the reader is told.
pub(crate) fn assert_a_cut_keeps_the_rest<R: Record + PartialEq + std::fmt::Debug>(lines: &[R::Line]) {
    let before = journal_of(&lines[..4]).len();
    let whole = journal_of(&lines[..5]);
    let mut expected: R = read(&whole[..before]).unwrap();
    assert_eq!(expected.outcome(), Outcome::Killed);
    expected.warn(Warning::JournalTorn { line: 5, bytes: 100 });
    assert_eq!(read::<R>(&whole[..before + 100]).unwrap(), expected);
}

/// Fixtures by name, with what is derived from them.
pub(crate) fn with_derived<R: Views, const N: usize>(
    fixtures: [(&'static str, R); N],
) -> Vec<(&'static str, R, R::Derived)> {
    let derive = |(name, result): (&'static str, R)| {
        let derived = result.derived();
        (name, result, derived)
    };
    fixtures.map(derive).into()
}

/// Every field of a configuration is listed with what it means for a comparison, and no other.
pub(crate) fn assert_all_fields_are_known(config: &impl serde::Serialize, fields: &[(&str, Field)]) {
    let value = serde_json::to_value(config).unwrap();
    let mut of_config: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    let mut listed: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    of_config.sort_unstable();
    listed.sort_unstable();
    assert_eq!(of_config, listed);
}
