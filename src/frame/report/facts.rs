//! Facts of a run for a comparison, as every benchmark records them: machine, storage, configuration.

use serde::Serialize;
use serde_json::Value;

use super::binding;
use super::library::short_name;
use crate::frame::records::{ErrorRecord, Machine, Outcome, StorageRecord};
use crate::frame::units::{format_seconds, format_size};
use crate::frame::values::comparable::{Fact, Kind};

/// What a field of a configuration means for a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// A fact with this name.
    Is(Kind, &'static str),
    /// Nothing: where files are, or what another fact tells better.
    Silent,
}

/// What differs on purpose.
pub const fn set_up(name: &'static str) -> Field {
    Field::Is(Kind::SetUp, name)
}

/// What makes another measurement of it.
pub const fn definition(name: &'static str) -> Field {
    Field::Is(Kind::Definition, name)
}

/// A configuration as facts, by the names of its fields. One that is not listed is a fact of the set-up.
#[must_use]
pub fn of_config(config: &impl Serialize, fields: &[(&str, Field)]) -> Vec<Fact> {
    let Ok(Value::Object(all)) = serde_json::to_value(config) else { return Vec::new() };
    let fact = |(key, value): (&String, &Value)| {
        let text = text(key, value);
        match fields.iter().find(|(name, _)| name == key).map(|(_, field)| *field) {
            Some(Field::Silent) => None,
            Some(Field::Is(kind, name)) => Some(Fact::new(kind, name, text)),
            None => Some(Fact::new(Kind::SetUp, key.replace('_', " "), text)),
        }
    };
    // In the order of the list: an object may have any.
    let place = |key: &str| fields.iter().position(|(name, _)| *name == key).unwrap_or(fields.len());
    let mut entries: Vec<(&String, &Value)> = all.iter().collect();
    entries.sort_by_key(|(key, _)| place(key));
    entries.into_iter().filter_map(fact).collect()
}

/// A value of a configuration in words; the unit is in the name of its field.
fn text(key: &str, value: &Value) -> String {
    match value {
        Value::Null => "not set".into(),
        Value::Bool(true) => "yes".into(),
        Value::Bool(false) => "no".into(),
        Value::String(word) => word.clone(),
        Value::Number(n) if key.ends_with("_seconds") => n.as_f64().map_or(n.to_string(), format_seconds),
        Value::Number(n) if key.ends_with("_bytes") => n.as_u64().map_or(n.to_string(), format_size),
        Value::Number(n) => n.to_string(),
        Value::Array(items) if items.is_empty() => "none".into(),
        Value::Array(items) => items.iter().map(|item| text(key, item)).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| format!("{name} {}", text(name, value));
            fields.iter().map(field).collect::<Vec<_>>().join(", ")
        }
    }
}

/// The machine and the software.
#[must_use]
pub fn of_machine(machine: &Machine) -> Vec<Fact> {
    let set_up = |name: &str, value: String| Fact::new(Kind::SetUp, name, value);
    let of_hosts = |value: &dyn Fn(&crate::frame::records::HostRecord) -> String| {
        let mut values: Vec<String> = Vec::new();
        for host in &machine.hosts {
            let value = value(host);
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values.join(", ")
    };
    let mut facts = vec![
        Fact::new(Kind::Definition, "ranks", machine.ranks.to_string()),
        set_up("beff-raw", format!("{} (source {})", machine.program_version, machine.git_revision)),
        set_up("MPI", library(&machine.mpi_library)),
        set_up("MPI, built with", machine.mpi_built_with.clone()),
        set_up("kernel", machine.kernel.clone()),
        set_up("kernel version", machine.kernel_version.clone().unwrap_or_else(|| "not recorded".into())),
        set_up("hosts", machine.hosts.iter().map(|h| h.name.as_str()).collect::<Vec<_>>().join(", ")),
        set_up("ranks by host", of_hosts(&|h| h.ranks.to_string())),
        set_up("CPU", of_hosts(&|h| h.cpu.clone())),
        set_up("cores by host", of_hosts(&|h| h.cores.to_string())),
        set_up("binding of the ranks", binding::in_short(machine.binding.as_ref())),
        set_up("memory by host", of_hosts(&|h| memory(h.memory_bytes, h.cgroup_memory_limit_bytes))),
        set_up(
            "free memory taken back by",
            of_hosts(&|h| h.memory_taken_back.as_ref().map_or_else(|| "nothing known".into(), |t| t.by.clone())),
        ),
    ];
    let mut variables = machine.environment.clone();
    variables.sort();
    variables.dedup_by(|a, b| a.0 == b.0);
    facts.extend(variables.into_iter().map(|(name, value)| set_up(&format!("variable {name}"), value)));
    facts
}

fn memory(bytes: u64, limit_bytes: Option<u64>) -> String {
    let limit = limit_bytes.map(|limit| format!(", limited to {}", format_size(limit)));
    format_size(bytes) + &limit.unwrap_or_default()
}

/// Name and version, and a number that tells builds of the same version apart.
fn library(text: &str) -> String {
    let name = short_name(text);
    // FNV-1a: the same for the same text, everywhere.
    let build = text.bytes().fold(0x811c_9dc5_u32, |hash, b| (hash ^ u32::from(b)).wrapping_mul(0x0100_0193));
    if name.len() == text.trim().len() {
        name
    } else {
        format!("{name} (build {build:08x})")
    }
}

/// The file system. How full it was is no fact.
#[must_use]
pub fn of_storage(storage: &StorageRecord) -> Vec<Fact> {
    let set_up = |name: &str, value: &str| Fact::new(Kind::SetUp, name, value);
    vec![
        set_up("file system", &storage.fs_type),
        set_up("mounted from", &storage.source),
        set_up("mount options", &storage.mount_options),
        set_up("device", storage.device.as_deref().unwrap_or("not known")),
        set_up("size of the file system", &format_size(storage.total_bytes)),
    ]
}

/// Hints as `key=value`.
#[must_use]
pub fn of_hints<'a>(hints: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let hints: Vec<String> = hints.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    if hints.is_empty() {
        "none".into()
    } else {
        hints.join(" ")
    }
}

/// What tells a run from others.
#[must_use]
pub fn identity(machine: &Machine, directory: &str) -> String {
    let host = machine.hosts.first().map_or("", |host| host.name.as_str());
    format!("{} on {host}, {directory}: {}", machine.started_utc, machine.command_line.join(" "))
}

/// What must be known before the numbers of a run are used.
#[must_use]
pub fn troubles(outcome: Outcome, errors: &[ErrorRecord], is_corrupt: bool) -> Vec<String> {
    let ended = match outcome {
        Outcome::Complete => None,
        Outcome::Interrupted => Some("it was interrupted".to_owned()),
        Outcome::Failed => Some("it failed".to_owned()),
        Outcome::Killed => Some("it was killed".to_owned()),
    };
    let wrong = is_corrupt.then(|| "data was WRONG".to_owned());
    let errors = Some(errors.len()).filter(|number| *number > 0 && outcome == Outcome::Complete);
    ended.into_iter().chain(wrong).chain(errors.map(|number| format!("{number} error(s) in it"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::records::fixture;

    #[derive(Serialize)]
    struct Config {
        time_seconds: f64,
        limit_bytes: u64,
        backends: Vec<&'static str>,
        quick: bool,
        path: &'static str,
        depth: Option<u32>,
    }

    #[test]
    fn a_configuration_is_told_in_words_and_in_order() {
        let config = Config {
            time_seconds: 900.0,
            limit_bytes: 1 << 20,
            backends: vec!["mpiio", "posix"],
            quick: false,
            path: "/scratch",
            depth: None,
        };
        let fields = [
            ("backends", set_up("backends")),
            ("time_seconds", definition("T")),
            ("limit_bytes", set_up("limit")),
            ("quick", definition("quick")),
            ("path", Field::Silent),
        ];
        let facts = of_config(&config, &fields);
        let told: Vec<String> = facts.iter().map(|f| format!("{}: {}", f.name, f.value)).collect();
        assert_eq!(told, ["backends: mpiio, posix", "T: 15.0 min", "limit: 1 MiB", "quick: no", "depth: not set"]);
        assert_eq!(facts[1].kind, Kind::Definition);
    }

    #[test]
    fn builds_of_one_version_are_told_apart() {
        let with = |library: &str| {
            let mut machine = fixture::machine(vec![fixture::host("node1", 2)], &[]);
            machine.mpi_library = library.into();
            of_machine(&machine)
        };
        let (a, b) = ("MPICH Version: 4.0.2 MPICH Release date: May", "MPICH Version: 4.0.2 MPICH Release date: June");
        assert_eq!(with(a), with(a));
        assert_ne!(with(a), with(b));
        assert!(with(a).iter().any(|f| f.name == "MPI" && f.value.starts_with("MPICH 4.0.2 (build ")));
    }

    #[test]
    fn troubles_are_told() {
        assert_eq!(troubles(Outcome::Complete, &[], false), [""; 0]);
        assert_eq!(troubles(Outcome::Killed, &[], true), ["it was killed", "data was WRONG"]);
    }
}
