//! The parts of a [`Model`] that every benchmark has.

use super::library::short_name;
use super::machine::{self, took};
use super::model::{pairs, Block, Caveat, Head, Model, Pair, Section, Tone, Trouble};
use super::text::count;
use super::{ending, Views};
use crate::frame::records::{kinds, Machine, Outcome, Record, StorageRecord, Warning};
use crate::frame::values::comparable::{Fact, Kind};

/// What is measured, where, and how long it took.
pub(crate) struct Of<'r> {
    /// The machine.
    pub machine: &'r Machine,
    /// The file system, of benchmarks that have files.
    pub storage: Option<&'r StorageRecord>,
    /// The benchmark in a word, and the beginning of names of files.
    pub name: &'static str,
    /// The benchmark in full.
    pub subject: &'static str,
    /// What the units mean.
    pub units: &'static str,
    /// What is said if data was wrong.
    pub wrong_data: &'static str,
    /// Time taken.
    pub real_seconds: f64,
}

/// The model of a result as far as all benchmarks have it: head, end, errors, warnings. The benchmark adds what it measured.
pub(crate) fn model<R: Views>(result: &R, derived: &R::Derived, of: &Of<'_>) -> Model {
    let outcome = result.outcome();
    let wrong_data = result.is_corrupt().then_some(of.wrong_data);
    let error = |e| Trouble { cause: ending::told(e), next_step: e.next_step.clone() };
    let caveat = |warning: &Warning| Caveat {
        kind: warning.kind.to_string(),
        // Kinds that nobody knows come last.
        rank: warning.rank.or_else(|| Some(kinds::find(R::KINDS, &warning.kind)?.rank)).unwrap_or(u8::MAX),
        backend: warning.backend.clone(),
        summary: warning.summary.clone(),
        trouble: Trouble { cause: warning.cause.clone(), next_step: warning.next_step.clone() },
        is_on_screen: true,
    };
    Model {
        benchmark: of.name,
        head: head(of, outcome),
        alarms: ending::sentence(outcome).into_iter().chain(wrong_data).map(str::to_owned).collect(),
        has_failed: outcome == Outcome::Failed || !result.errors().is_empty(),
        errors: result.errors().iter().map(error).collect(),
        caveats: R::warnings(derived).iter().map(caveat).collect(),
        ..Model::default()
    }
}

fn head(of: &Of<'_>, outcome: Outcome) -> Head {
    let machine = of.machine;
    let number = machine.hosts.len() as u64;
    let first = machine.hosts.first().map_or("a host that was not recorded", |host| host.name.as_str());
    let others = match number {
        0 | 1 => String::new(),
        number => format!(" and {}", count(number - 1, "more host")),
    };
    Head {
        program: format!("beff-raw {}", machine.program_version),
        revision: machine.git_revision.clone(),
        name: of.name.to_owned(),
        subject: of.subject.to_owned(),
        units: of.units.to_owned(),
        started_utc: machine.started_utc.clone(),
        ranks: format!("{} on {}", count(machine.ranks, "rank"), count(number, "host")),
        library: short_name(&machine.mpi_library),
        hosts: format!("{first}{others}"),
        storage: of.storage.map(|s| [s.path.clone(), format!("{} on {}", s.fs_type, s.source)]),
        took: took(outcome, of.real_seconds),
        ..Head::default()
    }
}

/// Whether a value counts, with what the end has to say.
pub(crate) fn verdict(is_valid: bool, result: &impl Record) -> (Tone, String) {
    let (tone, word) = if is_valid { (Tone::Good, "VALID") } else { (Tone::Bad, "NOT VALID") };
    (tone, format!("{word}{}", ending::marks(result)))
}

/// How it was set up: the command, what makes the measurement, what it was made with, and what only this benchmark has.
pub(crate) fn set_up(machine: &Machine, storage: Option<&StorageRecord>, facts: &[Fact], own: Vec<Pair>) -> Section {
    let of = |kind: Kind| facts.iter().filter(move |f| f.kind == kind).map(|f| (f.name.clone(), f.value.clone()));
    let command = pairs([("command", Some(machine.command_line.join(" ")))]);
    let machine = machine::set_up(machine).into_iter().chain(storage.map(machine::file_system).into_iter().flatten());
    let blocks = vec![
        Block::Pairs(command.into_iter().chain(of(Kind::Definition)).collect()),
        Block::Pairs(of(Kind::SetUp).chain(own).collect()),
        Block::Pairs(machine.collect()),
    ];
    let note = "First what says what is measured, then with what.".to_owned();
    Section { name: "set-up", title: "Set-up".into(), note, blocks }
}
