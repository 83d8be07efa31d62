//! CPU binding of each rank of a host, decided from facts alone; nothing is queried or set here.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::frame::config::BindPolicy;
use crate::frame::records::{BindState, BoundProcess};
use crate::frame::system::bound_threads::BoundThread;
use crate::frame::system::placement::format_cpu_list;
use crate::frame::system::topology::Topology;

/// CPU time of other processes that may exceed the spare CPUs before ranks stay unbound, in percent of one CPU: daemons and the launcher.
const SPARE_PERCENT: u64 = 25;

/// Facts about a host before binding.
#[derive(Clone, Debug)]
pub struct HostFacts<'a> {
    /// CPUs that each rank was initially allowed, ascending; in rank order.
    pub rank_cpus: &'a [Vec<u32>],
    /// True if the launcher was configured to bind ranks.
    pub launcher_binds: bool,
    /// CPU quota of the control group; None if unlimited.
    pub quota: Option<f64>,
    /// Topology of the CPUs.
    pub topology: &'a Topology,
    /// CPU time of other processes just before, steal time included, in percent of one CPU; None if unknown.
    pub other_process_percent: Option<u64>,
    /// Processes of other programs that are bound to some of the CPUs.
    pub claims: &'a [BoundThread],
}

/// Binding decision for the ranks of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BindingChoice {
    /// Resulting state.
    pub state: BindState,
    /// A CPU for each rank; empty if the ranks stay as they are.
    pub cpus: Vec<u32>,
    /// A busy process of another program on a core assigned to a rank.
    pub neighbour: Option<BoundProcess>,
}

/// Ranks cannot be bound as `core` requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindingError {
    /// Cause.
    pub cause: String,
    /// What to do instead.
    pub next_step: &'static str,
}

/// Decides for one host.
///
/// # Errors
/// `core` was requested and there is no CPU for each rank.
pub fn choose_binding(policy: BindPolicy, facts: &HostFacts<'_>) -> Result<BindingChoice, BindingError> {
    match policy {
        BindPolicy::None => {
            Ok(BindingChoice::unchanged(if is_launcher_bound(facts) { BindState::Before } else { BindState::NotAsked }))
        }
        BindPolicy::Auto => Ok(bind_auto(facts)),
        BindPolicy::Core => bind_to_cores(facts),
    }
}

/// True if the decision may depend on bound processes of other programs.
#[must_use]
pub fn needs_claims(policy: BindPolicy, facts: &HostFacts<'_>) -> bool {
    match policy {
        BindPolicy::None => false,
        BindPolicy::Auto => auto_exclusion(facts).is_none(),
        BindPolicy::Core => !have_separate_cores(facts),
    }
}

impl Default for BindingChoice {
    fn default() -> Self {
        Self::unchanged(BindState::NotAsked)
    }
}

impl BindingChoice {
    fn unchanged(state: BindState) -> Self {
        Self { state, cpus: Vec::new(), neighbour: None }
    }

    fn bound(cpus: Vec<u32>, claims: &[BoundThread], topology: &Topology) -> Self {
        let own_cores: BTreeSet<u32> = cpus.iter().map(|cpu| topology.location(*cpu).core).collect();
        let neighbour = claims
            .iter()
            .filter(|claim| claim.is_busy)
            .find(|claim| claim.cpus.iter().any(|cpu| own_cores.contains(&topology.location(*cpu).core)));
        Self { state: BindState::Program, cpus, neighbour: neighbour.map(neighbour_of) }
    }
}

fn neighbour_of(claim: &BoundThread) -> BoundProcess {
    BoundProcess { process: claim.process, program: claim.program.clone(), cpus: format_cpu_list(&claim.cpus) }
}

fn cores(cpus: &[u32], topology: &Topology) -> BTreeSet<u32> {
    cpus.iter().map(|cpu| topology.location(*cpu).core).collect()
}

fn are_equal(found: &[Vec<u32>]) -> bool {
    found.windows(2).all(|pair| pair[0] == pair[1])
}

/// True if ranks were placed by the launcher or the user. Ranks with different CPU sets were; a single rank was if it is limited to one
/// core. Ranks that share one set inherited it together (cpuset, taskset), so they count only if the launcher was configured to bind.
fn is_launcher_bound(facts: &HostFacts<'_>) -> bool {
    match facts.rank_cpus {
        [] => true,
        [alone] => cores(alone, facts.topology).len() <= 1,
        several => !are_equal(several) || facts.launcher_binds,
    }
}

/// True if every rank is limited to one core that no other rank uses.
fn have_separate_cores(facts: &HostFacts<'_>) -> bool {
    let mut used = BTreeSet::new();
    facts.rank_cpus.iter().all(|cpus| {
        let own = cores(cpus, facts.topology);
        own.len() == 1 && own.into_iter().all(|core| used.insert(core))
    })
}

/// Number of CPUs of all ranks together, at most the quota.
fn usable_cpus(facts: &HostFacts<'_>) -> usize {
    let union: BTreeSet<u32> = facts.rank_cpus.iter().flatten().copied().collect();
    // A quota is a small positive number, so the cast keeps its value.
    facts.quota.map_or(union.len(), |quota| union.len().min(quota.ceil() as usize)).max(1)
}

/// State of ranks that `auto` leaves unchanged; None if it may bind them.
fn auto_exclusion(facts: &HostFacts<'_>) -> Option<BindState> {
    let ranks = facts.rank_cpus.len();
    let usable = usable_cpus(facts);
    if ranks > 1 && are_equal(facts.rank_cpus) && ranks > usable {
        return Some(BindState::TooFewCpus { ranks: ranks as u64, cpus: usable as u64 });
    }
    if is_launcher_bound(facts) {
        return Some(BindState::Before);
    }
    (ranks == 1).then_some(BindState::Alone)
}

fn bind_auto(facts: &HostFacts<'_>) -> BindingChoice {
    if let Some(state) = auto_exclusion(facts) {
        return BindingChoice::unchanged(state);
    }
    let (ranks, all) = (facts.rank_cpus.len(), &facts.rank_cpus[0]);
    let [free, quiet] = unclaimed(all, facts);
    let cpus = select_cpus(ranks, [&free, &quiet], facts.topology);
    let first = facts.claims.iter().find(|claim| claim.is_busy).filter(|_| cpus.is_none());
    if let Some(first) = first {
        return BindingChoice::unchanged(BindState::Neighbours {
            free_cpus: quiet.len() as u64,
            first: neighbour_of(first),
        });
    }
    let left_over = usable_cpus(facts).saturating_sub(ranks) as u64;
    if let Some(others_percent) = facts.other_process_percent.filter(|others| *others > 100 * left_over + SPARE_PERCENT)
    {
        return BindingChoice::unchanged(BindState::Busy { other_process_percent: others_percent });
    }
    // Without a busy neighbour all CPUs are quiet, and there are enough of them.
    BindingChoice::bound(cpus.unwrap_or_default(), facts.claims, facts.topology)
}

/// CPUs on cores without bound processes of other programs, and on cores without busy ones.
fn unclaimed(cpus: &[u32], facts: &HostFacts<'_>) -> [Vec<u32>; 2] {
    let taken = |only_busy: bool| -> BTreeSet<u32> {
        let claims = facts.claims.iter().filter(|claim| claim.is_busy || !only_busy);
        claims.flat_map(|claim| cores(&claim.cpus, facts.topology)).collect()
    };
    [false, true].map(|only_busy| {
        let taken = taken(only_busy);
        cpus.iter().copied().filter(|cpu| !taken.contains(&facts.topology.location(*cpu).core)).collect()
    })
}

/// Selects a CPU for each rank, on separate cores if one of the sets has enough; the sets are in order of preference.
fn select_cpus(ranks: usize, sets: [&Vec<u32>; 2], topology: &Topology) -> Option<Vec<u32>> {
    let with_cores = sets.iter().find(|cpus| cores(cpus, topology).len() >= ranks);
    let set = with_cores.or_else(|| sets.iter().find(|cpus| cpus.len() >= ranks))?;
    Some(spread(ranks, set, topology))
}

/// Selects a CPU for each of `ranks` from at least as many: ranks are spread evenly over packages and NUMA nodes, adjacent ranks
/// together; cores are used before second hardware threads. Deterministic.
#[must_use]
pub fn spread(ranks: usize, cpus: &[u32], topology: &Topology) -> Vec<u32> {
    // CPUs by (package, NUMA node), core and hardware thread.
    let mut places: BTreeMap<(i64, i64), BTreeMap<u32, BTreeSet<u32>>> = BTreeMap::new();
    for cpu in cpus {
        let place = topology.location(*cpu);
        places.entry((place.package, place.node)).or_default().entry(place.core).or_default().insert(*cpu);
    }
    // Within a NUMA node all first threads, then all second ones, and so on: one list for each thread number.
    let of_place = |cores: &BTreeMap<u32, BTreeSet<u32>>| {
        let threads = cores.values().map(BTreeSet::len).max().unwrap_or(0);
        let round = |nth: usize| cores.values().filter_map(move |threads| threads.iter().nth(nth).copied());
        (0..threads).map(|nth| round(nth).collect()).collect::<Vec<Vec<u32>>>()
    };
    let rounds: Vec<Vec<Vec<u32>>> = places.values().map(of_place).collect();
    let mut left = ranks;
    let mut counts = vec![0_usize; rounds.len()];
    for nth in 0..rounds.iter().map(Vec::len).max().unwrap_or(0) {
        let capacity: Vec<usize> = rounds.iter().map(|own| own.get(nth).map_or(0, Vec::len)).collect();
        let shares = distribute_evenly(left.min(capacity.iter().sum()), &capacity);
        left -= shares.iter().sum::<usize>();
        counts.iter_mut().zip(shares).for_each(|(count, share)| *count += share);
        if left == 0 {
            break;
        }
    }
    rounds.iter().zip(counts).flat_map(|(own, count)| own.concat().into_iter().take(count)).collect()
}

/// Distributes `number` items over places of these capacities, one at a time, to the place with the fewest.
fn distribute_evenly(number: usize, capacity: &[usize]) -> Vec<usize> {
    let mut shares = vec![0_usize; capacity.len()];
    for _ in 0..number {
        let open = (0..capacity.len()).filter(|place| shares[*place] < capacity[*place]);
        if let Some(place) = open.min_by_key(|place| shares[*place]) {
            shares[place] += 1;
        }
    }
    shares
}

fn bind_to_cores(facts: &HostFacts<'_>) -> Result<BindingChoice, BindingError> {
    if have_separate_cores(facts) {
        return Ok(BindingChoice::unchanged(BindState::Before));
    }
    let ranks = facts.rank_cpus.len();
    let union: BTreeSet<u32> = facts.rank_cpus.iter().flatten().copied().collect();
    if ranks > union.len() {
        return Err(BindingError {
            cause: format!(
                "--bind core needs a CPU for each rank, and {ranks} ranks of a host may use only {} (CPUs {})",
                union.len(),
                format_cpu_list(&union.into_iter().collect::<Vec<_>>())
            ),
            next_step: "Start at most as many ranks per host as it has CPUs, or leave --bind core out.",
        });
    }
    let cpus = if are_equal(facts.rank_cpus) {
        let all = &facts.rank_cpus[0];
        let [free, quiet] = unclaimed(all, facts);
        select_cpus(ranks, [&free, &quiet], facts.topology).unwrap_or_else(|| spread(ranks, all, facts.topology))
    } else {
        let by_core = match_cpus(facts.rank_cpus, |cpu| facts.topology.location(cpu).core);
        by_core.or_else(|| match_cpus(facts.rank_cpus, |cpu| cpu)).ok_or_else(|| BindingError {
            cause: "--bind core needs a CPU for each rank, and the launcher allows several ranks of a host fewer CPUs than there are ranks"
                .into(),
            next_step: "Let the launcher bind each rank to a core of its own, or leave --bind core out.",
        })?
    };
    Ok(BindingChoice::bound(cpus, facts.claims, facts.topology))
}

/// Assigns each rank one of its allowed CPUs, no two with the same name (of a core, or of the CPU); None if impossible.
fn match_cpus(found: &[Vec<u32>], name: impl Fn(u32) -> u32) -> Option<Vec<u32>> {
    // Augmenting paths: a rank without a free place may displace another rank to a free one.
    fn find(
        rank: usize,
        found: &[Vec<u32>],
        name: &dyn Fn(u32) -> u32,
        seen: &mut BTreeSet<u32>,
        owners: &mut BTreeMap<u32, (usize, u32)>,
    ) -> bool {
        if let Some(cpu) = found[rank].iter().find(|cpu| !owners.contains_key(&name(**cpu))) {
            owners.insert(name(*cpu), (rank, *cpu));
            return true;
        }
        for cpu in &found[rank] {
            let place = name(*cpu);
            let Some(owner) = owners.get(&place).map(|(owner, _)| *owner).filter(|_| seen.insert(place)) else {
                continue;
            };
            if find(owner, found, name, seen, owners) {
                owners.insert(place, (rank, *cpu));
                return true;
            }
        }
        false
    }
    let mut owners = BTreeMap::new();
    let all = (0..found.len()).all(|rank| find(rank, found, &name, &mut BTreeSet::new(), &mut owners));
    let mut chosen: Vec<(usize, u32)> = owners.into_values().collect();
    chosen.sort_unstable();
    all.then(|| chosen.into_iter().map(|(_, cpu)| cpu).collect())
}

#[cfg(test)]
#[path = "binding_tests.rs"]
mod tests;
