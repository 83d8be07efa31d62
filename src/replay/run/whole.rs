//! The whole replay: what is in the profile and what it needs, then pass after pass, the backends in turns.

use std::path::Path;
use std::time::{Duration, Instant};

use beff_backends::{driver, DriverOptions};
use beff_ffi::{Comm, MpiError};
use beff_trace::layout::Layouts;
use beff_trace::Head;

use super::detail::Details;
use super::hints;
use super::matching::Matching;
use super::pass::{PassJob, PassOutcome, Way};
use super::scan::{self, Refusal, Scan, Sums};
use super::{order, ready, Bench, Stuck};
use crate::frame::planted;
use crate::frame::records::{ErrorRecord, Outcome};
use crate::frame::run::able::{self, NotRun};
use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::machine_share::HostCpus;
use crate::frame::run::run_dir::RunDir;
use crate::frame::run::{agree, Observer, Standing};
use crate::frame::system::memory::high_water_bytes;
use crate::replay::config::{Detail, ReplayConfig};
use crate::replay::plan::meeting::{limits, Opening};
use crate::replay::records::{PassEnd, PassRecord, ReplayEnding, ReplayLine};

/// How the backends of a configuration refuse, in its order.
#[must_use]
pub fn refusals(backends: &[String]) -> Vec<Refusal> {
    let rows = backends.iter().filter_map(|name| driver(name));
    let refusal = |row: &beff_backends::DriverRow| {
        let by_offsets = !row.has_hints;
        row.replay.map(|replay| Refusal { unable: replay.unable, by_offsets })
    };
    rows.filter_map(refusal).collect()
}

/// What a scan is made of.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// The profile.
    pub profile: &'a Path,
    /// What stands before its calls.
    pub head: &'a Head,
    /// Its types.
    pub layouts: &'a Layouts,
    /// Backends.
    pub refusals: &'a [Refusal],
    /// Memory that accesses go through whose buffer was not just used.
    pub cold_bytes: u64,
    /// Data is compared.
    pub verify: bool,
}

impl Look<'_> {
    /// The calls of one rank, no further than `limits`.
    ///
    /// # Errors
    /// What is wrong with the profile, in words.
    pub fn rank(&self, rank: u32, limits: &[(Opening, u64)]) -> Result<Scan, String> {
        scan::scan(self.profile, rank, self.layouts, self.refusals, limits, (self.cold_bytes, self.verify))
    }

    fn matching(&self) -> Matching<'_> {
        let Self { profile, head, layouts, refusals, .. } = *self;
        Matching { profile, head, layouts, refusals }
    }

    /// The calls of all ranks, one after the other, up to where all collective calls meet.
    ///
    /// # Errors
    /// What is wrong with the profile, in words.
    pub fn all(&self) -> Result<Vec<Scan>, String> {
        let mut known = Vec::new();
        loop {
            let ranks = 0..self.head.processes.len() as u32;
            let scans = ranks.map(|rank| self.rank(rank, &known)).collect::<Result<Vec<_>, _>>()?;
            let meetings: Vec<_> = scans.iter().map(|scan| scan.sums.meetings.clone()).collect();
            let more = tighter(&known, limits(&meetings, &self.head.comms));
            if more.is_empty() {
                self.matching().all(&scans)?;
                return Ok(scans);
            }
            known.extend(more);
        }
    }

    /// This rank's calls, up to where all collective calls meet, with the order between the ranks. Collective.
    ///
    /// # Errors
    /// Outer: MPI between the ranks. Inner: rank and message, equal on all ranks.
    pub fn together(&self, comm: &Comm) -> Result<Result<Scan, (u64, String)>, MpiError> {
        let mut known = Vec::new();
        let mut scan = loop {
            let scan = match agree::all(comm, self.rank(comm.rank() as u32, &known))? {
                Ok(scan) => scan,
                Err(error) => return Ok(Err(error)),
            };
            let all = agree::gather(comm, &scan.sums.meetings)?;
            let found = if comm.is_root() { limits(&all, &self.head.comms) } else { Vec::new() };
            let bytes = comm.bcast_bytes(serde_json::to_vec(&found).unwrap_or_default(), 0)?;
            let more = tighter(&known, serde_json::from_slice(&bytes).unwrap_or_default());
            if more.is_empty() {
                break scan;
            }
            known.extend(more);
        };
        if let Err(error) = self.matching().together(comm, &scan)? {
            return Ok(Err(error));
        }
        let ready = ready::exchange(comm, self.profile, self.layouts, &self.head.comms, &scan)?;
        let (ready, awaited) = match ready {
            Ok(ready) => ready,
            Err(error) => return Ok(Err(error)),
        };
        scan.ready = ready;
        scan.awaited = order::exchange(comm, &scan.awaits)?;
        scan.awaited.extend(awaited);
        scan.awaited.sort_unstable();
        scan.awaited.dedup();
        let missing = agree::all(comm, scan::missing(self.profile, comm.rank() as u32, &scan))?;
        let missing = match missing {
            Ok(missing) => missing,
            Err(error) => return Ok(Err(error)),
        };
        let lost = order::lost(comm, &missing)?;
        let own = scan.awaits.iter().filter(|after| lost.contains(after)).count() as u64;
        (scan.sums.orderings, scan.sums.orderings_lost) = (scan.awaits.len() as u64 - own, own);
        scan.lost = lost;
        Ok(Ok(scan))
    }
}

/// Limits that are not known yet.
fn tighter(known: &[(Opening, u64)], found: Vec<(Opening, u64)>) -> Vec<(Opening, u64)> {
    found.into_iter().filter(|limit| !known.contains(limit)).collect()
}

/// What a run needs.
#[derive(Clone, Copy, Debug)]
pub struct Means<'a> {
    /// The ranks that were recorded.
    pub comm: &'a Comm,
    /// What was asked.
    pub config: &'a ReplayConfig,
    /// The profile.
    pub head: &'a Head,
    /// Its types.
    pub layouts: &'a Layouts,
    /// This rank's calls.
    pub scan: &'a Scan,
    /// Put together: memory is laid out alike everywhere.
    pub most: &'a Sums,
    /// Memory that accesses go through whose buffer was not just used.
    pub cold_bytes: u64,
    /// Where the files go.
    pub run_dir: &'a RunDir,
    /// Backends that cannot work here.
    pub not_run: &'a [NotRun],
    /// Kind of its file system.
    pub fs_type: &'a str,
    /// From the first call to the end of the last one, recorded.
    pub span: Duration,
    /// Signals.
    pub interrupt: &'a Interrupt,
    /// For words of any rank while it runs.
    pub say: fn(&str),
    /// Ends this process, and with it all ranks, while its own thread is in a call.
    pub end: fn(&Stuck, &RunDir),
}

/// Replays everything. Collective over the ranks that were recorded.
///
/// # Errors
/// What leaves ranks waiting for each other.
pub fn execute(means: &Means<'_>, observer: &mut dyn Observer<ReplayLine>) -> Result<ReplayEnding, Stuck> {
    let begin = Instant::now();
    let (comm, config) = (means.comm, means.config);
    let sources = means.most.sources(config.seed, means.cold_bytes);
    let sources = sources.ok_or_else(|| Stuck::Calls("memory beyond what can be counted".into()))?;
    let bench = Bench {
        config,
        head: means.head,
        layouts: means.layouts,
        profile: &config.profile,
        scan: means.scan,
        gaps: &means.most.gaps,
        sources,
        cold_bytes: means.cold_bytes,
        run_dir: means.run_dir,
        interrupt: means.interrupt,
        say: means.say,
        end: means.end,
    };
    let cpus = HostCpus::survey(comm)?;
    let mut ending = ReplayEnding { outcome: Outcome::Complete, ..ReplayEnding::default() };
    let Some(mut details) = files_of_calls(means, observer)? else {
        ending.outcome = Outcome::Failed;
        return Ok(ending);
    };
    let placed = (means.run_dir, means.not_run);
    if let Some(warning) = hints::not_taken(comm, config, placed, |name| options(config, name))? {
        observer.record(ReplayLine::Warning(warning));
    }
    let passes = (1..=config.repeat).flat_map(|n| config.backends.iter().map(move |name| (n, name)));
    let all = config.repeat * config.backends.len() as u64;
    for (done, (number, name)) in passes.enumerate() {
        if agree::any(comm, means.interrupt.raised())? {
            ending.outcome = Outcome::Interrupted;
            break;
        }
        let Some(way) = way(name) else { continue };
        if let Some(reason) = able::reason(means.not_run, name) {
            let record = PassRecord { ended: PassEnd::NotRun(reason.to_owned()), ..PassRecord::empty(name, number) };
            observer.record(ReplayLine::Pass(Box::new(record)));
            continue;
        }
        observer.progress(&standing(means, format!("{name}, pass {number}"), [done as u64, all]));
        let job = PassJob {
            bench: &bench,
            comm,
            cpus: &cpus,
            way,
            number,
            fs_type: means.fs_type,
            span: means.span,
            options: options(config, name),
            landing_bytes: means.scan.landing_bytes()[1],
        };
        let outcome = job.run(details.as_mut())?;
        let goes_on = keep(outcome, observer, &mut ending);
        let is_last = done as u64 + config.backends.len() as u64 >= all;
        if comm.is_root() && !(config.keep_files && is_last) {
            // What cannot be removed is told when the run directory is.
            let _ = means.run_dir.empty(name);
        }
        comm.barrier()?;
        if !goes_on {
            break;
        }
    }
    ending.real_seconds = agree::slowest(comm, begin.elapsed().as_secs_f64())?;
    ending.rank_memory_high_water_bytes = high_water_bytes().unwrap_or(0);
    Ok(ending)
}

/// The files for single calls, where they are asked for. None: a rank could not open its own, which is recorded.
fn files_of_calls(
    means: &Means<'_>,
    observer: &mut dyn Observer<ReplayLine>,
) -> Result<Option<Option<Details>>, MpiError> {
    let (comm, config) = (means.comm, means.config);
    let details = match (config.detail, &config.out) {
        (Detail::Request, Some(prefix)) => planted::failure("files of calls", comm.rank())
            .and_then(|()| Details::create(prefix, comm.rank() as u32).map(Some)),
        _ => Ok(None),
    };
    let (rank, message) = match agree::all(comm, details)? {
        Ok(details) => return Ok(Some(details)),
        Err(error) => error,
    };
    let next_step = "choose another --out that all ranks can write to";
    observer.record(ReplayLine::Error(ErrorRecord::of_rank(rank, "opening files of calls", message, next_step)));
    Ok(None)
}

/// Where the run stands before a pass, when `done` passes of `all` are over.
fn standing(means: &Means<'_>, pass: String, [done, all]: [u64; 2]) -> Standing {
    let seconds = means.span.as_secs_f64();
    Standing {
        what: pass.clone(),
        done_seconds: seconds * done as f64,
        all_seconds: seconds * all as f64,
        stage: pass,
        next_seconds: seconds,
        ranks: means.comm.size(),
        last: Vec::new(),
    }
}

/// How files are opened by this backend.
#[must_use]
pub fn options(config: &ReplayConfig, name: &str) -> DriverOptions {
    DriverOptions { direct: config.direct.of(name).into(), ..DriverOptions::default() }
}

fn way(name: &str) -> Option<Way<'_>> {
    let row = driver(name)?;
    let replay = row.replay?;
    let refusal = Refusal { unable: replay.unable, by_offsets: !row.has_hints };
    Some(Way { name, replay, refusal, stores: row.uses_space })
}

/// Records a pass. False: it was the last one.
fn keep(outcome: PassOutcome, observer: &mut dyn Observer<ReplayLine>, ending: &mut ReplayEnding) -> bool {
    let PassOutcome { record, classes, processes, corruption, error, .. } = outcome;
    ending.prefill_seconds += outcome.prefill_seconds;
    ending.prepare_seconds += outcome.prepare_seconds;
    ending.verify_seconds += outcome.verify_seconds;
    match record.ended {
        PassEnd::Interrupted => ending.outcome = Outcome::Interrupted,
        PassEnd::Error(_) => ending.outcome = Outcome::Failed,
        PassEnd::Complete | PassEnd::NotRun(_) => {}
    }
    let goes_on = record.ended == PassEnd::Complete && error.is_none();
    if error.is_some() {
        ending.outcome = Outcome::Failed;
    }
    observer.record(ReplayLine::Pass(Box::new(record)));
    classes.into_iter().for_each(|record| observer.record(ReplayLine::Class(record)));
    processes.into_iter().for_each(|record| observer.record(ReplayLine::Process(record)));
    corruption.into_iter().for_each(|found| observer.record(ReplayLine::Corruption(found)));
    error.into_iter().for_each(|error| observer.record(ReplayLine::Error(error)));
    goes_on
}
