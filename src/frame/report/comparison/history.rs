//! A run against the runs before it, as text for a terminal, as Markdown and as JSON.

use serde::Serialize;

use super::wording::{fact_values, format_ratio};
use super::WIDTH;
use crate::frame::report::doubts::doubt_text;
use crate::frame::report::model::ReportBlock;
use crate::frame::report::render;
use crate::frame::report::render::markdown::escaped;
use crate::frame::report::table::{Table, TableCell};
use crate::frame::report::text::{count, figure, list, TextPage};
use crate::frame::values::compare::FactDifference;
use crate::frame::values::history::{
    ExcludedRuns, Exclusion, History, HistoryOptions, HistoryQuantity, HistoryStep, HistoryVerdict, SetUpChange,
};

/// Changes of the set-up, facts of a change, files of a reason and characters of a value that are shown.
const MAX_CHANGES: usize = 3;
const MAX_FACTS: usize = 3;
const MAX_FILES: usize = 3;
const MAX_VALUE: usize = 40;

/// Input of a rendered gate.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HistoryView<'a> {
    /// Title of the benchmark.
    #[serde(rename = "gated")]
    pub title: &'a str,
    /// File of the judged run.
    pub file: &'a str,
    /// Directory of the runs before it.
    pub directory: &'a str,
    /// Files there that could not be read as results.
    pub unreadable: &'a [String],
    /// Results there of other benchmarks.
    pub other_benchmarks: u64,
    /// Result of the gate.
    #[serde(flatten)]
    pub history: &'a History,
    /// What was accepted as a baseline.
    #[serde(skip)]
    pub options: HistoryOptions,
}

/// For a terminal: the verdict is the first line.
#[must_use]
pub fn text(view: &HistoryView<'_>) -> String {
    let mut page = TextPage::with_width(WIDTH);
    page.hanging("", &verdict_line(view));
    page.hanging("", &format!("beff-raw gate: {}, {} against {}", view.title, view.file, view.directory));
    render::blocks(&mut page, &blocks(view));
    page.finish()
}

/// As Markdown, for the summary of a CI job.
#[must_use]
pub fn markdown(view: &HistoryView<'_>) -> String {
    let line = |text: &str| escaped(&crate::frame::terminal_escape::line(text));
    format!(
        "## {}: {} against {}\n\n**{}**\n{}",
        line(view.title),
        line(view.file),
        line(view.directory),
        line(&verdict_line(view)),
        render::markdown::markdown(&blocks(view))
    )
}

/// As a document.
///
/// # Errors
/// None for a valid result; an error is a defect.
pub fn json(view: &HistoryView<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let mut document = serde_json::json!({ "program": "beff-raw" });
    if let (Some(all), serde_json::Value::Object(own)) = (document.as_object_mut(), serde_json::to_value(view)?) {
        all.extend(own);
    }
    let mut bytes = serde_json::to_vec_pretty(&document)?;
    bytes.push(b'\n');
    Ok(crate::frame::terminal_escape::json(bytes))
}

/// `2026-11-20 03:00`.
pub(crate) fn minute(utc: &str) -> String {
    utc.chars().take(16).map(|c| if c == 'T' { ' ' } else { c }).collect()
}

fn name(quantity: &HistoryQuantity) -> String {
    match quantity.backend.as_str() {
        "" => quantity.name.clone(),
        backend => format!("{}, {backend}", quantity.name),
    }
}

/// Value, ratio and baseline of a number.
fn against_median(quantity: &HistoryQuantity) -> String {
    let (value, unit) = (figure(quantity.value), quantity.unit.name());
    let Some((ratio, median)) = quantity.ratio.zip(quantity.median) else {
        return format!("{} {value} {unit}", name(quantity));
    };
    let runs = count(quantity.baseline_runs, "run");
    format!("{} {value} {unit}, {} of the median of {runs} ({})", name(quantity), format_ratio(ratio), figure(median))
}

/// The number with the lowest ratio, those called slower first.
fn worst(history: &History) -> Option<&HistoryQuantity> {
    let ratio = |quantity: &HistoryQuantity| quantity.ratio.unwrap_or(f64::INFINITY);
    let all = history.quantities.iter();
    all.min_by(|a, b| a.slower.is_none().cmp(&b.slower.is_none()).then(ratio(a).total_cmp(&ratio(b))))
}

fn verdict_line(view: &HistoryView<'_>) -> String {
    let history = view.history;
    let worst = worst(history);
    let number = worst.map(against_median).unwrap_or_else(|| "it has no value".to_owned());
    match history.verdict {
        HistoryVerdict::Corrupt => format!("WRONG DATA: the data of {} was wrong", view.file),
        HistoryVerdict::Pass => {
            // A run rule applies, but not below the limit.
            let is_slower = worst.and_then(|quantity| quantity.interval).is_some_and(|[_, high]| high < 1.0);
            let within = format!("; slower, but not below the limit of {}", format_ratio(view.options.limit));
            format!("PASS: {number}{}", if is_slower { within } else { String::new() })
        }
        HistoryVerdict::Slower => {
            let rule = worst.and_then(|quantity| quantity.slower);
            let runs = rule.filter(|rule| rule.recent > 1);
            let runs = runs.map(|r| format!("; the last {} runs are below {} of it", r.recent, format_ratio(r.below)));
            let since = worst.and_then(|quantity| quantity.step.as_ref());
            let since = since.map(|step| format!("; since {}", minute(&step.first_after_utc)));
            format!("SLOWER: {number}{}{}", runs.unwrap_or_default(), since.unwrap_or_default())
        }
        HistoryVerdict::Inconclusive if history.doubts.is_empty() => {
            let good = worst.map_or(0, |quantity| quantity.baseline_runs);
            let with = if view.options.any_set_up { "its definition" } else { "its definition and set-up" };
            format!("INCONCLUSIVE: {} before it with {with}, 3 are needed; {number}", count(good, "good run"))
        }
        HistoryVerdict::Inconclusive => {
            let reasons: Vec<String> = history.doubts.iter().map(doubt_text).collect();
            format!("INCONCLUSIVE: {} {}; {number}", view.file, reasons.join("; "))
        }
    }
}

fn blocks(view: &HistoryView<'_>) -> Vec<ReportBlock> {
    let history = view.history;
    let mut pairs = vec![("run".to_owned(), format!("{}, {} UTC", view.file, minute(&history.started_utc)))];
    pairs.extend(history.baseline_utc.as_ref().map(|[first, last]| {
        (
            "baseline".to_owned(),
            format!("the last {} at most, {} to {}", view.options.last, minute(first), minute(last)),
        )
    }));
    pairs.extend(history.excluded.iter().map(|left_out| ("left out".to_owned(), excluded(left_out))));
    if view.other_benchmarks > 0 {
        pairs.push(("left out".into(), format!("{} of other benchmarks", count(view.other_benchmarks, "result"))));
    }
    if !view.unreadable.is_empty() {
        pairs.push(("no results".into(), files(view.unreadable)));
    }
    let steps = history.quantities.iter().filter_map(|quantity| Some((quantity, quantity.step.as_ref()?)));
    pairs.extend(steps.map(|(quantity, step)| ("step".to_owned(), step_text(quantity, step))));
    pairs.extend(history.set_up_changes.iter().take(MAX_CHANGES).map(|found| ("set-up".to_owned(), change(found))));
    let more = history.set_up_changes.len().saturating_sub(MAX_CHANGES);
    pairs.extend((more > 0).then(|| ("set-up".to_owned(), format!("and {more} earlier changes: --format json"))));
    let basis = "ratio: of speeds, to the median of the baseline; an interval below 1: this run alone is slower. Runs that equal those before them are \
                 called slower in less than 1 of 100 gates.";
    vec![ReportBlock::Pairs(pairs), ReportBlock::Table(table(history)), ReportBlock::Notes(vec![basis.to_owned()])]
}

fn table(history: &History) -> Table {
    let ends = |ends: Option<[f64; 2]>, form: fn(f64) -> String| {
        ends.map_or_else(String::new, |[low, high]| format!("{} to {}", form(low), form(high)))
    };
    // Without a baseline these columns are empty.
    let has_baseline = history.quantities.iter().any(|quantity| quantity.median.is_some());
    let with_baseline = |cells: Vec<TableCell>| if has_baseline { cells } else { Vec::new() };
    let row = |cells: [TableCell; 3], against: [TableCell; 3], verdict: TableCell, spread: TableCell| {
        let rest = [with_baseline(against.into()), vec![verdict], with_baseline(vec![spread])];
        cells.into_iter().chain(rest.into_iter().flatten()).collect::<Vec<_>>()
    };
    let of_quantity = |quantity: &HistoryQuantity| {
        let verdict = match quantity.slower {
            Some(_) => "slower",
            None if quantity.interval.is_none() => "not judged",
            None => "",
        };
        row(
            [name(quantity).into(), figure(quantity.value).into(), quantity.unit.name().into()],
            [
                quantity.median.map_or_else(String::new, figure).into(),
                quantity.ratio.map_or_else(String::new, format_ratio).into(),
                ends(quantity.interval, format_ratio).into(),
            ],
            TableCell::from(verdict).strong(quantity.slower.is_some()),
            ends(quantity.median_interval, figure).into(),
        )
    };
    let head = ["value", "run", "unit"].into_iter();
    let head: Vec<&str> = match has_baseline {
        true => head.chain(["median", "ratio", "interval", "", "median 95 %"]).collect(),
        false => head.chain([""]).collect(),
    };
    Table::new("", 1, head).with_words().with_rows(history.quantities.iter().map(of_quantity))
}

fn files(names: &[String]) -> String {
    let more = names.len().saturating_sub(MAX_FILES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.iter().take(MAX_FILES).cloned().collect::<Vec<_>>().join(", "))
}

fn excluded(left_out: &ExcludedRuns) -> String {
    let what = match left_out.reason {
        Exclusion::Inconclusive => "without conclusive results (shared machine, cut, storage drift, wrong data)",
        Exclusion::Definition => "of another definition",
        Exclusion::SetUp => "with another set-up (--set-up any accepts it)",
        Exclusion::NotBefore => "not before it",
    };
    format!("{} {what}: {}", count(left_out.files.len() as u64, "run"), files(&left_out.files))
}

fn step_text(quantity: &HistoryQuantity, step: &HistoryStep) -> String {
    let interval = step.interval.map(|[low, high]| format!(" [{}, {}]", format_ratio(low), format_ratio(high)));
    let [first, last] = step.range_utc.each_ref().map(|utc| minute(utc));
    let range = if first == last { String::new() } else { format!("; 95 %: first run between {first} and {last}") };
    format!(
        "{}: {}{} since {}, not yet {}{range}",
        name(quantity),
        format_ratio(step.ratio),
        interval.unwrap_or_default(),
        minute(&step.first_after_utc),
        minute(&step.last_before_utc),
    )
}

fn change(found: &SetUpChange) -> String {
    format!("since {}: {}", minute(&found.since_utc), facts_text(found, MAX_FACTS, MAX_VALUE))
}

/// The facts of a change: `kernel Linux 6.1 -> Linux 6.12`, at most `most` of them, with values of at most `width` characters.
pub(crate) fn facts_text(found: &SetUpChange, most: usize, width: usize) -> String {
    let shorten = |text: String| match text.chars().count() {
        length if length > width => text.chars().take(width.saturating_sub(3)).chain("...".chars()).collect(),
        _ => text,
    };
    let fact = |difference: &FactDifference| {
        let [from, to] = fact_values(difference).map(shorten);
        format!("{} {from} -> {to}", difference.name)
    };
    let texts: Vec<String> = found.facts.iter().take(most).map(fact).collect();
    let more = found.facts.len().saturating_sub(most);
    let more = if more > 0 { format!(" and {more} more facts") } else { String::new() };
    format!("{}{more}", list(&texts))
}
