//! Where the time goes: for each access method and backend a bar of its parts.

use crate::b_eff_io::values::Part;
use crate::frame::records::Access;
use crate::frame::report::html::stacks::{self, Bar};
use crate::frame::report::html::{Block, Picture, Section, Table};
use crate::frame::report::text::percent;
use crate::frame::units::format_seconds;

use super::shown::{access_label, Shown};

/// Colours of the parts, in the order of [`Part::ALL`]: those that matter most are told apart best.
const STYLES: [usize; 7] = [6, 5, 2, 0, 4, 1, 3];

/// A backend with the seconds of each part.
type Parts<'a> = (&'a String, [f64; 7]);

/// Seconds of each part, all types together, in the order of [`Part::ALL`].
fn parts(shown: &Shown, backend: &str, access: Access) -> [f64; 7] {
    let mut sums = [0.0; 7];
    for p in shown.result.patterns.iter().filter(|p| p.backend == backend && p.access == access) {
        let i = &p.intervals;
        let own = [i.view_seconds, i.room_seconds, i.transfer_seconds, i.decide_seconds, i.sync_seconds];
        sums[1..6].iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
    }
    for t in shown.result.types.iter().filter(|t| t.backend == backend && t.access == access) {
        sums[0] += t.open_seconds;
        sums[6] += t.close_seconds;
    }
    sums
}

/// None if no time passed.
pub(super) fn section(shown: &Shown) -> Option<Section> {
    let names = Part::ALL.map(Part::name);
    let styled: Vec<(usize, &str)> = STYLES.into_iter().zip(names).collect();
    let bars = |access| shown.backends.iter().map(|b| (b, parts(shown, b, access))).collect();
    let all: [(Access, Vec<Parts<'_>>); 3] = Access::ALL.map(|access| (access, bars(access)));
    let sum = |parts: &[f64; 7]| parts.iter().sum::<f64>();
    let longest = all.iter().flat_map(|(_, bars)| bars.iter().map(|(_, parts)| sum(parts))).fold(0.0, f64::max);
    if longest <= 0.0 {
        return None;
    }
    let mut table = Table::new("Seconds", 2, ["access", "backend"].into_iter().chain(names).chain(["together"]));
    let mut frames = Vec::new();
    for (access, bars) in &all {
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
        for (backend, parts) in bars {
            let numbers = parts.iter().chain([&sum(parts)]).map(|s| format!("{s:.3}")).collect::<Vec<_>>();
            table.row([access_label(*access).to_owned(), (*backend).clone()].into_iter().chain(numbers));
        }
        let bars: Vec<Bar> = bars.iter().map(bar).collect();
        let said = format!("{}: seconds of each part of the time, by backend", access_label(*access));
        frames.push(stacks::frame(access_label(*access), said, &styled, &bars, longest));
    }
    // In the order of work; what nobody needed is not explained.
    let is_used = |part: &usize| all.iter().flat_map(|(_, bars)| bars).any(|(_, parts)| parts[*part] > 0.0);
    let keys = (0..names.len()).filter(is_used).map(|part| stacks::key(styled[part].0, styled[part].1)).collect();
    let title = "Where the time goes".to_owned();
    let picture = Picture { name: "time".into(), title: "By access method".into(), keys, frames, table };
    let note = "All patterns of the partition together, slowest rank, in seconds. decide: agreeing to go on or stop, waiting for slower \
                ranks included."
        .into();
    Some(Section { name: "time", title, note, blocks: vec![Block::Picture(picture)] })
}
