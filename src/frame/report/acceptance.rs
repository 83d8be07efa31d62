//! Acceptance in words: a table of the requirements with their figures and verdicts.

use super::common;
use super::doubts::doubt_text;
use super::model::{labelled_texts, LabelledText, ReportBlock, ReportModel, ReportSection, TextStyle};
use super::table::{Table, TableCell};
use super::terminal::{styled, Screen};
use super::text::{count, wrap};
use crate::frame::values::acceptance::{Acceptance, JudgedFigure, JudgedRequirement, RequirementVerdict};
use crate::frame::words::NO_VALUE;

const NOTE: &str = "PASS: the whole 95 % interval satisfies the limit; FAIL: the whole interval violates it; UNDECIDED: neither, or the run is \
                    in doubt.";

/// `Acceptance: FAIL (3 PASS, 1 FAIL, 2 UNDECIDED)`.
#[must_use]
pub fn summary_line(acceptance: &Acceptance) -> String {
    let verdicts = [RequirementVerdict::Pass, RequirementVerdict::Fail, RequirementVerdict::Undecided];
    let counts = verdicts.map(|verdict| (acceptance.count(verdict), verdict.name()));
    let counts = counts.into_iter().filter(|(number, _)| *number > 0);
    let counts: Vec<String> = counts.map(|(number, name)| format!("{number} {name}")).collect();
    format!("Acceptance: {} ({})", acceptance.verdict.name(), counts.join(", "))
}

/// The table: a row for each requirement, or for each of its figures if it has several.
#[must_use]
pub fn table(acceptance: &Acceptance) -> Table {
    let head = ["requirement", "figure", "[95 %]", "verdict", "because"];
    let rows = acceptance.requirements.iter().flat_map(requirement_rows);
    Table::new("Requirements", 1, head).with_words().with_rows(rows)
}

fn requirement_rows(requirement: &JudgedRequirement) -> Vec<[TableCell; 5]> {
    let verdict =
        |verdict: RequirementVerdict| TableCell::from(verdict.name()).strong(verdict != RequirementVerdict::Pass);
    let cells = |name: String, figure: &JudgedFigure| {
        let [value, interval] = figure_texts(figure, &requirement.unit);
        [name.into(), value.into(), interval.into(), verdict(figure.verdict), reason(figure).into()]
    };
    match requirement.figures.as_slice() {
        [one] => vec![cells(requirement.requirement.clone(), one)],
        all => {
            let first =
                [requirement.requirement.clone().into(), "".into(), "".into(), verdict(requirement.verdict), "".into()];
            let figures = all.iter().map(|figure| cells(format!("- {}", figure.subject), figure));
            std::iter::once(first).chain(figures).collect()
        }
    }
}

/// The figure with its unit, and its interval.
fn figure_texts(figure: &JudgedFigure, unit: &str) -> [String; 2] {
    let gap = if unit.is_empty() { "" } else { " " };
    let value = figure.value.map_or_else(|| NO_VALUE.to_owned(), |value| format!("{}{gap}{unit}", number(value)));
    let interval = figure.interval.filter(|_| figure.value.is_some());
    let interval = interval.map_or_else(String::new, |[low, high]| format!("[{}, {}]", number(low), number(high)));
    [value, interval]
}

/// Four significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 || value == 0.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 10.0 => format!("{value:.2}"),
        size if size >= 0.1 => format!("{value:.3}"),
        size if size >= 0.001 => format!("{value:.5}"),
        _ => format!("{value:.3e}"),
    }
}

/// Why it is undecided, or a remark.
fn reason(figure: &JudgedFigure) -> String {
    let is_undecided = figure.verdict == RequirementVerdict::Undecided;
    match (&figure.doubt, &figure.note, figure.interval) {
        (Some(doubt), ..) if is_undecided => format!("the run {}", doubt_text(doubt)),
        (_, Some(note), _) => note.clone(),
        (_, None, Some(_)) if is_undecided => {
            "the interval contains the limit, or is wider than a factor of two".into()
        }
        _ => String::new(),
    }
}

/// Verdict and text of each requirement, and of its figures if it has several: `value >= 5 GB/s: 5.12 GB/s [5.01, 5.24]`.
fn text_rows(acceptance: &Acceptance) -> Vec<(RequirementVerdict, String)> {
    let text = |name: &str, figure: &JudgedFigure, unit: &str| {
        let [value, interval] = figure_texts(figure, unit);
        let numbers = [value, interval].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ");
        let because = Some(reason(figure)).filter(|text| !text.is_empty());
        let because = because.map_or_else(String::new, |text| format!("; {text}"));
        (figure.verdict, format!("{name}: {numbers}{because}"))
    };
    let of_requirement = |r: &JudgedRequirement| match r.figures.as_slice() {
        [one] => vec![text(&r.requirement, one, &r.unit)],
        all => {
            let figures = all.iter().map(|figure| text(&format!("- {}", figure.subject), figure, &r.unit));
            std::iter::once((r.verdict, r.requirement.clone())).chain(figures).collect()
        }
    };
    acceptance.requirements.iter().flat_map(of_requirement).collect()
}

/// Columns of a verdict, with a gap.
const VERDICT_COLUMNS: usize = 11;

/// Appends the acceptance to a screen.
#[must_use]
pub fn below_screen(mut screen: Screen, acceptance: &Acceptance) -> Screen {
    let style = |verdict: RequirementVerdict| match verdict {
        RequirementVerdict::Pass => TextStyle::Good,
        RequirementVerdict::Fail => TextStyle::Bad,
        RequirementVerdict::Undecided => TextStyle::Warn,
    };
    screen.blank();
    for (verdict, text) in text_rows(acceptance) {
        let width = screen.columns().saturating_sub(VERDICT_COLUMNS + 2).max(1);
        for (place, line) in wrap(&text, width).into_iter().enumerate() {
            let name = if place == 0 { verdict.name() } else { "" };
            screen
                .line([styled(style(verdict), format!("  {name:<VERDICT_COLUMNS$}")), styled(TextStyle::Plain, line)]);
        }
    }
    screen.line([styled(style(acceptance.verdict), summary_line(acceptance))]);
    screen
}

/// The section of the full text.
#[must_use]
pub fn text_section(acceptance: &Acceptance) -> ReportSection {
    let rows = text_rows(acceptance).into_iter().map(|(verdict, text)| [verdict.name().to_owned(), text]);
    let table = Table::new("", 1, ["verdict", "requirement: figure [95 % interval]"]).with_words().with_rows(rows);
    let blocks = vec![ReportBlock::Text(summary_line(acceptance)), ReportBlock::Table(table)];
    ReportSection { blocks, ..section(acceptance) }
}

/// The section of the page.
#[must_use]
pub fn section(acceptance: &Acceptance) -> ReportSection {
    let blocks = vec![ReportBlock::Text(summary_line(acceptance)), ReportBlock::Table(table(acceptance))];
    ReportSection { name: "acceptance", title: "Acceptance".into(), note: NOTE.into(), blocks }
}

/// A file of the acceptance, so that its content can be recognized.
#[derive(Clone, Debug)]
pub struct HashedFile {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of its content, in hexadecimal digits.
    pub sha256: String,
}

/// Protocol of an acceptance, for two sheets of paper.
#[derive(Debug)]
pub struct Protocol<'a> {
    /// Reports of the runs, at least one.
    pub models: &'a [ReportModel],
    /// Judgement.
    pub acceptance: &'a Acceptance,
    /// Raw data and requirements.
    pub files: &'a [HashedFile],
    /// Problems of the runs.
    pub troubles: Vec<String>,
    /// Version of the program that judged.
    pub version: &'a str,
    /// Its source revision.
    pub revision: &'a str,
    /// Date of the protocol.
    pub date: &'a str,
}

/// Longest text of a fact, so that the protocol keeps to its sheets.
const MAX_FACT_CHARS: usize = 600;

impl Protocol<'_> {
    /// Heading: verdict and storage.
    #[must_use]
    pub fn title(&self) -> String {
        let head = self.models.first().map(|model| &model.head);
        let storage =
            head.and_then(|head| head.storage.as_ref()).map_or_else(String::new, |[path, _]| format!(" of {path}"));
        format!("Acceptance protocol{storage}: {}", self.acceptance.verdict.name())
    }

    /// Date, program, number of runs.
    #[must_use]
    pub fn facts(&self) -> Vec<String> {
        let revision = if self.revision.is_empty() { String::new() } else { format!(" (source {})", self.revision) };
        vec![
            format!("protocol of {}", self.date),
            format!("judged by beff-raw {}{revision}", self.version),
            count(self.models.len() as u64, "run"),
        ]
    }

    /// All sections: requirements, runs, machine, files, signature.
    #[must_use]
    pub fn sections(&self) -> Vec<ReportSection> {
        let signature = vec![ReportBlock::Table(
            Table::new("Signatures", 1, ["name", "date", "signature"]).with_rows([[" ", " ", " "]]),
        )];
        let plain = |name, title: &str, note: &str, blocks| ReportSection {
            name,
            title: title.into(),
            note: note.into(),
            blocks,
        };
        let machine = vec![ReportBlock::Pairs(self.machine())];
        vec![
            section(self.acceptance),
            plain("runs", "Measured", "", self.runs()),
            plain("machine", "Machine and storage", "", machine),
            plain("files", "Files", "SHA-256 as sha256sum prints it.", vec![ReportBlock::Table(self.hashes())]),
            plain("signature", "Signature", "", signature),
        ]
    }

    /// Start, duration, values and verification of each run.
    fn runs(&self) -> Vec<ReportBlock> {
        let head = ["run", "started (UTC)", "duration", "value"];
        let mut table = Table::new("Runs", 1, head).with_words();
        for (number, model) in self.models.iter().enumerate() {
            let values = model.values.iter().map(|v| format!("{}: {} {}, {}", v.label, v.value, v.unit, v.verdict.1));
            let values = values.take(MAX_VALUES).collect::<Vec<_>>().join("; ");
            table.row([
                (number + 1).to_string(),
                model.head.started_utc.clone(),
                model.head.elapsed_time.clone(),
                shortened(&values),
            ]);
        }
        let verified = self.models.iter().map(|model| {
            let wrong = model.corruption.as_ref().map(|found| format!("{}: {}", found.title, found.amount));
            wrong.or_else(|| model.verification.clone()).unwrap_or_else(|| "no data was compared".to_owned())
        });
        let mut facts: Vec<LabelledText> =
            verified.take(MAX_RUNS).map(|text| ("data verified".to_owned(), shortened(&text))).collect();
        facts.extend(self.troubles.iter().take(MAX_RUNS).map(|text| ("problem".to_owned(), shortened(text))));
        vec![ReportBlock::Table(table.first_rows(MAX_RUNS)), ReportBlock::Pairs(facts)]
    }

    /// Facts of the first run: heading, command line, set-up of machine and file system.
    fn machine(&self) -> Vec<LabelledText> {
        let Some(model) = self.models.first() else { return Vec::new() };
        let head = &model.head;
        let set_up = model.method.iter().find(|section| section.name == common::SET_UP);
        let pairs = |block: Option<&ReportBlock>| match block {
            Some(ReportBlock::Pairs(pairs)) => pairs.clone(),
            _ => Vec::new(),
        };
        let blocks = set_up.map_or(&[][..], |section| &section.blocks);
        // The command is first, hosts and file system are last.
        let command = pairs(blocks.first()).into_iter().take(1);
        let found = command.chain(pairs(blocks.last())).map(|(label, text)| (label, shortened(&text)));
        let first = labelled_texts([
            ("measured by", Some(format!("{} {}", head.program, head.revision).trim().to_owned())),
            ("ranks", Some(head.ranks.clone())),
            ("time", Some(head.requested_time.clone())),
            ("settings", head.settings.clone()),
            ("files under", head.storage.as_ref().map(|[path, place]| format!("{path} ({place})"))),
            ("storage sheet", head.sheet.is_none().then(|| "not recorded".to_owned())),
        ]);
        let first = first.into_iter().filter(|(_, text)| !text.is_empty());
        first.map(|(label, text)| (label, shortened(&text))).chain(found).take(MAX_FACTS).collect()
    }

    fn hashes(&self) -> Table {
        let row = |file: &HashedFile| [file.name.clone(), file.bytes.to_string(), file.sha256.clone()];
        let head = ["file", "bytes", "SHA-256"];
        Table::new("Raw data and requirements", 1, head).with_words().with_rows(self.files.iter().map(row))
    }
}

const MAX_FACTS: usize = 30;
const MAX_RUNS: usize = 10;
const MAX_VALUES: usize = 4;

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_FACT_CHARS) {
        Some((end, _)) => format!("{} ...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
#[path = "acceptance_tests.rs"]
mod tests;
