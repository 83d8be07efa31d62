//! Properties of whole plans: every message has a receiver in every pattern, for any number of ranks.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::Value;

use super::*;

const MEMORY: u64 = 128 << 20;

fn plan(ranks: u64, seed: u64) -> CommPlan {
    CommPlan::new(ranks, seed, MEMORY, &PatternFamily::ALL).unwrap()
}

/// Step k of the sender is step k of the receiver, no rank sends twice to a rank or to itself, and the counts are correct.
fn check_pattern(pattern: &CommPattern, ranks: u64) {
    let name = format!("{} of {ranks} ranks", pattern.name);
    let all: Vec<Vec<ExchangeStep>> = (0..ranks).map(|rank| pattern.steps(rank)).collect();
    let mut messages = 0;
    for (rank, steps) in (0..).zip(&all) {
        for (k, step) in steps.iter().enumerate() {
            assert!(step.send_to.is_some() || step.receive_from.is_some(), "{name}: step {k} of {rank} is empty");
            if let Some(to) = step.send_to {
                messages += 1;
                assert_eq!(all[to as usize][k].receive_from, Some(rank), "{name}: step {k}, {rank} to {to}");
            }
            if let Some(from) = step.receive_from {
                assert_eq!(all[from as usize][k].send_to, Some(rank), "{name}: step {k}, {rank} from {from}");
            }
        }
        let sent: Vec<u64> = steps.iter().filter_map(|s| s.send_to).collect();
        assert!(!sent.contains(&rank), "{name}: {rank} to itself");
        assert_eq!(sent.iter().collect::<BTreeSet<_>>().len(), sent.len(), "{name}: {rank} to {sent:?}");
    }
    assert_eq!(pattern.messages, messages, "{name}");
    assert_eq!(pattern.max_steps(), all.iter().map(Vec::len).max().unwrap() as u64, "{name}");
    assert!(pattern.steps(ranks).is_empty(), "{name}");
    if let Some(rings) = pattern.rings() {
        check_rings(pattern, &rings, &all, &name);
    }
}

fn check_rings(pattern: &CommPattern, rings: &[Vec<u64>], all: &[Vec<ExchangeStep>], name: &str) {
    let mut covered = rings.concat();
    covered.sort_unstable();
    let expected = if pattern.family == PatternFamily::PingPong { 2 } else { all.len() as u64 };
    assert_eq!(covered, (0..expected).collect::<Vec<_>>(), "{name}");
    for ring in rings {
        for (position, &rank) in ring.iter().enumerate() {
            let left = ring[(position + ring.len() - 1) % ring.len()];
            let first = all[rank as usize].first().and_then(|s| s.send_to);
            assert_eq!(first, (ring.len() > 1).then_some(left), "{name}: rank {rank}");
        }
    }
}

#[test]
fn every_message_is_received_up_to_64_ranks() {
    for ranks in 2..=64 {
        for pattern in &plan(ranks, ranks).patterns {
            check_pattern(pattern, ranks);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn every_message_is_received(ranks in 2..=1024_u64, seed: u64, ring in 0..30_usize) {
        let plan = plan(ranks, seed);
        let random = plan.patterns.iter().filter(|p| p.family == PatternFamily::Random).skip(ring).take(1);
        for pattern in plan.patterns.iter().filter(|p| p.family != PatternFamily::Random).chain(random) {
            check_pattern(pattern, ranks);
        }
    }

    #[test]
    fn one_seed_is_one_plan(ranks in 2..64_u64, seed: u64) {
        let bytes = || serde_json::to_vec(&plan(ranks, seed)).unwrap();
        prop_assert_eq!(bytes(), bytes());
    }
}

#[test]
fn another_seed_changes_the_random_rings_alone() {
    let value = |seed| serde_json::to_value(plan(20, seed)).unwrap();
    let (one, mut other) = (value(1), value(2));
    let random = |v: &Value| -> Vec<Value> {
        v["patterns"].as_array().unwrap().iter().filter(|p| p["family"] == "random").cloned().collect()
    };
    assert!(random(&one).iter().zip(random(&other)).all(|(a, b)| a["rings"] != b["rings"]));
    assert_eq!((&one["seed"], &other["seed"]), (&Value::from(1), &Value::from(2)));
    other["seed"] = 1.into();
    for (index, pattern) in other["patterns"].as_array_mut().unwrap().iter_mut().enumerate() {
        if pattern["family"] == "random" {
            pattern["rings"] = one["patterns"][index]["rings"].clone();
        }
    }
    assert_eq!(one, other);
}

#[test]
fn names_and_order() {
    let names = |ranks| -> Vec<String> {
        let plan = plan(ranks, 0);
        plan.patterns.into_iter().filter(|p| p.family != PatternFamily::Random).map(|p| p.name).collect()
    };
    let common = [
        "ping-pong",
        "ring-1",
        "ring-2",
        "ring-3",
        "ring-4",
        "ring-5",
        "ring-6",
        "worst-cycle",
        "best-bisection",
        "worst-bisection",
        "cart-2d-acyclic",
        "cart-3d-acyclic",
        "cart-2d-cyclic-1",
    ];
    assert_eq!(names(8)[..13], common);
    assert_eq!(
        names(8)[13..],
        [
            "cart-2d-cyclic-2",
            "cart-2d-cyclic-all",
            "cart-3d-cyclic-1",
            "cart-3d-cyclic-2",
            "cart-3d-cyclic-3",
            "cart-3d-cyclic-all",
        ]
    );
    // Grids of 3x2x1, and of 2x1 and 2x1x1.
    assert_eq!(names(6)[16..], ["cart-3d-cyclic-2", "cart-3d-cyclic-all"]);
    assert_eq!(names(2)[13..], ["cart-2d-cyclic-all", "cart-3d-cyclic-1", "cart-3d-cyclic-all"]);
    let random = plan(8, 0).patterns.into_iter().filter(|p| p.family == PatternFamily::Random);
    assert!(random.map(|p| p.name).eq((1..=30).map(|n| format!("random-{n}"))));
}

#[test]
fn leaving_families_out_changes_nothing_else() {
    let whole = plan(12, 3);
    let part = CommPlan::new(12, 3, MEMORY, &[PatternFamily::Cartesian, PatternFamily::Random, PatternFamily::Random])
        .unwrap();
    let kept = whole.patterns.iter().filter(|p| matches!(p.family, PatternFamily::Random | PatternFamily::Cartesian));
    assert!(part.patterns.iter().eq(kept));
    assert_eq!((part.lmax_bytes, part.sizes_bytes), (whole.lmax_bytes, whole.sizes_bytes));
}

#[test]
fn small_plans_match_hand_computed_steps() {
    let plan = plan(2, 7);
    for pattern in &plan.patterns {
        let other = |to| ExchangeStep { send_to: Some(to), receive_from: Some(to) };
        if pattern.name.ends_with("acyclic") {
            // Rank 0 has no lower neighbour, and rank 1 no upper one.
            let step = |send_to, receive_from| ExchangeStep { send_to, receive_from };
            assert_eq!(pattern.steps(0), [step(None, Some(1)), step(Some(1), None)], "{}", pattern.name);
        } else {
            assert_eq!((pattern.steps(0), pattern.steps(1)), (vec![other(1)], vec![other(0)]), "{}", pattern.name);
        }
        assert_eq!(pattern.messages, 2);
    }
    let three = self::plan(3, 7);
    let find = |name: &str| three.patterns.iter().find(|p| p.name == name).unwrap();
    let step = |to, from| ExchangeStep { send_to: Some(to), receive_from: Some(from) };
    assert_eq!(find("ring-1").steps(0), [step(2, 1), step(1, 2)]);
    assert!(find("worst-bisection").steps(1).is_empty());
    assert!(find("ping-pong").steps(2).is_empty());
    assert_eq!((find("worst-cycle").shape.as_str(), find("best-bisection").shape.as_str()), ("0-2-1", "2+1"));
}

#[test]
fn the_serialized_plan() {
    let value = serde_json::to_value(plan(6, 0)).unwrap();
    let find = |name: &str| value["patterns"].as_array().unwrap().iter().find(|p| p["name"] == name).unwrap();
    assert_eq!(
        find("ring-2").to_string(),
        r#"{"name":"ring-2","family":"ring","shape":"6","messages":12,"rings":[[0,1,2,3,4,5]]}"#
    );
    assert_eq!(
        find("cart-3d-cyclic-2").to_string(),
        r#"{"name":"cart-3d-cyclic-2","family":"cartesian","shape":"3x2x1","messages":6,"dims":[3,2,1],"directions":[2],"cyclic":true}"#
    );
    assert_eq!(find("worst-bisection")["rings"].to_string(), "[[0,5],[1,4],[2,3]]");
    let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["ranks", "seed", "memory_per_rank_bytes", "lmax_bytes", "sizes_bytes", "patterns"]);
}

#[test]
fn names_of_families_are_those_in_files() {
    for family in PatternFamily::ALL {
        assert_eq!(serde_json::to_value(family).unwrap(), family.name());
    }
    assert_eq!(PatternFamily::ALL.iter().collect::<BTreeSet<_>>().len(), 6);
}

#[test]
fn impossible_plans_say_what_to_do() {
    let error =
        |ranks, memory, families: &[PatternFamily]| CommPlan::new(ranks, 0, memory, families).unwrap_err().to_string();
    for (text, parts) in [
        (error(1, MEMORY, &PatternFamily::ALL), ["1 rank(s)", "at least 2"]),
        (error(2, (1 << 20) - 1, &PatternFamily::ALL), ["1048575", "at least 1 MiB"]),
        (error(2, MEMORY, &[]), ["no family", "at least one"]),
        (error(1 << 31, MEMORY, &PatternFamily::ALL), ["2147483648 ranks", "up to 2147483647"]),
    ] {
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
    assert!(CommPlan::new(2, 0, 1 << 20, &PatternFamily::ALL).is_ok());
}

#[test]
fn ten_million_ranks_cost_what_two_cost() {
    let plan = plan(10_000_000, 1);
    let rings = plan.patterns.iter().filter(|p| p.family != PatternFamily::Random);
    for pattern in rings {
        for rank in [0, 1, 4_999_999, 9_999_999] {
            for (k, step) in pattern.steps(rank).iter().enumerate() {
                if let Some(to) = step.send_to {
                    assert_eq!(pattern.steps(to)[k].receive_from, Some(rank), "{}", pattern.name);
                }
            }
        }
    }
}
