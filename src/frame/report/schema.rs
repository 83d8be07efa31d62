//! JSON Schema of a document, generated from its types and their docstrings.

mod text;
mod warnings;

use std::collections::BTreeSet;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

use crate::frame::records::WarningKind;

/// Keywords whose subschemas apply to the same value.
const COMPOSITION_KEYWORDS: [&str; 3] = ["oneOf", "anyOf", "allOf"];

/// Keywords whose subschemas apply to elements of a list.
const ITEM_KEYWORDS: [&str; 2] = ["items", "prefixItems"];

const DEFINITIONS_KEYWORD: &str = "$defs";

/// The published schema of `T`: objects have no undescribed fields; all fields are required except those added later, which have a
/// default; descriptions use JSON terms. Results of a benchmark have warnings of its `own` kinds and of the common ones.
pub(crate) fn published_schema<T: JsonSchema>(title: &str, own: Option<&[WarningKind]>) -> String {
    let settings = SchemaSettings::draft2020_12().with_transform(finish_schema);
    let mut generator = settings.into_generator();
    if let Some(own) = own {
        // Definitions are in order of first reference: those of the document come first.
        let _ = T::json_schema(&mut generator);
        warnings::define_warnings(&mut generator, own);
    }
    let mut schema = generator.into_root_schema_for::<T>();
    schema.insert("title".into(), title.into());
    let mut text = text::lines(schema.as_value());
    text.push('\n');
    text
}

/// Transforms the whole schema, not each subschema: which ones are closed depends on their references.
fn finish_schema(schema: &mut Schema) {
    let extended = extended_definitions(schema.as_value());
    if let Some(root) = schema.as_object_mut() {
        close_schema(root, &extended, false);
    }
}

/// Definitions that others extend with fields, with all their components. They stay open and are closed where they are referenced.
fn extended_definitions(root: &Value) -> BTreeSet<String> {
    let mut next: Vec<&str> = Vec::new();
    visit(root, &mut |node| next.extend(referenced_definition(node).filter(|_| node.contains_key("properties"))));
    let mut known = BTreeSet::new();
    while let Some(name) = next.pop() {
        known.insert(name.to_owned());
        let parts =
            COMPOSITION_KEYWORDS.iter().filter_map(|key| root[DEFINITIONS_KEYWORD][name][key].as_array()).flatten();
        next.extend(
            parts.filter_map(|part| referenced_definition(part.as_object()?)).filter(|name| !known.contains(*name)),
        );
    }
    known
}

/// Calls `show` for every object in a value.
fn visit<'v>(value: &'v Value, show: &mut impl FnMut(&'v Map<String, Value>)) {
    match value {
        Value::Object(node) => {
            show(node);
            node.values().for_each(|child| visit(child, show));
        }
        Value::Array(items) => items.iter().for_each(|item| visit(item, show)),
        _ => {}
    }
}

fn referenced_definition(node: &Map<String, Value>) -> Option<&str> {
    node.get("$ref")?.as_str()?.rsplit('/').next()
}

/// Closes a schema and its subschemas. If `is_open`, the schema is closed where it is referenced.
fn close_schema(node: &mut Map<String, Value>, extended: &BTreeSet<String>, is_open: bool) {
    adapt_annotations(node);
    let refers_to_open = referenced_definition(node).is_some_and(|name| extended.contains(name));
    if let Some(Value::Object(properties)) = node.get("properties") {
        let required = properties.iter().filter(|(_, property)| property.get("default").is_none());
        let required: Vec<Value> = required.map(|(name, _)| name.as_str().into()).collect();
        node.insert("required".into(), required.into());
    }
    if refers_to_open && !is_open {
        node.insert("unevaluatedProperties".into(), false.into());
    } else if node.contains_key("properties") && !is_open {
        node.insert("additionalProperties".into(), false.into());
    }
    for (key, child) in node {
        match child {
            Value::Object(named) if key == "properties" || key == DEFINITIONS_KEYWORD => {
                for (name, child) in named {
                    close_each(child, extended, key == DEFINITIONS_KEYWORD && extended.contains(name));
                }
            }
            _ if COMPOSITION_KEYWORDS.contains(&key.as_str()) => close_each(child, extended, is_open),
            _ if ITEM_KEYWORDS.contains(&key.as_str()) => close_each(child, extended, false),
            _ => {}
        }
    }
}

/// Closes a schema or each schema of a list.
fn close_each(value: &mut Value, extended: &BTreeSet<String>, is_open: bool) {
    match value {
        Value::Object(node) => close_schema(node, extended, is_open),
        Value::Array(items) => items.iter_mut().for_each(|item| close_each(item, extended, is_open)),
        _ => {}
    }
}

/// Adapts description and format to JSON.
fn adapt_annotations(node: &mut Map<String, Value>) {
    if let Some(Value::String(description)) = node.get_mut("description") {
        *description = json_description(description);
    }
    // The binary format of a number is irrelevant in decimal, its limit is not.
    match node.get("format").and_then(Value::as_str) {
        Some("double") => {
            node.remove("format");
        }
        Some("uint32") => {
            node.insert("maximum".into(), u32::MAX.into());
        }
        _ => {}
    }
}

/// A docstring without link markup and line breaks, with `null` for None.
fn json_description(docstring: &str) -> String {
    let text = docstring.replace("[`", "`").replace("`]", "`").replace("None", "null");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shape.
    #[derive(JsonSchema)]
    #[serde(rename_all = "snake_case", tag = "kind")]
    #[expect(dead_code, reason = "a type for its schema")]
    enum TestShape {
        Circle {
            radius: f64,
        },
        #[serde(untagged)]
        Other(TestPolygon),
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "a type for its schema")]
    struct TestPolygon {
        corners: u32,
    }

    #[expect(dead_code, reason = "a type for its schema")]
    struct TestNamedShape(TestShape);

    impl JsonSchema for TestNamedShape {
        fn schema_name() -> std::borrow::Cow<'static, str> {
            "Named".into()
        }

        fn json_schema(generator: &mut schemars::SchemaGenerator) -> Schema {
            let shape = generator.subschema_for::<TestShape>();
            schemars::json_schema!({ "$ref": shape.get("$ref"), "properties": { "name": { "type": "string" } } })
        }
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "a type for its schema")]
    struct TestDrawing {
        /// All of
        /// [`Vec`]; None: not known.
        shapes: Option<Vec<TestShape>>,
        named: Vec<TestNamedShape>,
        #[serde(default)]
        later: u64,
    }

    fn schema() -> Value {
        serde_json::from_str(&published_schema::<TestDrawing>("Drawings", None)).unwrap()
    }

    #[test]
    fn unknown_fields_are_rejected_at_every_level() {
        let validator = jsonschema::validator_for(&schema()).unwrap();
        let is_valid = |shape: &str, named: &str, more: &str| {
            let document = format!(r#"{{"shapes": [{{{shape}}}], "named": [{{{named}}}]{more}}}"#);
            validator.is_valid(&serde_json::from_str(&document).unwrap())
        };
        let (circle, other) = (r#""kind": "circle", "radius": 1.5"#, r#""corners": 3"#);
        let named = |shape: &str| format!(r#"{shape}, "name": "a""#);
        assert!(is_valid(circle, &named(circle), "") && is_valid(other, &named(other), r#", "later": 1"#));
        for shape in [circle, other] {
            assert!(!is_valid(&named(shape), &named(shape), ""), "a name where none is allowed");
            assert!(!is_valid(shape, shape, ""), "no name");
            assert!(!is_valid(shape, &format!(r#"{}, "colour": 1"#, named(shape)), ""));
        }
        assert!(!is_valid(circle, &named(circle), r#", "sooner": 1"#));
        assert!(!is_valid(r#""corners": 4294967296"#, &named(circle), ""));
    }

    #[test]
    fn fields_that_came_later_may_be_missing() {
        assert_eq!(schema()["required"], serde_json::json!(["shapes", "named"]));
        assert_eq!(schema()["properties"]["later"]["default"], 0);
    }

    #[test]
    fn descriptions_speak_of_json() {
        assert_eq!(schema()["properties"]["shapes"]["description"], "All of `Vec`; null: not known.");
    }
}
