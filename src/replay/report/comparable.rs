//! Quantities of a replay for `compare`: speed of all calls, of reads and writes, and of every class of functions. A number is the
//! median over the repetitions.

use crate::frame::records::JournaledResult;
use crate::frame::report::facts::{self, definition, set_up, ConfigFieldRole};
use crate::frame::values::comparable::QuantityUnit::{MegabytesPerSecond, Microseconds};
use crate::frame::values::comparable::{ComparableRun, Fact, FactKind, Quantity, QuantityLevel};
use crate::frame::values::doubt::doubts;
use crate::frame::values::NULL_BACKEND;
use crate::replay::config::WhatIf;
use crate::replay::records::ReplayResult;
use crate::replay::values::{CallSubset, LevelComparison as Line, LevelKind, ReplayDerived};

/// Every field of the configuration.
const FIELDS: [(&str, ConfigFieldRole); 23] = [
    ("pace", definition("pace")),
    ("scale", definition("scale")),
    ("cache", definition("page cache")),
    ("inject", definition("injected fault")),
    ("backends", set_up("backend")),
    ("variants", set_up("variants")),
    ("direct", set_up("direct I/O")),
    ("dio_align_bytes", set_up("direct I/O align")),
    // Covered by the storage sheet.
    ("storage", ConfigFieldRole::Ignored),
    ("stripe", ConfigFieldRole::Ignored),
    ("verify", set_up("verify")),
    ("repeat", set_up("repetitions")),
    ("hints", ConfigFieldRole::Ignored),
    ("what_if", ConfigFieldRole::Ignored),
    // The content of the profile is a fact of its own.
    ("profile", ConfigFieldRole::Ignored),
    ("detail", ConfigFieldRole::Ignored),
    ("path", ConfigFieldRole::Ignored),
    ("run_dir", ConfigFieldRole::Ignored),
    ("keep_files", ConfigFieldRole::Ignored),
    ("out", ConfigFieldRole::Ignored),
    // The placement of the ranks is a fact of its own.
    ("bind", ConfigFieldRole::Ignored),
    ("seed", ConfigFieldRole::Ignored),
    // What it omits is in the result.
    ("time_limit", ConfigFieldRole::Ignored),
];

pub(super) fn comparable(result: &ReplayResult, derived: &ReplayDerived) -> ComparableRun {
    ComparableRun {
        identity: facts::identity(&result.setup.machine, &result.setup.run_dir),
        started_utc: result.setup.machine.started_utc.clone(),
        troubles: facts::problems(result.outcome(), &result.errors, result.is_corrupt()),
        doubts: doubts(result.outcome(), &derived.warnings, []),
        is_corrupt: result.is_corrupt(),
        facts: facts(result),
        quantities: derived.levels.iter().filter_map(quantity).collect(),
    }
}

fn facts(result: &ReplayResult) -> Vec<Fact> {
    let setup = &result.setup;
    let of_place = facts::machine_facts(&setup.machine).into_iter().chain(facts::storage_facts(&setup.storage));
    own_facts(result).into_iter().chain(of_place).collect()
}

pub(super) fn own_facts(result: &ReplayResult) -> Vec<Fact> {
    let profile = &result.setup.profile;
    let moved = format!(
        "{} processes, {} bytes read, {} bytes written",
        profile.processes, profile.read_bytes, profile.written_bytes
    );
    let left_out = result.setup.omissions.iter().flat_map(|l| &l.omitted).map(|l| l.calls).fold(0, u64::saturating_add);
    let mut facts = facts::config_facts(&result.config, &FIELDS);
    let hints = result.config.hints.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    facts.push(Fact::new(FactKind::SetUp, "hints", facts::hints_text(hints)));
    let change = result.config.what_if.as_ref().map_or("none".to_owned(), WhatIf::text);
    facts.push(Fact::new(FactKind::SetUp, "what-if", change));
    facts.push(Fact::new(FactKind::Definition, "recorded transfers", moved));
    // A changed program that moves the same bytes is what is compared.
    facts.push(Fact::new(FactKind::SetUp, "recorded calls", profile.calls.to_string()));
    facts.push(Fact::new(FactKind::SetUp, "recorded program", profile.command.join(" ")));
    facts.push(Fact::new(FactKind::Definition, "omitted calls", left_out.to_string()));
    facts
}

/// Bandwidth per process of calls that transfer bytes, else the time in the calls, both summed over the processes.
fn quantity(line: &Line) -> Option<Quantity> {
    let (level, row, column) = match (line.level, line.part) {
        (LevelKind::Run, CallSubset::All) => (QuantityLevel::Value, "all calls".to_owned(), String::new()),
        (LevelKind::Run, CallSubset::Reads) => (QuantityLevel::Group, "reads".to_owned(), "per process".to_owned()),
        (LevelKind::Run, CallSubset::Writes) => (QuantityLevel::Group, "writes".to_owned(), "per process".to_owned()),
        (LevelKind::Function, _) => (QuantityLevel::Detail, line.class?.name().to_owned(), "all files".to_owned()),
        (LevelKind::File, CallSubset::Reads) => {
            (QuantityLevel::Detail, format!("file {}", line.file?), "reads".to_owned())
        }
        (LevelKind::File, CallSubset::Writes) => {
            (QuantityLevel::Detail, format!("file {}", line.file?), "writes".to_owned())
        }
        (LevelKind::File | LevelKind::Process, _) => return None,
    };
    let (unit, number) = match line.replayed_bytes_per_second {
        Some(rate) => (MegabytesPerSecond, rate / 1e6),
        None => (Microseconds, line.replayed_seconds * 1e6),
    };
    (line.backend != NULL_BACKEND)
        .then(|| Quantity::new(level, row, column, unit, number).with_backend(&line.backend, 0))
}

#[cfg(test)]
#[path = "comparable_tests.rs"]
mod tests;
