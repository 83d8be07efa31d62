//! The curve of every pattern by each method.

use crate::b_eff::records::Method;
use crate::b_eff::values::{CommDerived, Curve, Point};
use crate::frame::report::columns::Columns;
use crate::frame::report::text::{figure, Page};
use crate::frame::units::format_size;

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
    let mut columns = Columns::<&Point>::new().right("message", 12, |p| format_size(p.message_bytes));
    for method in methods {
        columns = columns.rate(method.name(), 14, move |p| p.method(method).map(|m| m.bytes_per_second));
    }
    columns
        .rate("best", 14, |p| Some(p.bytes_per_second))
        .right("best/worst", 16, spread)
        .gap(2)
        .left("best by", 0, |p| p.best_method.name())
        .write(page, &curve.points);
}

/// The largest ratio between the repetitions of one method.
fn spread(point: &Point) -> String {
    let repeated = point.methods.iter().filter(|m| m.repetitions > 1);
    let largest = repeated.map(|m| m.bytes_per_second / m.worst_bytes_per_second).reduce(f64::max);
    largest.map_or_else(|| "one loop".to_owned(), figure)
}
