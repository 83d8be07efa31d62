//! One pass through all calls with one backend: files, program, play, sums of all ranks.

use std::time::{Duration, Instant};

use beff_backends::program::{area, Program, Replay};
use beff_backends::{BackendError, DriverOptions, FilePath, ProgramRequest, Ring, Tables};
use beff_ffi::{stranded, Comm, MpiError};

use super::check::{Checker, Finding};
use super::compare::Compared;
use super::detail::Details;
use super::order::Order;
use super::pace::{now_ns, Deadlines};
use super::player::{Played, Player, GRACE};
use super::scan::Refusal;
use super::standing::{Limits, Notes, Watch};
use super::window::{Making, Window, Windows};
use super::{files, Bench, Stuck};
use crate::frame::config::{CachePolicy, DirectPolicy};
use crate::frame::records::{ErrorRecord, MachineShare};
use crate::frame::run::agree::{self, first_message};
use crate::frame::run::machine_share::{CpuWatch, HostCpus};
use crate::frame::run::{named, trouble};
use crate::frame::system::memory::{process_io, process_io_since, ProcessIo};
use crate::replay::plan::landing::Landing;
use crate::replay::plan::ledger::Account;
use crate::replay::plan::meeting::limits;
use crate::replay::plan::Both;
use crate::replay::records::{ClassRecord, PassEnd, PassRecord, ProcessRecord, ReplayCorruption};

/// A backend and how it replays.
#[derive(Clone, Copy)]
pub(super) struct Way<'a> {
    pub name: &'a str,
    pub replay: Replay,
    pub refusal: Refusal,
    /// It really stores data.
    pub stores: bool,
}

/// What all ranks together make of a pass. Complete on rank 0.
pub(super) struct PassOutcome {
    pub record: PassRecord,
    pub classes: Vec<ClassRecord>,
    pub processes: Vec<ProcessRecord>,
    pub corruption: Option<ReplayCorruption>,
    pub error: Option<ErrorRecord>,
    pub prefill_seconds: f64,
    pub prepare_seconds: f64,
    pub verify_seconds: f64,
}

/// A pass that is about to run.
pub(super) struct PassJob<'a> {
    pub bench: &'a Bench<'a>,
    pub comm: &'a Comm,
    pub cpus: &'a HostCpus,
    pub way: Way<'a>,
    pub number: u64,
    pub fs_type: &'a str,
    pub span: Duration,
    pub options: DriverOptions,
    /// Bytes where reads land.
    pub landing_bytes: u64,
}

/// What went around the calls.
struct Around {
    prefilled_bytes: u64,
    resident_bytes: Option<u64>,
    io: Option<ProcessIo>,
    machine: Option<MachineShare>,
    prefill: Duration,
}

impl PassJob<'_> {
    /// Collective.
    ///
    /// # Errors
    /// What leaves ranks waiting for each other.
    pub fn run(&self, details: Option<&mut Details>) -> Result<PassOutcome, Stuck> {
        let begin = Instant::now();
        let mut around =
            Around { prefilled_bytes: 0, resident_bytes: None, io: None, machine: None, prefill: Duration::ZERO };
        let paths = self.bench.paths(self.way.name);
        if self.way.stores {
            let drops = self.bench.config.cache == CachePolicy::Drop;
            match files::make(self.comm, self.bench.head, &paths, &self.bench.sources, drops)? {
                Ok(bytes) => around.prefilled_bytes = bytes,
                Err((rank, message)) => {
                    let error =
                        ErrorRecord::of_rank(rank, &self.during(), message, "free space, or choose another --path");
                    return Ok(self.failed(error, begin));
                }
            }
        }
        around.resident_bytes = files::resident_bytes(&paths, self.fs_type).filter(|_| self.way.stores);
        around.prefill = begin.elapsed();
        let (mut player, first) = match self.player(paths, details)? {
            Ok(ready) => ready,
            Err(error) => return Ok(self.failed(error, begin)),
        };
        let (run_dir, end) = (self.bench.run_dir.clone(), self.bench.end);
        let limits = Limits { stay: stranded::limit(), grace: GRACE };
        let standing =
            Watch::begin(&player.notes, (player.rank, limits), self.bench.interrupt, self.bench.say, move |stuck| {
                end(stuck, &run_dir);
            });
        let mut watch = CpuWatch::default();
        watch.resume(self.cpus);
        self.comm.barrier()?;
        let io = process_io();
        player.deadlines = Deadlines::new(self.bench.config.pace, self.bench.config.scale, now_ns());
        player.play(first)?;
        drop(standing);
        around.io = process_io_since(io);
        watch.pause(self.cpus);
        around.machine = watch.end(self.cpus, self.comm)?;
        let outcome = self.sums(&player, &around)?;
        self.end(player, outcome, begin)
    }

    fn during(&self) -> String {
        format!("{}, pass {}", self.way.name, self.number)
    }

    /// Everything ready up to the first call, or the error of one rank on all. Collective.
    fn player<'p>(
        &'p self,
        paths: Vec<FilePath>,
        details: Option<&'p mut Details>,
    ) -> Result<Result<(Player<'p>, Window), ErrorRecord>, Stuck> {
        let (bench, rank) = (self.bench, self.comm.rank() as u32);
        let source = match trouble::all(self.comm, self.source(), &self.during())? {
            Ok(source) => source,
            Err(error) => return Ok(Err(error)),
        };
        let begun = match trouble::all(self.comm, self.begin(paths.clone(), source), &self.during())? {
            Ok(program) => program,
            Err(error) => return Ok(Err(error)),
        };
        let unmade_ns = self.unmade_ns()?;
        let ready = trouble::all(self.comm, self.first_window(begun, unmade_ns), &self.during())?;
        let (program, windows, first) = match ready {
            Ok(ready) => ready,
            Err(error) => return Ok(Err(error)),
        };
        // Collective: every rank is ready up to here, or none comes here.
        // The program has pauses of its own.
        stranded::allow(10 * self.span);
        let notes = Notes::default();
        let order = Order::new(self.comm, &bench.scan.ready.again, bench.interrupt, stranded::limit(), notes.clone())?;
        let gaps = Some(bench.gaps).filter(|_| !self.way.refusal.by_offsets);
        let checker = Checker::new(bench.layouts, bench.sources, gaps);
        #[cfg(feature = "test-hooks")]
        let checker = checker.damaging(bench.config.inject && rank == 0);
        let player = Player {
            comm: self.comm,
            rank,
            program,
            windows,
            paths,
            sources: bench.sources,
            order,
            notes,
            words: bench.sources.of_rank(rank),
            deadlines: Deadlines::new(bench.config.pace, bench.config.scale, 0),
            checker,
            interrupt: bench.interrupt,
            details,
            name: (self.way.name, self.number),
            ledger: Default::default(),
            compared: Compared::default(),
            met: Default::default(),
            comms: &bench.head.comms,
            meetings: Default::default(),
            played: Played::default(),
        };
        Ok(Ok((player, first)))
    }

    fn refused(&self, what: String) -> BackendError {
        BackendError::new("replay", self.bench.profile, beff_backends::error::Cause::Io, what)
    }

    /// What this rank writes.
    fn source(&self) -> Result<Ring, BackendError> {
        let [_, bytes] = self.bench.scan.source_bytes(self.bench.sources.bytes());
        let mut source = area(bytes).map_err(|e| self.refused(format!("{bytes} bytes for data: {e}")))?;
        self.bench.sources.of_rank(self.comm.rank() as u32).fill(0, source.bytes_mut());
        Ok(source)
    }

    /// The backend. Collective where it is.
    fn begin(&self, paths: Vec<FilePath>, source: Ring) -> Result<Box<dyn Program>, BackendError> {
        let head = self.bench.head;
        let tables = Tables {
            library: head.library.clone(),
            comms: head.comms.clone(),
            types: head.types.clone(),
            infos: head.infos.clone(),
            hints: self.bench.config.hints.clone(),
            paths,
        };
        let (options, landing_bytes) = (self.options.clone(), self.landing_bytes);
        (self.way.replay.begin)(ProgramRequest { world: self.comm, tables, options, source, landing_bytes })
    }

    /// From when on writes of each rank may not be made. Collective.
    fn unmade_ns(&self) -> Result<Vec<u64>, MpiError> {
        let place = self.bench.config.backends.iter().position(|name| name == self.way.name);
        let own = place.and_then(|place| self.bench.scan.unmade_ns.get(place)).copied();
        self.comm.allgather_u64(&[own.unwrap_or(u64::MAX)])
    }

    /// The first calls, ready. Of this rank alone.
    fn first_window(
        &self,
        mut program: Box<dyn Program>,
        unmade_ns: Vec<u64>,
    ) -> Result<(Box<dyn Program>, Windows<'_>, Window), BackendError> {
        let bench = self.bench;
        let refuse = |what| self.refused(what);
        program.landed(0..self.landing_bytes)?.fill(beff_stamp::POISON_BYTE);
        let making = Making {
            bench,
            rank: self.comm.rank() as u32,
            refusal: self.way.refusal,
            landing: Landing::new(bench.cold_bytes),
            compares: bench.config.verify && self.way.stores,
            stores: self.way.stores,
            aligns: self.way.refusal.by_offsets && bench.config.direct.of(self.way.name) != DirectPolicy::Off,
            unmade_ns,
        };
        let mut windows = Windows::new(making).map_err(refuse)?;
        let mut first = windows.next().map_err(refuse)?;
        program.make_ready(std::mem::take(&mut first.steps))?;
        Ok((program, windows, first))
    }

    /// A pass that made no call. Equal on all ranks.
    fn failed(&self, error: ErrorRecord, begin: Instant) -> PassOutcome {
        let mut record = self.empty();
        record.ended = PassEnd::Error(format!("rank {}: {}", error.rank, error.message));
        record.real_seconds = begin.elapsed().as_secs_f64();
        PassOutcome {
            record,
            classes: Vec::new(),
            processes: Vec::new(),
            corruption: None,
            error: Some(error),
            prefill_seconds: 0.0,
            prepare_seconds: 0.0,
            verify_seconds: 0.0,
        }
    }

    fn empty(&self) -> PassRecord {
        PassRecord::empty(self.way.name, self.number)
    }

    /// Puts the ranks together. Collective.
    fn sums(&self, player: &Player<'_>, around: &Around) -> Result<PassOutcome, MpiError> {
        let (comm, played, checker) = (self.comm, &player.played, &player.checker);
        let interrupted = agree::any(comm, played.interrupted)?;
        let mut most = [
            played.span.as_secs_f64(),
            player.deadlines.late_ns as f64 * 1e-9,
            played.verify.as_secs_f64(),
            played.prepare.as_secs_f64(),
            around.prefill.as_secs_f64(),
        ];
        comm.max_f64(&mut most)?;
        let io = around.io.unwrap_or_default();
        let mut sums = [
            checker.checked_bytes,
            checker.unknown_bytes,
            checker.wrong_bytes,
            player.order.waits,
            player.order.waited.as_nanos() as u64,
            played.allocations,
            io.read_bytes,
            io.written_bytes,
            u64::from(around.io.is_none()),
        ];
        comm.sum_u64(&mut sums)?;
        let compared = Compared::together(agree::gather(comm, &player.compared)?);
        let mine: Vec<(Account, Both)> = player.ledger.sums.iter().map(|(account, both)| (*account, *both)).collect();
        let (classes, processes) = self.records(agree::gather(comm, &mine)?);
        let record = PassRecord {
            ended: if interrupted { PassEnd::Interrupted } else { PassEnd::Complete },
            calls: compared.calls,
            calls_as_recorded: compared.as_recorded,
            differences: compared.differences,
            span_seconds: most[0],
            bytes_checked: sums[0],
            bytes_unknown: sums[1],
            bytes_wrong: sums[2],
            waits: sums[3],
            waited_seconds: sums[4] as f64 * 1e-9,
            late_seconds: player.deadlines.paced().then_some(most[1]),
            storage_read_bytes: (sums[8] == 0).then_some(sums[6]),
            storage_written_bytes: (sums[8] == 0).then_some(sums[7]),
            resident_before_bytes: around.resident_bytes,
            prefilled_bytes: around.prefilled_bytes,
            allocations_in_clock: sums[5],
            machine: around.machine.clone(),
            ..self.empty()
        };
        let corruption = self.corruption(checker.finding.as_ref(), checker.wrong_bytes)?;
        Ok(PassOutcome {
            record,
            classes,
            processes,
            corruption,
            error: None,
            prefill_seconds: most[4],
            prepare_seconds: most[3],
            verify_seconds: most[2],
        })
    }

    /// Sums over the ranks by file and class, and over the files by rank and class.
    fn records(&self, ranks: Vec<Vec<(Account, Both)>>) -> (Vec<ClassRecord>, Vec<ProcessRecord>) {
        let (backend, pass) = (self.way.name, self.number);
        let mut by_file = std::collections::BTreeMap::<Account, (u64, Both)>::new();
        let mut by_rank = std::collections::BTreeMap::new();
        for (rank, accounts) in ranks.into_iter().enumerate() {
            for ((file, class), both) in accounts {
                let (processes, sum) = by_file.entry((file, class)).or_default();
                *processes += 1;
                sum.add(&both);
                by_rank.entry((rank as u64, class)).or_insert_with(Both::default).add(&both);
            }
        }
        let class = |((file, class), (processes, both)): (Account, (u64, Both))| {
            let file = file.map(|file| u64::from(file) + 1);
            ClassRecord { backend: backend.to_owned(), pass, file, class, processes, both }
        };
        let process = |((rank, class), both)| ProcessRecord { backend: backend.to_owned(), pass, rank, class, both };
        (by_file.into_iter().map(class).collect(), by_rank.into_iter().map(process).collect())
    }

    /// The first finding of the lowest rank that has one, on all ranks. Collective.
    fn corruption(&self, finding: Option<&Finding>, bytes_wrong: u64) -> Result<Option<ReplayCorruption>, MpiError> {
        let mine = finding.map(|finding| ReplayCorruption {
            backend: self.way.name.to_owned(),
            pass: self.number,
            rank: self.comm.rank(),
            function: finding.function.name().to_owned(),
            begin_ns: finding.begin_ns,
            file: finding.file.map(|file| u64::from(file) + 1),
            offset_bytes: finding.offset_bytes,
            data_offset_bytes: finding.data_offset_bytes,
            expected: finding.expected,
            found: finding.found,
            expected_from: finding.expected_from.clone(),
            looks_like: finding.looks_like.clone(),
            bytes_wrong,
        });
        let packed = mine.and_then(|mine| serde_json::to_string(&mine).ok());
        Ok(first_message(self.comm, packed)?.and_then(|(_, packed)| serde_json::from_str(&packed).ok()))
    }

    /// Ends the program. After a signal only if all ranks are at the same collective calls: closing files is one too.
    fn end(&self, player: Player<'_>, mut outcome: PassOutcome, begin: Instant) -> Result<PassOutcome, Stuck> {
        let Player { program, order, met, played, paths, .. } = player;
        let together = match agree::any(self.comm, played.interrupted)? {
            false => true,
            true => {
                let all = agree::gather(self.comm, &met.finish())?;
                let differ = self.comm.is_root() && !limits(&all, &self.bench.head.comms).is_empty();
                !agree::any(self.comm, differ)?
            }
        };
        if together {
            order.finish()?;
            // An open in the program looked before, and not behind it.
            let named = || paths.iter().try_for_each(|path| named::check(self.way.name, path));
            let finished = program.finish().and_then(|()| named());
            let finished = trouble::agree(self.comm, finished.err().as_ref(), &self.during())?;
            outcome.error = outcome.error.or(finished);
        } else {
            // The process ends soon, and MPI with it.
            std::mem::forget((program, order));
        }
        outcome.record.real_seconds = agree::slowest(self.comm, begin.elapsed().as_secs_f64())?;
        Ok(outcome)
    }
}
