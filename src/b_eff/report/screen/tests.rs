use super::*;
use crate::b_eff::report::fixtures;
use crate::frame::records::Outcome;
use crate::frame::report::checks::{assert_fits_a_screen, hostile_name};
use crate::frame::report::Saved;

fn assert_fits(result: &CommResult, what: &str) -> String {
    let saved = Saved::Files([".jsonl", ".json", ".csv"].map(|end| format!("results/comm1{end}").into()).into());
    assert_fits_a_screen(result, 1, saved, what)
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
        let with = |change: &dyn Fn(&mut CommResult), what: &str| {
            let mut result = result.clone();
            change(&mut result);
            assert_fits(&result, &format!("{name}, {what}"));
        };
        for outcome in [Outcome::Complete, Outcome::Failed, Outcome::Interrupted, Outcome::Killed] {
            with(&|r| r.ending.outcome = outcome, "an outcome");
        }
        with(&|r| r.patterns.clear(), "no patterns");
        with(&|r| (r.patterns.clear(), r.setup.sizes_bytes.clear()).0, "nothing");
        with(&|r| r.setup.sizes_bytes = (1..500).collect(), "many sizes");
        with(
            &|r| {
                let long = hostile_name();
                r.setup.machine.mpi_library.clone_from(&long);
                r.setup.machine.started_utc.clone_from(&long);
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
fn the_value_is_one_line_for_grep() {
    let text = assert_fits(&fixtures::complete(), "complete");
    let values: Vec<&str> = text.lines().filter(|line| line.starts_with("b_eff = ")).collect();
    assert!(values.len() == 1 && values[0].contains(" on 4 processes, "), "{text}");
}
