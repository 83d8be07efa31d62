//! PREFIX.json: one pretty JSON document with everything. Each benchmark has a schema of its own in docs/.

use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::frame::plain;
use crate::frame::records::{Record, SCHEMA_VERSION};

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

#[derive(Serialize)]
struct Document<'a, R, D> {
    program: &'static str,
    #[serde(flatten)]
    result: &'a R,
    derived: D,
}

/// A result of any benchmark with what follows from it, as UTF-8 bytes with a newline at the end.
///
/// # Errors
/// A path of the configuration that is not UTF-8 has no JSON form.
pub(crate) fn write(result: &impl Serialize, derived: impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = plain::json(serde_json::to_vec_pretty(&Document { program: PROGRAM, result, derived })?);
    bytes.push(b'\n');
    Ok(bytes)
}

/// The records alone, in one line, as they are read back.
///
/// # Errors
/// As [`write`], and what `out` says.
pub(crate) fn write_records(result: &impl Serialize, out: impl io::Write) -> io::Result<()> {
    let derived: [(); 0] = [];
    serde_json::to_writer(out, &Document { program: PROGRAM, result, derived }).map_err(io::Error::from)
}

#[derive(Deserialize)]
struct Head {
    program: Option<String>,
    schema_version: Option<u64>,
    benchmark: Option<String>,
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
    serde_json::from_slice(bytes).map_err(|source| JsonError::Content { schema, source })
}

/// The benchmark that a document names, if it names one.
///
/// # Errors
/// [`JsonError`]: not JSON, not a result of this program, or of a newer version.
pub(crate) fn benchmark(bytes: &[u8]) -> Result<Option<String>, JsonError> {
    // Everything else is looked at, but not kept: a document may have hundreds of megabytes.
    let of_error = |e: serde_json::Error| if e.is_data() { JsonError::Foreign } else { JsonError::Syntax(e) };
    let head: Head = serde_json::from_slice(bytes).map_err(of_error)?;
    let (Some(PROGRAM), Some(found)) = (head.program.as_deref(), head.schema_version) else {
        return Err(JsonError::Foreign);
    };
    if found > u64::from(SCHEMA_VERSION) {
        return Err(JsonError::Newer { found });
    }
    Ok(head.benchmark)
}
