use super::*;
use crate::frame::system::topology::CpuLocation;

/// A topology numbered as by Linux: first threads of all cores, package by package, then second threads.
fn machine(packages: u32, nodes: u32, cores: u32, threads: u32) -> Topology {
    let all = packages * nodes * cores;
    let place = |cpu: u32| {
        let core = cpu % all;
        let node = core / cores;
        (cpu, CpuLocation { package: i64::from(node / nodes), node: i64::from(node), core })
    };
    Topology((0..all * threads).map(place).collect())
}

fn all_cpus(topology: &Topology) -> Vec<u32> {
    topology.0.keys().copied().collect()
}

/// Ranks with equal CPU sets.
fn equal_cpu_sets(ranks: usize, cpus: &[u32]) -> Vec<Vec<u32>> {
    vec![cpus.to_vec(); ranks]
}

fn facts<'a>(found: &'a [Vec<u32>], topology: &'a Topology) -> HostFacts<'a> {
    HostFacts {
        rank_cpus: found,
        launcher_binds: false,
        quota: None,
        topology,
        other_process_percent: None,
        claims: &[],
    }
}

fn claim(cpus: &[u32], is_busy: bool) -> BoundThread {
    BoundThread { process: 77, program: "beff-raw".into(), cpus: cpus.to_vec(), is_busy }
}

fn auto_of(ranks: usize, cpus: &[u32], topology: &Topology) -> BindingChoice {
    choose_binding(BindPolicy::Auto, &facts(&equal_cpu_sets(ranks, cpus), topology)).unwrap()
}

#[test]
fn ranks_are_spread_over_packages_and_cores_first() {
    let two = machine(2, 1, 4, 2);
    let all = all_cpus(&two);
    assert_eq!(spread(2, &all, &two), [0, 4]);
    assert_eq!(spread(3, &all, &two), [0, 1, 4]);
    assert_eq!(spread(8, &all, &two), [0, 1, 2, 3, 4, 5, 6, 7]);
    // The ninth rank gets a second hardware thread of the first package.
    assert_eq!(spread(9, &all, &two), [0, 1, 2, 3, 8, 4, 5, 6, 7]);
    assert_eq!(spread(16, &all, &two), [0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15]);
    let numa = machine(1, 4, 2, 1);
    assert_eq!(spread(4, &all_cpus(&numa), &numa), [0, 2, 4, 6]);
    assert_eq!(spread(5, &all_cpus(&numa), &numa), [0, 1, 2, 4, 6]);
}

/// A cpuset with holes: a single core of one package, one thread of each core of another.
#[test]
fn what_is_not_allowed_is_not_used() {
    let two = machine(2, 1, 4, 2);
    assert_eq!(spread(2, &[3, 6, 7], &two), [3, 6]);
    assert_eq!(spread(3, &[3, 6, 7], &two), [3, 6, 7]);
    assert_eq!(spread(4, &[3, 5, 11, 13], &two), [3, 11, 5, 13]);
    assert_eq!(spread(2, &[3, 11], &two), [3, 11]);
}

/// For every topology and number of ranks: allowed CPUs only, each once, separate cores while available, packages balanced.
#[test]
fn every_choice_is_sound() {
    for (packages, nodes, cores_each, threads) in
        [(1, 1, 1, 1), (1, 1, 2, 1), (1, 1, 4, 2), (2, 1, 3, 2), (2, 2, 2, 4), (3, 1, 1, 1)]
    {
        let topology = machine(packages, nodes, cores_each, threads);
        let all = all_cpus(&topology);
        for hole in 0..4 {
            let allowed: Vec<u32> = all.iter().copied().filter(|cpu| hole == 0 || cpu % 5 != hole).collect();
            for ranks in 1..=allowed.len() {
                let chosen = spread(ranks, &allowed, &topology);
                let distinct: BTreeSet<u32> = chosen.iter().copied().collect();
                assert_eq!((chosen.len(), distinct.len()), (ranks, ranks));
                assert!(distinct.iter().all(|cpu| allowed.contains(cpu)));
                let there = cores(&allowed, &topology).len();
                assert_eq!(cores(&chosen, &topology).len(), ranks.min(there), "{ranks} of {allowed:?}");
                assert_eq!(chosen, spread(ranks, &allowed, &topology));
                if hole == 0 {
                    let of_node = |node: i64| chosen.iter().filter(|cpu| topology.location(**cpu).node == node).count();
                    let counts: Vec<usize> = (0..i64::from(packages * nodes)).map(of_node).collect();
                    assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1, "{counts:?}");
                    assert!(chosen.windows(2).all(|p| topology.location(p[0]).node <= topology.location(p[1]).node));
                }
            }
        }
    }
}

#[test]
fn unbound_ranks_get_a_cpu_each() {
    let one = machine(1, 1, 2, 1);
    let choice = auto_of(2, &[0, 1], &one);
    assert_eq!((choice.state, choice.cpus, choice.neighbour), (BindState::Program, vec![0, 1], None));
    // A cpuset or taskset around all ranks binds none of them.
    let many = machine(2, 1, 8, 2);
    assert_eq!(auto_of(2, &[4, 5, 6], &many).cpus, [4, 5]);
    // Two hardware threads of one core for two ranks.
    assert_eq!(auto_of(2, &[3, 19], &many).cpus, [3, 19]);
}

#[test]
fn what_the_launcher_bound_stays() {
    let many = machine(2, 1, 4, 2);
    let to_cores = [vec![0, 8], vec![1, 9]];
    let to_threads = [vec![0], vec![8]];
    let to_sockets = [vec![0, 1, 2, 3, 8, 9, 10, 11], vec![4, 5, 6, 7, 12, 13, 14, 15]];
    let odd = [vec![0], vec![0], vec![1, 2]];
    for found in [to_cores.as_slice(), &to_threads, &to_sockets, &odd] {
        for policy in [BindPolicy::Auto, BindPolicy::None] {
            let choice = choose_binding(policy, &facts(found, &many)).unwrap();
            assert_eq!(choice, BindingChoice::unchanged(BindState::Before), "{found:?}");
        }
    }
    // Both on one socket because mpirun was configured so, which equal CPU sets do not show.
    let found = equal_cpu_sets(2, &[0, 1, 2, 3]);
    let launcher_bound = HostFacts { launcher_binds: true, ..facts(&found, &many) };
    assert_eq!(choose_binding(BindPolicy::Auto, &launcher_bound).unwrap().state, BindState::Before);
    assert!(!needs_claims(BindPolicy::Auto, &launcher_bound));
}

#[test]
fn more_ranks_than_cpus_are_left() {
    let one = machine(1, 1, 2, 1);
    let state = |ranks: usize, cpus: &[u32], quota| {
        let found = equal_cpu_sets(ranks, cpus);
        choose_binding(BindPolicy::Auto, &HostFacts { quota, ..facts(&found, &one) }).unwrap().state
    };
    assert_eq!(state(3, &[0, 1], None), BindState::TooFewCpus { ranks: 3, cpus: 2 });
    assert_eq!(state(2, &[1], None), BindState::TooFewCpus { ranks: 2, cpus: 1 });
    assert_eq!(state(2, &[0, 1], Some(0.5)), BindState::TooFewCpus { ranks: 2, cpus: 1 });
    assert_eq!(state(2, &[0, 1], Some(1.5)), BindState::Program);
}

#[test]
fn a_single_rank_stays_unbound_unless_core_is_requested() {
    let many = machine(1, 1, 4, 2);
    let found = equal_cpu_sets(1, &all_cpus(&many));
    assert_eq!(
        choose_binding(BindPolicy::Auto, &facts(&found, &many)).unwrap(),
        BindingChoice::unchanged(BindState::Alone)
    );
    assert_eq!(choose_binding(BindPolicy::Core, &facts(&found, &many)).unwrap().cpus, [0]);
    assert_eq!(choose_binding(BindPolicy::None, &facts(&found, &many)).unwrap().state, BindState::NotAsked);
    for policy in [BindPolicy::Auto, BindPolicy::Core, BindPolicy::None] {
        let found = equal_cpu_sets(1, &[2, 6]);
        assert_eq!(choose_binding(policy, &facts(&found, &many)).unwrap().state, BindState::Before, "on one core");
    }
}

/// Two runs on one node: the second uses the remaining CPUs, or stays unbound.
#[test]
fn cpus_of_a_neighbour_are_left_to_it() {
    let four = machine(1, 1, 4, 1);
    let found = equal_cpu_sets(2, &[0, 1, 2, 3]);
    let with =
        |policy, claims: &[BoundThread]| choose_binding(policy, &HostFacts { claims, ..facts(&found, &four) }).unwrap();
    assert_eq!(with(BindPolicy::Auto, &[claim(&[0], true), claim(&[1], true)]).cpus, [2, 3]);
    let crowded = [claim(&[0], true), claim(&[1], true), claim(&[3], true)];
    let left = with(BindPolicy::Auto, &crowded);
    let first = BoundProcess { process: 77, program: "beff-raw".into(), cpus: "0".into() };
    assert_eq!(left, BindingChoice::unchanged(BindState::Neighbours { free_cpus: 1, first }));
    // Idle bound processes are avoided if there are enough other CPUs, and ignored if not.
    assert_eq!(with(BindPolicy::Auto, &[claim(&[0], false)]).cpus, [1, 2]);
    let asleep = [claim(&[0], false), claim(&[1], false), claim(&[2], true)];
    assert_eq!(with(BindPolicy::Auto, &asleep).cpus, [0, 1]);
    // With `core` ranks are bound next to busy processes, which is recorded.
    let forced = with(BindPolicy::Core, &crowded);
    assert_eq!((forced.cpus.as_slice(), forced.neighbour.is_some()), ([0, 1].as_slice(), true));
    assert_eq!(with(BindPolicy::Core, &[claim(&[0], true)]).neighbour, None, "other cores were free");
}

#[test]
fn a_neighbour_on_one_thread_has_the_core() {
    let smt = machine(1, 1, 2, 2);
    let found = equal_cpu_sets(2, &[0, 1, 2, 3]);
    let choice =
        choose_binding(BindPolicy::Auto, &HostFacts { claims: &[claim(&[2], true)], ..facts(&found, &smt) }).unwrap();
    assert_eq!(choice.cpus, [1, 3], "both threads of the other core");
}

#[test]
fn core_binds_within_what_the_launcher_gave() {
    let many = machine(2, 1, 4, 1);
    let sockets = [vec![0, 1, 2, 3], vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![4, 5, 6, 7]];
    assert_eq!(choose_binding(BindPolicy::Core, &facts(&sockets, &many)).unwrap().cpus, [0, 1, 4, 5]);
    // The first rank must yield its first choice to a rank that has no other.
    let tight = [vec![0, 1], vec![0], vec![1, 2]];
    assert_eq!(choose_binding(BindPolicy::Core, &facts(&tight, &many)).unwrap().cpus, [1, 0, 2]);
    // Already bound to cores.
    let bound = [vec![2], vec![5]];
    assert_eq!(
        choose_binding(BindPolicy::Core, &facts(&bound, &many)).unwrap(),
        BindingChoice::unchanged(BindState::Before)
    );
    // Two ranks on the two hardware threads of one core.
    let smt = machine(1, 1, 2, 2);
    let same_core = [vec![0, 2], vec![0, 2]];
    assert_eq!(choose_binding(BindPolicy::Core, &facts(&same_core, &smt)).unwrap().cpus, [0, 2]);
}

#[test]
fn core_is_refused_where_it_cannot_be() {
    let one = machine(1, 1, 2, 1);
    for (found, part) in [
        (equal_cpu_sets(3, &[0, 1]), "3 ranks of a host may use only 2 (CPUs 0-1)"),
        (vec![vec![0], vec![0], vec![1, 2, 3]], "fewer CPUs than there are ranks"),
    ] {
        let refused = choose_binding(BindPolicy::Core, &facts(&found, &one)).unwrap_err();
        assert!(refused.cause.contains("--bind core") && refused.cause.contains(part), "{}", refused.cause);
        assert!(refused.next_step.contains("leave --bind core out"));
    }
}

#[test]
fn claims_are_not_collected_where_nothing_is_bound() {
    let one = machine(1, 1, 2, 1);
    let asks = |policy, found: &[Vec<u32>]| needs_claims(policy, &facts(found, &one));
    assert!(asks(BindPolicy::Auto, &equal_cpu_sets(2, &[0, 1])) && asks(BindPolicy::Core, &equal_cpu_sets(2, &[0, 1])));
    assert!(
        !asks(BindPolicy::None, &equal_cpu_sets(2, &[0, 1])) && !asks(BindPolicy::Auto, &equal_cpu_sets(3, &[0, 1]))
    );
    assert!(!asks(BindPolicy::Auto, &equal_cpu_sets(1, &[0, 1])) && !asks(BindPolicy::Core, &[vec![0], vec![1]]));
}

/// Compilers, an unbound run of another user, a hypervisor with steal time.
#[test]
fn ranks_stay_free_on_a_busy_machine() {
    let four = machine(1, 1, 4, 1);
    let state = |ranks, others_percent, policy| {
        let found = equal_cpu_sets(ranks, &[0, 1, 2, 3]);
        choose_binding(policy, &HostFacts { other_process_percent: others_percent, ..facts(&found, &four) })
            .unwrap()
            .state
    };
    for (ranks, others, busy) in
        [(4, 25, false), (4, 26, true), (2, 200, false), (2, 225, false), (2, 226, true), (3, 0, false)]
    {
        let expected = if busy { BindState::Busy { other_process_percent: others } } else { BindState::Program };
        assert_eq!(state(ranks, Some(others), BindPolicy::Auto), expected, "{ranks} ranks, {others} %");
        assert_eq!(state(ranks, Some(others), BindPolicy::Core), BindState::Program, "on request");
    }
    assert_eq!(state(4, None, BindPolicy::Auto), BindState::Program, "unknown");
    // A bound neighbour is named.
    let found = equal_cpu_sets(4, &[0, 1, 2, 3]);
    let claims = [claim(&[0], true)];
    let both = HostFacts { other_process_percent: Some(100), claims: &claims, ..facts(&found, &four) };
    assert!(matches!(
        choose_binding(BindPolicy::Auto, &both).unwrap().state,
        BindState::Neighbours { free_cpus: 3, .. }
    ));
}
