//! Hand-made results of replays for the tests of the reports.

use crate::frame::command::directory::removal_warning;
use crate::frame::records::*;
use crate::frame::report::checks::with_derived;
use crate::frame::variants::BackendVariant;
use crate::replay::config::{Detail, Pace, WhatIf};
use crate::replay::plan::omission::OmittedCalls;
use crate::replay::records::*;
use crate::replay::values::fixture::{difference, run};
use crate::replay::values::ReplayDerived;

/// The fixtures by name, with their derived values.
pub fn all() -> Vec<(&'static str, ReplayResult, ReplayDerived)> {
    with_derived([
        ("complete", complete()),
        ("ladder", ladder()),
        ("one_not_run", one_unavailable()),
        ("failed", failed()),
        ("workload", workload(&["mpiio"])),
        ("what_if", what_if()),
        ("variants", variants()),
        ("workload_of_several", workload(&["mpiio", "posix", "null"])),
    ])
}

/// One backend, one repetition, everything as recorded.
pub fn complete() -> ReplayResult {
    run(&["mpiio"], 1)
}

/// Three backends, two repetitions, with all details; two of them omit calls.
pub fn ladder() -> ReplayResult {
    let mut result = run(&["mpiio", "posix", "null"], 2);
    result.config.detail = Detail::Request;
    result.config.pace = Pace::Absolute;
    result.config.scale = 0.5;
    result.repetitions.iter_mut().for_each(|repetition| repetition.late_seconds = Some(0.0025));
    for leavings in &mut result.setup.omissions[1..] {
        leavings.omitted.push(OmittedCalls {
            function: "File_write_ordered".into(),
            reason: "it has no shared file pointer".into(),
            calls: 6,
            bytes: 6 << 20,
            rank: 1,
            begin_ns: 4711,
        });
    }
    result
}

/// Two backends, one of them unavailable.
pub fn one_unavailable() -> ReplayResult {
    let mut result = run(&["mpiio", "uring"], 1);
    let reason = "cannot work here: io_uring_setup: Function not implemented (rank 0)".to_owned();
    result.repetitions[1] =
        ProfileRepetition { ended: RepetitionStatus::NotRun(reason), ..ProfileRepetition::empty("uring", 1) };
    result.classes.retain(|record| record.backend != "uring");
    result.processes.retain(|record| record.backend != "uring");
    result
}

/// A truncated profile, other results, wrong data, and a signal in the second repetition.
pub fn failed() -> ReplayResult {
    let mut result = run(&["mpiio"], 2);
    result.setup.profile.ended =
        vec![RecordingEnd { end: "complete".into(), processes: 1 }, RecordingEnd { end: "cut".into(), processes: 1 }];
    result.setup.profile.calls_discarded = 7;
    result.setup.profile.orderings_lost = 1;
    result.repetitions[0].calls_as_recorded -= 2;
    result.repetitions[0].differences.push(difference());
    result.repetitions[0].bytes_wrong = 3;
    result.repetitions[0].bytes_unknown = 100 << 10;
    result.repetitions[1].ended = RepetitionStatus::Interrupted;
    result.repetitions[1].calls = 40;
    result.repetitions[1].calls_as_recorded = 40;
    result.corruptions.push(ReplayCorruption {
        backend: "mpiio".into(),
        repetition: 1,
        rank: 1,
        function: "File_read_at".into(),
        begin_ns: 123_456,
        file: Some(2),
        offset_bytes: Some(4096),
        data_offset_bytes: 0,
        expected: 0x5a,
        actual: 0x5b,
        expected_from: "rank 0, call at 1000 ns".into(),
        diagnosis: "one bit flipped".into(),
        bytes_wrong: 3,
    });
    let during = "mpiio, repetition 1".to_owned();
    result.errors.push(ErrorRecord {
        during,
        rank: 1,
        ranks_affected: 1,
        message: "MPI_File_close on file-0001: an error".into(),
        next_step: "look at the log of the file system".into(),
        no_space: false,
    });
    result.warnings.push(removal_warning("/scratch/run/beff-raw-1", "busy"));
    result.ending.outcome = RunOutcome::Interrupted;
    result
}

/// A workload written by hand, whose times are invented.
pub fn workload(backends: &[&str]) -> ReplayResult {
    let mut result = run(backends, 1);
    let profile = &mut result.setup.profile;
    (profile.command, profile.library, profile.started_unix_ns) = (Vec::new(), String::new(), 0);
    (profile.cost_ns, profile.storage_read_bytes, profile.storage_written_bytes) = (None, None, None);
    result
}

/// A replay with and without a change.
pub fn what_if() -> ReplayResult {
    let change = "hints=romio_cb_write=enable".parse::<WhatIf>();
    let mut result = run(&["mpiio", "hints"], 3);
    result.config.what_if = change.ok();
    result
}

/// A backend with three variants: with other hints, without options, and with wrong data.
pub fn variants() -> ReplayResult {
    let mut result = run(&["mpiio", "mpiio+two", "mpiio+same", "mpiio+bad"], 3);
    let variant = |name: &str, hints: &[(&str, &str)]| BackendVariant {
        backend: format!("mpiio+{name}"),
        hints: hints.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        ..BackendVariant::default()
    };
    result.config.variants = vec![
        variant("two", &[("cb_nodes", "2")]),
        variant("same", &[]),
        variant("bad", &[("romio_cb_write", "disable")]),
    ];
    let times: Vec<_> =
        result.classes.iter().filter(|c| c.backend == "mpiio").map(|c| c.both.replayed.seconds).collect();
    let same = result.classes.iter_mut().filter(|c| c.backend == "mpiio+same");
    for (place, (record, seconds)) in same.zip(times).enumerate() {
        record.both.replayed.seconds = seconds * (1.0 + 0.01 * (place % 3) as f64 - 0.01);
    }
    result.repetitions.iter_mut().filter(|p| p.backend == "mpiio+bad").for_each(|p| p.bytes_wrong = 8);
    result
}

/// The lines of the journal of a result.
pub fn journal_lines(result: &ReplayResult) -> Vec<ReplayLine> {
    let mut lines = vec![result.start_line()];
    lines.extend(result.repetitions.iter().cloned().map(Box::new).map(ReplayLine::Repetition));
    lines.extend(result.classes.iter().cloned().map(ReplayLine::Class));
    lines.extend(result.processes.iter().cloned().map(ReplayLine::Process));
    lines.extend(result.corruptions.iter().cloned().map(ReplayLine::Corruption));
    lines.extend(result.errors.iter().cloned().map(ReplayLine::Error));
    lines.extend(result.warnings.iter().cloned().map(ReplayLine::Warning));
    lines.push(ReplayLine::End(result.ending.clone()));
    lines
}
