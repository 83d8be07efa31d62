//! Parts of the time: a bar for each access method and backend, and with several backends type by type.

use crate::b_eff_io::values::ladder::TypeComparison;
use crate::b_eff_io::values::TimePart;
use crate::frame::records::AccessMethod;
use crate::frame::report::html::stacks::{self, StackedBar};
use crate::frame::report::model::{ReportBlock, ReportSection};
use crate::frame::report::picture::{Frame, Picture};
use crate::frame::report::table::{Table, TableCell};
use crate::frame::report::text::{count, percent};
use crate::frame::report::DetailLevel;
use crate::frame::units::format_seconds;
use crate::frame::words::{or_hyphen, NO_VALUE};

use super::ladder::{percent_interval, percent_of_best};
use super::layout::access_label;
use super::partition_view::PartitionView;

/// Colours of the parts, in the order of [`TimePart::ALL`]: the most important ones are the most distinct.
const PART_STYLES: [usize; 7] = [6, 5, 2, 0, 4, 1, 3];

/// A backend with the seconds of each part.
type BackendTimes<'a> = (&'a String, [f64; 7]);

/// Seconds of each part, all types together, in the order of [`TimePart::ALL`].
fn part_seconds(shown: &PartitionView, backend: &str, access: AccessMethod) -> [f64; 7] {
    let mut sums = [0.0; 7];
    let spot = shown.selector(backend, access);
    for p in spot.records(&shown.result) {
        let i = &p.intervals;
        let own = [i.view_seconds, i.preallocate_seconds, i.transfer_seconds, i.decide_seconds, i.sync_seconds];
        sums[1..6].iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
    }
    for t in spot.types(&shown.result) {
        sums[0] += t.open_seconds;
        sums[6] += t.close_seconds;
    }
    sums
}

fn sum(parts: &[f64; 7]) -> f64 {
    parts.iter().sum()
}

/// None if there is no time.
pub(super) fn section(shown: &PartitionView, level: DetailLevel) -> Option<ReportSection> {
    let bars = |access| shown.backends.iter().map(|b| (b, part_seconds(shown, b, access))).collect();
    let all: [(AccessMethod, Vec<BackendTimes<'_>>); 3] = AccessMethod::ALL.map(|access| (access, bars(access)));
    let longest = all.iter().flat_map(|(_, bars)| bars.iter().map(|(_, parts)| sum(parts))).fold(0.0, f64::max);
    if longest <= 0.0 {
        return None;
    }
    let head = ["access", "backend"].into_iter().chain(TimePart::ALL.map(TimePart::name)).chain(["together"]);
    let mut table = Table::new("Seconds of all patterns together", 2, head);
    for (access, bars) in &all {
        for (backend, parts) in bars.iter().filter(|(_, parts)| sum(parts) > 0.0) {
            let numbers = parts.iter().chain([&sum(parts)]).map(|s| format!("{s:.3}")).collect::<Vec<_>>();
            table.row([access.name().to_owned(), (*backend).clone()].into_iter().chain(numbers));
        }
    }
    let all_of = if level == DetailLevel::Page {
        ReportBlock::Picture(picture(&all, longest, table))
    } else {
        ReportBlock::Table(table)
    };
    let note = "Slowest rank. view: file view, datatypes, buffer registration; alloc: preallocation and trimming; decide: agreements, \
                waiting for slower ranks included.";
    let title = format!("Where the time goes, {}", count(shown.ranks, "rank"));
    ReportSection::of("time", title, note, [Some(all_of), by_type(shown)].into_iter().flatten().collect())
}

fn picture(all: &[(AccessMethod, Vec<BackendTimes<'_>>); 3], longest: f64, table: Table) -> Picture {
    let names = TimePart::ALL.map(TimePart::name);
    let styled: Vec<(usize, &str)> = PART_STYLES.into_iter().zip(names).collect();
    let frame = |(access, bars): &(AccessMethod, Vec<BackendTimes<'_>>)| -> Frame {
        let bar = |(backend, parts): &BackendTimes<'_>| {
            let total = sum(parts);
            let part = |(part, seconds): (&TimePart, &f64)| {
                let share = if total > 0.0 { percent(seconds / total) } else { percent(0.0) };
                (*seconds, format!("{backend}, {}: {}, {share}", part.name(), format_seconds(*seconds)))
            };
            StackedBar {
                name: (*backend).clone(),
                total: format_seconds(total),
                parts: TimePart::ALL.iter().zip(parts).map(part).collect(),
            }
        };
        let said = format!("{}: seconds of each part of the time, by backend", access_label(*access));
        stacks::frame(access_label(*access), said, &styled, &bars.iter().map(bar).collect::<Vec<_>>(), longest)
    };
    // In the order of execution; unused parts have no key.
    let is_used = |part: &usize| all.iter().flat_map(|(_, bars)| bars).any(|(_, parts)| parts[*part] > 0.0);
    Picture {
        name: "time".into(),
        title: "By access method".into(),
        keys: (0..names.len())
            .filter(is_used)
            .map(|part| stacks::legend_entry(styled[part].0, styled[part].1))
            .collect(),
        frames: all.iter().map(frame).collect(),
        table,
    }
}

/// Table of several backends, type by type; None with one.
fn by_type(shown: &PartitionView) -> Option<ReportBlock> {
    let head = ["access", "type", "backend", "% best", "95 %"].into_iter().chain(TimePart::ALL.map(TimePart::name));
    let mut table = Table::new("", 3, head);
    let mut before = None;
    for rung in shown.derived.ladder.types.iter().filter(|rung| shown.backends.contains(&rung.backend)) {
        if before.replace(rung.access).is_some_and(|before| before != rung.access) {
            table.end_group();
        }
        table.row(row(rung));
    }
    let title = "By type: percent of the time from opening to closing";
    (!table.is_empty()).then(|| ReportBlock::Folded(title.into(), vec![ReportBlock::Table(table)]))
}

fn row(rung: &TypeComparison) -> Vec<TableCell> {
    let names = [rung.access.name().into(), rung.pattern_type.label().into(), rung.backend.as_str().into()];
    let shares = match rung.shares {
        Some(shares) => shares.values().map(|v| format!("{:.1}", v * 100.0)).to_vec(),
        None => vec![NO_VALUE.to_owned(); TimePart::ALL.len()],
    };
    let ratio = rung.ratio.as_ref();
    let compared = [percent_of_best(ratio), or_hyphen(ratio.and_then(percent_interval)).into()];
    names.into_iter().chain(compared).chain(shares.into_iter().map(TableCell::from)).collect()
}
