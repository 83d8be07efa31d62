//! Synthetic results for the tests of this module: complete, interrupted, and failed with corrupt data. The numbers follow simple formulas.

mod ladder;
mod records;
mod settings;

use crate::b_eff_io::config::{ChunkOrder, InjectionPoint, ReadShare, RepeatPolicy};
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::*;
use crate::b_eff_io::values::Derived;
use crate::frame::command::directory::removal_warning;
use crate::frame::command::observer::journal_warning;
use crate::frame::records::*;
use crate::frame::report::checks::with_derived;
use crate::frame::report::journal::truncated_warning;

pub use super::fixtures::records::pattern;
use super::fixtures::records::{measure, not_run_record, type_record};
use super::fixtures::settings::{empty, odd_config};

const KB: u64 = 1 << 10;
const MB: u64 = 1 << 20;
const GB: u64 = 1 << 30;
const M_PART_BYTES: u64 = 64 * MB;

/// The fixtures by name, with their derived values.
pub fn all() -> Vec<(&'static str, RunResult, Derived)> {
    with_derived([
        ("complete", complete()),
        ("ladder", ladder()),
        ("interrupted", interrupted()),
        ("failed", failed()),
        ("repeated", repeated()),
        ("ordered", ordered()),
    ])
}

/// Two backends, two partitions, complete; the second partition reads from the cache.
pub fn complete() -> RunResult {
    let mut result = empty(&["mpiio", "posix"], &[2, 4]);
    for access in AccessMethod::ALL {
        for ranks in [2, 4] {
            for t in PatternType::ALL {
                for backend in ["mpiio", "posix"] {
                    measure(&mut result, backend, ranks, access, t);
                }
            }
        }
    }
    for r in result.patterns.iter_mut().filter(|r| r.ranks == 4 && r.access == AccessMethod::Read) {
        r.storage_read_bytes = Some(r.moved_bytes / 4);
    }
    for backend in ["mpiio", "posix"] {
        let (bytes, write_seconds, sync_seconds) = (64 * MB, 0.05, 0.25);
        let backend = backend.to_owned();
        result.calibrations.push(Calibration { backend, bytes, write_seconds, sync_seconds });
    }
    result.warnings.push(removal_warning("/scratch/run", "busy"));
    result.ending = IoEnding {
        outcome: RunOutcome::Complete,
        real_seconds: 3712.5,
        full_verify_seconds: 0.0,
        calibrate_seconds: 0.75,
        connection_setup_seconds: Some(0.25),
        cleanup_seconds: 1.5,
        rank_memory_high_water_bytes: 118 * MB,
        rank_memory_planned_bytes: 112 * MB,
        rank_memory: None,
        set_up: None,
    };
    result
}

/// Four backends and null, on one partition, with all that is recorded for a comparison of backends.
pub fn ladder() -> RunResult {
    let backends = ["null", "mpiio", "posix", "uring", "mmap"];
    let mut result = empty(&backends, &[2]);
    for access in AccessMethod::ALL {
        for t in PatternType::ALL {
            for backend in backends {
                measure(&mut result, backend, 2, access, t);
            }
        }
    }
    for r in result
        .patterns
        .iter_mut()
        .filter(|r| r.backend == "uring" && r.pattern == 28 && r.access == AccessMethod::Write)
    {
        r.ended = StopReason::TimeGuard;
    }
    ladder::add_ladder_records(&mut result);
    result.ending = complete_ending();
    result
}

/// One backend with repetitions: first writes once, the others three times.
pub fn repeated() -> RunResult {
    let mut result = empty(&["mpiio"], &[2]);
    result.config.repeat = RepeatPolicy::Auto;
    result.config.until_percent = Some(2.0);
    for access in AccessMethod::ALL {
        for t in PatternType::ALL {
            measure(&mut result, "mpiio", 2, access, t);
        }
    }
    let mut clock = 1.0;
    let mut at = |p: &mut PatternRecord| {
        clock += 0.5;
        p.at_seconds = Some(clock);
    };
    result.patterns.iter_mut().for_each(&mut at);
    for number in 1..=3_u32 {
        for p in result.patterns.iter().filter(|p| p.access != AccessMethod::Write || number == 1) {
            let mut measured = PatternRecord { rounds: Vec::new(), batches: Vec::new(), ..p.clone() };
            // Some faster, some slower; one read always four times as fast.
            let odd = (u32::from(p.pattern) * 7 + number * 5) % 11;
            let slower = 0.95 + 0.01 * f64::from(odd);
            measured.intervals.transfer_seconds *= slower;
            if p.access == AccessMethod::Read && p.pattern == 12 {
                measured.intervals.transfer_seconds *= 0.25;
            }
            at(&mut measured);
            result.repetitions.push(RepetitionRecord { repetition: number, share: 1.0, measurement: measured });
        }
        for t in result.types.iter().filter(|t| t.access != AccessMethod::Write || number == 1) {
            result.type_repetitions.push(TypeRepetitionRecord { repetition: number, measurement: t.clone() });
        }
    }
    result.ending = complete_ending();
    result
}

/// Two backends, with measurements in other orders.
pub fn ordered() -> RunResult {
    let mut result = empty(&["mpiio", "posix"], &[2]);
    result.config.orders = vec![ChunkOrder::Sequential, ChunkOrder::Random];
    result.config.mix = Some(ReadShare { read_percent: 70 });
    for access in AccessMethod::ALL {
        for t in PatternType::ALL {
            for backend in ["mpiio", "posix"] {
                measure(&mut result, backend, 2, access, t);
            }
        }
    }
    ladder::add_rounds(&mut result);
    let is_ordered =
        |p: &&PatternRecord| p.access != AccessMethod::Write && p.pattern_type.has_orders() && p.time_units > 0;
    for order in result.config.orders.clone() {
        for p in result.patterns.iter().filter(is_ordered) {
            let mut measurement = PatternRecord { call_bytes: p.chunk_bytes, ..p.clone() };
            let slower = if order == ChunkOrder::Random { 2.5 } else { 1.125 };
            measurement.intervals.transfer_seconds *= slower;
            let longer = measurement.seconds() / p.seconds();
            measurement.rounds.iter_mut().for_each(|round| round.seconds *= longer);
            result.ordered.push(OrderedRecord { order, mix: None, measurement });
        }
        let is_measured = |t: &&TypeRecord| t.access != AccessMethod::Write && t.pattern_type.has_orders();
        for t in result.types.iter().filter(is_measured) {
            result.ordered_types.push(OrderedTypeRecord { order, mix: None, measurement: t.clone() });
        }
        add_mixed(&mut result, order);
    }
    result.ending = complete_ending();
    result
}

/// As the rewrites in this order, in less time.
fn add_mixed(result: &mut RunResult, order: ChunkOrder) {
    let is_rewrite = |o: &&OrderedRecord| o.order == order && o.measurement.access == AccessMethod::Rewrite;
    let rewrites: Vec<OrderedRecord> = result.ordered.iter().filter(is_rewrite).cloned().collect();
    for mut mixed in rewrites {
        let p = &mut mixed.measurement;
        let before = p.seconds();
        p.intervals.transfer_seconds *= 0.875;
        let longer = p.seconds() / before;
        p.rounds.iter_mut().for_each(|round| round.seconds *= longer);
        mixed.mix = Some(MixRecord {
            read_percent: 70,
            read_calls: p.calls * 7 / 10,
            reads_expect: ReadExpectation::GenerationBefore,
            written_generation: 7,
        });
        result.ordered.push(mixed);
    }
    let own = result.ordered_types.iter().filter(|t| t.order == order && t.measurement.access == AccessMethod::Rewrite);
    let mixed: Vec<OrderedTypeRecord> =
        own.map(|t| OrderedTypeRecord { mix: result.config.mix, ..t.clone() }).collect();
    result.ordered_types.extend(mixed);
}

/// One backend, stopped by a signal in pattern 11 of the first write.
pub fn interrupted() -> RunResult {
    let mut result = empty(&["posix"], &[2]);
    measure(&mut result, "posix", 2, AccessMethod::Write, PatternType::Scatter);
    measure(&mut result, "posix", 2, AccessMethod::Write, PatternType::Shared);
    result.patterns.retain(|r| r.pattern <= 11);
    if let Some(last) = result.patterns.last_mut() {
        last.ended = StopReason::Interrupted;
    }
    result.ending = IoEnding { outcome: RunOutcome::Interrupted, real_seconds: 91.25, ..result.ending };
    result
}

/// Corrupt data, an error at the end, and one of every other record.
pub fn failed() -> RunResult {
    let mut result = empty(&["mpiio"], &[2]);
    result.config = odd_config(result.config);
    for access in [AccessMethod::Write, AccessMethod::Read] {
        for number in [0, 1, 2, 4, 5] {
            result.patterns.push(pattern("mpiio", 2, access, number));
        }
        result.types.push(type_record("mpiio", 2, access, PatternType::Scatter));
    }
    let not_run = StopReason::NotRun("the file system gives no alignment for direct I/O".into());
    let ends = [StopReason::Count, StopReason::Time, StopReason::Space, StopReason::TimeGuard, not_run];
    for (r, ended) in result.patterns.iter_mut().zip(ends) {
        r.ended = ended;
    }
    result.patterns[4] = not_run_record(result.patterns[4].clone());
    result.patterns[3].allocations_in_clock = 2;
    result.patterns[7].verification.words_wrong = 128;
    result.patterns[9].ended = StopReason::Error;
    result.patterns[9].storage_read_bytes = None;
    result.patterns[9].evidence = Evidence {
        devices_unknown: Some("network file system nfs4: no local device".into()),
        residency_source: "cachestat: Function not implemented; mincore: No such device".into(),
        ..Evidence::default()
    };
    result.patterns[1].interference = Some(fixture::interference(0.0));
    result.patterns[2].interference = Some(fixture::interference(2.5));
    result.types[0].full_verification = Some(Verification { words_checked: 1 << 20, words_wrong: 128 });
    result.types[1].segment_bytes = Some(8 * MB);
    result.corruptions.push(corruption());
    result.injected_faults.push(InjectedFaultRecord {
        backend: "mpiio".into(),
        ranks: 2,
        at: InjectionPoint::AfterWrite,
        pattern: 5,
        rank: 1,
        file: "mpiio/n2-type0-scatter.dat".into(),
        offset_bytes: 4096,
        bytes: 8,
    });
    result.errors.push(ErrorRecord {
        during: "mpiio read pattern 5".into(),
        rank: 1,
        ranks_affected: 2,
        message: "MPI_File_read_all of type0.dat at offset 1048576: MPI_ERR_IO: Input/output error".into(),
        next_step: "Look for messages of the storage in the kernel log (dmesg).".into(),
        no_space: false,
    });
    for (at, seconds) in [(ProbeTime::Start, 0.004), (ProbeTime::End, 0.0025)] {
        result.probes.push(ProbeRecord {
            at,
            block_bytes: MB,
            round_bytes: 4 * MB,
            write_seconds: vec![0.004; 3],
            read_seconds: vec![seconds; 3],
            seconds: 0.625,
            unknown_reason: None,
        });
    }
    result.cache_cold.push(CacheColdRecord {
        cache_share_bytes: 17 * MB,
        memory_bytes: MB,
        seconds: 0.0625,
        rank: 3,
        lines: 1 << 16,
        load_ns: 29.0,
        flushed_ns: 101.0,
        cached_ns: 5.0,
        unknown_reason: None,
    });
    result.pages.push(HugePagesRecord {
        memory_bytes: 82 << 20,
        is_shared: true,
        huge_page_bytes: Some(2 << 20),
        rank: 1,
        ranks_with_small: 1,
        reason: Some("transparent_hugepage/shmem_enabled is deny".into()),
        unknown_reason: None,
    });
    let calibration = (8 * MB, 0.0125, 0.5);
    let (bytes, write_seconds, sync_seconds) = calibration;
    result.calibrations.push(Calibration { backend: "mpiio".into(), bytes, write_seconds, sync_seconds });
    result.warnings = vec![
        removal_warning("/scratch/run", "busy"),
        journal_warning("run1.jsonl", "no space"),
        truncated_warning(17, 99),
    ];
    result.ending = IoEnding { outcome: RunOutcome::Failed, full_verify_seconds: 2.5, ..complete_ending() };
    result
}

fn complete_ending() -> IoEnding {
    IoEnding {
        outcome: RunOutcome::Complete,
        real_seconds: 45.0,
        full_verify_seconds: 0.0,
        calibrate_seconds: 0.5,
        connection_setup_seconds: None,
        cleanup_seconds: 0.125,
        rank_memory_high_water_bytes: 118 * MB,
        rank_memory_planned_bytes: 112 * MB,
        rank_memory: Some(RankMemoryRecord {
            planned_own_bytes: 80 * MB,
            planned_neighbours_bytes: 32 * MB,
            planned_file_bytes: 256 * MB,
            private_bytes: 40 * MB,
            shared_bytes: 70 * MB,
            file_bytes: 30 * MB,
            proportional_bytes: Some(76 * MB),
        }),
        set_up: Some(SetUpTimes {
            start_seconds: Some(0.25),
            survey_seconds: 0.5,
            preparation_seconds: 0.125,
            journal_seconds: 0.0625,
        }),
    }
}

fn corruption() -> CorruptionRecord {
    CorruptionRecord {
        backend: "mpiio".into(),
        ranks: 2,
        access: AccessMethod::Read,
        order: None,
        mix: None,
        pattern: 2,
        rank: 1,
        file: "mpiio-2/type0.dat".into(),
        offset_bytes: 12_582_912,
        expected: 0xfedc_ba98_7654_3210,
        actual: 0x0123_4567_89ab_cdef,
        diagnosis: "data of rank 0".into(),
        words_wrong: 128,
    }
}

/// The journal of a run with this result, except for the order of the kinds of records.
pub fn journal_lines(result: &RunResult) -> Vec<JournalLine> {
    let mut lines = vec![result.start_line()];
    lines.extend(result.cache_cold.iter().cloned().map(JournalLine::CacheCold));
    lines.extend(result.pages.iter().cloned().map(JournalLine::Pages));
    lines.extend(result.probes.iter().cloned().map(JournalLine::Probe));
    lines.extend(result.calibrations.iter().cloned().map(JournalLine::Calibration));
    lines.extend(result.queue_calibrations.iter().cloned().map(JournalLine::QueueCalibration));
    lines.extend(result.first_write_trials.iter().cloned().map(JournalLine::FirstWriteTrial));
    lines.extend(result.patterns.iter().cloned().map(|p| JournalLine::Pattern(Box::new(p))));
    lines.extend(result.types.iter().cloned().map(JournalLine::Type));
    lines.extend(result.repetitions.iter().cloned().map(|r| JournalLine::Repetition(Box::new(r))));
    lines.extend(result.type_repetitions.iter().cloned().map(JournalLine::TypeRepetition));
    lines.extend(result.ordered.iter().cloned().map(|o| JournalLine::Ordered(Box::new(o))));
    lines.extend(result.ordered_types.iter().cloned().map(JournalLine::OrderedType));
    lines.extend(result.corruptions.iter().cloned().map(JournalLine::Corruption));
    lines.extend(result.injected_faults.iter().cloned().map(JournalLine::InjectedFault));
    lines.extend(result.errors.iter().cloned().map(JournalLine::Error));
    lines.extend(result.warnings.iter().cloned().map(JournalLine::Warning));
    lines.push(JournalLine::End(result.ending.clone()));
    lines
}
