//! Where the time of each backend goes, type by type, and what follows from it in words.

use beff_statistics::bootstrap::{Ratio, MIN_ROUNDS};

use crate::b_eff_io::config::RepeatPolicy;
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{PartitionRecord, RunResult};
use crate::b_eff_io::report::cells::type_cell;
use crate::b_eff_io::report::layout::Spot;
use crate::b_eff_io::report::verdicts::{about, sentence};
use crate::b_eff_io::values::ladder::TypeRung;
use crate::b_eff_io::values::{Derived, Part};
use crate::frame::records::Access;
use crate::frame::report::marks::Legend;
use crate::frame::report::text::{count, Page};

/// Widths of the columns of the parts.
const PARTS: [usize; 7] = [5, 6, 6, 9, 7, 6, 6];

pub(super) fn write(page: &mut Page, result: &RunResult, derived: &Derived, partition: &PartitionRecord) {
    let ranks = partition.ranks;
    let rungs: Vec<&TypeRung> = derived.ladder.types.iter().filter(|r| r.ranks == ranks).collect();
    if rungs.is_empty() {
        return;
    }
    page.heading(&format!(
        "Where the time goes on {}: percent of the time from opening to closing",
        count(ranks, "rank")
    ));
    let names: String = Part::ALL.iter().zip(PARTS).map(|(part, width)| format!("{:>width$}", part.name())).collect();
    page.line(format!(
        "  {:<8}{:<12}{:<9}{:>9}    {:>6} {:<14}{names}",
        "access", "type", "backend", "MB/s", "% best", "95 % interval"
    ));
    let mut legend = Legend::default();
    let mut before: Option<(Access, PatternType)> = None;
    for rung in &rungs {
        let place = (rung.access, rung.pattern_type);
        if before.is_some_and(|b| b.0 != rung.access) {
            page.blank();
        }
        page.line(row(result, derived, rung, before != Some(place), &mut legend));
        before = Some(place);
    }
    page.hanging(
        "  columns: ",
        "view: file view, datatypes, registration; room: making the file longer; decide: agreeing to go on, waiting for \
         slower ranks included; = equal to the best: the interval of the ratio contains 1",
    );
    legend.write(page);
    verdicts(page, result, derived, ranks);
}

fn row(result: &RunResult, derived: &Derived, rung: &TypeRung, first: bool, legend: &mut Legend) -> String {
    let spot = Spot { backend: &rung.backend, ranks: rung.ranks, access: rung.access };
    let cell = type_cell(result, derived, spot, rung.pattern_type);
    legend.note(&cell);
    let decimals = if cell.mb_per_second.is_some_and(|v| v < 10.0) { 3 } else { 1 };
    let place = if first {
        format!("{:<8}{:<12}", rung.access.name(), format!("{} {}", rung.pattern_type, rung.pattern_type.name()))
    } else {
        String::new()
    };
    let (ratio, interval) = rung.ratio.as_ref().map_or_else(|| ("-".to_owned(), String::new()), ratio);
    let equal = if rung.ratio.is_some_and(|r| r.equal == Some(true)) { '=' } else { ' ' };
    let parts: String = match rung.shares {
        Some(shares) => shares.values().iter().zip(PARTS).map(|(v, w)| format!("{:>w$.1}", v * 100.0)).collect(),
        None => PARTS.iter().map(|w| format!("{:>w$}", "-")).collect(),
    };
    format!("  {place:<20}{:<9.8}{}{ratio:>6}{equal}{interval:<14}{parts}", rung.backend, cell.show(9, decimals))
}

/// The ratio and its interval in percent.
fn ratio(ratio: &Ratio) -> (String, String) {
    let interval = ratio.interval.map(|i| format!("[{}, {}]", in_percent(i.low), in_percent(i.high)));
    (in_percent(ratio.value), interval.unwrap_or_default())
}

/// In percent, with as many digits as five columns hold.
pub(super) fn in_percent(ratio: f64) -> String {
    let percent = ratio * 100.0;
    let decimals = match percent {
        p if p < 0.995 => 2,
        p if p < 999.5 => 1,
        _ => 0,
    };
    format!("{percent:.decimals$}")
}

/// Why so many of the types have no interval, and what to do.
fn no_interval(repeat: RepeatPolicy, unknown: usize, types: usize) -> String {
    let (cause, next_step) = match repeat {
        RepeatPolicy::Off => ("were not measured again", "--repeat rounds measures them again."),
        RepeatPolicy::Rounds | RepeatPolicy::Auto => (
            "were not measured three times by both",
            "If they had no time: a longer T, or less --memory-per-process (shorter calls).",
        ),
    };
    format!(
        "{unknown} of {types} types have no interval, their difference may be chance: patterns with fewer than {MIN_ROUNDS} rounds {cause}. {next_step}"
    )
}

fn verdicts(page: &mut Page, result: &RunResult, derived: &Derived, ranks: u64) {
    let of_partition: Vec<_> = derived.ladder.verdicts.iter().filter(|v| v.ranks == ranks).collect();
    if of_partition.is_empty() {
        return;
    }
    page.heading(&format!("What the differences are on {}", count(ranks, "rank")));
    let types = || of_partition.iter().filter(|v| v.pattern.is_none());
    let unknown = types().filter(|v| v.ratio.interval.is_none()).count();
    if of_partition.iter().any(|v| v.ratio.interval.is_some()) {
        page.line("  In brackets: 95 % intervals. mpiio is compared with the best backend; where it is the best, the slowest is.");
    }
    if unknown > 0 {
        page.hanging("  ", &no_interval(result.config.repeat, unknown, types().count()));
    }
    for access in Access::ALL {
        let (types, patterns): (Vec<_>, Vec<_>) =
            of_partition.iter().filter(|v| v.access == access).partition(|v| v.pattern.is_none());
        for (list, name) in [(types, "types"), (patterns, "patterns furthest behind")] {
            if list.is_empty() {
                continue;
            }
            page.blank();
            page.line(format!("  {}, {name}", access.name()));
            for v in list {
                page.hanging("    - ", &format!("{}: {}", about(result, v), sentence(result, derived, v)));
            }
        }
    }
}
