//! The lines below a table: averages, amounts, the value; then validity and the maximum.

use crate::b_eff_io::config::Release;
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::PartitionRecord;
use crate::b_eff_io::report::cache_yardstick;
use crate::b_eff_io::report::coffee_cup;
use crate::b_eff_io::report::layout;
use crate::b_eff_io::report::layout::RecordSelector;
use crate::b_eff_io::values::Validity;
use crate::frame::records::{AccessMethod, RunOutcome};
use crate::frame::report::text::TextPage;

use super::context::{format_column, remark, SummaryContext, MIB};

pub(super) fn values(page: &mut TextPage, of: SummaryContext<'_>, partition: &PartitionRecord) {
    let ranks = partition.ranks;
    let value = layout::partition_value(of.derived, of.backend, ranks);
    page.blank();
    for access in AccessMethod::ALL {
        page.line(format!(
            "weighted average bandwidth for {:<8}:{} MB/s on {ranks} processes",
            access.name(),
            format_column(average(of, ranks, access))
        ));
    }
    page.line("(type=0 is weighted double)");
    if !of.result.config.full_rewrite {
        remark(page, "Without -rewrite type 0 alone is written again: the average for rewrite is its value.");
    }
    page.blank();
    let mib = AccessMethod::ALL.map(|access| {
        let bytes = value.map_or(0, |v| v.access_bytes[layout::access_index(access)]);
        bytes as f64 / MIB
    });
    page.line(format!("Total amount of data written/read with each access method: {:.3} MBytes", mib[0]));
    let memory_mib = of.total_memory_mib();
    page.line(format!("  = {:.1} percent of the total memory ({memory_mib:.0} MBytes)", 100.0 * mib[0] / memory_mib));
    if mib.iter().any(|amount| *amount != mib[0]) {
        remark(page, format!("That is the first write; rewritten {:.3} MBytes, read {:.3} MBytes.", mib[1], mib[2]));
    }
    for (access, text) in cache_yardstick::lines(of.derived, of.backend, ranks) {
        remark(page, format!("20 x the cache of the file system, {}: {text}.", access.name()));
    }
    let cup = of.derived.coffee_cups.iter().find(|cup| cup.backend == of.backend && cup.ranks == ranks);
    if let Some(sentence) = cup.and_then(coffee_cup::sentence) {
        remark(page, format!("Coffee-cup rule: {sentence}"));
    }
    page.blank();
    page.line(format!(
        "b_eff_io of these measurements ={} MB/s on {ranks} processes with {:.0} MByte/PE and scheduled time={:.1} min",
        format_column(value.and_then(|v| v.values.release_2_1)),
        of.memory_mib(),
        partition.time_seconds / 60.0
    ));
}

/// The average of an access method; if only type 0 is rewritten, its value, which release 2.1 uses.
fn average(of: SummaryContext<'_>, ranks: u64, access: AccessMethod) -> Option<f64> {
    if access == AccessMethod::Rewrite && !of.result.config.full_rewrite {
        let rewrite_0 =
            RecordSelector { backend: of.backend, ranks, access }.type_value(of.derived, PatternType::Scatter);
        return rewrite_0.filter(|value| value.complete)?.mb_per_second;
    }
    layout::partition_value(of.derived, of.backend, ranks)?.access_mb_per_second[layout::access_index(access)]
}

fn release_2_1_validity<'a>(of: SummaryContext<'a>) -> Option<&'a Validity> {
    of.derived.validity.iter().find(|v| v.backend == of.backend && v.release == Release::R2_1)
}

fn result_validity<'a>(of: SummaryContext<'a>) -> impl Iterator<Item = &'a Validity> {
    of.derived.validity.iter().filter(move |v| v.backend == of.backend)
}

fn is_valid(of: SummaryContext<'_>) -> bool {
    release_2_1_validity(of).is_some_and(|v| v.valid)
}

/// The three criteria of the release in its words, and as remarks all that apply.
pub(super) fn validity(page: &mut TextPage, of: SummaryContext<'_>) {
    let result = of.result;
    page.blank();
    page.line(if is_valid(of) {
        "VALID for comparison of different systems"
    } else {
        "NOT VALID for comparison of different systems"
    });
    let minutes = result.partitions.iter().map(|p| p.time_seconds / 60.0).reduce(f64::min).unwrap_or(0.0);
    let errors = result.errors.len() + result.corruptions.iter().filter(|c| c.backend == of.backend).count();
    let reached = |met| if met { "reached" } else { "NOT reached" };
    let criterion = |page: &mut TextPage, number: u32, text: &str, met: bool| {
        page.line(format!("  criterion {number}: {text} -- {}", reached(met)));
    };
    criterion(page, 1, &format!("scheduled time {minutes:.1} min >= 30 min"), minutes >= 30.0);
    let shared = result.config.shared_pointer;
    criterion(page, 2, "shared file pointers must be used for pattern type 1", shared);
    criterion(page, 3, &format!("error count ({errors}) == 0"), errors == 0);
    if let Some(validity) = release_2_1_validity(of) {
        remark(page, "Criteria of the definition of release 2.1, beyond the three that it prints:");
        for c in &validity.criteria {
            remark(page, format!("  {} -- {}", c.text, reached(c.met)));
        }
    }
    for judged in result_validity(of) {
        let unmet: Vec<&str> = judged.criteria.iter().filter(|c| !c.met).map(|c| c.lack()).collect();
        let why = if judged.valid { String::new() } else { format!(": {}", unmet.join("; ")) };
        let word = if judged.valid { "valid" } else { "not valid" };
        remark(page, format!("By the definition of release {}: {word}{why}", judged.release.name()));
        for caveat in &judged.caveats {
            remark(page, format!("  caveat, not a criterion of the definition: {caveat}"));
        }
    }
    if result.ending.outcome != RunOutcome::Complete {
        remark(page, format!("This run is not complete ({:?}).", result.ending.outcome));
    }
}

pub(super) fn maximum(page: &mut TextPage, of: SummaryContext<'_>) {
    page.blank();
    page.line("Maximum over all number of PEs");
    page.line("------------------------------");
    page.blank();
    page.blank();
    let result = of.result;
    let system = of.derived.systems.iter().find(|s| s.backend == of.backend);
    if system.is_some_and(|s| s.values.release_2_1.is_some()) {
        layout::RELEASE_2_1_CAVEAT.iter().for_each(|line| remark(page, line));
    }
    let partition = match system.and_then(|s| s.ranks[2]) {
        Some(best) => result.partitions.iter().find(|p| p.ranks == best),
        None => result.partitions.last(),
    };
    let (ranks, scheduled) = partition.map_or((of.machine().ranks, 0.0), |p| (p.ranks, p.time_seconds));
    page.line(format!(
        " b_eff_io ={} MB/s on {ranks} processes with {:.0} MByte/PE, scheduled time={:.1} Min, on {}, {}",
        format_column(system.and_then(|s| s.values.release_2_1)),
        of.memory_mib(),
        scheduled / 60.0,
        of.system(),
        if is_valid(of) { "VALID" } else { "NOT VALID (see above)" }
    ));
}
