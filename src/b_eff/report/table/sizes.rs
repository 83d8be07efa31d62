//! The curve: bandwidth over message size, averaged over the patterns.

use crate::b_eff::values::CommDerived;
use crate::frame::report::text::Page;

use super::{mb, size};

pub(super) fn write(page: &mut Page, derived: &CommDerived) {
    page.heading("Bandwidth over message size: MB/s");
    page.line(format!(
        "  {:>12}{:>13}{:>13}{:>13}{:>13}{:>13}  {}",
        "message", "rings", "random", "average", "per process", "ping-pong", "best method (patterns)"
    ));
    for s in &derived.sizes {
        let best = s
            .best_method
            .map_or_else(|| "-".to_owned(), |m| format!("{} ({} of {})", m.name(), s.best_in, s.of_patterns));
        page.line(format!(
            "  {:>12}{}{}{}{}{}  {best}",
            size(s.message_bytes),
            mb(s.rings_bytes_per_second, 13),
            mb(s.random_bytes_per_second, 13),
            mb(s.average_bytes_per_second, 13),
            mb(s.per_process_bytes_per_second, 13),
            mb(s.ping_pong_bytes_per_second, 13)
        ));
    }
    page.hanging(
        "  ",
        "rings and random: logavg over their patterns, best method of each; average: logavg of the two; ping-pong: one \
         direction.",
    );
}
