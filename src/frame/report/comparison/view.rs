//! Input of a rendered comparison.

use serde::Serialize;

use crate::frame::values::compare::Comparison;
use crate::frame::values::gate::GateResult;

/// One side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ComparisonSide {
    /// Name: `A`, `B`, ...
    pub name: String,
    /// Its files.
    pub files: Vec<String>,
    /// Problems of its runs, each with its file.
    pub troubles: Vec<String>,
}

/// Comparison of the second side with the first, and options of its rendering.
#[derive(Clone, Copy, Debug)]
pub struct ComparisonView<'a> {
    /// Title of the benchmark.
    pub title: &'a str,
    /// The sides.
    pub sides: [&'a ComparisonSide; 2],
    /// Result of the comparison.
    pub comparison: &'a Comparison,
    /// Result of the gate, if one was requested.
    pub gate: Option<&'a GateResult>,
    /// Show everything, not only the most important.
    pub full: bool,
}
