//! Calibrations of the queue: what was tried and what was chosen.

use crate::b_eff_io::records::{DepthTrial, RunResult, TuningRecord};
use crate::b_eff_io::report::layout::chunk_label;
use crate::frame::report::text::{figure, Page};
use crate::frame::units::mb_per_second;

pub(super) fn write(page: &mut Page, result: &RunResult) {
    if result.tunings.is_empty() {
        return;
    }
    page.heading("Queue depth by calibration: depth, completions waited for at once, MB/s of what was tried");
    for t in &result.tunings {
        let start = format!(
            "  {:<9.9}{:<8}{:<9} {:>4}/{:<4} tried ",
            t.backend,
            t.access.name(),
            chunk_label(t.chunk_bytes),
            t.depth,
            t.wait_for
        );
        page.hanging(&start, &trials(t));
    }
    page.line("  A row holds for chunks of its size and larger ones, up to the next; * is the choice.");
}

fn trials(t: &TuningRecord) -> String {
    let trial = |d: &DepthTrial| {
        let rate = mb_per_second(d.bytes, d.seconds).map_or_else(|| "-".to_owned(), figure);
        let chosen = if (d.depth, d.wait_for) == (t.depth, t.wait_for) { "*" } else { "" };
        format!("{}/{}:{rate}{chosen}", d.depth, d.wait_for)
    };
    t.trials.iter().map(trial).collect::<Vec<_>>().join("  ")
}
