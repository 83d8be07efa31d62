use super::*;

fn bound() -> BindingOutcome {
    BindingOutcome {
        requested: BindPolicy::Auto,
        launcher: Some("core".into()),
        initial_cpus: Vec::new(),
        state: BindState::Program,
        neighbour: None,
    }
}

/// A rank on CPU `cpu`, which found all CPUs up to 3.
fn rank(host: &str, cpu: u32) -> RankSurvey {
    RankSurvey {
        host: host.into(),
        kernel: format!("kernel of {host}"),
        cpu: "cpu".into(),
        cpus: vec![cpu],
        cores: Some(BTreeSet::from([format!("core {}", cpu / 2)])),
        found: vec![0, 1, 2, 3],
        state: BindState::Program,
        neighbour: None,
        quota: None,
        memory_bytes: 1 << 34,
        limit_bytes: None,
        cache_bytes: 1 << 20,
        caches: Caches::of(&[0]),
        taken_back_by: None,
    }
}

#[test]
fn nodes_are_described_in_the_order_of_their_first_ranks() {
    let limited = RankSurvey { limit_bytes: Some(3 << 30), taken_back_by: Some("balloon".into()), ..rank("a", 3) };
    let z = HostSurvey::of_ranks(&[(0, rank("z", 0)), (2, rank("z", 1)), (3, rank("z", 2))]);
    let a = HostSurvey::of_ranks(&[(1, rank("a", 0)), (4, limited.clone())]);
    let (sums, description) = describe(merge_hosts(vec![a, z]), &bound());
    assert_eq!((sums.hosts, sums.ranks_of_first_host, sums.memory_per_rank_bytes), (2, 3, (3 << 30) / 2));
    assert_eq!([0, 1, 2, 3, 4, 5].map(|rank| sums.host_of(rank)), [0, 1, 0, 0, 1, 1]);
    assert_eq!(sums.host_runs, [(0, 0), (1, 1), (2, 0), (4, 1)], "neighbours on one host are one run");
    assert_eq!(sums.ballooning_ranks, [] as [u64; 0], "only what the first rank of a host found counts");
    let names: Vec<&str> = description.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!((names, description.kernel.as_str()), (vec!["z", "a"], "kernel of z"));
    let z = &description.bindings[0];
    assert_eq!((z.initial_cpus.as_str(), z.cpus.as_str(), z.cores), ("0-3", "0-2", Some(2)));
    assert_eq!(description.hosts[0].cores, 4);
    let places: Vec<(u64, String)> = description.placement().into_iter().map(|p| (p.host, p.cpus)).collect();
    let expected = [(0, "0"), (1, "0"), (0, "1"), (0, "2"), (1, "3")].map(|(host, cpus)| (host, cpus.to_owned()));
    assert_eq!(places, expected);
    let b = HostSurvey::of_ranks(&[(4, limited)]);
    assert_eq!(describe(merge_hosts(vec![b]), &bound()).0.ballooning_ranks, [4]);
}

/// Nodes of one name are one host, as if all their ranks had been on one node.
#[test]
fn nodes_of_one_name_are_one_host() {
    let unbound = RankSurvey { state: BindState::NotAsked, limit_bytes: Some(1 << 30), ..rank("a", 3) };
    let ranks = [(0, rank("a", 0)), (1, rank("a", 1)), (2, unbound), (3, rank("a", 2))];
    let parts = |nodes: [&[usize]; 2]| {
        nodes.map(|node| HostSurvey::of_ranks(&node.iter().map(|rank| ranks[*rank].clone()).collect::<Vec<_>>()))
    };
    let whole = merge_hosts(vec![HostSurvey::of_ranks(&ranks)]);
    for nodes in [parts([&[0, 1], &[2, 3]]), parts([&[1, 3], &[0, 2]])] {
        let [mut merged, mut expected] = [merge_hosts(nodes.into()), whole.clone()].map(|mut all| all.remove(0));
        // Ranks of different nodes share no cache.
        (merged.cache_share_bytes, expected.cache_share_bytes) = (0, 0);
        assert_eq!(merged, expected);
    }
    assert_eq!(whole[0].binding.state, BindState::NotAsked);
    let unknown = RankSurvey { cores: None, ..rank("a", 0) };
    assert_eq!(HostSurvey::of_ranks(&[(0, unknown), (1, rank("a", 1))]).binding.cores, None);
}

/// 100 000 ranks, 128 on a node with 256 threads, unbound: the messages that reach rank 0.
#[test]
fn the_survey_of_many_ranks_is_small() {
    const RANKS: u64 = 100_000;
    const OF_NODE: u64 = 128;
    let all: Vec<u32> = (0..256).collect();
    let unbound = RankSurvey { cpus: all.clone(), found: all, ..rank("node", 0) };
    let node = HostSurvey::of_ranks(&(0..OF_NODE).map(|rank| (rank, unbound.clone())).collect::<Vec<_>>());
    let of_node = |first: u64| {
        let mut node = node.clone();
        node.record.name = format!("node{first:06}");
        node.binding.ranks.iter_mut().for_each(|rank| rank.rank += first);
        serde_json::to_vec(&node).unwrap()
    };
    let packed: Vec<Vec<u8>> = (0..RANKS).step_by(OF_NODE as usize).map(of_node).collect();
    let bytes: usize = packed.iter().map(Vec::len).sum();
    assert!(bytes < 100 * RANKS as usize, "{bytes} bytes");
    let nodes = packed.iter().map(|bytes| serde_json::from_slice(bytes).unwrap()).collect();
    let (sums, description) = describe(merge_hosts(nodes), &bound());
    assert_eq!((sums.hosts, description.placement().len() as u64), (782, 782 * OF_NODE));
    let broadcast = serde_json::to_vec(&sums).unwrap().len();
    // Hosts of ranks that are placed one by one in turn have a run for each rank.
    assert!(broadcast < 16 * 782, "{broadcast} bytes on every rank");
}
