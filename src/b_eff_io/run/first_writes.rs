//! Trial of direct against buffered two-phase first writes before the run, where the options permit both. Outside the clock of every
//! pattern; every pair is recorded.
//!
//! Each rank of the largest partition writes a new private file, in chunks of the size of a domain, and syncs it. Both modes write the same
//! bytes, and the first of a pair alternates. Rewrites and reads remain direct: their blocks exist, and it is block allocation that slows
//! down direct first writes on some file systems.

pub mod choice;

use std::path::Path;

use beff_backends::{
    AccessPattern, BackendError, Batch, Batches, Direct, Direction, DriverOptions, DriverRow, FilePath, Latency,
    OpenFile, OpenMode, OpenRequest, TransferBuffer,
};
use beff_ffi::{Comm, MpiError};

use crate::b_eff_io::plan::two_phase;
use crate::b_eff_io::records::{FirstWriteMode, FirstWritePair, FirstWriteTrial, JournalLine};
use crate::b_eff_io::run::state::RunState;
use crate::frame::rank_directories::rank_file_name;
use crate::frame::run::agree::first_message;
use crate::frame::run::clock::Instant;
use crate::frame::run::interrupt::Interrupt;

/// Total time of the trial, as a share of the scheduled time T.
const TIME_SHARE: f64 = 0.02;
/// Minimum T: below it a trial would be shorter than some tens of milliseconds.
const MIN_RUN_SECONDS: f64 = 20.0;
/// Maximum part of a partition's space for the files (divisor). No other files exist yet, and these are removed before the run.
const SPACE_PARTS: u64 = 4;
/// Chunks of the first batch; signals are checked between batches.
const FIRST_BATCH_CHUNKS: u64 = 4;

/// Tries both modes of first writes for every backend that permits them, and replaces its driver if buffered writes were faster. Collective
/// over `comm`, the largest partition.
///
/// # Errors
/// MPI between the ranks; errors of the storage stop the run through its records.
pub fn try_first_writes(run: &mut RunState<'_>, comm: &Comm) -> Result<(), MpiError> {
    for index in 0..run.backends.len() {
        let backend = &run.backends[index];
        if backend.is_run && run.stop.is_none() && two_phase::has_choice(run.config, &backend.name, comm.size()) {
            try_backend(run, comm, index)?;
        }
    }
    Ok(())
}

fn try_backend(run: &mut RunState<'_>, comm: &Comm, index: usize) -> Result<(), MpiError> {
    let begin = Instant::now();
    let (name, options) = (run.backends[index].name.clone(), run.backends[index].options.clone());
    let row = run.backends[index].row;
    let path = run.run_dir.file(&Path::new(&name).join(rank_file_name("first-write", comm.rank())));
    let chunk_bytes = choice::chunk_bytes(options.domain_bytes);
    let bench = TrialSetup { comm, row, path, options, chunk_bytes, begin };
    let (trials, not_tried) = match bench.run_pairs(run) {
        Ok(trials) => (trials, None),
        Err(NoTrials::Skipped(reason)) => (TrialResults::default(), Some(reason)),
        Err(NoTrials::Stopped) => return Ok(()),
        Err(NoTrials::Mpi(error)) => return Err(error),
    };
    let chosen = choice::choose(&trials.pairs);
    // The times, and so the choice, are equal on all ranks; rank 0's is broadcast nevertheless.
    let mut parts = [f64::from(u8::from(chosen.way == FirstWriteMode::Buffered)), chosen.ratio.unwrap_or(0.0)];
    comm.bcast_f64(&mut parts, 0)?;
    let [is_buffered, ratio] = parts;
    let way = if is_buffered > 0.0 { FirstWriteMode::Buffered } else { FirstWriteMode::Direct };
    if way == FirstWriteMode::Buffered {
        let backend = &mut run.backends[index];
        // The calibration measured direct writes, whose sync is trivial.
        trials.sync_seconds.iter().for_each(|seconds| backend.sync.learn(trials.bytes, *seconds));
        let buffered_first_writes = Some(choice::reason(ratio));
        backend.replace_driver(DriverOptions { buffered_first_writes, ..bench.options });
    }
    run.observer.record(JournalLine::FirstWriteTrial(FirstWriteTrial {
        backend: name,
        chunk_bytes,
        bytes: trials.bytes,
        pairs: trials.pairs,
        chosen: way,
        ratio: not_tried.is_none().then_some(ratio),
        skip_reason: not_tried,
    }));
    Ok(())
}

/// Results of all pairs of a backend; equal on all ranks.
#[derive(Default)]
struct TrialResults {
    /// Bytes of one trial, all ranks.
    bytes: u64,
    pairs: Vec<FirstWritePair>,
    /// Syncs of the buffered trials.
    sync_seconds: Vec<f64>,
}

enum NoTrials {
    Mpi(MpiError),
    /// An error, which is recorded, or a signal.
    Stopped,
    Skipped(String),
}

impl From<MpiError> for NoTrials {
    fn from(error: MpiError) -> Self {
        Self::Mpi(error)
    }
}

/// One trial, slowest rank.
struct TrialTimes {
    /// Total, including the sync.
    seconds: f64,
    sync_seconds: f64,
}

/// What all trials of a backend share.
struct TrialSetup<'t> {
    comm: &'t Comm,
    row: &'static DriverRow,
    path: FilePath,
    options: DriverOptions,
    chunk_bytes: u64,
    begin: Instant,
}

impl TrialSetup<'_> {
    /// Runs the pilot, which determines the size of a trial, and all pairs.
    fn run_pairs(&self, run: &mut RunState<'_>) -> Result<TrialResults, NoTrials> {
        let all_seconds = run.config.time_seconds;
        if all_seconds < MIN_RUN_SECONDS {
            return Err(NoTrials::Skipped(format!("T is below {MIN_RUN_SECONDS:.0} s")));
        }
        let space = run.plan.partitions.iter().filter_map(|p| p.space_bytes).min();
        let of_rank = space.map(|space| space / SPACE_PARTS / self.comm.size());
        let (least, most) = choice::chunks_of_rank(self.chunk_bytes, of_rank).map_err(NoTrials::Skipped)?;
        let mut transfer_buffer = self.trial_buffer(&run.buffer)?;

        let pilot_begin = Instant::now();
        for way in choice::order(0) {
            self.trial(run, &mut transfer_buffer, least, way)?;
        }
        // Rank 0's clock counts.
        let mut means =
            [pilot_begin.elapsed().as_secs_f64() / 2.0, TIME_SHARE * all_seconds - self.begin.elapsed().as_secs_f64()];
        self.comm.bcast_f64(&mut means, 0)?;
        let [pilot_seconds, seconds] = means;
        let chunks = choice::chunks(least, most, pilot_seconds, seconds).ok_or_else(|| {
            let share = TIME_SHARE * 100.0;
            NoTrials::Skipped(format!("{share:.0} % of T is too short: the smallest trial takes {pilot_seconds:.2} s"))
        })?;

        let bytes = chunks * self.chunk_bytes * self.comm.size();
        let mut trials = TrialResults { bytes, ..TrialResults::default() };
        for number in 0..choice::PAIRS {
            let mut pair = FirstWritePair { direct_seconds: 0.0, buffered_seconds: 0.0 };
            for way in choice::order(number) {
                let trial = self.trial(run, &mut transfer_buffer, chunks, way)?;
                match way {
                    FirstWriteMode::Direct => pair.direct_seconds = trial.seconds,
                    FirstWriteMode::Buffered => {
                        pair.buffered_seconds = trial.seconds;
                        trials.sync_seconds.push(trial.sync_seconds);
                    }
                }
            }
            trials.pairs.push(pair);
        }
        Ok(trials)
    }

    /// Memory of one domain with data of the run, because storage may treat zeros differently.
    fn trial_buffer(&self, data: &TransferBuffer) -> Result<TransferBuffer, NoTrials> {
        let buffer = TransferBuffer::new(self.chunk_bytes, self.chunk_bytes);
        let missing =
            buffer.as_ref().err().map(|e| format!("no memory for a domain of {} bytes: {e}", self.chunk_bytes));
        match (buffer, first_message(self.comm, missing)?) {
            (Ok(mut buffer), None) => {
                let source = data.bytes();
                for part in buffer.bytes_mut().chunks_mut(source.len().max(1)) {
                    part.copy_from_slice(&source[..part.len()]);
                }
                Ok(buffer)
            }
            (_, missing) => {
                let (rank, reason) = missing.unwrap_or_default();
                Err(NoTrials::Skipped(format!("{reason} (rank {rank})")))
            }
        }
    }

    /// One trial on all ranks at the same time; the result is equal on all ranks.
    fn trial(
        &self,
        run: &mut RunState<'_>,
        buffer: &mut TransferBuffer,
        chunks: u64,
        way: FirstWriteMode,
    ) -> Result<TrialTimes, NoTrials> {
        let pattern = AccessPattern::private(self.chunk_bytes, 1, chunks);
        let opened = self.open(way, &pattern, buffer);
        let mut refused = None;
        let mut shared = [0.0; 3];

        self.comm.barrier()?;
        let done = opened.and_then(|opened| match opened {
            Ok(mut file) => {
                let begin = Instant::now();
                let written = write(file.as_mut(), buffer, chunks, run.interrupt);
                let sync_begin = Instant::now();
                let synced = file.sync();
                (shared[0], shared[1]) = (begin.elapsed().as_secs_f64(), sync_begin.elapsed().as_secs_f64());
                let closed = file.close();
                written.and(synced).and(closed)
            }
            Err(reason) => {
                refused = Some(reason);
                Ok(())
            }
        });
        // The next trial creates it again. An error is ignored: this rank may not have created it.
        let _ = self.path.remove();
        shared[2] = f64::from(u8::from(run.interrupt.is_raised()));
        self.comm.max_f64(&mut shared)?;
        let during = format!("{}, trial of first writes before the first pattern", self.row.name);
        let failed = run.agree_on_error(self.comm, done.as_ref().err(), &during)?;
        let [seconds, sync_seconds, interrupted] = shared;
        if failed || interrupted > 0.0 {
            return Err(NoTrials::Stopped);
        }
        match first_message(self.comm, refused)? {
            Some((_, reason)) => Err(NoTrials::Skipped(reason)),
            None => Ok(TrialTimes { seconds, sync_seconds }),
        }
    }

    /// This rank's new file, prepared for this mode, or the reason if that is not possible.
    fn open(
        &self,
        way: FirstWriteMode,
        pattern: &AccessPattern,
        buffer: &mut TransferBuffer,
    ) -> Result<Result<Box<dyn OpenFile>, String>, BackendError> {
        let direct = if way == FirstWriteMode::Direct { self.options.direct } else { Direct::Off };
        let options = DriverOptions { direct, ..self.options.clone() };
        let own = Comm::comm_self();
        let request = OpenRequest { path: &self.path, mode: OpenMode::CreateNew, comm: &own, hints: &[] };
        let mut file = (self.row.create)(&options).open(&request)?;
        if let Some(reason) = file.support(pattern).reason() {
            return file.close().map(|()| Err(reason));
        }
        let prepared = file.prepare(pattern, Direction::Write, buffer, &[])?;
        if way == FirstWriteMode::Direct && prepared.direct != Some(true) {
            return file.close().map(|()| Err(format!("direct writes are not possible here: {}", prepared.strategy)));
        }
        Ok(Ok(file))
    }
}

/// Writes all chunks in batches that double, preallocated as the options request. A signal ends it early; the trial then does not count.
fn write(
    file: &mut dyn OpenFile,
    buffer: &TransferBuffer,
    chunks: u64,
    interrupt: &Interrupt,
) -> Result<(), BackendError> {
    let mut done = 0;
    while done < chunks && !interrupt.is_raised() {
        let batch = Batch { first_call: done, calls: done.max(FIRST_BATCH_CHUNKS).min(chunks - done) };
        file.preallocate(batch)?;
        file.write(Batches::new(batch, &mut Latency::off()), buffer)?;
        done += batch.calls;
    }
    file.trim().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::run::run_tests::{config, in_run, slow_rank};
    use crate::frame::records::RunOutcome;
    use crate::frame::run::testing::{log_of, row, Script, ScriptedOutcome};

    const CHUNK_BYTES: u64 = 1 << 20;

    fn setup<'t>(run: &RunState<'_>, comm: &'t Comm) -> TrialSetup<'t> {
        let path = run.run_dir.file(&Path::new("uring").join(rank_file_name("first-write", comm.rank())));
        let options = DriverOptions { direct: Direct::Auto, ..DriverOptions::default() };
        TrialSetup { comm, row: row("uring"), path, options, chunk_bytes: CHUNK_BYTES, begin: Instant::now() }
    }

    #[test]
    fn both_modes_write_and_sync_as_much_and_alternate() {
        let config = config("--release 1 -T 3000s --types 2 --backend uring");
        // Two syncs of the pilot; then direct and buffered, buffered and direct, and so on.
        let syncs = [1.0, 1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        for ranks in 1..=3 {
            let scripts = |rank| {
                let slow = rank == 1.min(ranks - 1);
                let script = Script { direct: Some(true), ..slow_rank(ranks, rank) };
                script
                    .cost("preallocate", 0.0)
                    .cost("open", 0.0)
                    .cost("prepare", 0.0)
                    .cost("close", 0.0)
                    .cost("trim", 0.0)
                    .costs("sync", if slow { &syncs } else { &[0.5] })
            };
            for ((trials, log), _) in in_run(ranks, &config, scripts, false, |run, place| {
                let Ok(trials) = setup(run, place.comm).run_pairs(run) else { panic!("no trials") };
                (trials, log_of(&["open", "preallocate", "write", "trim", "sync", "close"]))
            }) {
                assert_eq!(trials.bytes, 4 * CHUNK_BYTES * ranks);
                let pairs: Vec<_> =
                    trials.pairs.iter().map(|pair| [pair.direct_seconds, pair.buffered_seconds]).collect();
                assert_eq!(pairs, [[3.0, 4.0], [6.0, 5.0], [7.0, 8.0], [10.0, 9.0]]);
                assert_eq!(trials.sync_seconds, [2.0, 3.0, 6.0, 7.0]);
                let ways: Vec<bool> = log
                    .iter()
                    .filter(|line| line.starts_with("open"))
                    .map(|line| line.contains("direct Auto"))
                    .collect();
                assert_eq!(ways, [true, false, true, false, false, true, true, false, false, true]);
                assert_eq!(log[1..6], ["preallocate 0+4", "write 0+4", "trim", "sync", "close"]);
                assert_eq!(log.len(), 60);
            }
        }
    }

    #[test]
    fn an_error_or_a_signal_of_one_rank_ends_the_trials_of_all() {
        let config = config("--release 1 -T 3000s --types 2 --backend uring");
        for (call, answer) in [
            ("open", ScriptedOutcome::Fail),
            ("write", ScriptedOutcome::Fail),
            ("trim", ScriptedOutcome::Fail),
            ("sync", ScriptedOutcome::Fail),
            ("close", ScriptedOutcome::Fail),
            ("write", ScriptedOutcome::Signal),
        ] {
            let scripts = |rank| {
                let script = Script { direct: Some(true), ..slow_rank(2, rank) };
                if rank == 1 {
                    script.outcome(call, 1, answer)
                } else {
                    script
                }
            };
            for ((stopped, stop), _) in in_run(2, &config, scripts, false, |run, place| {
                let stopped = matches!(setup(run, place.comm).run_pairs(run), Err(NoTrials::Stopped));
                (stopped, run.stop)
            }) {
                assert!(stopped, "{call}");
                assert_eq!(stop, (answer == ScriptedOutcome::Fail).then_some(RunOutcome::Failed), "{call}");
            }
        }
        for script in [Script::default(), Script { unsupported: Some("not here".into()), ..Script::default() }] {
            let is_unsupported = script.unsupported.is_some();
            for (reason, _) in in_run(
                2,
                &config,
                |rank| if rank == 1 { script.clone() } else { Script { direct: Some(true), ..Script::default() } },
                false,
                |run, place| match setup(run, place.comm).run_pairs(run) {
                    Err(NoTrials::Skipped(reason)) => reason,
                    _ => panic!("tried"),
                },
            ) {
                let expected = if is_unsupported { "not here" } else { "direct writes are not possible here: fake" };
                assert_eq!(reason, expected);
            }
        }
    }
}
