//! PREFIX.sum: the summary file of release 2.1, for scripts that read its columns or the third field of the line with
//! `b_eff_io =`.

use crate::b_eff_io::config::Release;
use crate::b_eff_io::records::{PartitionRecord, PatternRecord, RunResult};
use crate::b_eff_io::values::{few_calls, known_digits, rate, Derived, ReadSource};
use crate::frame::digits::rounded;
use crate::frame::records::{Access, Outcome};

use super::layout;
use super::layout::{Spot, ROWS, ROW_BYTES, TYPES};
use crate::frame::report::columns::or_none;
use crate::frame::report::text::Page;

const MB: f64 = 1024.0 * 1024.0;
/// Cached reads listed in one line.
const CACHED_PER_LINE: usize = 5;

/// The summary of one backend: for each partition the table, the averages, the value and its validity by release 2.1,
/// and the maximum over the partitions at the end.
#[must_use]
pub fn summary(result: &RunResult, derived: &Derived, backend: &str) -> String {
    let mut page = Page::default();
    head(&mut page, result, backend);
    for partition in &result.partitions {
        table(&mut page, result, derived, backend, partition);
        values(&mut page, result, derived, backend, partition);
    }
    maximum(&mut page, result, derived, backend);
    page.finish()
}

fn head(page: &mut Page, result: &RunResult, backend: &str) {
    let (config, manifest) = (&result.config, &result.manifest);
    let max_chunk = result.partitions.iter().map(|p| p.m_part_bytes).max().unwrap_or(0);
    page.line(format!(
        "beff-raw {} ({}), backend {backend}, summary in the layout of b_eff_io release 2.1",
        manifest.machine.program_version, manifest.machine.git_revision
    ));
    page.blank();
    page.line(format!(
        "MEMORY_PER_PROCESSOR = {:4.0} MBytes  [1MBytes = 1024*1024 bytes, 1MB = 1e6 bytes]",
        manifest.machine.memory_per_rank_bytes as f64 / MB
    ));
    page.line(format!("Maximum chunk size   = {:8.3} MBytes", max_chunk as f64 / MB));
    page.blank();
    let memory: u64 = manifest.machine.hosts.iter().map(|h| h.memory_bytes).sum();
    page.line(format!(
        "-N {:2} T={}, MT={:.0} MBytes{}{}",
        manifest.machine.ranks,
        config.time_seconds,
        memory as f64 / MB,
        if config.full_rewrite { ", -rewrite" } else { "" },
        if config.shared_pointer { "" } else { ", -noshared" },
    ));
    page.line(format!(
        "PATH={}, PREFIX={}",
        config.path.display(),
        or_none(config.out.as_ref().map(|out| out.display()))
    ));
    let hosts: Vec<&str> = manifest.machine.hosts.iter().map(|h| h.name.as_str()).collect();
    page.line(format!("       system      : {}", manifest.machine.kernel));
    page.line(format!("       hostname    : {}", hosts.join(" ")));
    page.line(format!("       MPI library : {}", manifest.machine.mpi_library));
    page.blank();
    page.line(format!("Date of measurement: {}", manifest.machine.started_utc));
}

fn table(page: &mut Page, result: &RunResult, derived: &Derived, backend: &str, partition: &PartitionRecord) {
    let ranks = partition.ranks;
    let title = format!(
        "Summary of file I/O bandwidth accumulated on {ranks:3} processes with {:4.0} MByte/PE",
        result.manifest.machine.memory_per_rank_bytes as f64 / MB
    );
    page.blank();
    page.blank();
    page.line(&title);
    page.line("-".repeat(title.len()));
    page.blank();
    page.line(" number pos chunk-   access   type=0   type=1   type=2   type=3   type=4");
    page.line(" of PEs     size (l) method  scatter  shared  separate segmented seg-coll");
    page.line("            [bytes]          [MB/s]   [MB/s]   [MB/s]   [MB/s]   [MB/s]");
    page.line(format!(" {}", "-".repeat(71)));
    for access in Access::ALL {
        let spot = Spot { backend, ranks, access };
        page.blank();
        for row in 0..ROWS.len() {
            let chunk_bytes = ROW_BYTES.get(row).copied().unwrap_or(partition.m_part_bytes);
            let position = row + 1;
            let record = |t| layout::classic_pattern(row, t).and_then(|pattern| spot.record(result, pattern));
            let cells = TYPES.map(|t| record(t).and_then(known));
            page.line(format!("{ranks:4} PEs {position:1} {chunk_bytes:8} {:<7}{}", access.name(), columns(&cells)));
        }
        // There are no marks here: a total without all its patterns would pass for a whole one.
        let total = |t| spot.type_value(derived, t).filter(|v| v.complete).and_then(|v| v.mb_per_second);
        let totals = TYPES.map(total);
        page.line(format!("{ranks:4} PEs      total-{:<7}{}", access.name(), columns(&totals)));
    }
    beside_table(page, result, backend, ranks);
    few(page, result, backend, ranks);
    cached_reads(page, derived, backend, ranks);
}

/// The rows above have no room for marks: patterns whose rate rests on little are listed.
fn few(page: &mut Page, result: &RunResult, backend: &str, ranks: u64) {
    let of = |access: Access| {
        let records = Spot { backend, ranks, access }.records(result);
        let numbers: Vec<String> =
            records.filter(|r| r.time_units > 0 && few_calls(r)).map(|r| r.pattern.to_string()).collect();
        (!numbers.is_empty()).then(|| format!("  {}: patterns {}", access.name(), numbers.join(", ")))
    };
    let lines: Vec<String> = Access::ALL.into_iter().filter_map(of).collect();
    if !lines.is_empty() {
        page.line("Fewer than 10 calls of a process, or less than 1 MiB (known to two digits at most):");
        lines.iter().for_each(|line| page.line(line));
    }
}

/// The rate of a pattern, rounded to the digits that are known: the format fills the column with zeros.
fn known(record: &PatternRecord) -> Option<f64> {
    rate(record).map(|value| rounded(value, known_digits(record)))
}

/// Five times ` %8.3f`, or eight blanks and a hyphen where nothing was measured.
fn columns(cells: &[Option<f64>]) -> String {
    cells.iter().map(|cell| column(*cell)).collect()
}

fn column(cell: Option<f64>) -> String {
    format!(" {:>8}", or_none(cell.map(|v| format!("{v:.3}"))))
}

fn beside_table(page: &mut Page, result: &RunResult, backend: &str, ranks: u64) {
    let rates = Access::ALL.map(|access| {
        let record = Spot { backend, ranks, access }.record(result, layout::PATTERN_BESIDE_TABLE);
        format!("{} MB/s {}", column(record.and_then(known)), access.name())
    });
    page.blank();
    page.line("This table shows all results, except pattern 2 (scatter, l=1MBytes, L=2MBytes):");
    page.line(format!("  bw_pat2={}", rates.join(",")));
}

/// Reads that are no storage figures are listed.
fn cached_reads(page: &mut Page, derived: &Derived, backend: &str, ranks: u64) {
    let own: Vec<&ReadSource> = derived.reads.iter().filter(|r| r.backend == backend && r.ranks == ranks).collect();
    let unknown: Vec<String> = own.iter().filter(|r| r.cache_share.is_none()).map(|r| r.pattern.to_string()).collect();
    let cached = own.iter().filter(|r| r.cached);
    let cached: Vec<String> =
        cached.filter_map(|r| Some(format!("pattern {} {:.0} %", r.pattern, 100.0 * r.cache_share?))).collect();
    if !cached.is_empty() {
        page.line("Reads of which more than 10 % came from a cache, not from storage, and their share:");
        cached.chunks(CACHED_PER_LINE).for_each(|part| page.line(format!("  {}", part.join(", "))));
    }
    if !unknown.is_empty() {
        page.line(format!("Not known whether read from storage or from a cache: patterns {}", unknown.join(", ")));
    }
}

fn values(page: &mut Page, result: &RunResult, derived: &Derived, backend: &str, partition: &PartitionRecord) {
    let ranks = partition.ranks;
    let value = layout::partition_value(derived, backend, ranks);
    page.blank();
    for access in Access::ALL {
        let average = value.and_then(|v| v.access_mb_per_second[layout::access_index(access)]);
        page.line(format!(
            "weighted average bandwidth for {:<8}:{} MB/s on {ranks} processes",
            access.name(),
            column(average)
        ));
    }
    page.line("(type=0 is weighted double)");
    page.blank();
    let amounts = Access::ALL.map(|access| {
        let bytes = value.map_or(0, |v| v.access_bytes[layout::access_index(access)]);
        format!("{} {:.3} MBytes", access.name(), bytes as f64 / MB)
    });
    page.line(format!("Total amount of data: {}", amounts.join(", ")));
    page.blank();
    page.line(format!(
        "b_eff_io of these measurements ={} MB/s on {ranks} processes with {:.0} MByte/PE and scheduled time={:.1} min",
        column(value.and_then(|v| v.values.release_2_1)),
        result.manifest.machine.memory_per_rank_bytes as f64 / MB,
        partition.time_seconds / 60.0
    ));
}

fn maximum(page: &mut Page, result: &RunResult, derived: &Derived, backend: &str) {
    page.blank();
    let validity = derived.validity.iter().find(|v| v.backend == backend && v.release == Release::R2_1);
    let valid = validity.is_some_and(|v| v.valid);
    page.line(if valid {
        "VALID for comparison of different systems"
    } else {
        "NOT VALID for comparison of different systems"
    });
    for (criterion, number) in validity.iter().flat_map(|v| &v.criteria).zip(1..) {
        let reached = if criterion.met { "reached" } else { "NOT reached" };
        page.line(format!("  criterion {number}: {} -- {reached}", criterion.text));
    }
    if result.ending.outcome != Outcome::Complete {
        page.line(format!("  This run did not come to its end ({:?}).", result.ending.outcome));
    }
    page.blank();
    page.line("Maximum over all number of PEs");
    page.line("------------------------------");
    page.blank();
    let system = derived.systems.iter().find(|s| s.backend == backend);
    if system.is_some_and(|s| s.values.release_2_1.is_some()) {
        layout::BESIDE_RELEASE_2_1.iter().for_each(|line| page.line(format!("# {line}")));
    }
    let partition = match system.and_then(|s| s.ranks[2]) {
        Some(best) => result.partitions.iter().find(|p| p.ranks == best),
        None => result.partitions.last(),
    };
    let (ranks, scheduled) = partition.map_or((result.manifest.machine.ranks, 0.0), |p| (p.ranks, p.time_seconds));
    page.line(format!(
        " b_eff_io ={} MB/s on {ranks} processes with {:.0} MByte/PE, scheduled time={:.1} Min, on {}, {}",
        column(system.and_then(|s| s.values.release_2_1)),
        result.manifest.machine.memory_per_rank_bytes as f64 / MB,
        scheduled / 60.0,
        result.manifest.machine.kernel,
        if valid { "VALID" } else { "NOT VALID (see above)" }
    ));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::b_eff_io::report::fixtures;
    use crate::b_eff_io::values::derive;

    /// What scripts take from a summary file: cells by (ranks, access, position or 0 for the total), and the value.
    #[derive(Debug, Default)]
    struct Read {
        cells: BTreeMap<(u64, String, u32), Vec<Option<f64>>>,
        chunk_bytes: BTreeMap<(u64, u32), u64>,
        value: Option<f64>,
    }

    /// Reads by white space, as the known scripts do.
    fn read(text: &str) -> Read {
        let mut read = Read::default();
        for line in text.lines() {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let numbers = |from: usize| fields[from..].iter().map(|f| f.parse().ok()).collect();
            if line.contains("b_eff_io =") {
                read.value = fields[2].parse().ok();
            } else if let ([ranks, "PEs", _, ..], true) = (fields.as_slice(), fields.len() >= 8) {
                let Ok(ranks) = ranks.parse() else { continue };
                if let Some(access) = fields[2].strip_prefix("total-") {
                    read.cells.insert((ranks, access.to_owned(), 0), numbers(3));
                } else {
                    let position = fields[2].parse().unwrap();
                    read.chunk_bytes.insert((ranks, position), fields[3].parse().unwrap());
                    read.cells.insert((ranks, fields[4].to_owned(), position), numbers(5));
                }
            }
        }
        read
    }

    /// Lines of a summary that release 2.1 itself wrote.
    const GENUINE: &str = "Summary of file I/O bandwidth accumulated on   4 processes with  256 MByte/PE
 of PEs     size (l) methode scatter  shared  separate segmened seg-coll
   4 PEs 2     1024 write     59.088    0.011   38.085    4.149    3.860
   4 PEs 8  2097152 write     62.658   80.023   86.121   82.971   84.693
   4 PEs      total-write     58.579   48.697   77.944   77.036   73.113
   4 PEs 2     1024 read     227.183   36.553  677.280  418.002   52.442
b_eff_io of these measurements =  214.516 MB/s on 4 processes with 256 MByte/PE and scheduled time=0.2 min
 b_eff_io =  214.516 MB/s on 4 processes with 256 MByte/PE, scheduled time=0.2 Min, NOT VALID (see above)
";

    #[test]
    fn the_reader_understands_a_genuine_file() {
        let genuine = read(GENUINE);
        assert_eq!(genuine.value, Some(214.516));
        assert_eq!(genuine.cells[&(4, "write".into(), 0)][4], Some(73.113));
        assert_eq!(genuine.cells[&(4, "read".into(), 2)][0], Some(227.183));
    }

    #[test]
    fn the_reader_finds_every_number_in_ours() {
        let result = fixtures::complete();
        let derived = derive(&result);
        let text = summary(&result, &derived, "posix");
        let ours = read(&text);
        assert_eq!(ours.cells.len(), 2 * 3 * 8, "partitions, access methods, rows and total");
        for (&(ranks, ref access, row), cells) in &ours.cells {
            let access = Access::ALL.into_iter().find(|a| a.name() == access).unwrap();
            let spot = Spot { backend: "posix", ranks, access };
            for (t, cell) in TYPES.into_iter().zip(cells) {
                let expected = match row {
                    0 => spot.type_value(&derived, t).and_then(|v| v.mb_per_second),
                    row => layout::classic_pattern(row as usize - 1, t)
                        .and_then(|p| spot.record(&result, p))
                        .and_then(known),
                };
                match (cell, expected) {
                    (Some(a), Some(b)) => assert!((a - b).abs() < 0.0006, "{a} {b}"),
                    (a, b) => assert_eq!(*a, b, "{ranks} {access:?} {row} {t}"),
                }
            }
        }
        assert_eq!(ours.chunk_bytes[&(4, 7)], result.partitions[1].m_part_bytes);
        let expected = derived.systems.iter().find(|s| s.backend == "posix").unwrap();
        let (value, expected) = (ours.value.unwrap(), expected.values.release_2_1.unwrap());
        assert!((value - expected).abs() < 0.0006);
    }

    #[test]
    fn the_columns_are_those_of_release_2_1() {
        let result = fixtures::complete();
        let text = summary(&result, &derive(&result), "posix");
        for genuine in GENUINE.lines().filter(|l| l.starts_with("   4 PEs ")) {
            let same_width = text.lines().filter(|l| l.contains(" PEs ") && l.len() == genuine.len());
            assert!(same_width.count() > 0, "no line as wide as {genuine:?}");
        }
        assert!(text.contains("   4 PEs 1     1024 read   "));
        assert!(text.contains("   4 PEs      total-rewrite"));
    }

    #[test]
    fn what_stands_beside_the_value_is_no_value_and_no_column() {
        let result = fixtures::complete();
        let text = summary(&result, &derive(&result), "posix");
        let (notes, others): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with('#'));
        assert!(notes.concat().contains("deletion of its files"), "{notes:?}");
        let (with, without) = (read(&text), read(&others.join("\n")));
        assert_eq!((with.value, with.cells, with.chunk_bytes), (without.value, without.cells, without.chunk_bytes));
        assert!(text.trim_end().lines().last().unwrap().starts_with(" b_eff_io ="));
        // Scripts that look for the number anywhere in the line or for the word of the table find nothing here.
        assert!(notes.iter().all(|line| !line.contains("b_eff_io") && !line.contains("PEs")), "{notes:?}");
        let nothing = summary(&fixtures::interrupted(), &derive(&fixtures::interrupted()), "posix");
        assert!(!nothing.contains("deletion"), "there is no value to stand beside");
    }

    #[test]
    fn golden_summaries() {
        let result = fixtures::complete();
        insta::assert_snapshot!("complete.sum", summary(&result, &derive(&result), "posix"));
        let result = fixtures::interrupted();
        let text = summary(&result, &derive(&result), "posix");
        assert!(text.lines().any(|l| l.starts_with("   2 PEs") && l.ends_with("        -        -")));
        insta::assert_snapshot!("interrupted.sum", text);
    }
}
