//! From what the user typed to what will run: every combination that cannot be run is refused here, with its cause and
//! what to type instead.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::Path;

use super::cli::{IoArgs, MeasureArgs, PlanArgs, Rewrite, RunArgs, WayArgs};
use crate::b_eff_io::config::{
    Buffers, CollectivePolicy, Config, ExchangePolicy, Inject, Partitions, PreallocatePolicy, Release, RepeatPolicy,
    SpaceLimit,
};
use crate::b_eff_io::hints::{self as rules, HintPlace, HintRule};
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::settings::Settings;
use crate::frame::benchmark::unsaid;
use crate::frame::checks::{
    backends, check_direct, check_effect, check_out, check_run_dir, join, names, no_effect, KnownBackend,
};
use crate::frame::config::{BindPolicy, CachePolicy, DirectPolicy};
use crate::frame::error::UsageError;
use crate::frame::hints;
use crate::frame::input;
use crate::frame::values::NULL_BACKEND;

/// Shortest scheduled time, seconds. One time unit is T/192 (T/150 in release 2.1): below this it is a few milliseconds,
/// less than a single call and its sync take.
pub const SHORTEST_TIME_SECONDS: f64 = 1.0;

/// Share of the free space that a run may take when nothing else is said, percent.
pub const DEFAULT_SPACE_PERCENT: f64 = 80.0;

/// Runs shorter than this are not measured again unless that is asked for: too little would come of it.
pub const LEAST_REPEATED_SECONDS: f64 = 10.0;

/// Rounds of each pattern when several backends take turns and nothing else is said.
pub const DEFAULT_ROUNDS: u32 = 8;

/// Domains of two-phase transfers: a page to one message.
const DOMAIN_BYTES: RangeInclusive<u64> = 4096..=1 << 30;

impl IoArgs {
    /// The configuration of this command line. Reads the hints file, touches nothing else.
    ///
    /// # Errors
    /// The first thing that cannot be run.
    pub fn config(&self, known: &[KnownBackend<'_>]) -> Result<Config, UsageError> {
        build(&self.measure, &self.way, &self.run, &Settings::of(&self.set), known)
    }
}

impl PlanArgs {
    /// The configuration that is planned, with the number of ranks checked too.
    ///
    /// # Errors
    /// The first thing that cannot be run.
    pub fn config(&self, known: &[KnownBackend<'_>]) -> Result<Config, UsageError> {
        let config = build(&self.measure, &self.way, &unsaid()?, &Settings::of(&self.set), known)?;
        check_ranks(&config, self.ranks)?;
        Ok(config)
    }
}

/// Refuses partitions that are larger than the number of ranks.
///
/// # Errors
/// The first such partition.
pub fn check_ranks(config: &Config, ranks: u64) -> Result<(), UsageError> {
    let Partitions::List(sizes) = &config.partitions else { return Ok(()) };
    sizes.iter().find(|size| **size > ranks).map_or(Ok(()), |size| {
        Err(UsageError::new(
            format!("--partitions: a partition of {size} ranks does not fit into {ranks}"),
            format!("Start at least {size} ranks, or leave this size out."),
        ))
    })
}

fn build(
    measure: &MeasureArgs,
    way: &WayArgs,
    run: &RunArgs,
    set: &Settings,
    known: &[KnownBackend<'_>],
) -> Result<Config, UsageError> {
    let chosen = backends(&measure.backend, known)?;
    check_options_have_effect(way, run, set, &chosen, known)?;
    let types = pattern_types(&measure.types)?;
    check_types_heed(set, &types, &chosen, known)?;
    check_two_phase(&types, way, set, &chosen, known)?;
    check_cache(way, run, &chosen, known)?;
    check_preallocate(way, run, set, &chosen, known)?;
    check_buffers(way, run)?;
    check_time(measure.time)?;
    check_rounds(measure, run)?;
    check_until(measure, run)?;
    check_sizes(measure, set)?;
    run.run_dir.as_deref().map_or(Ok(()), check_run_dir)?;
    run.out.as_deref().map_or(Ok(()), check_out)?;
    let (inject, inject_at) = run.damage.asked();
    let release_2_1 = measure.release == Release::R2_1;
    let default_partitions = if release_2_1 { Partitions::SmallMediumAll } else { Partitions::All };
    let default_rewrite = if release_2_1 { Rewrite::Scatter } else { Rewrite::All };
    Ok(Config {
        release: measure.release,
        time_seconds: measure.time,
        backends: measure.backend.clone(),
        path: measure.path.clone(),
        run_dir: run.run_dir.clone(),
        keep_files: run.keep_files,
        out: run.out.clone(),
        partitions: measure.partitions.clone().unwrap_or(default_partitions),
        types,
        full_rewrite: measure.rewrite.unwrap_or(default_rewrite) == Rewrite::All,
        shared_pointer: set.shared_pointer,
        memory_per_process_bytes: measure.memory_per_process,
        space_limit: measure.space.unwrap_or(SpaceLimit::Percent(DEFAULT_SPACE_PERCENT)),
        segment_multiple_bytes: set.segment_multiple_bytes,
        termination: measure.termination,
        verify: run.verify,
        direct: way.direct,
        queue_depth: way.depth,
        cache: run.cache,
        collective: way.collective,
        aggregators: way.aggregators,
        domain_bytes: way.domain,
        exchange: set.exchange,
        preallocate: set.preallocate.unwrap_or(run.preallocate),
        buffers: way.buffers,
        rounds: run.rounds.unwrap_or(if measure.backend.len() > 1 { DEFAULT_ROUNDS } else { 1 }),
        repeat: run.repeat.unwrap_or(default_repeat(measure)),
        until_percent: run.until,
        latency: run.latency,
        bind: run.ranks.policy(BindPolicy::Auto),
        unique_open: set.unique_open,
        hints: all_hints(run)?,
        seed: run.seed,
        inject,
        inject_at,
    })
}

/// Backends that can be compared.
fn rivals(measure: &MeasureArgs) -> usize {
    measure.backend.iter().filter(|name| *name != NULL_BACKEND).count()
}

/// `--repeat rounds` is about ratios of backends.
fn check_rounds(measure: &MeasureArgs, run: &RunArgs) -> Result<(), UsageError> {
    if run.repeat != Some(RepeatPolicy::Rounds) || rivals(measure) > 1 {
        return Ok(());
    }
    Err(UsageError::new(
        "--repeat rounds has no effect: there are no two backends to compare",
        "Add --backend posix,uring or the like, or say --repeat auto for intervals of one backend.",
    ))
}

/// Several backends are compared, which takes rounds, and each has a T of its own: a run ends when all patterns have enough of them.
fn default_repeat(measure: &MeasureArgs) -> RepeatPolicy {
    match (measure.backend.len(), rivals(measure)) {
        _ if measure.time < LEAST_REPEATED_SECONDS => RepeatPolicy::Off,
        (1, 1) => RepeatPolicy::Auto,
        (_, 2..) => RepeatPolicy::Rounds,
        _ => RepeatPolicy::Off,
    }
}

/// `--until` is about an interval of b_eff_io: there must be repeats, and a b_eff_io.
fn check_until(measure: &MeasureArgs, run: &RunArgs) -> Result<(), UsageError> {
    let Some(percent) = run.until else { return Ok(()) };
    if run.repeat.unwrap_or(default_repeat(measure)) != RepeatPolicy::Auto {
        return Err(UsageError::new(
            format!("--until {percent}% has no effect: nothing is measured again for an interval of b_eff_io"),
            "Add --repeat auto, or leave it out.",
        ));
    }
    let all_rewritten = measure.release == Release::R2_1 || measure.rewrite != Some(Rewrite::Scatter);
    if measure.types.len() < PatternType::COUNT
        || !all_rewritten
        || measure.backend.iter().all(|name| name == NULL_BACKEND)
    {
        return Err(UsageError::new(
            format!("--until {percent}% has no effect: there will be no b_eff_io, which needs all types, all rewrites and a backend that moves data"),
            "Leave it out, or run all of them.",
        ));
    }
    Ok(())
}

fn check_options_have_effect(
    way: &WayArgs,
    run: &RunArgs,
    set: &Settings,
    chosen: &[KnownBackend<'_>],
    known: &[KnownBackend<'_>],
) -> Result<(), UsageError> {
    check_direct(way.direct, chosen, known)?;
    check_effect(run.hints.is_some(), "--hints", chosen, known, |backend| backend.mpi)?;
    check_effect(!run.hint.is_empty(), "--hint", chosen, known, |backend| backend.mpi)?;
    check_effect(set.unique_open, "--set unique-open", chosen, known, |backend| backend.mpi)?;
    check_effect(way.depth.is_some(), "--depth", chosen, known, |backend| backend.queue)
}

/// An option that is about other pattern types than those that run.
fn needs_types(
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
        format!("{option} has no effect with --types {}", listed(types)),
        format!("Leave it out, or add a type that uses it: {}.", join(about)),
    ))
}

fn check_types_heed(
    set: &Settings,
    types: &[PatternType],
    chosen: &[KnownBackend<'_>],
    known: &[KnownBackend<'_>],
) -> Result<(), UsageError> {
    needs_types(!set.shared_pointer, "--set shared-pointer", types, |t| t.is_shared(true))?;
    // The others write at the same offsets either way.
    check_effect(!set.shared_pointer, "--set shared-pointer", chosen, known, |backend| backend.shared_pointer)?;
    let is_other = set.segment_multiple_bytes != Settings::default().segment_multiple_bytes;
    needs_types(is_other, "--set segment-multiple", types, PatternType::has_segments)
}

/// Options about two-phase transfers: of backends that can, in patterns that are collective, where such transfers may happen.
fn check_two_phase(
    types: &[PatternType],
    way: &WayArgs,
    set: &Settings,
    chosen: &[KnownBackend<'_>],
    known: &[KnownBackend<'_>],
) -> Result<(), UsageError> {
    let shared =
        [(way.aggregators.is_some(), "--aggregators"), (set.exchange != ExchangePolicy::Auto, "--set exchange")];
    let about_them = shared.into_iter().chain([(way.domain.is_some(), "--domain")]);
    let policy = (way.collective != CollectivePolicy::Auto, "--collective");
    for (given, option) in about_them.clone().chain([policy]) {
        check_effect(given, option, chosen, known, |backend| backend.two_phase)?;
        needs_types(given, option, types, PatternType::is_collective)?;
    }
    // In type 4 every rank moves its own segment: nothing is exchanged.
    for (given, option) in shared {
        needs_types(given, option, types, PatternType::is_strided)?;
    }
    let may_happen = |backend: &KnownBackend<'_>| match way.collective {
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
            "Leave it out, or add --collective two-phase, or --direct auto.",
        ));
    }
    check_domain(way.domain)
}

/// Smaller ones would be rounded up to four sectors, larger ones down to what one message holds.
fn check_domain(domain_bytes: Option<u64>) -> Result<(), UsageError> {
    let Some(bytes) = domain_bytes.filter(|bytes| !DOMAIN_BYTES.contains(bytes)) else { return Ok(()) };
    Err(UsageError::new(
        format!(
            "--domain {bytes}: an aggregator moves {} to {} bytes in one step",
            DOMAIN_BYTES.start(),
            DOMAIN_BYTES.end()
        ),
        "Give a size between them, e.g. the striping unit of the file system.",
    ))
}

/// `--cache dontcache` is done by the transfers themselves: all backends must be able to, and use the page cache at all.
fn check_cache(
    way: &WayArgs,
    run: &RunArgs,
    chosen: &[KnownBackend<'_>],
    known: &[KnownBackend<'_>],
) -> Result<(), UsageError> {
    if run.cache != CachePolicy::Dontcache {
        return Ok(());
    }
    let able = |backend: &KnownBackend<'_>| backend.drops_pages;
    let all_able = names(known, able);
    // The null backend has no pages: it does not stand in the way of the others.
    let unable = names(chosen, |backend| !able(backend) && backend.name != NULL_BACKEND);
    if !unable.is_empty() {
        return Err(UsageError::new(
            format!("--cache dontcache: the transfers of {unable} cannot drop their pages"),
            format!("Take only backends that can ({}), or --cache drop.", all_able),
        ));
    }
    if !chosen.iter().any(able) {
        return Err(no_effect("--cache dontcache", chosen, &all_able));
    }
    if way.direct == DirectPolicy::Required {
        return Err(UsageError::new(
            "--cache dontcache: with --direct required nothing goes through the page cache",
            "Leave one of the two out: --direct off shows dontcache, --direct required needs no --cache.",
        ));
    }
    Ok(())
}

/// Room is made before direct writes alone: what goes through the page cache finds its blocks at write-back.
fn check_preallocate(
    way: &WayArgs,
    run: &RunArgs,
    set: &Settings,
    chosen: &[KnownBackend<'_>],
    known: &[KnownBackend<'_>],
) -> Result<(), UsageError> {
    let option = if set.preallocate.is_some() { "--set preallocate" } else { "--preallocate" };
    if set.preallocate.is_some() && run.preallocate != PreallocatePolicy::Auto {
        return Err(UsageError::new(
            "--preallocate and --set preallocate: there is room of one kind only",
            "Leave one of the two out.",
        ));
    }
    let given = set.preallocate.is_some() || run.preallocate != PreallocatePolicy::Auto;
    check_effect(given, option, chosen, known, |backend| backend.preallocates)?;
    let may_be_direct =
        |backend: &KnownBackend<'_>| backend.preallocates && way.direct.of(backend.name) != DirectPolicy::Off;
    if !given || chosen.iter().any(may_be_direct) {
        return Ok(());
    }
    Err(UsageError::new(
        format!("{option} has no effect: no write is direct with these --backend and --direct"),
        "Leave it out, or add --direct auto.",
    ))
}

/// With one window all calls write the same: two places that change their data look as before.
fn check_buffers(way: &WayArgs, run: &RunArgs) -> Result<(), UsageError> {
    let moves = matches!(run.damage.asked().0, Some(Inject::Swap | Inject::Misplaced));
    if way.buffers == Buffers::Cold || !moves {
        return Ok(());
    }
    Err(UsageError::new(
        "--buffers reused: all calls of a pattern write the same bytes, so data in the wrong place cannot be told",
        "Take --buffers cold, or another --inject.",
    ))
}

fn check_time(seconds: f64) -> Result<(), UsageError> {
    if seconds >= SHORTEST_TIME_SECONDS && seconds.is_finite() {
        return Ok(());
    }
    Err(UsageError::new(
        format!("-T {seconds}: below {SHORTEST_TIME_SECONDS} s no pattern gets its time: most have 1 to 4 of the about 200 units of T"),
        "Give at least 1s; 60s for a first look, 15m for a value that may be compared.",
    ))
}

/// The types as typed, if there are such and they run in this order.
fn pattern_types(numbers: &[u8]) -> Result<Vec<PatternType>, UsageError> {
    let types: Result<Vec<PatternType>, String> = numbers.iter().map(|number| PatternType::try_from(*number)).collect();
    let types = types
        .map_err(|cause| UsageError::new(format!("--types: {cause}"), "Write a list such as 0,1,2,3,4 or 0,3."))?;
    let mut sorted = types.clone();
    sorted.sort_unstable();
    sorted.dedup();
    let instead = || format!("Write --types {}.", listed(&sorted));
    let given = listed(&types);
    if sorted.len() != types.len() {
        return Err(UsageError::new(format!("--types {given}: a type is listed twice"), instead()));
    }
    if sorted != types {
        return Err(UsageError::new(format!("--types {given}: the types always run in ascending order"), instead()));
    }
    if types.iter().all(|t| t.has_segments()) {
        return Err(UsageError::new(
            format!("--types {given}: types 3 and 4 take the sizes of their segments from types 0, 1 and 2"),
            format!("Add one of them, e.g. --types 2,{given}."),
        ));
    }
    Ok(types)
}

/// As the option takes them.
fn listed(types: &[PatternType]) -> String {
    join(types).replace(", ", ",")
}

/// Less was meant to have a unit.
const LEAST_MEMORY_BYTES: u64 = 1 << 20;

fn check_sizes(measure: &MeasureArgs, set: &Settings) -> Result<(), UsageError> {
    let multiple = set.segment_multiple_bytes;
    if multiple == 0 || !multiple.is_multiple_of(8) {
        return Err(UsageError::new(
            format!("--set segment-multiple={multiple}: not a positive multiple of 8 bytes, the size of an element"),
            "Give the striping unit of the file system, e.g. 1M or 4M.",
        ));
    }
    if let Some(bytes) = measure.memory_per_process.filter(|bytes| *bytes < LEAST_MEMORY_BYTES) {
        return Err(UsageError::new(
            format!("--memory-per-process {bytes}: these are bytes, and no rank runs with less than 1M"),
            "Give the memory of one rank with its unit, e.g. 4G, or leave the option out to have it found.",
        ));
    }
    Ok(())
}

/// Those of the file, then those typed, which win.
fn all_hints(run: &RunArgs) -> Result<Vec<HintRule>, UsageError> {
    let mut rules = run.hints.as_deref().map_or_else(|| Ok(Vec::new()), read_hints)?;
    let everywhere = |(key, value): &(String, String)| HintRule {
        ranks: None,
        access: None,
        pattern_type: None,
        place: HintPlace::All,
        key: key.clone(),
        value: value.clone(),
    };
    rules.extend(run.hint.iter().map(everywhere));
    hints::check_amount(rules.iter().map(|rule| (rule.key.as_str(), rule.value.as_str())))
        .map_err(|cause| UsageError::new(format!("--hint and --hints: {cause}"), "Leave some of them out."))?;
    Ok(rules)
}

fn read_hints(path: &Path) -> Result<Vec<HintRule>, UsageError> {
    let format =
        "Lines are: <ranks|all> <access> <pattern type> <chunk size> <key> <value>; # in column 1 is a comment.";
    let text = input::text(path).map_err(|error| {
        UsageError::new(
            format!("--hints {}: cannot be read: {error}", path.display()),
            "Name a text file that every rank can read.",
        )
    })?;
    let refused = |error: &dyn Display| UsageError::new(format!("--hints {}: {error}", path.display()), format);
    let rules = rules::parse(&text).map_err(|error| refused(&error))?;
    hints::check_amount(rules.iter().map(|rule| (rule.key.as_str(), rule.value.as_str()))).map_err(|e| refused(&e))?;
    Ok(rules)
}

#[cfg(test)]
#[path = "config_build_tests.rs"]
mod tests;
