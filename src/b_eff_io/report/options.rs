//! What a report says of each option: its name in comparisons, and in the head what differs from the defaults.

use crate::b_eff_io::config::{
    Buffers, CollectivePolicy, Config, ExchangePolicy, Inject, PreallocatePolicy, Termination, Verify,
};
use crate::b_eff_io::pattern_type::PatternType;
use crate::frame::backends::any_can;
use crate::frame::config::{CachePolicy, DirectPolicy};
use crate::frame::report::facts::{definition, set_up, Field};
use crate::frame::report::machine;
use crate::frame::report::text::{count, list, settings};
use crate::frame::units::format_size;

/// Every field of the configuration.
pub(super) const FIELDS: [(&str, Field); 35] = [
    ("release", definition("release")),
    ("time_seconds", definition("T")),
    ("types", definition("types")),
    ("full_rewrite", definition("rewrite of all types")),
    ("shared_pointer", definition("shared file pointer")),
    ("segment_multiple_bytes", definition("segments in multiples of")),
    ("termination", definition("end of the loops")),
    ("rounds", definition("rounds")),
    ("cache", definition("page cache")),
    ("buffers", definition("memory of the calls")),
    ("unique_open", definition("unique open")),
    ("inject", definition("damage on purpose")),
    ("backends", set_up("backend")),
    ("direct", set_up("direct I/O")),
    ("queue_depth", set_up("queue depth")),
    ("collective", set_up("collective")),
    ("aggregators", set_up("aggregators")),
    ("domain_bytes", set_up("domain")),
    ("exchange", set_up("exchange")),
    ("preallocate", set_up("preallocation")),
    ("verify", set_up("verify")),
    ("latency", set_up("latency recorded")),
    ("space_limit", set_up("space")),
    // What is compared is the first pass, which repeats do not change.
    ("repeat", Field::Silent),
    ("until_percent", Field::Silent),
    // Told by the hints themselves, and by partitions and M_PART.
    ("hints", Field::Silent),
    ("partitions", Field::Silent),
    ("memory_per_process_bytes", Field::Silent),
    ("inject_at", Field::Silent),
    ("path", Field::Silent),
    ("run_dir", Field::Silent),
    ("keep_files", Field::Silent),
    ("out", Field::Silent),
    // Told by where the ranks were.
    ("bind", Field::Silent),
    ("seed", Field::Silent),
];

/// What was chosen otherwise than by default and changes the meaning of the numbers, the options of the drivers in the
/// middle; None: nothing.
pub(super) fn unusual(config: &Config) -> Option<String> {
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

fn cache_name(cache: CachePolicy) -> &'static str {
    match cache {
        CachePolicy::Drop => "drop",
        CachePolicy::Dontcache => "dontcache",
        CachePolicy::RankShift => "rank-shift",
        CachePolicy::Keep => "keep",
    }
}

fn damage_name(damage: Inject) -> &'static str {
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
