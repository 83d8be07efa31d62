//! The warnings of a document, from the tables of kinds.

use schemars::{json_schema, SchemaGenerator};
use serde_json::{Map, Value};

use crate::frame::records::{kinds, Figure, Kind, DEFINITION};

/// The kinds that every benchmark knows.
const OF_ALL: &str = "WarningOfAll";

/// What a benchmark warns of.
const OF_ONE: &str = "WarningOfBenchmark";

/// Adds what the results of a benchmark with kinds of its own refer to.
pub(super) fn define(generator: &mut SchemaGenerator, own: &[Kind]) {
    let of_all = objects(generator, kinds::KINDS);
    let mut of_one = objects(generator, own);
    of_one.push(json_schema!({ "$ref": format!("#/$defs/{OF_ALL}") }).into());
    let words = |meaning: &str| json_schema!({ "description": meaning, "type": "string", "default": "" });
    let warning = json_schema!({
        "description": "A warning with its words, which results of older versions do not have.",
        "type": "object",
        "$ref": format!("#/$defs/{OF_ONE}"),
        "properties": {
            "summary": words("What a screen says of it, in a few words."),
            "cause": words("What happened, with figures."),
            "next_step": words("What to do about it."),
        },
    });
    let any = |what: &str, kinds: Vec<Value>| json_schema!({ "description": what, "oneOf": kinds }).into();
    let definitions = generator.definitions_mut();
    definitions.insert(OF_ALL.into(), any("One of the kinds that every benchmark knows.", of_all));
    definitions.insert(OF_ONE.into(), any("One of the kinds of this benchmark.", of_one));
    definitions.insert(DEFINITION.into(), warning.into());
}

fn objects(generator: &mut SchemaGenerator, kinds: &[Kind]) -> Vec<Value> {
    let object = |kind: &Kind| {
        let mut properties = Map::new();
        properties.insert("kind".into(), json_schema!({ "type": "string", "const": kind.name }).into());
        let figures = kind.figures.iter().map(|figure| (figure.name.to_owned(), property(generator, figure)));
        properties.extend(figures);
        json_schema!({ "description": kind.meaning, "type": "object", "properties": properties }).into()
    };
    kinds.iter().map(object).collect()
}

fn property(generator: &mut SchemaGenerator, figure: &Figure) -> Value {
    let mut schema = (figure.schema)(generator);
    schema.insert("description".into(), figure.meaning.into());
    if figure.came_later {
        schema.insert("default".into(), Value::Null);
    }
    schema.into()
}
