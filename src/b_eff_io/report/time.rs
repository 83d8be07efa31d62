//! Where the time goes: for each access method and backend a bar of its parts, and of several backends type by type.

use crate::b_eff_io::values::ladder::TypeRung;
use crate::b_eff_io::values::Part;
use crate::frame::records::Access;
use crate::frame::report::html::stacks::{self, Bar};
use crate::frame::report::model::{Block, Section};
use crate::frame::report::picture::{Frame, Picture};
use crate::frame::report::table::{Cell, Table};
use crate::frame::report::text::{count, percent};
use crate::frame::report::Level;
use crate::frame::units::format_seconds;
use crate::frame::words::{or_none, NONE};

use super::ladder::{interval, of_best};
use super::layout::access_label;
use super::shown::Shown;

/// Colours of the parts, in the order of [`Part::ALL`]: those that matter most are told apart best.
const STYLES: [usize; 7] = [6, 5, 2, 0, 4, 1, 3];

/// A backend with the seconds of each part.
type Parts<'a> = (&'a String, [f64; 7]);

/// Seconds of each part, all types together, in the order of [`Part::ALL`].
fn parts(shown: &Shown, backend: &str, access: Access) -> [f64; 7] {
    let mut sums = [0.0; 7];
    let spot = shown.spot(backend, access);
    for p in spot.records(&shown.result) {
        let i = &p.intervals;
        let own = [i.view_seconds, i.room_seconds, i.transfer_seconds, i.decide_seconds, i.sync_seconds];
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

/// None if no time passed.
pub(super) fn section(shown: &Shown, level: Level) -> Option<Section> {
    let bars = |access| shown.backends.iter().map(|b| (b, parts(shown, b, access))).collect();
    let all: [(Access, Vec<Parts<'_>>); 3] = Access::ALL.map(|access| (access, bars(access)));
    let longest = all.iter().flat_map(|(_, bars)| bars.iter().map(|(_, parts)| sum(parts))).fold(0.0, f64::max);
    if longest <= 0.0 {
        return None;
    }
    let head = ["access", "backend"].into_iter().chain(Part::ALL.map(Part::name)).chain(["together"]);
    let mut table = Table::new("Seconds of all patterns together", 2, head);
    for (access, bars) in &all {
        for (backend, parts) in bars.iter().filter(|(_, parts)| sum(parts) > 0.0) {
            let numbers = parts.iter().chain([&sum(parts)]).map(|s| format!("{s:.3}")).collect::<Vec<_>>();
            table.row([access.name().to_owned(), (*backend).clone()].into_iter().chain(numbers));
        }
    }
    let all_of = if level == Level::Page { Block::Picture(picture(&all, longest, table)) } else { Block::Table(table) };
    let note = "Slowest rank. view: file view, datatypes, registration; room: making the file longer; decide: agreeing to go on or stop, waiting \
                for slower ranks included.";
    let title = format!("Where the time goes, {}", count(shown.ranks, "rank"));
    Section::of("time", title, note, [Some(all_of), by_type(shown)].into_iter().flatten().collect())
}

fn picture(all: &[(Access, Vec<Parts<'_>>); 3], longest: f64, table: Table) -> Picture {
    let names = Part::ALL.map(Part::name);
    let styled: Vec<(usize, &str)> = STYLES.into_iter().zip(names).collect();
    let frame = |(access, bars): &(Access, Vec<Parts<'_>>)| -> Frame {
        let bar = |(backend, parts): &Parts<'_>| {
            let total = sum(parts);
            let part = |(part, seconds): (&Part, &f64)| {
                let share = if total > 0.0 { percent(seconds / total) } else { percent(0.0) };
                (*seconds, format!("{backend}, {}: {}, {share}", part.name(), format_seconds(*seconds)))
            };
            Bar {
                name: (*backend).clone(),
                total: format_seconds(total),
                parts: Part::ALL.iter().zip(parts).map(part).collect(),
            }
        };
        let said = format!("{}: seconds of each part of the time, by backend", access_label(*access));
        stacks::frame(access_label(*access), said, &styled, &bars.iter().map(bar).collect::<Vec<_>>(), longest)
    };
    // In the order of work; what nobody needed is not explained.
    let is_used = |part: &usize| all.iter().flat_map(|(_, bars)| bars).any(|(_, parts)| parts[*part] > 0.0);
    Picture {
        name: "time".into(),
        title: "By access method".into(),
        keys: (0..names.len()).filter(is_used).map(|part| stacks::key(styled[part].0, styled[part].1)).collect(),
        frames: all.iter().map(frame).collect(),
        table,
    }
}

/// Several backends, type by type; None of one.
fn by_type(shown: &Shown) -> Option<Block> {
    let head = ["access", "type", "backend", "% best", "95 %"].into_iter().chain(Part::ALL.map(Part::name));
    let mut table = Table::new("", 3, head);
    let mut before = None;
    for rung in shown.derived.ladder.types.iter().filter(|rung| shown.backends.contains(&rung.backend)) {
        if before.replace(rung.access).is_some_and(|before| before != rung.access) {
            table.gap();
        }
        table.row(row(rung));
    }
    let title = "By type: percent of the time from opening to closing";
    (!table.is_empty()).then(|| Block::Folded(title.into(), vec![Block::Table(table)]))
}

fn row(rung: &TypeRung) -> Vec<Cell> {
    let names = [rung.access.name().into(), rung.pattern_type.label().into(), rung.backend.as_str().into()];
    let shares = match rung.shares {
        Some(shares) => shares.values().map(|v| format!("{:.1}", v * 100.0)).to_vec(),
        None => vec![NONE.to_owned(); Part::ALL.len()],
    };
    let ratio = rung.ratio.as_ref();
    let compared = [of_best(ratio), or_none(ratio.and_then(interval)).into()];
    names.into_iter().chain(compared).chain(shares.into_iter().map(Cell::from)).collect()
}
