//! Context of a summary, and the formats of its lines.

use crate::b_eff_io::records::{PatternRecord, RunResult};
use crate::b_eff_io::values::{known_digits, rate, Derived};
use crate::frame::digits::round_significant;
use crate::frame::records::MachineRecord;
use crate::frame::report::text::TextPage;
use crate::frame::words::{or_hyphen, NO_VALUE};

pub(super) const MIB: f64 = 1024.0 * 1024.0;

#[derive(Clone, Copy)]
pub(super) struct SummaryContext<'a> {
    pub(super) result: &'a RunResult,
    pub(super) derived: &'a Derived,
    pub(super) backend: &'a str,
}

impl SummaryContext<'_> {
    pub(super) fn machine(&self) -> &MachineRecord {
        &self.result.manifest.machine
    }

    /// Memory of a rank in the plan of the run, MiB: given or detected.
    pub(super) fn memory_mib(&self) -> f64 {
        let given = self.result.config.memory_per_process_bytes;
        given.unwrap_or(self.machine().memory_per_rank_bytes) as f64 / MIB
    }

    pub(super) fn total_memory_mib(&self) -> f64 {
        self.memory_mib() * self.machine().ranks as f64
    }

    /// The system in one line.
    pub(super) fn system(&self) -> String {
        let machine = self.machine();
        let [name, release, version, hardware] = uname_fields(machine);
        format!("{name} {} {release} {version} {hardware}", hosts(machine))
    }
}

pub(super) fn remark(page: &mut TextPage, text: impl AsRef<str>) {
    page.line(format!("# {}", text.as_ref()));
}

/// Rate of a pattern, rounded to its significant digits: the format pads with zeros.
pub(super) fn known_rate(record: &PatternRecord) -> Option<f64> {
    rate(record).map(|value| round_significant(value, known_digits(record)))
}

/// ` %8.3f`, or eight blanks and a hyphen without a value.
pub(super) fn format_column(cell: Option<f64>) -> String {
    format!(" {:>8}", or_hyphen(cell.map(|v| format!("{v:.3}"))))
}

/// System name, release, version, and machine of uname(2). Earlier results lack the version.
pub(super) fn uname_fields(machine: &MachineRecord) -> [&str; 4] {
    // The distribution may precede the system name.
    let mut words = machine.kernel.rsplit(' ');
    let [hardware, release, name] = [(); 3].map(|()| words.next().unwrap_or(NO_VALUE));
    [name, release, machine.kernel_version.as_deref().unwrap_or(NO_VALUE), hardware]
}

pub(super) fn hosts(machine: &MachineRecord) -> String {
    machine.hosts.iter().map(|h| h.name.as_str()).collect::<Vec<_>>().join(" ")
}
