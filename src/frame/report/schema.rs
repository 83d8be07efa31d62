//! The JSON Schema of a document, from its types and their docstrings.

mod text;
mod warnings;

use std::collections::BTreeSet;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

use crate::frame::records::Kind;

/// What has schemas in it that hold for the same value.
const COMPOSITIONS: [&str; 3] = ["oneOf", "anyOf", "allOf"];

/// What has schemas in it that hold for elements of a list.
const ELEMENTS: [&str; 2] = ["items", "prefixItems"];

/// Where definitions stand.
const DEFINITIONS: &str = "$defs";

/// The schema of `T` as it is published: no object has a field that is not described; every field is required but those that came
/// later, which have a default; descriptions speak of JSON. Results of a benchmark have warnings, of its `own` kinds and those that
/// every one has.
pub(crate) fn published<T: JsonSchema>(title: &str, own: Option<&[Kind]>) -> String {
    let settings = SchemaSettings::draft2020_12().with_transform(publish);
    let mut generator = settings.into_generator();
    if let Some(own) = own {
        // Definitions stand in the order in which they are met: those of the document come first.
        let _ = T::json_schema(&mut generator);
        warnings::define(&mut generator, own);
    }
    let mut schema = generator.into_root_schema_for::<T>();
    schema.insert("title".into(), title.into());
    let mut text = text::lines(schema.as_value());
    text.push('\n');
    text
}

/// Works on the whole, not on each schema of it: what is closed where depends on who refers to it.
fn publish(schema: &mut Schema) {
    let extended = extended(schema.as_value());
    if let Some(root) = schema.as_object_mut() {
        close(root, &extended, false);
    }
}

/// The definitions that others add fields to, with all they are made of. They stay open, and are closed where they are used.
fn extended(root: &Value) -> BTreeSet<String> {
    let mut next: Vec<&str> = Vec::new();
    visit(root, &mut |node| next.extend(target(node).filter(|_| node.contains_key("properties"))));
    let mut known = BTreeSet::new();
    while let Some(name) = next.pop() {
        known.insert(name.to_owned());
        let parts = COMPOSITIONS.iter().filter_map(|key| root[DEFINITIONS][name][key].as_array()).flatten();
        next.extend(parts.filter_map(|part| target(part.as_object()?)).filter(|name| !known.contains(*name)));
    }
    known
}

/// Shows every object in a value.
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

/// The name of the definition that a schema refers to.
fn target(node: &Map<String, Value>) -> Option<&str> {
    node.get("$ref")?.as_str()?.rsplit('/').next()
}

/// Closes a schema and those in it. One that `is_open` is closed by who refers to it.
fn close(node: &mut Map<String, Value>, extended: &BTreeSet<String>, is_open: bool) {
    say(node);
    let refers_to_open = target(node).is_some_and(|name| extended.contains(name));
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
            Value::Object(named) if key == "properties" || key == DEFINITIONS => {
                for (name, child) in named {
                    close_each(child, extended, key == DEFINITIONS && extended.contains(name));
                }
            }
            _ if COMPOSITIONS.contains(&key.as_str()) => close_each(child, extended, is_open),
            _ if ELEMENTS.contains(&key.as_str()) => close_each(child, extended, false),
            _ => {}
        }
    }
}

/// Closes a schema, or each of a list.
fn close_each(value: &mut Value, extended: &BTreeSet<String>, is_open: bool) {
    match value {
        Value::Object(node) => close(node, extended, is_open),
        Value::Array(items) => items.iter_mut().for_each(|item| close_each(item, extended, is_open)),
        _ => {}
    }
}

/// Says what readers of JSON need, and no more.
fn say(node: &mut Map<String, Value>) {
    if let Some(Value::String(description)) = node.get_mut("description") {
        *description = words(description);
    }
    // Which binary format a number had tells nothing in decimal, a limit does.
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

/// A docstring without the marks of links and lines, and with the `null` of JSON.
fn words(docstring: &str) -> String {
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
    enum Shape {
        Circle {
            radius: f64,
        },
        #[serde(untagged)]
        Other(Other),
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "a type for its schema")]
    struct Other {
        corners: u32,
    }

    #[expect(dead_code, reason = "a type for its schema")]
    struct Named(Shape);

    impl JsonSchema for Named {
        fn schema_name() -> std::borrow::Cow<'static, str> {
            "Named".into()
        }

        fn json_schema(generator: &mut schemars::SchemaGenerator) -> Schema {
            let shape = generator.subschema_for::<Shape>();
            schemars::json_schema!({ "$ref": shape.get("$ref"), "properties": { "name": { "type": "string" } } })
        }
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "a type for its schema")]
    struct Drawing {
        /// All of
        /// [`Shape`]; None: not known.
        shapes: Option<Vec<Shape>>,
        named: Vec<Named>,
        #[serde(default)]
        later: u64,
    }

    fn schema() -> Value {
        serde_json::from_str(&published::<Drawing>("Drawings", None)).unwrap()
    }

    #[test]
    fn no_field_is_unknown_wherever_it_is() {
        let validator = jsonschema::validator_for(&schema()).unwrap();
        let is_valid = |shape: &str, named: &str, more: &str| {
            let document = format!(r#"{{"shapes": [{{{shape}}}], "named": [{{{named}}}]{more}}}"#);
            validator.is_valid(&serde_json::from_str(&document).unwrap())
        };
        let (circle, other) = (r#""kind": "circle", "radius": 1.5"#, r#""corners": 3"#);
        let named = |shape: &str| format!(r#"{shape}, "name": "a""#);
        assert!(is_valid(circle, &named(circle), "") && is_valid(other, &named(other), r#", "later": 1"#));
        for shape in [circle, other] {
            assert!(!is_valid(&named(shape), &named(shape), ""), "a name where none belongs");
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
        assert_eq!(schema()["properties"]["shapes"]["description"], "All of `Shape`; null: not known.");
    }
}
