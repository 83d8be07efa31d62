//! One line for each pattern.

use crate::b_eff::plan::Family;
use crate::b_eff::values::{logavg, CommDerived, Curve};
use crate::frame::report::text::Page;

use super::{mb, microseconds};

/// Width of the name and of the shape.
const NAME: usize = 20;
const SHAPE: usize = 26;

/// The rings and random rings, each with its logavg.
pub(super) fn average(page: &mut Page, derived: &CommDerived) {
    page.heading("Rings and random rings: MB/s");
    head(page);
    for family in [Family::Ring, Family::Random] {
        let curves: Vec<&Curve> = derived.family(family).collect();
        curves.iter().for_each(|c| line(page, c));
        if curves.len() > 1 {
            summary(page, &curves);
        }
        if family == Family::Ring {
            page.blank();
        }
    }
}

/// What is reported and not averaged.
pub(super) fn others(page: &mut Page, derived: &CommDerived) {
    let is_other = |c: &&Curve| ![Family::Ring, Family::Random].contains(&c.family);
    let curves: Vec<&Curve> = derived.curves.iter().filter(is_other).collect();
    if curves.is_empty() {
        return;
    }
    page.heading("Patterns outside the average: MB/s");
    head(page);
    curves.iter().for_each(|c| line(page, c));
}

fn head(page: &mut Page) {
    page.line(format!(
        "  {:NAME$}{:SHAPE$}{:>12}{:>12}  {:<14}{:>12}",
        "pattern", "shape", "S", "at Lmax", "best at Lmax", "latency, us"
    ));
}

fn line(page: &mut Page, curve: &Curve) {
    let best = curve.at_lmax_bytes_per_second.and(curve.points.last()).map_or("-", |p| p.best_method.name());
    let remark = match curve.mean_bytes_per_second {
        Some(_) => String::new(),
        None => format!("  {} sizes", curve.points.len()),
    };
    let shape: String = if curve.shape.chars().count() < SHAPE {
        curve.shape.clone()
    } else {
        curve.shape.chars().take(SHAPE - 5).chain(" ...".chars()).collect()
    };
    page.line(format!(
        "  {:NAME$}{shape:SHAPE$}{}{}  {best:<14}{}{remark}",
        curve.pattern,
        mb(curve.mean_bytes_per_second, 12),
        mb(curve.at_lmax_bytes_per_second, 12),
        microseconds(curve.latency_seconds, 12)
    ));
}

/// The logavg of the lines above; `-` in a column in which one of them has none.
fn summary(page: &mut Page, curves: &[&Curve]) {
    let over = |value: fn(&Curve) -> Option<f64>| {
        let values: Option<Vec<f64>> = curves.iter().map(|c| value(c)).collect();
        values.and_then(logavg)
    };
    page.line(format!(
        "  {:NAME$}{:SHAPE$}{}{}  {:<14}{}",
        format!("logavg of {}", curves.len()),
        "",
        mb(over(|c| c.mean_bytes_per_second), 12),
        mb(over(|c| c.at_lmax_bytes_per_second), 12),
        "",
        microseconds(over(|c| c.latency_seconds), 12)
    ));
}
