//! Survey of the machine by all ranks: hosts, memory per rank, the manifest of the run.

use std::collections::{BTreeMap, BTreeSet};

use beff_ffi::{Comm, MpiError, Universe};
use serde::{Deserialize, Serialize};

use super::caches::{largest_share_bytes, Caches};
use super::placement::format_cpu_list;
use super::{ballooning, environment, host, memory, SystemError};
use crate::frame::config::BindPolicy;
use crate::frame::fault_injection;
use crate::frame::paths::shell_word;
use crate::frame::records::{
    BindState, Binding, BoundProcess, HostBinding, HostRecord, MachineRecord, MemoryBallooning, Placement, RankBinding,
};

/// Maximum length of the library string in a manifest.
pub const LIBRARY_CHARS: usize = 4000;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct RankSurvey {
    host: String,
    kernel: String,
    cpu: String,
    cpus: Vec<u32>,
    cores: Option<BTreeSet<String>>,
    found: Vec<u32>,
    state: BindState,
    neighbour: Option<BoundProcess>,
    quota: Option<f64>,
    memory_bytes: u64,
    limit_bytes: Option<u64>,
    cache_bytes: u64,
    caches: Caches,
    taken_back_by: Option<String>,
}

/// Binding of this rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindingOutcome {
    /// Requested policy.
    pub requested: BindPolicy,
    /// Binding by the launcher, if known.
    pub launcher: Option<String>,
    /// CPUs that this rank was allowed initially.
    pub initial_cpus: Vec<u32>,
    /// Resulting state of this host.
    pub state: BindState,
    /// A process of another program that is bound here.
    pub neighbour: Option<BoundProcess>,
}

/// The survey, equal on all ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    /// Hosts in the order of their first rank.
    pub hosts: Vec<HostRecord>,
    /// Host and CPUs of each rank.
    pub placement: Vec<Placement>,
    /// Binding of the ranks.
    pub binding: Binding,
    /// Kernel of the first host.
    pub kernel: String,
    /// Memory available to one rank: that of its node or control group, divided by the ranks on the node; the minimum of all.
    pub memory_per_rank_bytes: u64,
    /// Largest cache share of a rank: [`largest_share_bytes`].
    pub cache_share_bytes: u64,
}

/// Surveys all ranks; `bound` is the binding of this one. Collective.
///
/// # Errors
/// Outer: MPI errors. Inner: an unavailable fact, equal on all ranks.
pub fn survey(world: &Comm, bound: &BindingOutcome) -> Result<Result<Survey, String>, MpiError> {
    let mine = fault_injection::injected_failure("survey", world.rank())
        .and_then(|()| survey_rank(bound).map_err(|e| e.to_string()));
    let packed = match &mine {
        Ok(w) => serde_json::to_vec(&Ok::<_, String>(w)).unwrap_or_default(),
        Err(e) => serde_json::to_vec(&Err::<RankSurvey, _>(e)).unwrap_or_default(),
    };
    let gathered = world.gather_bytes(&packed)?;
    let combined = if world.is_root() { combine_ranks(&gathered, bound) } else { Err(String::new()) };
    let bytes = world.bcast_bytes(serde_json::to_vec(&combined).unwrap_or_default(), 0)?;
    let survey: Result<Survey, String> =
        serde_json::from_slice(&bytes).unwrap_or_else(|e| Err(format!("the survey of the hosts is unreadable: {e}")));
    match survey {
        Ok(survey) if survey.hosts.iter().any(|host| host.memory_ballooning.is_some()) => {
            Ok(Ok(measure_first_touch(world, survey)?))
        }
        other => Ok(other),
    }
}

/// On hosts with memory ballooning the first rank measures the cost of new memory, while the others wait. Collective.
fn measure_first_touch(world: &Comm, mut survey: Survey) -> Result<Survey, MpiError> {
    let firsts: Vec<usize> = (0..survey.hosts.len() as u64)
        .filter_map(|host| survey.placement.iter().position(|p| p.host == host))
        .collect();
    let own = firsts.iter().zip(&survey.hosts).find(|(first, _)| **first as u64 == world.rank());
    let looks = own.is_some_and(|(_, host)| host.memory_ballooning.is_some());
    let seen = looks.then(|| ballooning::first_touch_ns(survey.memory_per_rank_bytes));
    let gathered = world.gather_bytes(&serde_json::to_vec(&seen).unwrap_or_default())?;
    if world.is_root() {
        for (first, host) in firsts.into_iter().zip(&mut survey.hosts) {
            let seen: Option<(u64, [f64; 2])> =
                gathered.get(first).and_then(|bytes| serde_json::from_slice(bytes).ok().flatten());
            if let (Some(record), Some((bytes, [first, again]))) = (&mut host.memory_ballooning, seen) {
                (record.touched_bytes, record.first_touch_ns, record.touch_again_ns) = (bytes, first, again);
            }
        }
    }
    let bytes = world.bcast_bytes(serde_json::to_vec(&survey.hosts).unwrap_or_default(), 0)?;
    survey.hosts = serde_json::from_slice(&bytes).unwrap_or(survey.hosts);
    Ok(survey)
}

fn survey_rank(bound: &BindingOutcome) -> Result<RankSurvey, SystemError> {
    let memory_bytes = memory::node_memory_bytes()?;
    let cpus = host::allowed_cpus()?;
    Ok(RankSurvey {
        host: host::host_name()?,
        kernel: host::kernel()?,
        cpu: host::cpu_model(),
        cores: host::physical_cores(&cpus),
        caches: Caches::of(&cpus),
        cpus,
        found: bound.initial_cpus.clone(),
        state: bound.state.clone(),
        neighbour: bound.neighbour.clone(),
        quota: host::cgroup_cpu_quota(),
        memory_bytes,
        limit_bytes: memory::cgroup_memory_limit_bytes(memory_bytes),
        cache_bytes: memory::last_level_cache_bytes(),
        taken_back_by: ballooning::ballooning_mechanism(),
    })
}

fn combine_ranks(gathered: &[Vec<u8>], bound: &BindingOutcome) -> Result<Survey, String> {
    let mut witnesses = Vec::new();
    for (rank, bytes) in gathered.iter().enumerate() {
        let witness: Result<RankSurvey, String> =
            serde_json::from_slice(bytes).map_err(|e| format!("rank {rank} sent an unreadable survey: {e}"))?;
        witnesses.push(witness.map_err(|e| format!("rank {rank} {e}"))?);
    }
    let kernel = witnesses.first().map(|w| w.kernel.clone()).unwrap_or_default();
    let mut order = Vec::new();
    let mut placement = Vec::with_capacity(witnesses.len());
    let mut by_host: BTreeMap<String, Vec<(u64, RankSurvey)>> = BTreeMap::new();
    for (rank, w) in (0..).zip(witnesses) {
        if !by_host.contains_key(&w.host) {
            order.push(w.host.clone());
        }
        let host = order.iter().position(|name| *name == w.host).unwrap_or(0) as u64;
        placement.push(Placement { host, cpus: format_cpu_list(&w.cpus), cores: core_count(w.cores.as_ref()) });
        by_host.entry(w.host.clone()).or_default().push((rank, w));
    }
    let of_hosts = || order.iter().filter_map(|name| by_host.get(name));
    let hosts: Vec<HostRecord> = of_hosts().map(|w| host_record(w)).collect();
    let binding = Binding {
        requested: bound.requested,
        launcher: bound.launcher.clone(),
        hosts: of_hosts().map(|w| host_binding(w)).collect(),
    };
    let share =
        |ranks: &[(u64, RankSurvey)]| largest_share_bytes(&ranks.iter().map(|(_, w)| &w.caches).collect::<Vec<_>>());
    let per_rank = |h: &HostRecord| h.cgroup_memory_limit_bytes.unwrap_or(h.memory_bytes) / h.ranks;
    Ok(Survey {
        kernel,
        placement,
        binding,
        memory_per_rank_bytes: hosts.iter().map(per_rank).min().unwrap_or(0),
        cache_share_bytes: by_host.values().map(|ranks| share(ranks)).max().unwrap_or(0),
        hosts,
    })
}

fn core_count(cores: Option<&BTreeSet<String>>) -> Option<u64> {
    cores.map(|cores| cores.len() as u64)
}

fn host_binding(ranks: &[(u64, RankSurvey)]) -> HostBinding {
    let together = |cpus: fn(&RankSurvey) -> &Vec<u32>| {
        let all: BTreeSet<u32> = ranks.iter().flat_map(|(_, w)| cpus(w)).copied().collect();
        format_cpu_list(&all.into_iter().collect::<Vec<_>>())
    };
    let cores = ranks.iter().map(|(_, w)| w.cores.clone()).reduce(|all, own| {
        let (mut all, own) = (all?, own?);
        all.extend(own);
        Some(all)
    });
    // Two hosts of one name may have decided differently: the state of the unbound one is recorded.
    let worst = ranks.iter().find(|(_, w)| w.state != BindState::Program).unwrap_or(&ranks[0]);
    HostBinding {
        state: worst.1.state.clone(),
        initial_cpus: together(|w| &w.found),
        cpus: together(|w| &w.cpus),
        cores: core_count(cores.flatten().as_ref()),
        neighbour: ranks.iter().find_map(|(_, w)| w.neighbour.clone()),
        ranks: ranks
            .iter()
            .map(|(rank, w)| RankBinding {
                rank: *rank,
                initial_cpus: format_cpu_list(&w.found),
                cpus: format_cpu_list(&w.cpus),
                cores: core_count(w.cores.as_ref()),
            })
            .collect(),
    }
}

fn host_record(ranks: &[(u64, RankSurvey)]) -> HostRecord {
    let first = &ranks[0].1;
    HostRecord {
        name: first.host.clone(),
        ranks: ranks.len() as u64,
        // Cores that the host offers, regardless of the binding.
        cores: host::combined_cores(ranks.iter().map(|(_, w)| w.found.as_slice()), first.quota),
        cpu: first.cpu.clone(),
        memory_bytes: first.memory_bytes,
        cgroup_memory_limit_bytes: ranks.iter().filter_map(|(_, w)| w.limit_bytes).min(),
        last_level_cache_bytes: first.cache_bytes,
        memory_ballooning: first.taken_back_by.clone().map(|by| MemoryBallooning {
            mechanism: by,
            touched_bytes: 0,
            first_touch_ns: 0.0,
            touch_again_ns: 0.0,
        }),
    }
}

/// MPI-IO layer, as far as the library string identifies it.
#[must_use]
pub fn io_layer(library: &str, environment: &[(String, String)]) -> String {
    let component = environment.iter().find(|(k, _)| k == "OMPI_MCA_io").map(|(_, v)| v.as_str());
    match (library.starts_with("Open MPI"), component) {
        (true, Some(component)) => format!("{component} (set by OMPI_MCA_io)"),
        (true, None) => "OMPIO (default of Open MPI; --mca io chooses)".into(),
        (false, _) if library.contains("MPICH") || library.contains("Intel") => "ROMIO".into(),
        _ => "unknown".into(),
    }
}

/// Manifest of the machine. Rank 0 only.
///
/// # Errors
/// MPI errors.
pub fn machine(universe: &Universe, survey: &Survey) -> Result<MachineRecord, MpiError> {
    Ok(MachineRecord {
        program_version: env!("CARGO_PKG_VERSION").into(),
        git_revision: env!("BEFF_GIT_REVISION").into(),
        mpi_built_with: beff_ffi::built_with().into(),
        mpi_library: beff_ffi::library_version(LIBRARY_CHARS)?,
        mpi_standard: universe.standard_version()?,
        mpi_thread_level: Some(universe.thread_level()?.into()),
        started_utc: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        command_line: std::env::args_os().map(|word| shell_word(&word)).collect(),
        kernel: survey.kernel.clone(),
        kernel_version: host::kernel_version(),
        hosts: survey.hosts.clone(),
        ranks: survey.hosts.iter().map(|h| h.ranks).sum(),
        binding: Some(survey.binding.clone()),
        memory_per_rank_bytes: survey.memory_per_rank_bytes,
        environment: environment::relevant_environment(),
    })
}
