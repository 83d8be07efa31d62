//! Right-aligned columns of numbers, as wide as their widest cell, in the format of the release.

use crate::frame::report::text::TextPage;

/// Lines below a header. A line may end early.
#[derive(Debug)]
pub(super) struct AlignedColumns {
    header: Vec<String>,
    lines: Vec<Vec<String>>,
    min_width: usize,
}

impl AlignedColumns {
    /// An empty grid with columns of at least `least` characters, including the blanks between columns.
    pub(super) fn new(header: Vec<String>, min_width: usize) -> Self {
        Self { header, lines: Vec::new(), min_width }
    }

    pub(super) fn line(&mut self, cells: Vec<String>) {
        self.lines.push(cells);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(super) fn write(&self, page: &mut TextPage) {
        let width = |column: usize| {
            let cells = self.lines.iter().filter_map(|cells| cells.get(column));
            let widest = cells.chain(self.header.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0);
            (widest + 1).max(self.min_width)
        };
        let widths: Vec<usize> = (0..self.header.len()).map(width).collect();
        for cells in std::iter::once(&self.header).chain(&self.lines) {
            page.line(cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}")).collect::<String>());
        }
    }
}
