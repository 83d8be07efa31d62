//! Several results of one definition over the date, as a section of a page and as text.

use std::collections::HashSet;

use super::comparison::history::{facts_text, minute};
use super::doubts::doubt_text;
use super::html::lines::{self, Abscissa, FrameChange, FrameCurve, FramePoint, MarkerStyle};
use super::html::scale::LogScale;
use super::model::{ReportBlock, ReportSection};
use super::picture::{Frame, LegendEntry, Picture};
use super::render;
use super::table::Table;
use super::text::{count, figure, TextPage};
use crate::frame::values::comparable::{QuantityLevel, QuantityUnit};
use crate::frame::values::over_time::{DatedRun, SeriesLine, SeriesPoint, TimeSeries};

const MAX_PANELS: usize = 60;
/// Columns of the table for a terminal.
const MAX_TEXT_LINES: usize = 3;
/// Characters of a value of a fact.
const MAX_VALUE: usize = 60;
/// Characters of a time in UTC to the minute, and to the second.
const MINUTE_CHARS: usize = 16;
const SECOND_CHARS: usize = 19;
const SECONDS_PER_DAY: f64 = 86_400.0;

/// Section of a page; None without a series.
#[must_use]
pub fn section(all: &[TimeSeries<'_>]) -> Option<ReportSection> {
    let blocks = all.iter().enumerate().flat_map(|(number, series)| series_blocks(series, number, all.len())).collect();
    let note = "Runs with the same definition by their start, UTC; the ordinates are logarithmic. Bars: 95 % intervals within the run, if they are \
                known to a factor of two. Dashed lines: changes of the set-up. Open marks: runs that are inconclusive.";
    ReportSection::of("over-time", "Value over time", note, blocks)
}

/// The same for a terminal; None without a series.
#[must_use]
pub fn text(all: &[TimeSeries<'_>], width: usize) -> Option<String> {
    if all.is_empty() {
        return None;
    }
    let mut page = TextPage::with_width(width);
    for series in all {
        page.heading(&title(series));
        let values: Vec<&SeriesLine<'_>> = series.at_level(QuantityLevel::Value).take(MAX_TEXT_LINES).collect();
        let mut blocks = vec![ReportBlock::Table(table(series, &values))];
        blocks.extend(remarks(series));
        render::blocks(&mut page, &blocks);
    }
    Some(page.finish())
}

/// The facts that changed with each of these files, for a column of a table; empty if none did.
#[must_use]
pub fn changes_by_file(all: &[TimeSeries<'_>], files: &[String]) -> Vec<String> {
    let change = |file: &String| {
        let of = |series: &TimeSeries<'_>| {
            let (_, found) = series.changes.iter().find(|(at, _)| series.runs[*at].file == *file)?;
            Some(facts_text(found, usize::MAX, usize::MAX))
        };
        all.iter().find_map(of).unwrap_or_default()
    };
    files.iter().map(change).collect()
}

/// `b_eff_io, 12 runs, partitions (ranks) 4`.
fn title(series: &TimeSeries<'_>) -> String {
    let facts: String = series.distinction.iter().map(|fact| format!(", {} {}", fact.name, fact.value)).collect();
    format!("{}, {}{facts}", series.benchmark(), count(series.runs.len() as u64, "run"))
}

/// Name of a change: a, b, ..., z, aa, ab, ...
fn letters(number: usize) -> String {
    let letter = char::from(b'a' + (number % 26) as u8);
    if number < 26 {
        letter.to_string()
    } else {
        format!("{}{letter}", letters(number / 26 - 1))
    }
}

fn series_blocks(series: &TimeSeries<'_>, number: usize, of: usize) -> Vec<ReportBlock> {
    let ends =
        [series.runs.first(), series.runs.last()].map(|run| run.map_or(String::new(), |r| minute(&r.run.started_utc)));
    let mut blocks = vec![ReportBlock::Text(format!("{}: {} to {}.", title(series), ends[0], ends[1]))];
    let pictures = [
        ("value", "Values", series.at_level(QuantityLevel::Value).collect::<Vec<_>>()),
        ("means", "Means", series.at_level(QuantityLevel::Group).collect()),
        ("selected", "Single lines that changed most", series.selected()),
    ];
    let suffix = if of > 1 { format!("-{}", number + 1) } else { String::new() };
    for (name, title, lines) in pictures {
        let name = format!("{name}-over-time{suffix}");
        blocks.extend(picture(series, name, title, &lines).map(ReportBlock::Picture));
    }
    blocks.extend(remarks(series));
    blocks
}

/// Changes of the set-up by their letters, and runs that are inconclusive.
fn remarks(series: &TimeSeries<'_>) -> Vec<ReportBlock> {
    let change = |(number, (at, found)): (usize, &(usize, crate::frame::values::history::SetUpChange))| {
        let run = series.runs[*at];
        let facts = facts_text(found, usize::MAX, MAX_VALUE);
        format!("{}: since {}, {}: {facts}", letters(number), minute(&found.since_utc), run.file)
    };
    let changes: Vec<String> = series.changes.iter().enumerate().map(change).collect();
    let doubts = |run: &&&DatedRun| {
        let wrong = run.run.is_corrupt.then(|| "had wrong data".to_owned());
        let others = run.run.doubts.iter().filter(|doubt| !doubt.is_of_single_runs()).map(doubt_text);
        let all: Vec<String> = wrong.into_iter().chain(others).collect();
        format!("{} {}", run.file, all.join("; "))
    };
    let doubtful: Vec<String> = series.runs.iter().filter(|run| run.is_doubtful()).map(|run| doubts(&run)).collect();
    let list = |title: &str, items: Vec<String>| {
        if items.is_empty() {
            return Vec::new();
        }
        vec![ReportBlock::Text(title.to_owned()), ReportBlock::List(items)]
    };
    let mut blocks = list("Changes of the set-up:", changes);
    blocks.extend(list("Inconclusive (marked ?):", doubtful));
    blocks
}

/// Panel and curve of a number in its picture.
fn place(series: &TimeSeries<'_>, line: &SeriesLine<'_>) -> (String, String) {
    let join = |parts: &[&str]| parts.iter().copied().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    let has_several = series.lines.iter().any(|other| other.backend != line.backend);
    let backend = if has_several { line.backend.as_str() } else { "" };
    let ranks = if line.ranks > 0 { count(line.ranks, "rank") } else { String::new() };
    let run = line.simultaneous.map_or("", |run| series.runs[run].file.as_str());
    match line.level {
        QuantityLevel::Value => {
            let curve = if backend.is_empty() { line.row.as_str() } else { backend };
            (join(&[&line.row, &ranks]), join(&[curve, run]))
        }
        QuantityLevel::Group => (join(&[&line.row, backend, &ranks]), join(&[line.column, run])),
        QuantityLevel::Detail => (line.unit.name().to_owned(), join(&[&line.row, line.column, backend, &ranks, run])),
    }
}

fn picture(series: &TimeSeries<'_>, name: String, title: &str, lines: &[&SeriesLine<'_>]) -> Option<Picture> {
    let axis = axis(series)?;
    let (mut panels, mut names): (Vec<(String, QuantityUnit)>, Vec<String>) = (Vec::new(), Vec::new());
    let places: Vec<(usize, usize)> = lines
        .iter()
        .map(|line| {
            let (panel, curve) = place(series, line);
            (index_of(&mut panels, (panel, line.unit)), index_of(&mut names, curve))
        })
        .collect();
    let frame = |number: usize| {
        let own: Vec<(usize, &SeriesLine<'_>)> = places
            .iter()
            .zip(lines)
            .filter(|((panel, _), _)| *panel == number)
            .map(|((_, style), line)| (*style, *line))
            .collect();
        let (title, unit) = &panels[number];
        draw(series, title, unit.name(), &axis, &own)
    };
    let frames: Vec<Frame> = (0..panels.len().min(MAX_PANELS)).filter_map(frame).collect();
    let mut keys: Vec<LegendEntry> =
        names.iter().enumerate().map(|(style, name)| lines::legend_entry(style, name)).collect();
    if series.runs.iter().any(|run| run.is_doubtful()) {
        let sample = lines::legend_entry_with_marker(0, MarkerStyle::Open, "").sample;
        keys.push(LegendEntry { sample, text: "inconclusive run".into(), style: None });
    }
    let table = table(series, lines);
    (!frames.is_empty()).then(|| Picture { name, title: title.to_owned(), keys, frames, table })
}

/// The place of an item in a list, which is extended if it is new.
fn index_of<T: PartialEq>(all: &mut Vec<T>, item: T) -> usize {
    all.iter().position(|known| *known == item).unwrap_or_else(|| {
        all.push(item);
        all.len() - 1
    })
}

fn seconds(run: &DatedRun) -> f64 {
    run.start_seconds().unwrap_or(0) as f64
}

/// Labels are the starts of runs: the time if all are of two days, else the day, with its year if there are several.
fn axis(series: &TimeSeries<'_>) -> Option<Abscissa> {
    let starts = || series.runs.iter().map(|run| (seconds(run), run.run.started_utc.as_str()));
    let (first, last) = (starts().next()?, starts().next_back()?);
    let is_short = last.0 - first.0 < 2.0 * SECONDS_PER_DAY;
    let is_one_year = first.1.get(..4) == last.1.get(..4);
    let range = match () {
        () if is_short => 11..16,
        () if is_one_year => 5..10,
        () => 2..10,
    };
    Abscissa::dates(starts().map(|(at, utc)| (at, utc.get(range.clone()).unwrap_or(utc).to_owned())).collect())
}

fn draw(
    series: &TimeSeries<'_>,
    title: &str,
    unit: &str,
    axis: &Abscissa,
    own: &[(usize, &SeriesLine<'_>)],
) -> Option<Frame> {
    let values = own.iter().flat_map(|(_, line)| &line.points);
    let scale = LogScale::around(values.flat_map(|p| [p.value].into_iter().chain(p.interval.into_iter().flatten())))?;
    let curve = |(style, line): &(usize, &SeriesLine<'_>)| {
        let point = |p: &SeriesPoint| {
            let run = series.runs[p.run];
            let (_, name) = place(series, line);
            let doubt = if run.is_doubtful() { ", inconclusive" } else { "" };
            FramePoint {
                x: seconds(run),
                y: p.value,
                marker: if run.is_doubtful() { MarkerStyle::Open } else { MarkerStyle::Known },
                interval: p.interval,
                tooltip: format!(
                    "{name}, {}, {}: {} {unit}{doubt}",
                    minute(&run.run.started_utc),
                    run.file,
                    with_interval(p)
                ),
            }
        };
        FrameCurve { style: *style, points: line.points.iter().map(point).collect() }
    };
    let curves: Vec<FrameCurve> = own.iter().map(curve).collect();
    let mark = |(number, (at, found)): (usize, &(usize, crate::frame::values::history::SetUpChange))| FrameChange {
        x: seconds(series.runs[*at]),
        name: letters(number),
        tooltip: format!("{}: {}", letters(number), facts_text(found, usize::MAX, MAX_VALUE)),
    };
    let changes: Vec<FrameChange> = series.changes.iter().enumerate().map(mark).collect();
    let said = format!("{title}: {unit} over the start of the runs");
    Some(lines::with_changes(lines::frame(title, said, unit, axis, scale, &curves), axis, &changes))
}

fn with_interval(p: &SeriesPoint) -> String {
    let ends = p.interval.map(|[low, high]| format!(" [{}, {}]", figure(low), figure(high)));
    format!("{}{}", figure(p.value), ends.unwrap_or_default())
}

/// A row for each run: start, letter of a change, its numbers with their intervals, and its file.
fn table(series: &TimeSeries<'_>, lines: &[&SeriesLine<'_>]) -> Table {
    let name = |line: &&SeriesLine<'_>| {
        let (panel, curve) = place(series, line);
        let name = match line.level {
            QuantityLevel::Group => format!("{panel}: {curve}"),
            QuantityLevel::Value if panel == curve => panel,
            QuantityLevel::Value => format!("{panel}, {curve}"),
            QuantityLevel::Detail => curve,
        };
        format!("{name}, {}", line.unit.name())
    };
    let head =
        ["start (UTC)", ""].map(str::to_owned).into_iter().chain(lines.iter().map(name)).chain(["run".to_owned()]);
    let mut table = Table::new("value [95 % interval]", 2, head).with_words();
    let minutes: HashSet<String> = series.runs.iter().map(|run| minute(&run.run.started_utc)).collect();
    let digits = if minutes.len() < series.runs.len() { SECOND_CHARS } else { MINUTE_CHARS };
    let start = |run: &DatedRun| run.run.started_utc.chars().take(digits).collect::<String>().replace('T', " ");
    for (number, run) in series.runs.iter().enumerate() {
        let change = series.changes.iter().position(|(at, _)| *at == number).map(letters).unwrap_or_default();
        let doubt = if run.is_doubtful() { "?" } else { "" };
        let cell = |line: &&SeriesLine<'_>| {
            line.points.iter().find(|p| p.run == number).map_or_else(|| "-".to_owned(), with_interval)
        };
        let begin = [start(run), format!("{change}{doubt}")];
        table.row(begin.into_iter().chain(lines.iter().map(cell)).chain([run.file.clone()]));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_has_a_name_of_its_own() {
        let names: Vec<String> = [0, 25, 26, 51, 52, 701, 702].into_iter().map(letters).collect();
        assert_eq!(names, ["a", "z", "aa", "az", "ba", "zz", "aaa"]);
    }
}
