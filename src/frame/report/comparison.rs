//! Two sides of runs against each other, as text for a terminal, as Markdown and as JSON. Pure functions.

mod markdown;
mod page;
mod words;

pub use markdown::markdown;
pub use page::text;

use serde::Serialize;

use crate::frame::values::compare::{Comparison, Gate};

/// One side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Side {
    /// What it is called: `A`, `B`, ...
    pub name: String,
    /// Its files.
    pub files: Vec<String>,
    /// What must be known of its runs: file and trouble.
    pub troubles: Vec<String>,
}

/// What is shown: the second side against the first.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The benchmark, as people know it.
    pub title: &'a str,
    /// The sides.
    pub sides: [&'a Side; 2],
    /// What came of it.
    pub comparison: &'a Comparison,
    /// What was asked of the speeds, if anything.
    pub gate: Option<&'a Gate>,
    /// Everything, not only what matters most.
    pub full: bool,
}

/// A comparison as a document has it.
#[derive(Debug, Serialize)]
struct Compared<'a> {
    sides: [&'a str; 2],
    #[serde(flatten)]
    comparison: &'a Comparison,
    comparable: bool,
    gate: Option<&'a Gate>,
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
