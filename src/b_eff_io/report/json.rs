//! PREFIX.json of b_eff_io: one JSON document with everything, described by docs/results-schema.json.

use schemars::JsonSchema;
use serde::Serialize;

use super::partition_view::{PartitionIndex, PartitionView};
use super::verdicts;
use crate::b_eff_io::records::RunResult;
use crate::b_eff_io::values::acceptance::required_figures;
use crate::b_eff_io::values::ladder::{BackendVerdict, PatternComparison, TypeComparison, VariantComparison};
use crate::b_eff_io::values::{Derived, Ladder};
use crate::frame::report::{schema_with, write_document};
use crate::frame::values::acceptance::Acceptance;

/// The comparison of backends, with its verdicts in words, and the acceptance.
#[derive(Serialize, JsonSchema)]
struct LadderDocument<'a> {
    /// Comparison of the backends.
    #[schemars(default)]
    ladder: LadderView<'a>,
    /// Requirements of `--require` and their verdicts; None without it.
    #[schemars(default)]
    acceptance: Option<Acceptance>,
}

/// The comparison of all backends of a run but null; empty with fewer than two.
#[derive(Default, Serialize, JsonSchema)]
#[schemars(rename = "Ladder")]
struct LadderView<'a> {
    /// By partition, access, type, pattern, backend.
    patterns: &'a [PatternComparison],
    /// By partition, access, type, backend.
    types: &'a [TypeComparison],
    /// By partition and access: one for each type, then the patterns with the worst ratios.
    verdicts: Vec<LadderVerdictView<'a>>,
    /// By variant, partition, access: all types together, then each type.
    #[schemars(default)]
    variants: &'a [VariantComparison],
}

/// A verdict, in numbers and in words.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LadderVerdict")]
struct LadderVerdictView<'a> {
    #[serde(flatten)]
    verdict: &'a BackendVerdict,
    /// The verdict in words, with everything other than storage that affects the comparison.
    sentence: String,
}

/// The document as UTF-8 bytes with a newline at the end.
///
/// # Errors
/// A path of the configuration is not UTF-8.
pub fn document(result: &RunResult, derived: &Derived) -> Result<Vec<u8>, serde_json::Error> {
    let ladder = &derived.ladder;
    // Verdicts are ordered by partition: each partition is split off once.
    let none = Ladder::default();
    let split = PartitionIndex::new(result, &none, Vec::new());
    let mut part: Option<PartitionView> = None;
    let mut verdicts = Vec::with_capacity(ladder.verdicts.len());
    for verdict in &ladder.verdicts {
        let known = part.take().filter(|known| known.ranks == verdict.ranks);
        let PartitionView { result, derived, .. } =
            part.insert(known.unwrap_or_else(|| split.partition(verdict.ranks)));
        let (about, text) = (verdicts::subject(result, verdict), verdicts::sentence(result, derived, verdict));
        verdicts.push(LadderVerdictView { verdict, sentence: format!("{}, {about}: {text}", verdict.access.name()) });
    }
    let ladder = LadderView { patterns: &ladder.patterns, types: &ladder.types, verdicts, variants: &ladder.variants };
    let acceptance = Acceptance::of(&required_figures(result, derived));
    write_document(result, derived, Some(LadderDocument { ladder, acceptance }))
}

/// JSON Schema of such documents.
#[must_use]
pub fn schema() -> String {
    schema_with::<RunResult, LadderDocument<'static>>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::report::fixtures;
    use crate::b_eff_io::values::derive;
    use crate::frame::report::checks::{
        assert_document_matches_schema, assert_missing_field_is_named, assert_schema_is_current, assert_valid,
    };
    use crate::frame::report::parse;

    #[test]
    fn documents_fit_the_published_schema_and_read_back() {
        assert_schema_is_current::<RunResult>();
        assert_missing_field_is_named::<RunResult>();
        fixtures::all().iter().for_each(|(_, result, _)| assert_document_matches_schema(result, "patterns"));
    }

    #[test]
    fn golden_document() {
        let result = fixtures::failed();
        let bytes = document(&result, &derive(&result)).unwrap();
        insta::assert_snapshot!("failed.json", String::from_utf8(bytes).unwrap());
    }

    /// Earlier documents without rounds, evidence and other fields, or with fields removed since: the schema is that of current documents.
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

    /// Formerly `tunings`.
    #[test]
    fn calibrations_of_the_queue_are_read_by_their_former_name() {
        let bytes = include_bytes!("../../../docs/runs/mpich-2ranks-60s-ladder.json");
        let result = parse::<RunResult>(bytes).unwrap();
        assert_eq!(result.queue_calibrations.len(), 8);
        let again = document(&result, &derive(&result)).unwrap();
        assert!(String::from_utf8(again).unwrap().contains("\"queue_calibrations\": [\n"));
    }

    /// The run of the README obeys the definition; it was recorded before `caveats` and `strict` existed.
    #[test]
    fn the_published_run_is_valid_with_caveats() {
        let bytes = include_bytes!("../../../docs/runs/mpich-2ranks-15m-loop-100MBs.json");
        let validity = derive(&parse::<RunResult>(bytes).unwrap()).validity;
        let own = validity.iter().find(|v| v.release.name() == "1").unwrap();
        let ends = ["less than 90 % of the time", "cut by the time guard"];
        let are_known = own.caveats.iter().zip(ends).all(|(caveat, end)| caveat.ends_with(end));
        assert!(own.valid && own.caveats.len() == ends.len() && are_known, "{own:?}");
    }

    #[test]
    fn what_is_no_result_is_refused_with_the_reason() {
        let message = |bytes: &[u8]| parse::<RunResult>(bytes).unwrap_err().to_string();
        assert!(message(b"").contains("not a complete JSON document"));
        assert!(message(b"[1]").contains("not a result of beff-raw"));
        assert!(message(b"{\"schema_version\": 1}").contains("not a result of beff-raw"));
        assert!(message(br#"{"program":"beff-raw","schema_version":99}"#).contains("schema version 99"));
        assert!(message(br#"{"program":"beff-raw","schema_version":1}"#).contains("missing field"));
    }
}
