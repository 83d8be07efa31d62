//! Parts of a [`ReportModel`] common to all benchmarks.

use super::library::short_name;
use super::machine::{self, duration_text};
use super::model::{
    labelled_texts, LabelledText, Problem, ReportBlock, ReportHead, ReportModel, ReportSection, ReportWarning,
    TextStyle,
};
use super::text::count;
use super::{outcome_text, Views};
use crate::frame::records::{kinds, JournaledResult, MachineRecord, RunOutcome, StorageRecord, Warning};
use crate::frame::values::comparable::{Fact, FactKind};

pub(crate) struct ReportSubject<'r> {
    /// Machine.
    pub machine: &'r MachineRecord,
    /// File system, for benchmarks with files.
    pub storage: Option<&'r StorageRecord>,
    /// Short name of the benchmark, and prefix of file names.
    pub name: &'static str,
    /// Full name of the benchmark.
    pub subject: &'static str,
    /// Explanation of the units.
    pub units: &'static str,
    /// Notice if data was wrong.
    pub wrong_data: &'static str,
    /// Elapsed time.
    pub real_seconds: f64,
}

/// The common part of the report model: head, outcome, errors, warnings. The benchmark adds its measurements.
pub(crate) fn common_model<R: Views>(result: &R, derived: &R::Derived, of: &ReportSubject<'_>) -> ReportModel {
    let outcome = result.outcome();
    let wrong_data = result.is_corrupt().then_some(of.wrong_data);
    let error = |e| Problem { cause: outcome_text::error_text(e), next_step: e.next_step.clone() };
    let caveat = |warning: &Warning| ReportWarning {
        kind: warning.kind.to_string(),
        // Unknown kinds come last.
        rank: warning.rank.or_else(|| Some(kinds::find_kind(R::KINDS, &warning.kind)?.rank)).unwrap_or(u8::MAX),
        backend: warning.backend.clone(),
        summary: warning.summary.clone(),
        problem: Problem { cause: warning.cause.clone(), next_step: warning.next_step.clone() },
        is_on_screen: true,
    };
    ReportModel {
        benchmark: of.name,
        head: report_head(of, outcome),
        alarms: outcome_text::outcome_notice(outcome).into_iter().chain(wrong_data).map(str::to_owned).collect(),
        has_failed: outcome == RunOutcome::Failed || !result.errors().is_empty(),
        errors: result.errors().iter().map(error).collect(),
        rerun: outcome.is_cut().then(|| cut_run(outcome)),
        warnings: R::warnings(derived).iter().map(caveat).collect(),
        ..ReportModel::default()
    }
}

/// Advice after a cut run of a benchmark that cannot continue it.
fn cut_run(outcome: RunOutcome) -> (String, &'static str) {
    match outcome {
        RunOutcome::Limit => ("the same with a longer --time-limit".into(), "this run was cut"),
        _ => ("the same again, to its end".into(), "this run was cut"),
    }
}

fn report_head(of: &ReportSubject<'_>, outcome: RunOutcome) -> ReportHead {
    let machine = of.machine;
    let number = machine.hosts.len() as u64;
    let first = machine.hosts.first().map_or("a host that was not recorded", |host| host.name.as_str());
    let others = match number {
        0 | 1 => String::new(),
        number => format!(" and {}", count(number - 1, "more host")),
    };
    ReportHead {
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
        sheet: of.storage.and_then(machine::storage_sheet_line),
        elapsed_time: duration_text(outcome, of.real_seconds),
        ..ReportHead::default()
    }
}

/// Validity of a value, with the suffix for the outcome.
pub(crate) fn verdict(is_valid: bool, result: &impl JournaledResult) -> (TextStyle, String) {
    let (tone, word) = if is_valid { (TextStyle::Good, "VALID") } else { (TextStyle::Bad, "NOT VALID") };
    (tone, format!("{word}{}", outcome_text::result_suffix(result)))
}

/// Name of the section on the set-up.
pub(crate) const SET_UP: &str = "set-up";

/// The section on the set-up: command, definition, set-up, and facts specific to this benchmark.
pub(crate) fn set_up(
    machine: &MachineRecord,
    storage: Option<&StorageRecord>,
    facts: &[Fact],
    own: Vec<LabelledText>,
) -> ReportSection {
    let of = |kind: FactKind| facts.iter().filter(move |f| f.kind == kind).map(|f| (f.name.clone(), f.value.clone()));
    let command = labelled_texts([("command", Some(machine.command_line.join(" ")))]);
    let machine = machine::machine_setup(machine)
        .into_iter()
        .chain(storage.map(machine::file_system_setup).into_iter().flatten());
    let blocks = vec![
        ReportBlock::Pairs(command.into_iter().chain(of(FactKind::Definition)).collect()),
        ReportBlock::Pairs(of(FactKind::SetUp).chain(own).collect()),
        ReportBlock::Pairs(machine.collect()),
    ];
    let note = "First the definition of the measurement, then its set-up.".to_owned();
    ReportSection { name: SET_UP, title: "Set-up".into(), note, blocks }
}
