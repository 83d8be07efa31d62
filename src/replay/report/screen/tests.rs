use super::*;
use crate::frame::records::{ErrorRecord, Outcome};
use crate::frame::report::checks::{assert_fits_a_screen, hostile_name};
use crate::frame::report::{Level, Saved, Sheet, Views};
use crate::replay::config::Pace;
use crate::replay::plan::left_out::LeftOut;
use crate::replay::plan::CallClass;
use crate::replay::records::{ClassRecord, PassRecord};
use crate::replay::report::fixtures;
use crate::replay::values::fixture::{difference, run};

fn assert_fits(result: &ReplayResult, what: &str) -> String {
    let saved = Saved::Files([".jsonl", ".json", ".csv"].map(|end| format!("results/app1{end}").into()).into());
    assert_fits_a_screen(result, result.config.backends.len(), saved, what)
}

/// One line, one blank between two words.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn golden_screens() {
    for (name, result, _) in fixtures::all() {
        insta::assert_snapshot!(name, assert_fits(&result, name));
    }
}

/// Calls of every class there is.
fn every_class(result: &mut ReplayResult) {
    let records = result.classes.clone();
    for class in CallClass::ALL {
        let as_this = |record: &ClassRecord| ClassRecord { class, ..record.clone() };
        result.classes.extend(records.iter().map(as_this));
    }
}

fn many_leavings(result: &mut ReplayResult) {
    for leavings in &mut result.setup.leavings {
        leavings.left_out.extend((0..30).map(|n| LeftOut {
            function: format!("File_function_{n}"),
            reason: "a reason that takes its room ".repeat(9),
            calls: 1_000_000_007 * n,
            bytes: u64::MAX / 64,
            rank: 3,
            begin_ns: n,
        }));
    }
}

/// Whatever the program warns of, at once.
fn every_warning(result: &mut ReplayResult) {
    let failed = fixtures::failed();
    result.setup.profile.ended = failed.setup.profile.ended;
    (result.setup.profile.calls_cut, result.setup.profile.orderings_lost) = (1 << 60, 1 << 60);
    result.setup.profile.threads = 64;
    result.config.pace = Pace::Think;
    result.warnings = failed.warnings;
    for pass in &mut result.passes {
        pass.differences = vec![difference(); 40];
        pass.calls_as_recorded = 0;
        (pass.bytes_checked, pass.bytes_unknown, pass.allocations_in_clock) = (1, u64::MAX, u64::MAX);
        pass.late_seconds = Some(1e9);
        pass.storage_read_bytes = Some(u64::MAX);
    }
    result.setup.profile.storage_read_bytes = Some(0);
    result.setup.storage.fs_type = "tmpfs".into();
    many_leavings(result);
}

#[test]
fn no_run_is_longer_or_wider_than_a_screen() {
    for (name, result, _) in fixtures::all() {
        let with = |change: &dyn Fn(&mut ReplayResult), what: &str| {
            let mut result = result.clone();
            change(&mut result);
            assert_fits(&result, &format!("{name}, {what}"))
        };
        for outcome in [Outcome::Complete, Outcome::Failed, Outcome::Interrupted, Outcome::Killed] {
            with(&|r| r.ending.outcome = outcome, "an outcome");
        }
        with(&|r| r.passes.iter_mut().for_each(|p| p.ended = PassEnd::NotRun("no ".repeat(90))), "not run");
        with(&|r| r.passes.iter_mut().for_each(|p| p.ended = PassEnd::Error("no ".repeat(90))), "errors");
        with(&|r| r.passes.clear(), "no passes");
        with(&|r| r.classes.clear(), "no classes");
        with(&|r| (r.passes.clear(), r.classes.clear(), r.processes.clear()).0, "nothing");
        with(&every_class, "every class");
        with(&many_leavings, "much left out");
        with(&every_warning, "every warning");
        with(&|r| r.corruptions = fixtures::failed().corruptions, "wrong data");
        with(&|r| r.errors = vec![fixtures::failed().errors.remove(0); 9], "many errors");
        with(&|r| r.config.backends.extend((0..9).map(|n| format!("more{n}"))), "many backends");
        for factor in [0.0, 1e-300, 1e300, f64::NAN, f64::INFINITY, -1.0] {
            let odd = |r: &mut ReplayResult| {
                r.classes.iter_mut().for_each(|c| c.both.replayed.seconds *= factor);
                r.processes.iter_mut().for_each(|c| c.both.recorded.seconds *= factor);
                r.setup.profile.span_seconds *= factor;
            };
            with(&odd, "odd times");
        }
        let odd = |r: &mut ReplayResult| {
            for both in r.classes.iter_mut().map(|c| &mut c.both) {
                (both.replayed.calls, both.recorded.bytes) = (u64::MAX / 64, u64::MAX / 64);
            }
            (r.setup.profile.calls, r.setup.profile.read_bytes) = (u64::MAX, u64::MAX);
        };
        with(&odd, "odd counts");
        let hostile = |r: &mut ReplayResult| {
            let long = hostile_name();
            r.setup.profile.command = vec![long.clone(); 9];
            r.setup.profile.library.clone_from(&long);
            r.setup.storage.path.clone_from(&long);
            r.setup.storage.source.clone_from(&long);
            r.setup.machine.mpi_library.clone_from(&long);
            r.setup.machine.started_utc.clone_from(&long);
            let error = ErrorRecord { message: long.clone(), ..fixtures::failed().errors.remove(0) };
            r.errors = vec![error; 3];
            r.config.backends.iter_mut().for_each(|name| name.push_str(&long));
            r.passes.iter_mut().for_each(|p| p.backend.push_str(&long));
            r.classes.iter_mut().for_each(|c| c.backend.push_str(&long));
            r.setup.leavings.iter_mut().for_each(|l| l.backend.push_str(&long));
        };
        let text = with(&hostile, "hostile names");
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'));
        let everything = |r: &mut ReplayResult| {
            hostile(r);
            every_class(r);
            every_warning(r);
            r.corruptions = fixtures::failed().corruptions;
            r.config.verify = false;
            r.config.inject = true;
            r.ending.outcome = Outcome::Interrupted;
        };
        with(&everything, "everything that goes wrong");
        with(
            &|r| (everything(r), r.config.backends.extend((0..9).map(|n| format!("more{n}")))).0,
            "with many backends",
        );
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
fn what_keeps_it_from_being_as_recorded_is_told() {
    let text = flat(&assert_fits(&fixtures::failed(), "failed"));
    for part in [
        "*** INTERRUPTED",
        "*** WRONG DATA",
        "replay = WRONG DATA, INTERRUPTED: mpiio 1.25 times",
        "left out 7 calls behind a collective call",
        "because 3 wrong bytes: mpiio, pass 1: rank 1",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = flat(&assert_fits(&fixtures::one_not_run(), "one not run"));
    assert!(text.contains("uring not run: cannot work here: io_uring_setup"), "{text}");
    assert!(text.contains("left out uring: all, not run: cannot work here"), "{text}");
    let text = flat(&assert_fits(&fixtures::ladder(), "ladder"));
    assert!(text.contains("because 12 calls left out"), "{text}");
    assert!(text.contains("posix: 6 calls (File_write_ordered: it has no shared file pointer)"), "{text}");
    let text = flat(&assert_fits(&fixtures::complete(), "complete"));
    assert!(text.contains("left out nothing: every call was replayed"), "{text}");
    assert!(text.contains("compared 10 MiB, 100 % of what was read: all as expected"), "{text}");
    assert!(text.contains("as recorded all 134 calls had their recorded results"), "{text}");
    assert!(text.contains("read from storage: then 10 MiB; now mpiio 10 MiB"), "{text}");
}

#[test]
fn what_stands_out_is_told_with_its_cause() {
    let mut result = run(&["mpiio", "posix"], 1);
    for record in result.classes.iter_mut().filter(|c| c.backend == "posix" && c.class == CallClass::ReadNonblocking) {
        record.both.replayed.seconds *= 8.0;
    }
    for pass in result.passes.iter_mut().filter(|p| p.backend == "posix") {
        pass.storage_read_bytes = Some(20 << 20);
    }
    result.setup.profile.storage_read_bytes = Some(0);
    let text = flat(&assert_fits(&result, "slow reads"));
    let told = "read, nonblocking, posix: 5.3 times slower than recorded";
    assert!(text.contains(told) && text.contains("0 % of what was read came from storage then, 100 % now"), "{text}");
}

/// The whole report is as it was.
#[test]
fn full_and_details_are_the_whole_report() {
    let result = fixtures::ladder();
    let derived = result.derived();
    let place = Place { columns: 80, saved: Saved::Nothing };
    for (level, details) in [(Level::Full, false), (Level::Details, true)] {
        let Sheet::Text(text) = result.sheet(&derived, level, &place) else { panic!("a screen") };
        assert_eq!(text, result.table(&derived, details));
    }
}

#[test]
fn a_pass_that_is_missing_is_counted() {
    let mut result = run(&["mpiio"], 3);
    result.passes[2] = PassRecord { ended: PassEnd::Error("rank 0: no".into()), ..PassRecord::empty("mpiio", 3) };
    result.passes.remove(1);
    let text = flat(&assert_fits(&result, "one missing"));
    assert!(text.contains("because 2 of 3 passes missing, 1 of them ended early"), "{text}");
}
