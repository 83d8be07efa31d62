//! Options in reports: their names in comparisons, and non-default ones in the head.

use serde::Serialize;

use crate::b_eff_io::config::{
    BufferPolicy, CollectivePolicy, Config, ExchangePolicy, InjectedFault, PreallocatePolicy, Termination, Variant,
    Verify,
};
use crate::b_eff_io::pattern_type::PatternType;
use crate::frame::backends::any_supports;
use crate::frame::config::{CachePolicy, DirectPolicy};
use crate::frame::rank_directories::DEFAULT_FILES_PER_DIRECTORY;
use crate::frame::report::facts::{definition, set_up, ConfigFieldRole};
use crate::frame::report::machine;
use crate::frame::report::text::{count, join_settings, list};
use crate::frame::report::variants::{contestant_text, hint_options};
use crate::frame::units::format_size;

/// Every field of the configuration.
pub(super) const FIELDS: [(&str, ConfigFieldRole); 48] = [
    ("release", definition("release")),
    ("time_seconds", definition("T")),
    ("types", definition("types")),
    ("full_rewrite", definition("rewrite of all types")),
    ("shared_pointer", definition("shared file pointer")),
    ("segment_multiple_bytes", definition("segments in multiples of")),
    ("connection_setup", definition("connection set-up before the first pattern")),
    ("termination", definition("end of the loops")),
    ("strict", definition("strict loops")),
    ("rounds", definition("rounds")),
    ("cache", definition("page cache")),
    ("buffers", definition("transfer buffer")),
    ("unique_open", definition("unique open")),
    ("inject", definition("injected fault")),
    ("backends", set_up("backend")),
    ("variants", set_up("variants")),
    ("direct", set_up("direct I/O")),
    ("dio_align_bytes", set_up("direct I/O align")),
    // Covered by the storage sheet.
    ("storage", ConfigFieldRole::Ignored),
    ("stripe", ConfigFieldRole::Ignored),
    ("queue_depth", set_up("queue depth")),
    ("collective", set_up("collective")),
    ("aggregators", set_up("aggregators")),
    ("domain_bytes", set_up("domain")),
    ("exchange", set_up("exchange")),
    ("preallocate", set_up("preallocation")),
    ("verify", set_up("verify")),
    // What it omits is in the result.
    ("on_corruption", ConfigFieldRole::Ignored),
    ("files_per_directory", set_up("files/directory")),
    ("latency", set_up("latency recorded")),
    ("space_limit", set_up("space")),
    // Only first measurements are compared, which repetitions do not affect.
    ("repeat", ConfigFieldRole::Ignored),
    ("until_percent", ConfigFieldRole::Ignored),
    // Beside the definition.
    ("orders", ConfigFieldRole::Ignored),
    ("mix", ConfigFieldRole::Ignored),
    // Covered by the hints themselves, and by partitions and M_PART.
    ("hints", ConfigFieldRole::Ignored),
    ("partitions", ConfigFieldRole::Ignored),
    ("memory_per_process_bytes", ConfigFieldRole::Ignored),
    ("inject_at", ConfigFieldRole::Ignored),
    ("path", ConfigFieldRole::Ignored),
    ("run_dir", ConfigFieldRole::Ignored),
    ("keep_files", ConfigFieldRole::Ignored),
    ("out", ConfigFieldRole::Ignored),
    // Covered by the CPUs of the ranks.
    ("bind", ConfigFieldRole::Ignored),
    ("seed", ConfigFieldRole::Ignored),
    // Not a part of the measurement.
    ("rmax_gflops", ConfigFieldRole::Ignored),
    ("requirements", ConfigFieldRole::Ignored),
    // What it omits is in the result.
    ("time_limit", ConfigFieldRole::Ignored),
];

/// Options that differ from the defaults and affect the numbers, options of the drivers in the middle; None: none.
pub(super) fn non_default(config: &Config) -> Option<String> {
    let has_queue = any_supports(&config.backends, |row| row.has_queue);
    let option = |is_set: bool, text: &str| is_set.then(|| text.to_owned());
    let direct = match config.direct {
        DirectPolicy::ByBackend => None,
        policy => Some(format!("--direct {}", machine::direct_policy_text(policy))),
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
    let preallocation = match config.preallocate {
        PreallocatePolicy::Auto => None,
        PreallocatePolicy::Native => Some("--preallocate native"),
        PreallocatePolicy::Zeros => Some("--set preallocate=zeros"),
        PreallocatePolicy::Size => Some("--set preallocate=size"),
        // Also for results recorded before it was introduced.
        PreallocatePolicy::Off => config.may_be_direct().then_some("--preallocate off"),
    };
    let types: Vec<String> = config.types.iter().map(PatternType::to_string).collect();
    join_settings([
        config.inject.map(|damage| format!("INJECTED FAULT ({})", fault_name(damage))),
        (config.types != PatternType::ALL).then(|| format!("types {} only", list(&types))),
        option(config.buffers == BufferPolicy::Reused, "--buffers reused (REUSED BUFFERS)"),
        direct,
        config.dio_align_bytes.map(|bytes| format!("--dio-align {bytes}")),
        (config.cache != CachePolicy::Drop).then(|| format!("--cache {}", cache_name(config.cache))),
        collective,
        config.aggregators.map(|n| format!("--aggregators {n}")),
        config.domain_bytes.map(|bytes| format!("--domain {}", format_size(bytes))),
        exchange,
        preallocation.map(str::to_owned),
        config.queue_depth.filter(|_| has_queue).map(|depth| format!("--depth {depth}")),
        config.until_percent.map(|percent| format!("--until {percent}%")),
        (!config.orders.is_empty()).then(|| {
            format!("--order {}", config.orders.iter().map(|order| order.name()).collect::<Vec<_>>().join(","))
        }),
        config.mix.map(|mix| format!("--mix {}", mix.name())),
        option(config.latency, "--latency"),
        option(!config.shared_pointer, "--set shared-pointer=off"),
        option(config.strict, "--strict"),
        option(config.termination == Termination::PerCall, "--termination per-call"),
        option(config.unique_open, "--set unique-open=on"),
        (!config.hints.is_empty()).then(|| count(config.hints.len() as u64, "hint rule")),
        option(config.verify == Verify::Full, "--verify full"),
        (config.files_per_directory != DEFAULT_FILES_PER_DIRECTORY)
            .then(|| format!("--files-per-directory {}", config.files_per_directory)),
    ])
}

/// A variant with its options: `posix+deep (direct auto, depth 64)`.
pub(super) fn variant_text(variant: &Variant) -> String {
    let word = |name: &str, value: Option<String>| value.map(|value| format!("{name} {value}"));
    let options = [
        word("direct", variant.direct.map(|policy| machine::direct_policy_text(policy).to_owned())),
        word("depth", variant.queue_depth.map(|depth| depth.to_string())),
        word("collective", variant.collective.map(serialized_name)),
        word("aggregators", variant.aggregators.map(|ranks| ranks.to_string())),
        word("domain", variant.domain_bytes.map(format_size)),
        word("preallocate", variant.preallocate.map(serialized_name)),
    ];
    contestant_text(&variant.backend, options.into_iter().flatten().chain(hint_options(&variant.hints)))
}

/// The word of the command line.
fn serialized_name(value: impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn cache_name(cache: CachePolicy) -> &'static str {
    match cache {
        CachePolicy::Drop => "drop",
        CachePolicy::Dontcache => "dontcache",
        CachePolicy::RankShift => "rank-shift",
        CachePolicy::Keep => "keep",
    }
}

fn fault_name(damage: InjectedFault) -> &'static str {
    match damage {
        InjectedFault::Flip => "one bit flipped",
        InjectedFault::OtherRank => "a chunk holds another rank's data",
        InjectedFault::Stale => "a chunk holds the data of the first write",
        InjectedFault::Zero => "a chunk is zero",
        InjectedFault::Hole => "a chunk is a hole",
        InjectedFault::Swap => "two chunks are swapped",
        InjectedFault::Misplaced => "a chunk holds the data of another offset",
    }
}
