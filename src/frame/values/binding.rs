//! Which ranks may be moved by the kernel inside the clock, from where they were allowed to run.

use std::collections::BTreeMap;

use crate::frame::records::{kinds, BindState, Machine, Placement, Warning};
use crate::frame::units::count;

/// CPUs that two hardware threads of one core are.
const CPUS_OF_A_CORE: u64 = 2;

/// A rank, its cores, and its CPUs as first and last of ranges.
type Bound = (usize, Option<u64>, Vec<(u64, u64)>);

/// Ranks that share their host and may run on several cores; those of a host with fewer CPUs than ranks are told of by another warning.
/// A rank alone on its host is in no other one's way. None as well where nothing is recorded.
#[must_use]
pub fn in_each_others_way(machine: &Machine) -> Option<Warning> {
    let binding = machine.binding.as_ref()?;
    let mut placed: Vec<(u64, Placement)> = Vec::new();
    for (host, of_host) in (0..).zip(&binding.hosts) {
        let place = |cpus: &String, cores: Option<u64>| Placement { host, cpus: cpus.clone(), cores };
        placed.extend(of_host.ranks.iter().map(|r| (r.rank, place(&r.cpus, r.cores))));
    }
    placed.sort_by_key(|(rank, _)| *rank);
    let placement: Vec<Placement> = placed.into_iter().map(|(_, place)| place).collect();
    let has_company = |place: &Placement| machine.hosts.get(index(place.host)).is_some_and(|host| host.ranks > 1);
    of_ranks(machine, &placement, loose_ranks(&placement).into_iter().filter(|rank| has_company(&placement[*rank])))
}

/// Ranks that may run on several cores, of all hosts that have a CPU for each of theirs: a message between hosts is in the way of a
/// rank that moves, too.
#[must_use]
pub fn not_bound(machine: &Machine, placement: &[Placement]) -> Option<Warning> {
    of_ranks(machine, placement, loose_ranks(placement))
}

fn index(host: u64) -> usize {
    usize::try_from(host).unwrap_or(usize::MAX)
}

fn state_of(machine: &Machine, place: &Placement) -> Option<BindState> {
    Some(machine.binding.as_ref()?.hosts.get(index(place.host))?.state.clone())
}

fn of_ranks(machine: &Machine, placement: &[Placement], loose: impl IntoIterator<Item = usize>) -> Option<Warning> {
    let has_room = |rank: &usize| !matches!(state_of(machine, &placement[*rank]), Some(BindState::TooFewCpus { .. }));
    let loose: Vec<usize> = loose.into_iter().filter(has_room).collect();
    let rank = *loose.first()?;
    let first = &placement[rank];
    let ranks = loose.len() as u64;
    let all = count(ranks, "rank");
    let which = if ranks == 1 { String::new() } else { format!(" ({all} in all)") };
    let host = machine.hosts.get(index(first.host)).map_or("", |host| host.name.as_str());
    let (cpus, state) = (&first.cpus, state_of(machine, first));
    let why = state.as_ref().map_or_else(String::new, because);
    let warning = kinds::NOT_BOUND.warning().figure("ranks", ranks).figure("rank", rank).figure("cpus", cpus);
    let warning = warning.figure("host", host).figure("state", &state).next(remedy(state.as_ref()));
    Some(warning.told(
        format!("{all} not bound to a core"),
        format!(
            "Rank {rank}{which} is not bound to a core: it may run on CPUs {cpus} of host {host}, and the kernel may move it inside the \
             clock{why}."
        ),
    ))
}

/// Behind the sentence that a rank is not bound: why.
pub(crate) fn because(state: &BindState) -> String {
    match state {
        BindState::Before => "; the launcher gave it several cores".into(),
        BindState::Program => String::new(),
        BindState::NotAsked => "; --bind none leaves it there".into(),
        BindState::Alone => "; it is alone on its host, where --bind auto binds nobody".into(),
        BindState::TooFewCpus { ranks, cpus } => {
            format!("; {} have {}", count(*ranks, "rank"), count(*cpus, "CPU"))
        }
        BindState::Neighbours { first, .. } => format!(
            "; other programs are bound to CPUs that the ranks would need (process {}, {}, CPUs {})",
            first.process, first.program, first.cpus
        ),
        BindState::Busy { others_percent } => {
            format!(
                "; others used {} CPUs before the start, and a bound rank would wait for them",
                of_cpus(*others_percent)
            )
        }
        BindState::Refused { message } => format!("; {message}"),
    }
}

/// What to do about a rank that is not bound.
pub(crate) fn remedy(state: Option<&BindState>) -> &'static str {
    match state {
        Some(BindState::NotAsked) => "Leave --bind none out, or bind each rank to a core: with Open MPI --bind-to core, with MPICH -bind-to core.",
        Some(BindState::Before) => "--bind core binds each rank to one of its CPUs; or let the launcher do it: with Open MPI --bind-to core, with MPICH -bind-to core.",
        Some(BindState::Alone) => "--bind core binds it to a CPU.",
        Some(BindState::Neighbours { .. }) => {
            "Give each run CPUs of its own (a cpuset, taskset, numactl), or wait for the other program. --bind core binds the ranks beside it."
        }
        Some(BindState::Busy { .. }) => {
            "Measure on a machine that nobody else uses. --bind core binds the ranks whatever others do."
        }
        _ => kinds::NOT_BOUND.next_step,
    }
}

/// A use of CPUs, in percent of one.
#[must_use]
pub fn of_cpus(percent: u64) -> String {
    format!("{:.1}", percent as f64 / 100.0)
}

/// The ranks that are not bound to a core, ascending: they may run on several cores. Where cores are not known: on several CPUs, and they
/// share one of them with another rank, or have a whole host for themselves that is more than one core.
#[must_use]
pub fn loose_ranks(placement: &[Placement]) -> Vec<usize> {
    // Host by host: all pairs of ranks of a large machine would be too many.
    let mut of_host: BTreeMap<u64, Vec<Bound>> = BTreeMap::new();
    for (rank, place) in placement.iter().enumerate() {
        of_host.entry(place.host).or_default().push((rank, place.cores, ranges(&place.cpus)));
    }
    let mut loose: Vec<usize> = of_host.values().flat_map(|ranks| loose_of_host(ranks)).collect();
    loose.sort_unstable();
    loose
}

fn loose_of_host(ranks: &[Bound]) -> Vec<usize> {
    let is_loose = |(rank, cores, cpus): &&Bound| {
        if let Some(cores) = cores {
            return *cores > 1;
        }
        let number =
            cpus.iter().map(|(first, last)| last.saturating_sub(*first).saturating_add(1)).fold(0, u64::saturating_add);
        let shares = || ranks.iter().any(|(other, _, theirs)| other != rank && overlap(cpus, theirs));
        number > 1 && (shares() || (ranks.len() == 1 && number > CPUS_OF_A_CORE))
    };
    ranks.iter().filter(is_loose).map(|(rank, ..)| *rank).collect()
}

/// `0-3,8` as pairs of first and last; what cannot be read is left out.
fn ranges(list: &str) -> Vec<(u64, u64)> {
    let pair = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
    };
    list.split(',').filter_map(pair).collect()
}

fn overlap(a: &[(u64, u64)], b: &[(u64, u64)]) -> bool {
    a.iter().any(|(first, last)| b.iter().any(|(f, l)| first <= l && f <= last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::records::fixture::{host, machine};

    /// Two hosts with two ranks each, as their first host is said to have been treated.
    fn warned(cpus: [&str; 4], cores: [u64; 4], state: BindState) -> Option<(u64, u64, Option<BindState>)> {
        let mut machine = machine(vec![host("a", 2), host("b", 2)], &[]);
        let hosts = &mut machine.binding.as_mut().unwrap().hosts;
        hosts[0].state = state;
        let ranks = hosts.iter_mut().flat_map(|h| &mut h.ranks);
        for (rank, (cpus, cores)) in ranks.zip(cpus.into_iter().zip(cores)) {
            (rank.cpus, rank.cores) = (cpus.into(), Some(cores));
        }
        in_each_others_way(&machine).map(|warning| {
            let of = |name: &str| warning.figures[name].clone();
            let number = |name: &str| of(name).as_u64().unwrap();
            (number("ranks"), number("rank"), serde_json::from_value(of("state")).unwrap())
        })
    }

    #[test]
    fn ranks_on_one_core_each_are_bound() {
        assert_eq!(warned(["0", "1", "0,8", "1"], [1; 4], BindState::Program), None);
        let all = warned(["0-1", "0-1", "0", "1"], [2, 2, 1, 1], BindState::NotAsked);
        assert_eq!(all, Some((2, 0, Some(BindState::NotAsked))));
        // The other host has its own state.
        let other = warned(["0", "1", "0-3", "4-7"], [1, 1, 4, 4], BindState::Program);
        assert_eq!(other, Some((2, 2, Some(BindState::Before))));
    }

    #[test]
    fn a_list_of_all_numbers_is_loose_and_no_panic() {
        let all = Placement { host: 0, cpus: "0-18446744073709551615".into(), cores: None };
        assert_eq!(loose_ranks(&[all.clone(), all]), [0, 1]);
    }

    #[test]
    fn a_crowded_host_has_a_warning_of_its_own() {
        let crowded = BindState::TooFewCpus { ranks: 2, cpus: 1 };
        assert_eq!(warned(["0-1", "0-1", "0", "1"], [2, 2, 1, 1], crowded), None);
    }

    #[test]
    fn a_rank_alone_is_in_nobodys_way_but_counts_for_messages() {
        let mut alone = machine(vec![host("a", 1)], &[]);
        let of_host = &mut alone.binding.as_mut().unwrap().hosts[0];
        of_host.state = BindState::Alone;
        (of_host.ranks[0].cpus, of_host.ranks[0].cores) = ("0-7".into(), Some(8));
        assert_eq!(in_each_others_way(&alone), None);
        let placement = [Placement { host: 0, cpus: "0-7".into(), cores: Some(8) }];
        let found = not_bound(&alone, &placement).unwrap();
        assert!(found.cause.ends_with("binds nobody.") && found.next_step == "--bind core binds it to a CPU.");
        alone.binding = None;
        assert_eq!(in_each_others_way(&alone), None);
        let found = not_bound(&alone, &placement).unwrap();
        assert!(found.figures["state"].is_null() && found.cause.ends_with("inside the clock."));
    }
}
