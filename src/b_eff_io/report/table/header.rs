//! The head of the report, at most 14 lines so that the numbers are on the first screen: what was measured, where, and
//! what is unusual about it. Whatever does not fit into its line is in the section on the set-up.

use crate::b_eff_io::config::{
    Buffers, CollectivePolicy, Config, ExchangePolicy, Inject, PreallocatePolicy, Termination, Verify,
};
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{PatternRecord, RunResult};
use crate::b_eff_io::values::{has_source, storage_bytes, Derived};
use crate::frame::backends::any_can;
use crate::frame::config::{CachePolicy, DirectPolicy};
use crate::frame::records::Access;
use crate::frame::units::{format_seconds, format_size};
use crate::frame::values::memory_of_hosts;

use crate::b_eff_io::report::layout;
use crate::frame::report::machine;
use crate::frame::report::text::{count, list, percent, settings, Page};

use crate::b_eff_io::report::layout::measuring;

/// Backends with a line of their own; more are in the tables.
const BACKENDS: usize = 4;

pub(super) fn write(page: &mut Page, result: &RunResult, derived: &Derived) {
    let (config, manifest) = (&result.config, &result.manifest);
    let units = "sizes: 1 kB = 1024 bytes, 1 MB = 1024 kB; bandwidth: 1 MB/s = 1 000 000 bytes/s";
    machine::title(page, &manifest.machine, "effective I/O bandwidth (b_eff_io)", units);
    page.short_field("schedule", &schedule(result));
    if let Some(text) = unusual(config) {
        page.short_field("settings", &text);
    }
    machine::head(page, &manifest.machine, Some(&manifest.mpi_io_layer));
    machine::storage(page, &manifest.storage);
    for backend in measuring(result).take(BACKENDS) {
        page.short_field(backend, &evidence(result, derived, backend));
    }
}

pub(in crate::b_eff_io::report) fn schedule(result: &RunResult) -> String {
    let config = &result.config;
    let partitions: Vec<String> = result.partitions.iter().map(|p| p.ranks.to_string()).collect();
    format!(
        "release {}, T = {} on {} ranks, {}{}",
        config.release.name(),
        format_seconds(config.time_seconds),
        if partitions.is_empty() { "no".to_owned() } else { list(&partitions) },
        list(&config.backends),
        turns(config)
    )
}

fn turns(config: &Config) -> String {
    match (config.backends.len(), config.rounds) {
        (0 | 1, 0 | 1) => String::new(),
        (0 | 1, rounds) => format!(", {rounds} rounds a pattern"),
        (_, 0 | 1) => " (T each, in turns)".to_owned(),
        (_, rounds) => format!(" (T each, {rounds} rounds)"),
    }
}

/// What was chosen otherwise than by default and changes the meaning of the numbers, the options of the drivers in the
/// middle; None: nothing.
pub(in crate::b_eff_io::report) fn unusual(config: &Config) -> Option<String> {
    let has_queue = any_can(&config.backends, |row| row.has_queue);
    let option = |is_set: bool, text: &str| is_set.then(|| text.to_owned());
    let direct = match config.direct {
        DirectPolicy::ByBackend => None,
        policy => Some(format!("--direct {}", machine::direct(policy))),
    };
    let collective = match config.collective {
        CollectivePolicy::Auto => None,
        CollectivePolicy::Independent => Some("--collective independent".to_owned()),
        CollectivePolicy::TwoPhase => Some("--collective two-phase".to_owned()),
        CollectivePolicy::UnsafeReadModifyWrite => Some("UNSAFE READ-MODIFY-WRITE OF SHARED SECTORS".to_owned()),
    };
    let exchange = match config.exchange {
        ExchangePolicy::Auto => None,
        ExchangePolicy::SharedMemory => Some("--set exchange=shared-memory".to_owned()),
        ExchangePolicy::Messages => Some("--set exchange=messages".to_owned()),
    };
    let room = match config.preallocate {
        PreallocatePolicy::Auto => None,
        PreallocatePolicy::Native => Some("--preallocate native"),
        PreallocatePolicy::Zeros => Some("--set preallocate=zeros"),
        PreallocatePolicy::Size => Some("--set preallocate=size"),
        // Of results from before it was made too.
        PreallocatePolicy::Off => config.may_be_direct().then_some("--preallocate off"),
    };
    let types: Vec<String> = config.types.iter().map(PatternType::to_string).collect();
    settings([
        config.inject.map(|damage| format!("DAMAGED ON PURPOSE ({})", damage_name(damage))),
        (config.types != PatternType::ALL).then(|| format!("types {} only", list(&types))),
        option(config.buffers == Buffers::Reused, "--buffers reused (FROM WARM BUFFERS)"),
        direct,
        (config.cache != CachePolicy::Drop).then(|| format!("--cache {}", cache_name(config.cache))),
        collective,
        config.aggregators.map(|n| format!("--aggregators {n}")),
        config.domain_bytes.map(|bytes| format!("--domain {}", format_size(bytes))),
        exchange,
        room.map(str::to_owned),
        config.queue_depth.filter(|_| has_queue).map(|depth| format!("--depth {depth}")),
        config.until_percent.map(|percent| format!("--until {percent}%")),
        option(config.latency, "--latency"),
        option(!config.shared_pointer, "--set shared-pointer=off"),
        option(config.termination == Termination::PerCall, "--termination per-call"),
        option(config.unique_open, "--set unique-open=on"),
        (!config.hints.is_empty()).then(|| count(config.hints.len() as u64, "hint rule")),
        option(config.verify == Verify::Full, "--verify full"),
    ])
}

pub(super) fn cache_name(cache: CachePolicy) -> &'static str {
    match cache {
        CachePolicy::Drop => "drop",
        CachePolicy::Dontcache => "dontcache",
        CachePolicy::RankShift => "rank-shift",
        CachePolicy::Keep => "keep",
    }
}

pub(super) fn damage_name(damage: Inject) -> &'static str {
    match damage {
        Inject::Flip => "one bit turned over",
        Inject::OtherRank => "a chunk holds another rank's data",
        Inject::Stale => "a chunk holds the data of the first write",
        Inject::Zero => "a chunk is zero",
        Inject::Hole => "a chunk is a hole",
        Inject::Swap => "two places have changed their data",
        Inject::Misplaced => "a chunk holds the data of another place",
    }
}

/// How much was written, where reads came from, and whether the page cache was in between.
fn evidence(result: &RunResult, derived: &Derived, backend: &str) -> String {
    let written: u64 = derived
        .partitions
        .iter()
        .filter(|p| p.backend == backend)
        .map(|p| p.access_bytes[layout::access_index(Access::Write)])
        .fold(0, u64::saturating_add);
    let share = match written as f64 / memory_of_hosts(&result.manifest.machine).max(1) as f64 {
        share if share > 1.0 => format!("{share:.1} x memory"),
        share => format!("{} of memory", percent(share)),
    };
    let run: Vec<&PatternRecord> = result.patterns.iter().filter(|r| r.backend == backend && r.was_run()).collect();
    let (reads, cache) = (read_from_storage(result, &run), direct_used(&run));
    format!("first write {} ({share}), {reads}, {cache}", format_size(written))
}

fn read_from_storage(result: &RunResult, run: &[&PatternRecord]) -> String {
    let (mut read, mut storage, mut known) = (0_u64, 0_u64, true);
    for r in run.iter().filter(|r| has_source(r)) {
        let from_storage = storage_bytes(result, r);
        read = read.saturating_add(r.moved_bytes);
        storage = storage.saturating_add(from_storage.unwrap_or(0));
        known &= from_storage.is_some();
    }
    match (read, known) {
        (0, _) => "nothing read".to_owned(),
        (_, false) => "source of reads not known".to_owned(),
        (_, true) => format!("reads {} from storage", percent(storage as f64 / read as f64)),
    }
}

fn direct_used(run: &[&PatternRecord]) -> String {
    let direct = run.iter().filter(|r| r.direct == Some(true)).count();
    let known = run.iter().filter(|r| r.direct.is_some()).count();
    match (run.len(), known, direct) {
        (0, ..) => "nothing run".to_owned(),
        (_, 0, _) => "page cache as MPI chooses".to_owned(),
        (all, _, direct) if direct == all => "direct I/O".to_owned(),
        (_, _, 0) => "through the page cache".to_owned(),
        (all, ..) => format!("{direct} of {all} direct"),
    }
}
