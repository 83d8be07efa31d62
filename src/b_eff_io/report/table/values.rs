//! The values: averages of the access methods, b_eff_io by each definition, the value of the system.

use crate::b_eff_io::config::{Release, RepeatPolicy};
use crate::b_eff_io::records::RunResult;
use crate::b_eff_io::report::layout;
use crate::b_eff_io::values::{Derived, PartitionValue, ReleaseValues, SystemValue, ValueInterval};
use crate::frame::records::Access;
use crate::frame::report::columns::or_none;
use crate::frame::report::text::{count, percent, Page};

use super::validity;
use crate::b_eff_io::report::layout::measuring;

/// Partitions in one table; more continue in a further one.
const COLUMNS: usize = 5;
/// Width of the label column.
const LABEL: usize = 44;

pub(super) const RELEASES: [Release; 3] = [Release::R0_5, Release::R1, Release::R2_1];

pub(super) fn write(page: &mut Page, result: &RunResult, derived: &Derived) {
    for backend in measuring(result) {
        page.heading(&format!("Values of {backend}: MB/s"));
        let partitions: Vec<&PartitionValue> =
            result.partitions.iter().filter_map(|p| layout::partition_value(derived, backend, p.ranks)).collect();
        if partitions.is_empty() {
            page.line("  nothing was measured");
            continue;
        }
        let only = partitions.len() == 1;
        for columns in partitions.chunks(COLUMNS) {
            partition_values(page, columns);
            for release in RELEASES {
                let cells: Vec<String> = columns.iter().map(|p| number(value(&p.values, release))).collect();
                // The only partition is the best one: its value is that of the system.
                let remark = if only { remark(result, derived, backend, release) } else { String::new() };
                page.line(format!("{}{remark}", row(name(release), &cells)));
            }
        }
        if let Some(system) = derived.systems.iter().find(|s| &s.backend == backend).filter(|_| !only) {
            page.blank();
            system_values(page, result, derived, system);
        }
        intervals(page, result, derived, backend);
        if partitions.iter().any(|p| p.values.release_2_1.is_some()) {
            page.hanging("  release 2.1: ", &layout::BESIDE_RELEASE_2_1.join(" "));
        }
    }
}

fn partition_values(page: &mut Page, partitions: &[&PartitionValue]) {
    let names: Vec<String> = partitions.iter().map(|p| count(p.ranks, "rank")).collect();
    page.line(row("", &names));
    for access in Access::ALL {
        let average = |p: &&PartitionValue| number(p.access_mb_per_second[layout::access_index(access)]);
        let cells: Vec<String> = partitions.iter().map(average).collect();
        page.line(row(&format!("{}, weighted average of the types", access.name()), &cells));
    }
}

fn row(label: &str, cells: &[String]) -> String {
    let cells: String = cells.iter().map(|c| format!("{c:>12}")).collect();
    format!("  {label:LABEL$}{cells}")
}

fn number(value: Option<f64>) -> String {
    or_none(value.map(|v| format!("{v:.3}")))
}

fn system_values(page: &mut Page, result: &RunResult, derived: &Derived, system: &SystemValue) {
    page.line("  value of the system = best partition");
    for release in RELEASES {
        let Some(value) = value(&system.values, release) else {
            page.line(format!("  {:LABEL$}{:>12}  not measured as a whole", name(release), "-"));
            continue;
        };
        let where_ = best_ranks(system, release).map(|r| format!(" on {}", count(r, "rank"))).unwrap_or_default();
        let remark = remark(result, derived, &system.backend, release);
        page.line(format!("  {:LABEL$}{value:>12.3}{where_}{remark}", name(release)));
    }
}

/// Validity, and which release is that of the run.
fn remark(result: &RunResult, derived: &Derived, backend: &str, release: Release) -> String {
    let valid =
        validity::find(derived, backend, release).map_or("", |v| if v.valid { "  VALID" } else { "  NOT VALID" });
    let own = if release == result.config.release { "  <- definition of this run" } else { "" };
    format!("{valid}{own}")
}

fn name(release: Release) -> &'static str {
    match release {
        Release::R0_5 => "b_eff_io, release 0.5 (Euro-Par 2000)",
        Release::R1 => "b_eff_io, release 1 (paper)",
        Release::R2_1 => "b_eff_io, release 2.1 (program of 2001)",
    }
}

/// The value by one release.
pub(in crate::b_eff_io::report) fn value(values: &ReleaseValues, release: Release) -> Option<f64> {
    match release {
        Release::R0_5 => values.release_0_5,
        Release::R1 => values.release_1,
        Release::R2_1 => values.release_2_1,
    }
}

/// Ranks of the partition with the best value.
pub(in crate::b_eff_io::report) fn best_ranks(system: &SystemValue, release: Release) -> Option<u64> {
    let [r0_5, r1, r2_1] = system.ranks;
    match release {
        Release::R0_5 => r0_5,
        Release::R1 => r1,
        Release::R2_1 => r2_1,
    }
}

/// What was measured again: b_eff_io and the types, with how far they are known.
fn intervals(page: &mut Page, result: &RunResult, derived: &Derived, backend: &str) {
    let known = &derived.intervals;
    if result.config.repeat != RepeatPolicy::Auto || !known.patterns.iter().any(|i| i.backend == *backend) {
        return;
    }
    for partition in &result.partitions {
        let of_partition = |i: &&ValueInterval| i.backend == *backend && i.ranks == partition.ranks;
        let repeats = known.patterns.iter().filter(|i| i.backend == *backend && i.ranks == partition.ranks);
        let repeats: u64 = repeats.map(|i| i.measured - 1).sum();
        page.blank();
        page.line(format!(
            "  95 % intervals on {}, from {} of patterns in the time left of T (values are of the first pass)",
            count(partition.ranks, "rank"),
            count(repeats, "repeat")
        ));
        let name = format!("b_eff_io, release {}", result.config.release.name());
        let value = layout::partition_value(derived, backend, partition.ranks);
        let value = value.and_then(|p| self::value(&p.values, result.config.release));
        interval(page, &name, value, known.values.iter().find(of_partition));
        for type_value in derived.types.iter().filter(|t| t.backend == *backend && t.ranks == partition.ranks) {
            let name = format!(
                "{}, type {} ({})",
                type_value.access.name(),
                type_value.pattern_type,
                type_value.pattern_type.name()
            );
            let found = known.of_type(backend, partition.ranks, type_value.access, type_value.pattern_type);
            interval(page, &name, type_value.mb_per_second, found);
        }
    }
}

fn interval(page: &mut Page, name: &str, value: Option<f64>, interval: Option<&ValueInterval>) {
    let Some(value) = value else { return };
    let Some(interval) = interval else {
        return page.line(format!("  {name:LABEL$}{value:>12.3}  interval not known"));
    };
    let pooled = match interval.pooled_share {
        share if share > 0.005 => format!("; {} of it by the spread of similar patterns", percent(share)),
        _ => String::new(),
    };
    let ValueInterval { low, high, repeats_mb_per_second, .. } = interval;
    page.line(format!("  {name:LABEL$}{value:>12.3}  [{low:.3}, {high:.3}]"));
    page.line(format!("      the repeats alone {repeats_mb_per_second:.3}{pooled}"));
}
