//! PREFIX.sum: the summary file of release 2.1, line by line and letter by letter, with its misspellings: readers match them. They
//! read its columns or the third field of the line with `b_eff_io =`. What the release did not say stands in lines that
//! begin with `#`.

mod closing;
mod head;
mod table;

use crate::b_eff_io::records::{PatternRecord, RunResult};
use crate::b_eff_io::values::{known_digits, rate, Derived};
use crate::frame::digits::rounded;
use crate::frame::records::Machine;
use crate::frame::report::columns::or_none;
use crate::frame::report::text::Page;

const MIB: f64 = 1024.0 * 1024.0;

/// The summary of one backend: for each partition the table, the averages and the value; then the validity by release 2.1
/// and the maximum over the partitions.
#[must_use]
pub fn summary(result: &RunResult, derived: &Derived, backend: &str) -> String {
    let mut page = Page::default();
    let of = Of { result, derived, backend };
    head::write(&mut page, of);
    for partition in &result.partitions {
        table::write(&mut page, of, partition);
        closing::values(&mut page, of, partition);
    }
    closing::validity(&mut page, of);
    closing::maximum(&mut page, of);
    page.finish()
}

/// What a summary is of.
#[derive(Clone, Copy)]
struct Of<'a> {
    result: &'a RunResult,
    derived: &'a Derived,
    backend: &'a str,
}

impl Of<'_> {
    fn machine(&self) -> &Machine {
        &self.result.manifest.machine
    }

    /// Memory of a rank that the run was planned with, MiB: what was given, else what was found.
    fn memory_mib(&self) -> f64 {
        let given = self.result.config.memory_per_process_bytes;
        given.unwrap_or(self.machine().memory_per_rank_bytes) as f64 / MIB
    }

    /// Of all ranks together, MiB.
    fn total_memory_mib(&self) -> f64 {
        self.memory_mib() * self.machine().ranks as f64
    }

    /// The system in one line.
    fn system(&self) -> String {
        let machine = self.machine();
        let [name, release, version, hardware] = head::names(machine);
        format!("{name} {} {release} {version} {hardware}", head::hosts(machine))
    }
}

/// A line that the release does not have.
fn remark(page: &mut Page, text: impl AsRef<str>) {
    page.line(format!("# {}", text.as_ref()));
}

/// The rate of a pattern, rounded to the digits that are known: the format fills the column with zeros.
fn known(record: &PatternRecord) -> Option<f64> {
    rate(record).map(|value| rounded(value, known_digits(record)))
}

/// ` %8.3f`, or eight blanks and a hyphen where nothing was measured.
fn column(cell: Option<f64>) -> String {
    format!(" {:>8}", or_none(cell.map(|v| format!("{v:.3}"))))
}

#[cfg(test)]
mod structure_tests;
#[cfg(test)]
mod tests;
