//! What a summary is of, and the shapes of its lines.

use crate::b_eff_io::records::{PatternRecord, RunResult};
use crate::b_eff_io::values::{known_digits, rate, Derived};
use crate::frame::digits::rounded;
use crate::frame::records::Machine;
use crate::frame::report::text::Page;
use crate::frame::words::{or_none, NONE};

pub(super) const MIB: f64 = 1024.0 * 1024.0;

/// What a summary is of.
#[derive(Clone, Copy)]
pub(super) struct Of<'a> {
    pub(super) result: &'a RunResult,
    pub(super) derived: &'a Derived,
    pub(super) backend: &'a str,
}

impl Of<'_> {
    pub(super) fn machine(&self) -> &Machine {
        &self.result.manifest.machine
    }

    /// Memory of a rank that the run was planned with, MiB: what was given, else what was found.
    pub(super) fn memory_mib(&self) -> f64 {
        let given = self.result.config.memory_per_process_bytes;
        given.unwrap_or(self.machine().memory_per_rank_bytes) as f64 / MIB
    }

    /// Of all ranks together, MiB.
    pub(super) fn total_memory_mib(&self) -> f64 {
        self.memory_mib() * self.machine().ranks as f64
    }

    /// The system in one line.
    pub(super) fn system(&self) -> String {
        let machine = self.machine();
        let [name, release, version, hardware] = names(machine);
        format!("{name} {} {release} {version} {hardware}", hosts(machine))
    }
}

/// A line that the release does not have.
pub(super) fn remark(page: &mut Page, text: impl AsRef<str>) {
    page.line(format!("# {}", text.as_ref()));
}

/// The rate of a pattern, rounded to the digits that are known: the format fills the column with zeros.
pub(super) fn known(record: &PatternRecord) -> Option<f64> {
    rate(record).map(|value| rounded(value, known_digits(record)))
}

/// ` %8.3f`, or eight blanks and a hyphen where nothing was measured.
pub(super) fn column(cell: Option<f64>) -> String {
    format!(" {:>8}", or_none(cell.map(|v| format!("{v:.3}"))))
}

/// System name, release, version, and machine of uname(2). In results of before the version was recorded it is missing.
pub(super) fn names(machine: &Machine) -> [&str; 4] {
    // The distribution may stand before the name of the system.
    let mut words = machine.kernel.rsplit(' ');
    let [hardware, release, name] = [(); 3].map(|()| words.next().unwrap_or(NONE));
    [name, release, machine.kernel_version.as_deref().unwrap_or(NONE), hardware]
}

pub(super) fn hosts(machine: &Machine) -> String {
    machine.hosts.iter().map(|h| h.name.as_str()).collect::<Vec<_>>().join(" ")
}
