//! The full result as text, with lines of at most [`crate::text::WIDTH`] except those intended for scripts.

use super::common_text::{additional_criteria, caveats_by_subject, criteria_by_subject};
use crate::criterion::validity_text;
use crate::model::{
    CorruptionReport, LabelledText, Problem, ReportBlock, ReportModel, ReportSection, ValidityAssessment,
};
use crate::table::Table;
use crate::text::{list, TextPage};

/// Renders the text.
#[must_use]
pub fn text(model: &ReportModel) -> String {
    let mut page = TextPage::default();
    alarms(&mut page, model);
    if !model.alarms.is_empty() {
        page.blank();
    }
    head(&mut page, model);
    model.sections.iter().for_each(|section| write(&mut page, section));
    validity(&mut page, model);
    if let Some(corruption) = &model.corruption {
        wrong_data(&mut page, corruption);
    }
    problems(&mut page, "Errors", model.errors.iter());
    problems(&mut page, "Warnings", model.warnings.iter().map(|caveat| &caveat.problem));
    model.method.iter().for_each(|section| write(&mut page, section));
    page.blank();
    alarms(&mut page, model);
    if model.alarms.is_empty() && !model.complete.is_empty() {
        page.line(&model.complete);
    }
    model.values.iter().filter(|value| !value.closing_line.is_empty()).for_each(|value| page.line(&value.closing_line));
    page.finish()
}

fn alarms(page: &mut TextPage, model: &ReportModel) {
    model.alarms.iter().for_each(|alarm| page.hanging("*** ", alarm));
}

fn head(page: &mut TextPage, model: &ReportModel) {
    let head = &model.head;
    let first =
        [&head.program, &head.subject].into_iter().filter(|s| !s.is_empty()).cloned().collect::<Vec<_>>().join(": ");
    let first =
        [&first, &head.started_utc].into_iter().filter(|s| !s.is_empty()).cloned().collect::<Vec<_>>().join(", ");
    page.hanging("", &first);
    if !head.units.is_empty() {
        page.hanging("", &head.units);
    }
    head.about.iter().for_each(|text| page.hanging("  ", text));
    page.blank();
    head.facts.iter().for_each(|(label, text)| page.field(label, text));
    if let Some(settings) = &head.settings {
        page.field("settings", settings);
    }
}

fn write(page: &mut TextPage, section: &ReportSection) {
    page.heading(&section.title);
    blocks(page, &section.blocks);
    if !section.note.is_empty() {
        page.hanging("  ", &section.note);
    }
}

/// Writes blocks.
pub fn blocks(page: &mut TextPage, all: &[ReportBlock]) {
    let tables = all
        .iter()
        .filter(|block| matches!(block, ReportBlock::Table(_) | ReportBlock::Picture(_) | ReportBlock::Folded(..)))
        .count();
    for (place, block) in all.iter().enumerate() {
        if place > 0 && !matches!(block, ReportBlock::Notes(_)) {
            page.blank();
        }
        match block {
            ReportBlock::Table(one) => table_with_caption(page, one, tables > 1),
            ReportBlock::Picture(picture) => table_with_caption(page, &picture.table, tables > 1),
            ReportBlock::Pairs(all) => pairs(page, all),
            ReportBlock::List(texts) => texts.iter().for_each(|text| page.hanging("  - ", text)),
            ReportBlock::Text(text) => page.hanging("  ", text),
            ReportBlock::Notes(texts) => texts.iter().for_each(|text| page.hanging("  ", text)),
            ReportBlock::Folded(title, inside) => {
                page.hanging("  ", title);
                blocks(page, inside);
            }
        }
    }
}

const MAX_LABEL_WIDTH: usize = 27;

/// Writes pairs; a label equal to the one above is not repeated.
fn pairs(page: &mut TextPage, all: &[LabelledText]) {
    let width =
        all.iter().map(|(label, _)| label.chars().count()).filter(|n| *n <= MAX_LABEL_WIDTH).max().unwrap_or(0).max(12);
    for (place, (label, text)) in all.iter().enumerate() {
        let label = if place > 0 && all[place - 1].0 == *label { "" } else { label };
        page.hanging(&format!("  {label:<width$}  "), text);
    }
}

fn table_with_caption(page: &mut TextPage, one: &Table, has_caption: bool) {
    if has_caption && !one.caption.is_empty() {
        page.hanging("  ", &one.caption);
    }
    table(page, one);
}

/// Writes a table with notes and legend.
pub fn table(page: &mut TextPage, table: &Table) {
    for (place, (_, lines)) in table.lines(page.width()).into_iter().enumerate() {
        if place > 0 {
            page.blank();
        }
        lines.into_iter().for_each(|line| page.line(line));
    }
    table.notes.iter().for_each(|note| page.hanging("  ", note));
    if let Some(marks) = table.marks() {
        page.hanging("  marks: ", &marks);
    }
}

fn validity(page: &mut TextPage, model: &ReportModel) {
    if model.assessments.is_empty() {
        return;
    }
    let by = model.assessed_by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
    page.heading(&format!("Validity for comparison with other systems{by}"));
    verdicts(page, &model.assessments);
    list_criteria(page, &model.assessments);
    list_caveats(page, &model.assessments);
    for (by, judged) in &model.alternative_assessments {
        page.blank();
        page.line(format!("  by {by}"));
        verdicts(page, judged);
        list_criteria(page, &additional_criteria(model, judged));
        list_caveats(page, &additional_criteria(model, judged));
    }
}

fn verdicts(page: &mut TextPage, judged: &[ValidityAssessment]) {
    judged.iter().for_each(|judged| {
        let text = validity_text(&judged.criteria, judged.caveats.len());
        page.hanging("  ", &format!("{}: {text}", judged.name));
    });
}

fn list_criteria(page: &mut TextPage, judged: &[ValidityAssessment]) {
    for (criterion, names) in criteria_by_subject(judged) {
        let word = if criterion.met { "met" } else { "NOT MET" };
        let text = if criterion.met { criterion.text.as_str() } else { criterion.lack() };
        let of = if names.len() == judged.len() { String::new() } else { format!("{}: ", list(&names)) };
        page.hanging(&format!("    {word:<9}"), &format!("{of}{text}"));
    }
}

/// Caveats, equal ones once.
fn list_caveats(page: &mut TextPage, judged: &[ValidityAssessment]) {
    for (caveat, names) in caveats_by_subject(judged) {
        let of = if names.len() == judged.len() { String::new() } else { format!("{}: ", list(&names)) };
        page.hanging("    CAVEAT   ", &format!("{of}{caveat}"));
    }
}

fn wrong_data(page: &mut TextPage, corruption: &CorruptionReport) {
    page.heading(corruption.title);
    page.line(format!("  {}", corruption.amount));
    corruption.locations.iter().for_each(|place| page.hanging("  - ", place));
    if corruption.more > 0 {
        page.line(format!("  ... and {} more places in the JSON document", corruption.more));
    }
    page.hanging("  -> ", &corruption.next_step);
}

fn problems<'m>(page: &mut TextPage, title: &str, all: impl Iterator<Item = &'m Problem>) {
    for (number, trouble) in all.enumerate() {
        if number == 0 {
            page.heading(title);
        }
        page.hanging("  - ", &trouble.cause);
        page.hanging("    -> ", &trouble.next_step);
    }
}
