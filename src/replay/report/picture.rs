//! What a replay adds to the picture of the papers: bandwidth per process over processes, recorded beside replayed, a row of panels for
//! each file system and a panel for each class of functions.

use crate::frame::records::Warning;
use crate::frame::report::picture::Point;
use crate::replay::plan::names::shown;
use crate::replay::records::ReplayResult;
use crate::replay::values::{kinds, LevelKind, ReplayDerived, VerdictKind};

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
        add(
            format!("replayed, {}{}", level.backend, doubts(derived, &level.backend)),
            false,
            level.replayed_bytes_per_second,
        );
    }
    points
}

/// What keeps the points of a backend from being compared with what was recorded, behind its name: a curve of its own.
fn doubts(derived: &ReplayDerived, backend: &str) -> String {
    let verdict = match derived.verdict.verdict {
        VerdictKind::AsRecorded => None,
        VerdictKind::NotAsRecorded => Some("not as recorded"),
        VerdictKind::NotComplete => Some("not complete"),
        VerdictKind::WrongData => Some("WRONG DATA"),
    };
    let is_other_cache =
        |warning: &Warning| warning.is(&kinds::CACHE_DIFFERS) && warning.backend.as_deref() == Some(backend);
    let cache = derived.warnings.iter().any(is_other_cache).then_some("other cache state");
    verdict.into_iter().chain(cache).map(|doubt| format!(", {doubt}")).collect()
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
        // A replay that is no fair comparison is not drawn as one.
        let mut doubtful = derived.clone();
        doubtful.verdict.verdict = VerdictKind::WrongData;
        doubtful.warnings = vec![kinds::CACHE_DIFFERS.warning().of(&result.config.backends[0])];
        let curves = super::points(result, &doubtful);
        assert!(curves.iter().any(|p| p.curve.ends_with(", WRONG DATA, other cache state")), "{curves:?}");
        // What moves no bytes has no bandwidth.
        assert!(points.iter().all(|p| !p.column.contains("open")));
    }
}
