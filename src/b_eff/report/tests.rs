//! The report of b_eff on a screen, in full and on a page.

use super::*;
use crate::b_eff::cli::CommArgs;
use crate::b_eff::plan::BufferMode;
use crate::frame::benchmark::has_option;
use crate::frame::records::RunOutcome;
use crate::frame::report::checks::{
    assert_full_fits, assert_page, assert_screen_fits, full_text, hostile_name, one_warning_of_each_kind,
};
use crate::frame::report::SaveStatus;

fn assert_fits(result: &CommResult, what: &str) -> String {
    let saved = SaveStatus::SavedTo([".jsonl", ".json", ".csv"].map(|end| format!("results/comm1{end}").into()).into());
    assert_screen_fits(result, 1, saved, what)
}

#[test]
fn golden_reports() {
    for (name, result, _) in fixtures::all() {
        insta::assert_snapshot!(format!("{name}.screen"), assert_fits(&result, name));
        insta::assert_snapshot!(format!("{name}.full"), full_text(&result, DetailLevel::Full));
    }
    // All patterns have the same details: one of each family is sufficient.
    let mut result = fixtures::complete();
    result.patterns.retain(|p| ["ping-pong", "ring-1", "random-30"].contains(&p.pattern.as_str()));
    insta::assert_snapshot!("few.details", full_text(&result, DetailLevel::Details));
}

#[test]
fn an_interval_wider_than_a_factor_of_two_is_not_shown() {
    let text = |factors: [f64; 3]| {
        let speed = |_: &str, _, bytes: u64, _, repetition: u32| factors[repetition as usize % 3] * bytes as f64 * 1e3;
        let result = crate::b_eff::values::fixture::run(2, &speed);
        assert_fits(&result, "width") + &full_text(&result, DetailLevel::Full)
    };
    let (narrow, wide) = (text([1.0, 1.01, 0.99]), text([0.5, 1.0, 2.0]));
    assert!(narrow.contains(", 95 % interval ") && !narrow.contains("needed"), "{narrow}");
    // ln(high / low) = 2 * 4.303 * ln 2 / sqrt 3: 4.97 times that of a factor of two, and 3 repetitions * 4.97^2.
    assert!(wide.contains("MB/s, no 95 % interval: 3 repetitions, about 75 needed"), "{wide}");
    assert!(wide.contains(" wide "), "{wide}");
}

/// Any file contents stay within the bounds of the screen, of the lines of the full text, and of a page.
#[test]
fn every_result_keeps_the_bounds() {
    for (name, result, _) in fixtures::all() {
        let with = |change: &dyn Fn(&mut CommResult), what: &str| {
            let mut result = result.clone();
            change(&mut result);
            let what = format!("{name}, {what}");
            assert_fits(&result, &what);
            assert_full_fits(&result, "b_eff = ", &what);
            assert_page(&result, &what);
        };
        for outcome in [RunOutcome::Complete, RunOutcome::Failed, RunOutcome::Interrupted, RunOutcome::Killed] {
            with(&|r| r.ending.outcome = outcome, "an outcome");
        }
        with(&|r| r.patterns.clear(), "no patterns");
        with(&|r| r.warnings = one_warning_of_each_kind::<CommResult>(), "every warning");
        with(&|r| (r.patterns.clear(), r.setup.sizes_bytes.clear(), r.setup.machine.hosts.clear()).0, "nothing");
        with(&|r| r.setup.sizes_bytes = (1..500).collect(), "many sizes");
        for factor in [1e-7, 1e7, 1e300, f64::NAN] {
            let loops = |r: &mut CommResult| {
                let all = r.patterns.iter_mut().flat_map(|p| &mut p.sizes).flat_map(|s| &mut s.loops);
                all.for_each(|one| one.seconds *= factor);
            };
            with(&loops, "other times");
        }
        with(
            &|r| {
                let long = hostile_name();
                r.setup.machine.mpi_library.clone_from(&long);
                r.setup.machine.started_utc.clone_from(&long);
                r.setup.machine.hosts.iter_mut().for_each(|h| h.name.clone_from(&long));
                r.setup.transport.loaded = vec![long.clone(); 9];
                r.patterns.iter_mut().for_each(|p| (p.pattern, p.shape) = (long.clone(), long.clone()));
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
fn the_value_is_one_line_for_grep() {
    let text = assert_fits(&fixtures::complete(), "complete");
    let values: Vec<&str> = text.lines().filter(|line| line.starts_with("b_eff = ")).collect();
    assert!(values.len() == 1 && values[0].contains(" on 4 processes, "), "{text}");
}

#[test]
fn the_last_line_is_the_result() {
    let last = |result: &CommResult| full_text(result, DetailLevel::Full).lines().last().unwrap().to_owned();
    let result = fixtures::complete();
    let value = derive(&result).value.b_eff.unwrap();
    let (all, each) = (value.bytes_per_second / 1e6, value.per_process_bytes_per_second / 1e6);
    let expected =
        format!("b_eff = {all:.3} MB/s = {each:.3} MB/s per process on 4 processes, Lmax 4 MiB, from memory, VALID");
    assert_eq!(last(&result), expected);
    let expected =
        "b_eff = not measured on 2 processes, Lmax 4 MiB, from memory, NOT VALID (2 criteria not met), INTERRUPTED";
    assert_eq!(last(&fixtures::interrupted()), expected);
    let failed = last(&fixtures::failed());
    assert!(failed.starts_with("b_eff = ") && failed.contains(" MB/s per process on 4 processes, "), "{failed}");
    assert!(failed.ends_with(", QUICK, OVERSUBSCRIBED, FAILED, DATA CORRUPTION"), "{failed}");
}

#[test]
fn an_incomplete_run_is_marked_in_the_first_line() {
    for (result, word) in [(fixtures::interrupted(), "INTERRUPTED"), (fixtures::failed(), "FAILED")] {
        assert!(full_text(&result, DetailLevel::Full).lines().next().unwrap().contains(word));
    }
    let mut result = fixtures::complete();
    result.ending.outcome = RunOutcome::Killed;
    assert!(full_text(&result, DetailLevel::Full).contains("no end recorded"));
}

#[test]
fn every_option_in_a_report_exists() {
    let known = |name: &str| {
        let name = name.trim_start_matches('-');
        ["bind-to", "map-by"].contains(&name) || has_option::<CommArgs>(name)
    };
    let page = fixtures::all().into_iter().map(|(_, result, _)| full_text(&result, DetailLevel::Details));
    let texts = KINDS.iter().map(|kind| kind.next_step.to_owned());
    for text in page.chain(texts) {
        for word in text.split_whitespace().filter(|w| w.starts_with("--") && !w.trim_matches('-').is_empty()) {
            let name = word.trim_end_matches(|c: char| !c.is_ascii_lowercase());
            assert!(known(name), "{name}");
        }
    }
}

#[test]
fn an_invalid_run_is_marked_not_comparable() {
    let said = |result: &CommResult| {
        let text = full_text(result, DetailLevel::Full);
        let row = text.lines().find(|line| line.trim_start().starts_with("this run")).unwrap().to_owned();
        (row, text.matches("NOT COMPARABLE").count())
    };
    let mut result = fixtures::complete();
    let (row, warned) = said(&result);
    assert!(row.contains("this run   ") && warned == 0, "{row}");
    result.config.buffers = BufferMode::Reused;
    let (row, warned) = said(&result);
    assert!(row.contains("this run, reused, NOT VALID ") && warned == 2, "{row}");
    let (row, warned) = said(&fixtures::interrupted());
    assert!(row.contains("this run, NOT VALID ") && warned == 1, "{row}");
}
