//! What measuring itself cost, in words: the same for every benchmark.

use super::columns::{or_none, Columns};
use super::text::{count, nanoseconds, percent, Page};
use crate::frame::records::MachineShare;
use crate::frame::units::format_size;
use crate::frame::values::machine_share::{ratio, shares, Shares};
use crate::frame::values::pairs::Compared;

/// How far apart two loops of the same calls may be.
const TOLERANCE: f64 = 0.05;

/// Columns of comparisons with bare loops, behind those that say what was compared. `number` and `interval` are widths.
pub(crate) fn beside_bare<'a, R: Copy + 'a>(
    what: Columns<'a, R>,
    [number, interval]: [usize; 2],
    beside: fn(R) -> Compared,
) -> Columns<'a, R> {
    let in_brackets = |[low, high]: [f64; 2]| format!("[{low:.3}, {high:.3}]");
    what.right("ours", number, move |r| format!("{:.3}", beside(r).ours_seconds * 1e6))
        .right("bare", number, move |r| format!("{:.3}", beside(r).bare_seconds * 1e6))
        .right("ratio", 8, move |r| format!("{:.3}", beside(r).ratio))
        .gap(2)
        .left("[95 %]", interval, move |r| or_none(beside(r).interval.map(in_brackets)))
        .right("pairs", 6, move |r| beside(r).pairs)
        .left("", 0, move |r| if (beside(r).ratio - 1.0).abs() <= TOLERANCE { "" } else { "  > 5 %" })
}

/// Costs of the harness by name.
pub(crate) fn harness(page: &mut Page, parts: &[(&str, f64)]) {
    let parts: Vec<String> = parts.iter().map(|(name, ns)| format!("{name} {}", nanoseconds(*ns))).collect();
    page.field("harness", &parts.join(", "));
}

/// Who had the CPUs while something was measured; nothing where nothing was watched.
pub(crate) fn machine<'a>(page: &mut Page, all: impl Iterator<Item = &'a MachineShare> + Clone) {
    let Some(Shares { steal, others, waited }) = shares(all.clone()) else { return };
    let switches = |of: fn(&MachineShare) -> u64| all.clone().map(of).fold(0, u64::saturating_add);
    let kernel = ratio(all.clone().map(|s| s.kernel_seconds).sum(), all.clone().map(|s| s.cpu_seconds).sum());
    page.field(
        "machine",
        &format!(
            "of the CPUs of the ranks {} taken by the hypervisor (steal), {} used by other programs, {} by the kernel for \
             nobody in particular; ranks waited {} of the time for a CPU; {}, {} of them forced",
            percent(steal),
            percent(others),
            percent(kernel),
            percent(waited),
            count(switches(|s| s.voluntary_switches.saturating_add(s.involuntary_switches)), "context switch"),
            switches(|s| s.involuntary_switches)
        ),
    );
}

/// Memory of a rank against what was planned.
pub(crate) fn rank_memory(page: &mut Page, planned_bytes: u64, high_water_bytes: u64) {
    let text = match high_water_bytes {
        0 => "not recorded: the run has no end".to_owned(),
        _ => format!("planned {}, highest {}", format_size(planned_bytes), format_size(high_water_bytes)),
    };
    page.field("rank memory", &text);
}

/// Allocations inside the clock, of which there must be none: in how many records (a `noun`), and the name of the first.
pub(crate) fn allocations<R>(
    page: &mut Page,
    records: &[R],
    allocations: impl Fn(&R) -> u64,
    noun: &str,
    name: impl Fn(&R) -> String,
) {
    let with: Vec<&R> = records.iter().filter(|r| allocations(r) > 0).collect();
    let text = match with.first() {
        None => "none inside the clock".to_owned(),
        Some(first) => format!(
            "DEFECT: {} inside the clock in {}, first in {}; please report this",
            count(with.iter().map(|r| allocations(r)).fold(0, u64::saturating_add), "allocation"),
            count(with.len() as u64, noun),
            name(first)
        ),
    };
    page.field("allocations", &text);
}
