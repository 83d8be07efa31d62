//! Direct or through the page cache? A trial of two-phase first writes before the run, where the options leave it open. Outside the
//! clock of every pattern; every pair is reported.
//!
//! Each rank of the largest partition writes a new private file, in chunks as long as domains, and syncs it: what is left in the
//! page cache is not written yet. Both ways have the same bytes and take turns in beginning. Rewrites and reads stay direct: they
//! find their blocks, which is what makes direct first writes slow on some file systems.

pub mod choice;

use std::path::Path;

use beff_backends::{
    driver, BackendError, Batch, Batches, Direct, Direction, DriverOptions, DriverRow, FilePath, Latency, OpenFile,
    OpenMode, OpenRequest, Pattern, Ring,
};
use beff_ffi::{Comm, MpiError};

use crate::b_eff_io::plan::two_phase;
use crate::b_eff_io::records::{FirstWritePair, FirstWriteTrial, FirstWriteWay, JournalLine};
use crate::b_eff_io::run::state::Run;
use crate::frame::run::agree::first_message;
use crate::frame::run::clock::Instant;
use crate::frame::run::interrupt::Interrupt;

/// Time for everything here, as a share of the scheduled time T.
const TIME_SHARE: f64 = 0.02;
/// T at least: below it a trial would be shorter than some tens of milliseconds.
const LEAST_RUN_SECONDS: f64 = 20.0;
/// Part of a partition's space that the files take at most. Nothing else is there yet, and they are gone before the run.
const SPACE_PARTS: u64 = 4;
/// Chunks of the first batch; signals are looked for between batches.
const FIRST_BATCH: u64 = 4;

/// Tries first writes both ways for every backend that has a choice, and makes its driver again if buffered ones were faster.
/// Collective over `comm`, the largest partition.
///
/// # Errors
/// MPI between the ranks; errors of the storage stop the run through its records.
pub fn try_first_writes(run: &mut Run<'_>, comm: &Comm) -> Result<(), MpiError> {
    for index in 0..run.backends.len() {
        let backend = &run.backends[index];
        if backend.is_run && run.stop.is_none() && two_phase::has_choice(run.config, &backend.name, comm.size()) {
            try_one(run, comm, index)?;
        }
    }
    Ok(())
}

fn try_one(run: &mut Run<'_>, comm: &Comm, index: usize) -> Result<(), MpiError> {
    let begin = Instant::now();
    let (name, options) = (run.backends[index].name.clone(), run.backends[index].options.clone());
    let Some(row) = driver(&name) else { return Ok(()) };
    let path = run.run_dir.file(&Path::new(&name).join(format!("first-write-rank{:07}.dat", comm.rank())));
    let chunk_bytes = choice::chunk_bytes(options.domain_bytes);
    let bench = Bench { comm, row, path, options, chunk_bytes, begin };
    let (trials, not_tried) = match bench.all_pairs(run) {
        Ok(trials) => (trials, None),
        Err(Nothing::NotTried(reason)) => (Trials::default(), Some(reason)),
        Err(Nothing::Stopped) => return Ok(()),
        Err(Nothing::Mpi(error)) => return Err(error),
    };
    let chosen = choice::choose(&trials.pairs);
    // The times are equal on all ranks and so is the choice; rank 0's is taken all the same.
    let mut parts = [f64::from(u8::from(chosen.way == FirstWriteWay::Buffered)), chosen.ratio.unwrap_or(0.0)];
    comm.bcast_f64(&mut parts, 0)?;
    let [is_buffered, ratio] = parts;
    let way = if is_buffered > 0.0 { FirstWriteWay::Buffered } else { FirstWriteWay::Direct };
    if way == FirstWriteWay::Buffered {
        let backend = &mut run.backends[index];
        // The calibration has seen direct writes, whose sync has nothing to do.
        trials.sync_seconds.iter().for_each(|seconds| backend.sync.learn(trials.bytes, *seconds));
        let buffered_first_writes = Some(choice::reason(ratio));
        backend.made_with(row, DriverOptions { buffered_first_writes, ..bench.options });
    }
    run.observer.record(JournalLine::FirstWriteTrial(FirstWriteTrial {
        backend: name,
        chunk_bytes,
        bytes: trials.bytes,
        pairs: trials.pairs,
        chosen: way,
        ratio: not_tried.is_none().then_some(ratio),
        not_tried,
    }));
    Ok(())
}

/// What all pairs of a backend came to; equal on all ranks.
#[derive(Default)]
struct Trials {
    /// Of one trial, all ranks.
    bytes: u64,
    pairs: Vec<FirstWritePair>,
    /// Of the buffered ones.
    sync_seconds: Vec<f64>,
}

/// Why there is nothing to choose from.
enum Nothing {
    Mpi(MpiError),
    /// An error, which the run then knows, or a signal.
    Stopped,
    NotTried(String),
}

impl From<MpiError> for Nothing {
    fn from(error: MpiError) -> Self {
        Self::Mpi(error)
    }
}

/// One trial as the slowest rank saw it.
struct Trial {
    /// With the sync.
    seconds: f64,
    sync_seconds: f64,
}

/// What all trials of a backend share.
struct Bench<'t> {
    comm: &'t Comm,
    row: &'static DriverRow,
    /// This rank's file.
    path: FilePath,
    options: DriverOptions,
    chunk_bytes: u64,
    begin: Instant,
}

impl Bench<'_> {
    /// The pilot, which finds out how much to move, and all pairs.
    fn all_pairs(&self, run: &mut Run<'_>) -> Result<Trials, Nothing> {
        let all_seconds = run.config.time_seconds;
        if all_seconds < LEAST_RUN_SECONDS {
            return Err(Nothing::NotTried(format!("T is below {LEAST_RUN_SECONDS:.0} s")));
        }
        let space = run.plan.partitions.iter().filter_map(|p| p.space_bytes).min();
        let of_rank = space.map(|space| space / SPACE_PARTS / self.comm.size());
        let (least, most) = choice::chunks_of_rank(self.chunk_bytes, of_rank).map_err(Nothing::NotTried)?;
        let mut ring = self.ring(&run.ring)?;

        let pilot_begin = Instant::now();
        for way in choice::order(0) {
            self.trial(run, &mut ring, least, way)?;
        }
        // Rank 0's clock for all.
        let mut means =
            [pilot_begin.elapsed().as_secs_f64() / 2.0, TIME_SHARE * all_seconds - self.begin.elapsed().as_secs_f64()];
        self.comm.bcast_f64(&mut means, 0)?;
        let [pilot_seconds, seconds] = means;
        let chunks = choice::chunks(least, most, pilot_seconds, seconds).ok_or_else(|| {
            let share = TIME_SHARE * 100.0;
            Nothing::NotTried(format!("{share:.0} % of T is too short: the least trial takes {pilot_seconds:.2} s"))
        })?;

        let bytes = chunks * self.chunk_bytes * self.comm.size();
        let mut trials = Trials { bytes, ..Trials::default() };
        for number in 0..choice::PAIRS {
            let mut pair = FirstWritePair { direct_seconds: 0.0, buffered_seconds: 0.0 };
            for way in choice::order(number) {
                let trial = self.trial(run, &mut ring, chunks, way)?;
                match way {
                    FirstWriteWay::Direct => pair.direct_seconds = trial.seconds,
                    FirstWriteWay::Buffered => {
                        pair.buffered_seconds = trial.seconds;
                        trials.sync_seconds.push(trial.sync_seconds);
                    }
                }
            }
            trials.pairs.push(pair);
        }
        Ok(trials)
    }

    /// Memory of one domain, with data of the run: storage may see zeros.
    fn ring(&self, data: &Ring) -> Result<Ring, Nothing> {
        let made = Ring::new(self.chunk_bytes, self.chunk_bytes);
        let missing = made.as_ref().err().map(|e| format!("no memory for a domain of {} bytes: {e}", self.chunk_bytes));
        match (made, first_message(self.comm, missing)?) {
            (Ok(mut ring), None) => {
                let source = data.bytes();
                for part in ring.bytes_mut().chunks_mut(source.len().max(1)) {
                    part.copy_from_slice(&source[..part.len()]);
                }
                Ok(ring)
            }
            (_, missing) => {
                let (rank, reason) = missing.unwrap_or_default();
                Err(Nothing::NotTried(format!("{reason} (rank {rank})")))
            }
        }
    }

    /// One trial of all ranks at the same time; equal on all ranks.
    fn trial(&self, run: &mut Run<'_>, ring: &mut Ring, chunks: u64, way: FirstWriteWay) -> Result<Trial, Nothing> {
        let pattern = Pattern::private(self.chunk_bytes, 1, chunks);
        let opened = self.open(way, &pattern, ring);
        let mut refused = None;
        let mut shared = [0.0; 3];

        self.comm.barrier()?;
        let done = opened.and_then(|opened| match opened {
            Ok(mut file) => {
                let begin = Instant::now();
                let written = write(file.as_mut(), ring, chunks, run.interrupt);
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
        // The next trial makes it anew. No file, no error: this rank may not have come so far.
        let _ = self.path.remove();
        shared[2] = f64::from(u8::from(run.interrupt.raised()));
        self.comm.max_f64(&mut shared)?;
        let during = format!("{}, trial of first writes before the first pattern", self.row.name);
        let failed = run.failed(self.comm, done.as_ref().err(), &during)?;
        let [seconds, sync_seconds, interrupted] = shared;
        if failed || interrupted > 0.0 {
            return Err(Nothing::Stopped);
        }
        match first_message(self.comm, refused)? {
            Some((_, reason)) => Err(Nothing::NotTried(reason)),
            None => Ok(Trial { seconds, sync_seconds }),
        }
    }

    /// This rank's new file, prepared to be written this way; the reason if that is not possible.
    fn open(
        &self,
        way: FirstWriteWay,
        pattern: &Pattern,
        ring: &mut Ring,
    ) -> Result<Result<Box<dyn OpenFile>, String>, BackendError> {
        let direct = if way == FirstWriteWay::Direct { self.options.direct } else { Direct::Off };
        let options = DriverOptions { direct, ..self.options.clone() };
        let own = Comm::own();
        let request = OpenRequest { path: &self.path, mode: OpenMode::CreateNew, comm: &own, hints: &[] };
        let mut file = (self.row.make)(&options).open(&request)?;
        if let Some(reason) = file.support(pattern).reason() {
            return file.close().map(|()| Err(reason));
        }
        let told = file.prepare(pattern, Direction::Write, ring, &[])?;
        if way == FirstWriteWay::Direct && told.direct != Some(true) {
            return file.close().map(|()| Err(format!("direct writes are not possible here: {}", told.strategy)));
        }
        Ok(Ok(file))
    }
}

/// Writes all chunks, in batches that double, with the room that the options ask for. A signal ends it early: the trial then does
/// not count.
fn write(file: &mut dyn OpenFile, ring: &Ring, chunks: u64, interrupt: &Interrupt) -> Result<(), BackendError> {
    let mut done = 0;
    while done < chunks && !interrupt.raised() {
        let batch = Batch { first_call: done, calls: done.max(FIRST_BATCH).min(chunks - done) };
        file.preallocate(batch)?;
        file.write(Batches::new(batch, &mut Latency::off()), ring)?;
        done += batch.calls;
    }
    file.trim().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::run::run_tests::{config, in_run, slow_one};
    use crate::frame::records::Outcome;
    use crate::frame::run::testing::{log_of, row, Answer, Script};

    const CHUNK_BYTES: u64 = 1 << 20;

    fn bench<'t>(run: &Run<'_>, comm: &'t Comm) -> Bench<'t> {
        let path = run.run_dir.file(&Path::new("uring").join(format!("first-write-rank{:07}.dat", comm.rank())));
        let options = DriverOptions { direct: Direct::Auto, ..DriverOptions::default() };
        Bench { comm, row: row("uring"), path, options, chunk_bytes: CHUNK_BYTES, begin: Instant::now() }
    }

    #[test]
    fn both_ways_write_and_sync_as_much_and_take_turns() {
        let config = config("--release 1 -T 3000s --types 2 --backend uring");
        // Two of the pilot; then direct and buffered, buffered and direct, and so on.
        let syncs = [1.0, 1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        for ranks in 1..=3 {
            let scripts = |rank| {
                let slow = rank == 1.min(ranks - 1);
                let script = Script { direct: Some(true), ..slow_one(ranks, rank) };
                script
                    .cost("preallocate", 0.0)
                    .cost("open", 0.0)
                    .cost("prepare", 0.0)
                    .cost("close", 0.0)
                    .cost("trim", 0.0)
                    .costs("sync", if slow { &syncs } else { &[0.5] })
            };
            for ((trials, log), _) in in_run(ranks, &config, scripts, false, |run, place| {
                let Ok(trials) = bench(run, place.comm).all_pairs(run) else { panic!("no trials") };
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
            ("open", Answer::Fail),
            ("write", Answer::Fail),
            ("trim", Answer::Fail),
            ("sync", Answer::Fail),
            ("close", Answer::Fail),
            ("write", Answer::Signal),
        ] {
            let scripts = |rank| {
                let script = Script { direct: Some(true), ..slow_one(2, rank) };
                if rank == 1 {
                    script.answer(call, 1, answer)
                } else {
                    script
                }
            };
            for ((stopped, stop), _) in in_run(2, &config, scripts, false, |run, place| {
                let stopped = matches!(bench(run, place.comm).all_pairs(run), Err(Nothing::Stopped));
                (stopped, run.stop)
            }) {
                assert!(stopped, "{call}");
                assert_eq!(stop, (answer == Answer::Fail).then_some(Outcome::Failed), "{call}");
            }
        }
        for script in [Script::default(), Script { unsupported: Some("not here".into()), ..Script::default() }] {
            let is_unsupported = script.unsupported.is_some();
            for (reason, _) in in_run(
                2,
                &config,
                |rank| if rank == 1 { script.clone() } else { Script { direct: Some(true), ..Script::default() } },
                false,
                |run, place| match bench(run, place.comm).all_pairs(run) {
                    Err(Nothing::NotTried(reason)) => reason,
                    _ => panic!("tried"),
                },
            ) {
                let expected = if is_unsupported { "not here" } else { "direct writes are not possible here: fake" };
                assert_eq!(reason, expected);
            }
        }
    }
}
