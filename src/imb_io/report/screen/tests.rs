use super::*;
use crate::frame::records::Outcome;
use crate::frame::report::checks::{assert_fits_a_screen, hostile_name};
use crate::frame::report::Saved;
use crate::imb_io::plan::catalogue;
use crate::imb_io::report::fixtures;

fn assert_fits(result: &ImbResult, what: &str) -> String {
    let saved = Saved::Files([".jsonl", ".json", ".csv", ".imb"].map(|end| format!("results/imb1{end}").into()).into());
    assert_fits_a_screen(result, backends(result).len(), saved, what)
}

#[test]
fn golden_screens() {
    for (name, result, _) in fixtures::all() {
        insta::assert_snapshot!(name, assert_fits(&result, name));
    }
}

#[test]
fn no_run_is_longer_or_wider_than_a_screen() {
    for (name, result, _) in fixtures::all() {
        let with = |change: &dyn Fn(&mut ImbResult), what: &str| {
            let mut result = result.clone();
            change(&mut result);
            assert_fits(&result, &format!("{name}, {what}"));
        };
        for outcome in [Outcome::Complete, Outcome::Failed, Outcome::Interrupted, Outcome::Killed] {
            with(&|r| r.ending.outcome = outcome, "an outcome");
        }
        with(&|r| r.rows.clear(), "no rows");
        with(&|r| (r.rows.clear(), r.setup.sizes_bytes.clear()).0, "nothing");
        with(&|r| r.warnings = fixtures::failed().warnings, "warnings");
        let many = |r: &mut ImbResult| {
            let rows = r.rows.clone();
            for number in 0..40 {
                r.rows.extend(rows.iter().cloned().map(|mut row| {
                    row.benchmark = format!("another-{number}");
                    row
                }));
            }
        };
        with(&many, "many benchmarks");
        with(
            &|r| {
                many(r);
                let long = hostile_name();
                for row in &mut r.rows {
                    row.benchmark.push_str(&long);
                }
                r.setup.machine.mpi_library.clone_from(&long);
                r.setup.machine.started_utc.clone_from(&long);
                r.setup.storage.path.clone_from(&long);
                r.errors = fixtures::failed().errors;
                r.errors.iter_mut().for_each(|e| e.message.clone_from(&long));
                r.corruptions = fixtures::failed().corruptions;
                r.ending.outcome = Outcome::Interrupted;
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

/// The names of the release fit into their column, or two benchmarks would look alike.
#[test]
fn every_name_fits_into_its_column() {
    let longest = catalogue::all().iter().map(|b| b.name.len()).max().unwrap();
    assert!(longest <= NAME, "{longest}");
}

#[test]
fn what_stands_out_is_told_with_its_row() {
    let mut result = fixtures::complete();
    for row in result.rows.iter_mut().filter(|r| r.benchmark == "S_Write_Indv" && r.mode == Mode::NonAggregate) {
        row.times.iter_mut().for_each(|t| t.max_seconds *= 50.0);
    }
    let text = assert_fits(&result, "slow syncs");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("50 times slower with a sync behind each repetition than behind all"), "{text}");
}
