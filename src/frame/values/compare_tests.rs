use proptest::prelude::*;
use rand_pcg::rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::frame::values::comparable::{QuantityUnit, NOISE_CACHED, NOISE_DIRECT};
use crate::frame::values::gate::{gate, GateOutcome};

/// A run with these speeds at level detail.
fn run(values: &[f64]) -> ComparableRun {
    let quantity = |(n, value): (usize, &f64)| {
        Quantity::new(QuantityLevel::Detail, format!("line {n}"), "", QuantityUnit::MegabytesPerSecond, *value)
            .with_noise(NOISE_CACHED)
    };
    ComparableRun {
        identity: String::new(),
        started_utc: "2025-01-31T12:00:00Z".into(),
        troubles: Vec::new(),
        doubts: Vec::new(),
        is_corrupt: false,
        facts: Vec::new(),
        quantities: values.iter().enumerate().map(quantity).collect(),
    }
}

fn with_value(values: &[f64], level: QuantityLevel, noise: f64) -> Vec<ComparableRun> {
    let quantity = |value: &f64| Quantity {
        level,
        noise,
        ..Quantity::new(level, "value", "", QuantityUnit::MegabytesPerSecond, *value)
    };
    values.iter().map(|value| ComparableRun { quantities: vec![quantity(value)], ..run(&[]) }).collect()
}

fn compare_single_quantity(a: &[ComparableRun], b: &[ComparableRun]) -> ComparedQuantity {
    compare([a, b], None, 1).compared.swap_remove(0)
}

/// Normal numbers (Box and Muller).
struct Normal(Pcg64Mcg);

impl Normal {
    fn uniform(&mut self) -> f64 {
        (f64::from(self.0.next_u32()) + 0.5) / f64::from(u32::MAX)
    }

    fn next(&mut self) -> f64 {
        let (radius, angle) = (self.uniform(), self.uniform());
        (-2.0 * radius.ln()).sqrt() * (2.0 * std::f64::consts::PI * angle).cos()
    }
}

/// Patterns of one run as on a real machine: each has its own speed, a run drifts as a whole, and each pattern has noise, some much more
/// than others.
fn realistic(random: &mut Normal, drift: f64, speed: impl Fn(usize) -> f64) -> ComparableRun {
    let of_run = drift * random.next();
    let values: Vec<f64> = (0..108)
        .map(|n| {
            let noise = if n % 7 == 0 { 0.4 } else { 0.08 };
            50.0 * (1.0 + (n % 13) as f64) * speed(n) * (of_run + noise * random.next()).exp()
        })
        .collect();
    let logs = values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64;
    let mut result = run(&values);
    result.quantities.push(Quantity::new(
        QuantityLevel::Value,
        "value",
        "",
        QuantityUnit::MegabytesPerSecond,
        logs.exp(),
    ));
    let types = values.chunks(7).enumerate().map(|(n, own)| {
        let mean = own.iter().sum::<f64>() / own.len() as f64;
        Quantity::new(QuantityLevel::Group, "mean", format!("type {n}"), QuantityUnit::MegabytesPerSecond, mean)
            .with_noise(NOISE_CACHED)
    });
    result.quantities.extend(types);
    result
}

fn side(random: &mut Normal, runs: usize, drift: f64, speed: impl Fn(usize) -> f64 + Copy) -> Vec<ComparableRun> {
    (0..runs).map(|_| realistic(random, drift, speed)).collect()
}

/// Number of 20 comparisons of equal runs in which anything is called different.
fn called_different(seed: u64, runs: [usize; 2], drift: f64) -> usize {
    let mut random = Normal(Pcg64Mcg::seed_from_u64(seed));
    let is_called = |_: &usize| {
        let sides = runs.map(|number| side(&mut random, number, drift, |_| 1.0));
        compare([&sides[0], &sides[1]], None, 1).compared.iter().any(|c| c.call.is_different())
    };
    (0..20).filter(is_called).count()
}

/// 20 pairs of equal sides, drawn three times for each number of runs.
#[test]
fn of_twenty_pairs_of_equal_runs_at_most_one_is_called_different() {
    let mut all = Vec::new();
    for (runs, drift) in [([1, 1], 0.1), ([1, 5], 0.1), ([2, 2], 0.1), ([3, 3], 0.0), ([3, 3], 0.1), ([5, 5], 0.1)] {
        let called: Vec<usize> = (1..4).map(|seed| called_different(seed, runs, drift)).collect();
        println!("{runs:?} runs, drift {drift}: of 20 pairs called different {called:?}");
        all.extend(called);
    }
    // Expected is one of a hundred pairs: 4 of 18 times 20 pairs, and hardly ever two of 20.
    assert!(all.iter().filter(|number| **number > 1).count() <= 1, "{all:?}");
    assert!(all.iter().sum::<usize>() <= 8, "{all:?}");
}

/// A slowdown of 20 % everywhere is detected in the value, a large slowdown of some patterns only in these patterns.
#[test]
fn slowdowns_are_located() {
    let mut random = Normal(Pcg64Mcg::seed_from_u64(7));
    for _ in 0..10 {
        let (a, b) = (side(&mut random, 5, 0.02, |_| 1.0), side(&mut random, 5, 0.02, |_| 0.8));
        let found = compare([&a, &b], None, 1);
        let value = found.at_level(QuantityLevel::Value).next().unwrap();
        assert_eq!(value.call, ComparisonVerdict::Slower, "{value:?}");
        let hurt = |n: usize| if n % 9 == 1 && !n.is_multiple_of(7) { 0.1 } else { 1.0 };
        let (a, b) = (side(&mut random, 5, 0.02, |_| 1.0), side(&mut random, 5, 0.02, hurt));
        let found = compare([&a, &b], None, 1);
        for (n, compared) in found.at_level(QuantityLevel::Detail).enumerate() {
            assert!(hurt(n) < 1.0 || !compared.call.is_different(), "{n}: {compared:?}");
        }
        let slower = found.at_level(QuantityLevel::Detail).filter(|c| c.call == ComparisonVerdict::Slower).count();
        assert_eq!(slower, (0..108).filter(|n| hurt(*n) < 1.0).count());
    }
}

#[test]
fn one_run_each_decides_only_beyond_the_noise() {
    let call = |a: f64, b: f64, noise: f64| {
        let side = |value| with_value(&[value], QuantityLevel::Value, noise);
        let compared = compare_single_quantity(&side(a), &side(b));
        assert_eq!((compared.interval, compared.noise), (None, Some(noise)));
        compared.call
    };
    assert_eq!(call(100.0, 100.0, NOISE_DIRECT), ComparisonVerdict::Equal);
    assert_eq!(call(100.0, 90.0, NOISE_DIRECT), ComparisonVerdict::NotDecided);
    assert_eq!(call(100.0, 80.0, NOISE_DIRECT), ComparisonVerdict::Slower);
    assert_eq!(call(100.0, 120.0, NOISE_DIRECT), ComparisonVerdict::Faster);
    assert_eq!(call(100.0, 60.0, NOISE_CACHED), ComparisonVerdict::NotDecided);
    // The user's noise replaces it; single lines have more.
    let sides = [with_value(&[100.0], QuantityLevel::Value, 2.0), with_value(&[95.0], QuantityLevel::Value, 2.0)];
    assert_eq!(compare([&sides[0], &sides[1]], Some(1.02), 1).compared[0].call, ComparisonVerdict::Slower);
    let sides = [run(&[100.0]), run(&[85.0])].map(|run| [run]);
    assert_eq!(compare([&sides[0], &sides[1]], Some(1.05), 1).compared[0].call, ComparisonVerdict::NotDecided);
}

/// One delayed call makes a line of three calls a hundred times slower.
#[test]
fn a_line_of_few_calls_in_one_run_decides_nothing() {
    let with = |value: f64, few_calls: bool| {
        let mut result = run(&[value]);
        result.quantities[0].context.few_calls = few_calls;
        result
    };
    for few in [[true, false], [false, true], [true, true]] {
        let [a, b] = [[with(300.0, few[0])], [with(2.0, few[1])]];
        assert_eq!(compare_single_quantity(&a, &b).call, ComparisonVerdict::NotDecided, "{few:?}");
        assert_eq!(
            compare([&a, &b], Some(1.05), 1).compared[0].call,
            ComparisonVerdict::Slower,
            "the stated noise decides"
        );
        let several = |value| [0.99, 1.0, 1.01].map(|f| with(f * value, true));
        assert_eq!(
            compare_single_quantity(&several(300.0), &several(2.0)).call,
            ComparisonVerdict::Slower,
            "runs that agree"
        );
    }
    assert_eq!(compare_single_quantity(&[with(300.0, false)], &[with(2.0, false)]).call, ComparisonVerdict::Slower);
}

#[test]
fn rounds_are_checked_in_addition_to_the_noise() {
    let with = |value: f64, rounds: [f64; 4]| {
        let mut result = run(&[value]);
        result.quantities[0].rounds = rounds.into();
        [result]
    };
    let far = with(5.0, [4.95, 5.0, 5.05, 5.0]);
    let compared = compare_single_quantity(&with(100.0, [99.0, 100.0, 101.0, 100.0]), &far);
    assert_eq!((compared.basis, compared.call), (IntervalBasis::Rounds, ComparisonVerdict::Slower));
    let wild = with(100.0, [5.0, 600.0, 20.0, 100.0]);
    assert_eq!(
        compare_single_quantity(&wild, &far).call,
        ComparisonVerdict::NotDecided,
        "the rounds themselves differ as much"
    );
    let near = with(90.0, [90.0, 90.1, 89.9, 90.0]);
    assert_eq!(
        compare_single_quantity(&with(100.0, [99.9, 100.0, 100.1, 100.0]), &near).call,
        ComparisonVerdict::NotDecided,
        "below the noise"
    );
}

#[test]
fn times_are_compared_as_speeds() {
    let of = |micros: f64| {
        let quantity = Quantity::new(QuantityLevel::Value, "latency", "", QuantityUnit::Microseconds, micros)
            .with_noise(NOISE_DIRECT);
        [ComparableRun { quantities: vec![quantity], ..run(&[]) }]
    };
    let compared = compare_single_quantity(&of(1.0), &of(2.0));
    assert!((compared.ratio - 0.5).abs() < 1e-12 && compared.call == ComparisonVerdict::Slower);
    assert!((compared.values[1] - 2.0).abs() < 1e-12);
}

#[test]
fn quantities_of_one_side_are_listed() {
    let (a, b) = ([run(&[1.0, 2.0, 3.0])], [run(&[1.0])]);
    let found = compare([&a, &b], None, 1);
    assert_eq!((found.compared.len(), found.missing.len()), (1, 2));
    assert!(found.missing.iter().all(|m| m.side == 0), "{:?}", found.missing);
    // Invalid numbers are not compared.
    let c = [run(&[f64::NAN, f64::INFINITY, -1.0])];
    assert_eq!(compare([&a, &c], None, 1).compared, []);
}

#[test]
fn zero_is_a_value() {
    let side = |values: &[f64]| with_value(values, QuantityLevel::Detail, NOISE_CACHED.powi(4));
    let of = |a: &[f64], b: &[f64]| {
        let found = compare([&side(a), &side(b)], None, 1);
        assert!(found.missing.is_empty(), "{:?}", found.missing);
        let [compared] = &found.compared[..] else { panic!("{a:?} {b:?}: {:?}", found.compared) };
        (compared.call, compared.ratio, compared.values, gate(&found, 0.95).passed)
    };
    use ComparisonVerdict::{Equal, Faster, NotDecided, Slower};
    let infinite = f64::INFINITY;
    assert_eq!(of(&[0.0], &[0.0]), (Equal, 1.0, [0.0, 0.0], true));
    assert_eq!(of(&[0.0; 3], &[0.0; 2]), (Equal, 1.0, [0.0, 0.0], true));
    let (call, ratio, values, passed) = of(&[0.0], &[5.0]);
    assert_eq!((call, ratio, values[0], passed), (Faster, infinite, 0.0, true));
    for (a, b) in [(&[5.0][..], &[0.0][..]), (&[5.0, 5.1], &[0.0]), (&[5.0, 5.1], &[0.0, 0.0])] {
        let (call, ratio, values, passed) = of(a, b);
        assert_eq!((call, ratio, values[1], passed), (Slower, 0.0, 0.0, false), "{a:?} {b:?}");
    }
    // Some runs of a side alone have it.
    assert_eq!(of(&[5.0, 5.1], &[0.0, 5.0]).0, NotDecided);
    assert_eq!(of(&[0.0, 5.1], &[0.0, 5.0]).0, NotDecided);
    // A time of 0 is infinitely fast.
    let time = |us: f64| [ComparableRun { quantities: vec![time_quantity(us)], ..run(&[]) }];
    let found = compare_single_quantity(&time(0.5), &time(0.0));
    assert_eq!((found.call, found.ratio, found.values[1]), (Faster, infinite, 0.0));
    // No rounds of 0 without an interval.
    let rounds = |value: f64| {
        [ComparableRun { quantities: vec![Quantity { rounds: vec![0.0; 5], ..time_quantity(value) }], ..run(&[]) }]
    };
    let found = compare_single_quantity(&rounds(1.0), &rounds(1.0));
    assert_eq!((found.call, found.basis, found.interval), (Equal, IntervalBasis::Nothing, None));
}

fn time_quantity(us: f64) -> Quantity {
    Quantity::new(QuantityLevel::Detail, "time", "", QuantityUnit::Microseconds, us)
}

#[test]
fn one_backend_is_compared_with_another_one() {
    let of = |backends: &[&str]| {
        let mut result = run(&[]);
        result.quantities.extend(backends.iter().map(|backend| {
            Quantity::new(QuantityLevel::Value, "value", "", QuantityUnit::MegabytesPerSecond, 100.0)
                .with_backend(backend, 4)
        }));
        [result]
    };
    let found = compare([&of(&["mpiio"]), &of(&["posix"])], None, 1);
    assert_eq!(found.compared[0].backends, ["mpiio", "posix"]);
    let found = compare([&of(&["mpiio", "posix"]), &of(&["posix"])], None, 1);
    assert_eq!((found.compared.len(), found.missing.len()), (1, 1));
    assert_eq!(found.missing[0].name, "mpiio, value");
}

#[test]
fn differing_facts_have_their_kind() {
    let with = |facts: &[(FactKind, &str, &str)]| {
        let facts = facts.iter().map(|(kind, name, value)| Fact::new(*kind, *name, *value)).collect();
        [ComparableRun { facts, ..run(&[1.0]) }]
    };
    let a = with(&[
        (FactKind::SetUp, "MPI", "a"),
        (FactKind::Definition, "T", "60 s"),
        (FactKind::SetUp, "only here", "x"),
    ]);
    let b = with(&[(FactKind::SetUp, "MPI", "b"), (FactKind::Definition, "T", "90 s")]);
    let found = compare([&a, &b], None, 1);
    assert!(!found.is_comparable() && compare([&a, &a], None, 1).is_comparable());
    let names: Vec<&str> = found.differences.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(names, ["T", "MPI", "only here"]);
    assert_eq!(found.differences[2].to, None);
    let mut two = a.to_vec();
    two.extend(b);
    assert_eq!(
        (inconsistent_facts(&two, FactKind::Definition), inconsistent_facts(&two, FactKind::SetUp).len()),
        (vec!["T".to_owned()], 2)
    );
}

#[test]
fn sequential_sides_are_detected() {
    let at = |hours: &[u32]| -> Vec<ComparableRun> {
        let start = |hour: &u32| ComparableRun { started_utc: format!("2025-01-31T{hour:02}:00:00Z"), ..run(&[1.0]) };
        hours.iter().map(start).collect()
    };
    let noticed = |a: &[u32], b: &[u32]| compare([&at(a), &at(b)], None, 1).one_after_the_other;
    assert!(noticed(&[1, 2, 3], &[4, 5, 6]) && noticed(&[4, 5], &[1, 2]));
    assert!(!noticed(&[1, 3, 5], &[2, 4, 6]) && !noticed(&[1], &[2]));
}

#[test]
fn the_gate_fails_for_certain_slowdowns() {
    let value = |values: &[f64]| with_value(values, QuantityLevel::Value, NOISE_DIRECT);
    let of = |a: &[f64], b: &[f64], limit: f64| gate(&compare([&value(a), &value(b)], None, 1), limit);
    let runs = [100.0, 101.0, 99.0, 100.5];
    assert!(!of(&runs, &[80.0, 81.0, 79.0, 80.5], 0.95).passed);
    assert!(of(&runs, &[80.0, 81.0, 79.0, 80.5], 0.75).passed, "slower, and allowed");
    assert!(of(&runs, &[101.0, 100.0, 100.0, 99.5], 0.95).passed);
    let open = of(&[100.0], &[90.0], 0.95);
    assert_eq!((open.passed, open.undecided), (true, 1));
    let lost = gate(&compare([&value(&[1.0]), &[run(&[1.0])]], None, 1), 0.5);
    assert!(!lost.passed && lost.missing == ["value"]);
    assert!(!gate(&compare([&[run(&[])], &[run(&[])]], None, 1), 0.5).passed, "nothing was compared");
    let mut wrong = value(&[100.0]);
    wrong[0].is_corrupt = true;
    assert!(!gate(&compare([&value(&[100.0]), &wrong], None, 1), 0.5).passed);
}

#[test]
fn doubtful_runs_decide_nothing_but_wrong_data_does() {
    use GateOutcome::{Failed, Inconclusive, Passed};
    let shared = Doubt::Shared { other_process_share: 0.2, steal_share: 0.0 };
    let short = Doubt::TooShort { factor: 4.0 };
    let side = |values: &[f64], doubt: Option<&Doubt>| {
        let mut runs = with_value(values, QuantityLevel::Value, NOISE_DIRECT);
        runs[0].doubts.extend(doubt.cloned());
        runs
    };
    let outcome = |a: &[ComparableRun], b: &[ComparableRun]| gate(&compare([a, b], None, 1), 0.95).outcome;
    for doubt in [&shared, &short] {
        for b in [50.0, 100.0] {
            assert_eq!(outcome(&side(&[100.0], Some(doubt)), &side(&[b], None)), Inconclusive);
            assert_eq!(outcome(&side(&[100.0], None), &side(&[b], Some(doubt))), Inconclusive);
        }
    }
    assert_eq!(outcome(&side(&[100.0], None), &side(&[50.0], None)), Failed);
    let (fast, slow) = ([100.0, 101.0, 99.0], [50.0, 50.5, 49.5]);
    assert_eq!(outcome(&side(&fast, Some(&short)), &side(&slow, None)), Failed, "their scatter is known");
    let comparison = compare([&side(&fast, None), &side(&slow, Some(&shared))], None, 1);
    assert_eq!(comparison.inconclusive, [SideDoubt { side: 1, run: 0, doubt: shared.clone() }]);
    assert!(comparison.compared[0].call == ComparisonVerdict::Slower, "the ratio is stated as before");
    let mut wrong = side(&slow, Some(&shared));
    wrong[1].is_corrupt = true;
    assert_eq!(outcome(&side(&fast, None), &wrong), Failed);
    // A number that is slower, but was measured under interference, alone and beside another.
    let mut busy = side(&slow, None);
    busy.iter_mut().for_each(|run| run.quantities[0].context.has_interference = true);
    let found = gate(&compare([&side(&fast, None), &busy], None, 1), 0.95);
    assert_eq!((found.outcome, found.below, found.disturbed), (Inconclusive, vec![], vec![0]));
    assert_eq!(gate(&compare([&side(&fast, None), &busy], None, 1), 0.4).outcome, Passed);
}

fn speeds() -> impl Strategy<Value = Vec<Vec<f64>>> {
    prop::collection::vec(prop::collection::vec(0.001..1e6_f64, 12), 1..6)
}

proptest! {
    #[test]
    fn a_run_with_itself_is_equal(runs in speeds()) {
        let side: Vec<ComparableRun> = runs.iter().map(|values| run(values)).collect();
        let found = compare([&side, &side], None, 1);
        for compared in &found.compared {
            prop_assert!((compared.ratio - 1.0).abs() < 1e-9);
            prop_assert!(!compared.call.is_different());
            prop_assert!(runs.len() > 1 || compared.call == ComparisonVerdict::Equal);
        }
        prop_assert!(gate(&found, 0.95).passed);
    }

    #[test]
    fn sides_that_change_places_invert_the_ratio(a in speeds(), b in speeds()) {
        let side = |runs: &Vec<Vec<f64>>| runs.iter().map(|values| run(values)).collect::<Vec<_>>();
        let (there, back) = (compare([&side(&a), &side(&b)], None, 1), compare([&side(&b), &side(&a)], None, 1));
        for (x, y) in there.compared.iter().zip(&back.compared) {
            prop_assert!((x.ratio * y.ratio - 1.0).abs() < 1e-9);
            let mirrored = match x.call {
                ComparisonVerdict::Slower => ComparisonVerdict::Faster,
                ComparisonVerdict::Faster => ComparisonVerdict::Slower,
                other => other,
            };
            prop_assert_eq!(mirrored, y.call);
            if let Some(([low, high], [other_low, other_high])) = x.interval.zip(y.interval) {
                // With one degree of freedom an interval may exceed the range of f64.
                let has_an_end = high.is_finite() && other_high.is_finite();
                prop_assert!(!has_an_end || (low * other_high - 1.0).abs() < 1e-6 && (high * other_low - 1.0).abs() < 1e-6);
                prop_assert!(low <= x.ratio * (1.0 + 1e-9) && x.ratio <= high * (1.0 + 1e-9));
            }
        }
    }

    #[test]
    fn a_call_and_its_interval_agree(a in speeds(), b in speeds()) {
        let side = |runs: &Vec<Vec<f64>>| runs.iter().map(|values| run(values)).collect::<Vec<_>>();
        prop_assume!(a.len() > 1 || b.len() > 1);
        for compared in compare([&side(&a), &side(&b)], None, 1).compared {
            let [low, high] = compared.interval.unwrap();
            prop_assert_eq!(compared.call.is_different(), low > 1.0 || high < 1.0);
        }
    }

    #[test]
    fn a_slowdown_of_a_fifth_is_detected(values in prop::collection::vec(1.0..1e5_f64, 3..12), seed: u64) {
        let mut random = Normal(Pcg64Mcg::seed_from_u64(seed));
        let mut side = |factor: f64| -> Vec<ComparableRun> {
            let noisy = |random: &mut Normal| values.iter().map(|v| v * factor * (0.005 * random.next()).exp()).collect();
            (0..4).map(|_| run(&Vec::<f64>::from_iter::<Vec<f64>>(noisy(&mut random)))).collect()
        };
        let found = compare([&side(1.0), &side(0.8)], None, 1);
        let slower = found.compared.iter().filter(|c| c.call == ComparisonVerdict::Slower).count();
        prop_assert!(slower * 10 >= values.len() * 9, "{} of {}", slower, values.len());
        prop_assert!(!gate(&found, 0.95).passed);
    }
}
