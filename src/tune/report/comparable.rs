//! Quantities of a search for `compare`: the default, the best setting, and the single values.

use beff_tuning::trial::setting_text;

use crate::frame::records::JournaledResult;
use crate::frame::report::facts::{self, definition, set_up, ConfigFieldRole};
use crate::frame::values::comparable::QuantityUnit::MegabytesPerSecond;
use crate::frame::values::comparable::{ComparableRun, Fact, FactKind, Quantity, QuantityLevel};
use crate::frame::values::doubt::doubts;
use crate::tune::records::TuneResult;
use crate::tune::values::TuneDerived;

pub(super) const FIELDS: [(&str, ConfigFieldRole); 5] = [
    ("trials", ConfigFieldRole::Ignored),
    ("budget_seconds", set_up("budget")),
    ("space", definition("keys and values")),
    ("time_limit", ConfigFieldRole::Ignored),
    ("out", ConfigFieldRole::Ignored),
];

pub(super) fn comparable(result: &TuneResult, derived: &TuneDerived) -> ComparableRun {
    let rate =
        |row: &str, rate: f64| Quantity::new(QuantityLevel::Value, row, String::new(), MegabytesPerSecond, rate / 1e6);
    let default = derived.default_bytes_per_second;
    let singles = derived.singles.iter().filter_map(|single| {
        let column = setting_text(&single.setting);
        let value = default? * single.ratio.ratio / 1e6;
        Some(Quantity::new(QuantityLevel::Detail, "single", column, MegabytesPerSecond, value))
    });
    let values = [("default", default), ("best", derived.best_bytes_per_second)];
    ComparableRun {
        identity: facts::identity(&result.setup.machine, &result.setup.storage.path),
        started_utc: result.setup.machine.started_utc.clone(),
        troubles: facts::problems(result.outcome(), &result.errors, result.is_corrupt()),
        doubts: doubts(result.outcome(), &derived.warnings, []),
        is_corrupt: result.is_corrupt(),
        facts: tune_facts(result).into_iter().chain(facts::machine_facts(&result.setup.machine)).collect(),
        quantities: values.into_iter().filter_map(|(row, value)| Some(rate(row, value?))).chain(singles).collect(),
    }
}

/// Facts other than those of the machine.
pub(super) fn tune_facts(result: &TuneResult) -> Vec<Fact> {
    let mut all = facts::config_facts(&result.config, &FIELDS);
    let trials = &result.config.trials;
    all.push(Fact::new(FactKind::Definition, "work", result.setup.work.clone()));
    all.push(Fact::new(FactKind::Definition, "backend", trials.backend.clone()));
    all.push(Fact::new(FactKind::SetUp, "hints of all trials", setting_text(&trials.hints)));
    all.push(Fact::new(FactKind::SetUp, "MPI-IO", result.setup.mpi_io_layer.clone()));
    all
}
