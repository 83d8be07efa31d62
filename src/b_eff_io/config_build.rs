//! Builds the configuration from the options; every combination that cannot be run is rejected here, with its cause and an alternative.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::Path;

use super::cli::{IoArgs, MeasureArgs, PlanArgs, RewriteScope, RunArgs, TransferArgs};
use crate::b_eff_io::config::{
    BufferPolicy, CollectivePolicy, Config, ExchangePolicy, InjectedFault, Partitions, PreallocatePolicy, Release,
    RepeatPolicy, SpaceLimit, Variant,
};
use crate::b_eff_io::hints::{self as rules, HintRule};
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::plan::repetitions::MIN_REPEATED_SECONDS;
use crate::b_eff_io::plan::schedule::bounds_overruns;
use crate::b_eff_io::requirements::{self, Requirement};
use crate::b_eff_io::settings::EffectiveSettings;
use crate::b_eff_io::variants;
use crate::frame::benchmark::default_options;
use crate::frame::checks::{
    backend_names, backends, check_dio_align, check_direct, check_option_effect, check_out, check_run_dir, join,
    no_effect, storage_parameters, BackendCapabilities,
};
use crate::frame::config::{BindPolicy, CachePolicy, DirectPolicy};
use crate::frame::error::UsageError;
use crate::frame::hints;
use crate::frame::input::{self, requirements_error, requirements_text};
use crate::frame::values::NULL_BACKEND;
use crate::frame::variants::{resolve, NamedVariant};

/// Shortest scheduled time, seconds. One time unit is T/192 (T/150 in release 2.1), below this a few milliseconds: less than a call and its
/// sync.
pub const MIN_TIME_SECONDS: f64 = 1.0;

/// Default share of the free space that a run may use, percent.
pub const DEFAULT_SPACE_PERCENT: f64 = 80.0;

/// Default number of rounds of each pattern with several backends.
pub const DEFAULT_ROUNDS: u32 = 8;

/// Domain sizes of two-phase transfers: from a page to one message.
const DOMAIN_BYTES: RangeInclusive<u64> = 4096..=1 << 30;

impl IoArgs {
    /// Configuration of this command line. Reads the hints file only.
    ///
    /// # Errors
    /// The first invalid option or combination.
    pub fn config(&self, known: &[BackendCapabilities<'_>]) -> Result<Config, UsageError> {
        let config = self.config_of_trials(known)?;
        check_reference(&config.types)?;
        Ok(config)
    }

    /// The same for trials, whose number of calls does not derive from other types.
    ///
    /// # Errors
    /// The first invalid option or combination.
    pub fn config_of_trials(&self, known: &[BackendCapabilities<'_>]) -> Result<Config, UsageError> {
        build(&self.measure, &self.transfer, &self.run, &EffectiveSettings::of(&self.set), known)
    }
}

impl PlanArgs {
    /// Configuration of the plan; checks the number of ranks, too.
    ///
    /// # Errors
    /// The first invalid option or combination.
    pub fn config(&self, known: &[BackendCapabilities<'_>]) -> Result<Config, UsageError> {
        let config =
            build(&self.measure, &self.transfer, &default_options()?, &EffectiveSettings::of(&self.set), known)?;
        check_reference(&config.types)?;
        check_ranks(&config, self.ranks)?;
        Ok(config)
    }
}

/// Rejects partitions that exceed the number of ranks.
///
/// # Errors
/// The first such partition.
pub fn check_ranks(config: &Config, ranks: u64) -> Result<(), UsageError> {
    let Partitions::List(sizes) = &config.partitions else { return Ok(()) };
    sizes.iter().find(|size| **size > ranks).map_or(Ok(()), |size| {
        Err(UsageError::new(
            format!("--partitions: a partition of {size} ranks does not fit into {ranks}"),
            format!("Start at least {size} ranks, or omit this size."),
        ))
    })
}

fn build(
    measure: &MeasureArgs,
    way: &TransferArgs,
    run: &RunArgs,
    set: &EffectiveSettings,
    known: &[BackendCapabilities<'_>],
) -> Result<Config, UsageError> {
    let chosen = backends(&measure.backend, known)?;
    let variants = build_variants(measure, way, run, set, known)?;
    let types = pattern_types(&measure.types)?;
    check_access(&types, way, run, set, &chosen, known)?;
    check_alignment(way, run, &variants, &chosen, known)?;
    check_type_options(set, &types, &chosen, known)?;
    check_measurement(measure, way, run, set, &types)?;
    let (inject, inject_at) = run.faults.requested();
    let (default_partitions, default_rewrite) = release_defaults(measure.release);
    Ok(Config {
        release: measure.release,
        strict: measure.strict,
        time_seconds: measure.time,
        time_limit: measure.limit.time_limit,
        backends: measure.backend.iter().chain(variants.iter().map(|variant| &variant.backend)).cloned().collect(),
        variants,
        path: measure.path.clone(),
        run_dir: run.run_dir.clone(),
        keep_files: run.keep_files,
        files_per_directory: measure.files_per_directory,
        out: run.out.clone(),
        partitions: measure.partitions.clone().unwrap_or(default_partitions),
        types,
        full_rewrite: measure.rewrite.unwrap_or(default_rewrite) == RewriteScope::All,
        shared_pointer: set.shared_pointer,
        connection_setup: set.connection_setup.unwrap_or(!measure.strict && measure.release != Release::R2_1),
        memory_per_process_bytes: measure.memory_per_process,
        space_limit: measure.space.unwrap_or(SpaceLimit::Percent(DEFAULT_SPACE_PERCENT)),
        segment_multiple_bytes: set.segment_multiple_bytes,
        termination: measure.termination,
        verify: run.verify,
        on_corruption: run.on_corruption,
        direct: way.direct,
        dio_align_bytes: run.alignment.dio_align,
        storage: storage_parameters(&measure.sheet)?,
        stripe: measure.sheet.stripe,
        queue_depth: way.depth,
        cache: run.cache,
        collective: way.collective,
        aggregators: way.aggregators,
        domain_bytes: way.domain,
        exchange: set.exchange,
        preallocate: set.preallocate.unwrap_or(run.preallocate),
        buffers: way.buffers,
        rounds: measure.rounds.unwrap_or(if contestants(measure, way) > 1 { DEFAULT_ROUNDS } else { 1 }),
        repeat: measure.repeat.unwrap_or(default_repeat(measure, way)),
        until_percent: run.until,
        orders: measure.order.clone(),
        mix: measure.mix,
        latency: run.latency,
        bind: run.ranks.policy(BindPolicy::Auto),
        unique_open: set.unique_open,
        hints: hint_rules(run)?,
        rmax_gflops: run.rmax,
        requirements: requirements(measure)?,
        seed: run.seed,
        inject,
        inject_at,
    })
}

/// Checks the options that do not depend on backends.
fn check_measurement(
    measure: &MeasureArgs,
    way: &TransferArgs,
    run: &RunArgs,
    set: &EffectiveSettings,
    types: &[PatternType],
) -> Result<(), UsageError> {
    check_buffers(way, run)?;
    check_rounds(measure, way)?;
    check_orders(measure, types)?;
    check_until(measure, way, run)?;
    check_schedule(measure)?;
    check_sizes(measure, set)?;
    check_names(run)
}

fn release_defaults(release: Release) -> (Partitions, RewriteScope) {
    if release == Release::R2_1 {
        (Partitions::SmallMediumAll, RewriteScope::Scatter)
    } else {
        (Partitions::All, RewriteScope::All)
    }
}

/// The variants, each checked as if its options were those of a run with its backend alone.
fn build_variants(
    measure: &MeasureArgs,
    way: &TransferArgs,
    run: &RunArgs,
    set: &EffectiveSettings,
    known: &[BackendCapabilities<'_>],
) -> Result<Vec<Variant>, UsageError> {
    let types = pattern_types(&measure.types)?;
    let build = |named: &NamedVariant| {
        let variant = variants::variant(named)?;
        let chosen = backends(std::slice::from_ref(&named.backend), known)?;
        let (way, run) = variants::own_arguments(&variant, way, run, chosen.iter().any(|backend| backend.two_phase));
        let set = EffectiveSettings { exchange: ExchangePolicy::Auto, preallocate: None, unique_open: false, ..*set };
        check_access(&types, &way, &run, &set, &chosen, known)
            .map_err(|error| named.refused(&error.cause, error.next_step))?;
        Ok(variant)
    };
    resolve(&way.variant, &measure.backend)?.iter().map(build).collect()
}

/// Checks the options that a variant may have, too.
fn check_access(
    types: &[PatternType],
    way: &TransferArgs,
    run: &RunArgs,
    set: &EffectiveSettings,
    chosen: &[BackendCapabilities<'_>],
    known: &[BackendCapabilities<'_>],
) -> Result<(), UsageError> {
    check_options_have_effect(way, run, set, chosen, known)?;
    check_two_phase(types, way, set, chosen, known)?;
    check_cache(way, run, chosen, known)?;
    check_preallocate(way, run, set, chosen, known)
}

/// `--dio-align` may be for a variant alone.
fn check_alignment(
    way: &TransferArgs,
    run: &RunArgs,
    variants: &[Variant],
    chosen: &[BackendCapabilities<'_>],
    known: &[BackendCapabilities<'_>],
) -> Result<(), UsageError> {
    let may_be_direct = |variant: &Variant| variant.direct.is_some_and(|policy| policy != DirectPolicy::Off);
    let given = run.alignment.dio_align.filter(|_| !variants.iter().any(may_be_direct));
    check_dio_align(given, way.direct, chosen, known)
}

/// Number of backends and variants.
fn contestants(measure: &MeasureArgs, way: &TransferArgs) -> usize {
    measure.backend.len() + way.variant.len()
}

/// Number of backends and variants that can be compared.
fn compared_contestants(measure: &MeasureArgs, way: &TransferArgs) -> usize {
    measure.backend.iter().filter(|name| *name != NULL_BACKEND).count() + way.variant.len()
}

/// `--repeat rounds` needs two backends to compare.
fn check_rounds(measure: &MeasureArgs, way: &TransferArgs) -> Result<(), UsageError> {
    if measure.repeat != Some(RepeatPolicy::Rounds) || compared_contestants(measure, way) > 1 {
        return Ok(());
    }
    Err(UsageError::new(
        "--repeat rounds has no effect: there are no two backends to compare",
        "Add backends, e.g. --backend posix,uring, or use --repeat auto for confidence intervals of one backend.",
    ))
}

/// `--order` and `--mix` need a type whose chunks have offsets of their own, and each order once.
fn check_orders(measure: &MeasureArgs, types: &[PatternType]) -> Result<(), UsageError> {
    check_types_use(!measure.order.is_empty(), "--order", types, PatternType::has_orders)?;
    check_types_use(measure.mix.is_some(), "--mix", types, PatternType::has_orders)?;
    let twice = measure.order.iter().enumerate().find(|(at, order)| measure.order[..*at].contains(order));
    twice.map_or(Ok(()), |(_, order)| {
        Err(UsageError::new(format!("--order: {} is listed twice", order.name()), "List each order once."))
    })
}

/// T, and `--strict`: the program of release 2.1 bounds no overruns.
fn check_schedule(measure: &MeasureArgs) -> Result<(), UsageError> {
    check_time(measure.time)?;
    if !measure.strict || bounds_overruns(measure.release, false) {
        return Ok(());
    }
    Err(UsageError::new(
        format!(
            "--strict has no effect with --release {}: it has neither time guard nor deductions",
            measure.release.name()
        ),
        "Omit it.",
    ))
}

/// Comparing several backends needs rounds, and each backend has its own T: a run ends when all patterns have enough rounds.
fn default_repeat(measure: &MeasureArgs, way: &TransferArgs) -> RepeatPolicy {
    match (contestants(measure, way), compared_contestants(measure, way)) {
        _ if measure.time < MIN_REPEATED_SECONDS => RepeatPolicy::Off,
        (1, 1) => RepeatPolicy::Auto,
        (_, 2..) => RepeatPolicy::Rounds,
        _ => RepeatPolicy::Off,
    }
}

/// `--until` needs repetitions and a b_eff_io, whose confidence interval it limits.
fn check_until(measure: &MeasureArgs, way: &TransferArgs, run: &RunArgs) -> Result<(), UsageError> {
    let Some(percent) = run.until else { return Ok(()) };
    if measure.repeat.unwrap_or(default_repeat(measure, way)) != RepeatPolicy::Auto {
        return Err(UsageError::new(
            format!("--until {percent}% has no effect: there are no repetitions for a confidence interval of b_eff_io"),
            "Add --repeat auto, or omit it.",
        ));
    }
    let all_rewritten = measure.release == Release::R2_1 || measure.rewrite != Some(RewriteScope::Scatter);
    if measure.types.len() < PatternType::COUNT
        || !all_rewritten
        || measure.backend.iter().all(|name| name == NULL_BACKEND)
    {
        return Err(UsageError::new(
            format!("--until {percent}% has no effect: there will be no b_eff_io, which needs all types, all rewrites and a backend that \
                     moves data"),
            "Omit it, or run all of them.",
        ));
    }
    Ok(())
}

fn check_options_have_effect(
    way: &TransferArgs,
    run: &RunArgs,
    set: &EffectiveSettings,
    chosen: &[BackendCapabilities<'_>],
    known: &[BackendCapabilities<'_>],
) -> Result<(), UsageError> {
    check_direct(way.direct, chosen, known)?;
    check_option_effect(run.hints.is_some(), "--hints", chosen, known, |backend| backend.mpi)?;
    check_option_effect(!run.hint.is_empty(), "--hint", chosen, known, |backend| backend.mpi)?;
    check_option_effect(set.unique_open, "--set unique-open", chosen, known, |backend| backend.mpi)?;
    check_option_effect(way.depth.is_some(), "--depth", chosen, known, |backend| backend.queue)
}

fn check_types_use(
    given: bool,
    option: &str,
    types: &[PatternType],
    is_about: impl Fn(PatternType) -> bool,
) -> Result<(), UsageError> {
    if !given || types.iter().any(|t| is_about(*t)) {
        return Ok(());
    }
    let about = PatternType::ALL.into_iter().filter(|t| is_about(*t));
    Err(UsageError::new(
        format!("{option} has no effect with --types {}", list_types(types)),
        format!("Omit it, or add a type that uses it: {}.", join(about)),
    ))
}

fn check_type_options(
    set: &EffectiveSettings,
    types: &[PatternType],
    chosen: &[BackendCapabilities<'_>],
    known: &[BackendCapabilities<'_>],
) -> Result<(), UsageError> {
    check_types_use(!set.shared_pointer, "--set shared-pointer", types, |t| t.uses_shared_pointer(true))?;
    // The other backends use the same offsets either way.
    check_option_effect(!set.shared_pointer, "--set shared-pointer", chosen, known, |backend| backend.shared_pointer)?;
    let is_other = set.segment_multiple_bytes != EffectiveSettings::default().segment_multiple_bytes;
    check_types_use(is_other, "--set segment-multiple", types, PatternType::has_segments)
}

/// Options of two-phase transfers need a backend that supports them, collective patterns, and a policy that permits such transfers.
fn check_two_phase(
    types: &[PatternType],
    way: &TransferArgs,
    set: &EffectiveSettings,
    chosen: &[BackendCapabilities<'_>],
    known: &[BackendCapabilities<'_>],
) -> Result<(), UsageError> {
    let shared =
        [(way.aggregators.is_some(), "--aggregators"), (set.exchange != ExchangePolicy::Auto, "--set exchange")];
    let about_them = shared.into_iter().chain([(way.domain.is_some(), "--domain")]);
    let policy = (way.collective != CollectivePolicy::Auto, "--collective");
    for (given, option) in about_them.clone().chain([policy]) {
        check_option_effect(given, option, chosen, known, |backend| backend.two_phase)?;
        check_types_use(given, option, types, PatternType::is_collective)?;
    }
    // In type 4 every rank accesses its own segment: there is no exchange.
    for (given, option) in shared {
        check_types_use(given, option, types, PatternType::is_strided)?;
    }
    let may_happen = |backend: &BackendCapabilities<'_>| match way.collective {
        _ if !backend.two_phase => false,
        CollectivePolicy::TwoPhase => true,
        CollectivePolicy::Auto => way.direct.of(backend.name) != DirectPolicy::Off,
        CollectivePolicy::Independent | CollectivePolicy::UnsafeReadModifyWrite => false,
    };
    let Some((_, option)) = about_them.into_iter().find(|(given, _)| *given) else { return Ok(()) };
    if !chosen.iter().any(may_happen) {
        return Err(UsageError::new(
            format!(
                "{option} has no effect: no transfer has two phases with these --backend, --direct and --collective"
            ),
            "Omit it, or add --collective two-phase, or --direct auto.",
        ));
    }
    check_domain(way.domain)
}

/// Smaller domains would be rounded up to four sectors, larger ones down to the size of one message.
fn check_domain(domain_bytes: Option<u64>) -> Result<(), UsageError> {
    let Some(bytes) = domain_bytes.filter(|bytes| !DOMAIN_BYTES.contains(bytes)) else { return Ok(()) };
    Err(UsageError::new(
        format!(
            "--domain {bytes}: an aggregator transfers {} to {} bytes in one step",
            DOMAIN_BYTES.start(),
            DOMAIN_BYTES.end()
        ),
        "Give a size between them, e.g. the striping unit of the file system.",
    ))
}

/// `--cache dontcache` is a property of the transfers: all backends must support it and use the page cache.
fn check_cache(
    way: &TransferArgs,
    run: &RunArgs,
    chosen: &[BackendCapabilities<'_>],
    known: &[BackendCapabilities<'_>],
) -> Result<(), UsageError> {
    if run.cache != CachePolicy::Dontcache {
        return Ok(());
    }
    let able = |backend: &BackendCapabilities<'_>| backend.drops_pages;
    let all_able = backend_names(known, able);
    // The null backend has no pages and is ignored.
    let unable = backend_names(chosen, |backend| !able(backend) && backend.name != NULL_BACKEND);
    if !unable.is_empty() {
        return Err(UsageError::new(
            format!("--cache dontcache: the transfers of {unable} cannot drop their pages"),
            format!("Use only backends that can ({}), or --cache drop.", all_able),
        ));
    }
    if !chosen.iter().any(able) {
        return Err(no_effect("--cache dontcache", chosen, &all_able));
    }
    if way.direct == DirectPolicy::Required {
        return Err(UsageError::new(
            "--cache dontcache: with --direct required no transfer uses the page cache",
            "Omit one of the two: --direct off uses dontcache, --direct required needs no --cache.",
        ));
    }
    Ok(())
}

/// Only direct writes are preallocated: blocks of buffered writes are allocated at write-back.
fn check_preallocate(
    way: &TransferArgs,
    run: &RunArgs,
    set: &EffectiveSettings,
    chosen: &[BackendCapabilities<'_>],
    known: &[BackendCapabilities<'_>],
) -> Result<(), UsageError> {
    let option = if set.preallocate.is_some() { "--set preallocate" } else { "--preallocate" };
    if set.preallocate.is_some() && run.preallocate != PreallocatePolicy::Auto {
        return Err(UsageError::new(
            "--preallocate and --set preallocate: only one preallocation policy is possible",
            "Omit one of the two.",
        ));
    }
    let given = set.preallocate.is_some() || run.preallocate != PreallocatePolicy::Auto;
    check_option_effect(given, option, chosen, known, |backend| backend.preallocates)?;
    let may_be_direct =
        |backend: &BackendCapabilities<'_>| backend.preallocates && way.direct.of(backend.name) != DirectPolicy::Off;
    if !given || chosen.iter().any(may_be_direct) {
        return Ok(());
    }
    Err(UsageError::new(
        format!("{option} has no effect: no write is direct with these --backend and --direct"),
        "Omit it, or add --direct auto.",
    ))
}

/// With one window all calls write the same data: swapped or misplaced chunks cannot be detected.
fn check_buffers(way: &TransferArgs, run: &RunArgs) -> Result<(), UsageError> {
    let moves = matches!(run.faults.requested().0, Some(InjectedFault::Swap | InjectedFault::Misplaced));
    if way.buffers == BufferPolicy::Cold || !moves {
        return Ok(());
    }
    Err(UsageError::new(
        "--buffers reused: all calls of a pattern write the same bytes, so misplaced data cannot be detected",
        "Use --buffers cold, or another --inject.",
    ))
}

fn check_names(run: &RunArgs) -> Result<(), UsageError> {
    run.run_dir.as_deref().map_or(Ok(()), check_run_dir)?;
    run.out.as_deref().map_or(Ok(()), check_out)
}

fn check_time(seconds: f64) -> Result<(), UsageError> {
    if seconds >= MIN_TIME_SECONDS && seconds.is_finite() {
        return Ok(());
    }
    Err(UsageError::new(
        format!("-T {seconds}: below {MIN_TIME_SECONDS} s no pattern gets its time: most have 1 to 4 of about 200 units of T"),
        "Give at least 1s; 60s for a quick test, 15m for a comparable value.",
    ))
}

/// Types if they exist and are listed in the order in which they run.
fn pattern_types(numbers: &[u8]) -> Result<Vec<PatternType>, UsageError> {
    let types: Result<Vec<PatternType>, String> = numbers.iter().map(|number| PatternType::try_from(*number)).collect();
    let types = types
        .map_err(|cause| UsageError::new(format!("--types: {cause}"), "Write a list such as 0,1,2,3,4 or 0,3."))?;
    let mut sorted = types.clone();
    sorted.sort_unstable();
    sorted.dedup();
    let instead = || format!("Write --types {}.", list_types(&sorted));
    let given = list_types(&types);
    if sorted.len() != types.len() {
        return Err(UsageError::new(format!("--types {given}: a type is listed twice"), instead()));
    }
    if sorted != types {
        return Err(UsageError::new(format!("--types {given}: the types always run in ascending order"), instead()));
    }
    Ok(types)
}

/// Rejects types 3 and 4 alone.
fn check_reference(types: &[PatternType]) -> Result<(), UsageError> {
    if !types.iter().all(|t| t.has_segments()) {
        return Ok(());
    }
    let given = list_types(types);
    Err(UsageError::new(
        format!("--types {given}: types 3 and 4 derive the sizes of their segments from types 0, 1 and 2"),
        format!("Add one of them, e.g. --types 2,{given}."),
    ))
}

/// In the syntax of `--types`.
fn list_types(types: &[PatternType]) -> String {
    join(types).replace(", ", ",")
}

/// Smaller values are assumed to lack a unit.
const MIN_MEMORY_BYTES: u64 = 1 << 20;

fn check_sizes(measure: &MeasureArgs, set: &EffectiveSettings) -> Result<(), UsageError> {
    let multiple = set.segment_multiple_bytes;
    if multiple == 0 || !multiple.is_multiple_of(8) {
        return Err(UsageError::new(
            format!("--set segment-multiple={multiple}: not a positive multiple of 8 bytes, the size of an element"),
            "Give the striping unit of the file system, e.g. 1M or 4M.",
        ));
    }
    if let Some(bytes) = measure.memory_per_process.filter(|bytes| *bytes < MIN_MEMORY_BYTES) {
        return Err(UsageError::new(
            format!("--memory-per-process {bytes}: the value is in bytes, and a rank needs at least 1M"),
            "Give the memory of one rank with its unit, e.g. 4G, or omit the option to have it detected.",
        ));
    }
    Ok(())
}

/// Hints of the file, then those of the command line, which override them.
fn hint_rules(run: &RunArgs) -> Result<Vec<HintRule>, UsageError> {
    let mut rules = run.hints.as_deref().map_or_else(|| Ok(Vec::new()), read_hints)?;
    rules.extend(run.hint.iter().map(|(key, value)| HintRule::everywhere(key, value)));
    hints::check_limits(rules.iter().map(|rule| (rule.key.as_str(), rule.value.as_str())))
        .map_err(|cause| UsageError::new(format!("--hint and --hints: {cause}"), "Omit some of them."))?;
    Ok(rules)
}

/// Reads the requirements of an acceptance.
fn requirements(measure: &MeasureArgs) -> Result<Vec<Requirement>, UsageError> {
    let Some(path) = &measure.acceptance.require else { return Ok(Vec::new()) };
    requirements::parse(&requirements_text(path)?).map_err(|error| requirements_error(path, &error.to_string()))
}

fn read_hints(path: &Path) -> Result<Vec<HintRule>, UsageError> {
    let format =
        "Lines are: <ranks|all> <access> <pattern type> <chunk size> <key> <value>; # in column 1 is a comment.";
    let text = input::read_text(path).map_err(|error| {
        UsageError::new(
            format!("--hints {}: cannot be read: {error}", path.display()),
            "Name a text file that every rank can read.",
        )
    })?;
    let refused = |error: &dyn Display| UsageError::new(format!("--hints {}: {error}", path.display()), format);
    let rules = rules::parse(&text).map_err(|error| refused(&error))?;
    hints::check_limits(rules.iter().map(|rule| (rule.key.as_str(), rule.value.as_str()))).map_err(|e| refused(&e))?;
    Ok(rules)
}

#[cfg(test)]
#[path = "config_build_tests.rs"]
mod tests;
