//! One row for each pattern, and in the details its curve by each method.

use beff_statistics::bootstrap::Interval;

use crate::b_eff::plan::PatternFamily;
use crate::b_eff::records::MessageMethod;
use crate::b_eff::values::{logavg, CommDerived, PatternCurve, RateEstimate, SizePoint};
use crate::frame::report::marks::QualityMark;
use crate::frame::report::model::{ReportBlock, ReportSection};
use crate::frame::report::table::{Table, TableCell};
use crate::frame::report::text::{figure, percent};
use crate::frame::report::DetailLevel;
use crate::frame::units::format_size;
use crate::frame::words::{or_hyphen, NO_VALUE};

use super::values::{mb, microseconds};

const HEAD: [&str; 8] = ["pattern", "shape", "S", "+- 95 %", "at Lmax", "best at Lmax", "latency, us", ""];

pub(super) fn sections(derived: &CommDerived, level: DetailLevel) -> impl Iterator<Item = Option<ReportSection>> + '_ {
    let details = derived.curves.iter().filter(move |c| level == DetailLevel::Details && !c.points.is_empty());
    [patterns_of_average(derived), patterns_outside_average(derived)]
        .into_iter()
        .chain(details.map(|c| Some(details_of(c))))
}

/// The rings and random rings, each with its logavg.
fn patterns_of_average(derived: &CommDerived) -> Option<ReportSection> {
    let mut table = Table::new("MB/s", 2, HEAD).with_words();
    for family in [PatternFamily::Ring, PatternFamily::Random] {
        let curves: Vec<&PatternCurve> = derived.family(family).collect();
        curves.iter().for_each(|curve| table.row(row(curve)));
        if curves.len() > 1 {
            let of = |value: fn(&PatternCurve) -> Option<f64>| {
                curves.iter().map(|c| value(c)).collect::<Option<Vec<f64>>>().and_then(logavg)
            };
            table.row([
                TableCell::from(format!("logavg of {}", curves.len())),
                TableCell::default(),
                mb(of(|c| c.mean_bytes_per_second)),
                TableCell::default(),
                mb(of(|c| c.at_lmax_bytes_per_second)),
                TableCell::default(),
                microseconds(of(|c| c.latency_seconds)).into(),
            ]);
        }
        table.end_group();
    }
    let note = "+- 95 %: half-width of the interval of the mean of S over single repetitions; wide: its ends differ by more than a factor \
                of two; - unknown.";
    folded("rings", "Rings and random rings", note, table)
}

fn patterns_outside_average(derived: &CommDerived) -> Option<ReportSection> {
    let is_other = |c: &&PatternCurve| ![PatternFamily::Ring, PatternFamily::Random].contains(&c.family);
    let table = Table::new("MB/s", 2, HEAD).with_words().with_rows(derived.curves.iter().filter(is_other).map(row));
    folded("others", "Patterns outside the average", "", table)
}

fn folded(name: &'static str, title: &str, note: &str, table: Table) -> Option<ReportSection> {
    let is_empty = table.is_empty();
    let section = ReportSection::of(
        name,
        title,
        note,
        vec![ReportBlock::Folded("MB/s of every pattern".into(), vec![ReportBlock::Table(table)])],
    );
    section.filter(|_| !is_empty)
}

fn half_width(found: RateEstimate) -> Option<String> {
    let is_wide = found.interval_bytes_per_second.is_some_and(|ends| !Interval::from(ends).is_resolved());
    if is_wide {
        return Some("wide".to_owned());
    }
    found.half_width_share.map(percent)
}

fn row(curve: &PatternCurve) -> [TableCell; 8] {
    let best = curve.at_lmax_bytes_per_second.and(curve.points.last()).map_or(NO_VALUE, |p| p.best_method.name());
    let marks: &[QualityMark] = if curve.is_disturbed { &[QualityMark::Interference] } else { &[] };
    let sizes = match curve.mean_bytes_per_second {
        None => format!("{} sizes", curve.points.len()),
        Some(_) => String::new(),
    };
    [
        curve.pattern.as_str().into(),
        curve.shape.as_str().into(),
        TableCell::rate(curve.mean_bytes_per_second.map(|rate| rate / 1e6), None, marks),
        or_hyphen(curve.repeated.and_then(half_width)).into(),
        mb(curve.at_lmax_bytes_per_second),
        best.into(),
        microseconds(curve.latency_seconds).into(),
        sizes.into(),
    ]
}

fn details_of(curve: &PatternCurve) -> ReportSection {
    let methods: Vec<MessageMethod> = MessageMethod::EXCHANGES
        .into_iter()
        .chain([MessageMethod::PingPong])
        .filter(|m| curve.points.iter().any(|p| p.method(*m).is_some()))
        .collect();
    let head = ["message"].into_iter().chain(methods.iter().map(|m| m.name())).chain(["best", "best/worst", "best by"]);
    let row = |p: &SizePoint| {
        let by_method = methods.iter().map(|m| mb(p.method(*m).map(|m| m.bytes_per_second)));
        let end = [mb(Some(p.bytes_per_second)), repetition_spread(p).into(), p.best_method.name().into()];
        [format_size(p.message_bytes).into()].into_iter().chain(by_method).chain(end).collect::<Vec<TableCell>>()
    };
    let table = Table::new("MB/s by method", 0, head).with_words().with_rows(curve.points.iter().map(row));
    let title = format!("{}, {}: MB/s by method", curve.pattern, curve.shape);
    ReportSection { name: "pattern", title, note: String::new(), blocks: vec![ReportBlock::Table(table)] }
}

/// The largest ratio between the repetitions of one method.
fn repetition_spread(point: &SizePoint) -> String {
    let repeated = point.methods.iter().filter(|m| m.repetitions > 1);
    let largest = repeated.map(|m| m.bytes_per_second / m.worst_bytes_per_second).reduce(f64::max);
    largest.map_or_else(|| "one loop".to_owned(), figure)
}
