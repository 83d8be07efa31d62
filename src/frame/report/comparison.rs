//! Two sides of runs against each other, as text for a terminal, as Markdown and as JSON. Pure functions.

mod blocks;
mod view;
mod words;

pub use view::{Side, View};

use serde::Serialize;

use super::render;
use super::render::markdown::escaped;
use super::text::Page;
use crate::frame::values::compare::{Comparison, Gate};

/// A comparison as a document has it.
#[derive(Debug, Serialize)]
struct Compared<'a> {
    sides: [&'a str; 2],
    #[serde(flatten)]
    comparison: &'a Comparison,
    comparable: bool,
    gate: Option<&'a Gate>,
}

/// Widest line on a terminal, in characters.
const WIDTH: usize = 80;

/// On a terminal: some 40 lines unless all of it is asked for.
#[must_use]
pub fn text(view: &View<'_>) -> String {
    let mut page = Page::of_width(WIDTH);
    let [a, b] = view.sides;
    page.hanging("", &format!("beff-raw compare: {}, {} against {}", view.title, b.name, a.name));
    render::blocks(&mut page, &blocks::blocks(view));
    if let Some(gate) = view.gate {
        page.blank();
        page.hanging("", &words::gate(gate, view));
    }
    page.finish()
}

/// As Markdown, for the page of a build.
#[must_use]
pub fn markdown(view: &View<'_>) -> String {
    let [a, b] = view.sides;
    let title = crate::frame::plain::line(view.title);
    let gate = view.gate.map(|gate| format!("\n**{}**\n", escaped(&words::gate(gate, view)))).unwrap_or_default();
    format!(
        "## {}: {} against {}\n{gate}{}",
        escaped(&title),
        b.name,
        a.name,
        render::markdown::markdown(&blocks::blocks(view))
    )
}

/// All of it as one document.
///
/// # Errors
/// None that a comparison can have: a defect.
pub fn json(title: &str, sides: &[Side], views: &[View<'_>]) -> Result<Vec<u8>, serde_json::Error> {
    let of = |view: &View<'_>| {
        let [a, b] = view.sides;
        let comparable = view.comparison.is_fair();
        serde_json::to_value(Compared {
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
    Ok(crate::frame::plain::json(bytes))
}
