//! A short write and sync before the run, to predict the syncs of the first patterns.

use std::path::Path;

use beff_backends::{AccessPattern, Direction, OpenMode, OpenRequest};
use beff_ffi::{Comm, MpiError};

use crate::b_eff_io::config::Termination;
use crate::b_eff_io::records::{Calibration, JournalLine};
use crate::b_eff_io::run::batching::{CallsEnd, LoopLimits, SyncModel};
use crate::b_eff_io::run::state::RunState;
use crate::b_eff_io::run::timed_loop;
use crate::b_eff_io::run::timed_loop::LoopTask;
use crate::frame::rank_directories::rank_file_name;
use crate::frame::run::agree::first_message;
use crate::frame::run::path_check;

/// Bytes of one call.
pub(super) const CALL_BYTES: u64 = 1 << 20;
const MAX_CALLS: u64 = 128;
/// Maximum time of the writes, as a share of the scheduled time.
const TIME_SHARE: f64 = 1.0 / 200.0;
/// Maximum part of a partition's space (divisor).
const SPACE_SHARE: u64 = 50;

/// Writes and syncs a private file per rank through every backend that moves data. Collective over
/// `comm`, the largest partition.
///
/// # Errors
/// MPI between the ranks; errors of the storage stop the run through its records.
pub fn calibrate(run: &mut RunState<'_>, comm: &Comm) -> Result<(), MpiError> {
    for index in 0..run.backends.len() {
        if run.backends[index].moves_data && run.stop.is_none() {
            calibrate_one(run, comm, index)?;
        }
    }
    Ok(())
}

fn calibrate_one(run: &mut RunState<'_>, comm: &Comm, index: usize) -> Result<(), MpiError> {
    let name = run.backends[index].name.clone();
    let path = run.run_dir.file(&Path::new(&name).join(rank_file_name("calibration", comm.rank())));
    let own = Comm::comm_self();
    let during = format!("{name}, calibration before the first pattern");

    let request = OpenRequest { path: &path, mode: OpenMode::CreateNew, comm: &own, hints: &[] };
    let opened = path_check::check_name(&name, &path).and_then(|()| run.backends[index].driver.open(&request));
    let opened = opened.and_then(|file| path_check::check_name(&name, &path).map(|()| file));
    if run.agree_on_error(comm, opened.as_ref().err(), &during)? {
        return Ok(());
    }
    let Ok(mut file) = opened else { return Ok(()) };

    let space = run.plan.partitions.iter().filter_map(|p| p.space_bytes).min();
    let by_space = space.map_or(MAX_CALLS, |s| s / SPACE_SHARE / comm.size() / CALL_BYTES);
    let pattern = AccessPattern::private(CALL_BYTES, 1, by_space.clamp(1, MAX_CALLS));
    let limits = LoopLimits {
        max_calls: pattern.max_calls,
        calls_end: CallsEnd::Count,
        time_seconds: Some(run.plan.partition_seconds * TIME_SHARE),
        pattern_seconds: Some(run.plan.partition_seconds * TIME_SHARE),
        rounds: 1,
        time_is_guard: false,
        sync: None,
        expected_call_seconds: None,
        call_bytes_all_ranks: CALL_BYTES * comm.size(),
        termination: Termination::Geometric,
    };
    let mut model = SyncModel::default();
    let mut error = None;
    // A single first call gives the latency of a sync, the others the rate.
    let mut rounds = vec![1, limits.max_calls];
    rounds.dedup();
    let refused = first_message(comm, file.support(&pattern).reason())?.is_some();
    for max_calls in rounds.into_iter().filter(|_| !refused) {
        let limits = LoopLimits { max_calls, ..limits };
        let task =
            LoopTask { pattern: &pattern, direction: Direction::Write, limits: &limits, hints: &[], resume: None };
        let m = timed_loop::run(file.as_mut(), comm, &mut run.buffer, task, &mut run.recorder, (run.interrupt, None))?;
        // The sync of the first of two rounds is all latency, for any number of ranks.
        let bytes = if max_calls == 1 && pattern.max_calls > 1 { 0 } else { m.moved_bytes };
        model.learn(bytes, m.intervals.sync_seconds);
        if let Some(counters) = &mut run.backends[index].counters {
            // A loss here affects no result: the call only checks that the kernel counts.
            let _ = counters.missing(Direction::Write, m.moved_bytes, m.io);
        }
        error = error.or(m.error);
        if max_calls == pattern.max_calls {
            let rate = m.moved_bytes as f64 / m.intervals.transfer_seconds;
            run.backends[index].calibrated_bytes_per_second = (m.calls > 0).then_some(rate);
            run.observer.record(JournalLine::Calibration(Calibration {
                backend: name.clone(),
                bytes: m.moved_bytes,
                write_seconds: m.intervals.transfer_seconds,
                sync_seconds: m.intervals.sync_seconds,
            }));
        }
    }
    let closed = file.close();
    // The directory is removed at the end in any case; this only frees the space early.
    let _ = path.remove();
    run.agree_on_error(comm, error.or(closed.err()).as_ref(), &during)?;
    run.backends[index].sync = model;
    Ok(())
}
