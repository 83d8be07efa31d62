//! Calibration of the queue before the run, for each direction and chunk size: operations in flight, completions waited for in one system
//! call, and whether a large chunk is one operation or several. Outside the clock of every pattern; every trial is recorded.
//!
//! Each rank of the largest partition overwrites and reads a private file that is written before the first trial.

pub mod choice;

use std::path::Path;

use beff_backends::{
    AccessPattern, BackendError, Batch, Batches, CalibratedDepth, Direction, DriverOptions, DriverRow, FilePath,
    Latency, OpenFile, OpenMode, OpenRequest, TransferBuffer,
};
use beff_ffi::{Comm, MpiError};
use nix::fcntl::{posix_fadvise, PosixFadviseAdvice};

use crate::b_eff_io::records::{DepthTrial, JournalLine, QueueCalibration};
use crate::b_eff_io::run::queue_calibration::choice::{QueueSetting, SetBudget, TrialPlan};
use crate::b_eff_io::run::state::RunState;
use crate::frame::rank_directories::rank_file_name;
use crate::frame::records::AccessMethod;
use crate::frame::run::clock::Instant;
use crate::frame::run::interrupt::Interrupt;
use crate::frame::units::MIB;

/// Total time of the calibration, as a share of the scheduled time T.
const TIME_SHARE: f64 = 0.03;
/// Minimum of it in seconds, for runs of [`SHORT_SECONDS`] and more: two trials of large chunks must fit.
const MIN_SECONDS: f64 = 6.0;
/// Shorter runs have no minimum.
const SHORT_SECONDS: f64 = 60.0;
/// Part of that time for writing the file.
const LAYOUT_SHARE: f64 = 1.0 / 8.0;
/// Part of the time of a set for the pilot.
const PILOT_SHARE: f64 = 1.0 / 8.0;
/// Maximum file size of one rank: four full queues of the largest chunks.
const FILE_BYTES: u64 = 4 * choice::IN_FLIGHT_BYTES;
/// Maximum part of a partition's space for the files (divisor). No other files exist yet, and these are removed before the run.
const SPACE_PARTS: u64 = 4;
const LAYOUT_CHUNK_BYTES: u64 = MIB;
/// First batch of the pilot, if the file has as many chunks.
const PILOT_CHUNKS: u64 = 8;
/// Batches of a trial; its end is checked after each.
const BATCHES_PER_TRIAL: f64 = 4.0;

/// Calibrates every queue whose depth the user has not set, and replaces the driver by one with the results. Collective over `comm`, the
/// largest partition.
///
/// # Errors
/// MPI between the ranks; errors of the storage stop the run through its records.
pub fn calibrate_queues(run: &mut RunState<'_>, comm: &Comm) -> Result<(), MpiError> {
    for index in 0..run.backends.len() {
        let backend = &run.backends[index];
        let is_given = run.config.of(&backend.name).queue_depth.is_some();
        if backend.is_run && backend.row.has_queue && !is_given && run.stop.is_none() {
            calibrate_one(run, comm, index)?;
        }
    }
    Ok(())
}

fn calibrate_one(run: &mut RunState<'_>, comm: &Comm, index: usize) -> Result<(), MpiError> {
    let begin = Instant::now();
    let name = run.backends[index].name.clone();
    let path = run.run_dir.file(&Path::new(&name).join(rank_file_name("queue-calibration", comm.rank())));
    let backend = &run.backends[index];
    let calibrator = Calibrator { comm, name, row: backend.row, path, begin, options: backend.options.clone() };
    let records = calibrator.run_all_sets(run);
    // The directory is removed at the end in any case; this frees the space before the first pattern. The space may have been too small for
    // a file.
    let _ = calibrator.path.remove();
    // Reads have overwritten the buffer.
    run.invalidate_buffer();
    let rows = records?.into_iter().map(|record| {
        let direction = if record.access == AccessMethod::Read { Direction::Read } else { Direction::Write };
        let (depth, wait_for, operation_bytes) = (record.depth, record.wait_for, record.operation_bytes);
        let row = CalibratedDepth { direction, chunk_bytes: record.chunk_bytes, depth, wait_for, operation_bytes };
        run.observer.record(JournalLine::QueueCalibration(record));
        row
    });
    let mut calibrated: Vec<CalibratedDepth> = rows.collect();
    calibrated.sort_by_key(|row| row.chunk_bytes);
    run.backends[index].replace_driver(DriverOptions { calibrated, ..calibrator.options });
    Ok(())
}

/// What all trials of a backend share.
struct Calibrator<'t> {
    comm: &'t Comm,
    name: String,
    row: &'static DriverRow,
    path: FilePath,
    begin: Instant,
    options: DriverOptions,
}

#[derive(Clone, Copy)]
struct TrialBudget {
    seconds: f64,
    /// Chunks of a batch; 0: batches that double.
    batch_chunks: u64,
}

impl Calibrator<'_> {
    /// All directions and chunk sizes; ends early after an error, which is recorded, or a signal.
    fn run_all_sets(&self, run: &mut RunState<'_>) -> Result<Vec<QueueCalibration>, MpiError> {
        let m_part_bytes = run.plan.partitions.last().map_or(0, |p| p.m_part_bytes);
        let chunks = choice::chunk_sizes(m_part_bytes);
        let sets: Vec<(AccessMethod, u64)> = [AccessMethod::Write, AccessMethod::Read]
            .into_iter()
            .flat_map(|a| chunks.iter().map(move |c| (a, *c)))
            .collect();
        let budget_seconds = budget_seconds(run.config.time_seconds);
        let mut records = Vec::new();
        // If not even two settings have time for their trials, no file is written.
        let least_seconds = 2.0 * choice::TRIALS_PER_SETTING as f64 * choice::MIN_TRIAL_SECONDS;
        let worthwhile = budget_seconds >= least_seconds * sets.len() as f64;
        let file_bytes = if worthwhile { self.write_file(run, budget_seconds * LAYOUT_SHARE)? } else { 0 };
        for (number, (access, chunk_bytes)) in sets.iter().enumerate() {
            if run.stop.is_some() {
                break;
            }
            // Rank 0's clock counts.
            let left = budget_seconds - self.begin.elapsed().as_secs_f64();
            let weights: f64 = sets[number..].iter().map(|(_, chunk_bytes)| choice::weight(*chunk_bytes)).sum();
            let mut seconds = [left * choice::weight(*chunk_bytes) / weights];
            self.comm.bcast_f64(&mut seconds, 0)?;
            let file_chunks = file_bytes / chunk_bytes;
            let trials = self.run_set(run, *access, *chunk_bytes, file_chunks, seconds[0], number as u64)?;
            let Some(trials) = trials else { break };
            let chosen =
                choice::choose(*chunk_bytes, &trials, choice::default_setting(*chunk_bytes, self.options.queue_depth));
            // The trials, and so the choice, are equal on all ranks; rank 0's is broadcast nevertheless.
            // Exact up to 2^53.
            let operation = chosen.operation_bytes.unwrap_or(0) as f64;
            let mut parts = [f64::from(chosen.depth), f64::from(chosen.wait_for), operation];
            self.comm.bcast_f64(&mut parts, 0)?;
            records.push(QueueCalibration {
                backend: self.name.clone(),
                access: *access,
                chunk_bytes: *chunk_bytes,
                trials,
                depth: parts[0] as u32,
                wait_for: parts[1] as u32,
                operation_bytes: (parts[2] > 0.0).then_some(parts[2] as u64),
            });
        }
        Ok(records)
    }

    /// Writes every rank's file, as much as the time allows; returns the smallest size over the ranks. 0 after an error.
    fn write_file(&self, run: &mut RunState<'_>, seconds: f64) -> Result<u64, MpiError> {
        let space = run.plan.partitions.iter().filter_map(|p| p.space_bytes).min();
        let by_space = space.map_or(FILE_BYTES, |s| s / SPACE_PARTS / self.comm.size());
        let chunks = by_space.min(FILE_BYTES) / LAYOUT_CHUNK_BYTES;
        let pattern = AccessPattern::private(LAYOUT_CHUNK_BYTES, 1, chunks);
        let mut written = Ok(0);
        if chunks > 0 {
            let opened = self.open(&self.options, OpenMode::CreateNew, &pattern, Direction::Write, &mut run.buffer);
            written = opened.and_then(|file| {
                let Some(mut file) = file else { return Ok(0) };
                let written = write_synced(file.as_mut(), &run.buffer, chunks, seconds, run.interrupt);
                file.close().and(written)
            });
        }
        self.agree(run, written.as_ref().err())?;
        let mut least = [written.unwrap_or(0) * LAYOUT_CHUNK_BYTES];
        self.comm.min_u64(&mut least)?;
        Ok(least[0])
    }

    /// All trials of one direction and chunk size: an empty list if time or space is insufficient or the pattern cannot run; None after an
    /// error or a signal.
    fn run_set(
        &self,
        run: &mut RunState<'_>,
        access: AccessMethod,
        chunk_bytes: u64,
        file_chunks: u64,
        seconds: f64,
        number: u64,
    ) -> Result<Option<Vec<DepthTrial>>, MpiError> {
        let pattern = AccessPattern::private(chunk_bytes, 1, file_chunks);
        let pilot_seconds = seconds * PILOT_SHARE;
        let default = choice::default_setting(chunk_bytes, self.options.queue_depth);
        if pilot_seconds < choice::MIN_TRIAL_SECONDS || file_chunks < u64::from(default.depth) {
            return Ok(Some(Vec::new()));
        }
        let mut transfer_buffer = trial_buffer(&run.buffer, chunk_bytes);
        let set_begin = Instant::now();
        let effort = TrialBudget { seconds: pilot_seconds / 2.0, batch_chunks: 0 };
        // A first trial warms up memory and queues. Large chunks use the memory of the run.
        if !choice::is_large(chunk_bytes)
            && self.run_trial(run, transfer_buffer.as_mut(), &pattern, access, default, effort)?.is_none()
        {
            return Ok(None);
        }
        let pilot_begin = Instant::now();
        let Some(pilot) = self.run_trial(run, transfer_buffer.as_mut(), &pattern, access, default, effort)? else {
            return Ok(None);
        };
        let around = pilot_begin.elapsed().as_secs_f64() - pilot.seconds;
        let rank_bytes = pilot.bytes as f64 / self.comm.size() as f64;
        let mut means = [
            seconds - set_begin.elapsed().as_secs_f64(),
            around.max(0.0),
            rank_bytes / chunk_bytes as f64 / pilot.seconds.max(1e-9),
        ];
        self.comm.bcast_f64(&mut means, 0)?;
        let [seconds, around_seconds, chunks_per_second] = means;
        let means = SetBudget { seconds, overhead_seconds: around_seconds, chunks_per_second, file_chunks };
        let Some(TrialPlan { settings: tried, seconds, min_chunks: least_chunks }) =
            choice::settings(chunk_bytes, &means)
        else {
            return Ok(Some(Vec::new()));
        };
        // The same batches for all settings, so that all drain their queue equally often.
        let by_time = (chunks_per_second * seconds / BATCHES_PER_TRIAL) as u64;
        let batch_chunks = by_time.clamp(least_chunks, file_chunks.max(least_chunks));
        let effort = TrialBudget { seconds, batch_chunks };
        let mut trials = Vec::new();
        for index in
            choice::order(tried.len(), run.config.seed.wrapping_add(number).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        {
            match self.run_trial(run, transfer_buffer.as_mut(), &pattern, access, tried[index], effort)? {
                Some(trial) => trials.push(trial),
                None => return Ok(None),
            }
        }
        Ok(Some(trials))
    }

    /// One trial on all ranks at the same time; the result is equal on all. None after an error, which is recorded, or a signal; a pattern
    /// that cannot run moves no data.
    fn run_trial(
        &self,
        run: &mut RunState<'_>,
        transfer_buffer: Option<&mut TransferBuffer>,
        pattern: &AccessPattern,
        access: AccessMethod,
        setting: QueueSetting,
        effort: TrialBudget,
    ) -> Result<Option<DepthTrial>, MpiError> {
        let (mode, direction) = match access {
            AccessMethod::Read => (OpenMode::ReadOnly, Direction::Read),
            AccessMethod::Write | AccessMethod::Rewrite => (OpenMode::Update, Direction::Write),
        };
        let QueueSetting { depth, wait_for, operation_bytes } = setting;
        let row = CalibratedDepth { direction, chunk_bytes: pattern.chunk_bytes, depth, wait_for, operation_bytes };
        let options = DriverOptions { queue_depth: depth, calibrated: vec![row], ..self.options.clone() };
        let dropped = if access == AccessMethod::Read { drop_pages(&self.path) } else { Ok(()) };
        let transfer_buffer = transfer_buffer.unwrap_or(&mut run.buffer);
        let opened = dropped.and_then(|()| self.open(&options, mode, pattern, direction, transfer_buffer));

        self.comm.barrier()?;
        let mut shared = [0.0, 0.0];
        let done = opened.and_then(|file| {
            let Some(mut file) = file else { return Ok(0) };
            let begin = Instant::now();
            let moved = transfer(file.as_mut(), transfer_buffer, pattern, direction, effort, run.interrupt);
            shared[0] = begin.elapsed().as_secs_f64();
            file.close().and(moved)
        });
        shared[1] = f64::from(u8::from(run.interrupt.is_raised()));
        let mut bytes = [*done.as_ref().unwrap_or(&0)];
        self.comm.max_f64(&mut shared)?;
        self.comm.sum_u64(&mut bytes)?;
        if self.agree(run, done.as_ref().err())? || shared[1] > 0.0 {
            return Ok(None);
        }
        Ok(Some(DepthTrial { depth, wait_for, operation_bytes, bytes: bytes[0], seconds: shared[0] }))
    }

    /// This rank's file, prepared for the pattern; None if the pattern cannot be run with these options.
    fn open(
        &self,
        options: &DriverOptions,
        mode: OpenMode,
        pattern: &AccessPattern,
        direction: Direction,
        buffer: &mut TransferBuffer,
    ) -> Result<Option<Box<dyn OpenFile>>, BackendError> {
        let own = Comm::comm_self();
        let request = OpenRequest { path: &self.path, mode, comm: &own, hints: &[] };
        let mut file = (self.row.create)(options).open(&request)?;
        if file.support(pattern).reason().is_some() {
            file.close()?;
            return Ok(None);
        }
        file.prepare(pattern, direction, buffer, &[])?;
        Ok(Some(file))
    }

    /// True if a rank has an error, which stops the run.
    fn agree(&self, run: &mut RunState<'_>, mine: Option<&BackendError>) -> Result<bool, MpiError> {
        run.agree_on_error(
            self.comm,
            mine,
            &format!("{}, calibration of the queue before the first pattern", self.row.name),
        )
    }
}

fn budget_seconds(time_seconds: f64) -> f64 {
    let least_seconds = if time_seconds < SHORT_SECONDS { 0.0 } else { MIN_SECONDS };
    (TIME_SHARE * time_seconds).max(least_seconds)
}

/// A buffer for chunks of this size, with windows for the deepest queue, at most as large as the run's. Registering all memory of the run
/// would take longer than a trial. None: use the run's buffer.
fn trial_buffer(run: &TransferBuffer, chunk_bytes: u64) -> Option<TransferBuffer> {
    let period_bytes = choice::memory_bytes(chunk_bytes).next_multiple_of(4096).min(run.period_bytes());
    let call_bytes = chunk_bytes.next_multiple_of(4096);
    if period_bytes + call_bytes > run.bytes().len() as u64 / 2 {
        return None;
    }
    let mut buffer = TransferBuffer::new(period_bytes, call_bytes).ok()?;
    let len = buffer.bytes().len();
    buffer.bytes_mut().copy_from_slice(&run.bytes()[..len]);
    Some(buffer)
}

/// Writes and syncs batches that grow, until the file is complete or the time is used; returns the number of chunks.
fn write_synced(
    file: &mut dyn OpenFile,
    buffer: &TransferBuffer,
    chunks: u64,
    seconds: f64,
    interrupt: &Interrupt,
) -> Result<u64, BackendError> {
    let begin = Instant::now();
    let (mut done, mut calls) = (0, 4);
    while done < chunks && !interrupt.is_raised() && (done == 0 || begin.elapsed().as_secs_f64() < seconds) {
        let batch = Batch { first_call: done, calls: calls.min(chunks - done) };
        file.write(Batches::new(batch, &mut Latency::off()), buffer)?;
        file.sync()?;
        done += batch.calls;
        calls = done;
    }
    Ok(done)
}

/// Transfers chunks from the first one on, until the time is used or all are transferred: no byte twice, so that a buffered read never
/// finds its own pages. Returns the bytes.
fn transfer(
    file: &mut dyn OpenFile,
    buffer: &mut TransferBuffer,
    pattern: &AccessPattern,
    direction: Direction,
    effort: TrialBudget,
    interrupt: &Interrupt,
) -> Result<u64, BackendError> {
    let begin = Instant::now();
    let (mut done, mut bytes) = (0, 0);
    while done < pattern.max_calls
        && !interrupt.is_raised()
        && (done == 0 || begin.elapsed().as_secs_f64() < effort.seconds)
    {
        let calls = if effort.batch_chunks > 0 { effort.batch_chunks } else { done.max(PILOT_CHUNKS) };
        let batch = Batch { first_call: done, calls: calls.min(pattern.max_calls - done) };
        bytes += match direction {
            Direction::Write => file.write(Batches::new(batch, &mut Latency::off()), buffer)?,
            Direction::Read => file.read(Batches::new(batch, &mut Latency::off()), buffer)?,
        };
        done += batch.calls;
    }
    Ok(bytes)
}

/// Drops the clean pages of the file from the page cache (posix_fadvise(2)); after a sync all are clean.
fn drop_pages(path: &FilePath) -> Result<(), BackendError> {
    let failed = |error: &std::io::Error| BackendError::from_io("posix_fadvise", path, None, error);
    let file = path.open_to_read().map_err(|e| failed(&e))?;
    file.sync_all().map_err(|e| failed(&e))?;
    posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).map_err(|e| failed(&e.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::run::run_tests::{config, in_run};
    use crate::frame::records::RunOutcome;
    use crate::frame::run::testing::{
        clear_log, driver as fake, log_of, row, run_ranks, with_script, Script, ScriptedOutcome,
    };

    const CHUNK_BYTES: u64 = 64 << 10;

    fn script(rank: u64) -> Script {
        Script::default().cost("write", if rank == 1 { 2.0 } else { 1.0 }).cost("prepare", 9.0).cost("open", 9.0)
    }

    /// Batches of 8 of 32 chunks, rank 1 half as fast: until the time is used, or all is transferred.
    #[test]
    fn a_trial_is_what_all_ranks_moved_in_the_time_of_the_slowest() {
        let config = config("--release 1 -T 960s --types 2 --backend uring");
        for (ranks, seconds, chunks, expected) in
            [(1, 10.0, 32, 4.0), (2, 10.0, 64, 8.0), (2, 3.0, 40, 4.0), (3, 3.0, 64, 4.0)]
        {
            for ((trial, log), _) in in_run(ranks, &config, script, false, |run, place| {
                let path = run.run_dir.file(Path::new("uring/queue-calibration.dat"));
                let options = DriverOptions::default();
                let calibrator = Calibrator {
                    comm: place.comm,
                    name: "uring".into(),
                    row: row("uring"),
                    path,
                    begin: Instant::now(),
                    options,
                };
                let pattern = AccessPattern::private(CHUNK_BYTES, 1, 32);
                let setting = QueueSetting { depth: 5, wait_for: 2, operation_bytes: None };
                let effort = TrialBudget { seconds, batch_chunks: 8 };
                let trial = calibrator.run_trial(run, None, &pattern, AccessMethod::Write, setting, effort).unwrap();
                (trial.unwrap(), log_of(&["open", "prepare", "write", "sync", "close"]))
            }) {
                assert_eq!((trial.bytes, trial.seconds), (chunks * CHUNK_BYTES, expected), "{ranks} {seconds}");
                assert_eq!((trial.depth, trial.wait_for, trial.operation_bytes), (5, 2, None));
                assert_eq!(log[0], "open Update uring/queue-calibration.dat of 1 direct Off, depth 5");
                assert_eq!(log[1..4], ["prepare Write 32x65536 of 0", "write 0+8", "write 8+8"]);
                assert_eq!(log.last().map(String::as_str), Some("close"));
            }
        }
        for (answer, stop) in [(ScriptedOutcome::Fail, Some(RunOutcome::Failed)), (ScriptedOutcome::Signal, None)] {
            let scripts = |rank| if rank == 1 { script(rank).outcome("write", 0, answer) } else { script(rank) };
            for (seen, _) in in_run(2, &config, scripts, false, |run, place| {
                let path = run.run_dir.file(Path::new("uring/queue-calibration.dat"));
                let options = DriverOptions::default();
                let calibrator = Calibrator {
                    comm: place.comm,
                    name: "uring".into(),
                    row: row("uring"),
                    path,
                    begin: Instant::now(),
                    options,
                };
                let pattern = AccessPattern::private(CHUNK_BYTES, 1, 32);
                let setting = QueueSetting { depth: 5, wait_for: 2, operation_bytes: None };
                let effort = TrialBudget { seconds: 10.0, batch_chunks: 0 };
                let trial = calibrator.run_trial(run, None, &pattern, AccessMethod::Write, setting, effort).unwrap();
                (trial.is_none(), run.stop)
            }) {
                assert_eq!(seen, (true, stop));
            }
        }
    }

    #[test]
    fn a_file_is_laid_out_in_growing_batches_each_with_its_sync() {
        for (seconds, expected) in [
            (100.0, "write 0+4 sync write 4+4 sync write 8+8 sync write 16+4 sync"),
            (3.0, "write 0+4 sync write 4+4 sync"),
            (0.0, "write 0+4 sync"),
        ] {
            run_ranks(
                1,
                |_| Script::default().cost("write", 1.0).cost("sync", 0.5),
                |comm| {
                    let path = FilePath::unbacked("f");
                    let request = OpenRequest { path: &path, mode: OpenMode::CreateNew, comm, hints: &[] };
                    let mut file = fake(false).open(&request).unwrap();
                    let mut buffer = TransferBuffer::new(CHUNK_BYTES, CHUNK_BYTES).unwrap();
                    file.prepare(&AccessPattern::private(CHUNK_BYTES, 1, 20), Direction::Write, &mut buffer, &[])
                        .unwrap();
                    clear_log();
                    let interrupt = with_script(|script| script.interrupt.clone());
                    let done = write_synced(file.as_mut(), &buffer, 20, seconds, &interrupt).unwrap();
                    let log = log_of(&["write", "sync"]).join(" ");
                    assert_eq!(log, expected);
                    let written = log
                        .split('+')
                        .skip(1)
                        .map(|rest| rest.split(' ').next().unwrap().parse::<u64>().unwrap())
                        .sum::<u64>();
                    assert_eq!(done, written);
                },
            );
        }
    }
}
