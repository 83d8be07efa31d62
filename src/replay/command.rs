//! `beff-raw replay`: replays a profile.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use beff_backends::driver;
use beff_ffi::collective_timeout::exit_process;
use beff_ffi::{Comm, Universe};
use beff_trace::layout::TypeLayouts;
use beff_trace::text::read_head;
use beff_trace::ProfileHead;

use super::cli::ReplayArgs;
use super::config::ReplayConfig;
use super::plan::cache_cold::cache_cold_bytes;
use super::plan::call_change::CallChange;
use super::plan::memory_relocation::MemoryRelocation;
use super::plan::omission::merge_by_function;
use super::records::{
    BackendOmissions, FileFacts, ProfileFacts, RecordingEnd, ReplayEnding, ReplayLine, ReplayResult, ReplaySetup,
};
use super::report::{plan as plan_text, repetitions_text, SUFFIXES};
use super::run::call_source::CallSource;
use super::run::derived_calls::DerivedCalls;
use super::run::execution::{driver_options, execute, replay_support, ExecutionContext, ReplayVariant, ScanInput};
use super::run::scan::{RankScan, ReplaySupport, ScanTotals};
use super::run::{what_if, ReplayAbort};
use crate::frame::command::binding::bind_and_survey;
use crate::frame::command::finish::{measure_and_report, MeasuredFiles};
use crate::frame::command::observer::ResultCollector;
use crate::frame::command::progress::RunTitle;
use crate::frame::command::start::{CommandError, MeasurementSetup};
use crate::frame::command::{
    backend_capabilities, directory, planned_cache_share, planned_memory_per_rank, print_diagnostic, publish_once,
    start, time_limit, LAST_MESSAGE_DELAY,
};
use crate::frame::error::{Exit, UsageError};
use crate::frame::records::{StorageRecord, TimeLimitRecord};
use crate::frame::report::text::count;
use crate::frame::report::{DetailLevel, Views};
use crate::frame::run::run_dir::RunDir;
use crate::frame::run::RunObserver;
use crate::frame::system::survey::Survey;
use crate::frame::units::{format_seconds, format_size};

/// Runs the command. Every rank ends with the same exit code; rank 0 alone reports the reason.
///
/// # Errors
/// An error before a result exists.
pub fn run(args: &ReplayArgs) -> anyhow::Result<Exit> {
    if args.output.plan {
        let config = configuration(args)?;
        let mut profile = OpenProfile::open(&config)?;
        profile.derived = store_derived(derive_order(&config)?.as_deref())?;
        let refusals = replay_support(&config);
        let ranks = profile.head.processes.len() as u64;
        let cold_bytes = cache_cold_bytes(planned_cache_share(ranks)?.1, planned_memory_per_rank(None, ranks)?);
        let scan = |change| {
            let scans = profile.scan_input(&config, &refusals, cold_bytes, change).scan_all();
            let scans = scans.map_err(|what| profile.error(&config, &what))?;
            Ok::<_, UsageError>(scans.into_iter().map(|scan| scan.totals).collect::<Vec<_>>())
        };
        let ranks: Vec<ScanTotals> = scan(None)?;
        let facts = profile.facts(&ranks.iter().collect::<Vec<_>>());
        check_content(&facts)?;
        let change = profile.plan_change(&config)?;
        let changed = change.as_ref().map(|change| scan(Some(change))).transpose()?.map(combine_totals);
        let sums = VariantTotals { unchanged: combine_totals(ranks), changed };
        let space_bytes = sums.required_space_bytes(&config, &profile.head);
        let data_bytes = sums.data_bytes(&config, cold_bytes)?;
        let omissions = sums.omissions_by_backend(&config);
        let text = plan_text::plan_text(&config, &facts, change.as_ref(), &omissions, [space_bytes, data_bytes]);
        publish_once(text.as_bytes())?;
        return Ok(Exit::Ok);
    }
    start::run_under_mpi(|universe, world| {
        let config = start::broadcast_from_root(world, "configuration", || configuration(args))?;
        run_measurement(universe, world, &config, args)
    })
}

fn configuration(args: &ReplayArgs) -> Result<ReplayConfig, UsageError> {
    args.config(&backend_capabilities(), |name| driver(name).is_some_and(|row| row.replay.is_some()))
}

/// The profile without its calls.
struct OpenProfile {
    head: ProfileHead,
    layouts: TypeLayouts,
    relocation: MemoryRelocation,
    /// The calls of a workload written by hand, completed by their order.
    derived: Option<DerivedCalls>,
}

/// The text of a workload written by hand, completed by what follows from the order of its calls; None for a recording.
fn derive_order(config: &ReplayConfig) -> Result<Option<String>, UsageError> {
    let text = beff_trace::workload::derive_order(&config.profile).map_err(|e| profile_error(e.to_string()))?;
    Ok(text.map(|text| String::from_utf8_lossy(&text).into_owned()))
}

fn store_derived(text: Option<&str>) -> Result<Option<DerivedCalls>, UsageError> {
    let stored = text.map(|text| DerivedCalls::store(text.as_bytes())).transpose();
    stored.map_err(|e| {
        UsageError::new(
            format!("the calls of the workload cannot be stored in a temporary file: {e}"),
            "Set TMPDIR to a directory with free space.",
        )
    })
}

impl OpenProfile {
    fn open(config: &ReplayConfig) -> Result<Self, UsageError> {
        // Opening a pipe would block until a writer opens it, and all ranks read the profile several times. A missing file is reported
        // below.
        if config.profile.metadata().is_ok_and(|m| !m.is_file() && !m.is_dir()) {
            return Err(UsageError::new(
                format!("{} is a pipe or a device; every rank reads a profile several times", config.profile.display()),
                "Write it to a file first.",
            ));
        }
        let mut head = read_head(&config.profile).map_err(|e| {
            let (all, next) = (e.to_string(), e.next_step());
            let what = all.strip_suffix(next).unwrap_or(&all).trim_end_matches("; ").to_owned();
            UsageError::new(what, format!("{next}. No file was created, nothing was measured."))
        })?;
        let layouts = |head: &ProfileHead| {
            TypeLayouts::for_library(&head.types, &head.library).map_err(|e| {
                let next =
                    "Correct that `type` line, or those it refers to. No file was created, nothing was measured.";
                UsageError::new(format!("{}: {e}", config.profile.display()), next)
            })
        };
        let recorded = layouts(&head)?;
        let relocation = MemoryRelocation::add_types(&mut head.types, &recorded);
        let layouts = if relocation.is_empty() { recorded } else { layouts(&head)? };
        Ok(Self { head, layouts, relocation, derived: None })
    }

    fn scan_input<'a>(
        &'a self,
        config: &'a ReplayConfig,
        refusals: &'a [ReplaySupport],
        cold_bytes: u64,
        change: Option<&'a CallChange>,
    ) -> ScanInput<'a> {
        let (source, verify) = (CallSource { path: self.calls_path(config), change }, config.verify);
        let Self { head, layouts, relocation, .. } = self;
        ScanInput { source, head, layouts, relocation, support: refusals, cold_bytes, verify }
    }

    /// The change of the calls that the configuration requests.
    fn plan_change(&self, config: &ReplayConfig) -> Result<Option<CallChange>, UsageError> {
        let plan = |change| what_if::plan_change(change, self.calls_path(config), (&self.head, &self.layouts));
        Ok(config.what_if.as_ref().map(plan).transpose()?.flatten())
    }

    /// The file of the calls.
    fn calls_path<'a>(&'a self, config: &'a ReplayConfig) -> &'a Path {
        self.derived.as_ref().map_or(&config.profile, DerivedCalls::path)
    }

    /// An error in the calls, under the name of the profile.
    fn error(&self, config: &ReplayConfig, what: &str) -> UsageError {
        let [read, named] = [self.calls_path(config), &config.profile].map(|path| path.display().to_string());
        profile_error(what.replace(&read, &named))
    }

    fn facts(&self, ranks: &[&ScanTotals]) -> ProfileFacts {
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
        let sum = |value: fn(&ScanTotals) -> u64| ranks.iter().map(|sums| value(sums)).sum::<u64>();
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
            ended: ended.into_iter().map(|(end, processes)| RecordingEnd { end: end.to_owned(), processes }).collect(),
            threads: ranks.iter().map(|sums| sums.threads).max().unwrap_or(0),
            files: head.files.iter().map(file).collect(),
            calls: sum(|s| s.calls),
            data_calls: sum(|s| s.data_calls),
            read_bytes: sum(|s| s.read_bytes),
            written_bytes: sum(|s| s.written_bytes),
            span_seconds: last.saturating_sub(first) as f64 * 1e-9,
            storage_read_bytes: storage(0),
            storage_written_bytes: storage(1),
            calls_discarded: sum(|s| s.calls_discarded),
            orderings: sum(|s| s.orderings),
            orderings_lost: sum(|s| s.orderings_lost),
        }
    }
}

fn profile_error(what: String) -> UsageError {
    UsageError::new(
        what,
        "No file was created, nothing was measured. `beff-raw profile show FILE` shows the content of a profile.",
    )
}

fn combine_totals(ranks: impl IntoIterator<Item = ScanTotals>) -> ScanTotals {
    let mut all = ScanTotals::default();
    for rank in ranks {
        all.calls += rank.calls;
        all.written_bytes = all.written_bytes.max(rank.written_bytes);
        all.below_bytes = all.below_bytes.max(rank.below_bytes);
        all.above_bytes = all.above_bytes.max(rank.above_bytes);
        all.landing_bytes = all.landing_bytes.max(rank.landing_bytes);
        all.placed_bytes = all.placed_bytes.max(rank.placed_bytes);
        all.strewn_bytes = all.strewn_bytes.max(rank.strewn_bytes);
        for (file, extents) in rank.extents {
            all.extents.entry(file).or_default().merge(&extents);
        }
        for (file, gaps) in rank.gaps {
            all.gaps.entry(file).or_default().merge(&gaps);
        }
        all.omissions.resize(all.omissions.len().max(rank.omissions.len()), Vec::new());
        all.omissions.iter_mut().zip(rank.omissions).for_each(|(all, own)| all.extend(own));
    }
    all.omissions = all.omissions.into_iter().map(merge_by_function).collect();
    all
}

fn storing_backends(config: &ReplayConfig) -> u64 {
    let stores = |name: &&String| driver(config.backend_of(name)).is_some_and(|row| row.uses_space);
    config.backends.iter().filter(stores).count() as u64
}

/// Totals of the calls, and of the changed ones.
struct VariantTotals {
    unchanged: ScanTotals,
    changed: Option<ScanTotals>,
}

impl VariantTotals {
    fn of<'a>(&'a self, config: &ReplayConfig, name: &str) -> &'a ScanTotals {
        self.changed.as_ref().filter(|_| config.change_of(name).is_some()).unwrap_or(&self.unchanged)
    }

    fn all(&self) -> impl Iterator<Item = &ScanTotals> {
        [&self.unchanged].into_iter().chain(&self.changed)
    }

    fn omissions_by_backend(&self, config: &ReplayConfig) -> Vec<BackendOmissions> {
        let omitted = |(n, name): (usize, &String)| {
            let omitted = self.of(config, name).omissions.get(n).cloned().unwrap_or_default();
            BackendOmissions { backend: name.clone(), omitted }
        };
        config.backends.iter().enumerate().map(omitted).collect()
    }

    fn required_space_bytes(&self, config: &ReplayConfig, head: &ProfileHead) -> u64 {
        self.all().map(|sums| required_space_bytes(config, head, sums)).max().unwrap_or(0)
    }

    fn data_bytes(&self, config: &ReplayConfig, cold_bytes: u64) -> Result<u64, UsageError> {
        self.all().try_fold(0, |most, sums| Ok(data_bytes(config, sums, cold_bytes)?.max(most)))
    }
}

fn required_space_bytes(config: &ReplayConfig, head: &ProfileHead, sums: &ScanTotals) -> u64 {
    let of_file = |(n, file): (usize, &beff_trace::OpenedFile)| {
        let initial_bytes = file.size_bytes.unwrap_or(0);
        sums.extents.get(&(n as u32)).map_or(initial_bytes, |extents| extents.required_bytes(initial_bytes))
    };
    let one = head.files.iter().enumerate().map(of_file).fold(0, u64::saturating_add);
    let storing = storing_backends(config);
    one.saturating_mul(if config.keep_files { storing } else { storing.min(1) })
}

fn data_bytes(config: &ReplayConfig, sums: &ScanTotals, cold_bytes: u64) -> Result<u64, UsageError> {
    let sources = sums.sources(config.seed, cold_bytes);
    let bytes =
        sources.and_then(|sources| sources.bytes().checked_add(sums.landing_bytes.saturating_add(sums.placed_bytes)));
    let profile = config.profile.display();
    bytes.ok_or_else(|| profile_error(format!("{profile}: the data of a call needs more memory than can be counted")))
}

/// The calls of this rank, and the changed ones.
struct PreparedCalls {
    scan: Option<RankScan>,
    change: Option<CallChange>,
    changed_scan: Option<RankScan>,
    sums: VariantTotals,
}

impl PreparedCalls {
    /// Both; None for a rank without calls.
    fn variants<'a>(&'a self, path: &'a Path) -> Option<(ReplayVariant<'a>, Option<ReplayVariant<'a>>)> {
        let variant = |change, scan, combined_totals| {
            let source = CallSource { path, change };
            ReplayVariant { source, scan, combined_totals }
        };
        let changed = self.changed_scan.as_ref().zip(self.sums.changed.as_ref());
        let changed = changed.map(|(scan, sums)| variant(self.change.as_ref(), scan, sums));
        Some((variant(None, self.scan.as_ref()?, &self.sums.unchanged), changed))
    }
}

/// Results of the preparation, equal on all ranks except for the calls of each.
struct RunPreparation {
    survey: Survey,
    profile: OpenProfile,
    storage: StorageRecord,
    /// The recorded ranks; None on all others.
    active: Option<Comm>,
    calls: PreparedCalls,
    facts: ProfileFacts,
    cold_bytes: u64,
    data_bytes: u64,
    space_bytes: u64,
}

/// Reads the profile and determines the needs of its calls. Collective.
fn prepare_run(world: &Comm, config: &ReplayConfig) -> Result<RunPreparation, CommandError> {
    let survey = bind_and_survey(world, config.bind)?;
    let mut profile = start::collective_step(world, "profile", || {
        let profile = OpenProfile::open(config)?;
        check_ranks(world.size(), &profile.head, config)?;
        Ok(profile)
    })?;
    let derived = start::broadcast_from_root(world, "order", || derive_order(config))?;
    profile.derived = start::collective_step(world, "derived calls", || Ok(store_derived(derived.as_deref())?))?;
    let storage = start::survey_storage(world, &config.path)?;
    let refusals = replay_support(config);
    let cold_bytes = cache_cold_bytes(survey.cache_share_bytes, survey.memory_per_rank_bytes);
    let active = world.prefix(profile.head.processes.len() as u64)?;
    let scan = |change| {
        let input = profile.scan_input(config, &refusals, cold_bytes, change);
        let looked = match &active {
            Some(comm) => input.scan_collectively(comm)?.map(Some),
            None => Ok(None),
        };
        // All recorded ranks have the same result; the other ranks receive it here.
        let scan =
            start::collective_step(world, "calls", || Ok(looked.map_err(|(_, what)| profile.error(config, &what))?))?;
        let own = scan.as_ref().map(|scan| scan.totals.clone());
        let packed = world.gather_bytes(&serde_json::to_vec(&own)?)?;
        let totals = packed.iter().filter_map(|bytes| serde_json::from_slice(bytes).ok().flatten());
        Ok::<_, CommandError>((scan, totals.collect::<Vec<ScanTotals>>()))
    };
    let (own_scan, all) = scan(None)?;
    let (facts, unchanged) = start::broadcast_from_root(world, "sums", || {
        let facts = profile.facts(&all.iter().collect::<Vec<_>>());
        check_content(&facts)?;
        Ok((facts, combine_totals(all)))
    })?;
    let change = start::broadcast_from_root(world, "change", || profile.plan_change(config))?;
    let (changed_scan, changed) = match &change {
        Some(change) => {
            let (scan, all) = scan(Some(change))?;
            (scan, Some(start::broadcast_from_root(world, "changed sums", || Ok(combine_totals(all)))?))
        }
        None => (None, None),
    };
    let sums = VariantTotals { unchanged, changed };
    let (data_bytes, space_bytes) = start::collective_step(world, "plan", || {
        let data_bytes = sums.data_bytes(config, cold_bytes)?;
        let space_bytes = sums.required_space_bytes(config, &profile.head);
        check_memory(data_bytes, &survey)?;
        check_space(space_bytes, config, &storage)?;
        Ok((data_bytes, space_bytes))
    })?;
    Ok(RunPreparation {
        survey,
        profile,
        storage,
        active,
        calls: PreparedCalls { scan: own_scan, change, changed_scan, sums },
        facts,
        cold_bytes,
        data_bytes,
        space_bytes,
    })
}

/// Tries direct I/O and queries the storage sheet, where the files will be. Collective.
fn examine_storage(
    world: &Comm,
    config: &ReplayConfig,
    run_dir: &mut RunDir,
    storage: &mut StorageRecord,
    survey: &Survey,
) -> Result<(), CommandError> {
    let may_be_direct = config.direct.first_direct(&config.backends);
    directory::try_direct_io(world, run_dir, storage, may_be_direct, config.dio_align_bytes)?;
    let parameters = (config.backends.as_slice(), config.storage.as_slice());
    directory::query_storage_sheet(world, run_dir, storage, parameters, &survey.hosts)
}

fn run_title(world: &Comm, config: &ReplayConfig) -> RunTitle {
    RunTitle::new(format!("replay on {} ranks", world.size()), &config.backends, Some(&config.path))
}

fn run_measurement(
    universe: &Universe,
    world: &Comm,
    config: &ReplayConfig,
    args: &ReplayArgs,
) -> Result<Exit, CommandError> {
    let RunPreparation { survey, profile, mut storage, active, calls, facts, cold_bytes, data_bytes, space_bytes } =
        prepare_run(world, config)?;
    let omissions = calls.sums.omissions_by_backend(config);
    let MeasurementSetup { costs, interrupt, time_limit, machine } =
        start::prepare_measurement(universe, world, &survey, (false, config.time_limit))?;
    let progress = start::open_progress(world, &args.output.progress, || run_title(world, config))?;
    let outputs = start::open_outputs(world, config.out.as_deref(), &SUFFIXES.map(str::to_owned))?;
    let (mut run_dir, outputs) =
        directory::create_run_directory(world, &config.path, config.run_dir.as_deref(), &config.backends, outputs)?;
    examine_storage(world, config, &mut run_dir, &mut storage, &survey)?;
    let announcement = announcement(config, (&facts, time_limit.as_ref()), calls.change.as_ref(), &omissions);
    let interrupt = interrupt.share_limit(world)?;
    let (span, fs_type) = (Duration::try_from_secs_f64(facts.span_seconds), storage.fs_type.clone());
    let collector = machine.map(|machine| {
        let setup = ReplaySetup {
            machine,
            storage,
            run_dir: run_dir.path().display().to_string(),
            profile: facts,
            omissions,
            space_bytes,
            data_bytes,
            clock_resolution_ns: costs.clock_resolution_ns,
            clock_read_ns: costs.clock_read_ns,
            barrier_ns: costs.barrier_ns,
        };
        ResultCollector::new(ReplayResult::new(config.clone(), setup), outputs, progress).with_time_limit(time_limit)
    });
    start::announce_run(world, &args.output.progress, config.out.as_deref(), || announcement);
    let work = |observer: &mut dyn RunObserver<ReplayLine>| {
        let options = |name: &str| driver_options(config, &run_dir, name);
        let not_run = start::skip_unavailable_backends(world, &run_dir, &config.backends_to_check(), options)?;
        let ending = match active.as_ref().zip(calls.variants(profile.calls_path(config))) {
            Some((comm, (unchanged, changed))) => {
                let means = ExecutionContext {
                    comm,
                    config,
                    unchanged,
                    changed,
                    head: &profile.head,
                    layouts: &profile.layouts,
                    relocation: &profile.relocation,
                    cold_bytes,
                    run_dir: &run_dir,
                    not_run: &not_run,
                    fs_type: &fs_type,
                    span: span.unwrap_or_default(),
                    interrupt: &interrupt,
                    print: print_diagnostic,
                    terminate: |stuck, run_dir| exit_process(report_abort(stuck, run_dir)),
                };
                execute(&means, observer).unwrap_or_else(|stuck| abort_run(&stuck, &run_dir))
            }
            None => ReplayEnding::default(),
        };
        world.idle_barrier()?; // with the ranks beyond the recorded ones
        Ok(ReplayEnding { outcome: outcome_from_root(world, ending.outcome)?, ..ending })
    };
    let files = MeasuredFiles { run_dir: &run_dir, keep: config.keep_files };
    measure_and_report(world, Some(files), collector, work, |result, derived, place| {
        result.sheet(derived, DetailLevel::of(args.output.full || args.output.detail.is_some(), false), place).into()
    })
}

fn outcome_from_root(
    world: &Comm,
    mine: crate::frame::records::RunOutcome,
) -> Result<crate::frame::records::RunOutcome, CommandError> {
    let bytes = world.bcast_bytes(serde_json::to_vec(&mine)?, 0)?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// Ends all ranks: others may wait in a call that this rank will never issue.
fn abort_run(stuck: &ReplayAbort, run_dir: &RunDir) -> ReplayEnding {
    let code = report_abort(stuck, run_dir);
    beff_ffi::universe::abort(code);
    std::process::exit(code)
}

/// Removes the files, reports why the run ends, and returns the exit code.
fn report_abort(stuck: &ReplayAbort, run_dir: &RunDir) -> i32 {
    let left = run_dir
        .remove()
        .err()
        .map_or_else(String::new, |error| format!("; files in {} remain: {error}", run_dir.current_path()));
    print_diagnostic(&format!("{stuck}. Earlier measurements are in the journal of --out{left}"));
    let exit = if matches!(stuck, ReplayAbort::Interrupted) { Exit::Interrupted } else { Exit::Failure };
    // Launchers kill all processes at an abort and discard output that they have not read.
    std::thread::sleep(LAST_MESSAGE_DELAY);
    i32::from(exit.code())
}

fn check_ranks(ranks: u64, head: &ProfileHead, config: &ReplayConfig) -> Result<(), UsageError> {
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
    if facts.calls > 0 {
        return Ok(());
    }
    let ends: Vec<String> =
        facts.ended.iter().map(|e| format!("{} {}", count(e.processes, "process"), e.end)).collect();
    Err(UsageError::new(
        format!(
            "the profile has no call on a file: {} in all, {} ({})",
            count(facts.calls, "call"),
            count(facts.files.len() as u64, "file"),
            ends.join(", ")
        ),
        "Record the program during its I/O; `beff-raw profile show FILE` shows the content of a profile.",
    ))
}

/// Refuses data that needs more than three quarters of the memory of a rank. Equal on all ranks.
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

fn check_space(needed: u64, config: &ReplayConfig, storage: &StorageRecord) -> Result<(), UsageError> {
    if needed <= storage.free_bytes {
        return Ok(());
    }
    let kept = if config.keep_files { " or omit --keep-files" } else { "" };
    Err(UsageError::new(
        format!(
            "the files of the profile need up to {}; only {} are free under {}",
            format_size(needed),
            format_size(storage.free_bytes),
            storage.path
        ),
        format!("Choose another --path with enough space{kept}."),
    ))
}

/// Text before the run: its size, and omitted calls.
fn announcement(
    config: &ReplayConfig,
    (facts, time_limit): (&ProfileFacts, Option<&TimeLimitRecord>),
    change: Option<&CallChange>,
    leavings: &[BackendOmissions],
) -> String {
    let mut text = format!(
        "replaying {} of {}, {}: {}",
        count(facts.calls, "call"),
        count(facts.processes, "process"),
        match facts.is_handwritten() {
            true => "written by hand".to_owned(),
            false => format!("recorded in {}", format_seconds(facts.span_seconds)),
        },
        repetitions_text(config.repeat, config.verify && storing_backends(config) > 0)
    ) + &time_limit::announcement(time_limit);
    if let Some(change) = change {
        text.push_str(&format!("\n  what-if: {}", change.text()));
    }
    for BackendOmissions { backend, omitted: left_out } in leavings {
        for l in left_out {
            text.push_str(&format!("\n  {backend} omits {} of {}: {}", count(l.calls, "call"), l.function, l.reason));
        }
    }
    if facts.calls_discarded > 0 {
        text.push_str(&format!(
            "\n  {} not replayed: they follow a collective call that other ranks never made",
            count(facts.calls_discarded, "call")
        ));
    }
    text
}
