//! What all ranks together know of their machine: hosts, memory per rank, the manifest of the run.

use std::collections::{BTreeMap, BTreeSet};

use beff_ffi::{Comm, MpiError, Universe};
use serde::{Deserialize, Serialize};

use super::caches::{share_bytes, Caches};
use super::placement::cpu_list;
use super::{environment, host, memory, taken_back, SystemError};
use crate::frame::config::BindPolicy;
use crate::frame::paths::word_of;
use crate::frame::planted;
use crate::frame::records::{
    BindState, Binding, HostBinding, HostRecord, Machine, Neighbour, Placement, RankBinding, TakenBack,
};

/// Longest library string kept in a manifest.
pub const LIBRARY_CHARS: usize = 4000;

/// What one rank says of its host.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Witness {
    host: String,
    kernel: String,
    cpu: String,
    cpus: Vec<u32>,
    cores: Option<BTreeSet<String>>,
    found: Vec<u32>,
    state: BindState,
    neighbour: Option<Neighbour>,
    quota: Option<f64>,
    memory_bytes: u64,
    limit_bytes: Option<u64>,
    cache_bytes: u64,
    caches: Caches,
    taken_back_by: Option<String>,
}

/// What was done about the CPUs of this rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// What was asked for.
    pub asked: BindPolicy,
    /// What binds ranks, as the launcher tells.
    pub launcher: Option<String>,
    /// CPUs that this rank was allowed before.
    pub found: Vec<u32>,
    /// Who decided for this host.
    pub state: BindState,
    /// A program of others that is bound here.
    pub neighbour: Option<Neighbour>,
}

/// The survey, equal on all ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    /// Hosts in the order of their first rank.
    pub hosts: Vec<HostRecord>,
    /// Where each rank runs.
    pub placement: Vec<Placement>,
    /// What was done about it.
    pub binding: Binding,
    /// Kernel of the first host.
    pub kernel: String,
    /// Memory one rank can use: of its node or control group, divided by the ranks on the node; the smallest of all.
    pub memory_per_rank_bytes: u64,
    /// Largest share of the caches that a rank has: [`share_bytes`].
    pub cache_share_bytes: u64,
}

/// Asks all ranks; `bound` is what was done about the CPUs of this one. Collective.
///
/// # Errors
/// Outer: MPI between the ranks. Inner: a fact that cannot be found out, equal on all ranks.
pub fn survey(world: &Comm, bound: &Bound) -> Result<Result<Survey, String>, MpiError> {
    let mine = planted::failure("survey", world.rank()).and_then(|()| witness(bound).map_err(|e| e.to_string()));
    let packed = match &mine {
        Ok(w) => serde_json::to_vec(&Ok::<_, String>(w)).unwrap_or_default(),
        Err(e) => serde_json::to_vec(&Err::<Witness, _>(e)).unwrap_or_default(),
    };
    let gathered = world.gather_bytes(&packed)?;
    let combined = if world.is_root() { combine(&gathered, bound) } else { Err(String::new()) };
    let bytes = world.bcast_bytes(serde_json::to_vec(&combined).unwrap_or_default(), 0)?;
    let survey: Result<Survey, String> =
        serde_json::from_slice(&bytes).unwrap_or_else(|e| Err(format!("the survey of the hosts is unreadable: {e}")));
    match survey {
        Ok(survey) if survey.hosts.iter().any(|host| host.memory_taken_back.is_some()) => {
            Ok(Ok(touched(world, survey)?))
        }
        other => Ok(other),
    }
}

/// On hosts whose memory is taken back the first rank of each looks what new memory costs, while the others wait. Collective.
fn touched(world: &Comm, mut survey: Survey) -> Result<Survey, MpiError> {
    let firsts: Vec<usize> = (0..survey.hosts.len() as u64)
        .filter_map(|host| survey.placement.iter().position(|p| p.host == host))
        .collect();
    let own = firsts.iter().zip(&survey.hosts).find(|(first, _)| **first as u64 == world.rank());
    let looks = own.is_some_and(|(_, host)| host.memory_taken_back.is_some());
    let seen = looks.then(|| taken_back::first_touch(survey.memory_per_rank_bytes));
    let gathered = world.gather_bytes(&serde_json::to_vec(&seen).unwrap_or_default())?;
    if world.is_root() {
        for (first, host) in firsts.into_iter().zip(&mut survey.hosts) {
            let seen: Option<(u64, [f64; 2])> =
                gathered.get(first).and_then(|bytes| serde_json::from_slice(bytes).ok().flatten());
            if let (Some(record), Some((bytes, [first, again]))) = (&mut host.memory_taken_back, seen) {
                (record.touched_bytes, record.first_touch_ns, record.touch_again_ns) = (bytes, first, again);
            }
        }
    }
    let bytes = world.bcast_bytes(serde_json::to_vec(&survey.hosts).unwrap_or_default(), 0)?;
    survey.hosts = serde_json::from_slice(&bytes).unwrap_or(survey.hosts);
    Ok(survey)
}

fn witness(bound: &Bound) -> Result<Witness, SystemError> {
    let memory_bytes = memory::node_memory_bytes()?;
    let cpus = host::allowed_cpus()?;
    Ok(Witness {
        host: host::host_name()?,
        kernel: host::kernel()?,
        cpu: host::cpu_model(),
        cores: host::cores_of(&cpus),
        caches: Caches::of(&cpus),
        cpus,
        found: bound.found.clone(),
        state: bound.state.clone(),
        neighbour: bound.neighbour.clone(),
        quota: host::cgroup_cpu_quota(),
        memory_bytes,
        limit_bytes: memory::cgroup_memory_limit_bytes(memory_bytes),
        cache_bytes: memory::last_level_cache_bytes(),
        taken_back_by: taken_back::by_what(),
    })
}

fn combine(gathered: &[Vec<u8>], bound: &Bound) -> Result<Survey, String> {
    let mut witnesses = Vec::new();
    for (rank, bytes) in gathered.iter().enumerate() {
        let witness: Result<Witness, String> =
            serde_json::from_slice(bytes).map_err(|e| format!("rank {rank} answered nonsense: {e}"))?;
        witnesses.push(witness.map_err(|e| format!("rank {rank} {e}"))?);
    }
    let kernel = witnesses.first().map(|w| w.kernel.clone()).unwrap_or_default();
    let mut order = Vec::new();
    let mut placement = Vec::with_capacity(witnesses.len());
    let mut by_host: BTreeMap<String, Vec<(u64, Witness)>> = BTreeMap::new();
    for (rank, w) in (0..).zip(witnesses) {
        if !by_host.contains_key(&w.host) {
            order.push(w.host.clone());
        }
        let host = order.iter().position(|name| *name == w.host).unwrap_or(0) as u64;
        placement.push(Placement { host, cpus: cpu_list(&w.cpus), cores: number(w.cores.as_ref()) });
        by_host.entry(w.host.clone()).or_default().push((rank, w));
    }
    let of_hosts = || order.iter().filter_map(|name| by_host.get(name));
    let hosts: Vec<HostRecord> = of_hosts().map(|w| host_record(w)).collect();
    let binding = Binding {
        asked: bound.asked,
        launcher: bound.launcher.clone(),
        hosts: of_hosts().map(|w| host_binding(w)).collect(),
    };
    let share = |ranks: &[(u64, Witness)]| share_bytes(&ranks.iter().map(|(_, w)| &w.caches).collect::<Vec<_>>());
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

fn number(cores: Option<&BTreeSet<String>>) -> Option<u64> {
    cores.map(|cores| cores.len() as u64)
}

fn host_binding(ranks: &[(u64, Witness)]) -> HostBinding {
    let together = |cpus: fn(&Witness) -> &Vec<u32>| {
        let all: BTreeSet<u32> = ranks.iter().flat_map(|(_, w)| cpus(w)).copied().collect();
        cpu_list(&all.into_iter().collect::<Vec<_>>())
    };
    let cores = ranks.iter().map(|(_, w)| w.cores.clone()).reduce(|all, own| {
        let (mut all, own) = (all?, own?);
        all.extend(own);
        Some(all)
    });
    // Two hosts of one name may have decided differently: the one that bound nothing is told.
    let worst = ranks.iter().find(|(_, w)| w.state != BindState::Program).unwrap_or(&ranks[0]);
    HostBinding {
        state: worst.1.state.clone(),
        found_cpus: together(|w| &w.found),
        cpus: together(|w| &w.cpus),
        cores: number(cores.flatten().as_ref()),
        neighbour: ranks.iter().find_map(|(_, w)| w.neighbour.clone()),
        ranks: ranks
            .iter()
            .map(|(rank, w)| RankBinding {
                rank: *rank,
                found_cpus: cpu_list(&w.found),
                cpus: cpu_list(&w.cpus),
                cores: number(w.cores.as_ref()),
            })
            .collect(),
    }
}

fn host_record(ranks: &[(u64, Witness)]) -> HostRecord {
    let first = &ranks[0].1;
    HostRecord {
        name: first.host.clone(),
        ranks: ranks.len() as u64,
        // What the host offers, whatever the program has made of it.
        cores: host::cores_together(ranks.iter().map(|(_, w)| w.found.as_slice()), first.quota),
        cpu: first.cpu.clone(),
        memory_bytes: first.memory_bytes,
        cgroup_memory_limit_bytes: ranks.iter().filter_map(|(_, w)| w.limit_bytes).min(),
        last_level_cache_bytes: first.cache_bytes,
        memory_taken_back: first.taken_back_by.clone().map(|by| TakenBack {
            by,
            touched_bytes: 0,
            first_touch_ns: 0.0,
            touch_again_ns: 0.0,
        }),
    }
}

/// The I/O layer as far as the library's text tells.
#[must_use]
pub fn io_layer(library: &str, environment: &[(String, String)]) -> String {
    let component = environment.iter().find(|(k, _)| k == "OMPI_MCA_io").map(|(_, v)| v.as_str());
    match (library.starts_with("Open MPI"), component) {
        (true, Some(component)) => format!("{component} (asked for by OMPI_MCA_io)"),
        (true, None) => "OMPIO (default of Open MPI; --mca io chooses)".into(),
        (false, _) if library.contains("MPICH") || library.contains("Intel") => "ROMIO".into(),
        _ => "unknown".into(),
    }
}

/// The machine of a run. Rank 0 only.
///
/// # Errors
/// What MPI or the system cannot tell.
pub fn machine(universe: &Universe, survey: &Survey) -> Result<Machine, MpiError> {
    Ok(Machine {
        program_version: env!("CARGO_PKG_VERSION").into(),
        git_revision: env!("BEFF_GIT_REVISION").into(),
        mpi_built_with: beff_ffi::built_with().into(),
        mpi_library: beff_ffi::library_version(LIBRARY_CHARS)?,
        mpi_standard: universe.standard()?,
        mpi_thread_level: Some(universe.thread_level()?.into()),
        started_utc: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        command_line: std::env::args_os().map(|word| word_of(&word)).collect(),
        kernel: survey.kernel.clone(),
        kernel_version: host::kernel_version(),
        hosts: survey.hosts.clone(),
        ranks: survey.hosts.iter().map(|h| h.ranks).sum(),
        binding: Some(survey.binding.clone()),
        memory_per_rank_bytes: survey.memory_per_rank_bytes,
        environment: environment::relevant_environment(),
    })
}
