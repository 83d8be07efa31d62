//! What is compared.

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
