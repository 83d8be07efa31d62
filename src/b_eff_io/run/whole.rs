//! A whole run: all access methods, partitions, types.

use std::time::Instant;

use beff_backends::{driver, Collective, Direct, Driver, DriverOptions, Exchange, Ring, DEFAULT_DOMAIN_BYTES};
use beff_ffi::{Comm, MpiError};

use crate::b_eff_io::config::{CollectivePolicy, Config, ExchangePolicy, Verify};
use crate::b_eff_io::plan::patterns;
use crate::b_eff_io::plan::run::RunPlan;
use crate::b_eff_io::plan::schedule::{is_rewritten, pattern_seconds};
use crate::b_eff_io::plan::space::PartitionSpace;
use crate::b_eff_io::records::{Ending, JournalLine};
use crate::b_eff_io::run::batching::SyncModel;
use crate::b_eff_io::run::calibrate::calibrate;
use crate::b_eff_io::run::clocked::Notes;
use crate::b_eff_io::run::files::TypeFile;
use crate::b_eff_io::run::inject;
use crate::b_eff_io::run::tune::tune;
use crate::b_eff_io::run::type_run::run_type;
use crate::b_eff_io::run::verify::Data;
use crate::frame::backends;
use crate::frame::config::{CachePolicy, DirectPolicy};
use crate::frame::records::{Access, ErrorRecord, Outcome};
use crate::frame::run::evidence::Site;
use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::run_dir::RunDir;
use crate::frame::run::stamp::{Generation, Stream};
use crate::frame::run::Observer;
use crate::frame::system::memory::high_water_bytes;

/// A backend of the run with what has been learned about it.
pub struct Backend {
    /// Its name.
    pub name: String,
    /// The driver.
    pub driver: Box<dyn Driver>,
    /// False for the null backend: there is nothing to verify.
    pub moves_data: bool,
    /// Prediction of its syncs.
    pub sync: SyncModel,
    /// Time by which the access method is behind its schedule on the partition now measured.
    pub debt_seconds: f64,
}

/// What the ring holds now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Nothing,
    Stream(Generation),
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
    /// Untimed verification so far.
    pub full_verify_seconds: f64,
    /// Scheduled time of the patterns done.
    pub done_seconds: f64,
    /// Scheduled time of all patterns.
    pub all_seconds: f64,
    /// Rate of the last pattern.
    pub last_mb_per_second: Option<f64>,
    content: Content,
}

impl<'a> Run<'a> {
    /// Allocates everything.
    ///
    /// # Errors
    /// The kernel's answer if the memory is not there, in words for the user.
    pub fn new(
        world: &'a Comm,
        config: &'a Config,
        plan: &'a RunPlan,
        run_dir: &'a RunDir,
        interrupt: &'a Interrupt,
        observer: &'a mut dyn Observer<JournalLine>,
    ) -> Result<Self, String> {
        let new_ring = if shares_memory(config, world.size()) { Ring::new_shareable } else { Ring::new };
        let ring = new_ring(plan.period_bytes, plan.max_call_bytes).map_err(|e| {
            format!(
                "rank {} cannot have its {} bytes of transfer memory: {e}; give a smaller --memory-per-process",
                world.rank(),
                plan.period_bytes + plan.max_call_bytes
            )
        })?;
        let backends = config
            .backends
            .iter()
            .filter_map(|name| driver(name))
            .map(|row| Backend {
                name: row.name.to_owned(),
                driver: (row.make)(&driver_options(config, row.name)),
                moves_data: row.uses_space,
                sync: SyncModel::default(),
                debt_seconds: 0.0,
            })
            .collect();
        let all_seconds = scheduled_seconds(config, plan);
        Ok(Self {
            world,
            config,
            plan,
            run_dir,
            interrupt,
            observer,
            backends,
            ring,
            notes: Notes::new(config.latency),
            data: Data { seed: config.seed, period_bytes: plan.period_bytes },
            files: Vec::new(),
            stop: None,
            full_verify_seconds: 0.0,
            done_seconds: 0.0,
            all_seconds,
            last_mb_per_second: None,
            content: Content::Nothing,
        })
    }

    /// Works through the schedule. Collective; a failure of the storage is in the records, not in the result.
    ///
    /// # Errors
    /// Only when MPI fails between the ranks.
    pub fn execute(&mut self) -> Result<Ending, MpiError> {
        let comms = self
            .plan
            .partitions
            .iter()
            .map(|p| if p.ranks == self.world.size() { Ok(None) } else { self.world.prefix(p.ranks) })
            .collect::<Result<Vec<_>, _>>()?;
        let mut sites = Vec::new();
        for (part, comm) in self.plan.partitions.iter().zip(&comms) {
            let comm = self.members(part, comm.as_ref());
            sites.push(comm.map(|comm| Site::survey(comm, self.run_dir.path())).transpose()?);
        }
        let begin = Instant::now();
        self.hold(Generation::First);
        if let Some(comm) = self.plan.partitions.last().zip(comms.last()).and_then(|(p, c)| self.members(p, c.as_ref()))
        {
            calibrate(self, comm)?;
            tune(self, comm)?;
        }
        self.agree_on_stop()?;
        let calibrate_seconds = begin.elapsed().as_secs_f64();
        let world = self.world;
        for access in Access::ALL {
            if access == Access::Read {
                self.injure();
            }
            for ((part, comm), site) in self.plan.partitions.iter().zip(&comms).zip(&sites) {
                if let (Some(comm), Some(site), None) = (self.members(part, comm.as_ref()), site, self.stop) {
                    self.run_partition(access, part, comm, site)?;
                }
                self.agree_on_stop()?;
            }
        }
        let real_seconds = begin.elapsed().as_secs_f64();

        let mut worst = [high_water_bytes().unwrap_or(0)];
        world.max_u64(&mut worst)?;
        Ok(Ending {
            outcome: self.stop.unwrap_or(Outcome::Complete),
            real_seconds,
            full_verify_seconds: self.full_verify_seconds,
            calibrate_seconds,
            cleanup_seconds: 0.0,
            rank_memory_high_water_bytes: worst[0],
            rank_memory_planned_bytes: self.plan.rank_memory_bytes,
        })
    }

    /// The communicator of a partition: `split`, or the world where that is the partition; None on ranks outside.
    fn members<'c>(&self, part: &PartitionSpace, split: Option<&'c Comm>) -> Option<&'c Comm>
    where
        'a: 'c,
    {
        if part.ranks == self.world.size() {
            Some(self.world)
        } else {
            split
        }
    }

    fn run_partition(
        &mut self,
        access: Access,
        part: &PartitionSpace,
        comm: &Comm,
        site: &Site,
    ) -> Result<(), MpiError> {
        for backend in &mut self.backends {
            backend.debt_seconds = 0.0;
            // Ranks outside the partitions before have learned nothing there, and what is not equal on all ranks lets
            // them make different numbers of calls. Rank 0 is in every partition.
            let mut parts = backend.sync.to_parts();
            comm.bcast_f64(&mut parts, 0)?;
            backend.sync = SyncModel::from_parts(parts);
        }
        for t in self.config.types.clone() {
            if access == Access::Rewrite && !is_rewritten(self.config.full_rewrite, t) {
                continue;
            }
            if self.stop.is_none() {
                run_type(self, access, part, (comm, site), t)?;
            }
        }
        Ok(())
    }

    /// The ranks outside a partition wait here without burning their cores, and learn whether the run goes on.
    fn agree_on_stop(&mut self) -> Result<(), MpiError> {
        self.world.idle_barrier()?;
        let mut codes = [match self.stop {
            None if self.interrupt.raised() => 1,
            None => 0,
            Some(Outcome::Failed) => 2,
            Some(_) => 1,
        }];
        self.world.max_u64(&mut codes)?;
        self.stop = match codes[0] {
            0 => None,
            1 => Some(Outcome::Interrupted),
            _ => Some(Outcome::Failed),
        };
        Ok(())
    }

    /// Lays the data of a generation out in the ring, if it is not there already. Outside every clock.
    pub fn hold(&mut self, generation: Generation) {
        if self.content != Content::Stream(generation) {
            let rank = self.world.rank();
            Stream::new(self.data.seed, generation, rank, self.data.period_bytes).fill(self.ring.bytes_mut());
            self.content = Content::Stream(generation);
        }
    }

    /// The ring is about to be read into.
    pub fn spoil(&mut self) {
        self.content = Content::Nothing;
    }

    /// Reports an error that every rank knows of; the run will stop.
    pub fn fail(&mut self, error: ErrorRecord) {
        self.observer.record(JournalLine::Error(error));
        self.stop = Some(Outcome::Failed);
    }

    fn injure(&mut self) {
        let (Some(how), None) = (self.config.inject, self.stop) else { return };
        // All ranks have closed the files: the agreement at the end of the partition was a barrier.
        if self.world.is_root() {
            for file in self.files.iter().filter(|f| self.backends.iter().any(|b| b.name == f.backend && b.moves_data))
            {
                if let Err(e) = inject::damage(self.run_dir.path(), file, how, &self.data) {
                    self.observer.record(JournalLine::Error(ErrorRecord {
                        during: "--inject".into(),
                        rank: 0,
                        ranks_affected: 1,
                        message: format!("{}: {e}", file.name(0).display()),
                        next_step: "the damage could not be made; nothing was proved".into(),
                        no_space: false,
                    }));
                }
            }
        }
    }

    /// True if every byte is to be read again.
    #[must_use]
    pub fn verifies_fully(&self) -> bool {
        self.config.verify == Verify::Full
    }
}

/// True if ranks may copy out of each other's transfer memory: two-phase transfers, not by messages.
fn shares_memory(config: &Config, ranks: u64) -> bool {
    let collective = config.types.iter().any(|t| matches!(t, 0 | 1));
    let two_phase = |backend: &String| match config.collective {
        _ if !backends::can(backend, |row| row.has_two_phase) => false,
        CollectivePolicy::Auto => config.direct.of(backend) != DirectPolicy::Off,
        CollectivePolicy::TwoPhase => true,
        CollectivePolicy::Independent | CollectivePolicy::UnsafeReadModifyWrite => false,
    };
    ranks > 1 && collective && config.exchange != ExchangePolicy::Messages && config.backends.iter().any(two_phase)
}

/// Scheduled time of all patterns of all partitions and backends.
fn scheduled_seconds(config: &Config, plan: &RunPlan) -> f64 {
    let mut sum = 0.0;
    for part in &plan.partitions {
        for spec in &patterns::patterns(part.m_part_bytes) {
            for access in Access::ALL {
                if config.types.contains(&spec.pattern_type) {
                    sum += pattern_seconds(config.release, config.full_rewrite, plan.partition_seconds, spec, access);
                }
            }
        }
    }
    sum * config.backends.len() as f64
}

/// The part of the configuration that a driver of this name gets.
#[must_use]
pub fn driver_options(config: &Config, backend: &str) -> DriverOptions {
    DriverOptions {
        direct: match config.direct.of(backend) {
            DirectPolicy::Required => Direct::Required,
            DirectPolicy::Auto => Direct::Auto,
            DirectPolicy::Off | DirectPolicy::ByBackend => Direct::Off,
        },
        queue_depth: config.queue_depth.unwrap_or(DriverOptions::default().queue_depth),
        tuned: Vec::new(),
        sqpoll: config.sqpoll,
        dont_cache: config.cache == CachePolicy::Dontcache,
        collective: match config.collective {
            CollectivePolicy::Auto => Collective::Auto,
            CollectivePolicy::Independent => Collective::Independent,
            CollectivePolicy::TwoPhase => Collective::TwoPhase,
            CollectivePolicy::UnsafeReadModifyWrite => Collective::UnsafeReadModifyWrite,
        },
        aggregators: config.aggregators,
        domain_bytes: config.domain_bytes.unwrap_or(DEFAULT_DOMAIN_BYTES),
        exchange: match config.exchange {
            ExchangePolicy::Auto => Exchange::Auto,
            ExchangePolicy::SharedMemory => Exchange::SharedMemory,
            ExchangePolicy::Messages => Exchange::Messages,
        },
        unique_open: config.unique_open,
    }
}
