//! The report of IMB-IO on a screen, in full and on a page.

use std::io;

use super::*;
use crate::frame::records::RunOutcome;
use crate::frame::report::checks::{
    assert_full_fits, assert_page, assert_screen_fits, full_text, hostile_name, one_warning_of_each_kind,
};
use crate::frame::report::SaveStatus;
use crate::imb_io::plan::{catalogue, Mode};
use crate::imb_io::records::RowStatus;

fn assert_fits(result: &ImbResult, what: &str) -> String {
    let saved =
        SaveStatus::SavedTo([".jsonl", ".json", ".csv", ".imb"].map(|end| format!("results/imb1{end}").into()).into());
    assert_screen_fits(result, overview::backends(result).len(), saved, what)
}

#[test]
fn golden_reports() {
    for (name, result, _) in fixtures::all() {
        insta::assert_snapshot!(format!("{name}.screen"), assert_fits(&result, name));
        insta::assert_snapshot!(format!("{name}.full"), full_text(&result, DetailLevel::Full));
    }
    // A few blocks of each kind suffice for the details.
    let mut result = fixtures::complete();
    result.rows.retain(|r| r.mode == Mode::Aggregate && r.benchmark != "P_Read_Priv");
    result.repetitions.clear();
    insta::assert_snapshot!("few.details", full_text(&result, DetailLevel::Details));
}

#[test]
fn an_interval_wider_than_a_factor_of_two_is_not_shown() {
    let mut result = fixtures::complete();
    for (number, again) in result.repetitions.iter_mut().enumerate() {
        let factor = [0.25, 4.0][number % 2];
        again.measurement.times.iter_mut().for_each(|t| t.max_seconds *= factor);
    }
    let text = assert_fits(&result, "width") + &full_text(&result, DetailLevel::Full);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("are wider than a factor of 2 (widest: ") && text.contains(" wide "), "{text}");
}

#[test]
fn every_suffix_has_its_view() {
    for (name, result, derived) in fixtures::all() {
        for suffix in result.suffixes() {
            assert!(!result.file_bytes(&derived, &suffix).unwrap().is_empty(), "{name} {suffix}");
        }
        assert_eq!(result.file_bytes(&derived, ".sum").unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}

fn many(result: &mut ImbResult) {
    let rows = result.rows.clone();
    for number in 0..40 {
        result.rows.extend(rows.iter().cloned().map(|mut row| {
            row.benchmark = format!("another-{number}");
            row
        }));
    }
}

/// Bounds of the screen, of the lines of the full text, and of a page hold for any file.
#[test]
fn every_result_keeps_the_bounds() {
    for (name, result, _) in fixtures::all() {
        let with = |change: &dyn Fn(&mut ImbResult), what: &str| {
            let mut result = result.clone();
            change(&mut result);
            let what = format!("{name}, {what}");
            assert_fits(&result, &what);
            assert_full_fits(&result, "IMB-IO = ", &what);
            assert_page(&result, &what);
        };
        for outcome in [RunOutcome::Complete, RunOutcome::Failed, RunOutcome::Interrupted, RunOutcome::Killed] {
            with(&|r| r.ending.outcome = outcome, "an outcome");
        }
        with(&|r| r.warnings = one_warning_of_each_kind::<ImbResult>(), "every warning");
        with(&|r| r.rows.clear(), "no rows");
        with(&|r| (r.rows.clear(), r.setup.sizes_bytes.clear()).0, "nothing");
        with(&many, "many benchmarks");
        for factor in [1e-7, 1e7, 1e300, f64::NAN] {
            let times = |r: &mut ImbResult| {
                r.rows.iter_mut().flat_map(|row| &mut row.times).for_each(|t| t.max_seconds *= factor);
            };
            with(&times, "other times");
        }
        with(
            &|r| {
                let sizes = r.rows.clone();
                r.rows.extend((0..26).flat_map(|n| {
                    sizes.iter().cloned().map(move |mut row| {
                        row.sample_bytes = row.sample_bytes.map(|bytes| bytes + (1 << n));
                        row
                    })
                }));
            },
            "many sizes",
        );
        let hostile = |r: &mut ImbResult| {
            let bad = "</script><script>alert(1)</script>\u{1b}[31m'\"".to_owned();
            r.setup.storage.path.clone_from(&bad);
            r.rows.iter_mut().for_each(|row| (row.benchmark, row.backend) = (bad.clone(), bad.clone()));
            r.config.backends = vec![bad.clone(), bad];
        };
        with(&hostile, "names of markup");
        with(
            &|r| {
                many(r);
                let long = hostile_name();
                r.rows.iter_mut().for_each(|row| row.benchmark.push_str(&long));
                r.setup.machine.mpi_library.clone_from(&long);
                r.setup.machine.started_utc.clone_from(&long);
                r.setup.machine.hosts.iter_mut().for_each(|host| host.name.clone_from(&long));
                r.setup.storage.path.clone_from(&long);
                r.errors = fixtures::failed().errors;
                r.errors.iter_mut().for_each(|e| e.message.clone_from(&long));
                r.corruptions = fixtures::failed().corruptions;
                r.ending.outcome = RunOutcome::Interrupted;
            },
            "everything that goes wrong",
        );
    }
}

#[test]
fn the_verdict_is_one_line_for_grep() {
    let text = assert_fits(&fixtures::complete(), "complete");
    assert_eq!(text.lines().filter(|line| line.starts_with("IMB-IO = ")).count(), 1, "{text}");
}

/// The names of the release fit into their column; truncated names could be equal.
#[test]
fn every_name_fits_into_its_column() {
    let longest = catalogue::all().iter().map(|b| b.name.len()).max().unwrap();
    assert!(longest <= overview::NAME_WIDTH, "{longest}");
}

#[test]
fn a_finding_names_its_row() {
    let mut result = fixtures::complete();
    for row in result.rows.iter_mut().filter(|r| r.benchmark == "S_Write_Indv" && r.mode == Mode::NonAggregate) {
        row.times.iter_mut().for_each(|t| t.max_seconds *= 50.0);
    }
    let text = assert_fits(&result, "slow syncs");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("50 times slower with a sync after each iteration than after all"), "{text}");
}

#[test]
fn the_head_says_in_full_what_is_timed() {
    let text = full_text(&fixtures::complete(), DetailLevel::Full);
    let timed = text.lines().find(|l| l.starts_with("  timed ")).unwrap();
    assert!(timed.ends_with("Open_Close"), "{timed}");
}

#[test]
fn the_sync_of_aggregate_mode_is_explained_for_writes_only() {
    let mut result = fixtures::complete();
    let shown = |result: &ImbResult| full_text(result, DetailLevel::Full).contains("the sync after all");
    assert!(shown(&result));
    result.rows.retain(|r| !r.benchmark.contains("Write"));
    assert!(!shown(&result));
}

/// An incomplete row has no number but its size and iterations.
#[test]
fn a_broken_row_shows_no_number() {
    let mut result = fixtures::failed();
    result.errors.clear();
    for (index, row) in result.rows.iter_mut().enumerate() {
        row.ended = if index % 2 == 0 { RowStatus::Error("rank 1: short".into()) } else { RowStatus::Interrupted };
    }
    let text = full_text(&result, DetailLevel::Details);
    let (_, rows) = text.split_once("\nRows\n").unwrap();
    let (rows, _) = rows.split_once("\nWRONG DATA\n").unwrap();
    let has_cause = |l: &&str| l.contains(": ERROR on rank 1: short") || l.contains(": INTERRUPTED by a signal");
    assert_eq!(rows.lines().filter(has_cause).count(), result.rows.len(), "{rows}");
    let in_tables = rows.lines().filter(|l| l.contains(" | ") && !l.contains("[usec]"));
    assert_eq!(in_tables.clone().count(), result.rows.len(), "{rows}");
    for line in in_tables {
        let numbers = line.split_whitespace().filter(|w| w.parse::<f64>().is_ok());
        assert_eq!(numbers.count(), 2, "{line}");
    }
}

#[test]
fn the_first_columns_are_those_of_the_release() {
    let page = assert_page(&fixtures::complete(), "complete");
    let head =
        |line: &str| line.split("<th scope=col>").skip(1).take_while(|h| *h != "|").collect::<Vec<_>>().join(",");
    let found: Vec<String> = page.lines().filter(|l| l.contains("<th scope=col>|")).map(head).collect();
    for expected in [
        "#bytes,#repetitions,t [usec],Mbytes/sec",
        "#bytes,#repetitions,t_min [usec],t_max [usec],t_avg [usec],Mbytes/sec",
        "#bytes,#repetitions,t_ovrl [usec],t_pure [usec],t_CPU [usec],overlap [%]",
        "#repetitions,t_min [usec],t_max [usec],t_avg [usec]",
    ] {
        assert!(found.iter().any(|f| f == expected), "{found:?}");
    }
}

/// Long times exceed the width: the columns of this program continue below.
#[test]
fn the_columns_of_the_release_stay_together() {
    let mut result = fixtures::complete();
    result.rows.retain(|r| r.benchmark == "C_Write_Expl");
    for row in &mut result.rows {
        row.times.iter_mut().for_each(|t| t.max_seconds *= 1e9);
    }
    let text = assert_full_fits(&result, "IMB-IO = ", "long times");
    let head = text.lines().find(|l| l.trim_start().starts_with("#bytes   #repetitions")).unwrap();
    assert!(head.ends_with("Mbytes/sec"), "{text}");
}

#[test]
fn the_last_line_is_the_verdict() {
    let last = |result: &ImbResult| full_text(result, DetailLevel::Full).lines().last().unwrap().to_owned();
    let mut result = fixtures::complete();
    let complete = last(&result);
    assert!(complete.starts_with("IMB-IO = complete and verified: 21 of 21 rows complete, "), "{complete}");
    assert!(complete.ends_with("0 bytes wrong, took 50.0 s, 1.25 of the 40.0 s announced"), "{complete}");
    let failed = last(&fixtures::failed());
    assert!(
        failed.starts_with("IMB-IO = WRONG DATA: 6 of 13 rows complete, 1 failed, 1 interrupted, 5 not reached, "),
        "{failed}"
    );
    assert!(failed.ends_with(", OVERSUBSCRIBED, INTERRUPTED"), "{failed}");
    result.ending.outcome = RunOutcome::Killed;
    assert!(last(&result).ends_with("no end recorded, KILLED"));
}

#[test]
fn an_empty_result_is_still_a_report() {
    let mut result = fixtures::complete();
    result.rows.clear();
    result.setup.rows = 0;
    result.announcement = None;
    result.setup.machine.hosts.clear();
    result.setup.sizes_bytes.clear();
    result.setup.rank_counts.clear();
    let text = full_text(&result, DetailLevel::Details);
    assert!(text.lines().last().unwrap().starts_with("IMB-IO = NOT complete: 0 of 0 rows complete"));
}
