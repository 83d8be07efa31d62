//! The results with the columns of the release, for programs that read them. A line of numbers is a complete row with right
//! data; everything else is a comment.

use crate::frame::report::library::short_name;
use crate::frame::report::text::{count, TextPage};
use crate::imb_io::config::Multi;
use crate::imb_io::plan::Mode;
use crate::imb_io::records::{ImbResult, RowRecord, RowStatus};
use crate::imb_io::values::{GroupValue, ImbDerived, RowValue};

use super::blocks::{
    blocks_of_all_groups, failure_reason, is_wrong, missing_numbers_reason, not_run_reasons, ColumnSet, RowBlock,
};
use super::grid::AlignedColumns;
use super::{state, value};

/// Minimum width of a column.
const MIN_COLUMN_WIDTH: usize = 13;

const RULE: &str = "#-----------------------------------------------------------------------------";

/// Writes the rows in sections of one benchmark, number of ranks and mode. The groups of `-multi 1` are lines of one section.
#[must_use]
pub fn imb_format(result: &ImbResult, derived: &ImbDerived) -> String {
    let mut page = TextPage::default();
    head(&mut page, result, derived);
    for block in blocks_of_all_groups(result, derived) {
        // With `-multi 0` the release prints times over the ranks for single transfers, too, for any number of groups.
        let over_ranks = result.config.multi == Some(Multi::Slowest) && block.columns == ColumnSet::Single;
        let kind = if over_ranks { ColumnSet::Several } else { block.columns };
        section(&mut page, result, &RowBlock { columns: kind, ..block });
    }
    page.finish()
}

fn head(page: &mut TextPage, result: &ImbResult, derived: &ImbDerived) {
    let machine = &result.setup.machine;
    let cpu = machine.hosts.first().map_or_else(String::new, |h| format!(", {}", h.cpu));
    for line in [
        format!("beff-raw imb {}, IMB-IO", machine.program_version),
        format!("Date          : {}", machine.started_utc),
        format!("System        : {}, {}{cpu}", machine.kernel, count(machine.hosts.len() as u64, "host")),
        format!("MPI           : {}, standard {}", short_name(&machine.mpi_library), machine.mpi_standard),
        format!("Processes     : {}", machine.ranks),
        format!(
            "Files         : {} on {}, {}",
            result.setup.run_dir, result.setup.storage.fs_type, result.setup.storage.source
        ),
        format!("Writes        : {}", state::writes(&result.config)),
        format!("Reads         : {}", state::reads(&result.config)),
        format!("Memory        : {}", state::memory(&result.config)),
        format!("Called with   : {}", machine.command_line.join(" ")),
        format!("Verdict       : {}", value::verdict(derived.verdict.verdict)),
    ] {
        // A line break would end the comment.
        page.line(format!("# {}", line.replace(['\n', '\r'], " ")));
    }
}

fn has_each_group(result: &ImbResult) -> bool {
    result.config.multi == Some(Multi::Each)
}

fn section(page: &mut TextPage, result: &ImbResult, block: &RowBlock<'_>) {
    let first = block.first;
    page.blank();
    page.line(RULE);
    page.line(format!("# Benchmarking {}{}", if first.groups > 1 { "Multi-" } else { "" }, first.benchmark));
    if result.config.backends.len() > 1 || first.backend != "mpiio" {
        page.line(format!("# backend {}", first.backend));
    }
    if first.groups > 1 {
        page.line(format!("# ( {} groups of {} processes each running simultaneous )", first.groups, first.ranks));
    } else {
        page.line(format!("# #processes = {}", first.ranks));
    }
    if first.groups > 1 && has_each_group(result) && block.columns == ColumnSet::Overlap && block.has_times() {
        page.line("# slowest process of all groups; Group is the one with the largest t_ovrl");
    }
    let active = first.ranks.saturating_mul(first.groups);
    match result.setup.machine.ranks.saturating_sub(active) {
        0 => {}
        1 => page.line("# ( 1 additional process waiting in MPI_Barrier)"),
        waiting => page.line(format!("# ( {waiting} additional processes waiting in MPI_Barrier)")),
    }
    page.line(RULE);
    if block.columns != ColumnSet::OpenClose {
        page.line("#");
        page.line(format!("#    MODE: {}", if first.mode == Mode::Aggregate { "AGGREGATE" } else { "NON-AGGREGATE" }));
        page.line("#");
    }
    rows(page, result, block);
}

/// Numbers first, then comments on sizes without numbers.
fn rows(page: &mut TextPage, result: &ImbResult, block: &RowBlock<'_>) {
    let each = has_each_group(result);
    let header = each.then_some("Group").into_iter().chain(block.header().iter().copied());
    let mut grid = AlignedColumns::new(header.map(str::to_owned).collect(), MIN_COLUMN_WIDTH);
    let mut comments: Vec<String> = Vec::new();
    let (mut cached, mut unknown): (Vec<String>, Vec<String>) = Default::default();
    for (record, value) in &block.rows {
        let begin = block.leading_cells(record).join(" ");
        if matches!(record.ended, RowStatus::NotRun(_)) {
            continue;
        }
        if let Some(cause) = failure_reason(record) {
            comments.push(format!("# {begin} {cause}"));
        } else if is_wrong(result, record) {
            let wrong = count(record.bytes_wrong, "byte");
            comments.push(format!("# {begin} WRONG DATA: {wrong} of {} compared", record.bytes_checked));
        } else if let Some(lines) = lines(block, record, value, each) {
            if each {
                // A blank line before the groups of a size, as in the release.
                grid.line(Vec::new());
            }
            for cells in lines {
                grid.line(cells);
            }
            if value.cached {
                cached.extend(record.sample_bytes.map(|bytes| bytes.to_string()));
            } else if value.has_source && value.storage_bytes.is_none() {
                unknown.extend(record.sample_bytes.map(|bytes| bytes.to_string()));
            }
        } else {
            comments.push(format!("# {begin} {}", missing_numbers_reason(record)));
        }
    }
    if !grid.is_empty() {
        grid.write(page);
    }
    for comment in comments {
        page.line(comment);
    }
    if !cached.is_empty() {
        page.line(format!("# read from a cache, not from storage, #bytes: {}", cached.join(" ")));
    }
    if !unknown.is_empty() {
        page.line(format!("# unknown whether read from a cache or from storage, #bytes: {}", unknown.join(" ")));
    }
    for (reason, sizes) in not_run_reasons(block) {
        page.line(format!("# not run ({}): {reason}", count(sizes as u64, "row")));
    }
}

/// The lines of a row, one for each group if `each`; None: a number is missing. An overlap is recorded for the slowest rank
/// of all groups and has one line.
fn lines(block: &RowBlock<'_>, record: &RowRecord, value: &RowValue, each: bool) -> Option<Vec<Vec<String>>> {
    let line = |group: &GroupValue| {
        let cells = block.group_numbers(record, value, group)?;
        let number = each.then(|| group.group.to_string());
        Some(number.into_iter().chain(cells).collect())
    };
    if each && block.columns != ColumnSet::Overlap {
        return value.groups.iter().map(line).collect::<Option<Vec<_>>>().filter(|lines| !lines.is_empty());
    }
    let slowest = value.groups.iter().max_by(|a, b| a.times.max_seconds.total_cmp(&b.times.max_seconds))?;
    Some(vec![line(slowest)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imb_io::report::blocks::blocks;
    use crate::imb_io::report::fixtures;
    use crate::imb_io::values::derive;

    #[test]
    fn golden_format() {
        for (name, result, derived) in fixtures::all() {
            insta::assert_snapshot!(format!("{name}.imb"), imb_format(&result, &derived));
        }
    }

    /// For programs that read the format: a line that is not a comment has one number for each column name.
    #[test]
    fn every_line_is_a_comment_a_header_or_all_numbers_of_a_good_row() {
        for (name, result, derived) in fixtures::all() {
            let text = imb_format(&result, &derived);
            let (mut columns, mut lines) = (0, 0);
            for line in text.lines().filter(|l| !l.trim().is_empty()) {
                let words: Vec<&str> = line.split_whitespace().collect();
                if line.starts_with(' ') && line.contains("#repetitions") {
                    columns = words.len();
                } else if !line.starts_with('#') {
                    lines += 1;
                    assert_eq!(words.len(), columns, "{name}: {line}");
                    assert!(words.iter().all(|w| w.parse::<f64>().is_ok_and(f64::is_finite)), "{name}: {line}");
                }
            }
            let shown = |b: &RowBlock<'_>| {
                let good = b.rows.iter().filter(|(r, _)| r.ended == RowStatus::Complete && !is_wrong(&result, r));
                good.count()
            };
            assert_eq!(lines, blocks(&result, &derived).iter().map(shown).sum::<usize>(), "{name}");
        }
    }

    /// Column names of the sections of a benchmark, without duplicates.
    fn columns(text: &str, benchmark: &str) -> Vec<String> {
        let sections = text.split("# Benchmarking ").filter(|s| s.split_whitespace().next() == Some(benchmark));
        let headers = sections.flat_map(|s| s.lines().filter(|l| !l.starts_with('#') && l.contains("#repetitions")));
        let mut all: Vec<String> = headers.map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        all.dedup();
        all
    }

    #[test]
    fn groups_change_the_columns_of_a_single_group_too() {
        let times = "#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec] Mbytes/sec";
        let single = "#bytes #repetitions t[usec] Mbytes/sec";
        let open = "#repetitions t_min[usec] t_max[usec] t_avg[usec]";
        for (multi, expected) in [
            (None, [single, times, open].map(str::to_owned)),
            (Some(Multi::Slowest), [times, times, open].map(str::to_owned)),
            (Some(Multi::Each), [single, times, open].map(|names| format!("Group {names}"))),
        ] {
            let mut result = fixtures::complete();
            result.config.multi = multi;
            let text = imb_format(&result, &derive(&result));
            for (benchmark, names) in ["S_Write_Indv", "P_Read_Priv", "Open_Close"].into_iter().zip(expected) {
                assert_eq!(columns(&text, benchmark), [names], "{multi:?} {benchmark}: {text}");
            }
        }
    }

    #[test]
    fn nothing_that_a_user_or_an_error_says_becomes_a_number() {
        let mut result = fixtures::failed();
        result.setup.machine.command_line.push("a\n 1 2 3.00 4.00".into());
        result.errors[0].message = "short\n 1 2 3.00 4.00".into();
        result.rows[0].ended = RowStatus::NotRun("no\n 1 2 3.00 4.00".into());
        let text = imb_format(&result, &derive(&result));
        assert!(text.contains("1 2 3.00 4.00"));
        assert!(text.lines().filter(|l| l.contains("1 2 3.00 4.00")).all(|l| l.starts_with('#')), "{text}");
    }
}
