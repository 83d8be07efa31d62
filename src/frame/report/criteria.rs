//! Criteria of validity in words.

use crate::frame::values::Criterion;

use super::text::Page;

/// One line for each.
pub(crate) fn lines<'a>(page: &mut Page, criteria: impl Iterator<Item = &'a Criterion>) {
    for criterion in criteria {
        let (word, text) =
            if criterion.met { ("reached", criterion.text.as_str()) } else { ("MISSING", criterion.lack()) };
        page.hanging(&format!("    {word:<9}"), text);
    }
}

/// What is missing first: it is what the reader can change.
pub(crate) fn missing_first<'a>(page: &mut Page, criteria: impl Iterator<Item = &'a Criterion> + Clone) {
    lines(page, criteria.clone().filter(|c| !c.met));
    lines(page, criteria.filter(|c| c.met));
}

/// `VALID`, or `NOT VALID (2 criteria not reached)`.
pub(crate) fn verdict(criteria: &[Criterion]) -> String {
    match criteria.iter().filter(|c| !c.met).count() {
        0 => "VALID".to_owned(),
        1 => "NOT VALID (1 criterion not reached)".to_owned(),
        missed => format!("NOT VALID ({missed} criteria not reached)"),
    }
}
