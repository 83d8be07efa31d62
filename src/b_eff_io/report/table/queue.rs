//! Calibrations of the queue: what was tried and what was chosen.

use crate::b_eff_io::records::{DepthTrial, QueueCalibration, RunResult};
use crate::b_eff_io::report::layout::chunk_label;
use crate::frame::report::text::{figure, Page};
use crate::frame::units::mb_per_second;

pub(super) fn write(page: &mut Page, result: &RunResult) {
    if result.queue_calibrations.is_empty() {
        return;
    }
    page.heading("Queue depth by calibration: depth, completions waited for at once, MB/s of what was tried");
    for t in &result.queue_calibrations {
        let start = format!(
            "  {:<9.9}{:<8}{:<9} {:>4}/{:<6} tried ",
            t.backend,
            t.access.name(),
            chunk_label(t.chunk_bytes),
            t.depth,
            format!("{}{}", t.wait_for, mark(t.operation_bytes))
        );
        page.hanging(&start, &trials(t));
    }
    page.line("  A row holds for chunks of its size and larger ones, up to the next; * is the choice.");
    if result.queue_calibrations.iter().flat_map(|t| &t.trials).any(|d| d.operation_bytes.is_some()) {
        page.line("  c and a size: a chunk is moved by operations of this size, several in flight.");
    }
}

fn trials(t: &QueueCalibration) -> String {
    let trial = |d: &DepthTrial| {
        let rate = mb_per_second(d.bytes, d.seconds).map_or_else(|| "-".to_owned(), figure);
        let is_chosen = (d.depth, d.wait_for, d.operation_bytes) == (t.depth, t.wait_for, t.operation_bytes);
        let chosen = if is_chosen { "*" } else { "" };
        format!("{}/{}{}:{rate}{chosen}", d.depth, d.wait_for, mark(d.operation_bytes))
    };
    t.trials.iter().map(trial).collect::<Vec<_>>().join("  ")
}

/// `c1MB` of chunks that are moved by operations of 1 MB; nothing of whole ones.
fn mark(operation_bytes: Option<u64>) -> String {
    operation_bytes.map_or_else(String::new, |bytes| format!("c{}", chunk_label(bytes).replace(' ', "")))
}
