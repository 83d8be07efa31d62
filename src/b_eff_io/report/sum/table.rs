//! The table of one partition, and the lines between it and the averages.

use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::PartitionRecord;
use crate::b_eff_io::report::layout;
use crate::b_eff_io::report::layout::{RecordSelector, ROWS, ROW_BYTES};
use crate::b_eff_io::values::{few_calls, ReadSource};
use crate::frame::records::AccessMethod;
use crate::frame::report::text::TextPage;

use super::context::{format_column, known_rate, remark, SummaryContext, MIB};

const CACHED_PER_LINE: usize = 5;

pub(super) fn write(page: &mut TextPage, of: SummaryContext<'_>, partition: &PartitionRecord) {
    let ranks = partition.ranks;
    let title = format!(
        "Summary of file I/O bandwidth accumulated on {ranks:3} processes with {:4.0} MByte/PE",
        of.memory_mib()
    );
    (0..3).for_each(|_| page.blank());
    page.line(&title);
    page.line("-".repeat(title.len()));
    page.blank();
    page.line(" number pos chunk-   access   type=0   type=1   type=2   type=3   type=4");
    page.line(" of PEs     size (l) methode scatter  shared  separate segmened seg-coll");
    page.line("            [bytes]  methode  [MB/s]   [MB/s]   [MB/s]   [MB/s]   [MB/s]");
    page.line(format!(" {}", "-".repeat(71)));
    for access in AccessMethod::ALL {
        let spot = RecordSelector { backend: of.backend, ranks, access };
        page.blank();
        for row in 0..ROWS.len() {
            let chunk_bytes = ROW_BYTES.get(row).copied().unwrap_or(partition.m_part_bytes);
            let position = row + 1;
            let record = |t| layout::classic_pattern(row, t).and_then(|pattern| spot.record(of.result, pattern));
            let cells = PatternType::ALL.map(|t| record(t).and_then(known_rate));
            page.line(format!("{ranks:4} PEs {position:1} {chunk_bytes:8} {:<7}{}", access.name(), columns(&cells)));
        }
        // Without marks a partial total would be mistaken for a complete one.
        let total = |t| spot.type_value(of.derived, t).filter(|v| v.complete).and_then(|v| v.mb_per_second);
        let totals = PatternType::ALL.map(total);
        page.line(format!("{ranks:4} PEs      total-{:<7}{}", access.name(), columns(&totals)));
    }
    pattern_2_line(page, of, ranks);
    few_calls_remark(page, of, ranks);
    cached_reads(page, of, ranks);
    gnuplot(page, of, partition);
}

fn columns(cells: &[Option<f64>]) -> String {
    cells.iter().map(|cell| format_column(*cell)).collect()
}

fn pattern_2_line(page: &mut TextPage, of: SummaryContext<'_>, ranks: u64) {
    let rates = AccessMethod::ALL.map(|access| {
        let spot = RecordSelector { backend: of.backend, ranks, access };
        let record = spot.record(of.result, layout::PATTERN_OUTSIDE_TABLE);
        format!("{} MB/s {}", format_column(record.and_then(known_rate)), access.name())
    });
    page.blank();
    page.exact_line("This table shows all results, except pattern 2 (scatter, l=1MBytes, L=2MBytes): ");
    page.line(format!("  bw_pat2={}", rates.join(",")));
}

/// The rows above have no marks: patterns with few calls are listed.
fn few_calls_remark(page: &mut TextPage, of: SummaryContext<'_>, ranks: u64) {
    let list = |access: AccessMethod| {
        let records = RecordSelector { backend: of.backend, ranks, access }.records(of.result);
        let numbers: Vec<String> =
            records.filter(|r| r.time_units > 0 && few_calls(r)).map(|r| r.pattern.to_string()).collect();
        (!numbers.is_empty()).then(|| format!("  {}: patterns {}", access.name(), numbers.join(", ")))
    };
    let lines: Vec<String> = AccessMethod::ALL.into_iter().filter_map(list).collect();
    if !lines.is_empty() {
        remark(page, "Fewer than 10 calls of a process, or less than 1 MiB (known to two digits at most):");
        lines.iter().for_each(|line| remark(page, line));
    }
}

fn cached_reads(page: &mut TextPage, of: SummaryContext<'_>, ranks: u64) {
    let own: Vec<&ReadSource> =
        of.derived.reads.iter().filter(|r| r.backend == of.backend && r.ranks == ranks).collect();
    let unknown: Vec<String> = own.iter().filter(|r| r.cache_share.is_none()).map(|r| r.pattern.to_string()).collect();
    let cached = own.iter().filter(|r| r.cached);
    let cached: Vec<String> =
        cached.filter_map(|r| Some(format!("pattern {} {:.0} %", r.pattern, 100.0 * r.cache_share?))).collect();
    if !cached.is_empty() {
        remark(page, "Reads of which more than 10 % came from a cache, not from storage, and their share:");
        cached.chunks(CACHED_PER_LINE).for_each(|part| remark(page, format!("  {}", part.join(", "))));
    }
    if !unknown.is_empty() {
        remark(page, format!("Not known whether read from storage or from a cache: patterns {}", unknown.join(", ")));
    }
}

/// Gnuplot commands of the release; x is the row.
fn gnuplot(page: &mut TextPage, of: SummaryContext<'_>, partition: &PartitionRecord) {
    let m_part = (partition.m_part_bytes as f64 / MIB * 10.0).round() / 10.0;
    // A quote would end the string.
    let system = of.system().replace('\'', " ");
    page.blank();
    page.line("(For gnuplot:)");
    page.line(format!("  set xtics ( '1k' 1, '+8' 2, '32k' 4, '+8' 5, '1M' 7, '+8' 8, '{m_part}M' 10)"));
    page.line(format!("  set title '{system}' -4"));
    page.line("  set label 1 'b_eff_io'  at 10,50000 right");
    page.line("  set label 2 'rel. 2.1'  at 10,25000 right");
    page.line(format!("  set label 3 'T={:.1}min' at 10,12500 right", partition.time_seconds / 60.0));
    page.line(format!("  set label 4 'n={}'     at 10,6250  right", partition.ranks));
}
