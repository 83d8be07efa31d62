//! PREFIX.csv: one line for each thing measured. Units are in the column names.

use std::borrow::Cow;

use serde::Serialize;

use crate::frame::plain;

/// A column: its name, and what stands in it in a row made of `R`.
pub(crate) type Column<R> = (&'static str, for<'a> fn(&'a R) -> Cell<'a>);

/// What stands in a column of a row, written as serde would write it. What a terminal would obey is shown as an escape.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Cell<'a> {
    Nothing,
    Flag(bool),
    Count(u64),
    Number(f64),
    Text(Cow<'a, str>),
}

macro_rules! from {
    ($($variant:ident: $type:ty),*) => {$(
        impl<'a> From<$type> for Cell<'a> {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        }
    )*};
}

from!(Flag: bool, Count: u8, Count: u32, Count: u64, Number: f64, Text: &'a str, Text: &'a String, Text: String);

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Nothing, T::into)
    }
}

impl Cell<'_> {
    /// The word that stands for a value without fields in all files.
    pub(crate) fn word(value: impl Serialize) -> Self {
        match serde_json::to_value(value) {
            Ok(serde_json::Value::String(word)) => Self::Text(word.into()),
            _ => Self::Nothing,
        }
    }

    fn shown(self) -> Self {
        match self {
            Self::Text(text) => Self::Text(plain::line(&text).into_owned().into()),
            other => other,
        }
    }
}

/// The whole table as UTF-8 bytes, header first; the header alone if nothing was measured.
///
/// # Errors
/// What the csv writer reports.
pub(crate) fn table<R>(columns: &[Column<R>], rows: impl IntoIterator<Item = R>) -> Result<Vec<u8>, ::csv::Error> {
    let mut writer = ::csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
    writer.write_record(columns.iter().map(|(name, _)| name))?;
    for row in rows {
        let cells: Vec<Cell<'_>> = columns.iter().map(|(_, cell)| cell(&row).shown()).collect();
        writer.serialize(cells)?;
    }
    writer.into_inner().map_err(|e| ::csv::Error::from(e.into_error()))
}

/// Lines of a table read back, with the positions of its columns, for tests.
#[cfg(test)]
pub(crate) fn read(bytes: &[u8]) -> (impl Fn(&str) -> usize, Vec<::csv::StringRecord>) {
    let mut reader = ::csv::Reader::from_reader(bytes);
    let header = reader.headers().unwrap().clone();
    let lines = reader.records().map(|line| line.unwrap()).collect();
    (move |name: &str| header.iter().position(|column| column == name).unwrap(), lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Serialize)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        OneWord,
    }

    struct Row {
        name: String,
        seconds: Option<f64>,
    }

    const COLUMNS: [Column<Row>; 6] = [
        ("name", |r| (&r.name).into()),
        ("kind", |_| Cell::word(Kind::OneWord)),
        ("bytes", |_| u64::MAX.into()),
        ("small", |_| 1e-7.into()),
        ("seconds", |r| r.seconds.into()),
        ("whole", |r| r.seconds.is_some().into()),
    ];

    #[test]
    fn a_line_has_a_cell_below_each_name() {
        let rows = [("a, b", Some(2.0)), ("", None)].map(|(name, seconds)| Row { name: name.into(), seconds });
        let text = String::from_utf8(table(&COLUMNS, rows).unwrap()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let expected = [
            "name,kind,bytes,small,seconds,whole",
            "\"a, b\",one_word,18446744073709551615,1e-7,2.0,true",
            ",one_word,18446744073709551615,1e-7,,false",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn nothing_measured_leaves_the_header() {
        assert_eq!(table(&COLUMNS, []).unwrap(), b"name,kind,bytes,small,seconds,whole\n");
    }
}
