//! What a run works with and what it has learned so far: one per rank, handed down to whatever works.

use std::io;

use beff_backends::{driver, BackendError, Driver, DriverOptions, DriverRow, OpenFile, Ring, Unable};
use beff_ffi::{Comm, MpiError};
use beff_statistics::bootstrap::MIN_ROUNDS;
use nix::libc;

use crate::b_eff_io::config::{Buffers, Config};
use crate::b_eff_io::plan::memory::shares_memory;
use crate::b_eff_io::plan::run::RunPlan;
use crate::b_eff_io::records::{JournalLine, Verification};
use crate::b_eff_io::run::batching::SyncModel;
use crate::b_eff_io::run::counted::Counters;
use crate::b_eff_io::run::drivers::driver_options;
use crate::b_eff_io::run::files::TypeFile;
use crate::b_eff_io::run::measured::Notes;
use crate::b_eff_io::run::memory_seen::MemorySeen;
use crate::b_eff_io::run::passed::{Passed, Took};
use crate::b_eff_io::run::verify::{Data, Findings};
use crate::frame::records::{Access, ErrorRecord, Outcome};
use crate::frame::run::able;
use crate::frame::run::able::NotRun;
use crate::frame::run::agree::gather;
use crate::frame::run::clock::Instant;
use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::run_dir::RunDir;
use crate::frame::run::{trouble, Moved, Observer};
use crate::frame::values::MPI_IO;
use beff_stamp::{Generation, Stream};

/// A backend of the run with what has been learned about it.
pub struct Backend {
    /// Its name.
    pub name: String,
    /// The driver.
    pub driver: Box<dyn Driver>,
    /// What it was made with.
    pub options: DriverOptions,
    /// False for the null backend and for one that is not run: there is nothing to verify.
    pub moves_data: bool,
    /// False if it cannot work here.
    pub is_run: bool,
    /// What the kernel's counters say about it; only of libraries whose word stands alone.
    pub counters: Option<Counters>,
    /// Prediction of its syncs.
    pub sync: SyncModel,
    /// Of the writes before the first pattern, all ranks; None: there were none.
    pub calibrated_bytes_per_second: Option<f64>,
    /// Time by which the access method is behind its schedule on the partition now measured.
    pub debt_seconds: f64,
}

impl Backend {
    /// Makes its driver again, with other options.
    pub fn made_with(&mut self, row: &DriverRow, options: DriverOptions) {
        self.driver = (row.make)(&options);
        self.options = options;
    }
}

/// Everything a run works with. One per rank.
pub struct Run<'a> {
    /// All ranks.
    pub world: &'a Comm,
    /// What was asked.
    pub config: &'a Config,
    /// What was planned.
    pub plan: &'a RunPlan,
    /// Where the files are.
    pub run_dir: &'a RunDir,
    /// Signals.
    pub interrupt: &'a Interrupt,
    /// Who is told.
    pub observer: &'a mut dyn Observer<JournalLine>,
    /// Backends in turn.
    pub backends: Vec<Backend>,
    /// Memory of the transfers.
    pub ring: Ring,
    /// Room for the loops.
    pub notes: Notes,
    /// Identity of the data.
    pub data: Data,
    /// Files of all partitions, types and backends.
    pub files: Vec<TypeFile>,
    /// Why the run stops, once it does.
    pub stop: Option<Outcome>,
    /// Time of reading again so far.
    pub full_verify_seconds: f64,
    /// Scheduled time of the patterns done.
    pub done_seconds: f64,
    /// Time that the run may take, or is scheduled to take.
    pub all_seconds: f64,
    /// What was moved since progress was told.
    pub last: Vec<Moved>,
    /// The most memory that this rank had.
    pub memory_seen: MemorySeen,
    /// When the run began.
    pub begin: Instant,
    /// What the patterns made in the first pass.
    pub passed: Vec<Passed>,
    /// What the types took in it.
    pub took: Vec<Took>,
    /// What the ring holds now.
    content: Option<(Generation, u64)>,
}

impl<'a> Run<'a> {
    /// Allocates everything. Of the backends `not_run` none is touched: each pattern is told why.
    ///
    /// # Errors
    /// The kernel's answer if the memory is not there, in words for the user.
    pub fn new(
        world: &'a Comm,
        config: &'a Config,
        plan: &'a RunPlan,
        run_dir: &'a RunDir,
        interrupt: &'a Interrupt,
        not_run: &[NotRun],
        observer: &'a mut dyn Observer<JournalLine>,
    ) -> Result<Self, String> {
        let new_ring = if shares_memory(config, world.size()) { Ring::new_shareable } else { Ring::new };
        let ring = new_ring(plan.period_bytes, plan.max_call_bytes).map_err(|e| {
            format!(
                "rank {} cannot have its {} bytes of transfer memory: {e}; {}",
                world.rank(),
                plan.period_bytes + plan.max_call_bytes,
                next_step(&e)
            )
        })?;
        let backends = config
            .backends
            .iter()
            .filter_map(|name| driver(name))
            .map(|row| {
                let why_not = able::reason(not_run, row.name);
                let options = driver_options(config, row.name);
                Backend {
                    name: row.name.to_owned(),
                    driver: match why_not {
                        Some(reason) => Box::new(Unable { reason: reason.to_owned() }),
                        None => (row.make)(&options),
                    },
                    options,
                    moves_data: row.uses_space && why_not.is_none(),
                    is_run: why_not.is_none(),
                    counters: (row.name == MPI_IO).then(Counters::default),
                    sync: SyncModel::default(),
                    calibrated_bytes_per_second: None,
                    debt_seconds: 0.0,
                }
            })
            .collect();
        let live = observer.live();
        Ok(Self {
            world,
            config,
            plan,
            run_dir,
            interrupt,
            observer,
            backends,
            ring,
            notes: Notes::new(config.latency, live),
            data: Data {
                seed: config.seed,
                period_bytes: plan.period_bytes,
                reused: config.buffers == Buffers::Reused,
            },
            files: Vec::new(),
            stop: None,
            full_verify_seconds: 0.0,
            done_seconds: 0.0,
            all_seconds: plan.planned_seconds(config),
            last: Vec::new(),
            memory_seen: MemorySeen::default(),
            begin: Instant::now(),
            passed: Vec::new(),
            took: Vec::new(),
            content: None,
        })
    }

    /// Lays the data of a generation out in the ring, repeating after `period_bytes`, if it is not there already, and lets windows repeat
    /// so too. Outside every clock.
    pub fn hold(&mut self, generation: Generation, period_bytes: u64) {
        if self.content != Some((generation, period_bytes)) {
            let rank = self.world.rank();
            Stream::new(self.data.seed, generation, rank, period_bytes).fill(self.ring.bytes_mut());
            self.content = Some((generation, period_bytes));
        }
        self.ring.set_period_bytes(period_bytes);
    }

    /// What a pattern made in the first pass; None: nothing.
    #[must_use]
    pub fn passed(&self, backend: usize, ranks: u64, access: Access, pattern: u8) -> Option<Passed> {
        let is_it =
            |p: &&Passed| p.backend == backend && p.ranks == ranks && p.access == access && p.pattern == pattern;
        self.passed.iter().find(is_it).copied()
    }

    /// True for a pattern of which one of several backends made too few rounds to be compared by them.
    #[must_use]
    pub fn has_few_rounds(&self, ranks: u64, access: Access, pattern: u8) -> bool {
        let is_rival = |p: &&Passed| {
            let own = p.ranks == ranks && p.access == access && p.pattern == pattern;
            own && p.calls > 0 && self.backends[p.backend].moves_data
        };
        let rivals = || self.passed.iter().filter(is_rival);
        rivals().count() > 1 && rivals().any(|p| (p.rounds as usize) < MIN_ROUNDS)
    }

    /// The ring is about to be read into.
    pub fn spoil(&mut self) {
        self.content = None;
    }

    /// Reports an error that every rank knows of; the run will stop.
    pub fn fail(&mut self, error: ErrorRecord) {
        self.observer.record(JournalLine::Error(error));
        self.stop = Some(Outcome::Failed);
    }

    /// Agrees on an error of any rank; true if there is one, which the run then ends with. Collective.
    ///
    /// # Errors
    /// MPI between the ranks.
    pub fn failed(&mut self, comm: &Comm, mine: Option<&BackendError>, during: &str) -> Result<bool, MpiError> {
        let record = trouble::agree(comm, mine, during)?;
        let failed = record.is_some();
        record.into_iter().for_each(|record| self.fail(record));
        Ok(failed)
    }

    /// Hints in force as the library tells; that it cannot tell is an error like any other.
    pub fn granted(&mut self, file: &dyn OpenFile, during: &str) -> Vec<(String, String)> {
        file.hints_in_force().unwrap_or_else(|e| {
            let next_step = "the hints in force are unknown; the measurement itself goes on";
            self.observer.record(JournalLine::Error(ErrorRecord::of_rank(0, during, e.to_string(), next_step)));
            Vec::new()
        })
    }

    /// Sums of all ranks; wrong places go into the records, and only there. Collective.
    ///
    /// # Errors
    /// MPI between the ranks.
    pub fn report_findings(&mut self, comm: &Comm, findings: &Findings) -> Result<Findings, MpiError> {
        let mine = findings.verification;
        let mut sums = [mine.words_checked, mine.words_wrong, findings.past_cache_bytes, findings.places_read];
        comm.sum_u64(&mut sums)?;
        if sums[1] > 0 {
            for place in gather(comm, &findings.places)?.into_iter().flatten() {
                self.observer.record(JournalLine::Corruption(place));
            }
        }
        let [words_checked, words_wrong, past_cache_bytes, places_read] = sums;
        let verification = Verification { words_checked, words_wrong };
        Ok(Findings { verification, past_cache_bytes, places_read, places: Vec::new() })
    }
}

/// What helps against this answer to a wish for memory. Only memory that ranks share can be refused, by memfd_create(2).
fn next_step(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => {
            "memory that ranks share needs memfd_create, which something forbids (a seccomp filter of a container?): allow it, or take \
             --set exchange=messages"
        }
        Some(libc::EMFILE | libc::ENFILE) => "raise the limit of open files (ulimit -n)",
        _ => "give a smaller --memory-per-process",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_memory_is_advised_only_where_memory_is_missing() {
        let of = |errno| next_step(&io::Error::from_raw_os_error(errno));
        assert!(of(libc::ENOMEM).contains("--memory-per-process"));
        assert!(of(libc::EPERM).contains("exchange=messages") && !of(libc::ENOSYS).contains("--memory"));
        assert!(of(libc::EMFILE).contains("ulimit -n"));
    }
}
