//! PREFIX.json of b_eff_io: one pretty JSON document with everything, described by docs/results-schema.json.

use serde::Serialize;

use super::{verdicts, warnings};
use crate::b_eff_io::records::{IoWarning, RunResult};
use crate::b_eff_io::values::ladder::{PatternRung, TypeRung, Verdict};
use crate::b_eff_io::values::{AccessTime, Derived, PartitionValue, ReadSource, SystemValue, TypeValue, Validity};
use crate::frame::report::json::{warning_views, write, WarningView};

#[derive(Serialize)]
struct DerivedView<'a> {
    types: &'a [TypeValue],
    partitions: &'a [PartitionValue],
    systems: &'a [SystemValue],
    times: &'a [AccessTime],
    reads: &'a [ReadSource],
    validity: &'a [Validity],
    warnings: Vec<WarningView<'a, IoWarning>>,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::report::fixtures;
    use crate::b_eff_io::values::derive;
    use crate::frame::report::json::{parse_as, JsonError};
    use crate::frame::report::schema::{assert_closed, assert_valid};
    use crate::frame::report::Views;

    fn parse(bytes: &[u8]) -> Result<RunResult, JsonError> {
        parse_as(bytes, RunResult::SCHEMA)
    }

    fn schema() -> serde_json::Value {
        let text = include_str!("../../../docs/results-schema.json");
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
