//! All of a result as text, no line wider than [`crate::text::WIDTH`] but for lines that scripts look for.

use super::said::{beyond, criteria};
use crate::criterion::in_words;
use crate::model::{Block, Corruption, Judged, Model, Pair, Section, Trouble};
use crate::table::Table;
use crate::text::{list, Page};

/// The text.
#[must_use]
pub fn text(model: &Model) -> String {
    let mut page = Page::default();
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
    troubles(&mut page, "Errors", model.errors.iter());
    troubles(&mut page, "Warnings", model.caveats.iter().map(|caveat| &caveat.trouble));
    model.method.iter().for_each(|section| write(&mut page, section));
    page.blank();
    alarms(&mut page, model);
    if model.alarms.is_empty() && !model.complete.is_empty() {
        page.line(&model.complete);
    }
    model.values.iter().filter(|value| !value.closing.is_empty()).for_each(|value| page.line(&value.closing));
    page.finish()
}

fn alarms(page: &mut Page, model: &Model) {
    model.alarms.iter().for_each(|alarm| page.hanging("*** ", alarm));
}

fn head(page: &mut Page, model: &Model) {
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
    head.facts.iter().for_each(|(label, text)| page.short_field(label, text));
    if let Some(settings) = &head.settings {
        page.short_field("settings", settings);
    }
}

fn write(page: &mut Page, section: &Section) {
    page.heading(&section.title);
    blocks(page, &section.blocks);
    if !section.note.is_empty() {
        page.hanging("  ", &section.note);
    }
}

/// Blocks one below the other.
pub fn blocks(page: &mut Page, all: &[Block]) {
    let tables =
        all.iter().filter(|block| matches!(block, Block::Table(_) | Block::Picture(_) | Block::Folded(..))).count();
    for (place, block) in all.iter().enumerate() {
        if place > 0 && !matches!(block, Block::Notes(_)) {
            page.blank();
        }
        match block {
            Block::Table(one) => captioned(page, one, tables > 1),
            Block::Picture(picture) => captioned(page, &picture.table, tables > 1),
            Block::Pairs(all) => pairs(page, all),
            Block::List(texts) => texts.iter().for_each(|text| page.hanging("  - ", text)),
            Block::Text(text) => page.hanging("  ", text),
            Block::Notes(texts) => texts.iter().for_each(|text| page.hanging("  ", text)),
            Block::Folded(title, inside) => {
                page.hanging("  ", title);
                blocks(page, inside);
            }
        }
    }
}

/// Widest column of labels.
const LABEL: usize = 27;

/// Pairs whose names are the same continue each other.
fn pairs(page: &mut Page, all: &[Pair]) {
    let width = all.iter().map(|(label, _)| label.chars().count()).filter(|n| *n <= LABEL).max().unwrap_or(0).max(12);
    for (place, (label, text)) in all.iter().enumerate() {
        let label = if place > 0 && all[place - 1].0 == *label { "" } else { label };
        page.hanging(&format!("  {label:<width$}  "), text);
    }
}

fn captioned(page: &mut Page, one: &Table, has_caption: bool) {
    if has_caption && !one.caption.is_empty() {
        page.hanging("  ", &one.caption);
    }
    table(page, one);
}

/// A table with what explains it.
pub fn table(page: &mut Page, table: &Table) {
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

fn validity(page: &mut Page, model: &Model) {
    if model.judged.is_empty() {
        return;
    }
    page.heading("Validity for comparison with other systems");
    verdicts(page, &model.judged);
    criteria_of(page, &model.judged);
    for (by, judged) in &model.judged_otherwise {
        page.blank();
        page.line(format!("  by {by}"));
        verdicts(page, judged);
        criteria_of(page, &beyond(model, judged));
    }
}

fn verdicts(page: &mut Page, judged: &[Judged]) {
    judged.iter().for_each(|judged| page.hanging("  ", &format!("{}: {}", judged.name, in_words(&judged.criteria))));
}

fn criteria_of(page: &mut Page, judged: &[Judged]) {
    for (criterion, names) in criteria(judged) {
        let word = if criterion.met { "reached" } else { "MISSING" };
        let text = if criterion.met { criterion.text.as_str() } else { criterion.lack() };
        let of = if names.len() == judged.len() { String::new() } else { format!("{}: ", list(&names)) };
        page.hanging(&format!("    {word:<9}"), &format!("{of}{text}"));
    }
}

fn wrong_data(page: &mut Page, corruption: &Corruption) {
    page.heading(corruption.title);
    page.line(format!("  {}", corruption.amount));
    corruption.places.iter().for_each(|place| page.hanging("  - ", place));
    if corruption.more > 0 {
        page.line(format!("  ... and {} more places in the JSON document", corruption.more));
    }
    page.hanging("  -> ", &corruption.next_step);
}

fn troubles<'m>(page: &mut Page, title: &str, all: impl Iterator<Item = &'m Trouble>) {
    for (number, trouble) in all.enumerate() {
        if number == 0 {
            page.heading(title);
        }
        page.hanging("  - ", &trouble.cause);
        page.hanging("    -> ", &trouble.next_step);
    }
}
