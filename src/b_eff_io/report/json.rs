//! PREFIX.json of b_eff_io: one JSON document with everything, described by docs/results-schema.json.

use schemars::JsonSchema;
use serde::Serialize;

use super::shown::{Shown, Split};
use super::verdicts;
use crate::b_eff_io::records::RunResult;
use crate::b_eff_io::values::ladder::{PatternRung, TypeRung, Verdict};
use crate::b_eff_io::values::{Derived, Ladder};
use crate::frame::report::{schema_of, write_document};

/// The ladder, its verdicts in words.
#[derive(Serialize, JsonSchema)]
struct More<'a> {
    /// Backends against each other.
    #[schemars(default)]
    ladder: LadderView<'a>,
}

/// The comparison of all backends of a run but null; empty with fewer than two.
#[derive(Default, Serialize, JsonSchema)]
#[schemars(rename = "Ladder")]
struct LadderView<'a> {
    /// By partition, access, type, pattern, backend.
    patterns: &'a [PatternRung],
    /// By partition, access, type, backend.
    types: &'a [TypeRung],
    /// By partition and access: one for each type, then the patterns with the worst ratios.
    verdicts: Vec<VerdictView<'a>>,
}

/// A verdict, in numbers and in words.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LadderVerdict")]
struct VerdictView<'a> {
    #[serde(flatten)]
    verdict: &'a Verdict,
    /// All of it in words, with what makes the comparison one of something else than storage.
    sentence: String,
}

/// The document as UTF-8 bytes with a newline at the end.
///
/// # Errors
/// A path of the configuration that is not UTF-8 has no JSON form.
pub fn document(result: &RunResult, derived: &Derived) -> Result<Vec<u8>, serde_json::Error> {
    let ladder = &derived.ladder;
    // Verdicts come partition by partition: each looks at its own, and does not pass over the records of all others.
    let none = Ladder::default();
    let split = Split::new(result, &none, 0);
    let mut part: Option<Shown> = None;
    let mut verdicts = Vec::with_capacity(ladder.verdicts.len());
    for verdict in &ladder.verdicts {
        let known = part.take().filter(|known| known.ranks == verdict.ranks);
        let Shown { result, derived, .. } = part.insert(known.unwrap_or_else(|| split.one(verdict.ranks)));
        let (about, text) = (verdicts::about(result, verdict), verdicts::sentence(result, derived, verdict));
        verdicts.push(VerdictView { verdict, sentence: format!("{}, {about}: {text}", verdict.access.name()) });
    }
    let ladder = LadderView { patterns: &ladder.patterns, types: &ladder.types, verdicts };
    write_document(result, derived, Some(More { ladder }))
}

/// The JSON Schema of such documents.
#[must_use]
pub fn schema() -> String {
    schema_of::<RunResult, More<'static>>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::report::fixtures;
    use crate::b_eff_io::values::derive;
    use crate::frame::report::checks::{assert_fits, assert_missing_is_named, assert_published, assert_valid};
    use crate::frame::report::parse;

    #[test]
    fn documents_fit_the_published_schema_and_read_back() {
        assert_published::<RunResult>();
        assert_missing_is_named::<RunResult>();
        fixtures::all().iter().for_each(|(_, result, _)| assert_fits(result, "patterns"));
    }

    #[test]
    fn golden_document() {
        let result = fixtures::failed();
        let bytes = document(&result, &derive(&result)).unwrap();
        insta::assert_snapshot!("failed.json", String::from_utf8(bytes).unwrap());
    }

    /// What was written before there were rounds, evidence and the rest, with fields that have gone: the schema is that of what is
    /// written now.
    #[test]
    fn published_documents_stay_readable() {
        let runs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/runs");
        let mut read = 0;
        for entry in std::fs::read_dir(runs).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "json") {
                let bytes = std::fs::read(&path).unwrap();
                let result = parse::<RunResult>(&bytes).unwrap();
                assert!(!result.patterns.is_empty() && result.config.rounds >= 1);
                assert_valid::<RunResult>(&document(&result, &derive(&result)).unwrap());
                read += 1;
            }
        }
        assert!(read > 0);
    }

    /// They were `tunings`.
    #[test]
    fn calibrations_of_the_queue_are_read_by_their_former_name() {
        let bytes = include_bytes!("../../../docs/runs/mpich-2ranks-60s-ladder.json");
        let result = parse::<RunResult>(bytes).unwrap();
        assert_eq!(result.queue_calibrations.len(), 8);
        let again = document(&result, &derive(&result)).unwrap();
        assert!(String::from_utf8(again).unwrap().contains("\"queue_calibrations\": [\n"));
    }

    /// The run of the README was called valid when nobody asked for debt and for cut writes.
    #[test]
    fn the_published_run_is_what_it_is() {
        let bytes = include_bytes!("../../../docs/runs/mpich-2ranks-15m-loop-100MBs.json");
        let validity = derive(&parse::<RunResult>(bytes).unwrap()).validity;
        let own = validity.iter().find(|v| v.release.name() == "1").unwrap();
        let unmet: Vec<&str> = own.criteria.iter().filter(|c| !c.met).map(|c| &c.text[..12]).collect();
        assert_eq!(unmet, ["patterns tha", "no first wri"], "{own:?}");
    }

    #[test]
    fn what_is_no_result_is_refused_with_the_reason() {
        let message = |bytes: &[u8]| parse::<RunResult>(bytes).unwrap_err().to_string();
        assert!(message(b"").contains("not a whole JSON document"));
        assert!(message(b"[1]").contains("not a result of beff-raw"));
        assert!(message(b"{\"schema_version\": 1}").contains("not a result of beff-raw"));
        assert!(message(br#"{"program":"beff-raw","schema_version":99}"#).contains("schema version 99"));
        assert!(message(br#"{"program":"beff-raw","schema_version":1}"#).contains("missing field"));
    }
}
