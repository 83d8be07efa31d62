//! PREFIX.json: one JSON document with everything, a line for each record. Each benchmark has a schema of its own in docs/.

use std::fmt;
use std::io;

use schemars::JsonSchema;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::Serialize;

use super::elements;
use super::schema::published;

use crate::frame::plain;
use crate::frame::records::{Kind, Record, SCHEMA_VERSION};

/// Value of the field `program`, by which the document is recognised.
pub const PROGRAM: &str = "beff-raw";

/// Why a document could not be read.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// Not JSON, or JSON cut short.
    #[error("this is not a whole JSON document: {0}; if the run was killed, read its journal (.jsonl) instead")]
    Syntax(#[source] serde_json::Error),
    /// JSON of something else.
    #[error("this JSON document is not a result of {PROGRAM} (no \"program\": \"{PROGRAM}\" in it); give the PREFIX.json of a run")]
    Foreign,
    /// Written by a later version.
    #[error(
        "the document has schema version {found}, this program reads up to {SCHEMA_VERSION}; use a newer beff-raw"
    )]
    Newer {
        /// Version in the document.
        found: u64,
    },
    /// A field is missing or has another type.
    #[error("the document does not fit schema version {SCHEMA_VERSION}: {source}; see {schema}")]
    Content {
        /// Where its fields are described.
        schema: &'static str,
        /// What does not fit.
        source: serde_json::Error,
    },
    /// Of another benchmark than asked for.
    #[error("the document is a result of {found}, not of {expected}")]
    Benchmark {
        /// Benchmark in the document.
        found: String,
        /// Benchmark asked for.
        expected: &'static str,
    },
}

/// Plain records of what was measured, and the values derived from them. Units are in the names; docs/results.md and docs/replay.md tell
/// how they are measured.
#[derive(Serialize, JsonSchema)]
struct Document<'a, R, D> {
    /// Always `beff-raw`; by it the document is recognised.
    #[schemars(extend("const" = PROGRAM))]
    program: &'static str,
    #[serde(flatten)]
    result: &'a R,
    /// Everything that follows from the records. It is derived again when the document is read.
    derived: D,
}

/// A result of any benchmark with what follows from it, as UTF-8 bytes with a newline at the end.
///
/// # Errors
/// A path of the configuration that is not UTF-8 has no JSON form.
pub(crate) fn write(result: &impl Serialize, derived: impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = plain::json(elements::to_vec(&Document { program: PROGRAM, result, derived })?);
    bytes.push(b'\n');
    Ok(bytes)
}

/// The JSON Schema of such a document.
pub(crate) fn schema<R: JsonSchema, D: JsonSchema>(benchmark: &str, own: &[Kind]) -> String {
    let title = format!("Results of {benchmark} by {PROGRAM} (PREFIX.json), schema version {SCHEMA_VERSION}");
    published::<Document<R, D>>(&title, Some(own))
}

/// The records alone, in one line, as they are read back.
///
/// # Errors
/// As [`write`], and what `out` says.
pub(crate) fn write_records(result: &impl Serialize, out: impl io::Write) -> io::Result<()> {
    let derived: [(); 0] = [];
    serde_json::to_writer(out, &Document { program: PROGRAM, result, derived }).map_err(io::Error::from)
}

/// What a document says of itself, before its records.
#[derive(Debug, Default)]
struct Head {
    program: Option<String>,
    schema_version: Option<u64>,
    benchmark: Option<String>,
    /// All of it is known; the rest was not looked at.
    is_whole: bool,
}

impl Head {
    fn has_names(&self) -> bool {
        self.program.is_some() && self.schema_version.is_some()
    }

    /// Ends the reading.
    fn ends<E: serde::de::Error>(&mut self) -> E {
        self.is_whole = true;
        E::custom("nothing more is wanted")
    }
}

/// Reads a head and no further: a document may have hundreds of megabytes behind it. The benchmark, which some have none of, stands
/// before the first list.
struct Reader<'h>(&'h mut Head);

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the document of a run")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let head = self.0;
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "program" => head.program = map.next_value()?,
                "schema_version" => head.schema_version = map.next_value()?,
                "benchmark" => head.benchmark = map.next_value()?,
                _ => map.next_value_seed(Skip(head))?,
            }
            if head.has_names() && head.benchmark.is_some() {
                return Err(head.ends());
            }
        }
        Ok(())
    }
}

/// Passes over a value; a list behind the names is where the head ends.
struct Skip<'h>(&'h mut Head);

impl<'de> DeserializeSeed<'de> for Skip<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Skip<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if self.0.has_names() {
            return Err(self.0.ends());
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// Reads a document back, whose fields `schema` describes; the derived values are not read but to be derived again.
///
/// # Errors
/// [`JsonError`]: not JSON, not a result of this benchmark by this program, of a newer version, or with a field missing.
pub(crate) fn parse_as<R: Record + DeserializeOwned>(bytes: &[u8], schema: &'static str) -> Result<R, JsonError> {
    if let Some(found) = benchmark(bytes)?.filter(|found| found != R::BENCHMARK) {
        return Err(JsonError::Benchmark { found, expected: R::BENCHMARK });
    }
    // From the bytes again: errors then name line and column.
    serde_json::from_slice(bytes).map_err(|source| match source.is_data() {
        true => JsonError::Content { schema, source },
        false => JsonError::Syntax(source),
    })
}

/// The benchmark that a document names, if it names one.
///
/// # Errors
/// [`JsonError`]: not JSON, not a result of this program, or of a newer version.
pub(crate) fn benchmark(bytes: &[u8]) -> Result<Option<String>, JsonError> {
    let mut head = Head::default();
    let read = serde_json::Deserializer::from_slice(bytes).deserialize_map(Reader(&mut head));
    if let Err(error) = read {
        // What is wrong behind the head is told by who reads the whole.
        if !head.is_whole {
            return Err(if error.is_data() { JsonError::Foreign } else { JsonError::Syntax(error) });
        }
    }
    let (Some(PROGRAM), Some(found)) = (head.program.as_deref(), head.schema_version) else {
        return Err(JsonError::Foreign);
    };
    if found > u64::from(SCHEMA_VERSION) {
        return Err(JsonError::Newer { found });
    }
    Ok(head.benchmark)
}
