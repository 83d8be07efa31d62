//! Text about the CPU binding of ranks.

use super::text::{count, list};
use crate::frame::records::{BindState, Binding, HostBinding, MachineRecord};
use crate::frame::values::binding::cpu_usage;

const HOST_NAMES: usize = 6;

/// For the set-up: a line for each group of hosts with the same binding, and the launcher's option.
pub(super) fn lines(machine: &MachineRecord) -> Vec<String> {
    let Some(binding) = &machine.binding else { return Vec::new() };
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for (host, name) in binding.hosts.iter().zip(machine.hosts.iter().map(|host| host.name.clone())) {
        let text = host_text(binding, host);
        match groups.iter_mut().find(|(known, _)| *known == text) {
            Some((_, names)) => names.push(name),
            None => groups.push((text, vec![name])),
        }
    }
    let only = groups.len() == 1;
    let lines = groups.into_iter().map(|(text, names)| {
        let shown = if names.len() > HOST_NAMES {
            format!("{}, ... ({})", names[..HOST_NAMES].join(", "), count(names.len() as u64, "host"))
        } else {
            list(&names)
        };
        if only {
            text
        } else {
            format!("{shown}: {text}")
        }
    });
    lines.chain(binding.launcher.as_ref().map(|word| format!("launcher option {word}"))).collect()
}

fn host_text(binding: &Binding, host: &HostBinding) -> String {
    let ranks = count(host.ranks.len() as u64, "rank");
    let (cpus, found) = (&host.cpus, &host.initial_cpus);
    match &host.state {
        BindState::Program => {
            let cores = host.cores.filter(|cores| *cores < host.ranks.len() as u64);
            let shared = cores.map_or_else(String::new, |cores| {
                format!(", on {} (threads of one core are shared)", count(cores, "core"))
            });
            let beside = host.neighbour.as_ref().map_or_else(String::new, |other| {
                format!("; process {} ({}) is also bound there", other.process, other.program)
            });
            let asked = binding.requested.name();
            format!("a CPU for each of {ranks} by --bind {asked}: {cpus} of {found}{shared}{beside}")
        }
        BindState::Before if is_core_bound(host) => {
            format!("each of {ranks} on a core since before the start: CPUs {cpus}")
        }
        BindState::Before => format!("{ranks} on several cores each since before the start: CPUs {cpus}"),
        BindState::NotAsked => format!("NOT BOUND, --bind none: CPUs {cpus}"),
        BindState::Alone => format!("not bound, a rank alone on its host: CPUs {cpus}"),
        BindState::TooFewCpus { cpus: usable, .. } => {
            format!("NOT BOUND, {ranks} and {} (CPUs {cpus})", count(*usable, "CPU"))
        }
        BindState::Neighbours { free_cpus, first } => format!(
            "NOT BOUND, {free_cpus} of CPUs {found} are free for {ranks}: process {} ({}) is bound to {}",
            first.process, first.program, first.cpus
        ),
        BindState::Busy { other_process_percent: others_percent } => {
            format!("NOT BOUND, other processes used {} of CPUs {cpus} before the start", cpu_usage(*others_percent))
        }
        BindState::Refused { message } => format!("NOT BOUND, {message}: CPUs {cpus}"),
    }
}

fn is_core_bound(host: &HostBinding) -> bool {
    host.ranks.iter().all(|rank| rank.cores == Some(1))
}

/// For a comparison: the effective binding in canonical text.
pub(super) fn binding_summary(binding: Option<&Binding>) -> String {
    let Some(binding) = binding else { return "not recorded".into() };
    let of_host = |host: &HostBinding| match host.state {
        BindState::Program if host.cores.is_some_and(|cores| cores < host.ranks.len() as u64) => {
            "a CPU for each rank, cores shared"
        }
        BindState::Program => "a CPU for each rank",
        BindState::Before if is_core_bound(host) => "a core for each rank, by the launcher",
        BindState::Before => "several cores for each rank, by the launcher",
        BindState::Alone => "not bound, a rank alone",
        _ => "not bound",
    };
    let mut all: Vec<&str> = Vec::new();
    for text in binding.hosts.iter().map(of_host) {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all.join(", ")
}

#[cfg(test)]
#[path = "binding_tests.rs"]
mod tests;
