//! Facts of a run for a comparison, common to all benchmarks: machine, storage, configuration.

use serde::Serialize;
use serde_json::Value;

use super::binding;
use super::library::short_name;
use crate::frame::records::{ErrorRecord, MachineRecord, RunOutcome, StorageKey, StorageParameter, StorageRecord};
use crate::frame::units::{format_seconds, format_size};
use crate::frame::values::comparable::{Fact, FactKind};

/// Role of a configuration field in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigFieldRole {
    /// A fact with this name.
    Fact(FactKind, &'static str),
    /// Ignored: a location of files, or covered by another fact.
    Ignored,
}

/// A field that may differ on purpose.
pub const fn set_up(name: &'static str) -> ConfigFieldRole {
    ConfigFieldRole::Fact(FactKind::SetUp, name)
}

/// A field that defines the measurement.
pub const fn definition(name: &'static str) -> ConfigFieldRole {
    ConfigFieldRole::Fact(FactKind::Definition, name)
}

/// Converts a configuration to facts. Fields that are not listed become facts of the set-up.
#[must_use]
pub fn config_facts(config: &impl Serialize, fields: &[(&str, ConfigFieldRole)]) -> Vec<Fact> {
    let Ok(Value::Object(all)) = serde_json::to_value(config) else { return Vec::new() };
    let fact = |(key, value): (&String, &Value)| {
        let text = value_text(key, value);
        match fields.iter().find(|(name, _)| name == key).map(|(_, field)| *field) {
            Some(ConfigFieldRole::Ignored) => None,
            Some(ConfigFieldRole::Fact(kind, name)) => Some(Fact::new(kind, name, text)),
            None => Some(Fact::new(FactKind::SetUp, key.replace('_', " "), text)),
        }
    };
    // In the order of the list: the order of an object is arbitrary.
    let place = |key: &str| fields.iter().position(|(name, _)| *name == key).unwrap_or(fields.len());
    let mut entries: Vec<(&String, &Value)> = all.iter().collect();
    entries.sort_by_key(|(key, _)| place(key));
    entries.into_iter().filter_map(fact).collect()
}

/// Text of a configuration value; the unit follows from the field name.
fn value_text(key: &str, value: &Value) -> String {
    match value {
        Value::Null => "not set".into(),
        Value::Bool(true) => "yes".into(),
        Value::Bool(false) => "no".into(),
        Value::String(word) => word.clone(),
        Value::Number(n) if key.ends_with("_seconds") => n.as_f64().map_or(n.to_string(), format_seconds),
        Value::Number(n) if key.ends_with("_bytes") => n.as_u64().map_or(n.to_string(), format_size),
        Value::Number(n) => n.to_string(),
        Value::Array(items) if items.is_empty() => "none".into(),
        Value::Array(items) => items.iter().map(|item| value_text(key, item)).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| format!("{name} {}", value_text(name, value));
            fields.iter().map(field).collect::<Vec<_>>().join(", ")
        }
    }
}

/// Facts of hardware and software.
#[must_use]
pub fn machine_facts(machine: &MachineRecord) -> Vec<Fact> {
    let set_up = |name: &str, value: String| Fact::new(FactKind::SetUp, name, value);
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
        Fact::new(FactKind::Definition, "ranks", machine.ranks.to_string()),
        set_up("beff-raw", format!("{} (source {})", machine.program_version, machine.git_revision)),
        set_up("MPI", library_with_build(&machine.mpi_library)),
        set_up("MPI, built with", machine.mpi_built_with.clone()),
        set_up("kernel", machine.kernel.clone()),
        set_up("kernel version", machine.kernel_version.clone().unwrap_or_else(|| "not recorded".into())),
        set_up("hosts", machine.hosts.iter().map(|h| h.name.as_str()).collect::<Vec<_>>().join(", ")),
        set_up("ranks by host", of_hosts(&|h| h.ranks.to_string())),
        set_up("CPU", of_hosts(&|h| h.cpu.clone())),
        set_up("cores by host", of_hosts(&|h| h.cores.to_string())),
        set_up("binding of the ranks", binding::binding_summary(machine.binding.as_ref())),
        set_up("memory by host", of_hosts(&|h| memory(h.memory_bytes, h.cgroup_memory_limit_bytes))),
        set_up(
            "memory ballooning",
            of_hosts(&|h| h.memory_ballooning.as_ref().map_or_else(|| "not detected".into(), |t| t.mechanism.clone())),
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

/// Name and version, with a hash that distinguishes builds of the same version.
fn library_with_build(text: &str) -> String {
    let name = short_name(text);
    // FNV-1a: platform-independent.
    let build = text.bytes().fold(0x811c_9dc5_u32, |hash, b| (hash ^ u32::from(b)).wrapping_mul(0x0100_0193));
    if name.len() == text.trim().len() {
        name
    } else {
        format!("{name} (build {build:08x})")
    }
}

/// Facts of the file system. Its free space is not a fact.
#[must_use]
pub fn storage_facts(storage: &StorageRecord) -> Vec<Fact> {
    let set_up = |name: &str, value: &str| Fact::new(FactKind::SetUp, name, value);
    let mut facts = vec![
        set_up("file system", &storage.fs_type),
        set_up("mounted from", &storage.source),
        set_up("mount options", &storage.mount_options),
        set_up("device", storage.device.as_deref().unwrap_or("not known")),
        set_up("size of the file system", &format_size(storage.total_bytes)),
    ];
    for key in StorageKey::ALL {
        let own = storage.sheet.iter().find(|parameter| parameter.key == key).map(StorageParameter::text);
        let missing = if storage.sheet.is_empty() { "not recorded" } else { "not stated" };
        facts.push(set_up(&format!("storage: {}", key.label()), own.unwrap_or(missing)));
    }
    facts
}

/// Hints as `key=value`.
#[must_use]
pub fn hints_text<'a>(hints: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let hints: Vec<String> = hints.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    if hints.is_empty() {
        "none".into()
    } else {
        hints.join(" ")
    }
}

/// Identifies a run.
#[must_use]
pub fn identity(machine: &MachineRecord, directory: &str) -> String {
    let host = machine.hosts.first().map_or("", |host| host.name.as_str());
    format!("{} on {host}, {directory}: {}", machine.started_utc, machine.command_line.join(" "))
}

/// Problems to be known before the numbers of a run are used.
#[must_use]
pub fn problems(outcome: RunOutcome, errors: &[ErrorRecord], is_corrupt: bool) -> Vec<String> {
    let ended = match outcome {
        RunOutcome::Complete => None,
        RunOutcome::Limit => Some("its time limit ended it".to_owned()),
        RunOutcome::Interrupted => Some("it was interrupted".to_owned()),
        RunOutcome::Failed => Some("it failed".to_owned()),
        RunOutcome::Killed => Some("it was killed".to_owned()),
    };
    let wrong = is_corrupt.then(|| "data was WRONG".to_owned());
    let errors = Some(errors.len()).filter(|number| *number > 0 && outcome == RunOutcome::Complete);
    ended.into_iter().chain(wrong).chain(errors.map(|number| format!("{number} error(s) in it"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::records::fixture;

    #[derive(Serialize)]
    struct ExampleConfig {
        time_seconds: f64,
        limit_bytes: u64,
        backends: Vec<&'static str>,
        quick: bool,
        path: &'static str,
        depth: Option<u32>,
    }

    #[test]
    fn a_configuration_becomes_facts_in_order() {
        let config = ExampleConfig {
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
            ("path", ConfigFieldRole::Ignored),
        ];
        let facts = config_facts(&config, &fields);
        let texts: Vec<String> = facts.iter().map(|f| format!("{}: {}", f.name, f.value)).collect();
        assert_eq!(texts, ["backends: mpiio, posix", "T: 15.0 min", "limit: 1 MiB", "quick: no", "depth: not set"]);
        assert_eq!(facts[1].kind, FactKind::Definition);
    }

    /// Whether it was queried or given makes no difference.
    #[test]
    fn the_storage_sheet_is_compared_by_value() {
        let storage = fixture::storage();
        let fact = |storage: &StorageRecord, name: &str| {
            storage_facts(storage).into_iter().find(|fact| fact.name == name).unwrap().value
        };
        assert_eq!(fact(&storage, "storage: stripe count"), "4");
        assert_eq!(fact(&storage, "storage: servers"), "unknown");
        assert_eq!(fact(&storage, "storage: network"), "not stated");
        let mut given = storage.clone();
        given.sheet[2].source = "given".into();
        assert_eq!(storage_facts(&storage), storage_facts(&given));
        given.sheet.clear();
        assert_eq!(fact(&given, "storage: stripe count"), "not recorded");
    }

    #[test]
    fn builds_of_one_version_are_distinguished() {
        let with = |library: &str| {
            let mut machine = fixture::machine(vec![fixture::host("node1", 2)], &[]);
            machine.mpi_library = library.into();
            machine_facts(&machine)
        };
        let (a, b) = ("MPICH Version: 4.0.2 MPICH Release date: May", "MPICH Version: 4.0.2 MPICH Release date: June");
        assert_eq!(with(a), with(a));
        assert_ne!(with(a), with(b));
        assert!(with(a).iter().any(|f| f.name == "MPI" && f.value.starts_with("MPICH 4.0.2 (build ")));
    }

    #[test]
    fn problems_are_listed() {
        assert_eq!(problems(RunOutcome::Complete, &[], false), [""; 0]);
        assert_eq!(problems(RunOutcome::Killed, &[], true), ["it was killed", "data was WRONG"]);
    }
}
