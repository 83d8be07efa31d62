//! How the run was set up, in full: what a reader needs to repeat it or to explain a number.

use crate::b_eff_io::config::{
    Buffers, CollectivePolicy, Config, ExchangePolicy, Partitions, PreallocatePolicy, Termination, Verify,
};
use crate::b_eff_io::records::{QueueCalibration, RunResult};
use crate::b_eff_io::report::layout;
use crate::b_eff_io::report::layout::chunk_label;
use crate::frame::backends::any_can;
use crate::frame::config::CachePolicy;
use crate::frame::records::Access;
use crate::frame::report::machine;
use crate::frame::report::text::{count, list, percent, Page};
use crate::frame::units::{format_seconds, format_size};

use super::first_writes;
use super::header::damage_name;

pub(super) fn write(page: &mut Page, result: &RunResult) {
    let config = &result.config;
    page.heading("Set-up");
    page.field("command", &result.manifest.machine.command_line.join(" "));
    page.field("schedule", &schedule(result));
    page.field("patterns", &patterns(config));
    page.field("termination", termination(config));
    page.field("data", &data(result));
    page.field("direct I/O", &direct(result));
    page.field("page cache", cache(config));
    page.fields("collective", collective(config));
    page.fields("room", room(config));
    page.fields("queue", queue(result));
    page.fields("first writes", first_writes::told(result));
    if config.latency {
        page.field("latency", "the time of every call is recorded");
    }
    machine::write(page, &result.manifest.machine);
    file_system(page, result);
}

fn schedule(result: &RunResult) -> String {
    let config = &result.config;
    let partitions: Vec<String> = result
        .partitions
        .iter()
        .map(|p| format!("{} {}", count(p.ranks, "rank"), format_seconds(p.time_seconds)))
        .collect();
    let choice = match config.partitions {
        Partitions::All => "all ranks",
        Partitions::SmallMediumAll => "small, medium, all",
        Partitions::List(_) => "as listed",
    };
    let turns = match (config.backends.len(), config.rounds) {
        (0 | 1, 0 | 1) => String::new(),
        (0 | 1, rounds) => format!(", {rounds} rounds of each pattern"),
        (_, 0 | 1) => ", taking turns pattern by pattern".to_owned(),
        (_, rounds) => format!(", taking turns in {rounds} rounds of each pattern; a write is synced in each round"),
    };
    format!(
        "release {}, T = {} for each backend; partitions ({choice}): {}; {}{turns}",
        config.release.name(),
        format_seconds(config.time_seconds),
        if partitions.is_empty() { "none".to_owned() } else { partitions.join(", ") },
        list(&config.backends)
    )
}

fn patterns(config: &Config) -> String {
    let how = (config.full_rewrite, config.shared_pointer, config.segment_multiple_bytes);
    let hints = match config.hints.len() as u64 {
        0 => "no hints".to_owned(),
        rules => count(rules, "hint rule"),
    };
    format!("{}; {hints}", layout::patterns_asked(&config.types, how))
}

fn termination(config: &Config) -> &'static str {
    match config.termination {
        Termination::Geometric => "geometric: one common decision per batch of calls, batches grow",
        Termination::PerCall => "per call: barrier, clock and broadcast after every call, as release 2.1 did",
    }
}

fn data(result: &RunResult) -> String {
    let config = &result.config;
    let verify = match config.verify {
        Verify::Ring => format!("what the last reads left in memory is compared, and after each pattern a sample of its bytes in the file{}", sampled(result)),
        Verify::Full => "every byte of every file is compared, untimed, after and before each access, and all that reads leave in memory".to_owned(),
    };
    let inject = config.inject.map(|damage| format!("; DAMAGED ON PURPOSE: {}", damage_name(damage)));
    let memory = match config.buffers {
        Buffers::Cold => format!("period {}", format_size(result.manifest.period_bytes)),
        Buffers::Reused => {
            "ONE WINDOW for all calls of a pattern, whole pages: WARM, all of them write the same".to_owned()
        }
    };
    format!("seed {}, {memory}; {verify}{}", config.seed, inject.unwrap_or_default())
}

/// `: 1.2 % of them, 100 % of it past the page cache`.
fn sampled(result: &RunResult) -> String {
    let (mut bytes, mut of_bytes, mut past_cache_bytes) = (0_u64, 0_u64, 0_u64);
    for sample in result.patterns.iter().filter_map(|r| r.sample.as_ref()) {
        bytes = bytes.saturating_add(sample.bytes);
        of_bytes = of_bytes.saturating_add(sample.of_bytes);
        past_cache_bytes = past_cache_bytes.saturating_add(sample.past_cache_bytes);
    }
    if bytes == 0 {
        return String::new();
    }
    let [share, past] = [(bytes, of_bytes), (past_cache_bytes, bytes)].map(|(a, b)| percent(a as f64 / b as f64));
    format!(": {share} of them, {past} of it past the page cache")
}

fn direct(result: &RunResult) -> String {
    let policy = machine::direct(result.config.direct);
    let storage = &result.manifest.storage;
    match (storage.direct_offset_align_bytes, storage.direct_memory_align_bytes) {
        (Some(offset), Some(memory)) => {
            format!("{policy}; here offsets and lengths in multiples of {offset} bytes, memory of {memory}")
        }
        _ => format!("{policy}; the file system does not tell its alignment"),
    }
}

fn cache(config: &Config) -> &'static str {
    match config.cache {
        CachePolicy::Drop => {
            "drop: pages of the files are dropped before every rewrite and read pattern, outside the clock"
        }
        CachePolicy::Dontcache => "dontcache: buffered transfers of posix and uring drop their pages themselves",
        CachePolicy::RankShift => "rank-shift: ranks read what a rank of another host has written",
        CachePolicy::Keep => "keep: nothing is done about it",
    }
}

/// Collective patterns of the drivers without collective calls; None if none of them took part.
fn collective(config: &Config) -> Option<String> {
    if !any_can(&config.backends, |row| row.has_two_phase) {
        return None;
    }
    let policy = match config.collective {
        CollectivePolicy::Auto => "auto: each rank at its own offsets, two-phase where direct I/O would share sectors",
        CollectivePolicy::Independent => "independent: each rank at its own offsets",
        CollectivePolicy::TwoPhase => "two-phase: exchange, then aligned domains",
        CollectivePolicy::UnsafeReadModifyWrite => {
            "UNSAFE: plain read-modify-write of shared sectors, which loses data"
        }
    };
    let aggregators = config.aggregators.map_or_else(|| "all ranks".to_owned(), |n| count(n, "rank"));
    let domain =
        config.domain_bytes.map_or_else(|| "of the default size".to_owned(), |b| format!("of {}", format_size(b)));
    let exchange = match config.exchange {
        ExchangePolicy::Auto => "shared memory where it can be, else messages",
        ExchangePolicy::SharedMemory => "shared memory",
        ExchangePolicy::Messages => "messages",
    };
    Some(format!("{policy}; two-phase: {aggregators} aggregate, domains {domain}, exchange by {exchange}"))
}

/// Room before direct first writes; None if nothing can have been direct.
fn room(config: &Config) -> Option<String> {
    let policy = match config.preallocate {
        PreallocatePolicy::Auto => "auto: blocks by fallocate before direct first writes, where the file system can",
        PreallocatePolicy::Native => "native: blocks by fallocate before direct first writes",
        PreallocatePolicy::Zeros => "zeros: native, and zeros written before direct first writes below a block",
        PreallocatePolicy::Size => "size: the length by ftruncate before direct first writes",
        PreallocatePolicy::Off => "off: each direct first write makes its file longer",
    };
    config.may_be_direct().then(|| policy.to_owned())
}

/// Depth of the queue of uring and where it comes from; None if it took no part.
fn queue(result: &RunResult) -> Option<String> {
    let config = &result.config;
    if !any_can(&config.backends, |row| row.has_queue) {
        return None;
    }
    Some(match (config.queue_depth, result.queue_calibrations.as_slice()) {
        (Some(depth), _) => format!("depth {depth} as given"),
        (None, []) => "depth of the driver; no calibration was recorded".to_owned(),
        (None, queue_calibrations) => format!("depth by calibration{}", chosen(queue_calibrations)),
    })
}

/// `: write 32 from 1 kB, 8 from 1 MB; read ...`.
fn chosen(queue_calibrations: &[QueueCalibration]) -> String {
    let mut text = String::new();
    for access in Access::ALL {
        let depths: Vec<String> = queue_calibrations
            .iter()
            .filter(|t| t.access == access)
            .map(|t| format!("{} from {}", t.depth, chunk_label(t.chunk_bytes)))
            .collect();
        if !depths.is_empty() {
            text.push_str(&format!("; {} {}", access.name(), depths.join(", ")));
        }
    }
    text
}

fn file_system(page: &mut Page, result: &RunResult) {
    let storage = &result.manifest.storage;
    machine::write_storage(page, storage);
    let kept = if result.config.keep_files { " (files kept)" } else { "" };
    page.field("run directory", &format!("{}{kept}, under {}", result.manifest.run_dir, storage.path));
}
