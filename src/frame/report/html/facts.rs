//! Parts of a page that every benchmark has.

use super::{Block, Finding, Section, Table, Tone};
use crate::frame::records::{Machine, Outcome, Record, StorageRecord, Warning};
use crate::frame::report::library::short_name;
use crate::frame::report::machine::took;
use crate::frame::report::text::{count, list};
use crate::frame::report::warnings::by_kind;
use crate::frame::report::{ending, Views};
use crate::frame::values::comparable::{Fact, Kind};
use crate::frame::values::Criterion;

/// What was measured and where.
#[must_use]
pub fn title(benchmark: &str, machine: &Machine, storage: Option<&StorageRecord>) -> String {
    let host = machine.hosts.first().map_or("a host that was not recorded", |host| host.name.as_str());
    let others = match machine.hosts.len() {
        0 | 1 => String::new(),
        number => format!(" and {}", count(number as u64 - 1, "more host")),
    };
    match storage {
        Some(storage) => format!("{benchmark} of {host}{others}: {}", storage.path),
        None => format!("{benchmark} of {host}{others}"),
    }
}

/// When, with what and how long.
#[must_use]
pub fn line(machine: &Machine, storage: Option<&StorageRecord>, outcome: Outcome, real_seconds: f64) -> Vec<String> {
    let hosts = count(machine.hosts.len() as u64, "host");
    let mut facts = vec![
        machine.started_utc.clone(),
        format!("{} on {hosts}", count(machine.ranks, "rank")),
        short_name(&machine.mpi_library),
    ];
    facts.extend(storage.map(|s| format!("{} on {}", s.fs_type, s.source)));
    facts.push(took(outcome, real_seconds));
    facts.push(format!("beff-raw {} ({})", machine.program_version, machine.git_revision));
    facts
}

/// What must be known first.
#[must_use]
pub fn alarms(result: &impl Record, wrong_data: &str) -> Vec<String> {
    let ended = ending::sentence(result.outcome()).map(str::to_owned);
    let wrong = result.is_corrupt().then(|| wrong_data.to_owned());
    let errors = result.errors().iter().take(3).map(|e| format!("{}. Next step: {}", ending::told(e), e.next_step));
    ended.into_iter().chain(wrong).chain(errors).collect()
}

/// Whether a value counts.
#[must_use]
pub fn verdict(is_valid: bool, result: &impl Record) -> (Tone, String) {
    let (tone, word) = if is_valid { (Tone::Good, "VALID") } else { (Tone::Bad, "NOT VALID") };
    (tone, format!("{word}{}", ending::marks(result)))
}

/// What keeps values from being compared; what all of several miss is told once.
#[must_use]
pub fn lacks<'a>(judged: impl IntoIterator<Item = (&'a str, &'a [Criterion])>) -> Option<Finding> {
    let judged: Vec<(&str, &[Criterion])> = judged.into_iter().collect();
    let mut found: Vec<(&str, Vec<String>)> = Vec::new();
    for (name, criteria) in &judged {
        for words in criteria.iter().filter(|c| !c.met).map(Criterion::lack) {
            match found.iter_mut().find(|(known, _)| *known == words) {
                Some((_, names)) => names.push((*name).to_owned()),
                None => found.push((words, vec![(*name).to_owned()])),
            }
        }
    }
    let text = |(words, names): &(&str, Vec<String>)| match names.len() == judged.len() {
        true => (*words).to_owned(),
        false => format!("{}: {words}", list(names)),
    };
    let texts: Vec<String> = found.iter().map(text).collect();
    (!texts.is_empty()).then_some(Finding { title: "Do not compare this with other systems", texts })
}

/// What stands out, if anything does.
#[must_use]
pub fn stands_out(texts: Vec<String>) -> Option<Finding> {
    (!texts.is_empty()).then_some(Finding { title: "What stands out", texts })
}

/// What was checked, and the warnings in a few words.
#[must_use]
pub fn trust<R: Views>(result: &R, checked: Option<String>, warnings: &[Warning], several: bool) -> Finding {
    let mut texts: Vec<String> = checked.filter(|_| !result.is_corrupt()).into_iter().collect();
    texts.extend(by_kind(warnings, R::KINDS, several));
    if texts.is_empty() {
        texts.push("No warnings.".to_owned());
    }
    Finding { title: "What to trust", texts }
}

/// The criteria of one or several values; one that several have in the same words is told once.
#[must_use]
pub fn validity<'a>(judged: impl IntoIterator<Item = (String, &'a [Criterion])>) -> Section {
    let mut table = Table::new("Criteria", 2, ["reached", "of", "what is asked"]).with_words();
    let mut found: Vec<(&Criterion, Vec<String>)> = Vec::new();
    for (name, criteria) in judged {
        for criterion in criteria {
            match found.iter_mut().find(|(known, _)| *known == criterion) {
                Some((_, names)) => names.push(name.clone()),
                None => found.push((criterion, vec![name.clone()])),
            }
        }
    }
    // What is missing comes first.
    found.sort_by_key(|(criterion, _)| criterion.met);
    for (criterion, names) in found {
        table.row([if criterion.met { "yes" } else { "NO" }.to_owned(), list(&names), criterion.text.clone()]);
    }
    let note = "A value counts for a comparison with other systems only if everything here is reached.".to_owned();
    Section { name: "validity", title: "Validity".into(), note, blocks: vec![Block::Table(table)] }
}

/// All warnings and errors, each with what to do.
#[must_use]
pub fn warnings<R: Views>(result: &R, derived: &R::Derived) -> Section {
    let mut table = Table::new("Warnings and errors", 0, ["what", "what to do"]).with_words();
    for error in result.errors() {
        let what = format!("ERROR in {}, rank {}: {}", error.during, error.rank, error.message);
        table.row([what, error.next_step.clone()]);
    }
    for warning in R::warnings(derived) {
        table.row([warning.cause.clone(), warning.next_step.clone()]);
    }
    let block = if table.is_empty() { Block::List(vec!["There are none.".into()]) } else { Block::Table(table) };
    Section { name: "warnings", title: "Warnings".into(), note: String::new(), blocks: vec![block] }
}

/// What makes the measurement, then what it was made with.
#[must_use]
pub fn set_up(facts: &[Fact]) -> Section {
    let of = |kind: Kind| {
        let pairs = facts.iter().filter(|f| f.kind == kind).map(|f| (f.name.clone(), f.value.clone()));
        Block::Pairs(pairs.collect())
    };
    let blocks = vec![of(Kind::Definition), of(Kind::SetUp)];
    let note = "First what says what is measured, then with what.".to_owned();
    Section { name: "set-up", title: "Set-up".into(), note, blocks }
}
