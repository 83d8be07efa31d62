//! Columns of numbers, right-aligned, as wide as their widest cell: the look of the release.

use crate::frame::report::text::Page;

/// Lines below a header. A line may end early.
#[derive(Debug)]
pub(super) struct Grid {
    header: Vec<String>,
    lines: Vec<Vec<String>>,
    least: usize,
}

impl Grid {
    /// An empty grid with columns of at least `least` characters, the blanks between columns included.
    pub(super) fn new(header: Vec<String>, least: usize) -> Self {
        Self { header, lines: Vec::new(), least }
    }

    /// Appends a line of numbers.
    pub(super) fn line(&mut self, cells: Vec<String>) {
        self.lines.push(cells);
    }

    /// True if nothing is in it.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Header and lines.
    pub(super) fn write(&self, page: &mut Page) {
        let width = |column: usize| {
            let cells = self.lines.iter().filter_map(|cells| cells.get(column));
            let widest = cells.chain(self.header.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0);
            (widest + 1).max(self.least)
        };
        let widths: Vec<usize> = (0..self.header.len()).map(width).collect();
        for cells in std::iter::once(&self.header).chain(&self.lines) {
            page.line(cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}")).collect::<String>());
        }
    }
}
