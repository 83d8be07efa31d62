//! PREFIX.json: one pretty JSON document with everything, described by docs/results-schema.json.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::results::comm::B_EFF;
use crate::results::imb::IMB_IO;
use crate::results::{Record, RunResult, Warning, B_EFF_IO, SCHEMA_VERSION};
use crate::stats::ladder::{PatternRung, TypeRung, Verdict};
use crate::stats::{AccessTime, Derived, PartitionValue, ReadSource, SystemValue, TypeValue, Validity};

use super::{verdicts, warnings};

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
    #[error(
        "the document is a result of {found}, not of {expected}; this program reads those of {B_EFF_IO}, {B_EFF} and {IMB_IO}"
    )]
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
pub(super) fn write(result: &impl Serialize, derived: impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = serde_json::to_vec_pretty(&Document { program: PROGRAM, result, derived })?;
    bytes.push(b'\n');
    Ok(bytes)
}

#[derive(Serialize)]
struct DerivedView<'a> {
    types: &'a [TypeValue],
    partitions: &'a [PartitionValue],
    systems: &'a [SystemValue],
    times: &'a [AccessTime],
    reads: &'a [ReadSource],
    validity: &'a [Validity],
    warnings: Vec<WarningView<'a, Warning>>,
    ladder: LadderView<'a>,
}

#[derive(Serialize)]
struct LadderView<'a> {
    patterns: &'a [PatternRung],
    types: &'a [TypeRung],
    verdicts: Vec<VerdictView<'a>>,
}

#[derive(Serialize)]
struct VerdictView<'a> {
    #[serde(flatten)]
    verdict: &'a Verdict,
    sentence: String,
}

/// A warning with its words.
#[derive(Serialize)]
pub(super) struct WarningView<'a, W> {
    #[serde(flatten)]
    warning: &'a W,
    cause: String,
    next_step: String,
}

/// `text` tells cause and next step.
pub(super) fn warning_views<W>(warnings: &[W], text: impl Fn(&W) -> (String, String)) -> Vec<WarningView<'_, W>> {
    let view = |warning| {
        let (cause, next_step) = text(warning);
        WarningView { warning, cause, next_step }
    };
    warnings.iter().map(view).collect()
}

/// The document as UTF-8 bytes with a newline at the end.
///
/// # Errors
/// A path of the configuration that is not UTF-8 has no JSON form.
pub fn document(result: &RunResult, derived: &Derived) -> Result<Vec<u8>, serde_json::Error> {
    let verdicts = derived
        .ladder
        .verdicts
        .iter()
        .map(|verdict| {
            let (about, text) = (verdicts::about(result, verdict), verdicts::sentence(result, derived, verdict));
            VerdictView { verdict, sentence: format!("{}, {about}: {text}", verdict.access.name()) }
        })
        .collect();
    let derived = DerivedView {
        types: &derived.types,
        partitions: &derived.partitions,
        systems: &derived.systems,
        times: &derived.times,
        reads: &derived.reads,
        validity: &derived.validity,
        warnings: warning_views(&derived.warnings, |warning| warnings::text(warning, &result.config)),
        ladder: LadderView { patterns: &derived.ladder.patterns, types: &derived.ladder.types, verdicts },
    };
    write(result, derived)
}

#[derive(Deserialize)]
struct Head {
    program: Option<String>,
    schema_version: Option<u64>,
    benchmark: Option<String>,
}

/// Reads a document of b_eff_io back; the derived values are not read but to be derived again.
///
/// # Errors
/// [`JsonError`]: not JSON, not a result of this program, of a newer version, or with a field missing.
pub fn parse(bytes: &[u8]) -> Result<RunResult, JsonError> {
    parse_as(bytes, "docs/results-schema.json")
}

/// As [`parse`], for any benchmark, whose fields `schema` describes.
pub(super) fn parse_as<R: Record + DeserializeOwned>(bytes: &[u8], schema: &'static str) -> Result<R, JsonError> {
    let found = benchmark(bytes)?;
    if found != R::BENCHMARK {
        return Err(JsonError::Benchmark { found, expected: R::BENCHMARK });
    }
    // From the bytes again: errors then name line and column.
    serde_json::from_slice(bytes).map_err(|source| JsonError::Content { schema, source })
}

/// The benchmark that a document names.
///
/// # Errors
/// [`JsonError`]: not JSON, not a result of this program, or of a newer version.
pub(super) fn benchmark(bytes: &[u8]) -> Result<String, JsonError> {
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(JsonError::Syntax)?;
    let head = Head::deserialize(&value).map_err(|_| JsonError::Foreign)?;
    let (Some(PROGRAM), Some(found)) = (head.program.as_deref(), head.schema_version) else {
        return Err(JsonError::Foreign);
    };
    if found > u64::from(SCHEMA_VERSION) {
        return Err(JsonError::Newer { found });
    }
    Ok(head.benchmark.unwrap_or_else(|| B_EFF_IO.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixtures;
    use crate::report::schema::{assert_closed, assert_valid};
    use crate::stats::derive;

    fn schema() -> serde_json::Value {
        let text = include_str!("../../docs/results-schema.json");
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn documents_fit_the_published_schema_and_read_back() {
        let schema = schema();
        assert!(jsonschema::meta::is_valid(&schema));
        for (name, result, derived) in fixtures::all() {
            let bytes = document(&result, &derived).unwrap();
            assert_valid(&schema, &bytes);
            assert_eq!(parse(&bytes).unwrap(), result, "{name}");
        }
    }

    #[test]
    fn golden_document() {
        let result = fixtures::failed();
        let bytes = document(&result, &derive(&result)).unwrap();
        insta::assert_snapshot!("failed.json", String::from_utf8(bytes).unwrap());
    }

    #[test]
    fn the_schema_allows_nothing_beyond_what_it_names() {
        assert_closed(&schema());
    }

    /// What was written before there were rounds, evidence and the rest.
    #[test]
    fn published_documents_stay_readable() {
        let runs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/runs");
        let mut read = 0;
        for entry in std::fs::read_dir(runs).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "json") {
                let bytes = std::fs::read(&path).unwrap();
                assert_valid(&schema(), &bytes);
                let result = parse(&bytes).unwrap();
                assert!(!result.patterns.is_empty() && result.config.rounds >= 1);
                assert_valid(&schema(), &document(&result, &derive(&result)).unwrap());
                read += 1;
            }
        }
        assert!(read > 0);
    }

    #[test]
    fn an_unknown_field_does_not_fit_the_schema() {
        let result = fixtures::complete();
        let bytes = document(&result, &derive(&result)).unwrap();
        let mut document: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let validator = jsonschema::validator_for(&schema()).unwrap();
        assert!(validator.is_valid(&document));
        document["patterns"][0]["speed"] = 1.into();
        assert!(!validator.is_valid(&document));
    }

    #[test]
    fn what_is_no_result_is_refused_with_the_reason() {
        let message = |bytes: &[u8]| parse(bytes).unwrap_err().to_string();
        assert!(message(b"").contains("not a whole JSON document"));
        assert!(message(b"[1]").contains("not a result of beff-raw"));
        assert!(message(b"{\"schema_version\": 1}").contains("not a result of beff-raw"));
        assert!(message(br#"{"program":"beff-raw","schema_version":99}"#).contains("schema version 99"));
        assert!(message(br#"{"program":"beff-raw","schema_version":1}"#).contains("missing field"));
    }
}
