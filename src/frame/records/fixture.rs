//! Example machine for the tests of all benchmarks.

use super::{
    BindState, Binding, DirectAlignBasis, HostBinding, HostRecord, InterferenceRecord, MachineRecord, RankBinding,
    StorageKey, StorageParameter, StorageRecord,
};
use crate::frame::config::BindPolicy;

/// A host with a core for each rank.
pub(crate) fn host(name: &str, ranks: u64) -> HostRecord {
    HostRecord {
        name: name.to_owned(),
        ranks,
        cores: ranks,
        cpu: "Example CPU 3000 @ 2.50GHz".into(),
        memory_bytes: 4 << 30,
        cgroup_memory_limit_bytes: Some(1 << 30),
        last_level_cache_bytes: 32 << 20,
        memory_ballooning: None,
    }
}

pub(crate) fn machine(hosts: Vec<HostRecord>, command_line: &[&str]) -> MachineRecord {
    MachineRecord {
        program_version: "0.1.0".into(),
        git_revision: "0123abc".into(),
        mpi_built_with: "MPICH 4.0.2".into(),
        mpi_library: "MPICH Version: 4.0.2".into(),
        mpi_standard: "4.0".into(),
        mpi_thread_level: Some("single".into()),
        started_utc: "2025-01-31T12:00:00Z".into(),
        command_line: command_line.iter().map(|&word| word.to_owned()).collect(),
        kernel: "Linux 6.18.0 x86_64".into(),
        kernel_version: Some("#1 SMP PREEMPT_DYNAMIC 6.18.0-1".into()),
        ranks: hosts.iter().map(|h| h.ranks).sum(),
        memory_per_rank_bytes: (1 << 30) / hosts[0].ranks,
        binding: Some(binding(&hosts)),
        hosts,
        environment: Vec::new(),
    }
}

fn binding(hosts: &[HostRecord]) -> Binding {
    let mut ranks = 0_u64..;
    let mut of_host = |host: &HostRecord| {
        let cpus = |last: u64| if last == 0 { "0".to_owned() } else { format!("0-{last}") };
        let all = cpus(host.ranks - 1);
        let rank = |(cpu, rank): (u64, u64)| {
            let cpu = cpu.to_string();
            RankBinding { rank, initial_cpus: cpu.clone(), cpus: cpu, cores: Some(1) }
        };
        HostBinding {
            state: BindState::Before,
            initial_cpus: all.clone(),
            cpus: all,
            cores: Some(host.ranks),
            neighbour: None,
            ranks: (0..host.ranks).zip(ranks.by_ref()).map(rank).collect(),
        }
    };
    Binding {
        requested: BindPolicy::Auto,
        launcher: Some("-bind-to of MPICH's mpirun".into()),
        hosts: hosts.iter().map(&mut of_host).collect(),
    }
}

/// Two CPUs observed for ten seconds.
pub(crate) fn interference(steal_seconds: f64) -> InterferenceRecord {
    InterferenceRecord {
        host: "node1".into(),
        cpus: 2,
        observed_seconds: 10.0,
        cpu_seconds: 20.0,
        steal_seconds,
        other_process_seconds: 0.25,
        kernel_seconds: 0.5,
        run_queue_wait_seconds: Some(0.125),
        voluntary_switches: 1200,
        involuntary_switches: 34,
    }
}

/// A disk with free space, for files in a directory `run`.
pub(crate) fn storage() -> StorageRecord {
    StorageRecord {
        path: "/scratch/run".into(),
        mount_point: "/scratch".into(),
        source: "/dev/sda1".into(),
        fs_type: "ext4".into(),
        mount_options: "rw,relatime".into(),
        device: Some("Example SSD".into()),
        total_bytes: 100 << 30,
        free_bytes: 50 << 30,
        direct_offset_align_bytes: Some(512),
        direct_memory_align_bytes: Some(512),
        direct_align_basis: Some(DirectAlignBasis::Statx),
        direct_trial: None,
        sheet: storage_sheet(),
    }
}

/// A striped file system whose servers are unknown.
pub(crate) fn storage_sheet() -> Vec<StorageParameter> {
    let known = |key, value: &str, number, source: &str| StorageParameter {
        key,
        value: Some(value.to_owned()),
        number: Some(number),
        source: source.to_owned(),
    };
    let unknown =
        |key| StorageParameter { key, value: None, number: None, source: "the file system does not report it".into() };
    vec![
        known(StorageKey::Block, "4 KiB", 4096, "statvfs"),
        known(StorageKey::Stripe, "1 MiB", 1 << 20, "xattr"),
        known(StorageKey::Stripes, "4", 4, "xattr"),
        unknown(StorageKey::Servers),
        known(StorageKey::Cache, "up to 48 GiB (page cache)", 48 << 30, "memory of the hosts"),
        unknown(StorageKey::Redundancy),
    ]
}
