//! What would be replayed.

use super::head::{content, profile, recordings};
use crate::frame::report::text::{count, list, Page};
use crate::frame::units::format_size;
use crate::replay::config::ReplayConfig;
use crate::replay::plan::left_out::LeftOut;
use crate::replay::plan::names::shown;
use crate::replay::records::{BackendLeavings, ProfileFacts};

/// Files shown.
const MOST: usize = 20;

/// The plan as text.
#[must_use]
pub fn text(
    config: &ReplayConfig,
    facts: &ProfileFacts,
    left_out: &[BackendLeavings],
    space_bytes: u64,
    data_bytes: u64,
) -> String {
    let mut page = Page::default();
    page.line("What would be replayed");
    page.blank();
    page.field("profile", &profile(facts));
    page.field("holds", &content(facts));
    page.field(
        "ranks",
        &format!("{}: mpirun -n {} beff-raw replay ...", count(facts.processes, "rank"), facts.processes),
    );
    page.field("passes", &format!("{} with each of {}", count(config.repeat, "pass"), list(&config.backends)));
    page.field("space", &format!("up to {} under --path", format_size(space_bytes)));
    page.field("memory", &format!("up to {} for data in a rank", format_size(data_bytes)));
    page.field("recordings", &recordings(facts));
    if facts.calls_cut > 0 {
        let text =
            format!("{} behind a collective call that others never made: not replayed", count(facts.calls_cut, "call"));
        page.field("cut", &text);
    }
    let file = |(n, f): (usize, &crate::replay::records::FileFacts)| {
        let size = f
            .size_bytes
            .map_or_else(|| "not there before".to_owned(), |bytes| format!("{} before", format_size(bytes)));
        format!("file-{:04}: {} ({size})", n + 1, shown(&f.path, 300))
    };
    page.fields("files", facts.files.iter().enumerate().take(MOST).map(file));
    if facts.files.len() > MOST {
        page.field("", &format!("... and {} more", facts.files.len() - MOST));
    }
    for (number, text) in leavings(left_out).enumerate() {
        if number == 0 {
            page.heading("Left out");
        }
        page.hanging("  - ", &text);
    }
    page.finish()
}

/// What each backend leaves out.
pub(super) fn leavings(all: &[BackendLeavings]) -> impl Iterator<Item = String> + '_ {
    let text = |backend: &str, l: &LeftOut| {
        format!(
            "{backend}: {} of {} with {}: {} (first: rank {} at {} ns)",
            count(l.calls, "call"),
            shown(&l.function, 60),
            format_size(l.bytes),
            shown(&l.reason, 300),
            l.rank,
            l.begin_ns
        )
    };
    all.iter().flat_map(move |of| of.left_out.iter().map(move |l| text(&of.backend, l)))
}
