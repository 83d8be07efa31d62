//! The last lines, where the verdict has one line.

use crate::frame::report::ending;
use crate::frame::report::text::{count, percent, Page};
use crate::frame::units::format_seconds;
use crate::replay::records::ReplayResult;
use crate::replay::values::{LevelKind, Part, ReplayDerived, VerdictKind};

/// The last lines: how it ended, and the verdict with its counts, on one line for grep.
pub(super) fn end(page: &mut Page, result: &ReplayResult, derived: &ReplayDerived) {
    page.blank();
    if let Some(text) = ending::sentence(result.ending.outcome) {
        page.hanging("*** ", text);
    }
    page.line(line(result, derived));
}

/// The verdict, for the line that scripts look for.
pub(in crate::replay::report) fn words(verdict: VerdictKind) -> &'static str {
    match verdict {
        VerdictKind::AsRecorded => "complete, as recorded",
        VerdictKind::NotAsRecorded => "complete, NOT all as recorded",
        VerdictKind::NotComplete => "NOT complete",
        VerdictKind::WrongData => "WRONG DATA",
    }
}

fn line(result: &ReplayResult, derived: &ReplayDerived) -> String {
    let found = &derived.verdict;
    let mut parts = vec![format!("{} of {} complete", found.passes_complete, count(found.passes, "pass"))];
    if found.passes_not_run > 0 {
        parts.push(format!("{} not run", found.passes_not_run));
    }
    for backend in &result.config.backends {
        let of_run = |l: &&crate::replay::values::Level| {
            l.level == LevelKind::Run && l.part == Part::All && &l.backend == backend
        };
        if let Some(ratio) = derived.levels.iter().find(of_run).and_then(|l| l.ratio) {
            parts.push(format!("{backend} {ratio:.3} of recorded"));
        }
    }
    let share = found.checked_share.map_or_else(|| "nothing".to_owned(), percent);
    parts.push(format!("{share} of what was read compared, {} wrong", count(found.bytes_wrong, "byte")));
    parts.push(
        found.real_seconds.map_or_else(|| "no end recorded".to_owned(), |s| format!("took {}", format_seconds(s))),
    );
    let (crowded, outcome) = (ending::crowded(&result.setup.machine), ending::mark(result.ending.outcome));
    format!("replay = {}: {}{crowded}{outcome}", words(found.verdict), parts.join(", "))
}
