//! Tables of a page.

use std::fmt::Write;

use super::escape;

/// Steps of shading.
const SHADES: f64 = 9.0;

/// A cell.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    text: String,
    shade: Option<u8>,
    is_strong: bool,
    said: Option<String>,
}

impl Cell {
    /// The darker, the nearer `share` is to 1.
    #[must_use]
    pub fn shaded(mut self, share: f64) -> Self {
        self.shade = share.is_finite().then(|| (share.clamp(0.0, 1.0) * SHADES).round() as u8);
        self
    }

    /// The one to find first.
    #[must_use]
    pub fn strong(mut self, is_strong: bool) -> Self {
        self.is_strong = is_strong;
        self
    }

    /// With more words for a pointer.
    #[must_use]
    pub fn said(mut self, text: impl Into<String>) -> Self {
        self.said = Some(text.into());
        self
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// A table: names on the left, then numbers.
#[derive(Clone, Debug, Default)]
pub struct Table {
    caption: String,
    head: Vec<String>,
    names: usize,
    has_words: bool,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// An empty one whose first `names` columns are names.
    pub fn new<H: Into<String>>(caption: impl Into<String>, names: usize, head: impl IntoIterator<Item = H>) -> Self {
        Self { caption: caption.into(), head: head.into_iter().map(Into::into).collect(), names, ..Self::default() }
    }

    /// The last column holds words.
    #[must_use]
    pub fn with_words(mut self) -> Self {
        self.has_words = true;
        self
    }

    /// Appends a row.
    pub fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// True without rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The markup. Names that are those of the row above are left out for the eye.
    pub(super) fn write(&self, out: &mut String) {
        let words = if self.has_words { " w" } else { "" };
        let caption = escape(&self.caption);
        let _ = write!(
            out,
            "<div class=scroll tabindex=0 role=region aria-label=\"{caption}\"><table class=\"n{}{words}\"><caption>{caption}</caption><thead><tr>",
            self.names.min(5)
        );
        for name in &self.head {
            let _ = write!(out, "<th scope=col>{}", escape(name));
        }
        out.push_str("<tbody>");
        for row in &self.rows {
            out.push_str("\n<tr>");
            for (place, cell) in row.iter().enumerate() {
                cell.write(out, place + 1 == self.names);
            }
        }
        out.push_str("</table></div>\n");
    }
}

impl Cell {
    fn write(&self, out: &mut String, is_name: bool) {
        out.push_str(if is_name { "<th scope=row" } else { "<td" });
        match (self.shade, self.is_strong) {
            (Some(shade), true) => {
                let _ = write!(out, " class=\"h{shade} b\"");
            }
            (Some(shade), false) => {
                let _ = write!(out, " class=h{shade}");
            }
            (None, true) => out.push_str(" class=b"),
            (None, false) => {}
        }
        if let Some(said) = &self.said {
            let _ = write!(out, " title=\"{}\"", escape(said));
        }
        out.push('>');
        out.push_str(&escape(&self.text));
    }
}
