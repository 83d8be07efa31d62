//! `beff-raw replay`: replays a profile.

use std::collections::BTreeMap;
use std::time::Duration;

use beff_backends::driver;
use beff_ffi::{Comm, Universe};
use beff_trace::layout::Layouts;
use beff_trace::text::read_head;
use beff_trace::Head;

use super::cli::ReplayArgs;
use super::config::ReplayConfig;
use super::plan::cold::cold_bytes;
use super::plan::left_out::together;
use super::records::{
    BackendLeavings, Ended, FileFacts, ProfileFacts, ReplayEnding, ReplayLine, ReplayResult, ReplaySetup,
};
use super::report::{plan as plan_text, SUFFIXES};
use super::run::scan::{Refusal, Scan, Sums};
use super::run::whole::{execute, options, refusals, Look, Means};
use super::run::Stuck;
use crate::frame::command::binding::bind_and_look;
use crate::frame::command::finish::{conduct, Files, Page};
use crate::frame::command::observer::Collector;
use crate::frame::command::start::{Early, Ready};
use crate::frame::command::{
    caches_of_rank, complain, directory, known_backends, memory_of_rank, publish_once, start, LAST_WORDS,
};
use crate::frame::error::{Exit, UsageError};
use crate::frame::records::StorageRecord;
use crate::frame::report::text::count;
use crate::frame::report::{Level, Views};
use crate::frame::run::run_dir::RunDir;
use crate::frame::run::Observer;
use crate::frame::system::survey::Survey;
use crate::frame::units::{format_seconds, format_size};

/// Runs the command. Every rank ends with the same exit code; rank 0 alone says why.
///
/// # Errors
/// What ended the run before a result could be made.
pub fn run(args: &ReplayArgs) -> anyhow::Result<Exit> {
    if args.output.plan {
        let config = configuration(args)?;
        let profile = Profile::open(&config)?;
        let refusals = refusals(&config.backends);
        let ranks = profile.head.processes.len() as u64;
        let cold_bytes = cold_bytes(caches_of_rank(ranks)?.1, memory_of_rank(None, ranks)?);
        let scans = profile.look(&config, &refusals, cold_bytes).all().map_err(unsound)?;
        let facts = profile.facts(&scans.iter().map(|scan| &scan.sums).collect::<Vec<_>>());
        check_content(&facts)?;
        let sums = put_together(scans.into_iter().map(|scan| scan.sums));
        let space_bytes = space(&config, &profile.head, &sums);
        let data_bytes = data_bytes(&config, &sums, cold_bytes)?;
        publish_once(plan_text::text(&config, &facts, &leavings(&config, &sums), space_bytes, data_bytes).as_bytes())?;
        return Ok(Exit::Ok);
    }
    start::under_mpi(|universe, world| {
        let config = start::from_root(world, "configuration", || configuration(args))?;
        measure(universe, world, &config, args)
    })
}

fn configuration(args: &ReplayArgs) -> Result<ReplayConfig, UsageError> {
    args.config(&known_backends(), |name| driver(name).is_some_and(|row| row.replay.is_some()))
}

/// What stands before the calls.
struct Profile {
    head: Head,
    layouts: Layouts,
}

impl Profile {
    fn open(config: &ReplayConfig) -> Result<Self, UsageError> {
        // Opening a pipe would wait for who writes into it, and all ranks read more than once. What is not there is told below.
        if config.profile.metadata().is_ok_and(|m| !m.is_file() && !m.is_dir()) {
            return Err(UsageError::new(
                format!("{} is a pipe or a device; every rank reads a profile several times", config.profile.display()),
                "Write it to a file first.",
            ));
        }
        let head = read_head(&config.profile).map_err(|e| {
            let (all, next) = (e.to_string(), e.next_step());
            let what = all.strip_suffix(next).unwrap_or(&all).trim_end_matches("; ").to_owned();
            UsageError::new(what, format!("{next}. Nothing was made or measured."))
        })?;
        let layouts = Layouts::of_library(&head.types, &head.library).map_err(|e| {
            let next = "Correct that `type` line, or those it is made of. Nothing was made or measured.";
            UsageError::new(format!("{}: {e}", config.profile.display()), next)
        })?;
        Ok(Self { head, layouts })
    }

    fn look<'a>(&'a self, config: &'a ReplayConfig, refusals: &'a [Refusal], cold_bytes: u64) -> Look<'a> {
        let (head, layouts) = (&self.head, &self.layouts);
        Look { profile: &config.profile, head, layouts, refusals, cold_bytes, verify: config.verify }
    }

    fn facts(&self, ranks: &[&Sums]) -> ProfileFacts {
        let head = &self.head;
        let mut ended: BTreeMap<&str, u64> = BTreeMap::new();
        let mut hosts: Vec<&str> = Vec::new();
        for process in &head.processes {
            *ended.entry(process.end.name()).or_default() += 1;
            hosts.push(&process.host);
        }
        hosts.sort_unstable();
        hosts.dedup();
        let storage = |which: usize| {
            let mut each = head.processes.iter().map(|p| Some(p.storage_bytes?[which]));
            each.try_fold(0, |sum: u64, bytes| Some(sum.saturating_add(bytes?)))
        };
        let sum = |value: fn(&Sums) -> u64| ranks.iter().map(|sums| value(sums)).sum::<u64>();
        let spans = || ranks.iter().filter_map(|sums| sums.span_ns);
        let first = spans().map(|[first, _]| first).min().unwrap_or(0);
        let last = spans().map(|[_, last]| last).max().unwrap_or(0);
        let file = |f: &beff_trace::OpenedFile| FileFacts {
            path: f.path.clone(),
            size_bytes: f.size_bytes,
            fs_type: f.fs_type.clone(),
        };
        ProfileFacts {
            library: head.library.lines().next().unwrap_or_default().to_owned(),
            command: head.command.clone(),
            started_unix_ns: head.started_unix_ns,
            cost_ns: head.cost_ns,
            processes: head.processes.len() as u64,
            hosts: hosts.len() as u64,
            ended: ended.into_iter().map(|(end, processes)| Ended { end: end.to_owned(), processes }).collect(),
            threads: ranks.iter().map(|sums| sums.threads).max().unwrap_or(0),
            files: head.files.iter().map(file).collect(),
            calls: sum(|s| s.calls),
            data_calls: sum(|s| s.data_calls),
            read_bytes: sum(|s| s.read_bytes),
            written_bytes: sum(|s| s.written_bytes),
            span_seconds: last.saturating_sub(first) as f64 * 1e-9,
            storage_read_bytes: storage(0),
            storage_written_bytes: storage(1),
            calls_cut: sum(|s| s.calls_cut),
            orderings: sum(|s| s.orderings),
            orderings_lost: sum(|s| s.orderings_lost),
        }
    }
}

fn unsound(what: String) -> UsageError {
    UsageError::new(what, "Nothing was made or measured. `beff-raw profile show FILE` tells what is in a profile.")
}

/// Sums, largest values and lists of all ranks.
fn put_together(ranks: impl IntoIterator<Item = Sums>) -> Sums {
    let mut all = Sums::default();
    for rank in ranks {
        all.calls += rank.calls;
        all.written_bytes = all.written_bytes.max(rank.written_bytes);
        all.below_bytes = all.below_bytes.max(rank.below_bytes);
        all.above_bytes = all.above_bytes.max(rank.above_bytes);
        all.landing_bytes = all.landing_bytes.max(rank.landing_bytes);
        all.placed_bytes = all.placed_bytes.max(rank.placed_bytes);
        all.strewn_bytes = all.strewn_bytes.max(rank.strewn_bytes);
        for (file, end) in rank.file_ends {
            let known = all.file_ends.entry(file).or_default();
            *known = (*known).max(end);
        }
        for (file, gaps) in rank.gaps {
            all.gaps.entry(file).or_default().merge(&gaps);
        }
        all.leavings.resize(all.leavings.len().max(rank.leavings.len()), Vec::new());
        all.leavings.iter_mut().zip(rank.leavings).for_each(|(all, own)| all.extend(own));
    }
    all.leavings = all.leavings.into_iter().map(together).collect();
    all
}

fn leavings(config: &ReplayConfig, sums: &Sums) -> Vec<BackendLeavings> {
    let each = config.backends.iter().zip(&sums.leavings);
    each.map(|(backend, list)| BackendLeavings { backend: backend.clone(), left_out: list.clone() }).collect()
}

/// Space the files need at most.
fn space(config: &ReplayConfig, head: &Head, sums: &Sums) -> u64 {
    let of_file = |(n, file): (usize, &beff_trace::OpenedFile)| {
        file.size_bytes.unwrap_or(0).max(sums.file_ends.get(&(n as u32)).copied().unwrap_or(0))
    };
    let one = head.files.iter().enumerate().map(of_file).fold(0, u64::saturating_add);
    let storing = config.backends.iter().filter(|name| driver(name).is_some_and(|row| row.uses_space)).count() as u64;
    one.saturating_mul(if config.keep_files { storing } else { storing.min(1) })
}

/// Memory for data of a rank.
fn data_bytes(config: &ReplayConfig, sums: &Sums, cold_bytes: u64) -> Result<u64, UsageError> {
    let sources = sums.sources(config.seed, cold_bytes);
    let bytes =
        sources.and_then(|sources| sources.bytes().checked_add(sums.landing_bytes.saturating_add(sums.placed_bytes)));
    let profile = config.profile.display();
    bytes.ok_or_else(|| unsound(format!("{profile}: a call has its data in more memory than can be counted")))
}

/// What a run is prepared with, the same on all ranks but for the calls of each.
struct Needs {
    survey: Survey,
    profile: Profile,
    storage: StorageRecord,
    /// The ranks that were recorded; None on any other.
    active: Option<Comm>,
    scan: Option<Scan>,
    facts: ProfileFacts,
    sums: Sums,
    cold_bytes: u64,
    data_bytes: u64,
    space_bytes: u64,
}

/// Reads the profile and looks at what its calls need. Collective.
fn needs(world: &Comm, config: &ReplayConfig) -> Result<Needs, Early> {
    let survey = bind_and_look(world, config.bind)?;
    let profile = start::step(world, "profile", || {
        let profile = Profile::open(config)?;
        check_ranks(world.size(), &profile.head, config)?;
        Ok(profile)
    })?;
    let storage = start::storage_below(world, &config.path)?;
    let refusals = refusals(&config.backends);
    let cold_bytes = cold_bytes(survey.cache_share_bytes, survey.memory_per_rank_bytes);
    let active = world.prefix(profile.head.processes.len() as u64)?;
    let looked = match &active {
        Some(comm) => profile.look(config, &refusals, cold_bytes).together(comm)?.map(Some),
        None => Ok(None),
    };
    // What one of those that were recorded found, all of them have; the others hear it.
    let scan = start::step(world, "calls", || Ok(looked.map_err(|(_, message)| unsound(message))?))?;
    let own = scan.as_ref().map(|scan| scan.sums.clone());
    let packed = world.gather_bytes(&serde_json::to_vec(&own)?)?;
    let all: Vec<Sums> = packed.iter().filter_map(|bytes| serde_json::from_slice(bytes).ok().flatten()).collect();
    let shared = start::from_root(world, "sums", || {
        let facts = profile.facts(&all.iter().collect::<Vec<_>>());
        check_content(&facts)?;
        Ok((facts, put_together(all)))
    })?;
    let (facts, sums) = shared;
    let (data_bytes, space_bytes) = start::step(world, "plan", || {
        let data_bytes = data_bytes(config, &sums, cold_bytes)?;
        let space_bytes = space(config, &profile.head, &sums);
        check_memory(data_bytes, &survey)?;
        check_space(space_bytes, config, &storage)?;
        Ok((data_bytes, space_bytes))
    })?;
    Ok(Needs { survey, profile, storage, active, scan, facts, sums, cold_bytes, data_bytes, space_bytes })
}

fn measure(universe: &Universe, world: &Comm, config: &ReplayConfig, args: &ReplayArgs) -> Result<Exit, Early> {
    let Needs { survey, profile, storage, active, scan, facts, sums, cold_bytes, data_bytes, space_bytes } =
        needs(world, config)?;
    let leavings = leavings(config, &sums);

    let Ready { costs, interrupt, machine } = start::get_ready(universe, world, &survey, false)?;
    let title = || format!("replay on {} ranks", world.size());
    let progress = start::open_progress(world, &args.output.progress, title)?;
    let outputs = start::open_outputs(world, config.out.as_deref(), &SUFFIXES.map(str::to_owned))?;
    let (run_dir, outputs) =
        directory::make(world, &config.path, config.run_dir.as_deref(), &config.backends, outputs)?;
    let announcement = announcement(config, &facts, &leavings);
    let span = Duration::try_from_secs_f64(facts.span_seconds).unwrap_or_default();
    let fs_type = storage.fs_type.clone();
    let collector = machine.map(|machine| {
        let setup = ReplaySetup {
            machine,
            storage,
            run_dir: run_dir.path().display().to_string(),
            profile: facts,
            leavings,
            space_bytes,
            data_bytes,
            clock_resolution_ns: costs.clock_resolution_ns,
            clock_read_ns: costs.clock_read_ns,
            barrier_ns: costs.barrier_ns,
        };
        Collector::new(ReplayResult::new(config.clone(), setup), outputs, progress)
    });
    start::announce(world, &args.output.progress, || announcement);
    let work = |observer: &mut dyn Observer<ReplayLine>| {
        let not_run = start::leave_out(world, &run_dir, &config.backends, |name| options(config, name))?;
        let ending = match (&active, &scan) {
            (Some(comm), Some(scan)) => {
                let means = Means {
                    comm,
                    config,
                    head: &profile.head,
                    layouts: &profile.layouts,
                    scan,
                    most: &sums,
                    cold_bytes,
                    run_dir: &run_dir,
                    not_run: &not_run,
                    fs_type: &fs_type,
                    span,
                    interrupt: &interrupt,
                    say: complain,
                    end: |stuck, run_dir| beff_ffi::stranded::end(last_words(stuck, run_dir)),
                };
                execute(&means, observer).unwrap_or_else(|stuck| stop(&stuck, &run_dir))
            }
            _ => ReplayEnding::default(),
        };
        // The ranks that were not recorded wait here.
        world.idle_barrier()?;
        Ok(ReplayEnding { outcome: outcome_of_root(world, ending.outcome)?, ..ending })
    };
    let files = Files { run_dir: &run_dir, keep: config.keep_files };
    conduct(world, Some(files), collector, work, |result, derived, place| {
        // Who asks for details wants to see them.
        let full = args.output.full || args.output.detail.is_some();
        Page::from(result.sheet(derived, Level::of(full, false), place))
    })
}

fn outcome_of_root(
    world: &Comm,
    mine: crate::frame::records::Outcome,
) -> Result<crate::frame::records::Outcome, Early> {
    let bytes = world.bcast_bytes(serde_json::to_vec(&mine)?, 0)?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// The end of all ranks: others may wait in a call that this one will never make.
fn stop(stuck: &Stuck, run_dir: &RunDir) -> ReplayEnding {
    let code = last_words(stuck, run_dir);
    beff_ffi::universe::abort(code);
    std::process::exit(code)
}

/// Removes the files, says why the run ends, and gives the exit code.
fn last_words(stuck: &Stuck, run_dir: &RunDir) -> i32 {
    let left = run_dir
        .remove()
        .err()
        .map_or_else(String::new, |error| format!("; files in {} are left: {error}", run_dir.whereabouts()));
    complain(&format!("{stuck}. What was measured before is in the journal of --out{left}"));
    let exit = if matches!(stuck, Stuck::Interrupted) { Exit::Interrupted } else { Exit::Failure };
    // Launchers kill all processes at an abort, and what they have not read of them is lost.
    std::thread::sleep(LAST_WORDS);
    i32::from(exit.code())
}

fn check_ranks(ranks: u64, head: &Head, config: &ReplayConfig) -> Result<(), UsageError> {
    let recorded = head.processes.len() as u64;
    if ranks >= recorded {
        return Ok(());
    }
    Err(UsageError::new(
        format!("{} recorded, but only {} started", count(recorded, "process"), count(ranks, "rank")),
        format!("Start as many: mpirun -n {recorded} beff-raw replay {}", config.profile.display()),
    ))
}

fn check_content(facts: &ProfileFacts) -> Result<(), UsageError> {
    if facts.data_calls > 0 {
        return Ok(());
    }
    let ends: Vec<String> =
        facts.ended.iter().map(|e| format!("{} {}", count(e.processes, "process"), e.end)).collect();
    Err(UsageError::new(
        format!(
            "the profile has no call that moves data: {} in all, {} ({})",
            count(facts.calls, "call"),
            count(facts.files.len() as u64, "file"),
            ends.join(", ")
        ),
        "Record the program while it does its I/O; `beff-raw profile show FILE` tells what is in a profile.",
    ))
}

/// Refuses memory that would not leave room for anything else. Equal on all ranks.
fn check_memory(needed: u64, survey: &Survey) -> Result<(), UsageError> {
    let has = survey.memory_per_rank_bytes;
    if needed <= has - has / 4 {
        return Ok(());
    }
    Err(UsageError::new(
        format!("the largest calls need {} for data in a rank, which has {}", format_size(needed), format_size(has)),
        "Start fewer ranks on a node, or correct the counts in the profile.",
    ))
}

/// Refuses files that would fill the storage.
fn check_space(needed: u64, config: &ReplayConfig, storage: &StorageRecord) -> Result<(), UsageError> {
    if needed <= storage.free_bytes {
        return Ok(());
    }
    let kept = if config.keep_files { " or leave --keep-files out" } else { "" };
    Err(UsageError::new(
        format!(
            "the files of the profile take up to {}; only {} are free under {}",
            format_size(needed),
            format_size(storage.free_bytes),
            storage.path
        ),
        format!("Give another --path, where there is room for them{kept}."),
    ))
}

/// What a user who waits wants to know, and what will be missing.
fn announcement(config: &ReplayConfig, facts: &ProfileFacts, leavings: &[BackendLeavings]) -> String {
    let passes = config.repeat * config.backends.len() as u64;
    let mut text = format!(
        "replaying {} of {}, recorded in {}: {}",
        count(facts.calls, "call"),
        count(facts.processes, "process"),
        format_seconds(facts.span_seconds),
        count(passes, "pass")
    );
    for BackendLeavings { backend, left_out } in leavings {
        for l in left_out {
            text.push_str(&format!(
                "\n  {backend} leaves out {} of {}: {}",
                count(l.calls, "call"),
                l.function,
                l.reason
            ));
        }
    }
    if facts.calls_cut > 0 {
        text.push_str(&format!(
            "\n  {} not replayed: they come behind a collective call that other ranks never made",
            count(facts.calls_cut, "call")
        ));
    }
    text
}
