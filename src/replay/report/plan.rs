//! Text of --plan.

use super::head::{content_line, profile_line, recordings_text, repetitions_text};
use crate::frame::report::text::{count, list, TextPage};
use crate::frame::report::variants::variants_text;
use crate::frame::units::format_size;
use crate::replay::config::ReplayConfig;
use crate::replay::plan::call_change::CallChange;
use crate::replay::plan::omission::OmittedCalls;
use crate::replay::plan::printable::printable;
use crate::replay::records::{BackendOmissions, ProfileFacts};

const MAX_FILES: usize = 20;

/// The plan as text.
#[must_use]
pub fn plan_text(
    config: &ReplayConfig,
    facts: &ProfileFacts,
    changed: Option<&CallChange>,
    left_out: &[BackendOmissions],
    [space_bytes, data_bytes]: [u64; 2],
) -> String {
    let mut page = TextPage::default();
    page.line("What would be replayed");
    page.blank();
    page.field("profile", &profile_line(facts));
    page.field("holds", &content_line(facts));
    page.field(
        "ranks",
        &format!("{}: mpirun -n {} beff-raw replay ...", count(facts.processes, "rank"), facts.processes),
    );
    page.field(
        "repetitions",
        &format!("{} with each of {}", repetitions_text(config.repeat, config.verify), list(&config.backends)),
    );
    if let Some(variants) = variants_text(&config.variants) {
        page.field("variants", &format!("{variants}; in turns, the files of one are removed before the next"));
    }
    if let Some(change) = &config.what_if {
        page.field("what-if", &changed.map_or(change.text(), CallChange::text));
    }
    page.field("space", &format!("up to {} under --path", format_size(space_bytes)));
    page.field("memory", &format!("up to {} for data in a rank", format_size(data_bytes)));
    page.field("recordings", &recordings_text(facts));
    if facts.calls_discarded > 0 {
        let text = format!(
            "{} after a collective call that others never made: not replayed",
            count(facts.calls_discarded, "call")
        );
        page.field("cut", &text);
    }
    let file = |(n, f): (usize, &crate::replay::records::FileFacts)| {
        let size = f
            .size_bytes
            .map_or_else(|| "not there before".to_owned(), |bytes| format!("{} before", format_size(bytes)));
        format!("file-{:04}: {} ({size})", n + 1, printable(&f.path, 300))
    };
    page.fields("files", facts.files.iter().enumerate().take(MAX_FILES).map(file));
    if facts.files.len() > MAX_FILES {
        page.field("", &format!("... and {} more", facts.files.len() - MAX_FILES));
    }
    for (number, text) in omission_lines(left_out).enumerate() {
        if number == 0 {
            page.heading("Omitted");
        }
        page.hanging("  - ", &text);
    }
    page.finish()
}

pub(super) fn omission_lines(all: &[BackendOmissions]) -> impl Iterator<Item = String> + '_ {
    let text = |backend: &str, l: &OmittedCalls| {
        format!(
            "{backend}: {} of {} with {}: {} (first: rank {} at {} ns)",
            count(l.calls, "call"),
            printable(&l.function, 60),
            format_size(l.bytes),
            printable(&l.reason, 300),
            l.rank,
            l.begin_ns
        )
    };
    all.iter().flat_map(move |of| of.omitted.iter().map(move |l| text(&of.backend, l)))
}
