//! One execution of all calls with one backend: files, program, windows, reduction over ranks.

use std::time::{Duration, Instant};

use beff_backends::error::FailureCause;
use beff_backends::program::{allocate_area, Replay, ReplayProgram};
use beff_backends::{BackendError, DriverOptions, FilePath, ProgramRequest, ProgramTables, TransferBuffer};
use beff_ffi::{collective_timeout, Comm, MpiError};

use super::call_csv::CallCsvWriter;
use super::call_window::{CallWindow, CallWindowBuilder, WindowSetup};
use super::order::CallOrder;
use super::pace::{now_ns, Deadlines};
use super::rank_replay::{RankReplay, RankTiming, STOP_TIMEOUT};
use super::result_comparison::ResultComparison;
use super::scan::ReplaySupport;
use super::stall_watch::{ActivityNote, StallLimits, StallWatch};
use super::verify::{CorruptRead, ReadVerifier};
use super::{files, ReplayAbort, ReplayContext};
use crate::frame::config::{CachePolicy, DirectPolicy};
use crate::frame::records::{ErrorRecord, InterferenceRecord, RunOutcome};
use crate::frame::run::agree::{self, first_message};
use crate::frame::run::interference::{CpuObservation, HostCpus};
use crate::frame::run::{error_agreement, path_check};
use crate::frame::system::memory::{process_io, process_io_since, ProcessIo};
use crate::frame::units::count;
use crate::replay::config::Pace;
use crate::replay::plan::collective_counts::collective_limits;
use crate::replay::plan::landing::LandingAllocator;
use crate::replay::plan::ledger::LedgerKey;
use crate::replay::plan::TallyPair;
use crate::replay::records::{
    repetition_name, ClassRecord, ProcessRecord, ProfileRepetition, RepetitionStatus, ReplayCorruption,
    ResultDifference,
};

#[derive(Clone, Copy)]
pub(super) struct ReplayBackend<'a> {
    pub name: &'a str,
    pub replay: Replay,
    pub refusal: ReplaySupport,
    /// The backend stores data.
    pub stores: bool,
}

/// Reduced result of a repetition. Complete on rank 0.
pub(super) struct RepetitionOutcome {
    pub record: ProfileRepetition,
    pub classes: Vec<ClassRecord>,
    pub processes: Vec<ProcessRecord>,
    pub corruption: Option<ReplayCorruption>,
    /// It ends the run.
    pub error: Option<ErrorRecord>,
    /// Calls that succeeded when recorded failed. The run continues with the other backends.
    pub failure: Option<ErrorRecord>,
    pub prefill_seconds: f64,
    pub prepare_seconds: f64,
    pub verify_seconds: f64,
}

pub(super) struct RepetitionJob<'a> {
    pub context: &'a ReplayContext<'a>,
    pub comm: &'a Comm,
    pub cpus: &'a HostCpus,
    pub backend: ReplayBackend<'a>,
    /// 0: the verification repetition.
    pub number: u64,
    /// Data is compared.
    pub verifies: bool,
    pub fs_type: &'a str,
    pub span: Duration,
    pub options: DriverOptions,
    /// Size of the landing area.
    pub landing_bytes: u64,
}

/// Observations before and around the calls.
struct RepetitionConditions {
    prefilled_bytes: u64,
    resident_bytes: Option<u64>,
    io: Option<ProcessIo>,
    machine: Option<InterferenceRecord>,
    prefill: Duration,
}

impl RepetitionJob<'_> {
    /// Runs the repetition. Collective.
    ///
    /// # Errors
    /// Errors that leave ranks waiting for each other.
    pub fn run(&self, details: Option<&mut CallCsvWriter>) -> Result<RepetitionOutcome, ReplayAbort> {
        let begin = Instant::now();
        let mut around = RepetitionConditions {
            prefilled_bytes: 0,
            resident_bytes: None,
            io: None,
            machine: None,
            prefill: Duration::ZERO,
        };
        let paths = self.context.paths(self.backend.name);
        if self.backend.stores {
            let drops = self.context.config.cache == CachePolicy::Drop;
            match files::create_files(self.comm, self.context.head, &paths, &self.context.sources, drops)? {
                Ok(bytes) => around.prefilled_bytes = bytes,
                Err((rank, message)) => {
                    let error = ErrorRecord::of_rank(
                        rank,
                        &self.error_context(),
                        message,
                        "free space, or choose another --path",
                    );
                    return Ok(self.failed(error, begin));
                }
            }
        }
        around.resident_bytes = files::resident_bytes(&paths, self.fs_type).filter(|_| self.backend.stores);
        around.prefill = begin.elapsed();
        let (mut player, first) = match self.prepare_rank(paths, details)? {
            Ok(ready) => ready,
            Err(error) => return Ok(self.failed(error, begin)),
        };
        let (run_dir, end) = (self.context.run_dir.clone(), self.context.terminate);
        let limits = StallLimits { limit: collective_timeout::limit(), grace: STOP_TIMEOUT };
        let standing = StallWatch::start(
            &player.activity,
            (player.rank, limits),
            self.context.interrupt,
            self.context.print,
            move |stuck| {
                end(stuck, &run_dir);
            },
        );
        let mut watch = CpuObservation::default();
        watch.resume(self.cpus);
        self.comm.barrier()?;
        let io = process_io();
        player.deadlines = Deadlines::new(self.pace(), self.context.config.scale, now_ns());
        player.run(first)?;
        drop(standing);
        around.io = process_io_since(io);
        watch.pause(self.cpus);
        around.machine = watch.end(self.cpus, self.comm)?;
        let outcome = self.reduce_results(&player, &around)?;
        self.finish_program(player, outcome, begin)
    }

    /// Pauses are for times, which do not count where data is compared.
    fn pace(&self) -> Pace {
        if self.verifies {
            Pace::Fast
        } else {
            self.context.config.pace
        }
    }

    fn error_context(&self) -> String {
        repetition_name(self.backend.name, self.number)
    }

    /// Prepares everything up to the first call; an error of one rank is returned on all. Collective.
    fn prepare_rank<'p>(
        &'p self,
        paths: Vec<FilePath>,
        details: Option<&'p mut CallCsvWriter>,
    ) -> Result<Result<(RankReplay<'p>, CallWindow), ErrorRecord>, ReplayAbort> {
        let (bench, rank) = (self.context, self.comm.rank() as u32);
        let source = match error_agreement::all_or_error(self.comm, self.fill_source(), &self.error_context())? {
            Ok(source) => source,
            Err(error) => return Ok(Err(error)),
        };
        let begun = match error_agreement::all_or_error(
            self.comm,
            self.start_program(paths.clone(), source),
            &self.error_context(),
        )? {
            Ok(program) => program,
            Err(error) => return Ok(Err(error)),
        };
        let unmade_ns = self.gather_first_omitted_writes()?;
        let ready =
            error_agreement::all_or_error(self.comm, self.first_window(begun, unmade_ns), &self.error_context())?;
        let (program, windows, first) = match ready {
            Ok(ready) => ready,
            Err(error) => return Ok(Err(error)),
        };
        // Collective: all ranks are ready, or none reaches this line. The timeout allows for the pauses of the program.
        collective_timeout::extend_limit(10 * self.span);
        let notes = ActivityNote::default();
        let order = CallOrder::new(
            self.comm,
            &bench.scan.preparation_schedule.shared_waits,
            bench.interrupt,
            collective_timeout::limit(),
            notes.clone(),
        )?;
        let gaps = Some(bench.sieving_gaps).filter(|_| !self.backend.refusal.by_offsets);
        let checker = ReadVerifier::new(bench.layouts, bench.sources, gaps);
        #[cfg(feature = "test-hooks")]
        let checker = checker.with_injection(bench.config.inject && rank == 0);
        let player = RankReplay {
            comm: self.comm,
            rank,
            program,
            windows,
            paths,
            sources: bench.sources,
            order,
            activity: notes,
            deadlines: Deadlines::new(self.pace(), bench.config.scale, 0),
            checker,
            interrupt: bench.interrupt,
            details,
            label: (self.backend.name, self.number),
            ledger: Default::default(),
            comparison: ResultComparison::default(),
            failure: None,
            lost_pointers: Default::default(),
            collectives: Default::default(),
            comms: &bench.head.comms,
            synchronization_counts: Default::default(),
            timing: RankTiming::default(),
        };
        Ok(Ok((player, first)))
    }

    fn profile_error(&self, what: String) -> BackendError {
        BackendError::new("replay", self.context.source.path, FailureCause::Io, what)
    }

    /// Data written by this rank.
    fn fill_source(&self) -> Result<TransferBuffer, BackendError> {
        let [_, bytes] = self.context.scan.source_bytes(self.context.sources.bytes());
        let mut source =
            allocate_area(bytes).map_err(|e| self.profile_error(format!("{bytes} bytes for data: {e}")))?;
        self.context.sources.rank_words(self.comm.rank() as u32).fill_from(0, source.bytes_mut());
        Ok(source)
    }

    /// Starts the program. Collective if the backend is.
    fn start_program(
        &self,
        paths: Vec<FilePath>,
        source: TransferBuffer,
    ) -> Result<Box<dyn ReplayProgram>, BackendError> {
        let head = self.context.head;
        let tables = ProgramTables {
            library: head.library.clone(),
            comms: head.comms.clone(),
            types: head.types.clone(),
            infos: head.infos.clone(),
            hints: self.context.config.hints_of(self.backend.name),
            paths,
        };
        let (options, landing_bytes) = (self.options.clone(), self.landing_bytes);
        (self.backend.replay.begin)(ProgramRequest { world: self.comm, tables, options, source, landing_bytes })
    }

    /// Time from which writes of each rank may be omitted. Collective.
    fn gather_first_omitted_writes(&self) -> Result<Vec<u64>, MpiError> {
        let place = self.context.config.backends.iter().position(|name| name == self.backend.name);
        let own = place.and_then(|place| self.context.scan.first_omitted_write_ns.get(place)).copied();
        self.comm.allgather_u64(&[own.unwrap_or(u64::MAX)])
    }

    /// Prepares the first window of this rank.
    fn first_window(
        &self,
        mut program: Box<dyn ReplayProgram>,
        unmade_ns: Vec<u64>,
    ) -> Result<(Box<dyn ReplayProgram>, CallWindowBuilder<'_>, CallWindow), BackendError> {
        let bench = self.context;
        let refuse = |what| self.profile_error(what);
        program.landing_range(0..self.landing_bytes)?.fill(beff_stamp::POISON_BYTE);
        let making = WindowSetup {
            bench,
            rank: self.comm.rank() as u32,
            refusal: self.backend.refusal,
            landing: LandingAllocator::new(bench.cold_bytes),
            verifies: self.verifies,
            pace: self.pace(),
            stores: self.backend.stores,
            aligns_to_pages: self.backend.refusal.by_offsets
                && bench.config.direct_of(self.backend.name) != DirectPolicy::Off,
            first_omitted_write_ns: unmade_ns,
        };
        let mut windows = CallWindowBuilder::new(making).map_err(refuse)?;
        let mut first = windows.next_window().map_err(refuse)?;
        program.prepare(std::mem::take(&mut first.steps))?;
        Ok((program, windows, first))
    }

    fn failed(&self, error: ErrorRecord, begin: Instant) -> RepetitionOutcome {
        let mut record = self.empty_record();
        record.ended = RepetitionStatus::Error(format!("rank {}: {}", error.rank, error.message));
        record.real_seconds = begin.elapsed().as_secs_f64();
        RepetitionOutcome {
            record,
            classes: Vec::new(),
            processes: Vec::new(),
            corruption: None,
            error: Some(error),
            failure: None,
            prefill_seconds: 0.0,
            prepare_seconds: 0.0,
            verify_seconds: 0.0,
        }
    }

    fn empty_record(&self) -> ProfileRepetition {
        ProfileRepetition::empty(self.backend.name, self.number)
    }

    /// Reduces the results over ranks. Collective.
    fn reduce_results(
        &self,
        player: &RankReplay<'_>,
        around: &RepetitionConditions,
    ) -> Result<RepetitionOutcome, MpiError> {
        let (comm, measured, checker) = (self.comm, &player.timing, &player.checker);
        let stop = self.context.interrupt.agree_on_cause(comm, measured.interrupted)?;
        let failure = self.failed_calls(player)?.filter(|_| stop.is_none());
        let mut most = [
            measured.span.as_secs_f64(),
            player.deadlines.late_ns as f64 * 1e-9,
            measured.verify.as_secs_f64(),
            measured.prepare.as_secs_f64(),
            around.prefill.as_secs_f64(),
        ];
        comm.max_f64(&mut most)?;
        let io = around.io.unwrap_or_default();
        let mut sums = [
            checker.checked_bytes,
            checker.unknown_bytes,
            checker.wrong_bytes,
            player.order.waits,
            player.order.wait_time.as_nanos() as u64,
            measured.allocations,
            io.read_bytes,
            io.written_bytes,
            u64::from(around.io.is_none()),
        ];
        comm.sum_u64(&mut sums)?;
        let merge = |lower, higher| ResultComparison::merge([lower, higher]);
        let compared = agree::reduce(comm, player.comparison.clone(), merge)?.unwrap_or_default();
        let mine: Vec<(LedgerKey, TallyPair)> =
            player.ledger.sums.iter().map(|(account, both)| (*account, *both)).collect();
        let (classes, processes) = self.sum_records(agree::collect(comm, vec![mine])?);
        let record = ProfileRepetition {
            ended: status(stop, failure.as_ref()),
            calls: compared.calls,
            calls_as_recorded: compared.as_recorded,
            differences: compared.differences,
            span_seconds: most[0],
            bytes_checked: sums[0],
            bytes_unknown: sums[1],
            bytes_wrong: sums[2],
            waits: sums[3],
            wait_seconds: sums[4] as f64 * 1e-9,
            late_seconds: player.deadlines.is_paced().then_some(most[1]),
            storage_read_bytes: (sums[8] == 0).then_some(sums[6]),
            storage_written_bytes: (sums[8] == 0).then_some(sums[7]),
            resident_before_bytes: around.resident_bytes,
            prefilled_bytes: around.prefilled_bytes,
            allocations_in_clock: sums[5],
            interference: around.machine.clone(),
            ..self.empty_record()
        };
        let corruption = self.first_corruption(checker.corruption.as_ref(), checker.wrong_bytes)?;
        Ok(RepetitionOutcome {
            record,
            classes,
            processes,
            corruption,
            error: None,
            failure,
            prefill_seconds: most[4],
            prepare_seconds: most[3],
            verify_seconds: most[2],
        })
    }

    /// Error if calls of any rank succeeded when recorded and failed now, equal on all ranks. Collective.
    fn failed_calls(&self, player: &RankReplay<'_>) -> Result<Option<ErrorRecord>, MpiError> {
        let error = player.comparison.failed_calls().map(|failed| {
            let ResultDifference { function, begin_ns, replayed, calls, .. } = failed;
            let unexplained = || format!("MPI_{function}, recorded at {begin_ns} ns: {replayed}");
            let cause = player.failure.clone().unwrap_or_else(unexplained);
            let is_full = ["MPI_ERR_NO_SPACE", "MPI_ERR_QUOTA"].contains(&replayed.as_str());
            let text = format!("{cause}. Of this rank, {} failed that succeeded when recorded", count(*calls, "call"));
            BackendError {
                cause: if is_full { FailureCause::NoSpace } else { FailureCause::Io },
                ..self.profile_error(text)
            }
        });
        error_agreement::first_error(self.comm, error.as_ref(), &self.error_context())
    }

    /// Sums over the ranks by file and class, and over the files by rank and class.
    fn sum_records(&self, ranks: Vec<Vec<(LedgerKey, TallyPair)>>) -> (Vec<ClassRecord>, Vec<ProcessRecord>) {
        let (backend, nth) = (self.backend.name, self.number);
        let mut by_file = std::collections::BTreeMap::<LedgerKey, (u64, TallyPair)>::new();
        let mut by_rank = std::collections::BTreeMap::new();
        for (rank, accounts) in ranks.into_iter().enumerate() {
            for ((file, class), both) in accounts {
                let (processes, sum) = by_file.entry((file, class)).or_default();
                *processes += 1;
                sum.add(&both);
                by_rank.entry((rank as u64, class)).or_insert_with(TallyPair::default).add(&both);
            }
        }
        let class = |((file, class), (processes, both)): (LedgerKey, (u64, TallyPair))| {
            let file = file.map(|file| u64::from(file) + 1);
            ClassRecord { backend: backend.to_owned(), repetition: nth, file, class, processes, both }
        };
        let process =
            |((rank, class), both)| ProcessRecord { backend: backend.to_owned(), repetition: nth, rank, class, both };
        (by_file.into_iter().map(class).collect(), by_rank.into_iter().map(process).collect())
    }

    /// The first finding of the lowest rank that has one, on all ranks. Collective.
    fn first_corruption(
        &self,
        finding: Option<&CorruptRead>,
        bytes_wrong: u64,
    ) -> Result<Option<ReplayCorruption>, MpiError> {
        let mine = finding.map(|finding| ReplayCorruption {
            backend: self.backend.name.to_owned(),
            repetition: self.number,
            rank: self.comm.rank(),
            function: finding.function.name().to_owned(),
            begin_ns: finding.begin_ns,
            file: finding.file.map(|file| u64::from(file) + 1),
            offset_bytes: finding.offset_bytes,
            data_offset_bytes: finding.data_offset_bytes,
            expected: finding.expected,
            actual: finding.actual,
            expected_from: finding.expected_from.clone(),
            diagnosis: finding.diagnosis.clone(),
            bytes_wrong,
        });
        let packed = mine.and_then(|mine| serde_json::to_string(&mine).ok());
        Ok(first_message(self.comm, packed)?.and_then(|(_, packed)| serde_json::from_str(&packed).ok()))
    }

    /// Ends the program. After a signal only if all ranks are at the same collective calls, because closing files is collective.
    fn finish_program(
        &self,
        player: RankReplay<'_>,
        mut outcome: RepetitionOutcome,
        begin: Instant,
    ) -> Result<RepetitionOutcome, ReplayAbort> {
        let RankReplay { program, order, collectives: met, timing: measured, paths, .. } = player;
        let together = match agree::any_rank(self.comm, measured.interrupted)? {
            false => true,
            true => {
                let all = agree::collect(self.comm, vec![met.finish()])?;
                let differ = self.comm.is_root() && !collective_limits(&all, &self.context.head.comms).is_empty();
                !agree::any_rank(self.comm, differ)?
            }
        };
        if together {
            order.finish()?;
            // An open checks the path before, but not after it.
            let named = || {
                paths.iter().try_for_each(|path| {
                    path_check::check_name(self.context.config.backend_of(self.backend.name), path)
                })
            };
            let finished = program.finish().and_then(|()| named());
            let finished = error_agreement::first_error(self.comm, finished.err().as_ref(), &self.error_context())?;
            outcome.error = outcome.error.or(finished);
        } else {
            // The process ends soon, and MPI with it.
            std::mem::forget((program, order));
        }
        outcome.record.real_seconds = agree::max_seconds(self.comm, begin.elapsed().as_secs_f64())?;
        Ok(outcome)
    }
}

/// Status of a repetition that ended for this reason, or in which calls failed.
fn status(stop: Option<RunOutcome>, failure: Option<&ErrorRecord>) -> RepetitionStatus {
    match (stop, failure) {
        (Some(RunOutcome::Limit), _) => RepetitionStatus::Limit,
        (Some(_), _) => RepetitionStatus::Interrupted,
        (None, Some(error)) => RepetitionStatus::Error(format!("rank {}: {}", error.rank, error.message)),
        (None, None) => RepetitionStatus::Complete,
    }
}
