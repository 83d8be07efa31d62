//! The results with the columns of the release, for programs that read those. A line of numbers is a complete row with right
//! data; whatever else is said is a comment.

use crate::config::imb::Multi;
use crate::plan::imb::Mode;
use crate::report::library::short_name;
use crate::report::text::{count, Page};
use crate::results::imb::{ImbResult, RowEnd};
use crate::stats::imb::ImbDerived;

use super::blocks::{blocks, cause, is_wrong, not_run, Block};
use super::grid::Grid;
use super::table;

/// Least width of a column.
const COLUMN: usize = 13;

const RULE: &str = "#-----------------------------------------------------------------------------";

/// The rows in sections of one benchmark, number of ranks and mode.
#[must_use]
pub fn imb_format(result: &ImbResult, derived: &ImbDerived) -> String {
    let mut page = Page::default();
    head(&mut page, result, derived);
    for block in blocks(result, derived) {
        section(&mut page, result, &block);
    }
    page.finish()
}

fn head(page: &mut Page, result: &ImbResult, derived: &ImbDerived) {
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
        format!("Called with   : {}", machine.command_line.join(" ")),
        format!("Verdict       : {}", table::verdict(derived.verdict.verdict)),
    ] {
        // A line break inside would end the comment.
        page.line(format!("# {}", line.replace(['\n', '\r'], " ")));
    }
}

fn section(page: &mut Page, result: &ImbResult, block: &Block<'_>) {
    let first = block.first;
    page.blank();
    page.line(RULE);
    page.line(format!("# Benchmarking {}", first.benchmark));
    if result.config.backends.len() > 1 || first.backend != "mpiio" {
        page.line(format!("# backend {}", first.backend));
    }
    if first.groups > 1 {
        page.line(format!("# ( {} groups of {} processes each running simultaneous )", first.groups, first.ranks));
    } else {
        page.line(format!("# #processes = {}", first.ranks));
    }
    match block.group {
        Some(group) => page.line(format!("# Group {group:>2}")),
        None if first.groups > 1 && block.has_times() && result.config.multi == Some(Multi::Each) => {
            page.line("# slowest process of all groups");
        }
        None => {}
    }
    let active = first.ranks.saturating_mul(first.groups);
    match result.setup.machine.ranks.saturating_sub(active) {
        0 => {}
        1 => page.line("# ( 1 additional process waiting in MPI_Barrier)"),
        waiting => page.line(format!("# ( {waiting} additional processes waiting in MPI_Barrier)")),
    }
    page.line(RULE);
    page.blank();
    page.line(format!("#    MODE: {}", if first.mode == Mode::Aggregate { "AGGREGATE" } else { "NON-AGGREGATE" }));
    page.blank();
    rows(page, result, block);
}

/// Numbers first, then what there is to say about sizes without any.
fn rows(page: &mut Page, result: &ImbResult, block: &Block<'_>) {
    let mut grid = Grid::new(block.header().iter().map(ToString::to_string).collect(), COLUMN);
    let mut comments: Vec<String> = Vec::new();
    let (mut cached, mut unknown): (Vec<String>, Vec<String>) = Default::default();
    for (record, value) in &block.rows {
        let begin = block.begin(record).join(" ");
        if matches!(record.ended, RowEnd::NotRun(_)) {
            continue;
        }
        if let Some(cause) = cause(record) {
            comments.push(format!("# {begin} {cause}"));
        } else if is_wrong(result, record) {
            let wrong = count(record.bytes_wrong, "byte");
            comments.push(format!("# {begin} WRONG DATA: {wrong} of {} compared", record.bytes_checked));
        } else if let Some(cells) = block.numbers(record, value) {
            grid.line(cells, "");
            if value.cached {
                cached.extend(record.sample_bytes.map(|bytes| bytes.to_string()));
            } else if value.has_source && value.storage_bytes.is_none() {
                unknown.extend(record.sample_bytes.map(|bytes| bytes.to_string()));
            }
        } else {
            comments.push(format!("# {begin} no time passed that could be divided by"));
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
        page.line(format!("# not known whether read from a cache or from storage, #bytes: {}", unknown.join(" ")));
    }
    for (reason, sizes) in not_run(block) {
        page.line(format!("# not run ({}): {reason}", count(sizes as u64, "row")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::imb::fixtures;
    use crate::stats::imb::derive;

    #[test]
    fn golden_format() {
        for (name, result, derived) in fixtures::all() {
            insta::assert_snapshot!(format!("{name}.imb"), imb_format(&result, &derived));
        }
    }

    /// What a program does that reads the release: a line that is no comment has one number below each name.
    #[test]
    fn every_line_is_a_comment_a_header_or_whole_numbers_of_a_good_row() {
        for (name, result, derived) in fixtures::all() {
            let text = imb_format(&result, &derived);
            let (mut columns, mut lines) = (0, 0);
            for line in text.lines().filter(|l| !l.trim().is_empty()) {
                let words: Vec<&str> = line.split_whitespace().collect();
                if line.starts_with(' ') && words[0].starts_with('#') {
                    columns = words.len();
                } else if !line.starts_with('#') {
                    lines += 1;
                    assert_eq!(words.len(), columns, "{name}: {line}");
                    assert!(words.iter().all(|w| w.parse::<f64>().is_ok_and(f64::is_finite)), "{name}: {line}");
                }
            }
            let shown = |b: &Block<'_>| {
                let good = b.rows.iter().filter(|(r, _)| r.ended == RowEnd::Complete && !is_wrong(&result, r));
                good.count()
            };
            assert_eq!(lines, blocks(&result, &derived).iter().map(shown).sum::<usize>(), "{name}");
        }
    }

    #[test]
    fn nothing_that_a_user_or_an_error_says_becomes_a_number() {
        let mut result = fixtures::failed();
        result.setup.machine.command_line.push("a\n 1 2 3.00 4.00".into());
        result.errors[0].message = "short\n 1 2 3.00 4.00".into();
        result.rows[0].ended = RowEnd::NotRun("no\n 1 2 3.00 4.00".into());
        let text = imb_format(&result, &derive(&result));
        assert!(text.contains("1 2 3.00 4.00"));
        assert!(text.lines().filter(|l| l.contains("1 2 3.00 4.00")).all(|l| l.starts_with('#')), "{text}");
    }
}
