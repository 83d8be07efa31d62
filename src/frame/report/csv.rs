//! PREFIX.csv: one line for each measurement. Units are in the column names, and no text is a formula of a spreadsheet.

use std::borrow::Cow;
use std::path::Path;

use serde::Serialize;

use super::library::short_name;
use crate::frame::records::{MachineRecord, StorageRecord};
use crate::frame::terminal_escape;

/// A column: its name, and its cell in a row for `R`.
pub(crate) type Column<R> = (&'static str, for<'a> fn(&'a R) -> CsvCell<'a>);

/// Cell of a row, in serde's notation. Control characters are written as escapes.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum CsvCell<'a> {
    Empty,
    Flag(bool),
    Count(u64),
    Number(f64),
    Text(Cow<'a, str>),
}

macro_rules! from {
    ($($variant:ident: $type:ty),*) => {$(
        impl<'a> From<$type> for CsvCell<'a> {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        }
    )*};
}

from!(Flag: bool, Count: u8, Count: u32, Count: u64, Number: f64, Text: &'a str, Text: &'a String, Text: String);

impl<'a, T: Into<CsvCell<'a>>> From<Option<T>> for CsvCell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Empty, T::into)
    }
}

impl CsvCell<'_> {
    /// Serialized name of a variant without fields.
    pub(crate) fn word(value: impl Serialize) -> Self {
        match serde_json::to_value(value) {
            Ok(serde_json::Value::String(word)) => Self::Text(word.into()),
            _ => Self::Empty,
        }
    }

    fn escaped(self) -> Self {
        match self {
            Self::Text(text) => Self::Text(without_formula(terminal_escape::line(&text).into_owned()).into()),
            other => other,
        }
    }
}

/// A spreadsheet takes a text that begins so for a formula, whose functions may read files and open connections: names in a foreign result
/// are not trusted. An apostrophe makes it a text.
pub(crate) fn without_formula(text: String) -> String {
    if text.starts_with(['=', '+', '-', '@']) {
        return format!("'{text}");
    }
    text
}

/// Columns that identify the run: first in every line, so that tables of several runs can be concatenated.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunColumns {
    run: String,
    started_utc: String,
    host: String,
    mpi: String,
    hints: Option<String>,
    storage: Option<String>,
}

impl RunColumns {
    /// For a run on this machine that wrote to the prefix `out`, or that used the directory `run_dir`.
    pub(crate) fn new(machine: &MachineRecord, out: Option<&Path>, run_dir: &str) -> Self {
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
            storage: None,
        }
    }

    /// First host and the number of others.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// For a result that has only texts.
    pub(crate) fn from_text(run: &str, started: &str, host: &str, mpi: &str) -> Self {
        let [run, started_utc, host, mpi] = [run, started, host, mpi].map(str::to_owned);
        Self { run, started_utc, host, mpi, ..Self::default() }
    }

    /// Adds the requested hints; an empty cell without any.
    pub(crate) fn with_hints<'a>(self, hints: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let hints: Vec<String> = hints.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        Self { hints: Some(hints.join(" ")), ..self }
    }

    /// Adds the storage sheet, `block=4 KiB; stripes=4; ...`; an empty cell if it is not recorded.
    pub(crate) fn with_storage(self, storage: &StorageRecord) -> Self {
        let texts: Vec<String> = storage.sheet.iter().map(|p| format!("{}={}", p.key.name(), p.text())).collect();
        Self { storage: Some(texts.join("; ")), ..self }
    }

    fn columns(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let always =
            [("run", self.run.as_str()), ("started_utc", &self.started_utc), ("host", &self.host), ("mpi", &self.mpi)];
        let hints = self.hints.as_deref().map(|hints| ("hints", hints));
        always.into_iter().chain(hints).chain(self.storage.as_deref().map(|sheet| ("storage", sheet)))
    }
}

/// The table as UTF-8, header first; only the header if nothing was measured.
///
/// # Errors
/// Those of the csv writer.
pub(crate) fn csv_table<R>(
    origin: &RunColumns,
    columns: &[Column<R>],
    rows: impl IntoIterator<Item = R>,
) -> Result<Vec<u8>, ::csv::Error> {
    let mut writer = ::csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
    writer.write_record(origin.columns().map(|(name, _)| name).chain(columns.iter().map(|(name, _)| *name)))?;
    for row in rows {
        let of_run = origin.columns().map(|(_, text)| CsvCell::from(text).escaped());
        let cells: Vec<CsvCell<'_>> = of_run.chain(columns.iter().map(|(_, cell)| cell(&row).escaped())).collect();
        writer.serialize(cells)?;
    }
    writer.into_inner().map_err(|e| ::csv::Error::from(e.into_error()))
}

/// For tests: reads a table; returns the lines and a lookup of column positions.
#[cfg(test)]
pub(crate) fn read_csv(bytes: &[u8]) -> (impl Fn(&str) -> usize, Vec<::csv::StringRecord>) {
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
    enum ExampleKind {
        OneWord,
    }

    struct ExampleRow {
        name: String,
        seconds: Option<f64>,
    }

    const COLUMNS: [Column<ExampleRow>; 6] = [
        ("name", |r| (&r.name).into()),
        ("kind", |_| CsvCell::word(ExampleKind::OneWord)),
        ("bytes", |_| u64::MAX.into()),
        ("small", |_| 1e-7.into()),
        ("seconds", |r| r.seconds.into()),
        ("whole", |r| r.seconds.is_some().into()),
    ];

    #[test]
    fn a_line_has_a_cell_below_each_name() {
        let rows = [("a, b", Some(2.0)), ("", None)].map(|(name, seconds)| ExampleRow { name: name.into(), seconds });
        let origin =
            RunColumns { run: "r1".into(), mpi: "MPICH, 4".into(), ..RunColumns::default() }.with_hints([("a", "b")]);
        let text = String::from_utf8(csv_table(&origin, &COLUMNS, rows).unwrap()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let expected = [
            "run,started_utc,host,mpi,hints,name,kind,bytes,small,seconds,whole",
            "r1,,,\"MPICH, 4\",a=b,\"a, b\",one_word,18446744073709551615,1e-7,2.0,true",
            "r1,,,\"MPICH, 4\",a=b,,one_word,18446744073709551615,1e-7,,false",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn no_text_is_a_formula() {
        let origin = RunColumns { host: "=HYPERLINK(\"x\")".into(), mpi: "@SUM(1)".into(), ..RunColumns::default() };
        let rows = ["-1+2", "+x", "a=b", "'", ""].map(|name| ExampleRow { name: name.into(), seconds: Some(-2.0) });
        let (at, lines) = read_csv(&csv_table(&origin, &COLUMNS, rows).unwrap());
        let column = |name: &str| lines.iter().map(|line| line[at(name)].to_owned()).collect::<Vec<_>>();
        assert_eq!(column("name"), ["'-1+2", "'+x", "a=b", "'", ""]);
        assert_eq!([&lines[0][at("host")], &lines[0][at("mpi")]], ["'=HYPERLINK(\"x\")", "'@SUM(1)"]);
        assert_eq!(column("seconds"), ["-2.0"; 5], "a number is one");
    }

    #[test]
    fn nothing_measured_leaves_the_header() {
        let table = csv_table(&RunColumns::default(), &COLUMNS, []).unwrap();
        assert_eq!(table, b"run,started_utc,host,mpi,name,kind,bytes,small,seconds,whole\n");
    }
}
