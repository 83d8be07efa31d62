//! Requirements of an acceptance in a plan: duration, space, and which of them the run cannot decide.

use crate::b_eff_io::plan::acceptance::PlannedRequirement;
use crate::b_eff_io::plan::preview::Preview;
use crate::frame::report::render;
use crate::frame::report::table::Table;
use crate::frame::report::text::{count, TextPage};
use crate::frame::units::{format_seconds, format_size};

/// Formats the requirements; empty without any.
#[must_use]
pub fn text(requirements: &[PlannedRequirement], plan: &Preview) -> String {
    let mut page = TextPage::default();
    if requirements.is_empty() {
        return String::new();
    }
    page.heading("Acceptance");
    let open = requirements.iter().filter(|r| r.obstacle.is_some()).count() as u64;
    let contestants = plan.input.backends as f64;
    let seconds = (plan.scheduled_seconds + plan.orders_seconds) * contestants;
    let space = plan.total_bytes;
    page.hanging(
        "  ",
        &format!(
            "The run measures for about {}, beside which it opens, syncs, compares and removes its files, and takes {} of space at the assumed rate.",
            format_seconds(seconds),
            format_size(space)
        ),
    );
    let verdict = match open {
        0 => "No obstacle is known. A requirement is decided if its interval excludes the limit, for which T may be too short, and the machine is \
              not shared."
            .to_owned(),
        open => {
            format!("{} of {} cannot be decided, or will fail:", open, count(requirements.len() as u64, "requirement"))
        }
    };
    page.hanging("  ", &verdict);
    page.blank();
    let row = |r: &PlannedRequirement| {
        let text = match (&r.obstacle, &r.remedy) {
            (Some(obstacle), Some(remedy)) => format!("{obstacle}; {remedy}"),
            (Some(obstacle), None) => obstacle.clone(),
            _ => "no obstacle".to_owned(),
        };
        [r.requirement.clone(), text]
    };
    let table = Table::new("", 1, ["requirement", "before the run"]).with_words();
    render::table(&mut page, &table.with_rows(requirements.iter().map(row)));
    page.finish()
}
