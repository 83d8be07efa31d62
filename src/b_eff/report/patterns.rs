//! One line for each pattern, and in the details its curve by each method.

use crate::b_eff::plan::Family;
use crate::b_eff::records::Method;
use crate::b_eff::values::{logavg, CommDerived, Curve, Point};
use crate::frame::report::marks::Mark;
use crate::frame::report::model::{Block, Section};
use crate::frame::report::table::{Cell, Table};
use crate::frame::report::text::{figure, percent};
use crate::frame::report::Level;
use crate::frame::units::format_size;
use crate::frame::words::{or_none, NONE};

use super::values::{mb, microseconds};

const HEAD: [&str; 8] = ["pattern", "shape", "S", "+- 95 %", "at Lmax", "best at Lmax", "latency, us", ""];

pub(super) fn sections(derived: &CommDerived, level: Level) -> impl Iterator<Item = Option<Section>> + '_ {
    let details = derived.curves.iter().filter(move |c| level == Level::Details && !c.points.is_empty());
    [average(derived), others(derived)].into_iter().chain(details.map(|c| Some(details_of(c))))
}

/// The rings and random rings, each with its logavg.
fn average(derived: &CommDerived) -> Option<Section> {
    let mut table = Table::new("MB/s", 2, HEAD).with_words();
    for family in [Family::Ring, Family::Random] {
        let curves: Vec<&Curve> = derived.family(family).collect();
        curves.iter().for_each(|curve| table.row(row(curve)));
        if curves.len() > 1 {
            let of = |value: fn(&Curve) -> Option<f64>| {
                curves.iter().map(|c| value(c)).collect::<Option<Vec<f64>>>().and_then(logavg)
            };
            table.row([
                Cell::from(format!("logavg of {}", curves.len())),
                Cell::default(),
                mb(of(|c| c.mean_bytes_per_second)),
                Cell::default(),
                mb(of(|c| c.at_lmax_bytes_per_second)),
                Cell::default(),
                microseconds(of(|c| c.latency_seconds)).into(),
            ]);
        }
        table.gap();
    }
    let note = "+- 95 %: how far the interval of the mean of S over single repetitions reaches; - not known.";
    folded("rings", "Rings and random rings", note, table)
}

/// What is reported and not averaged.
fn others(derived: &CommDerived) -> Option<Section> {
    let is_other = |c: &&Curve| ![Family::Ring, Family::Random].contains(&c.family);
    let table = Table::new("MB/s", 2, HEAD).with_words().with(derived.curves.iter().filter(is_other).map(row));
    folded("others", "Patterns outside the average", "", table)
}

fn folded(name: &'static str, title: &str, note: &str, table: Table) -> Option<Section> {
    let is_empty = table.is_empty();
    let section =
        Section::of(name, title, note, vec![Block::Folded("MB/s of every pattern".into(), vec![Block::Table(table)])]);
    section.filter(|_| !is_empty)
}

fn row(curve: &Curve) -> [Cell; 8] {
    let best = curve.at_lmax_bytes_per_second.and(curve.points.last()).map_or(NONE, |p| p.best_method.name());
    let marks: &[Mark] = if curve.machine_shared { &[Mark::Shared] } else { &[] };
    let sizes = match curve.mean_bytes_per_second {
        None => format!("{} sizes", curve.points.len()),
        Some(_) => String::new(),
    };
    [
        curve.pattern.as_str().into(),
        curve.shape.as_str().into(),
        Cell::rate(curve.mean_bytes_per_second.map(|rate| rate / 1e6), None, marks),
        or_none(curve.repeated.and_then(|r| r.reach_share).map(percent)).into(),
        mb(curve.at_lmax_bytes_per_second),
        best.into(),
        microseconds(curve.latency_seconds).into(),
        sizes.into(),
    ]
}

/// The curve of a pattern by each method.
fn details_of(curve: &Curve) -> Section {
    let methods: Vec<Method> = Method::EXCHANGES
        .into_iter()
        .chain([Method::PingPong])
        .filter(|m| curve.points.iter().any(|p| p.method(*m).is_some()))
        .collect();
    let head = ["message"].into_iter().chain(methods.iter().map(|m| m.name())).chain(["best", "best/worst", "best by"]);
    let row = |p: &Point| {
        let by_method = methods.iter().map(|m| mb(p.method(*m).map(|m| m.bytes_per_second)));
        let end = [mb(Some(p.bytes_per_second)), spread(p).into(), p.best_method.name().into()];
        [format_size(p.message_bytes).into()].into_iter().chain(by_method).chain(end).collect::<Vec<Cell>>()
    };
    let table = Table::new("MB/s by method", 0, head).with_words().with(curve.points.iter().map(row));
    let title = format!("{}, {}: MB/s by method", curve.pattern, curve.shape);
    Section { name: "pattern", title, note: String::new(), blocks: vec![Block::Table(table)] }
}

/// The largest ratio between the repetitions of one method.
fn spread(point: &Point) -> String {
    let repeated = point.methods.iter().filter(|m| m.repetitions > 1);
    let largest = repeated.map(|m| m.bytes_per_second / m.worst_bytes_per_second).reduce(f64::max);
    largest.map_or_else(|| "one loop".to_owned(), figure)
}
