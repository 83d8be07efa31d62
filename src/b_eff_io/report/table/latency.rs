//! Times of single calls, when they were recorded.

use std::collections::BTreeSet;

use crate::b_eff_io::records::{PatternRecord, RunResult};
use crate::b_eff_io::report::layout::chunk_label;
use crate::frame::records::{Access, LatencyRecord};
use crate::frame::report::text::{count, list, Page};

use crate::b_eff_io::report::layout::measuring;

/// Width of one time with the blank before it.
const TIME: usize = 7;

pub(super) fn write(page: &mut Page, result: &RunResult) {
    for partition in &result.partitions {
        for backend in measuring(result) {
            let is_of = |r: &&PatternRecord| r.backend == *backend && r.ranks == partition.ranks && r.latency.is_some();
            let records: Vec<&PatternRecord> = result.patterns.iter().filter(is_of).collect();
            if !records.is_empty() {
                table(page, backend, partition.ranks, &records);
            }
        }
    }
}

fn table(page: &mut Page, backend: &str, ranks: u64, records: &[&PatternRecord]) {
    let kinds: BTreeSet<&str> = records.iter().filter_map(|r| r.latency.as_ref()).map(|l| l.of.as_str()).collect();
    let timed: Vec<String> = kinds.iter().map(|kind| format!("each {kind}")).collect();
    page.heading(&format!("Latency of {backend} on {}: time of {}, all ranks", count(ranks, "rank"), list(&timed)));
    let block: String = ["p50", "p99", "p99.9", "max"].iter().map(|name| format!("{name:>TIME$}")).collect();
    let width = 4 * TIME;
    let accesses: String = Access::ALL.iter().map(|a| format!("  {:>width$}", a.name())).collect();
    page.line(format!("  {:14}{accesses}", ""));
    page.line(format!("  {:<14}{}", "no chunk", format!("  {block}").repeat(3)));
    let mut numbers: Vec<u8> = records.iter().map(|r| r.pattern).collect();
    numbers.sort_unstable();
    numbers.dedup();
    for number in numbers {
        let of_pattern = || records.iter().filter(|r| r.pattern == number);
        let chunk = of_pattern().map(|r| r.chunk_bytes).max().unwrap_or(0);
        let mut several = None;
        let cells: String = Access::ALL
            .iter()
            .map(|access| of_pattern().find(|r| r.access == *access).and_then(|r| r.latency.as_ref()))
            .inspect(|latency| several = latency.filter(|_| kinds.len() > 1).map(|l| l.of.as_str()).or(several))
            .map(cell)
            .collect();
        // One letter tells the pattern's kind where a backend has several.
        let kind = several.and_then(|of| of.chars().next()).unwrap_or(' ');
        page.line(format!("  {number:>2} {:<9} {kind}{cells}", chunk_label(chunk)));
    }
    page.line("  Half of the calls were not slower than p50, 99 of 100 than p99, 999 of 1000 than p99.9.");
    if kinds.len() > 1 {
        let letters: Vec<String> = kinds.iter().map(|kind| format!("{kind:.1} = each {kind}")).collect();
        page.line(format!("  Timed: {}.", letters.join(", ")));
    }
}

fn cell(latency: Option<&LatencyRecord>) -> String {
    let times: String = match latency {
        Some(l) => [l.p50_ns, l.p99_ns, l.p999_ns, l.max_ns].map(|ns| format!("{:>TIME$}", time(ns))).concat(),
        None => format!("{:>TIME$}", "-").repeat(4),
    };
    format!("  {times}")
}

/// Three significant digits and the unit, in at most six characters.
fn time(ns: u64) -> String {
    const UNITS: [(f64, &str); 4] = [(1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")];
    let ns = ns as f64;
    // The next unit as soon as the number would be rounded to 1000.
    let (factor, unit) = UNITS.into_iter().find(|(factor, _)| ns / factor < 999.5).unwrap_or((1e9, "s"));
    let value = ns / factor;
    let decimals = match value {
        _ if factor == 1.0 => 0,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_fit() {
        for (ns, text) in [
            (0, "0ns"),
            (999, "999ns"),
            (1000, "1.00us"),
            (9996, "10.0us"),
            (123_456, "123us"),
            (999_600, "1.00ms"),
            (41_250_000, "41.2ms"),
            (3_600_000_000_000, "3600s"),
        ] {
            assert_eq!(time(ns), text);
            assert!(time(ns).len() < TIME);
        }
    }
}
