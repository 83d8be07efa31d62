//! Comparison of two sides of runs, as text for a terminal, as Markdown and as JSON. Pure functions.

mod blocks;
pub mod history;
mod view;
mod wording;

pub use view::{ComparisonSide, ComparisonView};

use serde::Serialize;

use super::render;
use super::render::markdown::escaped;
use super::text::TextPage;
use crate::frame::values::compare::Comparison;
use crate::frame::values::gate::GateResult;

#[derive(Debug, Serialize)]
struct ComparisonDocument<'a> {
    sides: [&'a str; 2],
    #[serde(flatten)]
    comparison: &'a Comparison,
    comparable: bool,
    gate: Option<&'a GateResult>,
}

const WIDTH: usize = 80;

/// For a terminal: some 40 lines unless the full comparison is requested.
#[must_use]
pub fn text(view: &ComparisonView<'_>) -> String {
    let mut page = TextPage::with_width(WIDTH);
    if let Some(line) = wording::inconclusive_line(view) {
        page.hanging("", &line);
    }
    let [a, b] = view.sides;
    page.hanging("", &format!("beff-raw compare: {}, {} against {}", view.title, b.name, a.name));
    render::blocks(&mut page, &blocks::comparison_blocks(view));
    if let Some(gate) = view.gate {
        page.blank();
        page.hanging("", &wording::gate_text(gate, view));
    }
    page.finish()
}

/// As Markdown, for the summary of a CI job.
#[must_use]
pub fn markdown(view: &ComparisonView<'_>) -> String {
    let [a, b] = view.sides;
    let title = crate::frame::terminal_escape::line(view.title);
    let gate = view.gate.map(|gate| wording::gate_text(gate, view));
    let bold = |text: String| format!("\n**{}**\n", escaped(&text));
    let lines: String = wording::inconclusive_line(view).into_iter().chain(gate).map(bold).collect();
    format!(
        "## {}: {} against {}\n{lines}{}",
        escaped(&title),
        b.name,
        a.name,
        render::markdown::markdown(&blocks::comparison_blocks(view))
    )
}

/// All comparisons as one document.
///
/// # Errors
/// None for a valid comparison; an error is a defect.
pub fn json(title: &str, sides: &[ComparisonSide], views: &[ComparisonView<'_>]) -> Result<Vec<u8>, serde_json::Error> {
    let of = |view: &ComparisonView<'_>| {
        let [a, b] = view.sides;
        let comparable = view.comparison.is_comparable();
        serde_json::to_value(ComparisonDocument {
            sides: [&a.name, &b.name],
            comparison: view.comparison,
            comparable,
            gate: view.gate,
        })
    };
    let comparisons: Result<Vec<serde_json::Value>, _> = views.iter().map(of).collect();
    let document = serde_json::json!({
        "program": "beff-raw", "compared": title, "sides": sides, "comparisons": comparisons?,
    });
    let mut bytes = serde_json::to_vec_pretty(&document)?;
    bytes.push(b'\n');
    Ok(crate::frame::terminal_escape::json(bytes))
}
