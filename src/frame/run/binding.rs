//! Which CPU each rank of a host is bound to, from facts alone: nothing is asked and nothing is set here.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::frame::config::BindPolicy;
use crate::frame::records::{BindState, Neighbour};
use crate::frame::system::neighbours::Claim;
use crate::frame::system::placement::cpu_list;
use crate::frame::system::topology::Topology;

/// Others may use this much more than the CPUs that are left over before ranks are not bound, in percent of one CPU: daemons, and the
/// launcher itself.
const SPARE_PERCENT: u64 = 25;

/// What is known of a host before anything is bound.
#[derive(Clone, Debug)]
pub struct HostFacts<'a> {
    /// CPUs that each rank was found on, ascending; in the order of the ranks.
    pub found: &'a [Vec<u32>],
    /// The launcher was told to bind ranks to something.
    pub launcher_was_told: bool,
    /// CPUs that the control group pays for; None: all.
    pub quota: Option<f64>,
    /// Where the CPUs are.
    pub topology: &'a Topology,
    /// Use of the CPUs by others just before, steal included, in percent of one CPU; None: not known.
    pub others_percent: Option<u64>,
    /// Programs of others that are bound to some of the CPUs.
    pub claims: &'a [Claim],
}

/// What is done about the ranks of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Who decides.
    pub state: BindState,
    /// A CPU for each rank; empty: they are left as they are.
    pub cpus: Vec<u32>,
    /// A busy program of others on a core that is given to a rank.
    pub neighbour: Option<Neighbour>,
}

/// Why ranks cannot be bound as `core` asks, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impossible {
    /// Why.
    pub cause: String,
    /// What to type instead.
    pub next_step: &'static str,
}

/// Decides for one host.
///
/// # Errors
/// `core` was asked for, and there is no CPU for each rank.
pub fn choose(policy: BindPolicy, facts: &HostFacts<'_>) -> Result<Choice, Impossible> {
    match policy {
        BindPolicy::None => Ok(Choice::left(if is_bound(facts) { BindState::Before } else { BindState::NotAsked })),
        BindPolicy::Auto => Ok(auto(facts)),
        BindPolicy::Core => core(facts),
    }
}

/// True if `auto` or `core` may want to know who else is bound here.
#[must_use]
pub fn asks_for_claims(policy: BindPolicy, facts: &HostFacts<'_>) -> bool {
    match policy {
        BindPolicy::None => false,
        BindPolicy::Auto => left_by_auto(facts).is_none(),
        BindPolicy::Core => !each_has_a_core(facts),
    }
}

impl Default for Choice {
    fn default() -> Self {
        Self::left(BindState::NotAsked)
    }
}

impl Choice {
    fn left(state: BindState) -> Self {
        Self { state, cpus: Vec::new(), neighbour: None }
    }

    fn bound(cpus: Vec<u32>, claims: &[Claim], topology: &Topology) -> Self {
        let taken: BTreeSet<u32> = cpus.iter().map(|cpu| topology.place(*cpu).core).collect();
        let neighbour = claims
            .iter()
            .filter(|claim| claim.is_busy)
            .find(|claim| claim.cpus.iter().any(|cpu| taken.contains(&topology.place(*cpu).core)));
        Self { state: BindState::Program, cpus, neighbour: neighbour.map(neighbour_of) }
    }
}

fn neighbour_of(claim: &Claim) -> Neighbour {
    Neighbour { process: claim.process, program: claim.program.clone(), cpus: cpu_list(&claim.cpus) }
}

fn cores(cpus: &[u32], topology: &Topology) -> BTreeSet<u32> {
    cpus.iter().map(|cpu| topology.place(*cpu).core).collect()
}

fn are_alike(found: &[Vec<u32>]) -> bool {
    found.windows(2).all(|pair| pair[0] == pair[1])
}

/// Ranks that differ were placed by somebody; a rank alone was if it cannot leave its core. Ranks that share one set of CPUs were put
/// into it together, which says nothing about each, unless the launcher was told to.
fn is_bound(facts: &HostFacts<'_>) -> bool {
    match facts.found {
        [] => true,
        [alone] => cores(alone, facts.topology).len() <= 1,
        several => !are_alike(several) || facts.launcher_was_told,
    }
}

/// Every rank is on one core, and no other rank is on it.
fn each_has_a_core(facts: &HostFacts<'_>) -> bool {
    let mut taken = BTreeSet::new();
    facts.found.iter().all(|cpus| {
        let own = cores(cpus, facts.topology);
        own.len() == 1 && own.into_iter().all(|core| taken.insert(core))
    })
}

/// CPUs of all ranks together, at most what the quota pays for.
fn usable(facts: &HostFacts<'_>) -> usize {
    let union: BTreeSet<u32> = facts.found.iter().flatten().copied().collect();
    // A quota is a small positive number, so the cast keeps its value.
    facts.quota.map_or(union.len(), |quota| union.len().min(quota.ceil() as usize)).max(1)
}

/// What `auto` does not touch.
fn left_by_auto(facts: &HostFacts<'_>) -> Option<BindState> {
    let ranks = facts.found.len();
    let usable = usable(facts);
    if ranks > 1 && are_alike(facts.found) && ranks > usable {
        return Some(BindState::TooFewCpus { ranks: ranks as u64, cpus: usable as u64 });
    }
    if is_bound(facts) {
        return Some(BindState::Before);
    }
    (ranks == 1).then_some(BindState::Alone)
}

fn auto(facts: &HostFacts<'_>) -> Choice {
    if let Some(state) = left_by_auto(facts) {
        return Choice::left(state);
    }
    let (ranks, all) = (facts.found.len(), &facts.found[0]);
    let [free, quiet] = unclaimed(all, facts);
    let cpus = best(ranks, [&free, &quiet], facts.topology);
    let first = facts.claims.iter().find(|claim| claim.is_busy).filter(|_| cpus.is_none());
    if let Some(first) = first {
        return Choice::left(BindState::Neighbours { free_cpus: quiet.len() as u64, first: neighbour_of(first) });
    }
    let left_over = usable(facts).saturating_sub(ranks) as u64;
    if let Some(others_percent) = facts.others_percent.filter(|others| *others > 100 * left_over + SPARE_PERCENT) {
        return Choice::left(BindState::Busy { others_percent });
    }
    // Without a busy neighbour all CPUs are quiet, and there are enough.
    Choice::bound(cpus.unwrap_or_default(), facts.claims, facts.topology)
}

/// CPUs on cores to which no other program is bound, and those where such programs sleep.
fn unclaimed(cpus: &[u32], facts: &HostFacts<'_>) -> [Vec<u32>; 2] {
    let taken = |only_busy: bool| -> BTreeSet<u32> {
        let claims = facts.claims.iter().filter(|claim| claim.is_busy || !only_busy);
        claims.flat_map(|claim| cores(&claim.cpus, facts.topology)).collect()
    };
    [false, true].map(|only_busy| {
        let taken = taken(only_busy);
        cpus.iter().copied().filter(|cpu| !taken.contains(&facts.topology.place(*cpu).core)).collect()
    })
}

/// A CPU for each rank, on cores of their own if one of the sets has them; the sets are in order of preference.
fn best(ranks: usize, sets: [&Vec<u32>; 2], topology: &Topology) -> Option<Vec<u32>> {
    let with_cores = sets.iter().find(|cpus| cores(cpus, topology).len() >= ranks);
    let set = with_cores.or_else(|| sets.iter().find(|cpus| cpus.len() >= ranks))?;
    Some(spread(ranks, set, topology))
}

/// One CPU for each of `ranks`, of at least as many: equally many ranks for each package and memory, neighbouring ranks together; cores
/// before second hardware threads. The same for the same CPUs, always.
#[must_use]
pub fn spread(ranks: usize, cpus: &[u32], topology: &Topology) -> Vec<u32> {
    // Memories by package and node, their cores by number, and of each core its hardware threads.
    let mut places: BTreeMap<(i64, i64), BTreeMap<u32, BTreeSet<u32>>> = BTreeMap::new();
    for cpu in cpus {
        let place = topology.place(*cpu);
        places.entry((place.package, place.node)).or_default().entry(place.core).or_default().insert(*cpu);
    }
    // Within a memory all first threads, then all second ones, and so on; where each of these rounds begins.
    let of_place = |cores: &BTreeMap<u32, BTreeSet<u32>>| {
        let threads = cores.values().map(BTreeSet::len).max().unwrap_or(0);
        let round = |nth: usize| cores.values().filter_map(move |threads| threads.iter().nth(nth).copied());
        (0..threads).map(|nth| round(nth).collect()).collect::<Vec<Vec<u32>>>()
    };
    let rounds: Vec<Vec<Vec<u32>>> = places.values().map(of_place).collect();
    let mut left = ranks;
    let mut counts = vec![0_usize; rounds.len()];
    for nth in 0..rounds.iter().map(Vec::len).max().unwrap_or(0) {
        let room: Vec<usize> = rounds.iter().map(|own| own.get(nth).map_or(0, Vec::len)).collect();
        let shares = fair(left.min(room.iter().sum()), &room);
        left -= shares.iter().sum::<usize>();
        counts.iter_mut().zip(shares).for_each(|(count, share)| *count += share);
        if left == 0 {
            break;
        }
    }
    rounds.iter().zip(counts).flat_map(|(own, count)| own.concat().into_iter().take(count)).collect()
}

/// `number` things into places with this much room, one at a time, the place with the fewest first.
fn fair(number: usize, room: &[usize]) -> Vec<usize> {
    let mut shares = vec![0_usize; room.len()];
    for _ in 0..number {
        let open = (0..room.len()).filter(|place| shares[*place] < room[*place]);
        if let Some(place) = open.min_by_key(|place| shares[*place]) {
            shares[place] += 1;
        }
    }
    shares
}

fn core(facts: &HostFacts<'_>) -> Result<Choice, Impossible> {
    if each_has_a_core(facts) {
        return Ok(Choice::left(BindState::Before));
    }
    let ranks = facts.found.len();
    let union: BTreeSet<u32> = facts.found.iter().flatten().copied().collect();
    if ranks > union.len() {
        return Err(Impossible {
            cause: format!(
                "--bind core gives each rank a CPU of its own, and {ranks} ranks of a host may use only {} (CPUs {})",
                union.len(),
                cpu_list(&union.into_iter().collect::<Vec<_>>())
            ),
            next_step: "Start no more ranks per host than it has CPUs, or leave --bind core out.",
        });
    }
    let cpus = if are_alike(facts.found) {
        let all = &facts.found[0];
        let [free, quiet] = unclaimed(all, facts);
        best(ranks, [&free, &quiet], facts.topology).unwrap_or_else(|| spread(ranks, all, facts.topology))
    } else {
        let by_core = matched(facts.found, |cpu| facts.topology.place(cpu).core);
        by_core.or_else(|| matched(facts.found, |cpu| cpu)).ok_or_else(|| Impossible {
            cause: "--bind core gives each rank a CPU of its own, and the launcher left several ranks of a host fewer CPUs than they are"
                .into(),
            next_step: "Let the launcher bind each rank to a core of its own, or leave --bind core out.",
        })?
    };
    Ok(Choice::bound(cpus, facts.claims, facts.topology))
}

/// A CPU for each rank, of those it was found on, no two with the same name (of a core, or of the CPU); None: there are not so many.
fn matched(found: &[Vec<u32>], name: impl Fn(u32) -> u32) -> Option<Vec<u32>> {
    // Augmenting paths: a rank without a place may push another one to a place that is free.
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
