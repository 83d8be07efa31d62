//! The curve: bandwidth over message size, averaged over the patterns.

use crate::b_eff::values::{CommDerived, SizeAverage};
use crate::frame::report::columns::{or_none, Columns};
use crate::frame::report::text::Page;
use crate::frame::units::format_size;

pub(super) fn write(page: &mut Page, derived: &CommDerived) {
    page.heading("Bandwidth over message size: MB/s");
    let best = |s: &SizeAverage| s.best_method.map(|m| format!("{} ({} of {})", m.name(), s.best_in, s.of_patterns));
    Columns::<&SizeAverage>::new()
        .right("message", 12, |s| format_size(s.message_bytes))
        .rate("rings", 13, |s| s.rings_bytes_per_second)
        .rate("random", 13, |s| s.random_bytes_per_second)
        .rate("average", 13, |s| s.average_bytes_per_second)
        .rate("per process", 13, |s| s.per_process_bytes_per_second)
        .rate("ping-pong", 13, |s| s.ping_pong_bytes_per_second)
        .gap(2)
        .left("best method (patterns)", 0, |s| or_none(best(s)))
        .write(page, &derived.sizes);
    page.hanging(
        "  ",
        "rings and random: logavg over their patterns, best method of each; average: logavg of the two; ping-pong: one \
         direction.",
    );
}
