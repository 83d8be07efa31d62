//! The report of a search on a screen, in full and on a page, its files and its journal.

use super::*;
use crate::frame::records::{InterferenceRecord, RunOutcome};
use crate::frame::report::checks::{
    assert_all_config_fields_are_listed, assert_document_matches_schema, assert_missing_field_is_named, assert_page,
    assert_schema_is_current, assert_screen_fits, assert_truncated_journal_keeps_earlier_lines, full_text, journal_of,
    one_warning_of_each_kind,
};
use crate::frame::report::journal::read_journal;
use crate::frame::report::SaveStatus;
use crate::frame::values::doubt::Doubt;

fn screen(result: &TuneResult, what: &str) -> String {
    let saved = SaveStatus::SavedTo([".jsonl", ".json"].map(|end| format!("results/tuned{end}").into()).into());
    assert_screen_fits(result, 1, saved, what)
}

#[test]
fn golden_reports() {
    for (name, mut result, _) in fixtures::all() {
        insta::assert_snapshot!(format!("{name}.screen"), screen(&result, name));
        // All trials have the same columns.
        result.trials.truncate(30);
        insta::assert_snapshot!(format!("{name}.full"), full_text(&result, DetailLevel::Full));
    }
}

#[test]
fn documents_fit_the_published_schema_and_read_back() {
    assert_schema_is_current::<TuneResult>();
    assert_missing_field_is_named::<TuneResult>();
    fixtures::all().iter().for_each(|(_, result, _)| assert_document_matches_schema(result, "trials"));
    assert_all_config_fields_are_listed(&fixtures::config(), &comparable::FIELDS);
}

#[test]
fn a_journal_reads_back_whole_or_truncated() {
    for (name, result, _) in fixtures::all() {
        assert_eq!(
            read_journal::<TuneResult>(&journal_of(&fixtures::journal_lines(&result))).unwrap(),
            result,
            "{name}"
        );
    }
    assert_truncated_journal_keeps_earlier_lines::<TuneResult>(&fixtures::journal_lines(&fixtures::recommended()));
}

#[test]
fn every_result_keeps_the_bounds() {
    for (name, result, _) in fixtures::all() {
        for outcome in [RunOutcome::Complete, RunOutcome::Failed, RunOutcome::Interrupted, RunOutcome::Killed] {
            let mut result = result.clone();
            result.ending.outcome = outcome;
            screen(&result, name);
            assert_page(&result, name);
            result.warnings = one_warning_of_each_kind::<TuneResult>();
            screen(&result, name);
            result.trials.clear();
            screen(&result, name);
            assert_page(&result, name);
        }
    }
}

#[test]
fn files_contain_a_setting_only_if_it_is_recommended() {
    for (name, result, derived) in fixtures::all() {
        let file = |suffix: &str| result.own_file(&derived, suffix).unwrap();
        let has_setting = |text: &str| text.lines().any(|line| !line.starts_with('#'));
        for suffix in &SUFFIXES[2..] {
            let text = file(suffix);
            assert!(text.starts_with("# beff-raw tune, type 0"), "{text}");
            assert_eq!(has_setting(&text), name == "recommended", "{name} {suffix}: {text}");
        }
        if name == "recommended" {
            assert!(
                file(".romio").ends_with("\ncb_nodes 2\n")
                    && file(".hints").ends_with("\nall all all all cb_nodes 2\n")
            );
            assert!(file(".mca").ends_with("\nio_ompio_num_aggregators = 2\n"));
        }
    }
}

#[test]
fn a_planted_key_is_found_and_the_refused_one_named() {
    let result = fixtures::recommended();
    let derived = result.derived();
    assert_eq!(derived.conclusion, Conclusion::Recommended);
    let confirmed = derived.confirmed.unwrap();
    assert!(confirmed.low <= 1.5 && confirmed.high.unwrap() >= 1.5, "{confirmed:?}");
    assert_eq!(
        derived.refused,
        [(vec![("romio_cb_write".to_owned(), "enable".to_owned())], "the library refuses it".to_owned())]
    );
}

#[test]
fn a_setting_that_reads_a_cache_faster_is_not_recommended() {
    let with_share = |share: Option<f64>| {
        let mut result = fixtures::recommended();
        result.config.trials.access = crate::frame::records::AccessMethod::Read;
        result.trials.iter_mut().for_each(|trial| trial.outcome.storage_share = share);
        result
    };
    assert_eq!(with_share(Some(1.0)).derived().conclusion, Conclusion::Recommended);
    for share in [None, Some(0.5)] {
        let result = with_share(share);
        assert_eq!(result.derived().conclusion, Conclusion::ReadsFromCache);
        let text = screen(&result, "cached");
        assert!(
            text.contains("the reads did not come from storage")
                && text.contains("source of the reads") == share.is_none(),
            "{text}"
        );
    }
}

#[test]
fn a_search_on_a_shared_machine_is_in_doubt() {
    let mut result = fixtures::recommended();
    let doubts = |result: &TuneResult| result.comparable(&result.derived()).doubts;
    assert_eq!(doubts(&result), []);
    result.ending.interference = Some(InterferenceRecord {
        cpus: 2,
        observed_seconds: 10.0,
        cpu_seconds: 20.0,
        other_process_seconds: 8.0,
        ..InterferenceRecord::default()
    });
    let shared = Doubt::Shared { other_process_share: 0.4, steal_share: 0.0 };
    assert_eq!(doubts(&result), [shared]);
    assert!(full_text(&result, DetailLevel::Full).contains("other processes used 40 %"));
}
