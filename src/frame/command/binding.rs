//! Binds ranks to CPUs at the start of a run: after MPI_Init, before memory of the measurement is touched. Each host decides from the
//! CPUs that its ranks were allowed; failures are reported to all ranks.

use std::thread;
use std::time::Duration;

use anyhow::anyhow;
use beff_ffi::{Comm, MpiError};
use serde::{Deserialize, Serialize};

use super::start::{collective_step, CommandError};
use crate::frame::config::BindPolicy;
use crate::frame::error::UsageError;
use crate::frame::records::BindState;
use crate::frame::run::agree;
use crate::frame::run::binding::{choose_binding, needs_claims, BindingChoice, HostFacts};
use crate::frame::system::bound_threads::BoundThread;
use crate::frame::system::launcher::{binding_source, is_binding_requested};
use crate::frame::system::survey::{survey, BindingOutcome, Survey};
use crate::frame::system::topology::Topology;
use crate::frame::system::{affinity, bound_threads, cpu_time, host};

const MAX_THREADS_PER_CORE: usize = 8;

/// Time for which ranks sleep while the CPU time of other processes is measured. The kernel counts in steps of 10 ms.
const OBSERVATION_TIME: Duration = Duration::from_millis(250);

/// Facts that a rank sends to the first rank of its host.
#[derive(Debug, Default, Serialize, Deserialize)]
struct RankCpus {
    cpus: Vec<u32>,
    process: u64,
}

/// CPU time of all processes on the CPUs of a rank, and of its own process, in ns; None if not measured, or unknown.
type CpuUse = Option<(u64, u64)>;

/// Decision of the first rank of a host for all of its ranks.
#[derive(Debug, Serialize, Deserialize)]
struct BindingDecision {
    choice: BindingChoice,
    /// Cause and next step if the request is impossible.
    refused: Option<(String, String)>,
}

/// Binds the ranks as requested, then surveys ranks and hosts: the facts of the machine for the plan, equal on all ranks. Collective.
///
/// # Errors
/// Everywhere: ranks cannot be bound as requested; a fact is unavailable.
pub(crate) fn bind_and_survey(world: &Comm, policy: BindPolicy) -> Result<Survey, CommandError> {
    let node = if world.size() > 1 { world.node()? } else { None }.unwrap_or_else(Comm::comm_self);
    let bound = bind(world, &node, policy)?;
    survey(world, &node, &bound)?.map_err(|e| CommandError::Collective(anyhow!(e)))
}

fn bind(world: &Comm, node: &Comm, policy: BindPolicy) -> Result<BindingOutcome, CommandError> {
    let found = collective_step(world, "allowed CPUs", || {
        host::allowed_cpus().map_err(|e| anyhow!("rank {} {e}", world.rank()))
    })?;
    let mine = RankCpus { cpus: found.clone(), process: u64::from(std::process::id()) };
    let all = agree::collect(node, vec![mine])?;
    let host = node.is_root().then(|| HostRanks::new(&all));
    let open = host.as_ref().is_some_and(|host| needs_claims(policy, &host.facts(&[], None)));
    // Ranks do not sleep if the decision does not depend on other processes.
    let looks = policy == BindPolicy::Auto && node.bcast_bytes(vec![u8::from(open)], 0)? == [1];
    let used = if looks { agree::collect(node, vec![measure_cpu_use(node, &found)?])? } else { Vec::new() };
    let decided = match &host {
        Some(host) => decide(policy, host, open, &used),
        None => BindingDecision { choice: BindingChoice::default(), refused: None },
    };
    let packed = node.bcast_bytes(serde_json::to_vec(&decided)?, 0)?;
    let BindingDecision { mut choice, refused } = serde_json::from_slice(&packed)?;
    let refused = refused.map(|(cause, next_step)| {
        let name = host::host_name().unwrap_or_else(|_| "unknown".into());
        UsageError::new(format!("host {name}: {cause}"), next_step)
    });
    collective_step(world, "binding", || refused.map_or(Ok(()), |refused| Err(refused.into())))?;

    let wanted = usize::try_from(node.rank()).ok().and_then(|rank| choice.cpus.get(rank).copied());
    let done = wanted.map_or(Ok(()), |cpu| affinity::bind(cpu, &found));
    let failed = agree::first_message(node, done.err())?.map(|(_, message)| message);
    let is_forced = policy == BindPolicy::Core;
    collective_step(world, "binding in force", || match &failed {
        Some(message) if is_forced => Err(UsageError::new(
            format!("--bind core: {message}"),
            "Check for a sandbox or seccomp filter that forbids it, or leave --bind core out.",
        )
        .into()),
        // Ranks of a host are bound all or not at all.
        Some(_) => affinity::restore(&found).map_err(|e| anyhow!("rank {} cannot be unbound again: {e}", world.rank())),
        None => Ok(()),
    })?;
    if let Some(message) = failed {
        choice.state = BindState::Refused { message };
    }
    let env = |name: &str| std::env::var(name).ok();
    Ok(BindingOutcome {
        requested: policy,
        launcher: binding_source(env),
        initial_cpus: found,
        state: choice.state,
        neighbour: choice.neighbour,
    })
}

/// CPU time of all processes on these CPUs, and of this process, while all ranks of the host sleep. Collective.
fn measure_cpu_use(node: &Comm, cpus: &[u32]) -> Result<CpuUse, MpiError> {
    node.barrier()?;
    let (host, own) = (cpu_time::host_cpu_times(cpus), cpu_time::process_cpu_times());
    thread::sleep(OBSERVATION_TIME);
    let (own, host) = (
        cpu_time::process_cpu_times().since(own),
        cpu_time::host_cpu_times(cpus).zip(host).map(|(now, then)| now.since(then)),
    );
    Ok(host.map(|host| (host.user_ns + host.kernel_ns + host.steal_ns, own.user_ns + own.kernel_ns)))
}

/// CPU time of other processes on the CPUs of the first rank, in percent of one CPU.
fn other_process_percent(used: &[CpuUse]) -> Option<u64> {
    let (used_ns, _) = (*used.first()?)?;
    let own_ns: u64 = used.iter().filter_map(|rank| Some((*rank)?.1)).sum();
    Some(used_ns.saturating_sub(own_ns) * 100 / OBSERVATION_TIME.as_nanos() as u64)
}

/// Facts about this host without those about other processes.
struct HostRanks {
    rank_cpus: Vec<Vec<u32>>,
    processes: Vec<u64>,
    /// CPUs that some rank may use.
    union: Vec<u32>,
    topology: Topology,
}

impl HostRanks {
    fn new(all: &[RankCpus]) -> Self {
        let rank_cpus: Vec<Vec<u32>> = all.iter().map(|rank| rank.cpus.clone()).collect();
        let mut union = rank_cpus.concat();
        union.sort_unstable();
        union.dedup();
        let topology = Topology::of_this_host(union.iter().copied());
        Self { rank_cpus, processes: all.iter().map(|rank| rank.process).collect(), union, topology }
    }

    fn facts<'a>(&'a self, claims: &'a [BoundThread], others_percent: Option<u64>) -> HostFacts<'a> {
        HostFacts {
            rank_cpus: &self.rank_cpus,
            launcher_binds: is_binding_requested(|name| std::env::var(name).ok()),
            quota: host::cgroup_cpu_quota(),
            topology: &self.topology,
            other_process_percent: others_percent,
            claims,
        }
    }

    /// Processes of other programs that are bound to some of the CPUs.
    fn claims(&self) -> Vec<BoundThread> {
        // The kernel cannot move a process that is limited to one of several cores.
        let online = host::online_cpus().map_or(0, |cpus| cpus.len());
        let is_bound = |cpus: &[u32]| {
            cpus.len() <= MAX_THREADS_PER_CORE
                && cpus.len() < online
                && host::physical_cores(cpus).is_some_and(|cores| cores.len() == 1)
        };
        bound_threads::bound_threads(&self.union, is_bound, &self.processes)
    }
}

/// Decides for the ranks of this host; `open`: other processes matter ([`needs_claims`]).
fn decide(policy: BindPolicy, host: &HostRanks, open: bool, used: &[CpuUse]) -> BindingDecision {
    let claims = if open { host.claims() } else { Vec::new() };
    match choose_binding(policy, &host.facts(&claims, other_process_percent(used))) {
        Ok(choice) => BindingDecision { choice, refused: None },
        Err(no) => {
            BindingDecision { choice: BindingChoice::default(), refused: Some((no.cause, no.next_step.to_owned())) }
        }
    }
}
