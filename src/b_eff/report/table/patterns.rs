//! One line for each pattern.

use crate::b_eff::plan::Family;
use crate::b_eff::values::{logavg, CommDerived, Curve};
use crate::frame::report::columns::{or_none, Columns};
use crate::frame::report::marks::{Legend, Mark};
use crate::frame::report::text::{percent, Page};

use super::values::microseconds;

/// Width of the shape.
const SHAPE: usize = 18;

/// One curve, or the logavg of several.
#[derive(Clone, Copy)]
enum Line<'a> {
    One(&'a Curve),
    LogavgOf(&'a [&'a Curve]),
}

/// The rings and random rings, each with its logavg.
pub(super) fn average(page: &mut Page, derived: &CommDerived) {
    page.heading("Rings and random rings: MB/s");
    page.line(columns().headings());
    for family in [Family::Ring, Family::Random] {
        let curves: Vec<&Curve> = derived.family(family).collect();
        let summary = (curves.len() > 1).then_some(Line::LogavgOf(&curves));
        lines(page, curves.iter().map(|c| Line::One(c)).chain(summary));
        if family == Family::Ring {
            page.blank();
        }
    }
    page.hanging("  +- 95 %: ", "how far the interval of the mean of S over single repetitions reaches; - not known.");
}

/// What is reported and not averaged.
pub(super) fn others(page: &mut Page, derived: &CommDerived) {
    let is_other = |c: &&Curve| ![Family::Ring, Family::Random].contains(&c.family);
    let curves: Vec<&Curve> = derived.curves.iter().filter(is_other).collect();
    if curves.is_empty() {
        return;
    }
    page.heading("Patterns outside the average: MB/s");
    page.line(columns().headings());
    lines(page, curves.into_iter().map(Line::One));
}

fn lines<'a>(page: &mut Page, lines: impl Iterator<Item = Line<'a>>) {
    let (columns, mut legend) = (columns(), Legend::default());
    for line in lines {
        page.line(columns.row(line));
        if matches!(line, Line::One(c) if c.machine_shared) {
            legend.note_marks(&[Mark::Shared]);
        }
    }
    legend.write(page);
}

fn columns<'a>() -> Columns<'a, Line<'a>> {
    Columns::new()
        .left("pattern", 20, Line::name)
        .left("shape", SHAPE, Line::shape)
        .rate("S", 12, |line| line.value(|c| c.mean_bytes_per_second))
        .right("+- 95 %", 8, Line::reach)
        .rate("at Lmax", 12, |line| line.value(|c| c.at_lmax_bytes_per_second))
        .gap(2)
        .left("best at Lmax", 14, Line::best)
        .right("latency, us", 12, |line| microseconds(line.value(|c| c.latency_seconds)))
        .left("", 0, Line::remark)
}

impl Line<'_> {
    /// Of several curves their logavg; None if one of them has none.
    fn value(self, value: fn(&Curve) -> Option<f64>) -> Option<f64> {
        match self {
            Self::One(curve) => value(curve),
            Self::LogavgOf(curves) => curves.iter().map(|c| value(c)).collect::<Option<Vec<f64>>>().and_then(logavg),
        }
    }

    fn name(self) -> String {
        match self {
            Self::One(curve) => curve.pattern.clone(),
            Self::LogavgOf(curves) => format!("logavg of {}", curves.len()),
        }
    }

    fn shape(self) -> String {
        match self {
            Self::One(curve) if curve.shape.chars().count() < SHAPE => curve.shape.clone(),
            Self::One(curve) => curve.shape.chars().take(SHAPE - 5).chain(" ...".chars()).collect(),
            Self::LogavgOf(_) => String::new(),
        }
    }

    /// How far the interval of single repetitions reaches.
    fn reach(self) -> String {
        match self {
            Self::One(curve) => or_none(curve.repeated.and_then(|r| r.reach_share).map(percent)),
            Self::LogavgOf(_) => String::new(),
        }
    }

    fn best(self) -> &'static str {
        match self {
            Self::One(c) => c.at_lmax_bytes_per_second.and(c.points.last()).map_or("-", |p| p.best_method.name()),
            Self::LogavgOf(_) => "",
        }
    }

    fn remark(self) -> String {
        match self {
            Self::One(c) => {
                let sizes = c.mean_bytes_per_second.is_none().then(|| format!("  {} sizes", c.points.len()));
                let mark = c.machine_shared.then(|| format!("  {}", Mark::Shared.letter()));
                [sizes, mark].into_iter().flatten().collect()
            }
            Self::LogavgOf(_) => String::new(),
        }
    }
}
