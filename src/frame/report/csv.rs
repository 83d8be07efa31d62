//! PREFIX.csv: one line for each thing measured. Units are in the column names.

use std::borrow::Cow;
use std::path::Path;

use serde::Serialize;

use super::library::short_name;
use crate::frame::plain;
use crate::frame::records::Machine;

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

/// What tells the lines of one run from those of others: first in every line, so that tables can be put one below the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    run: String,
    started_utc: String,
    host: String,
    mpi: String,
    hints: Option<String>,
}

impl Origin {
    /// Of a run on this machine that wrote to the prefix `out`, or else worked in the directory `run_dir`.
    pub(crate) fn new(machine: &Machine, out: Option<&Path>, run_dir: &str) -> Self {
        let named = out.and_then(Path::file_name).or_else(|| Path::new(run_dir).file_name());
        let host = machine.hosts.first().map_or("", |host| host.name.as_str());
        Self {
            run: named.map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            started_utc: machine.started_utc.clone(),
            host: match machine.hosts.len() {
                0 | 1 => host.to_owned(),
                hosts => format!("{host} and {} more", hosts - 1),
            },
            mpi: short_name(&machine.mpi_library),
            hints: None,
        }
    }

    /// Of a result that only has words.
    pub(crate) fn of_words(run: &str, started: &str, host: &str, mpi: &str) -> Self {
        let [run, started_utc, host, mpi] = [run, started, host, mpi].map(str::to_owned);
        Self { run, started_utc, host, mpi, hints: None }
    }

    /// With the hints that were asked for; without any an empty cell.
    pub(crate) fn with_hints<'a>(self, hints: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let hints: Vec<String> = hints.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        Self { hints: Some(hints.join(" ")), ..self }
    }

    fn columns(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let always =
            [("run", self.run.as_str()), ("started_utc", &self.started_utc), ("host", &self.host), ("mpi", &self.mpi)];
        always.into_iter().chain(self.hints.as_deref().map(|hints| ("hints", hints)))
    }
}

/// The whole table as UTF-8 bytes, header first; the header alone if nothing was measured.
///
/// # Errors
/// What the csv writer reports.
pub(crate) fn table<R>(
    origin: &Origin,
    columns: &[Column<R>],
    rows: impl IntoIterator<Item = R>,
) -> Result<Vec<u8>, ::csv::Error> {
    let mut writer = ::csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
    writer.write_record(origin.columns().map(|(name, _)| name).chain(columns.iter().map(|(name, _)| *name)))?;
    for row in rows {
        let of_run = origin.columns().map(|(_, text)| Cell::from(text).shown());
        let cells: Vec<Cell<'_>> = of_run.chain(columns.iter().map(|(_, cell)| cell(&row).shown())).collect();
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
        let origin = Origin { run: "r1".into(), mpi: "MPICH, 4".into(), ..Origin::default() }.with_hints([("a", "b")]);
        let text = String::from_utf8(table(&origin, &COLUMNS, rows).unwrap()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let expected = [
            "run,started_utc,host,mpi,hints,name,kind,bytes,small,seconds,whole",
            "r1,,,\"MPICH, 4\",a=b,\"a, b\",one_word,18446744073709551615,1e-7,2.0,true",
            "r1,,,\"MPICH, 4\",a=b,,one_word,18446744073709551615,1e-7,,false",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn nothing_measured_leaves_the_header() {
        let table = table(&Origin::default(), &COLUMNS, []).unwrap();
        assert_eq!(table, b"run,started_utc,host,mpi,name,kind,bytes,small,seconds,whole\n");
    }
}
