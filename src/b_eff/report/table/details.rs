//! The curve of every pattern by each method.

use crate::b_eff::records::Method;
use crate::b_eff::values::{CommDerived, Curve, Point};
use crate::frame::report::text::{figure, Page};

use super::{mb, size};

pub(super) fn write(page: &mut Page, derived: &CommDerived) {
    for curve in derived.curves.iter().filter(|c| !c.points.is_empty()) {
        pattern(page, curve);
    }
}

fn pattern(page: &mut Page, curve: &Curve) {
    let methods: Vec<Method> = Method::EXCHANGES
        .into_iter()
        .chain([Method::PingPong])
        .filter(|m| curve.points.iter().any(|p| p.method(*m).is_some()))
        .collect();
    page.heading(&format!("{}, {}: MB/s by method", curve.pattern, curve.shape));
    let names: String = methods.iter().map(|m| format!("{:>14}", m.name())).collect();
    page.line(format!("  {:>12}{names}{:>14}{:>16}  best by", "message", "best", "best/worst"));
    for point in &curve.points {
        let cells: String = methods.iter().map(|m| mb(point.method(*m).map(|m| m.bytes_per_second), 14)).collect();
        page.line(format!(
            "  {:>12}{cells}{}{:>16}  {}",
            size(point.message_bytes),
            mb(Some(point.bytes_per_second), 14),
            spread(point),
            point.best_method.name()
        ));
    }
}

/// The largest ratio between the repetitions of one method.
fn spread(point: &Point) -> String {
    let repeated = point.methods.iter().filter(|m| m.repetitions > 1);
    let largest = repeated.map(|m| m.bytes_per_second / m.worst_bytes_per_second).reduce(f64::max);
    largest.map_or_else(|| "one loop".to_owned(), figure)
}
