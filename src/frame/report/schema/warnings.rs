//! Schema of the warnings of a document, generated from the tables of kinds.

use schemars::{json_schema, SchemaGenerator};
use serde_json::{Map, Value};

use crate::frame::records::{kinds, WarningFigure, WarningKind, WARNING_DEFINITION};

const COMMON_DEFINITION: &str = "WarningOfAll";

const BENCHMARK_DEFINITION: &str = "WarningOfBenchmark";

/// Adds the definitions referenced by the results of a benchmark with its own kinds.
pub(super) fn define_warnings(generator: &mut SchemaGenerator, own: &[WarningKind]) {
    let of_all = kind_schemas(generator, kinds::KINDS);
    let mut of_one = kind_schemas(generator, own);
    of_one.push(json_schema!({ "$ref": format!("#/$defs/{COMMON_DEFINITION}") }).into());
    let words = |meaning: &str| json_schema!({ "description": meaning, "type": "string", "default": "" });
    let warning = json_schema!({
        "description": "A warning with its texts, which results of older versions do not have.",
        "type": "object",
        "$ref": format!("#/$defs/{BENCHMARK_DEFINITION}"),
        "properties": {
            "summary": words("Short form for the screen."),
            "cause": words("Cause, with figures."),
            "next_step": words("Suggested remedy."),
        },
    });
    let any = |what: &str, kinds: Vec<Value>| json_schema!({ "description": what, "oneOf": kinds }).into();
    let definitions = generator.definitions_mut();
    definitions.insert(COMMON_DEFINITION.into(), any("One of the kinds common to all benchmarks.", of_all));
    definitions.insert(BENCHMARK_DEFINITION.into(), any("One of the kinds of this benchmark.", of_one));
    definitions.insert(WARNING_DEFINITION.into(), warning.into());
}

fn kind_schemas(generator: &mut SchemaGenerator, kinds: &[WarningKind]) -> Vec<Value> {
    let object = |kind: &WarningKind| {
        let mut properties = Map::new();
        properties.insert("kind".into(), json_schema!({ "type": "string", "const": kind.name }).into());
        let figures = kind.figures.iter().map(|figure| (figure.name.to_owned(), figure_schema(generator, figure)));
        properties.extend(figures);
        json_schema!({ "description": kind.meaning, "type": "object", "properties": properties }).into()
    };
    kinds.iter().map(object).collect()
}

fn figure_schema(generator: &mut SchemaGenerator, figure: &WarningFigure) -> Value {
    let mut schema = (figure.schema)(generator);
    schema.insert("description".into(), figure.meaning.into());
    if figure.is_optional {
        schema.insert("default".into(), Value::Null);
    }
    schema.into()
}
