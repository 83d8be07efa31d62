//! The report of a replay on a screen, in full and on a page.

use super::*;
use crate::frame::records::{ErrorRecord, RunOutcome};
use crate::frame::report::checks::{assert_full_fits, assert_page, assert_screen_fits, full_text, hostile_name};
use crate::frame::report::SaveStatus;
use crate::replay::config::{Detail, Pace};
use crate::replay::plan::omission::OmittedCalls;
use crate::replay::plan::CallClass;
use crate::replay::records::{ClassRecord, ProfileRepetition, RepetitionStatus};
use crate::replay::values::fixture::{difference, run};

fn assert_fits(result: &ReplayResult, what: &str) -> String {
    let saved = SaveStatus::SavedTo([".jsonl", ".json", ".csv"].map(|end| format!("results/app1{end}").into()).into());
    assert_screen_fits(result, result.config.backends.len(), saved, what)
}

/// The screen as one line, with single blanks between words.
fn flattened_screen(result: &ReplayResult, what: &str) -> String {
    assert_fits(result, what).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn golden_reports() {
    for (name, result, _) in fixtures::all() {
        insta::assert_snapshot!(format!("{name}.screen"), assert_fits(&result, name));
        insta::assert_snapshot!(format!("{name}.full"), full_text(&result, DetailLevel::Full));
    }
}

fn add_every_class(result: &mut ReplayResult) {
    let records = result.classes.clone();
    for class in CallClass::ALL {
        let as_this = |record: &ClassRecord| ClassRecord { class, ..record.clone() };
        result.classes.extend(records.iter().map(as_this));
    }
}

fn add_many_omissions(result: &mut ReplayResult) {
    for leavings in &mut result.setup.omissions {
        leavings.omitted.extend((0..30).map(|n| OmittedCalls {
            function: format!("File_function_{n}"),
            reason: "a reason that takes its room ".repeat(9),
            calls: 1_000_000_007 * n,
            bytes: u64::MAX / 64,
            rank: 3,
            begin_ns: n,
        }));
    }
}

fn add_every_warning(result: &mut ReplayResult) {
    let failed = fixtures::failed();
    result.setup.profile.ended = failed.setup.profile.ended;
    (result.setup.profile.calls_discarded, result.setup.profile.orderings_lost) = (1 << 60, 1 << 60);
    result.setup.profile.threads = 64;
    result.config.pace = Pace::Think;
    result.warnings = failed.warnings;
    for repetition in &mut result.repetitions {
        repetition.differences = vec![difference(); 40];
        repetition.calls_as_recorded = 0;
        (repetition.bytes_checked, repetition.bytes_unknown, repetition.allocations_in_clock) = (1, u64::MAX, u64::MAX);
        repetition.late_seconds = Some(1e9);
        repetition.storage_read_bytes = Some(u64::MAX);
    }
    result.setup.profile.storage_read_bytes = Some(0);
    result.setup.storage.fs_type = "tmpfs".into();
    add_many_omissions(result);
}

fn set_extreme_counts(result: &mut ReplayResult) {
    for both in result.classes.iter_mut().map(|c| &mut c.both) {
        (both.replayed.calls, both.recorded.bytes) = (u64::MAX / 64, u64::MAX / 64);
    }
    (result.setup.profile.calls, result.setup.profile.read_bytes) = (u64::MAX, u64::MAX);
}

/// Replaces names by hostile ones wherever possible.
fn set_hostile_names(result: &mut ReplayResult) {
    let long = format!("</script><script>alert(1)</script>'\"{}", hostile_name());
    result.setup.profile.command = vec![long.clone(); 9];
    result.setup.profile.library.clone_from(&long);
    result.setup.profile.files.iter_mut().for_each(|f| f.path.clone_from(&long));
    result.setup.storage.path.clone_from(&long);
    result.setup.storage.source.clone_from(&long);
    result.setup.machine.mpi_library.clone_from(&long);
    result.setup.machine.started_utc.clone_from(&long);
    let error = ErrorRecord { message: long.clone(), ..fixtures::failed().errors.remove(0) };
    result.errors = vec![error; 3];
    result.config.backends.iter_mut().for_each(|name| name.push_str(&long));
    result.repetitions.iter_mut().for_each(|p| p.backend.push_str(&long));
    result.classes.iter_mut().for_each(|c| c.backend.push_str(&long));
    result.setup.omissions.iter_mut().for_each(|l| l.backend.push_str(&long));
}

fn add_every_problem(result: &mut ReplayResult) {
    set_hostile_names(result);
    add_every_class(result);
    add_every_warning(result);
    result.corruptions = fixtures::failed().corruptions;
    result.config.verify = false;
    result.config.inject = true;
    result.ending.outcome = RunOutcome::Interrupted;
}

fn add_many_backends(result: &mut ReplayResult) {
    result.config.backends.extend((0..9).map(|n| format!("more{n}")));
}

/// For any content of a file the bounds of the screen, of the lines of the full text and of a page hold, and nothing controls a terminal.
#[test]
fn every_result_respects_the_bounds() {
    for (name, result, _) in fixtures::all() {
        let with = |change: &dyn Fn(&mut ReplayResult), what: &str| {
            let mut result = result.clone();
            change(&mut result);
            let what = format!("{name}, {what}");
            assert_page(&result, &what);
            for text in [assert_fits(&result, &what), assert_full_fits(&result, "replay = ", &what)] {
                assert!(text.lines().any(|line| line.starts_with("replay = ")), "{what}\n{text}");
                assert!(!text.chars().any(|c| c == '\u{202e}' || (c.is_control() && c != '\n')), "{what}\n{text}");
            }
        };
        for outcome in [RunOutcome::Complete, RunOutcome::Failed, RunOutcome::Interrupted, RunOutcome::Killed] {
            with(&|r| r.ending.outcome = outcome, "an outcome");
        }
        with(
            &|r| r.repetitions.iter_mut().for_each(|p| p.ended = RepetitionStatus::NotRun("no ".repeat(90))),
            "not run",
        );
        with(&|r| r.repetitions.iter_mut().for_each(|p| p.ended = RepetitionStatus::Error("no ".repeat(90))), "errors");
        with(&|r| r.repetitions.clear(), "no repetitions");
        with(&|r| r.classes.clear(), "no classes");
        let nothing = |r: &mut ReplayResult| {
            r.repetitions.clear();
            r.classes.clear();
            r.processes.clear();
            r.setup.profile.files.clear();
            r.setup.machine.hosts.clear();
        };
        with(&nothing, "nothing");
        with(&|r| r.config.backends.clear(), "no backends");
        with(&add_every_class, "every class");
        with(&add_many_omissions, "many omissions");
        with(&add_every_warning, "every warning");
        with(&|r| r.corruptions = fixtures::failed().corruptions, "wrong data");
        with(&|r| r.errors = vec![fixtures::failed().errors.remove(0); 9], "many errors");
        with(&add_many_backends, "many backends");
        for factor in [0.0, 1e-300, 1e300, f64::NAN, f64::INFINITY, -1.0] {
            let odd = |r: &mut ReplayResult| {
                r.classes.iter_mut().for_each(|c| c.both.replayed.seconds *= factor);
                r.processes.iter_mut().for_each(|c| c.both.recorded.seconds *= factor);
                r.setup.profile.span_seconds *= factor;
            };
            with(&odd, "odd times");
        }
        with(&set_extreme_counts, "odd counts");
        with(&set_hostile_names, "hostile names");
        with(&add_every_problem, "everything that goes wrong");
        with(&|r| (add_every_problem(r), add_many_backends(r)).0, "with many backends");
    }
}

#[test]
fn the_verdict_is_one_line_for_grep() {
    for (name, result, _) in fixtures::all() {
        let text = assert_fits(&result, name);
        assert_eq!(text.lines().filter(|line| line.starts_with("replay = ")).count(), 1, "{text}");
    }
    let text = assert_fits(&fixtures::complete(), "complete");
    assert!(text.contains("\nreplay = complete, as recorded: mpiio 1.25 times as fast as recorded\n"), "{text}");
}

#[test]
fn reasons_of_the_verdict_are_shown() {
    let assert_shown = |result: ReplayResult, parts: &[&str]| {
        let text = flattened_screen(&result, "told");
        parts.iter().for_each(|part| assert!(text.contains(part), "{part}: {text}"));
    };
    assert_shown(
        fixtures::failed(),
        &[
            "*** INTERRUPTED",
            "*** WRONG DATA",
            "replay = WRONG DATA, INTERRUPTED: mpiio 1.25 times",
            "omitted 7 calls after a collective call",
            "because 3 wrong bytes: mpiio, repetition 1: rank 1",
        ],
    );
    let not_run = "omitted uring: all, not run: cannot work here: io_uring_setup";
    assert_shown(fixtures::one_unavailable(), &["uring x x x x x x", "marks x not run", not_run]);
    let left_out = "posix: 6 calls (File_write_ordered: it has no shared file pointer)";
    assert_shown(fixtures::ladder(), &["because 12 calls omitted", left_out]);
    assert_shown(
        fixtures::complete(),
        &[
            "omitted nothing: every call was replayed",
            "compared 10 MiB, 100 % of what was read: all as expected",
            "as recorded all 134 calls had their recorded results",
            "read from storage: recorded 10 MiB; now mpiio 10 MiB",
        ],
    );
    let mut result = run(&["mpiio"], 3);
    result.repetitions[2] = ProfileRepetition {
        ended: RepetitionStatus::Error("rank 0: no".into()),
        ..ProfileRepetition::empty("mpiio", 3)
    };
    result.repetitions.remove(1);
    assert_shown(result, &["because 2 of 3 repetitions missing, 1 of them failed or interrupted"]);
}

#[test]
fn findings_are_shown_with_their_cause() {
    let mut result = run(&["mpiio", "posix"], 1);
    for record in result.classes.iter_mut().filter(|c| c.backend == "posix" && c.class == CallClass::ReadNonblocking) {
        record.both.replayed.seconds *= 8.0;
    }
    for repetition in result.repetitions.iter_mut().filter(|p| p.backend == "posix") {
        repetition.storage_read_bytes = Some(20 << 20);
    }
    result.setup.profile.storage_read_bytes = Some(0);
    let text = flattened_screen(&result, "slow reads");
    let slower = "read, nonblocking, posix: 5.3 times slower than recorded";
    assert!(text.contains(slower) && text.contains("0 % of what was read came from storage when"), "{text}");
}

#[test]
fn every_suffix_has_its_view() {
    for (name, result, derived) in fixtures::all() {
        for suffix in result.suffixes() {
            assert!(SUFFIXES.contains(&suffix.as_str()));
            assert!(!result.file_bytes(&derived, &suffix).unwrap().is_empty(), "{name} {suffix}");
        }
    }
}

#[test]
fn higher_detail_shows_more_sections() {
    let mut result = fixtures::complete();
    let mut shown = |detail, level| {
        result.config.detail = detail;
        let text = full_text(&result, level);
        ["By file", "By class", "By process"].map(|title| text.contains(title))
    };
    assert_eq!(shown(Detail::Run, DetailLevel::Full), [false, false, false]);
    assert_eq!(shown(Detail::File, DetailLevel::Full), [true, false, false]);
    assert_eq!(shown(Detail::Function, DetailLevel::Full), [true, true, false]);
    assert_eq!(shown(Detail::Process, DetailLevel::Full), [true, true, true]);
    assert_eq!(shown(Detail::Run, DetailLevel::Details), [true, true, true]);
}

#[test]
fn the_last_line_is_the_verdict() {
    let last = |result: &ReplayResult| full_text(result, DetailLevel::Full).lines().last().unwrap().to_owned();
    let mut result = fixtures::complete();
    let begin = "replay = complete, as recorded: 1 of 1 repetition complete, mpiio 1.250 of recorded, ";
    assert!(last(&result).starts_with(begin), "{}", last(&result));
    assert!(last(&fixtures::failed()).starts_with("replay = WRONG DATA: 1 of 2 repetitions complete"));
    result.ending.outcome = RunOutcome::Killed;
    assert!(last(&result).ends_with("no end recorded, KILLED"));
    result.repetitions.clear();
    assert!(last(&result).starts_with("replay = NOT complete: 0 of 1 repetition"));
}
