//! Synthetic results of IMB-IO for the tests of the reports, by simple formulas.

use crate::frame::config::RepetitionPolicy;
use crate::frame::records::*;
use crate::frame::report::checks::with_derived;
use crate::frame::report::journal::truncated_warning;
use crate::frame::variants::BackendVariant;
use crate::imb_io::config::Multi;
use crate::imb_io::plan::Mode;
use crate::imb_io::plan::Mode::{Aggregate, NonAggregate};
use crate::imb_io::records::*;
use crate::imb_io::values::fixture::{from_cache, row, run};
use crate::imb_io::values::ImbDerived;

/// The fixtures by name, with their derived values.
pub fn all() -> Vec<(&'static str, ImbResult, ImbDerived)> {
    with_derived([("complete", complete()), ("groups", groups()), ("failed", failed()), ("variants", variants())])
}

const SIZES: [u64; 4] = [0, 1, 4096, 1 << 20];

fn rows(benchmark: &str, ranks: u64, mode: Mode) -> impl Iterator<Item = RowRecord> + '_ {
    SIZES.into_iter().map(move |bytes| {
        let record = row(benchmark, ranks, mode, Some(bytes));
        // The volume of 40 MiB.
        let repetitions = if bytes == 1 << 20 { 40 } else { record.iterations };
        let moved = bytes * repetitions;
        let evidence = record.evidence.is_some().then(|| from_cache(0, moved));
        let repetitions_wanted = repetitions;
        // Non-blocking benchmarks run three times, and all files are compared.
        let bytes_checked = moved * if record.overlap.is_some() { 3 } else { 1 };
        RowRecord {
            iterations: repetitions,
            iterations_requested: repetitions_wanted,
            moved_bytes: moved,
            bytes_checked,
            evidence,
            ..record
        }
    })
}

fn finish(mut result: ImbResult) -> ImbResult {
    result.setup.rows = result.rows.len() as u64;
    let mut names: Vec<String> = Vec::new();
    for row in &result.rows {
        if !names.contains(&row.benchmark) {
            names.push(row.benchmark.clone());
        }
    }
    result.config.benchmarks = names;
    result
}

/// S, P and C, both modes, an overlap, Open_Close, reads from cache and of an unknown source; no errors.
pub fn complete() -> ImbResult {
    let mut result = run();
    result.config.bare = true;
    result.bare = vec![beside_bare("S_Write_Indv", 4096, 1.01), beside_bare("S_Read_Indv", 1 << 20, 1.08)];
    result.rows.extend(rows("S_Write_Indv", 1, Aggregate));
    result.rows.extend(rows("S_Write_Indv", 1, NonAggregate));
    result.rows.extend(rows("S_IRead_Expl", 1, Aggregate));
    result.rows.extend(rows("P_Read_Priv", 2, Aggregate));
    result.rows.extend(rows("C_Write_Expl", 4, NonAggregate));
    result.rows.push(row("Open_Close", 4, Aggregate, None));
    let cached = result.rows.iter_mut().filter(|r| r.benchmark == "P_Read_Priv");
    for record in cached {
        match record.sample_bytes {
            Some(4096) => record.evidence = Some(from_cache(1, 1)),
            Some(1) => record.evidence = None,
            _ => {}
        }
    }
    let last = result.rows.iter_mut().rfind(|r| r.sample_bytes.is_some());
    if let Some(last) = last {
        (last.iterations, last.moved_bytes, last.bytes_checked) = (7, 7 << 20, 7 << 20);
    }
    let open_close = result.rows.len() - 1;
    repeat(&mut result, [0, 1, 2, 3, open_close]);
    finish(result)
}

/// Repeats these rows three times, each time a little slower; the last one only once.
fn repeat(result: &mut ImbResult, rows: [usize; 5]) {
    (result.config.repeat, result.config.until_share) = (RepetitionPolicy::Times(3), Some(0.05));
    for round in 1..=3 {
        for row in rows.into_iter().take(if round == 1 { 5 } else { 4 }) {
            let mut measured = result.rows[row].clone();
            measured.times.iter_mut().for_each(|t| t.max_seconds *= 1.0 + f64::from(round) / 64.0);
            result.repetitions.push(RowRepetition { row: row as u64, measurement: measured });
        }
    }
}

fn beside_bare(benchmark: &str, sample_bytes: u64, ratio: f64) -> ImbBareRecord {
    let pair = |n: u32| {
        let bare_seconds = 1e-4 * f64::from(n % 3 + 1);
        BareLoopPair { harness_seconds: bare_seconds * ratio * (1.0 + f64::from(n) * 1e-3), bare_seconds }
    };
    ImbBareRecord {
        benchmark: benchmark.into(),
        ranks: 1,
        sample_bytes,
        iterations: 10,
        pairs: (0..9).map(pair).collect(),
    }
}

/// Two groups of two ranks, each shown; two backends in turns, one of which does not support all rows.
pub fn groups() -> ImbResult {
    let mut result = run();
    result.config.backends = vec!["mpiio".into(), "posix".into()];
    result.config.multi = Some(Multi::Each);
    for record in rows("P_Write_Shared", 2, Aggregate).chain(rows("P_IWrite_Indv", 2, Aggregate)) {
        let second = GroupTimes { max_seconds: 2.0 * record.times[0].max_seconds, ..record.times[0] };
        let times = vec![record.times[0], second];
        let (moved_bytes, bytes_checked) = (2 * record.moved_bytes, 2 * record.bytes_checked);
        // An overlap is that of the slowest rank of all groups.
        let overlap = record.overlap.map(|once| OverlapTimes {
            blocking_seconds: once.blocking_seconds.map(|seconds| 2.0 * seconds),
            alone_seconds: 2.0 * once.alone_seconds,
            overlapped_seconds: 2.0 * once.overlapped_seconds,
            cpu_seconds: 2.0 * once.cpu_seconds,
            cpu_overlapped_seconds: 2.0 * once.cpu_overlapped_seconds,
        });
        let own = RowRecord { groups: 2, times, overlap, moved_bytes, bytes_checked, ..record };
        let no_file = "a shared file pointer is a thing of MPI files".to_owned();
        let posix = RowRecord {
            backend: "posix".into(),
            ended: RowStatus::NotRun(no_file),
            times: Vec::new(),
            iteration_times: None,
            overlap: None,
            iterations: 0,
            moved_bytes: 0,
            bytes_checked: 0,
            sync_seconds: 0.0,
            strategy: String::new(),
            blocking_strategy: None,
            real_seconds: 0.0,
            ..own.clone()
        };
        result.rows.extend([own, posix]);
    }
    for record in rows("P_Read_Expl", 2, Aggregate) {
        let times = vec![record.times[0]; 2];
        let own = RowRecord { groups: 2, times, evidence: None, ..record };
        let strategy = "pread".into();
        let posix = RowRecord { backend: "posix".into(), strategy, direct: Some(false), ..own.clone() };
        result.rows.extend([own, posix]);
    }
    finish(result)
}

/// A backend with two variants, repeated: one with other hints, one without options.
pub fn variants() -> ImbResult {
    let mut result = run();
    let variant = |name: &str, hints: &[(&str, &str)]| BackendVariant {
        backend: format!("mpiio+{name}"),
        hints: hints.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        ..BackendVariant::default()
    };
    result.config.variants = vec![variant("nocb", &[("romio_cb_write", "disable")]), variant("same", &[])];
    result.config.backends.extend(result.config.variants.iter().map(|v| v.backend.clone()));
    for record in rows("C_Write_Expl", 4, Aggregate).chain(rows("P_Read_Expl", 4, Aggregate)) {
        let is_write = record.benchmark == "C_Write_Expl";
        for (n, backend) in ["mpiio", "mpiio+nocb", "mpiio+same"].into_iter().enumerate() {
            let at = result.rows.len() as u64;
            let factor = if n == 1 && is_write { 0.8 } else { 1.0 };
            let own = |round: u64| {
                let noise = 1.0 + 0.01 * ((round + n as u64) % 3) as f64;
                let mut own = RowRecord { backend: backend.into(), ..record.clone() };
                own.times.iter_mut().for_each(|times| times.max_seconds *= factor * noise);
                own
            };
            result.rows.push(own(0));
            let again = (1..6).map(|round| RowRepetition { row: at, measurement: own(round) });
            result.repetitions.extend(again);
        }
    }
    finish(result)
}

/// Oversubscription, wrong data, a failed and an interrupted row, rows not reached, allocations, a torn journal.
pub fn failed() -> ImbResult {
    let mut result = run();
    result.config.inject = true;
    result.setup.machine.hosts[0].cores = 2;
    result.setup.timestamp_ns = 900.0;
    if let Some(announced) = &mut result.announcement {
        (announced.limit_seconds, announced.cpu_load) =
            (None, Some(CpuLoad { unit_seconds: 1e-6, calibration_error: 0.25 }));
    }
    result.rows.extend(rows("P_Write_Shared", 4, Aggregate));
    result.rows.extend(rows("P_Read_Shared", 4, Aggregate));
    (result.rows[1].bytes_wrong, result.rows[3].allocations_in_clock) = (3, 2);
    // The times of a failed row must not be shown, so this one has some.
    (result.rows[2].ended, result.rows[2].iterations) =
        (RowStatus::Error("rank 2: MPI_File_write_shared moved 512 of 1024 bytes".into()), 17);
    result.rows[7].ended = RowStatus::Interrupted;
    result.rows[0].interference = Some(fixture::interference(2.5));
    result = finish(result);
    result.setup.rows += 5;
    result.corruptions.push(corruption());
    result.errors.push(ErrorRecord {
        during: "P_Write_Shared, mpiio, 4 ranks, aggregate, 4096 bytes".into(),
        rank: 2,
        ranks_affected: 3,
        message: "MPI_File_write_shared moved 512 of 1024 bytes".into(),
        next_step: "Look for a full file system or a quota.".into(),
        no_space: false,
    });
    result.warnings.push(truncated_warning(17, 99));
    result.ending.outcome = RunOutcome::Interrupted;
    result.ending.real_seconds = 14.5;
    result
}

fn corruption() -> ImbCorruption {
    ImbCorruption {
        backend: "mpiio".into(),
        benchmark: "P_Write_Shared".into(),
        ranks: 4,
        mode: Aggregate,
        sample_bytes: 1,
        rank: 0,
        iteration: Some(41),
        file: "common".into(),
        offset_bytes: Some(41),
        expected: Some(0xfe),
        actual: Some(0xff),
        diagnosis: "one bit flipped".into(),
        bytes_wrong: 3,
    }
}

/// The journal of a run with this result, except for the order of the kinds of records.
pub fn journal_lines(result: &ImbResult) -> Vec<ImbLine> {
    let mut lines = vec![result.start_line()];
    lines.extend(result.announcement.clone().map(ImbLine::Announcement));
    lines.extend(result.rows.iter().cloned().map(|row| ImbLine::Row(Box::new(row))));
    lines.extend(result.repetitions.iter().cloned().map(|again| ImbLine::Repetition(Box::new(again))));
    lines.extend(result.bare.iter().cloned().map(ImbLine::Bare));
    lines.extend(result.corruptions.iter().cloned().map(ImbLine::Corruption));
    lines.extend(result.errors.iter().cloned().map(ImbLine::Error));
    lines.extend(result.warnings.iter().cloned().map(ImbLine::Warning));
    lines.push(ImbLine::End(result.ending.clone()));
    lines
}
