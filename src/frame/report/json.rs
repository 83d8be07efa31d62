//! PREFIX.json: one JSON document with the complete result, a line for each record. The schema of each benchmark is in docs/.

use std::fmt;
use std::io;

use schemars::JsonSchema;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::Serialize;

use super::elements;
use super::old_names;
use super::schema::published_schema;

use crate::frame::records::{JournaledResult, WarningKind, SCHEMA_VERSION};
use crate::frame::terminal_escape;

/// Value of the field `program`, which identifies the document.
pub const PROGRAM: &str = "beff-raw";

/// Why a document could not be read.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// Not JSON, or truncated JSON.
    #[error("this is not a complete JSON document: {0}; if the run was killed, read its journal (.jsonl) instead")]
    Syntax(#[source] serde_json::Error),
    /// JSON, but not a result of this program.
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
    #[error("the document does not match schema version {SCHEMA_VERSION}: {source}; see {schema}")]
    Content {
        /// File that describes its fields.
        schema: &'static str,
        /// Mismatch.
        source: serde_json::Error,
    },
    /// The document is of another benchmark.
    #[error("the document is a result of {found}, not of {expected}")]
    Benchmark {
        /// Benchmark in the document.
        found: String,
        /// Requested benchmark.
        expected: &'static str,
    },
}

/// Records of the measurements and the values derived from them. Units are in the names; docs/results.md and docs/replay.md describe how
/// they are measured.
#[derive(Serialize, JsonSchema)]
struct ResultDocument<'a, R, D> {
    /// Always `beff-raw`; identifies the document.
    #[schemars(extend("const" = PROGRAM))]
    program: &'static str,
    #[serde(flatten)]
    result: &'a R,
    /// Values derived from the records; they are derived again when the document is read.
    derived: D,
}

/// A result of any benchmark with its derived values, as UTF-8 with a trailing newline.
///
/// # Errors
/// A path of the configuration that is not UTF-8 cannot be represented in JSON.
pub(crate) fn write_result(result: &impl Serialize, derived: impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = terminal_escape::json(elements::to_vec(&ResultDocument { program: PROGRAM, result, derived })?);
    bytes.push(b'\n');
    Ok(bytes)
}

pub(crate) fn document_schema<R: JsonSchema, D: JsonSchema>(benchmark: &str, own: &[WarningKind]) -> String {
    let title = format!("Results of {benchmark} by {PROGRAM} (PREFIX.json), schema version {SCHEMA_VERSION}");
    published_schema::<ResultDocument<R, D>>(&title, Some(own))
}

/// Writes the records alone, in one line, in a form that can be read back.
///
/// # Errors
/// As [`write`], and those of `out`.
pub(crate) fn write_records(result: &impl Serialize, out: impl io::Write) -> io::Result<()> {
    let derived: [(); 0] = [];
    serde_json::to_writer(out, &ResultDocument { program: PROGRAM, result, derived }).map_err(io::Error::from)
}

#[derive(Debug, Default)]
struct DocumentHead {
    program: Option<String>,
    schema_version: Option<u64>,
    benchmark: Option<String>,
    /// The head is complete; the rest was not read.
    is_complete: bool,
}

impl DocumentHead {
    fn is_identified(&self) -> bool {
        self.program.is_some() && self.schema_version.is_some()
    }

    fn stop<E: serde::de::Error>(&mut self) -> E {
        self.is_complete = true;
        E::custom("nothing more is wanted")
    }
}

/// Reads only the head: a document may have hundreds of megabytes of records. The benchmark, which is optional, precedes the first list.
struct DocumentHeadVisitor<'h>(&'h mut DocumentHead);

impl<'de> Visitor<'de> for DocumentHeadVisitor<'_> {
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
                _ => map.next_value_seed(SkipVisitor(head))?,
            }
            if head.is_identified() && head.benchmark.is_some() {
                return Err(head.stop());
            }
        }
        Ok(())
    }
}

/// Skips a value; the first list after the names ends the head.
struct SkipVisitor<'h>(&'h mut DocumentHead);

impl<'de> DeserializeSeed<'de> for SkipVisitor<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for SkipVisitor<'_> {
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
        if self.0.is_identified() {
            return Err(self.0.stop());
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// Reads a document whose fields are described in `schema`; derived values are not read.
///
/// # Errors
/// [`JsonError`]: not JSON, not a result of this benchmark by this program, a newer version, or a missing field.
pub(crate) fn parse_result<R: JournaledResult + DeserializeOwned>(
    bytes: &[u8],
    schema: &'static str,
) -> Result<R, JsonError> {
    let (benchmark, version) = head(bytes)?;
    if let Some(found) = benchmark.filter(|found| found != R::BENCHMARK) {
        return Err(JsonError::Benchmark { found, expected: R::BENCHMARK });
    }
    // Parsed from the bytes again, so that errors name line and column.
    serde_json::from_slice(&old_names::translated(bytes, R::BENCHMARK, version)).map_err(|source| {
        match source.is_data() {
            true => JsonError::Content { schema, source },
            false => JsonError::Syntax(source),
        }
    })
}

/// The benchmark named in a document, if any.
///
/// # Errors
/// [`JsonError`]: not JSON, not a result of this program, or a newer version.
pub(crate) fn benchmark(bytes: &[u8]) -> Result<Option<String>, JsonError> {
    Ok(head(bytes)?.0)
}

/// The benchmark, if the document names one, and the schema version.
fn head(bytes: &[u8]) -> Result<(Option<String>, u64), JsonError> {
    let mut head = DocumentHead::default();
    let read = serde_json::Deserializer::from_slice(bytes).deserialize_map(DocumentHeadVisitor(&mut head));
    if let Err(error) = read {
        // Errors after the head are reported when the whole document is read.
        if !head.is_complete {
            return Err(if error.is_data() { JsonError::Foreign } else { JsonError::Syntax(error) });
        }
    }
    let (Some(PROGRAM), Some(found)) = (head.program.as_deref(), head.schema_version) else {
        return Err(JsonError::Foreign);
    };
    if found > u64::from(SCHEMA_VERSION) {
        return Err(JsonError::Newer { found });
    }
    Ok((head.benchmark, found))
}
