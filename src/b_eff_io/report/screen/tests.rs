use super::*;
use crate::b_eff_io::records::{Ended, PatternRecord};
use crate::b_eff_io::report::fixtures;
use crate::b_eff_io::values::derive;
use crate::frame::records::{Access, Outcome};
use crate::frame::report::checks::{assert_fits_a_screen, hostile_name, one_of_each};
use crate::frame::report::{Level, Saved, Sheet, Views};

fn place() -> Place {
    let saved = Saved::Files([".jsonl", ".json", ".csv", ".sum"].map(|end| format!("results/run1{end}").into()).into());
    Place { columns: 80, saved }
}

fn shown(result: &RunResult, place: &Place) -> String {
    result.sheet(&derive(result), Level::Screen, place).render(false)
}

fn assert_fits(result: &RunResult, what: &str) -> String {
    assert_fits_a_screen(result, measuring(result).count(), place().saved, what)
}

#[test]
fn golden_screens() {
    for (name, result, _) in fixtures::all() {
        insta::assert_snapshot!(name, assert_fits(&result, name));
    }
    let mut one = fixtures::ladder();
    one.config.backends = vec!["mpiio".into()];
    insta::assert_snapshot!("one", assert_fits(&one, "one"));
}

#[test]
fn no_run_is_longer_or_wider_than_a_screen() {
    for (name, result, _) in fixtures::all() {
        let with = |change: &dyn Fn(&mut RunResult), what: &str| {
            let mut result = result.clone();
            change(&mut result);
            assert_fits(&result, &format!("{name}, {what}"))
        };
        for outcome in [Outcome::Complete, Outcome::Failed, Outcome::Interrupted, Outcome::Killed] {
            with(&|r| r.ending.outcome = outcome, "an outcome");
        }
        with(&|r| r.patterns.iter_mut().for_each(|p| p.ended = Ended::NotRun("no ".repeat(90))), "not run");
        with(&|r| r.patterns.iter_mut().for_each(|p| p.ended = Ended::Error), "errors");
        with(&|r| r.patterns.clear(), "no patterns");
        with(&|r| two_phase(r, |p| p.access == Access::Write), "two-phase first writes");
        with(&|r| (r.patterns.clear(), r.types.clear(), r.partitions.clear()).0, "nothing");
        with(&|r| r.warnings = one_of_each::<RunResult>(), "every warning");
        with(&|r| r.corruptions = fixtures::failed().corruptions, "corrupt");
        with(&|r| r.errors = vec![fixtures::failed().errors.remove(0); 9], "many errors");
        with(
            &|r| {
                r.warnings = one_of_each::<RunResult>();
                r.corruptions = fixtures::failed().corruptions;
                r.errors = vec![fixtures::failed().errors.remove(0); 9];
                r.ending.outcome = Outcome::Interrupted;
            },
            "everything that goes wrong",
        );
        let text = with(
            &|r| {
                let long = hostile_name();
                r.manifest.storage.path = long.clone();
                r.manifest.storage.source = long.clone();
                r.manifest.storage.fs_type = long.clone();
                r.manifest.machine.mpi_library = long.clone();
                r.manifest.machine.started_utc = long.clone();
                r.errors = fixtures::failed().errors;
                r.errors.iter_mut().for_each(|e| e.message.clone_from(&long));
                for name in &mut r.config.backends {
                    name.push_str(&long);
                }
                for p in &mut r.patterns {
                    p.backend.push_str(&long);
                }
            },
            "hostile names",
        );
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'));
        with(&|r| r.config.backends.extend((0..9).map(|n| format!("more{n}"))), "thirteen backends");
        for factor in [1e-12, 1e12, f64::NAN, f64::INFINITY] {
            with(&|r| r.patterns.iter_mut().for_each(|p| p.intervals.transfer_seconds *= factor), "odd times");
        }
        with(&|r| r.patterns.iter_mut().for_each(|p| p.moved_bytes = u64::MAX), "odd bytes");
    }
}

#[test]
fn the_value_is_one_line_for_grep() {
    let result = fixtures::complete();
    let text = shown(&result, &place());
    let values: Vec<&str> = text.lines().filter(|line| line.starts_with("b_eff_io (")).collect();
    assert_eq!(values.len(), 2, "{text}");
    assert!(values[0].ends_with(", mpiio, VALID") && values[1].ends_with(", posix, NOT VALID"), "{values:?}");
}

#[test]
fn what_is_missing_is_told_in_words() {
    let mut result = fixtures::ladder();
    result.partitions[0].time_seconds = 15.0;
    let text = shown(&result, &place());
    assert!(text.contains("too short: 15 s, 15 min needed"), "{text}");
    assert!(text.contains("--time 15m"), "{text}");
    assert!(!text.contains(">="), "{text}");
}

#[test]
fn a_run_that_failed_says_so_first() {
    let text = shown(&fixtures::failed(), &place());
    assert!(text.lines().next().unwrap().starts_with("*** FAILED"), "{text}");
    assert!(
        text.contains("*** DATA CORRUPTION") && text.contains("  error       mpiio read pattern 5, rank 1 (2 ranks")
    );
    assert!(["--time", "compare", "because", "stands out"].iter().all(|advice| !text.contains(advice)), "{text}");
    let text = shown(&fixtures::interrupted(), &place());
    assert!(text.lines().next().unwrap().starts_with("*** INTERRUPTED"), "{text}");
}

#[test]
fn what_to_type_next_names_the_files() {
    let result = fixtures::complete();
    let text = shown(&result, &place());
    assert!(
        text.contains("results/run1.jsonl .json .csv .sum")
            && text.contains("beff-raw report results/run1.json --full")
    );
    let text = shown(&result, &Place { columns: 80, saved: Saved::Nothing });
    assert!(text.contains("--out NAME") && text.contains("--full"), "{text}");
    let text = shown(&result, &Place { columns: 80, saved: Saved::From("a b.jsonl".into()) });
    assert!(text.contains("beff-raw report 'a b.jsonl' --full"), "{text}");
}

/// A mark without its meaning says nothing.
#[test]
fn the_marks_that_are_used_are_explained() {
    let mut result = fixtures::complete();
    for p in result.patterns.iter_mut().filter(|p| p.access == Access::Write) {
        p.ended = Ended::Space;
    }
    let text = shown(&result, &place());
    assert!(text.contains("s ended by its space share"), "{text}");
}

#[test]
fn the_screen_is_as_wide_as_the_terminal() {
    let result = fixtures::failed();
    for columns in [0, 40, 80, 100, 110, 500] {
        let text = shown(&result, &Place { columns, ..place() });
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= columns.clamp(80, 110), "{columns}: {widest}");
    }
}

#[test]
fn full_and_details_are_the_whole_report() {
    let result = fixtures::ladder();
    let derived = derive(&result);
    for (level, details) in [(Level::Full, false), (Level::Details, true)] {
        let Sheet::Text(text) = result.sheet(&derived, level, &place()) else { panic!("a screen") };
        assert_eq!(text, result.table(&derived, details));
    }
}

fn two_phase(result: &mut RunResult, is_so: impl Fn(&PatternRecord) -> bool) {
    let of = result.patterns.iter_mut().filter(|p| is_so(p));
    of.for_each(|p| p.strategy = "two-phase pwrite, direct".into());
}

#[test]
fn writes_and_rewrites_of_two_ways_are_told() {
    let told = |is_so: fn(&PatternRecord) -> bool| {
        let mut result = fixtures::ladder();
        two_phase(&mut result, is_so);
        let text = shown(&result, &place());
        text.lines().find(|line| line.contains("two-phase")).map(|line| line.trim().to_owned())
    };
    let small: fn(&PatternRecord) -> bool = |p| p.chunk_bytes == 1024 && p.pattern_type.is_strided();
    let first = told(|p| p.access == Access::Write && p.chunk_bytes == 1024 && p.pattern_type.is_strided());
    assert_eq!(first.as_deref(), Some("1 kB, scatter and shared: first writes are two-phase, rewrites not"));
    assert_eq!(told(small), None, "both are");
    assert_eq!(told(|_| false), None, "none is");
}
