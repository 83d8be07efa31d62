//! Ranks that the kernel may migrate during timed intervals, from their CPU affinity.

use std::collections::BTreeMap;

use crate::frame::records::{kinds, BindState, MachineRecord, Placement, Warning};
use crate::frame::units::count;

const THREADS_PER_CORE: u64 = 2;

/// A rank, its number of cores, and its CPUs as ranges (first, last).
type RankAffinity = (usize, Option<u64>, Vec<(u64, u64)>);

/// Warns of ranks that share their host and may run on several cores; a host with fewer CPUs than ranks has another warning. A single
/// rank on its host competes with no other. None as well if no binding is recorded.
#[must_use]
pub fn shared_host_warning(machine: &MachineRecord) -> Option<Warning> {
    let binding = machine.binding.as_ref()?;
    let mut placed: Vec<(u64, Placement)> = Vec::new();
    for (host, of_host) in (0..).zip(&binding.hosts) {
        let place = |cpus: &String, cores: Option<u64>| Placement { host, cpus: cpus.clone(), cores };
        placed.extend(of_host.ranks.iter().map(|r| (r.rank, place(&r.cpus, r.cores))));
    }
    placed.sort_by_key(|(rank, _)| *rank);
    let placement: Vec<Placement> = placed.into_iter().map(|(_, place)| place).collect();
    let has_company = |place: &Placement| machine.hosts.get(host_index(place.host)).is_some_and(|host| host.ranks > 1);
    unbound_warning(
        machine,
        &placement,
        unbound_ranks(&placement).into_iter().filter(|rank| has_company(&placement[*rank])),
    )
}

/// Warns of ranks that may run on several cores, on all hosts with a CPU for each rank: migration also affects messages between hosts.
#[must_use]
pub fn message_warning(machine: &MachineRecord, placement: &[Placement]) -> Option<Warning> {
    unbound_warning(machine, placement, unbound_ranks(placement))
}

fn host_index(host: u64) -> usize {
    usize::try_from(host).unwrap_or(usize::MAX)
}

fn bind_state(machine: &MachineRecord, place: &Placement) -> Option<BindState> {
    Some(machine.binding.as_ref()?.hosts.get(host_index(place.host))?.state.clone())
}

fn unbound_warning(
    machine: &MachineRecord,
    placement: &[Placement],
    loose: impl IntoIterator<Item = usize>,
) -> Option<Warning> {
    let has_enough_cpus =
        |rank: &usize| !matches!(bind_state(machine, &placement[*rank]), Some(BindState::TooFewCpus { .. }));
    let loose: Vec<usize> = loose.into_iter().filter(has_enough_cpus).collect();
    let rank = *loose.first()?;
    let first = &placement[rank];
    let ranks = loose.len() as u64;
    let all = count(ranks, "rank");
    let which = if ranks == 1 { String::new() } else { format!(" ({all} in all)") };
    let host = machine.hosts.get(host_index(first.host)).map_or("", |host| host.name.as_str());
    let (cpus, state) = (&first.cpus, bind_state(machine, first));
    let why = state.as_ref().map_or_else(String::new, unbound_reason);
    let warning =
        kinds::NOT_BOUND.warning().with_figure("ranks", ranks).with_figure("rank", rank).with_figure("cpus", cpus);
    let warning = warning.with_figure("host", host).with_figure("state", &state).with_next_step(remedy(state.as_ref()));
    Some(warning.with_text(
        format!("{all} not bound to a core"),
        format!(
            "Rank {rank}{which} is not bound to a core: it may run on CPUs {cpus} of host {host}, and the kernel may migrate it during \
             measurements{why}."
        ),
    ))
}

/// Why a rank is not bound, as the end of the sentence.
pub(crate) fn unbound_reason(state: &BindState) -> String {
    match state {
        BindState::Before => "; the launcher gave it several cores".into(),
        BindState::Program => String::new(),
        BindState::NotAsked => "; --bind none does not bind it".into(),
        BindState::Alone => "; it is alone on its host, where --bind auto does not bind".into(),
        BindState::TooFewCpus { ranks, cpus } => {
            format!("; {} have {}", count(*ranks, "rank"), count(*cpus, "CPU"))
        }
        BindState::Neighbours { first, .. } => format!(
            "; other processes are bound to CPUs that the ranks need (process {}, {}, CPUs {})",
            first.process, first.program, first.cpus
        ),
        BindState::Busy { other_process_percent: others_percent } => {
            format!(
                "; other processes used {} CPUs before the start, and a bound rank would wait for them",
                cpu_usage(*others_percent)
            )
        }
        BindState::Refused { message } => format!("; {message}"),
    }
}

pub(crate) fn remedy(state: Option<&BindState>) -> &'static str {
    match state {
        Some(BindState::NotAsked) => "Omit --bind none, or bind each rank to a core: with Open MPI --bind-to core, with MPICH -bind-to core.",
        Some(BindState::Before) => "--bind core binds each rank to one of its CPUs; or use the launcher: with Open MPI --bind-to core, with MPICH -bind-to core.",
        Some(BindState::Alone) => "--bind core binds it to a CPU.",
        Some(BindState::Neighbours { .. }) => {
            "Use separate CPUs for each run (a cpuset, taskset, numactl), or wait for the other process. --bind core binds the ranks nevertheless."
        }
        Some(BindState::Busy { .. }) => {
            "Measure on an exclusive machine. --bind core binds the ranks nevertheless."
        }
        _ => kinds::NOT_BOUND.next_step,
    }
}

/// Formats a CPU usage, given in percent of one CPU, as a number of CPUs.
#[must_use]
pub fn cpu_usage(percent: u64) -> String {
    format!("{:.1}", percent as f64 / 100.0)
}

/// Ranks that may run on several cores, ascending. Where cores are unknown: ranks that may run on several CPUs and share one of them with
/// another rank, or that are alone on a host with more than one core.
#[must_use]
pub fn unbound_ranks(placement: &[Placement]) -> Vec<usize> {
    // Per host: the number of all pairs of ranks of a large machine would be too large.
    let mut of_host: BTreeMap<u64, Vec<RankAffinity>> = BTreeMap::new();
    for (rank, place) in placement.iter().enumerate() {
        of_host.entry(place.host).or_default().push((rank, place.cores, parse_cpu_ranges(&place.cpus)));
    }
    let mut loose: Vec<usize> = of_host.values().flat_map(|ranks| unbound_ranks_of_host(ranks)).collect();
    loose.sort_unstable();
    loose
}

fn unbound_ranks_of_host(ranks: &[RankAffinity]) -> Vec<usize> {
    let is_loose = |(rank, cores, cpus): &&RankAffinity| {
        if let Some(cores) = cores {
            return *cores > 1;
        }
        let number =
            cpus.iter().map(|(first, last)| last.saturating_sub(*first).saturating_add(1)).fold(0, u64::saturating_add);
        let shares = || ranks.iter().any(|(other, _, theirs)| other != rank && overlap(cpus, theirs));
        number > 1 && (shares() || (ranks.len() == 1 && number > THREADS_PER_CORE))
    };
    ranks.iter().filter(is_loose).map(|(rank, ..)| *rank).collect()
}

/// Parses `0-3,8` into pairs of first and last; invalid parts are omitted.
fn parse_cpu_ranges(list: &str) -> Vec<(u64, u64)> {
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

    /// Two hosts with two ranks each; `state` is that of the first.
    fn warned_ranks(cpus: [&str; 4], cores: [u64; 4], state: BindState) -> Option<(u64, u64, Option<BindState>)> {
        let mut machine = machine(vec![host("a", 2), host("b", 2)], &[]);
        let hosts = &mut machine.binding.as_mut().unwrap().hosts;
        hosts[0].state = state;
        let ranks = hosts.iter_mut().flat_map(|h| &mut h.ranks);
        for (rank, (cpus, cores)) in ranks.zip(cpus.into_iter().zip(cores)) {
            (rank.cpus, rank.cores) = (cpus.into(), Some(cores));
        }
        shared_host_warning(&machine).map(|warning| {
            let of = |name: &str| warning.figures[name].clone();
            let number = |name: &str| of(name).as_u64().unwrap();
            (number("ranks"), number("rank"), serde_json::from_value(of("state")).unwrap())
        })
    }

    #[test]
    fn ranks_on_one_core_each_are_bound() {
        assert_eq!(warned_ranks(["0", "1", "0,8", "1"], [1; 4], BindState::Program), None);
        let all = warned_ranks(["0-1", "0-1", "0", "1"], [2, 2, 1, 1], BindState::NotAsked);
        assert_eq!(all, Some((2, 0, Some(BindState::NotAsked))));
        // The other host has its own state.
        let other = warned_ranks(["0", "1", "0-3", "4-7"], [1, 1, 4, 4], BindState::Program);
        assert_eq!(other, Some((2, 2, Some(BindState::Before))));
    }

    #[test]
    fn a_list_of_all_numbers_is_unbound_and_no_panic() {
        let all = Placement { host: 0, cpus: "0-18446744073709551615".into(), cores: None };
        assert_eq!(unbound_ranks(&[all.clone(), all]), [0, 1]);
    }

    #[test]
    fn an_oversubscribed_host_has_its_own_warning() {
        let crowded = BindState::TooFewCpus { ranks: 2, cpus: 1 };
        assert_eq!(warned_ranks(["0-1", "0-1", "0", "1"], [2, 2, 1, 1], crowded), None);
    }

    #[test]
    fn a_single_rank_is_warned_about_only_for_messages() {
        let mut alone = machine(vec![host("a", 1)], &[]);
        let of_host = &mut alone.binding.as_mut().unwrap().hosts[0];
        of_host.state = BindState::Alone;
        (of_host.ranks[0].cpus, of_host.ranks[0].cores) = ("0-7".into(), Some(8));
        assert_eq!(shared_host_warning(&alone), None);
        let placement = [Placement { host: 0, cpus: "0-7".into(), cores: Some(8) }];
        let found = message_warning(&alone, &placement).unwrap();
        assert!(found.cause.ends_with("does not bind.") && found.next_step == "--bind core binds it to a CPU.");
        alone.binding = None;
        assert_eq!(shared_host_warning(&alone), None);
        let found = message_warning(&alone, &placement).unwrap();
        assert!(found.figures["state"].is_null() && found.cause.ends_with("during measurements."));
    }
}
