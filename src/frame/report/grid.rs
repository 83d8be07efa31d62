//! Columns of numbers, right-aligned, as wide as their widest cell.

use crate::frame::report::text::Page;

/// Lines below a header. A line may end early, with words behind its last cell.
#[derive(Debug)]
pub(crate) struct Grid {
    header: Vec<String>,
    behind: String,
    lines: Vec<(Vec<String>, String)>,
    least: usize,
}

impl Grid {
    /// An empty grid with columns of at least `least` characters, the blanks between columns included.
    pub(crate) fn new(header: Vec<String>, least: usize) -> Self {
        Self { header, behind: String::new(), lines: Vec::new(), least }
    }

    /// With a name for the words behind the last cells.
    pub(crate) fn named(self, behind: &str) -> Self {
        Self { behind: behind.to_owned(), ..self }
    }

    /// Appends a line of numbers and the words behind it.
    pub(crate) fn line(&mut self, cells: Vec<String>, words: impl Into<String>) {
        self.lines.push((cells, words.into()));
    }

    /// True if nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Header and lines.
    pub(crate) fn write(&self, page: &mut Page) {
        let widths: Vec<usize> = (0..self.header.len()).map(|column| self.width(column)).collect();
        let aligned = |cells: &[String]| -> String {
            cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}")).collect()
        };
        let with = |cells: &[String], words: &str| {
            let gap = if words.is_empty() { "" } else { "  " };
            format!("{}{gap}{words}", aligned(cells))
        };
        page.line(with(&self.header, &self.behind));
        for (cells, words) in &self.lines {
            page.line(with(cells, words));
        }
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.lines.iter().filter_map(|(cells, _)| cells.get(column));
        let widest = cells.chain(self.header.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0);
        (widest + 1).max(if self.header.get(column).is_some_and(|h| h == "|") { 0 } else { self.least })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_whatever_is_in_them() {
        let words = |list: &[&str]| list.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let mut grid = Grid::new(words(&["#a", "b", "|", "c"]), 5).named("why");
        grid.line(words(&["1", "2.00", "|", "3"]), "c");
        grid.line(words(&["123456", "2"]), "ERROR: no");
        let mut page = Page::default();
        grid.write(&mut page);
        assert_eq!(page.finish(), "     #a    b |    c  why\n      1 2.00 |    3  c\n 123456    2  ERROR: no\n");
    }
}
