//! `beff-raw profile show FILE --html OUT`: one page with who accessed what and when. Its size does not grow with the calls.

use std::path::Path;

use anyhow::anyhow;
use beff_trace::summary::{
    summarize_with_charts, AccessGrids, FileSummary, Grid, ProfileCharts, ProfileSummary, TIME_BINS,
};
use beff_trace::text::TextError;

use crate::commands::html_page::{exists_error, write_new_file};
use crate::frame::command::publish;
use crate::frame::error::{Exit, UsageError};
use crate::frame::report::html::{heat, scale::size, section_page, stacks};
use crate::frame::report::model::{ReportBlock, ReportSection};
use crate::frame::report::picture::{Frame, Picture};
use crate::frame::report::table::Table;
use crate::frame::terminal_escape::line;

/// Files whose offsets are drawn, those with most time first.
const MAX_PICTURES: usize = 6;
/// Listed files.
const MAX_FILES: usize = 100;
const READ: usize = 0;
const WRITTEN: usize = 1;

/// Writes the page.
///
/// # Errors
/// A file that is not a profile; an output that exists; write errors.
pub(super) fn write(profile: &Path, out: &Path, refused: impl Fn(TextError) -> UsageError) -> anyhow::Result<Exit> {
    let is_stdout = out == Path::new("-");
    // Before the work: an output that exists.
    if !is_stdout && out.symlink_metadata().is_ok() {
        return Err(exists_error(out).into());
    }
    let (summary, charts) = summarize_with_charts(profile).map_err(refused)?;
    let text = page(&summary, &charts);
    if is_stdout {
        publish(text.as_bytes())?;
    } else {
        let written = write_new_file(out, &text).map_err(|e| anyhow!("{e:#}"))?;
        eprintln!("beff-raw: wrote {}", line(&written));
    }
    Ok(Exit::Ok)
}

/// The page of a profile.
fn page(summary: &ProfileSummary, charts: &ProfileCharts) -> String {
    let command = summary.command.join(" ");
    let title = if command.is_empty() { summary.profile.clone() } else { format!("MPI-IO of {command}") };
    let library = summary.library.lines().next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let facts = vec![
        format!("{} on {}", plural(summary.ranks, "rank"), plural(summary.hosts.len(), "host")),
        library,
        format!("{} calls in {}", summary.calls, seconds(summary.span_seconds)),
        format!("read {}, wrote {}", size(summary.read_bytes), size(summary.written_bytes)),
        format!("{} of I/O, summed over ranks", seconds(summary.io_seconds)),
        summary.profile.clone(),
    ];
    let facts: Vec<String> = facts.into_iter().filter(|fact| !fact.is_empty()).collect();
    let sections = [costs(summary), ranks(summary, charts), offsets(summary, charts), sizes(summary), files(summary)];
    section_page(&title, &facts, &sections.into_iter().flatten().collect::<Vec<_>>())
}

fn plural(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.3} s")
}

fn costs(summary: &ProfileSummary) -> Option<ReportSection> {
    let mut table = Table::new("Largest costs", 0, ["share of the I/O time", "cause", "what to try"]).with_words();
    for cost in &summary.costs {
        table.row([format!("{:.0} %", cost.share * 100.0), cost.what.clone(), cost.next.clone()]);
    }
    let note =
        "Causes that the positions and times of the accesses show come first, then functions. Times may overlap.";
    let blocks = if table.is_empty() { Vec::new() } else { vec![ReportBlock::Table(table)] };
    ReportSection::of("costs", "What costs most", note, blocks)
}

/// Duration of all columns.
fn duration_seconds(grid: &Grid) -> f64 {
    (grid.column_ns as f64) * TIME_BINS as f64 / 1e9
}

/// A frame of a grid, up to its last used row. `largest` is the value of the darkest cell.
fn frame(title: &str, style: usize, grid: &Grid, used: usize, largest: u64, name: impl Fn(u64) -> String) -> Frame {
    let share = |value: &u64| *value as f64 / largest.max(1) as f64;
    let row = |(number, cells): (usize, &[u64; TIME_BINS])| {
        (name(number as u64 * grid.row_length), cells.iter().map(share).collect::<Vec<f64>>())
    };
    let rows: Vec<(String, Vec<f64>)> = grid.cells.iter().take(used).enumerate().map(row).collect();
    heat::frame(title, format!("{title} over time"), style, &rows, duration_seconds(grid))
}

/// Number of rows up to the last one with a value.
fn used_rows(grids: &[&Grid]) -> usize {
    let last =
        |grid: &&Grid| grid.cells.iter().rposition(|row| row.iter().any(|value| *value > 0)).map_or(0, |row| row + 1);
    grids.iter().map(last).max().unwrap_or(0)
}

fn sum(row: &[u64; TIME_BINS]) -> u64 {
    row.iter().fold(0, |sum, value| sum.saturating_add(*value))
}

fn ranks(summary: &ProfileSummary, charts: &ProfileCharts) -> Option<ReportSection> {
    let AccessGrids { read, written } = &charts.by_rank;
    let used = summary.ranks.div_ceil(usize::try_from(charts.io_ns.row_length).unwrap_or(1)).max(1);
    let name = |rank: u64| format!("rank {rank}");
    let whole = charts.io_ns.column_ns.saturating_mul(charts.io_ns.row_length);
    let mut frames = vec![frame("time in I/O", 2, &charts.io_ns, used, whole, name)];
    for (title, style, grid) in [("bytes written", WRITTEN, written), ("bytes read", READ, read)] {
        if grid.largest() > 0 {
            frames.push(frame(title, style, grid, used, grid.largest(), name));
        }
    }
    let mut table = Table::new("I/O of ranks", 1, ["ranks", "seconds in I/O", "bytes written", "bytes read"]);
    for number in 0..used.min(charts.io_ns.cells.len()) {
        let first = number as u64 * charts.io_ns.row_length;
        let last = (first + charts.io_ns.row_length).min(summary.ranks as u64) - 1;
        let ranks = if first == last { first.to_string() } else { format!("{first}-{last}") };
        let io_seconds = sum(&charts.io_ns.cells[number]) as f64 / 1e9;
        table.row([
            ranks,
            format!("{io_seconds:.3}"),
            sum(&written.cells[number]).to_string(),
            sum(&read.cells[number]).to_string(),
        ]);
    }
    let picture = Picture { name: "ranks".into(), title: "Ranks over time".into(), keys: Vec::new(), frames, table };
    let note = "The darkest cell is the largest amount in an interval; in time in I/O, a rank that was in I/O calls during the whole interval. Bytes count at the begin of their call.";
    ReportSection::of("ranks", "Who accessed files, and when", note, vec![ReportBlock::Picture(picture)])
}

fn offsets(summary: &ProfileSummary, charts: &ProfileCharts) -> Option<ReportSection> {
    let drawn = summary.files.iter().filter_map(|file| Some((file, charts.by_offset.get(&file.path)?)));
    let mut blocks: Vec<ReportBlock> = Vec::new();
    for (file, AccessGrids { read, written }) in drawn.take(MAX_PICTURES) {
        let used = used_rows(&[read, written]);
        let mut frames = Vec::new();
        for (title, style, grid) in [("bytes written", WRITTEN, written), ("bytes read", READ, read)] {
            if grid.largest() > 0 {
                frames.push(frame(title, style, grid, used, grid.largest(), size));
            }
        }
        if frames.is_empty() {
            continue;
        }
        let mut table = Table::new("Accesses by offset", 1, ["from offset", "bytes written", "bytes read"]);
        for number in 0..used {
            let from = number as u64 * read.row_length;
            table.row([
                from.to_string(),
                sum(&written.cells[number]).to_string(),
                sum(&read.cells[number]).to_string(),
            ]);
        }
        let name = format!("offsets-{}", blocks.len());
        blocks.push(ReportBlock::Picture(Picture { name, title: file.path.clone(), keys: Vec::new(), frames, table }));
    }
    let note = "Offsets from the bottom to the top. Bytes of a noncontiguous access are spread from its first to its last byte.";
    ReportSection::of("offsets", "Where in the files, and when", note, blocks)
}

/// Distribution of access sizes over all files.
fn sizes(summary: &ProfileSummary) -> Option<ReportSection> {
    let mut classes: std::collections::BTreeMap<u64, [u64; 2]> = std::collections::BTreeMap::new();
    for function in summary.files.iter().flat_map(|file| &file.functions) {
        let direction = if function.function.contains("read") { READ } else { WRITTEN };
        for (limit, calls) in function.sizes.iter().flat_map(|sizes| &sizes.classes) {
            classes.entry(*limit).or_default()[direction] += calls;
        }
    }
    let longest = classes.values().map(|calls| calls.iter().sum::<u64>()).max().unwrap_or(0);
    let mut table = Table::new("Accesses by size", 1, ["bytes up to", "reads", "writes"]);
    let mut bars = Vec::new();
    for (limit, calls) in &classes {
        table.row([limit.to_string(), calls[READ].to_string(), calls[WRITTEN].to_string()]);
        let parts = [("reads", calls[READ]), ("writes", calls[WRITTEN])];
        bars.push(stacks::StackedBar {
            name: format!("≤ {}", size(*limit)),
            total: calls.iter().sum::<u64>().to_string(),
            parts: parts.iter().map(|(what, calls)| (*calls as f64, format!("{calls} {what}"))).collect(),
        });
    }
    if bars.is_empty() {
        return None;
    }
    let names = [(READ, "reads"), (WRITTEN, "writes")];
    let frames = vec![stacks::frame("accesses", "Accesses by size".to_owned(), &names, &bars, longest as f64)];
    let keys = names.iter().map(|(style, text)| stacks::legend_entry(*style, text)).collect();
    let picture = Picture { name: "sizes".into(), title: "Access sizes".into(), keys, frames, table };
    ReportSection::of("sizes", "Access sizes", "Requested bytes per call.", vec![ReportBlock::Picture(picture)])
}

fn files(summary: &ProfileSummary) -> Option<ReportSection> {
    let head = ["file", "ranks", "seconds", "bytes written", "bytes read", "collective bytes", "collective accesses"];
    let mut table = Table::new("Files", 1, head);
    let percent = |share: Option<f64>| share.map_or_else(String::new, |share| format!("{:.0} %", share * 100.0));
    for FileSummary {
        path,
        ranks,
        seconds,
        written_bytes,
        read_bytes,
        collective_bytes_share,
        collective_calls_share,
        ..
    } in summary.files.iter().take(MAX_FILES)
    {
        table.row([
            path.clone(),
            ranks.to_string(),
            format!("{seconds:.3}"),
            written_bytes.to_string(),
            read_bytes.to_string(),
            percent(*collective_bytes_share),
            percent(*collective_calls_share),
        ]);
    }
    let more = summary.files.len().saturating_sub(MAX_FILES);
    let note =
        if more > 0 { format!("The {MAX_FILES} files with most time; {more} more have less.") } else { String::new() };
    let blocks = if table.is_empty() { Vec::new() } else { vec![ReportBlock::Table(table)] };
    ReportSection::of("files", "Files", note, blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(profile: &Path) -> String {
        let (summary, charts) = summarize_with_charts(profile).unwrap();
        page(&summary, &charts)
    }

    #[test]
    fn a_page_shows_ranks_offsets_sizes_and_costs() {
        let profile = Path::new(env!("CARGO_MANIFEST_DIR")).join("trace/workloads/strided.csv");
        let text = written(&profile);
        for part in [
            "What costs most",
            "Who accessed files, and when",
            "Where in the files",
            "Access sizes",
            "bytes written",
            "rank 0",
            "</html>",
        ] {
            assert!(text.contains(part), "no '{part}' in\n{text}");
        }
        assert!(!text.contains("<script") && text.matches("<section").count() == 5, "{text}");
        // Every byte is in the table of offsets.
        let (summary, charts) = summarize_with_charts(&profile).unwrap();
        let grids = charts.by_offset.values().next().unwrap();
        let total = |grid: &Grid| grid.cells.iter().map(sum).sum::<u64>();
        assert_eq!((total(&grids.written), total(&grids.read)), (summary.written_bytes, summary.read_bytes));
        assert_eq!(total(&charts.by_rank.written), summary.written_bytes);
    }

    #[test]
    fn the_size_is_bounded_and_names_are_no_markup() {
        use std::fmt::Write as _;
        let length = |calls: u64| {
            let mut text = String::from(
                "beff-raw profile,1\nranks,64\ncommand,\"<script>\"\ncomm,0,world\ntype,0,BYTE\nfile,0,<b>\n",
            );
            for rank in 0..64_u64 {
                writeln!(text, "calls,{rank},{}\n0,1,File_open,handle=1,comm=0,file=0,mode=create;rdwr", calls + 1)
                    .unwrap();
                for n in 1..=calls {
                    let (begin, at) = (n * 1000 + rank, (n * 7919 + rank * 31) % 99_991 * 4096);
                    writeln!(
                        text,
                        "{begin},{},File_write_at,handle=1,offset={at},count=4096,type=0,bytes=4096",
                        begin + 500
                    )
                    .unwrap();
                }
            }
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("a.csv");
            std::fs::write(&path, text).unwrap();
            let page = written(&path);
            assert!(!page.contains("<script>") && !page.contains("<b>"));
            page.len()
        };
        let (few, many) = (length(200), length(2000));
        assert!(few < 700_000 && many < 700_000, "{few} {many}");
    }

    #[test]
    fn a_profile_without_calls_has_a_page_and_nothing_is_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let (profile, out) = (dir.path().join("a.csv"), dir.path().join("a.html"));
        std::fs::write(&profile, "beff-raw profile,1\nranks,1\ncalls,0,0\n").unwrap();
        let refused = |e: TextError| UsageError::new(e.to_string(), "");
        write(&profile, &out, refused).unwrap();
        assert!(std::fs::read_to_string(&out).unwrap().contains("</html>"));
        assert!(format!("{:#}", write(&profile, &out, refused).unwrap_err()).contains("exists already"));
    }
}
