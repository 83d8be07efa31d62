//! Ranks are bound to CPUs at the start of a run: after MPI is there, before memory of the measurement is touched. Each host decides for
//! itself, from what its ranks were found on; what fails somewhere, all ranks hear.

use std::thread;
use std::time::Duration;

use anyhow::anyhow;
use beff_ffi::{Comm, MpiError};
use serde::{Deserialize, Serialize};

use super::start::{step, Early};
use crate::frame::config::BindPolicy;
use crate::frame::error::UsageError;
use crate::frame::records::BindState;
use crate::frame::run::agree;
use crate::frame::run::binding::{asks_for_claims, choose, Choice, HostFacts};
use crate::frame::system::launcher::{binding, was_told_to_bind};
use crate::frame::system::neighbours::Claim;
use crate::frame::system::survey::{survey, Bound, Survey};
use crate::frame::system::topology::Topology;
use crate::frame::system::{affinity, cpu_time, host, neighbours};

/// Hardware threads of a core; none has more.
const MOST_THREADS: usize = 8;

/// Time for which ranks sleep to see what others use. The kernel counts in steps of 10 ms.
const LOOK: Duration = Duration::from_millis(250);

/// What one rank tells the first one of its host.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Found {
    cpus: Vec<u32>,
    process: u64,
}

/// Time of the CPUs of a rank that everybody used, and that of its own process, in ns; None: not looked, or not known.
type Used = Option<(u64, u64)>;

/// What the first rank of a host has decided for all of them.
#[derive(Debug, Serialize, Deserialize)]
struct Decided {
    choice: Choice,
    /// Why it cannot be as asked: cause, and what to do.
    refused: Option<(String, String)>,
}

/// Binds the ranks as asked, and then looks what they and their hosts are: what is known of the machine when the plan is made. The same on
/// all ranks. Collective.
///
/// # Errors
/// Everywhere: ranks cannot be bound as asked, a fact that cannot be found out.
pub(crate) fn bind_and_look(world: &Comm, policy: BindPolicy) -> Result<Survey, Early> {
    let bound = bind(world, policy)?;
    survey(world, &bound)?.map_err(|e| Early::Everywhere(anyhow!(e)))
}

fn bind(world: &Comm, policy: BindPolicy) -> Result<Bound, Early> {
    let found = step(world, "allowed CPUs", || host::allowed_cpus().map_err(|e| anyhow!("rank {} {e}", world.rank())))?;
    let node = if world.size() > 1 { world.node()? } else { None }.unwrap_or_else(Comm::own);
    let mine = Found { cpus: found.clone(), process: u64::from(std::process::id()) };
    let all: Vec<Found> = agree::gather(&node, &mine)?;
    let host = node.is_root().then(|| Host::new(&all));
    let open = host.as_ref().is_some_and(|host| asks_for_claims(policy, &host.facts(&[], None)));
    // Where nothing is left to decide nobody sleeps to see what others use.
    let looks = policy == BindPolicy::Auto && node.bcast_bytes(vec![u8::from(open)], 0)? == [1];
    let used: Vec<Used> = if looks { agree::gather(&node, &used(&node, &found)?)? } else { Vec::new() };
    let decided = match &host {
        Some(host) => decide(policy, host, open, &used),
        None => Decided { choice: Choice::default(), refused: None },
    };
    let packed = node.bcast_bytes(serde_json::to_vec(&decided)?, 0)?;
    let Decided { mut choice, refused } = serde_json::from_slice(&packed)?;
    let refused = refused.map(|(cause, next_step)| {
        let name = host::host_name().unwrap_or_else(|_| "unknown".into());
        UsageError::new(format!("host {name}: {cause}"), next_step)
    });
    step(world, "binding", || refused.map_or(Ok(()), |refused| Err(refused.into())))?;

    let wanted = usize::try_from(node.rank()).ok().and_then(|rank| choice.cpus.get(rank).copied());
    let done = wanted.map_or(Ok(()), |cpu| affinity::bind(cpu, &found));
    let failed = agree::first_message(&node, done.err())?.map(|(_, message)| message);
    let is_forced = policy == BindPolicy::Core;
    step(world, "binding in force", || match &failed {
        Some(message) if is_forced => Err(UsageError::new(
            format!("--bind core: {message}"),
            "Look for a sandbox or seccomp filter that forbids it, or leave --bind core out.",
        )
        .into()),
        // A host whose ranks are bound in part is neither the one nor the other.
        Some(_) => affinity::restore(&found).map_err(|e| anyhow!("rank {} cannot be let go again: {e}", world.rank())),
        None => Ok(()),
    })?;
    if let Some(message) = failed {
        choice.state = BindState::Refused { message };
    }
    let env = |name: &str| std::env::var(name).ok();
    Ok(Bound { asked: policy, launcher: binding(env), found, state: choice.state, neighbour: choice.neighbour })
}

/// Time of these CPUs that somebody used, and that of this process, while all ranks of the host slept. Collective.
fn used(node: &Comm, cpus: &[u32]) -> Result<Used, MpiError> {
    node.barrier()?;
    let (host, own) = (cpu_time::host(cpus), cpu_time::own());
    thread::sleep(LOOK);
    let (own, host) = (cpu_time::own().since(own), cpu_time::host(cpus).zip(host).map(|(now, then)| now.since(then)));
    Ok(host.map(|host| (host.user_ns + host.kernel_ns + host.steal_ns, own.user_ns + own.kernel_ns)))
}

/// What others used of the CPUs of the first rank, in percent of one CPU.
fn others_percent(used: &[Used]) -> Option<u64> {
    let (used_ns, _) = (*used.first()?)?;
    let own_ns: u64 = used.iter().filter_map(|rank| Some((*rank)?.1)).sum();
    Some(used_ns.saturating_sub(own_ns) * 100 / LOOK.as_nanos() as u64)
}

/// What is known of this host without looking what others do.
struct Host {
    found: Vec<Vec<u32>>,
    processes: Vec<u64>,
    /// CPUs that some rank may use.
    union: Vec<u32>,
    topology: Topology,
}

impl Host {
    fn new(all: &[Found]) -> Self {
        let found: Vec<Vec<u32>> = all.iter().map(|rank| rank.cpus.clone()).collect();
        let mut union = found.concat();
        union.sort_unstable();
        union.dedup();
        let topology = Topology::of_this_host(union.iter().copied());
        Self { found, processes: all.iter().map(|rank| rank.process).collect(), union, topology }
    }

    fn facts<'a>(&'a self, claims: &'a [Claim], others_percent: Option<u64>) -> HostFacts<'a> {
        HostFacts {
            found: &self.found,
            launcher_was_told: was_told_to_bind(|name| std::env::var(name).ok()),
            quota: host::cgroup_cpu_quota(),
            topology: &self.topology,
            others_percent,
            claims,
        }
    }

    /// Programs of others that are bound to some of the CPUs.
    fn claims(&self) -> Vec<Claim> {
        // Who may use one core, where there are others, cannot be put elsewhere by the kernel.
        let online = host::online_cpus().map_or(0, |cpus| cpus.len());
        let is_bound = |cpus: &[u32]| {
            cpus.len() <= MOST_THREADS
                && cpus.len() < online
                && host::cores_of(cpus).is_some_and(|cores| cores.len() == 1)
        };
        neighbours::claims(&self.union, is_bound, &self.processes)
    }
}

/// For the ranks of this host; `open`: others have a say ([`asks_for_claims`]).
fn decide(policy: BindPolicy, host: &Host, open: bool, used: &[Used]) -> Decided {
    let claims = if open { host.claims() } else { Vec::new() };
    match choose(policy, &host.facts(&claims, others_percent(used))) {
        Ok(choice) => Decided { choice, refused: None },
        Err(no) => Decided { choice: Choice::default(), refused: Some((no.cause, no.next_step.to_owned())) },
    }
}
