//! Texts common to several renderings of a report.

use crate::criterion::Criterion;
use crate::model::{ReportModel, ReportWarning, ValidityAssessment};
use crate::words::list;

/// Explanations of unmet criteria: those common to all values first and without names. Empty for a failed run, whose error is the reason.
pub fn missing_criteria(model: &ReportModel) -> Vec<String> {
    of_main_values(model, |judged| judged.criteria.iter().filter(|c| !c.met).map(Criterion::lack).collect())
}

/// Caveats of the values, likewise.
pub fn value_caveats(model: &ReportModel) -> Vec<String> {
    of_main_values(model, |judged| judged.caveats.iter().map(String::as_str).collect())
}

fn of_main_values(model: &ReportModel, texts: impl Fn(&ValidityAssessment) -> Vec<&str>) -> Vec<String> {
    let judged: Vec<&ValidityAssessment> =
        model.assessments.iter().filter(|judged| judged.is_main && !model.has_failed).collect();
    let mut found: Vec<(&str, Vec<String>)> = Vec::new();
    for assessment in &judged {
        let name = &assessment.name;
        for words in texts(assessment) {
            match found.iter_mut().find(|(known, _)| *known == words) {
                Some((_, names)) => names.push(name.clone()),
                None => found.push((words, vec![name.clone()])),
            }
        }
    }
    found.sort_by_key(|(_, names)| names.len() != judged.len());
    let text = |(words, names): &(&str, Vec<String>)| match names.len() == judged.len() {
        true => (*words).to_owned(),
        false => format!("{}: {words}", list(names)),
    };
    found.iter().map(text).collect()
}

/// Every criterion once, unmet ones first, with the names of its values.
pub fn criteria_by_subject(judged: &[ValidityAssessment]) -> Vec<(&Criterion, Vec<String>)> {
    let mut found: Vec<(&Criterion, Vec<String>)> = Vec::new();
    for ValidityAssessment { name, criteria, .. } in judged {
        for criterion in criteria {
            match found.iter_mut().find(|(known, _)| *known == criterion) {
                Some((_, names)) => names.push(name.clone()),
                None => found.push((criterion, vec![name.clone()])),
            }
        }
    }
    found.sort_by_key(|(criterion, _)| criterion.met);
    found
}

/// Every caveat once, with the names of its values.
pub fn caveats_by_subject(judged: &[ValidityAssessment]) -> Vec<(&str, Vec<String>)> {
    let mut found: Vec<(&str, Vec<String>)> = Vec::new();
    for ValidityAssessment { name, caveats, .. } in judged {
        for caveat in caveats {
            match found.iter_mut().find(|(known, _)| known == caveat) {
                Some((_, names)) => names.push(name.clone()),
                None => found.push((caveat, vec![name.clone()])),
            }
        }
    }
    found
}

/// Criteria and caveats of another definition that are not already listed.
pub fn additional_criteria(model: &ReportModel, others: &[ValidityAssessment]) -> Vec<ValidityAssessment> {
    let known = |name: &str, criterion: &Criterion| {
        model.assessments.iter().any(|judged| judged.name == name && judged.criteria.contains(criterion))
    };
    let known_caveat = |name: &str, caveat: &String| {
        model.assessments.iter().any(|judged| judged.name == name && judged.caveats.contains(caveat))
    };
    let rest = |other: &ValidityAssessment| ValidityAssessment {
        criteria: other.criteria.iter().filter(|c| !known(&other.name, c)).cloned().collect(),
        caveats: other.caveats.iter().filter(|c| !known_caveat(&other.name, c)).cloned().collect(),
        ..other.clone()
    };
    others.iter().map(rest).collect()
}

/// A text for each kind of warning, the most important first; a kind with several warnings names the other backends.
pub fn caveats<'m>(model: &'m ReportModel, is_shown: impl Fn(&ReportWarning) -> bool) -> Vec<String> {
    let mut all: Vec<&'m ReportWarning> = model.warnings.iter().filter(|caveat| is_shown(caveat)).collect();
    all.sort_by_key(|caveat| (caveat.rank, caveat.kind.as_str()));
    let of_kind = all.chunk_by(|a, b| a.kind == b.kind);
    of_kind
        .filter_map(|all| all.split_first())
        .map(|(first, others)| caveat(first, others, model.has_several_backends))
        .collect()
}

fn caveat(first: &ReportWarning, others: &[&ReportWarning], has_several: bool) -> String {
    let about = first.backend.as_ref().filter(|_| has_several).map(|about| format!("{about}: ")).unwrap_or_default();
    let mut more: Vec<&str> = Vec::new();
    for other in others.iter().filter_map(|other| other.backend.as_deref()) {
        if first.backend.as_deref() != Some(other) && !more.contains(&other) {
            more.push(other);
        }
    }
    let more = match (more.as_slice(), others.len()) {
        (_, 0) => String::new(),
        ([], number) => format!(" (and {number} more of this kind)"),
        (names, _) => format!(" ({} too)", names.join(", ")),
    };
    format!("{about}{}{more}", first.summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Problem;

    fn caveat(kind: &str, rank: u8, backend: Option<&str>, summary: &str) -> ReportWarning {
        let trouble = Problem { cause: String::new(), next_step: String::new() };
        let (kind, backend, summary) = (kind.to_owned(), backend.map(str::to_owned), summary.to_owned());
        ReportWarning { kind, rank, backend, summary, problem: trouble, is_on_screen: true }
    }

    #[test]
    fn a_kind_is_listed_once() {
        let all = vec![
            caveat("dropped", 70, Some("mpiio"), "caches"),
            caveat("memory", 1, Some("posix"), "in memory"),
            caveat("dropped", 70, Some("posix"), "caches too"),
            caveat("dropped", 70, Some("uring"), "caches too"),
            caveat("hint", 41, None, "hints"),
            caveat("hint", 41, None, "other hints"),
            caveat("later", u8::MAX, None, "news"),
            caveat("bound", 2, None, "loose"),
        ];
        let expected = [
            "posix: in memory",
            "loose",
            "hints (and 1 more of this kind)",
            "mpiio: caches (posix, uring too)",
            "news",
        ];
        let model = ReportModel { warnings: all.clone(), has_several_backends: true, ..ReportModel::default() };
        assert_eq!(caveats(&model, |_| true), expected);
        let alone = ReportModel { warnings: all[..1].to_vec(), ..ReportModel::default() };
        assert_eq!(caveats(&alone, |_| true), ["caches"]);
    }
}
