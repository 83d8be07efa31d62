//! Survey of the machine by all ranks: hosts, memory per rank, the manifest of the run.
//!
//! The ranks of a node combine what they found before nodes are combined, and only sums leave rank 0: neither the messages nor the memory
//! of other ranks grow with the number of ranks.

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
use crate::frame::run::agree;

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

/// The survey: sums on all ranks, the description of the hosts on rank 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Survey {
    /// Number of hosts.
    pub hosts: u64,
    /// Index of the host of this rank, in the order of their first ranks.
    pub host: u64,
    /// Ranks on the host of rank 0.
    pub ranks_of_first_host: u64,
    /// Memory available to one rank: that of its node or control group, divided by the ranks on the node; the minimum of all.
    pub memory_per_rank_bytes: u64,
    /// Largest cache share of a rank: [`largest_share_bytes`].
    pub cache_share_bytes: u64,
    /// The hosts; empty on other ranks than 0.
    pub description: HostDescription,
}

/// All hosts of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostDescription {
    /// Hosts in the order of their first rank.
    pub hosts: Vec<HostRecord>,
    /// Binding of the ranks, by host.
    pub bindings: Vec<HostBinding>,
    /// Requested policy, and binding of the launcher.
    pub requested: Option<(BindPolicy, Option<String>)>,
    /// Kernel of the first host.
    pub kernel: String,
}

/// What all ranks need to know.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct SurveySums {
    hosts: u64,
    ranks_of_first_host: u64,
    memory_per_rank_bytes: u64,
    cache_share_bytes: u64,
    /// First ranks of the hosts with memory ballooning.
    ballooning_ranks: Vec<u64>,
    /// Runs of ranks on one host: first rank, and index of the host. As many as hosts, if the ranks are placed host by host.
    host_runs: Vec<(u64, u64)>,
}

impl SurveySums {
    fn host_of(&self, rank: u64) -> u64 {
        let runs = self.host_runs.partition_point(|(first, _)| *first <= rank);
        runs.checked_sub(1).map_or(0, |run| self.host_runs[run].1)
    }
}

fn host_runs(bindings: &[HostBinding]) -> Vec<(u64, u64)> {
    let of_host = |(host, binding): (u64, &HostBinding)| {
        binding.ranks.iter().map(move |rank| (rank.rank, host)).collect::<Vec<_>>()
    };
    let mut runs: Vec<(u64, u64)> = (0..).zip(bindings).flat_map(of_host).collect();
    runs.sort_unstable();
    runs.dedup_by_key(|(_, host)| *host);
    runs
}

impl HostDescription {
    /// Host and CPUs of each rank.
    #[must_use]
    pub fn placement(&self) -> Vec<Placement> {
        let of_host = |(host, binding): (u64, &HostBinding)| {
            let place =
                |rank: &RankBinding| (rank.rank, Placement { host, cpus: rank.cpus.clone(), cores: rank.cores });
            binding.ranks.iter().map(place).collect::<Vec<_>>()
        };
        let mut all: Vec<(u64, Placement)> = (0..).zip(&self.bindings).flat_map(of_host).collect();
        all.sort_by_key(|(rank, _)| *rank);
        all.into_iter().map(|(_, placement)| placement).collect()
    }
}

/// Surveys all ranks; `node`: those of this node; `bound`: the binding of this one. Collective.
///
/// # Errors
/// Outer: MPI errors. Inner: an unavailable fact, equal on all ranks.
pub fn survey(world: &Comm, node: &Comm, bound: &BindingOutcome) -> Result<Result<Survey, String>, MpiError> {
    let mine = fault_injection::injected_failure("survey", world.rank())
        .and_then(|()| survey_rank(bound).map_err(|e| e.to_string()));
    let mine = match agree::all_or_first_error(world, mine)? {
        Ok(mine) => mine,
        Err((rank, message)) => return Ok(Err(format!("rank {rank} {message}"))),
    };
    let nodes = agree::collect(world, survey_node(node, (world.rank(), mine))?)?;
    let (sums, description) = describe(merge_hosts(nodes), bound);
    let bytes = world.bcast_bytes(serde_json::to_vec(&sums).unwrap_or_default(), 0)?;
    let sums: SurveySums = match serde_json::from_slice(&bytes) {
        Ok(sums) => sums,
        Err(e) => return Ok(Err(format!("the survey of the hosts is unreadable: {e}"))),
    };
    let mut survey = Survey {
        hosts: sums.hosts,
        host: sums.host_of(world.rank()),
        ranks_of_first_host: sums.ranks_of_first_host,
        memory_per_rank_bytes: sums.memory_per_rank_bytes,
        cache_share_bytes: sums.cache_share_bytes,
        description: if world.is_root() { description } else { HostDescription::default() },
    };
    if !sums.ballooning_ranks.is_empty() {
        measure_first_touch(world, &mut survey, &sums.ballooning_ranks)?;
    }
    Ok(Ok(survey))
}

/// On hosts with memory ballooning the first rank, of `firsts`, measures the cost of new memory, while the others wait. Collective.
fn measure_first_touch(world: &Comm, survey: &mut Survey, firsts: &[u64]) -> Result<(), MpiError> {
    let looks = firsts.contains(&world.rank());
    let seen = looks.then(|| ballooning::first_touch_ns(survey.memory_per_rank_bytes));
    let mine = seen.map(|(bytes, [first, again])| (world.rank(), bytes, first, again));
    for (rank, bytes, first, again) in agree::collect(world, mine.into_iter().collect())? {
        let HostDescription { hosts, bindings, .. } = &mut survey.description;
        let is_of_rank = |host: &HostBinding| host.ranks.first().is_some_and(|one| one.rank == rank);
        let own = bindings.iter().position(is_of_rank).and_then(|host| hosts.get_mut(host));
        if let Some(record) = own.and_then(|host| host.memory_ballooning.as_mut()) {
            (record.touched_bytes, record.first_touch_ns, record.touch_again_ns) = (bytes, first, again);
        }
    }
    Ok(())
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

/// What the ranks of a node, or of several nodes with one name, found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct HostSurvey {
    record: HostRecord,
    binding: HostBinding,
    kernel: String,
    cache_share_bytes: u64,
    quota: Option<f64>,
    /// CPUs of all ranks at program start and during the measurements, and physical cores of the latter.
    initial_cpus: BTreeSet<u32>,
    cpus: BTreeSet<u32>,
    cores: Option<BTreeSet<String>>,
}

/// The hosts of this node on its first rank, nothing on its others. Containers of a node may have names of their own. Collective.
fn survey_node(node: &Comm, mine: (u64, RankSurvey)) -> Result<Vec<HostSurvey>, MpiError> {
    let mut by_name: BTreeMap<String, Vec<(u64, RankSurvey)>> = BTreeMap::new();
    for one in agree::collect(node, vec![mine])? {
        by_name.entry(one.1.host.clone()).or_default().push(one);
    }
    Ok(by_name.values().map(|ranks| HostSurvey::of_ranks(ranks)).collect())
}

impl HostSurvey {
    fn of_ranks(ranks: &[(u64, RankSurvey)]) -> Self {
        let together = |cpus: fn(&RankSurvey) -> &Vec<u32>| ranks.iter().flat_map(|(_, w)| cpus(w)).copied().collect();
        let cores = ranks.iter().map(|(_, w)| w.cores.clone()).reduce(united_cores).flatten();
        Self {
            record: host_record(ranks),
            binding: host_binding(ranks),
            kernel: ranks[0].1.kernel.clone(),
            cache_share_bytes: largest_share_bytes(&ranks.iter().map(|(_, w)| &w.caches).collect::<Vec<_>>()),
            quota: ranks[0].1.quota,
            initial_cpus: together(|w| &w.found),
            cpus: together(|w| &w.cpus),
            cores,
        }
        .summarized()
    }

    fn first_rank(&self) -> u64 {
        self.binding.ranks.first().map_or(0, |rank| rank.rank)
    }

    /// Adds a node of the same name with higher ranks.
    fn merged_with(mut self, other: Self) -> Self {
        self.record.ranks += other.record.ranks;
        let limits = [self.record.cgroup_memory_limit_bytes, other.record.cgroup_memory_limit_bytes];
        self.record.cgroup_memory_limit_bytes = limits.into_iter().flatten().min();
        // Two hosts of one name may have decided differently: the state of the unbound one is recorded.
        if self.binding.state == BindState::Program {
            self.binding.state = other.binding.state;
        }
        self.binding.neighbour = self.binding.neighbour.or(other.binding.neighbour);
        self.binding.ranks.extend(other.binding.ranks);
        self.cache_share_bytes = self.cache_share_bytes.max(other.cache_share_bytes);
        self.initial_cpus.extend(other.initial_cpus);
        self.cpus.extend(other.cpus);
        self.cores = united_cores(self.cores, other.cores);
        self.summarized()
    }

    /// Updates what follows from the sets of CPUs and cores.
    fn summarized(mut self) -> Self {
        let list = |cpus: &BTreeSet<u32>| cpus.iter().copied().collect::<Vec<_>>();
        let initial_cpus = list(&self.initial_cpus);
        self.binding.initial_cpus = format_cpu_list(&initial_cpus);
        self.binding.cpus = format_cpu_list(&list(&self.cpus));
        self.binding.cores = core_count(self.cores.as_ref());
        // Cores that the host offers, regardless of the binding.
        self.record.cores = host::combined_cores([initial_cpus.as_slice()], self.quota);
        self
    }
}

fn united_cores(all: Option<BTreeSet<String>>, own: Option<BTreeSet<String>>) -> Option<BTreeSet<String>> {
    let (mut all, own) = (all?, own?);
    all.extend(own);
    Some(all)
}

/// The hosts in the order of their first rank, each name once.
fn merge_hosts(mut nodes: Vec<HostSurvey>) -> Vec<HostSurvey> {
    nodes.sort_by_key(HostSurvey::first_rank);
    let mut by_name: BTreeMap<String, HostSurvey> = BTreeMap::new();
    for node in nodes {
        let name = node.record.name.clone();
        let merged = match by_name.remove(&name) {
            Some(before) => before.merged_with(node),
            None => node,
        };
        by_name.insert(name, merged);
    }
    let mut hosts: Vec<HostSurvey> = by_name.into_values().collect();
    hosts.iter_mut().for_each(|host| host.binding.ranks.sort_by_key(|rank| rank.rank));
    hosts.sort_by_key(HostSurvey::first_rank);
    hosts
}

fn describe(hosts: Vec<HostSurvey>, bound: &BindingOutcome) -> (SurveySums, HostDescription) {
    let per_rank =
        |h: &HostSurvey| h.record.cgroup_memory_limit_bytes.unwrap_or(h.record.memory_bytes) / h.record.ranks.max(1);
    let balloons = hosts.iter().filter(|host| host.record.memory_ballooning.is_some());
    let mut sums = SurveySums {
        host_runs: Vec::new(),
        hosts: hosts.len() as u64,
        ranks_of_first_host: hosts.first().map_or(1, |host| host.record.ranks),
        memory_per_rank_bytes: hosts.iter().map(per_rank).min().unwrap_or(0),
        cache_share_bytes: hosts.iter().map(|host| host.cache_share_bytes).max().unwrap_or(0),
        ballooning_ranks: balloons.map(HostSurvey::first_rank).collect(),
    };
    let mut description = HostDescription {
        requested: Some((bound.requested, bound.launcher.clone())),
        kernel: hosts.first().map_or_else(String::new, |host| host.kernel.clone()),
        ..HostDescription::default()
    };
    for host in hosts {
        description.hosts.push(host.record);
        description.bindings.push(host.binding);
    }
    sums.host_runs = host_runs(&description.bindings);
    (sums, description)
}

fn core_count(cores: Option<&BTreeSet<String>>) -> Option<u64> {
    cores.map(|cores| cores.len() as u64)
}

/// Without the sums over its ranks, which [`HostSurvey::summarized`] adds.
fn host_binding(ranks: &[(u64, RankSurvey)]) -> HostBinding {
    let worst = ranks.iter().find(|(_, w)| w.state != BindState::Program).unwrap_or(&ranks[0]);
    HostBinding {
        state: worst.1.state.clone(),
        initial_cpus: String::new(),
        cpus: String::new(),
        cores: None,
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
        cores: 0,
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
    let hosts = &survey.description;
    let binding = hosts.requested.clone().map(|(requested, launcher)| Binding {
        requested,
        launcher,
        hosts: hosts.bindings.clone(),
    });
    Ok(MachineRecord {
        program_version: env!("CARGO_PKG_VERSION").into(),
        git_revision: env!("BEFF_GIT_REVISION").into(),
        mpi_built_with: beff_ffi::built_with().into(),
        mpi_library: beff_ffi::library_version(LIBRARY_CHARS)?,
        mpi_standard: universe.standard_version()?,
        mpi_thread_level: Some(universe.thread_level()?.into()),
        started_utc: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        command_line: std::env::args_os().map(|word| shell_word(&word)).collect(),
        kernel: hosts.kernel.clone(),
        kernel_version: host::kernel_version(),
        hosts: hosts.hosts.clone(),
        ranks: hosts.hosts.iter().map(|h| h.ranks).sum(),
        binding,
        memory_per_rank_bytes: survey.memory_per_rank_bytes,
        environment: environment::relevant_environment(),
    })
}

#[cfg(test)]
#[path = "survey_tests.rs"]
mod tests;
