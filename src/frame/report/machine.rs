//! The machine in words: in a few lines for the head of a report, and in full for its set-up.

use crate::frame::records::{HostRecord, Machine, StorageRecord};
use crate::frame::units::format_size;
use crate::frame::values::memory_of_hosts;

use super::library::short_name;
use super::text::{count, list, Page};

/// Host names shown of a group of equal hosts.
const HOST_NAMES: usize = 6;

/// The hosts in one line, for the head of a report.
pub(crate) fn hosts(machine: &Machine) -> String {
    let (hosts, per_rank) = (&machine.hosts, machine.memory_per_rank_bytes);
    let Some(first) = hosts.first() else {
        return "not recorded".to_owned();
    };
    let sum = |value: fn(&HostRecord) -> u64| hosts.iter().map(value).sum::<u64>();
    let name =
        if hosts.len() == 1 { first.name.clone() } else { format!("{} hosts ({} ...)", hosts.len(), first.name) };
    format!(
        "{name}: {} on {}, memory {}, {} per rank, {}",
        count(sum(|h| h.ranks), "rank"),
        count(sum(|h| h.cores), "core"),
        format_size(memory_of_hosts(machine)),
        format_size(per_rank),
        first.cpu
    )
}

/// Name of the MPI library and the standard it follows.
pub(crate) fn mpi(machine: &Machine) -> String {
    format!("{} (standard {})", short_name(&machine.mpi_library), machine.mpi_standard)
}

/// Variables set on purpose; None: none.
pub(crate) fn environment(machine: &Machine) -> Option<String> {
    let set: Vec<String> = machine.environment.iter().map(|(k, v)| format!("{k}={v}")).collect();
    (!set.is_empty()).then(|| set.join(" "))
}

/// The file system of the files in one line, for the head of a report.
pub(crate) fn storage(storage: &StorageRecord) -> String {
    let device = storage.device.as_ref().map(|d| format!("; {d}")).unwrap_or_default();
    format!(
        "{} on {}, {} of {} free, under {}{device}",
        storage.fs_type,
        storage.source,
        format_size(storage.free_bytes),
        format_size(storage.total_bytes),
        storage.path
    )
}

/// The part of the set-up that is about the file system of the files, in full.
pub(crate) fn write_storage(page: &mut Page, storage: &StorageRecord) {
    page.field(
        "file system",
        &format!(
            "{} on {}, mounted at {} ({})",
            storage.fs_type, storage.source, storage.mount_point, storage.mount_options
        ),
    );
    if let Some(device) = &storage.device {
        page.field("device", device);
    }
}

/// The part of the set-up that is about the machine, in full.
pub(crate) fn write(page: &mut Page, machine: &Machine) {
    for (number, text) in host_groups(&machine.hosts).iter().enumerate() {
        page.field(if number == 0 { "hosts" } else { "" }, text);
    }
    page.field("kernel", &machine.kernel);
    page.field(
        "MPI",
        &format!(
            "{}; built with {}; source revision {}",
            short_name(&machine.mpi_library),
            machine.mpi_built_with,
            machine.git_revision
        ),
    );
    if let Some(set) = environment(machine) {
        page.field("environment", &set);
    }
}

/// One text for each group of hosts that are alike, in order of appearance.
fn host_groups(hosts: &[HostRecord]) -> Vec<String> {
    let mut groups: Vec<(&HostRecord, Vec<String>)> = Vec::new();
    for host in hosts {
        let same =
            groups.iter_mut().find(|(first, _)| HostRecord { name: first.name.clone(), ..host.clone() } == **first);
        match same {
            Some((_, names)) => names.push(host.name.clone()),
            None => groups.push((host, vec![host.name.clone()])),
        }
    }
    groups.iter().map(|(host, names)| host_group(host, names)).collect()
}

fn host_group(host: &HostRecord, names: &[String]) -> String {
    let shown = if names.len() > HOST_NAMES {
        format!("{}, ... ({})", names[..HOST_NAMES].join(", "), count(names.len() as u64, "host"))
    } else {
        list(names)
    };
    let limit = host
        .cgroup_memory_limit_bytes
        .map(|bytes| format!(", limited to {} by its control group", format_size(bytes)))
        .unwrap_or_default();
    format!(
        "{shown}{}: {} on {}, {}, last-level cache {}, memory {}{limit}",
        if names.len() > 1 { ", each" } else { "" },
        count(host.ranks, "rank"),
        count(host.cores, "core"),
        host.cpu,
        format_size(host.last_level_cache_bytes),
        format_size(host.memory_bytes)
    )
}

/// Memory of a rank against what was planned.
pub(crate) fn rank_memory(planned_bytes: u64, high_water_bytes: u64) -> String {
    if high_water_bytes == 0 {
        return "not recorded: the run has no end".to_owned();
    }
    format!("planned {}, highest {}", format_size(planned_bytes), format_size(high_water_bytes))
}
