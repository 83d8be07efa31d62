//! Tables: names on the left, then numbers, then optionally a column of text. Columns are as wide as their widest cell.

use super::marks::{letters, Legend, QualityMark};
use super::terminal::Verbosity;
use super::text::{fit, fit_significant, wrap};
use crate::terminal_escape;
use crate::words::NO_VALUE;

const SHADES: f64 = 9.0;
const RATE_WIDTH: usize = 9;
/// Blanks between columns, and before the first.
const COLUMN_GAP: usize = 2;
/// Heading of a separator column: if the table does not fit, it is split there first.
pub const PART_SEPARATOR: &str = "|";
/// Minimum width of the text column before the table is split.
const MIN_TEXT_WIDTH: usize = 30;

/// A cell.
#[derive(Clone, Debug, Default)]
pub struct TableCell {
    pub(crate) text: String,
    pub(crate) marks: String,
    pub(crate) shade: Option<u8>,
    pub(crate) is_strong: bool,
    pub(crate) tooltip: Option<String>,
    legend_marks: Vec<QualityMark>,
}

impl TableCell {
    /// A rate in 1e6 bytes per second with its significant digits and marks; a mark instead of a missing number.
    #[must_use]
    pub fn rate(mb_per_second: Option<f64>, known_digits: Option<u32>, marks: &[QualityMark]) -> Self {
        let shown = |value| {
            known_digits.map_or_else(|| fit(value, RATE_WIDTH), |digits| fit_significant(value, digits, RATE_WIDTH))
        };
        Self::number(mb_per_second.map(shown), marks)
    }

    /// A formatted number and its marks; the mark for the reason if the number is missing.
    #[must_use]
    pub fn number(text: Option<String>, marks: &[QualityMark]) -> Self {
        let is_stand_in = |mark: &&QualityMark| matches!(mark, QualityMark::NotMeasured | QualityMark::NotRun);
        let others: Vec<QualityMark> = marks.iter().filter(|m| !is_stand_in(m)).copied().collect();
        let stand_in =
            marks.iter().find(is_stand_in).map_or_else(|| NO_VALUE.to_owned(), |mark| mark.letter().to_string());
        let legend_marks = if text.is_some() { others.clone() } else { marks.to_vec() };
        Self { text: text.unwrap_or(stand_in), marks: letters(&others), legend_marks, ..Self::default() }
    }

    /// Appends letters to the marks.
    #[must_use]
    pub fn with_letters(mut self, letters: &str) -> Self {
        self.marks.push_str(letters);
        self
    }

    /// Sets the shade, darkest for a `share` of 1.
    #[must_use]
    pub fn shaded(mut self, share: f64) -> Self {
        self.shade = share.is_finite().then(|| (share.clamp(0.0, 1.0) * SHADES).round() as u8);
        self
    }

    /// Emphasizes the cell.
    #[must_use]
    pub fn strong(mut self, is_strong: bool) -> Self {
        self.is_strong = is_strong;
        self
    }

    /// Sets the tooltip.
    #[must_use]
    pub fn with_tooltip(mut self, text: impl Into<String>) -> Self {
        self.tooltip = Some(text.into());
        self
    }
}

impl<T: Into<String>> From<T> for TableCell {
    fn from(text: T) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub(crate) caption: String,
    pub(crate) head: Vec<String>,
    pub(crate) names: usize,
    pub(crate) has_words: bool,
    /// A row without cells separates groups.
    pub(crate) rows: Vec<Vec<TableCell>>,
    pub(crate) notes: Vec<String>,
    row_limits: Option<[usize; 4]>,
    legend: Legend,
}

impl Table {
    /// Creates an empty table whose first `names` columns are names. A heading is broken at its line breaks.
    pub fn new<H: Into<String>>(caption: impl Into<String>, names: usize, head: impl IntoIterator<Item = H>) -> Self {
        Self { caption: caption.into(), head: head.into_iter().map(Into::into).collect(), names, ..Self::default() }
    }

    /// The last column is text.
    #[must_use]
    pub fn with_words(mut self) -> Self {
        self.has_words = true;
        self
    }

    /// Adds a sentence below the table.
    #[must_use]
    pub fn with_note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Appends rows.
    #[must_use]
    pub fn with_rows<C: Into<TableCell>, R: IntoIterator<Item = C>>(
        mut self,
        rows: impl IntoIterator<Item = R>,
    ) -> Self {
        rows.into_iter().for_each(|cells| self.row(cells));
        self
    }

    /// Appends a row.
    pub fn row<C: Into<TableCell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        let cells: Vec<TableCell> = cells.into_iter().map(Into::into).collect();
        cells.iter().for_each(|cell| self.legend.note_marks(&cell.legend_marks));
        self.rows.push(cells);
    }

    /// Separates the rows above from those below.
    pub fn end_group(&mut self) {
        if self.rows.last().is_some_and(|row| !row.is_empty()) {
            self.rows.push(Vec::new());
        }
    }

    /// Adds marks used in texts to the legend.
    pub fn note_marks(&mut self, marks: &[QualityMark]) {
        self.legend.note_marks(marks);
    }

    /// Limits the rows on a screen, by verbosity; the others are counted.
    #[must_use]
    pub fn with_row_limits(mut self, rows: [usize; 4]) -> Self {
        self.row_limits = Some(rows);
        self
    }

    /// Maximum number of rows on a screen.
    pub fn max_rows(&self, verbosity: Verbosity) -> usize {
        self.row_limits.map_or(usize::MAX, |most| most[(verbosity as usize).saturating_sub(Verbosity::Full as usize)])
    }

    /// The first rows, with the legend of their marks only.
    pub fn first_rows(&self, rows: usize) -> Self {
        let mut first = Self { rows: Vec::new(), legend: Legend::default(), ..self.clone() };
        self.rows.iter().take(rows).for_each(|row| first.row(row.iter().cloned()));
        first
    }

    /// True without rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Legend of its marks; None without marks.
    #[must_use]
    pub fn marks(&self) -> Option<String> {
        self.legend.text()
    }

    pub(crate) fn is_left(&self, column: usize) -> bool {
        column < self.names || (self.has_words && column + 1 == self.head.len())
    }

    /// Formats the table into lines of at most `width`, provided that its names and one number fit: columns that do not fit continue in a
    /// further part below, with the names repeated. Each part has the number of its heading lines.
    pub fn lines(&self, width: usize) -> Vec<(usize, Vec<String>)> {
        let longest = 2 * width / 5;
        let numbers: Vec<usize> = (0..self.head.len() - usize::from(self.has_words && !self.head.is_empty())).collect();
        let layout = match ColumnLayout::new(self, longest, 1) {
            loose if loose.total(&numbers) <= width => loose,
            // Without blanks between numbers and marks it may fit.
            _ => ColumnLayout::new(self, longest, 0),
        };
        let mut parts: Vec<Vec<usize>> = Vec::new();
        let names: Vec<usize> = (0..self.names.min(self.head.len())).collect();
        let mut part = names.clone();
        let all: Vec<usize> = (0..self.head.len()).collect();
        let is_wide = layout.total(&all) > width;
        for column in names.len()..self.head.len() {
            if is_wide && self.head[column] == PART_SEPARATOR {
                parts.push(std::mem::replace(&mut part, names.clone()));
                continue;
            }
            let is_words = self.has_words && column + 1 == self.head.len();
            let own = if is_words { layout.width(column).min(MIN_TEXT_WIDTH) } else { layout.width(column) };
            if part.len() > names.len() && layout.total(&part) + COLUMN_GAP + own > width {
                parts.push(std::mem::replace(&mut part, names.clone()));
            }
            part.push(column);
        }
        parts.push(part);
        parts.into_iter().map(|part| layout.part(&part, width)).collect()
    }
}

/// Layout of a table: texts and widths of columns.
struct ColumnLayout<'t> {
    table: &'t Table,
    /// Longest text in a cell outside the text column, in characters.
    longest: usize,
    /// Blanks between a number and its marks.
    gap: usize,
    /// For each column: width of the number, of its part from the decimal point, and of the marks.
    widths: Vec<[usize; 3]>,
    head: Vec<Vec<String>>,
}

/// Escapes a text and truncates it to `longest` characters.
fn truncate(text: &str, longest: usize) -> String {
    const DOTS: &str = " ...";
    let text = terminal_escape::line(text);
    if text.chars().count() <= longest {
        return text.into_owned();
    }
    text.chars().take(longest.saturating_sub(DOTS.len())).chain(DOTS.chars()).collect()
}

/// Characters from the decimal point to the end, 0 without a point; None if it is not a number.
fn decimal_width(text: &str) -> Option<usize> {
    text.parse::<f64>().ok()?;
    Some(text.find('.').map_or(0, |point| text.len() - point))
}

impl<'t> ColumnLayout<'t> {
    fn new(table: &'t Table, longest: usize, gap: usize) -> Self {
        let length = |text: &str| truncate(text, longest).chars().count();
        let head: Vec<Vec<String>> =
            table.head.iter().map(|h| h.lines().map(|line| truncate(line, longest)).collect()).collect();
        let measure = |column: usize| {
            let cells = || table.rows.iter().filter_map(move |row| row.get(column));
            let behind = cells().filter_map(|cell| decimal_width(&cell.text)).max().unwrap_or(0);
            let marks = cells().map(|cell| cell.marks.len()).max().unwrap_or(0);
            let of_head = head[column].iter().map(|line| line.chars().count()).max().unwrap_or(0);
            // A heading may extend over the marks.
            let of_head = of_head.saturating_sub(if marks > 0 { marks + gap } else { 0 });
            let of_cell = |cell: &TableCell| match decimal_width(&cell.text) {
                Some(own) if !table.is_left(column) => length(&cell.text) - own + behind,
                _ => length(&cell.text),
            };
            [cells().map(of_cell).max().unwrap_or(0).max(of_head), behind, marks]
        };
        Self { table, longest, gap, widths: (0..table.head.len()).map(measure).collect(), head }
    }

    fn width(&self, column: usize) -> usize {
        let [all, _, marks] = self.widths[column];
        all + if marks > 0 { marks + self.gap } else { 0 }
    }

    fn total(&self, columns: &[usize]) -> usize {
        columns.iter().map(|column| COLUMN_GAP + self.width(*column)).sum()
    }

    fn heading(&self, column: usize, text: &str) -> String {
        let [width, _, _] = self.widths[column];
        if !self.table.is_left(column) && self.head[column].iter().any(|line| line.chars().count() > width) {
            return format!("{text:>all$}", all = self.width(column));
        }
        self.align(column, text, "")
    }

    fn align(&self, column: usize, text: &str, marks: &str) -> String {
        let [width, behind, most_marks] = self.widths[column];
        let text = truncate(text, self.longest);
        if self.table.is_left(column) {
            return format!("{text:<width$}");
        }
        let free = decimal_width(&text).map_or(0, |own| behind - own);
        let number = format!("{:>width$}", format!("{text}{:free$}", ""));
        if most_marks > 0 {
            format!("{number}{:gap$}{marks:<most_marks$}", "", gap = self.gap)
        } else {
            number
        }
    }

    /// Headings and rows of these columns. The text column is wrapped.
    fn part(&self, columns: &[usize], width: usize) -> (usize, Vec<String>) {
        let gap = " ".repeat(COLUMN_GAP);
        let high = columns.iter().map(|column| self.head[*column].len()).max().unwrap_or(0);
        let heading = |line: usize| {
            let text = |column: &usize| {
                let own = &self.head[*column];
                (line + own.len()).checked_sub(high).and_then(|line| own.get(line)).map_or("", String::as_str)
            };
            let cells: String =
                columns.iter().map(|column| format!("{gap}{}", self.heading(*column, text(column)))).collect();
            cells.trim_end().to_owned()
        };
        let mut lines: Vec<String> = (0..high).map(heading).collect();
        if lines.iter().all(String::is_empty) {
            lines.clear();
        }
        let headings = lines.len();
        let last = columns.last().copied().filter(|last| self.table.has_words && last + 1 == self.table.head.len());
        let before: Vec<usize> = columns.iter().copied().filter(|column| Some(*column) != last).collect();
        let indent = self.total(&before) + COLUMN_GAP;
        let mut above: Vec<String> = Vec::new();
        let rows = self.table.rows.len() - self.table.rows.iter().rev().take_while(|row| row.is_empty()).count();
        for row in &self.table.rows[..rows] {
            let names: Vec<String> = row.iter().take(self.table.names).map(|cell| cell.text.clone()).collect();
            let known = names.iter().zip(&above).take_while(|(a, b)| a == b).count().min(names.len().saturating_sub(1));
            above = names;
            let empty = TableCell::default();
            let cell = |column: usize| match row.get(column) {
                Some(_) if column < known => &empty,
                Some(cell) => cell,
                None => &empty,
            };
            let cells: String = before
                .iter()
                .map(|column| format!("{gap}{}", self.align(*column, &cell(*column).text, &cell(*column).marks)))
                .collect();
            let words =
                last.map(|last| wrap(&cell(last).text, width.saturating_sub(indent).max(1))).unwrap_or_default();
            let mut words = words.into_iter();
            lines.push(format!("{cells}{gap}{}", words.next().unwrap_or_default()).trim_end().to_owned());
            lines.extend(words.map(|line| format!("{:indent$}{line}", "")));
        }
        (headings, lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(table: &Table, width: usize) -> String {
        table.lines(width).into_iter().flat_map(|(_, lines)| lines).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let mut table = Table::new("", 2, ["access", "type", "MB/s", "share", ""]).with_words();
        table.row([
            TableCell::from("write"),
            "scatter".into(),
            TableCell::rate(Some(502.25), Some(4), &[QualityMark::Cache]),
            "7.3 %".into(),
        ]);
        table.row([
            TableCell::from("write"),
            "shared".into(),
            TableCell::rate(Some(1003.0), Some(2), &[]),
            "63 %".into(),
            "words that are more than there is room for".into(),
        ]);
        table.end_group();
        table.row([
            TableCell::from("read"),
            "shared".into(),
            TableCell::rate(None, None, &[QualityMark::NotRun]),
            "-".into(),
        ]);
        let expected = "  access  type       MB/s    share\n  write   scatter   502.2 c  7.3 %\n          shared   1000       63 %  words that are more than\n                                    there is room for\n\n  read    shared        x        -";
        assert_eq!(all(&table, 60), expected);
        assert_eq!(table.marks().unwrap(), "c more than 10 % read from cache, not from storage,  x not run");
    }

    #[test]
    fn columns_that_do_not_fit_continue_below() {
        let table = Table::new("", 1, ["name", "a long\nheading", "second", "third"]).with_rows([["x", "1", "2", "3"]]);
        let parts = table.lines(26);
        assert_eq!(parts.len(), 2);
        assert_eq!(
            parts[0],
            (2, vec!["         a long".into(), "  name  heading  second".into(), "  x           1       2".into()])
        );
        assert_eq!(parts[1], (1, vec!["  name  third".into(), "  x         3".into()]));
    }

    #[test]
    fn terminal_sequences_are_escaped() {
        let table = Table::new("", 1, ["a\u{1b}"]).with_rows([["\u{1b}[2J"]]);
        assert!(!all(&table, 40).contains('\u{1b}'));
    }
}
