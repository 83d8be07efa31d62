//! What measuring itself cost, in words: the same for every benchmark.

use super::model::{pairs, Pair};
use super::text::{count, nanoseconds, percent};
use crate::frame::records::MachineShare;
use crate::frame::units::format_size;
use crate::frame::values::machine_share::{ratio, shares, Shares};
use crate::frame::values::pairs::Compared;
use crate::frame::words::or_none;

/// How far apart two loops of the same calls may be.
const TOLERANCE: f64 = 0.05;

/// What the harness itself costs, in pairs: who had the CPUs while something was measured, costs of the harness by name, memory of a
/// rank against what was planned, and allocations inside the clock, of which there must be none.
pub(crate) struct Costs<'r, R> {
    /// Costs of the harness by name, in nanoseconds.
    pub harness: &'r [(&'r str, f64)],
    /// Memory of a rank, planned and at most.
    pub rank_memory_bytes: [u64; 2],
    /// What was measured.
    pub records: &'r [R],
    /// What one of them is called.
    pub noun: &'static str,
    /// The name of one of them.
    pub name: fn(&R) -> String,
    /// Allocations inside its clock.
    pub allocations: fn(&R) -> u64,
    /// Who had the CPUs meanwhile.
    pub machine: fn(&R) -> Option<&MachineShare>,
}

impl<R> Costs<'_, R> {
    pub(crate) fn pairs(&self) -> Vec<Pair> {
        let harness: Vec<String> =
            self.harness.iter().map(|(name, ns)| format!("{name} {}", nanoseconds(*ns))).collect();
        let all: Vec<&MachineShare> = self.records.iter().filter_map(self.machine).collect();
        pairs([
            ("machine", machine_text(all.iter().copied())),
            ("harness", Some(harness.join(", "))),
            ("rank memory", Some(memory_text(self.rank_memory_bytes))),
            ("allocations", Some(allocations_text(self.records, self.allocations, self.noun, self.name))),
        ])
    }
}

fn machine_text<'a>(all: impl Iterator<Item = &'a MachineShare> + Clone) -> Option<String> {
    let Shares { steal, others, waited } = shares(all.clone())?;
    let switches = |of: fn(&MachineShare) -> u64| all.clone().map(of).fold(0, u64::saturating_add);
    let kernel = ratio(all.clone().map(|s| s.kernel_seconds).sum(), all.clone().map(|s| s.cpu_seconds).sum());
    Some(format!(
        "of the CPUs of the ranks {} taken by the hypervisor (steal), {} used by other programs, {} by the kernel for nobody in \
         particular; ranks waited {} of the time for a CPU; {}, {} of them forced",
        percent(steal),
        percent(others),
        percent(kernel),
        percent(waited),
        count(switches(|s| s.voluntary_switches.saturating_add(s.involuntary_switches)), "context switch"),
        switches(|s| s.involuntary_switches)
    ))
}

fn memory_text([planned_bytes, high_water_bytes]: [u64; 2]) -> String {
    match high_water_bytes {
        0 => "not recorded: the run has no end".to_owned(),
        _ => format!("planned {}, highest {}", format_size(planned_bytes), format_size(high_water_bytes)),
    }
}

fn allocations_text<R>(
    records: &[R],
    allocations: impl Fn(&R) -> u64,
    noun: &str,
    name: impl Fn(&R) -> String,
) -> String {
    let with: Vec<&R> = records.iter().filter(|r| allocations(r) > 0).collect();
    match with.first() {
        None => "none inside the clock".to_owned(),
        Some(first) => format!(
            "DEFECT: {} inside the clock in {}, first in {}; please report this",
            count(with.iter().map(|r| allocations(r)).fold(0, u64::saturating_add), "allocation"),
            count(with.len() as u64, noun),
            name(first)
        ),
    }
}

/// Columns of comparisons with bare loops, behind those that say what was compared.
pub(crate) const BESIDE_BARE: [&str; 6] = ["ours", "bare", "ratio", "[95 %]", "pairs", ""];

/// What stands in them.
pub(crate) fn compared(found: Compared) -> [String; 6] {
    let in_brackets = |[low, high]: [f64; 2]| format!("[{low:.3}, {high:.3}]");
    let is_near = (found.ratio - 1.0).abs() <= TOLERANCE;
    [
        format!("{:.3}", found.ours_seconds * 1e6),
        format!("{:.3}", found.bare_seconds * 1e6),
        format!("{:.3}", found.ratio),
        or_none(found.interval.map(in_brackets)),
        found.pairs.to_string(),
        if is_near { "" } else { "> 5 %" }.to_owned(),
    ]
}
