//! Tables with columns of fixed widths. What belongs to a column stands in one place: heading, width, side, cell.

use std::fmt::Display;

use super::text::{fit, Page};

/// What stands where there is no number.
pub(crate) const NONE: &str = "-";

/// A number, or a hyphen where there is none.
pub(crate) fn or_none(number: Option<impl Display>) -> String {
    number.map_or_else(|| NONE.to_owned(), |number| number.to_string())
}

/// Bandwidth in 1e6 bytes per second with as many digits as fit into a column of this width.
pub(crate) fn mb(bytes_per_second: Option<f64>, width: usize) -> String {
    or_none(bytes_per_second.map(|rate| fit(rate / 1e6, width.saturating_sub(1))))
}

struct Column<'a, R> {
    heading: String,
    width: usize,
    is_left: bool,
    cell: Box<dyn Fn(R) -> String + 'a>,
}

impl<R> Column<'_, R> {
    fn align(&self, text: &str) -> String {
        let width = self.width;
        if self.is_left {
            format!("{text:<width$}")
        } else {
            format!("{text:>width$}")
        }
    }
}

/// Columns of rows made from `R`. A width holds the blanks before a number or behind words.
pub(crate) struct Columns<'a, R>(Vec<Column<'a, R>>);

impl<'a, R: Copy + 'a> Columns<'a, R> {
    /// None yet, behind a margin.
    pub(crate) fn new() -> Self {
        Self::without_margin().gap(2)
    }

    /// None yet.
    pub(crate) fn without_margin() -> Self {
        Self(Vec::new())
    }

    fn with<D: Display>(mut self, is_left: bool, heading: &str, width: usize, cell: impl Fn(R) -> D + 'a) -> Self {
        let cell = Box::new(move |row| cell(row).to_string());
        self.0.push(Column { heading: heading.to_owned(), width, is_left, cell });
        self
    }

    /// Words.
    pub(crate) fn left<D: Display>(self, heading: &str, width: usize, cell: impl Fn(R) -> D + 'a) -> Self {
        self.with(true, heading, width, cell)
    }

    /// Numbers.
    pub(crate) fn right<D: Display>(self, heading: &str, width: usize, cell: impl Fn(R) -> D + 'a) -> Self {
        self.with(false, heading, width, cell)
    }

    /// Bandwidths given in bytes per second, shown in MB/s.
    pub(crate) fn rate(self, heading: &str, width: usize, value: impl Fn(R) -> Option<f64> + 'a) -> Self {
        self.right(heading, width, move |row| mb(value(row), width))
    }

    /// Blanks.
    pub(crate) fn gap(self, width: usize) -> Self {
        self.left("", width, |_| "")
    }

    /// The line of headings.
    pub(crate) fn headings(&self) -> String {
        self.0.iter().map(|column| column.align(&column.heading)).collect()
    }

    /// The line of one row.
    pub(crate) fn row(&self, row: R) -> String {
        self.0.iter().map(|column| column.align(&(column.cell)(row))).collect()
    }

    /// Headings and rows.
    pub(crate) fn write(&self, page: &mut Page, rows: impl IntoIterator<Item = R>) {
        page.line(self.headings());
        rows.into_iter().for_each(|row| page.line(self.row(row)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_stand_above_their_cells() {
        let columns = Columns::<(&str, Option<f64>)>::new()
            .left("name", 6, |(name, _)| name)
            .right("value", 8, |(_, value)| or_none(value))
            .gap(2)
            .left("remark", 0, |(_, value)| if value.is_some() { "known" } else { "" });
        let mut page = Page::default();
        columns.write(&mut page, [("a", Some(1.5)), ("größe", None)]);
        assert_eq!(page.finish(), "  name     value  remark\n  a          1.5  known\n  größe        -\n");
    }

    #[test]
    fn rates_have_as_many_digits_as_fit() {
        let columns = Columns::<Option<f64>>::new().rate("MB/s", 9, |rate| rate);
        let shown = [Some(1.5e6), Some(123_456.75e6), None].map(|rate| columns.row(rate));
        assert_eq!(shown, ["      1.500", "   123456.8", "          -"]);
    }
}
