//! Text about the overhead of measuring, common to all benchmarks.

use super::model::{labelled_texts, LabelledText};
use super::text::{count, nanoseconds, percent};
use crate::frame::records::InterferenceRecord;
use crate::frame::units::format_size;
use crate::frame::values::bare_loop::BareLoopRatio;
use crate::frame::values::interference::{ratio, shares, InterferenceShares};
use crate::frame::words::or_hyphen;

/// Tolerated relative difference of two loops of the same calls.
const TOLERANCE: f64 = 0.05;

/// Interference during the measurements, overheads of the harness by name, planned and actual memory of a rank, and allocations during
/// timed intervals, of which there must be none.
pub(crate) struct MeasurementCosts<'r, R> {
    /// Overheads of the harness by name, in nanoseconds.
    pub harness: &'r [(&'r str, f64)],
    /// Memory of a rank: planned and maximum.
    pub rank_memory_bytes: [u64; 2],
    /// Measurements.
    pub records: &'r [R],
    /// Noun for a measurement.
    pub noun: &'static str,
    /// Name of a measurement.
    pub name: fn(&R) -> String,
    /// Allocations during its timed interval.
    pub allocations: fn(&R) -> u64,
    /// Interference during it.
    pub interference: fn(&R) -> Option<&InterferenceRecord>,
}

impl<R> MeasurementCosts<'_, R> {
    pub(crate) fn pairs(&self) -> Vec<LabelledText> {
        let harness: Vec<String> =
            self.harness.iter().map(|(name, ns)| format!("{name} {}", nanoseconds(*ns))).collect();
        let all: Vec<&InterferenceRecord> = self.records.iter().filter_map(self.interference).collect();
        labelled_texts([
            ("machine", interference_text(all.iter().copied())),
            ("harness", Some(harness.join(", "))),
            ("rank memory", Some(memory_text(self.rank_memory_bytes))),
            ("allocations", Some(allocations_text(self.records, self.allocations, self.noun, self.name))),
        ])
    }
}

fn interference_text<'a>(all: impl Iterator<Item = &'a InterferenceRecord> + Clone) -> Option<String> {
    let InterferenceShares { steal, other_processes: others, run_queue_wait: waited } = shares(all.clone())?;
    let switches = |of: fn(&InterferenceRecord) -> u64| all.clone().map(of).fold(0, u64::saturating_add);
    let kernel = ratio(all.clone().map(|s| s.kernel_seconds).sum(), all.clone().map(|s| s.cpu_seconds).sum());
    Some(format!(
        "of the CPUs of the ranks {} steal time, {} used by other processes, {} by the kernel without being charged to a \
         process; run-queue wait of ranks {} of the time; {}, {} of them involuntary",
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
        None => "none during measurements".to_owned(),
        Some(first) => format!(
            "DEFECT: {} during measurements in {}, first in {}; please report this",
            count(with.iter().map(|r| allocations(r)).fold(0, u64::saturating_add), "allocation"),
            count(with.len() as u64, noun),
            name(first)
        ),
    }
}

/// Columns of comparisons with bare loops, after those that name the loop.
pub(crate) const BARE_LOOP_COLUMNS: [&str; 6] = ["harness", "bare", "ratio", "[95 %]", "pairs", ""];

pub(crate) fn bare_loop_cells(found: BareLoopRatio) -> [String; 6] {
    let in_brackets = |[low, high]: [f64; 2]| format!("[{low:.3}, {high:.3}]");
    let is_near = (found.ratio - 1.0).abs() <= TOLERANCE;
    [
        format!("{:.3}", found.harness_seconds * 1e6),
        format!("{:.3}", found.bare_seconds * 1e6),
        format!("{:.3}", found.ratio),
        or_hyphen(found.interval.map(in_brackets)),
        found.pairs.to_string(),
        if is_near { "" } else { "> 5 %" }.to_owned(),
    ]
}
