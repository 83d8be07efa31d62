//! Points of a replay for the picture of the papers: bandwidth per process over processes, recorded and replayed, a row of panels for
//! each file system and a panel for each class of functions.

use crate::frame::records::Warning;
use crate::frame::report::picture::MeasuredPoint;
use crate::replay::plan::printable::printable;
use crate::replay::records::ReplayResult;
use crate::replay::values::{kinds, Fidelity, LevelKind, ReplayDerived};

const MAX_NAME_CHARS: usize = 40;

/// One recorded and one replayed point for each backend and class that transferred bytes.
pub(super) fn points(result: &ReplayResult, derived: &ReplayDerived) -> Vec<MeasuredPoint> {
    let (row, x) = (printable(&result.setup.storage.fs_type, MAX_NAME_CHARS), result.setup.profile.processes);
    let mut points = Vec::new();
    for level in derived.levels.iter().filter(|level| level.level == LevelKind::Function) {
        let Some(class) = level.class else { continue };
        let mut add = |curve: String, is_reference: bool, rate: Option<f64>| {
            let point = |rate: f64| MeasuredPoint {
                row: row.clone(),
                column: class.name().to_owned(),
                curve,
                run: String::new(),
                is_reference,
                x,
                y: rate / 1e6,
            };
            points.extend(rate.map(point));
        };
        // Recorded once for all backends: equal points are merged.
        add("recorded".to_owned(), true, level.recorded_bytes_per_second);
        add(
            format!("replayed, {}{}", level.backend, caveats(derived, &level.backend)),
            false,
            level.replayed_bytes_per_second,
        );
    }
    points
}

/// Reasons why the points of a backend are not comparable with the recorded ones. They are part of its name and so give a separate curve.
fn caveats(derived: &ReplayDerived, backend: &str) -> String {
    let verdict = match derived.verdict.verdict {
        Fidelity::AsRecorded => None,
        Fidelity::NotAsRecorded => Some("not as recorded"),
        Fidelity::NotComplete => Some("not complete"),
        Fidelity::WrongData => Some("WRONG DATA"),
    };
    let is_other_cache =
        |warning: &Warning| warning.is_kind(&kinds::CACHE_DIFFERS) && warning.backend.as_deref() == Some(backend);
    let cache = derived.warnings.iter().any(is_other_cache).then_some("other cache state");
    verdict.into_iter().chain(cache).map(|doubt| format!(", {doubt}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::report::fixtures;

    #[test]
    fn every_class_has_a_recorded_and_a_replayed_point() {
        let all = fixtures::all();
        let (_, result, derived) = &all[0];
        let points = points(result, derived);
        assert!(!points.is_empty());
        for pair in points.chunks(2) {
            assert_eq!((pair[0].column.as_str(), pair[0].is_reference), (pair[1].column.as_str(), true));
            assert!(!pair[1].is_reference && pair.iter().all(|p| p.y > 0.0 && p.x == result.setup.profile.processes));
        }
        // A replay that is not comparable is not drawn as one.
        let mut doubtful = derived.clone();
        doubtful.verdict.verdict = Fidelity::WrongData;
        doubtful.warnings = vec![kinds::CACHE_DIFFERS.warning().for_backend(&result.config.backends[0])];
        let curves = super::points(result, &doubtful);
        assert!(curves.iter().any(|p| p.curve.ends_with(", WRONG DATA, other cache state")), "{curves:?}");
        // Calls without bytes have no bandwidth.
        assert!(points.iter().all(|p| !p.column.contains("open")));
    }
}
