//! What a replay offers to `compare`: speed of all its calls, of reads and writes, and of every class of functions. A number is
//! the mean over the passes.

use crate::frame::records::Record;
use crate::frame::report::facts::{self, definition, set_up, Field};
use crate::frame::values::comparable::Unit::{MegabytesPerSecond, Microseconds};
use crate::frame::values::comparable::{Comparable, Fact, Kind, Level, Quantity};
use crate::frame::values::NULL_BACKEND;
use crate::replay::records::ReplayResult;
use crate::replay::values::{Level as Line, LevelKind, Part, ReplayDerived};

/// Every field of the configuration.
const FIELDS: [(&str, Field); 17] = [
    ("pace", definition("pace")),
    ("scale", definition("scale")),
    ("cache", definition("page cache")),
    ("inject", definition("damage on purpose")),
    ("backends", set_up("backend")),
    ("direct", set_up("direct I/O")),
    ("verify", set_up("verify")),
    ("repeat", set_up("passes")),
    ("hints", Field::Silent),
    // What is in the profile is told instead.
    ("profile", Field::Silent),
    ("detail", Field::Silent),
    ("path", Field::Silent),
    ("run_dir", Field::Silent),
    ("keep_files", Field::Silent),
    ("out", Field::Silent),
    // Told by where the ranks were.
    ("bind", Field::Silent),
    ("seed", Field::Silent),
];

/// What there is to compare.
pub(super) fn comparable(result: &ReplayResult, derived: &ReplayDerived) -> Comparable {
    Comparable {
        identity: facts::identity(&result.setup.machine, &result.setup.run_dir),
        started_utc: result.setup.machine.started_utc.clone(),
        troubles: facts::troubles(result.outcome(), &result.errors, result.is_corrupt()),
        is_corrupt: result.is_corrupt(),
        facts: facts(result),
        quantities: derived.levels.iter().filter_map(quantity).collect(),
    }
}

fn facts(result: &ReplayResult) -> Vec<Fact> {
    let setup = &result.setup;
    let of_place = facts::of_machine(&setup.machine).into_iter().chain(facts::of_storage(&setup.storage));
    own_facts(result).into_iter().chain(of_place).collect()
}

/// Those that are no facts of the machine and its storage.
pub(super) fn own_facts(result: &ReplayResult) -> Vec<Fact> {
    let profile = &result.setup.profile;
    let recorded = format!(
        "{} processes, {} calls, {} bytes read, {} bytes written",
        profile.processes, profile.calls, profile.read_bytes, profile.written_bytes
    );
    let left_out = result.setup.leavings.iter().flat_map(|l| &l.left_out).map(|l| l.calls).fold(0, u64::saturating_add);
    let mut facts = facts::of_config(&result.config, &FIELDS);
    let hints = result.config.hints.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    facts.push(Fact::new(Kind::SetUp, "hints", facts::of_hints(hints)));
    facts.push(Fact::new(Kind::Definition, "recorded", recorded));
    facts.push(Fact::new(Kind::Definition, "recorded program", profile.command.join(" ")));
    facts.push(Fact::new(Kind::Definition, "calls left out", left_out.to_string()));
    facts
}

/// Bandwidth per process of calls that move bytes, else the time in the calls, both summed over the processes.
fn quantity(line: &Line) -> Option<Quantity> {
    let (level, row, column) = match (line.level, line.part) {
        (LevelKind::Run, Part::All) => (Level::Value, "all calls".to_owned(), String::new()),
        (LevelKind::Run, Part::Reads) => (Level::Group, "reads".to_owned(), "per process".to_owned()),
        (LevelKind::Run, Part::Writes) => (Level::Group, "writes".to_owned(), "per process".to_owned()),
        (LevelKind::Function, _) => (Level::Detail, line.class?.name().to_owned(), "all files".to_owned()),
        (LevelKind::File, Part::Reads) => (Level::Detail, format!("file {}", line.file?), "reads".to_owned()),
        (LevelKind::File, Part::Writes) => (Level::Detail, format!("file {}", line.file?), "writes".to_owned()),
        (LevelKind::File | LevelKind::Process, _) => return None,
    };
    let (unit, number) = match line.replayed_bytes_per_second {
        Some(rate) => (MegabytesPerSecond, rate / 1e6),
        None => (Microseconds, line.replayed_seconds * 1e6),
    };
    (line.backend != NULL_BACKEND).then(|| Quantity::new(level, row, column, unit, number).of(&line.backend, 0))
}

#[cfg(test)]
#[path = "comparable_tests.rs"]
mod tests;
