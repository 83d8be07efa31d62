//! What a replay adds to the picture of the papers: bandwidth per process over processes, recorded beside replayed, a row of panels for
//! each file system and a panel for each class of functions.

use crate::frame::report::picture::Point;
use crate::replay::plan::names::shown;
use crate::replay::records::ReplayResult;
use crate::replay::values::{LevelKind, ReplayDerived};

/// Longest name of a file system.
const NAME: usize = 40;

/// One point for each backend and class that moved bytes, and one for what was recorded.
pub(super) fn points(result: &ReplayResult, derived: &ReplayDerived) -> Vec<Point> {
    let (row, x) = (shown(&result.setup.storage.fs_type, NAME), result.setup.profile.processes);
    let mut points = Vec::new();
    for level in derived.levels.iter().filter(|level| level.level == LevelKind::Function) {
        let Some(class) = level.class else { continue };
        let mut add = |curve: String, is_reference: bool, rate: Option<f64>| {
            let point = |rate: f64| Point {
                row: row.clone(),
                column: class.name().to_owned(),
                curve,
                is_reference,
                x,
                y: rate / 1e6,
            };
            points.extend(rate.map(point));
        };
        // Recorded once, whatever number of backends replays it: equal points join.
        add("recorded".to_owned(), true, level.recorded_bytes_per_second);
        add(format!("replayed, {}", level.backend), false, level.replayed_bytes_per_second);
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::report::fixtures;

    #[test]
    fn every_class_has_its_pair() {
        let all = fixtures::all();
        let (_, result, derived) = &all[0];
        let points = points(result, derived);
        assert!(!points.is_empty());
        for pair in points.chunks(2) {
            assert_eq!((pair[0].column.as_str(), pair[0].is_reference), (pair[1].column.as_str(), true));
            assert!(!pair[1].is_reference && pair.iter().all(|p| p.y > 0.0 && p.x == result.setup.profile.processes));
        }
        // What moves no bytes has no bandwidth.
        assert!(points.iter().all(|p| !p.column.contains("open")));
    }
}
