//! The head of the report: configuration, machine, unusual options; corruptions.

use crate::b_eff_io::config::{CallOrder, Config};
use crate::b_eff_io::records::{CorruptionRecord, PatternRecord, RunResult};
use crate::b_eff_io::values::{has_source, storage_bytes, Derived, VerifiedWords, WORD_BYTES};
use crate::frame::backends;
use crate::frame::records::AccessMethod;
use crate::frame::report::machine;
use crate::frame::report::model::{labelled_texts, CorruptionReport, ReportHead};
use crate::frame::report::terminal::pad_to;
use crate::frame::report::text::{count, list, percent};
use crate::frame::units::{format_seconds, format_size};
use crate::frame::values::memory_of_hosts;

use super::layout::{access_index, storage_backends};
use super::options;

/// Maximum number of backends with a line of their own.
const MAX_BACKENDS: usize = 4;
const LABEL_COLUMNS: usize = 13;

pub(super) fn head(result: &RunResult, derived: &Derived, common: ReportHead) -> ReportHead {
    let (config, manifest) = (&result.config, &result.manifest);
    let each = if config.backends.len() > 1 { " for each backend" } else { "" };
    let label = |backend: &str| pad_to(backend, LABEL_COLUMNS).trim_end().to_owned();
    let evidence = storage_backends(result)
        .filter(|b| !backends::is_variant(b))
        .take(MAX_BACKENDS)
        .map(|b| (label(b), backend_evidence(result, derived, b)));
    let machine = machine::head_facts(&manifest.machine, Some(&manifest.mpi_io_layer)).into_iter();
    let variants: Vec<String> = config.variants.iter().map(options::variant_text).collect();
    let variants = Some(variants.join("; ")).filter(|text| !text.is_empty());
    let facts =
        labelled_texts([("schedule", Some(schedule(result))), ("variants", variants)]).into_iter().chain(machine);
    ReportHead {
        requested_time: format!("release {}, T = {}{each}", config.release.name(), format_seconds(config.time_seconds)),
        settings: options::non_default(config),
        facts: facts.chain(machine::storage_head_facts(&manifest.storage)).chain(evidence).collect(),
        ..common
    }
}

fn schedule(result: &RunResult) -> String {
    let config = &result.config;
    let partitions: Vec<String> = result.partitions.iter().map(|p| p.ranks.to_string()).collect();
    format!(
        "release {}, T = {} on {} ranks, {}{}",
        config.release.name(),
        format_seconds(config.time_seconds),
        if partitions.is_empty() { "no".to_owned() } else { list(&partitions) },
        list(&config.backends),
        rounds_label(config)
    )
}

fn rounds_label(config: &Config) -> String {
    match (config.backends.len(), config.rounds) {
        (0 | 1, 0 | 1) => String::new(),
        (0 | 1, rounds) => format!(", {rounds} rounds a pattern"),
        (_, 0 | 1) => " (T each, in turns)".to_owned(),
        (_, rounds) => format!(" (T each, {rounds} rounds)"),
    }
}

fn backend_evidence(result: &RunResult, derived: &Derived, backend: &str) -> String {
    let own = derived.partitions.iter().filter(|p| p.backend == backend);
    let written = own.map(|p| p.access_bytes[access_index(AccessMethod::Write)]).fold(0, u64::saturating_add);
    let share = match written as f64 / memory_of_hosts(&result.manifest.machine).max(1) as f64 {
        share if share > 1.0 => format!("{share:.1} x memory"),
        share => format!("{} of memory", percent(share)),
    };
    let run: Vec<&PatternRecord> = result.patterns.iter().filter(|r| r.backend == backend && r.was_run()).collect();
    let (reads, cache) = (storage_share(result, &run), direct_label(&run));
    format!("first write {} ({share}), {reads}, {cache}", format_size(written))
}

fn storage_share(result: &RunResult, run: &[&PatternRecord]) -> String {
    let (mut read, mut storage, mut known) = (0_u64, 0_u64, true);
    for r in run.iter().filter(|r| has_source(r)) {
        let from_storage = storage_bytes(result, r);
        read = read.saturating_add(r.moved_bytes);
        storage = storage.saturating_add(from_storage.unwrap_or(0));
        known &= from_storage.is_some();
    }
    match (read, known) {
        (0, _) => "nothing read".to_owned(),
        (_, false) => "source of reads unknown".to_owned(),
        (_, true) => format!("reads {} from storage", percent(storage as f64 / read as f64)),
    }
}

fn direct_label(run: &[&PatternRecord]) -> String {
    let direct = run.iter().filter(|r| r.direct == Some(true)).count();
    let known = run.iter().filter(|r| r.direct.is_some()).count();
    let may_be_direct = |r: &&&PatternRecord| backends::supports(&r.backend, |row| row.can_direct);
    let unproven = run.iter().filter(may_be_direct).filter(|r| r.direct.is_none()).count();
    match (run.len(), known, direct) {
        (0, ..) => "nothing run".to_owned(),
        (all, ..) if unproven > 0 => format!("{unproven} of {all} with O_DIRECT, bypass unproven"),
        (_, 0, _) => "page cache up to MPI".to_owned(),
        (all, _, direct) if direct == all => "direct I/O".to_owned(),
        (_, _, 0) => "through the page cache".to_owned(),
        (all, ..) => format!("{direct} of {all} direct"),
    }
}

/// None: nothing was verified.
pub(super) fn compared_bytes(result: &RunResult) -> Option<String> {
    let words = words_checked(result);
    (words > 0)
        .then(|| format!("{} read back and compared: all correct", format_size(words.saturating_mul(WORD_BYTES))))
}

pub(super) fn completion_line(result: &RunResult) -> String {
    let run = count(result.patterns.iter().filter(|r| r.was_run()).count() as u64, "pattern run");
    let checked = count(words_checked(result), "word");
    format!("Run complete: {run}, {checked} of data compared with what was written.")
}

fn words_checked(result: &RunResult) -> u64 {
    VerifiedWords::of(result, None).total().words_checked
}

pub(super) fn corruption(result: &RunResult) -> CorruptionReport {
    let words = VerifiedWords::of(result, None);
    let amount = format!(
        "{} wrong in buffers of reads, {} in the full check, {} in samples of the files",
        count(words.buffers.words_wrong, "word"),
        count(words.files.words_wrong, "word"),
        count(words.samples.words_wrong, "word")
    );
    let next_step = "Do not trust this storage with these settings. Repeat with --verify full and another backend to find out whether the \
                     file system, the MPI library or a cache between them is at fault.";
    CorruptionReport::of("DATA CORRUPTION", amount, &result.corruptions, corruption_label, next_step)
}

fn corruption_label(c: &CorruptionRecord) -> String {
    let order = c.call_order().map(CallOrder::name);
    let access = match (order, c.mix) {
        (None, _) => c.access.name().to_owned(),
        (Some(order), None) => format!("{} in order {order}", c.access.name()),
        (Some(order), Some(_)) => format!("reads and writes in order {order}"),
    };
    format!(
        "{} on {}, {}, pattern {}, file {} at offset {}, data of rank {}: {} ({} wrong; first: expected {:016x}, found {:016x})",
        c.backend,
        count(c.ranks, "rank"),
        access,
        c.pattern,
        c.file,
        c.offset_bytes,
        c.rank,
        c.diagnosis,
        count(c.words_wrong, "word"),
        c.expected,
        c.actual
    )
}
