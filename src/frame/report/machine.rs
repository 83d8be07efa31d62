//! Text about the machine: in short for the head of a report, in full for its set-up.

use crate::frame::config::DirectPolicy;
use crate::frame::records::{DirectAlignBasis, HostRecord, MachineRecord, RunOutcome, StorageRecord};
use crate::frame::units::{format_seconds, format_size};
use crate::frame::values::memory_of_hosts;

use super::binding;
use super::library::short_name;
use super::model::{labelled_texts, LabelledText};
use super::text::{count, list};

const MAX_HOST_NAMES: usize = 6;

/// Hosts, library and environment for the head of a report; `layer` is the I/O layer below MPI-IO.
pub(crate) fn head_facts(machine: &MachineRecord, layer: Option<&str>) -> Vec<LabelledText> {
    let layer = layer.map_or_else(String::new, |layer| format!(", I/O layer {layer}"));
    let library = format!("{} (standard {}){layer}", short_name(&machine.mpi_library), machine.mpi_standard);
    labelled_texts([
        ("hosts", Some(hosts_summary(machine))),
        ("MPI", Some(library)),
        ("environment", environment(machine)),
    ])
}

fn hosts_summary(machine: &MachineRecord) -> String {
    let (hosts, per_rank) = (&machine.hosts, machine.memory_per_rank_bytes);
    let Some(first) = hosts.first() else {
        return "not recorded".to_owned();
    };
    let sum = |value: fn(&HostRecord) -> u64| hosts.iter().map(value).fold(0, u64::saturating_add);
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

/// Recorded environment variables; None if there are none.
fn environment(machine: &MachineRecord) -> Option<String> {
    let set: Vec<String> = machine.environment.iter().map(|(k, v)| format!("{k}={v}")).collect();
    (!set.is_empty()).then(|| set.join(" "))
}

/// The file system of the files, for the head of a report.
pub(crate) fn storage_head_facts(storage: &StorageRecord) -> Vec<LabelledText> {
    let device = storage.device.as_ref().map(|d| format!("; {d}")).unwrap_or_default();
    let [free, total] = [storage.free_bytes, storage.total_bytes].map(format_size);
    let place = format!("{} on {}, {free} of {total} free", storage.fs_type, storage.source);
    let place = format!("{place}, under {}{device}", storage.path);
    labelled_texts([("storage", Some(place)), ("storage sheet", storage_sheet_line(storage))])
}

/// The required parameters of the storage in one line; None if they are not recorded.
pub(crate) fn storage_sheet_line(storage: &StorageRecord) -> Option<String> {
    let required = || storage.sheet.iter().filter(|p| p.key.is_required());
    let known = required().filter(|p| p.value.is_some()).map(|p| format!("{} {}", p.key.name(), p.text()));
    let unknown: Vec<&str> = required().filter(|p| p.value.is_none()).map(|p| p.key.name()).collect();
    let unknown = (!unknown.is_empty()).then(|| format!("unknown: {}", unknown.join(", ")));
    let texts: Vec<String> = known.chain(unknown).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// A line for each parameter of the storage, with the source of its value.
pub(crate) fn storage_sheet_lines(storage: &StorageRecord) -> impl Iterator<Item = LabelledText> + '_ {
    storage.sheet.iter().map(|p| (p.key.label().to_owned(), format!("{} ({})", p.text(), p.source)))
}

pub(crate) fn direct_policy_text(policy: DirectPolicy) -> &'static str {
    match policy {
        DirectPolicy::ByBackend => "auto for uring, off for posix",
        DirectPolicy::Required => "required",
        DirectPolicy::Auto => "auto",
        DirectPolicy::Off => "off",
    }
}

pub(crate) fn duration_text(outcome: RunOutcome, real_seconds: f64) -> String {
    match outcome {
        RunOutcome::Killed => "no end recorded".to_owned(),
        _ => format!("took {}", format_seconds(real_seconds)),
    }
}

pub(crate) fn file_system_setup(storage: &StorageRecord) -> Vec<LabelledText> {
    let StorageRecord { fs_type, source, mount_point, mount_options, device, .. } = storage;
    let place = format!("{fs_type} on {source}, mounted at {mount_point} ({mount_options})");
    let alignment = ("alignment", Some(direct_alignment_text(storage)));
    let own = labelled_texts([("file system", Some(place)), ("device", device.clone()), alignment]);
    own.into_iter().chain(storage_sheet_lines(storage)).collect()
}

/// Alignment of direct I/O, and what it is based on.
pub(crate) fn direct_alignment_text(storage: &StorageRecord) -> String {
    let basis = match storage.direct_align_basis {
        // Older results have only alignments of statx.
        Some(DirectAlignBasis::Statx) | None => "reported by statx",
        Some(DirectAlignBasis::TrialProven | DirectAlignBasis::TrialUnproven) => "by trial",
        Some(DirectAlignBasis::OptionProven | DirectAlignBasis::OptionUnproven) => "by --dio-align",
        Some(DirectAlignBasis::NotDirect) => "not possible",
    };
    let found = storage.direct_trial.as_ref().map_or_else(String::new, |text| format!(": {text}"));
    match (storage.direct_offset_align_bytes, storage.direct_memory_align_bytes) {
        (Some(offset), Some(memory)) => {
            format!("offsets and lengths in multiples of {offset} bytes, memory of {memory}, {basis}{found}")
        }
        _ if found.is_empty() => "alignment not reported by the file system (statx)".to_owned(),
        _ => format!("{basis}{found}"),
    }
}

pub(crate) fn machine_setup(machine: &MachineRecord) -> Vec<LabelledText> {
    let threads = machine.mpi_thread_level.as_deref().unwrap_or("not recorded");
    let library = format!(
        "{}; built with {}; thread level {threads}; source revision {}",
        short_name(&machine.mpi_library),
        machine.mpi_built_with,
        machine.git_revision
    );
    let hosts = host_groups(&machine.hosts).into_iter().map(|text| ("hosts", Some(text)));
    let own = [("kernel", Some(machine.kernel.clone())), ("MPI", Some(library))];
    let binding = binding::lines(machine).into_iter().map(|text| ("binding", Some(text)));
    labelled_texts(hosts.chain(own).chain(binding).chain([("environment", environment(machine))]))
}

/// One text for each group of identical hosts, in order of appearance.
fn host_groups(hosts: &[HostRecord]) -> Vec<String> {
    let mut groups: Vec<(&HostRecord, Vec<String>)> = Vec::new();
    for host in hosts {
        // The measured cost of a memory touch differs between hosts.
        let alike = |first: &HostRecord| {
            host.memory_ballooning.is_some() == first.memory_ballooning.is_some()
                && HostRecord {
                    name: first.name.clone(),
                    memory_ballooning: first.memory_ballooning.clone(),
                    ..host.clone()
                } == *first
        };
        let same = groups.iter_mut().find(|(first, _)| alike(first));
        match same {
            Some((_, names)) => names.push(host.name.clone()),
            None => groups.push((host, vec![host.name.clone()])),
        }
    }
    groups.iter().map(|(host, names)| host_group(host, names)).collect()
}

fn host_group(host: &HostRecord, names: &[String]) -> String {
    let shown = if names.len() > MAX_HOST_NAMES {
        format!("{}, ... ({})", names[..MAX_HOST_NAMES].join(", "), count(names.len() as u64, "host"))
    } else {
        list(names)
    };
    let limit = host
        .cgroup_memory_limit_bytes
        .map(|bytes| format!(", limited to {} by its control group", format_size(bytes)))
        .unwrap_or_default();
    let ballooning = host
        .memory_ballooning
        .as_ref()
        .map(|t| format!(", reclaimed when it is free ({})", t.mechanism))
        .unwrap_or_default();
    format!(
        "{shown}{}: {} on {}, {}, last-level cache {}, memory {}{limit}{ballooning}",
        if names.len() > 1 { ", each" } else { "" },
        count(host.ranks, "rank"),
        count(host.cores, "core"),
        host.cpu,
        format_size(host.last_level_cache_bytes),
        format_size(host.memory_bytes)
    )
}
