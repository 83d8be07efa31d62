use super::*;
use crate::simulation::{lower_bound, run_count, upper_bound};

/// Simulated nights: logarithms with this noise, times and sizes of events in multiples of 1.
const NOISE: f64 = 0.03;
const BASELINE: usize = 10;
/// Nights before the first gate.
const EARLIER: usize = 33;
const NIGHTS: usize = 200;

fn is_slower(rules: &mut RunRules, logs: &[f64]) -> bool {
    let used = logs.len().min(rules.most_runs());
    rules.apply(&logs[logs.len() - used..]).iter().any(|rule| rule.applies)
}

/// A night: its logarithm, and whether its result itself says that it was disturbed.
type Night = (f64, bool);

/// Gates of a series of nights: which were slower (None: not judged). Disturbed nights are no baseline.
fn gates(rules: &mut RunRules, nights: &[Night]) -> Vec<Option<bool>> {
    let mut good: Vec<f64> = Vec::new();
    let mut found = Vec::new();
    for (at, (log, is_disturbed)) in nights.iter().enumerate() {
        if !is_disturbed {
            good.push(*log);
        }
        if at >= EARLIER {
            found.push((!is_disturbed).then(|| is_slower(rules, &good)));
        }
    }
    found
}

fn nights(random: &mut Pcg64Mcg, number: usize, level: impl Fn(usize) -> f64) -> Vec<Night> {
    (0..EARLIER + number)
        .map(|at| (NOISE * normal(random) + if at < EARLIER { 0.0 } else { level(at - EARLIER) }, false))
        .collect()
}

fn share(part: usize, of: usize) -> f64 {
    part as f64 / of.max(1) as f64
}

/// False alarms among gates of nights without a change: their number, and that of gates.
fn alarms(found: &[Option<bool>]) -> [usize; 2] {
    [found.iter().filter(|f| **f == Some(true)).count(), found.iter().flatten().count()]
}

#[test]
fn equal_nights_drifts_and_busy_nights_give_few_alarms() {
    let mut rules = RunRules::new(BASELINE, ERROR_PROBABILITY);
    let mut random = Pcg64Mcg::seed_from_u64(200);
    let series = run_count(200);
    let mut total = |name: &str, limit: f64, make: &mut dyn FnMut(&mut Pcg64Mcg) -> Vec<Night>, skip: Option<usize>| {
        let mut sum = [0, 0];
        for _ in 0..series {
            let mut found = gates(&mut rules, &make(&mut random));
            // The gate of the bad night itself.
            if let Some(at) = skip {
                assert!(at > 0 && found[at] != Some(false), "the bad night itself is slower");
                found[at] = None;
            }
            let [alarms, gates] = alarms(&found);
            sum = [sum[0] + alarms, sum[1] + gates];
        }
        let found = share(sum[0], sum[1]);
        println!("{name}: {} false alarms in {} gates, {:.2} %", sum[0], sum[1], 100.0 * found);
        // Gates of a series are correlated: the bound is that of a third of them.
        assert!(found <= upper_bound(limit, sum[1] as u32 / 3), "{name}: {found}");
    };
    total("equal nights", 0.01, &mut |random| nights(random, NIGHTS, |_| 0.0), None);
    total(
        "drift of 5 % over 200 nights",
        0.01,
        &mut |random| nights(random, NIGHTS, |at| -0.05 * at as f64 / 200.0),
        None,
    );
    total(
        "drift of 20 % over 200 nights",
        0.02,
        &mut |random| nights(random, NIGHTS, |at| -0.2 * at as f64 / 200.0),
        None,
    );
    let bad = |at: usize| if at == 100 { -0.3 } else { 0.0 };
    total("one bad night of 26 %", 0.01, &mut |random| nights(random, NIGHTS, bad), Some(100));
    let mut busy = |random: &mut Pcg64Mcg| {
        let mut all = nights(random, NIGHTS, |_| 0.0);
        for (log, is_disturbed) in &mut all {
            if random.next_u64().is_multiple_of(4) {
                (*log, *is_disturbed) = (*log - 0.3, true);
            }
        }
        all
    };
    total("every fourth night busy", 0.01, &mut busy, None);
    let mut tailed = |random: &mut Pcg64Mcg| {
        let mut heavy = || {
            let scale = (0..5).map(|_| normal(random).powi(2)).sum::<f64>() / 5.0;
            (NOISE * normal(random) / scale.sqrt(), false)
        };
        (0..EARLIER + NIGHTS).map(|_| heavy()).collect()
    };
    total("equal nights, heavy tails (Student, 5 degrees)", 0.02, &mut tailed, None);
    let mut correlated = |random: &mut Pcg64Mcg| {
        let mut log = 0.0;
        let next = |_| {
            log = 0.3 * log + NOISE * (1.0_f64 - 0.09).sqrt() * normal(random);
            (log, false)
        };
        (0..EARLIER + NIGHTS).map(next).collect()
    };
    total("equal nights, correlation 0.3 from night to night", 0.03, &mut correlated, None);
}

#[test]
fn a_step_of_three_times_the_noise_is_found_within_three_nights() {
    let mut random = Pcg64Mcg::seed_from_u64(3);
    for (baseline, before) in [(BASELINE, EARLIER), (BASELINE, 10), (20, 63)] {
        let mut rules = RunRules::new(baseline, ERROR_PROBABILITY);
        for (step, least) in
            [(0.051, 0.0), (0.09, if before < EARLIER { 0.75 } else { 0.9 }), (0.105, 0.0), (0.223, 0.97)]
        {
            let series = run_count(3000) as usize;
            let mut found_at = [0_usize; 11];
            for _ in 0..series {
                let mut logs: Vec<f64> = (0..before).map(|_| NOISE * normal(&mut random)).collect();
                let night = (1..=10).find(|_| {
                    logs.push(NOISE * normal(&mut random) - step);
                    is_slower(&mut rules, &logs)
                });
                found_at[night.unwrap_or(0)] += 1;
            }
            let within = |nights: usize| share(found_at[1..=nights].iter().sum(), series);
            println!(
                "baseline {baseline}, {before} nights before, step of {:.0} % ({:.1} times the noise): found within 1, 2, 3, 5, 10 nights: {:.2?}",
                100.0 * (1.0 - f64::exp(-step)),
                step / NOISE,
                [1, 2, 3, 5, 10].map(within)
            );
            assert!(within(3) >= lower_bound(least, series as u32), "{step}: {}", within(3));
        }
    }
}

/// Also with short histories, equal runs are called slower in at most one of a hundred gates.
#[test]
fn the_error_probability_holds_for_few_runs() {
    let mut random = Pcg64Mcg::seed_from_u64(9);
    for (baseline, before) in [(10, 3), (10, 4), (10, 7), (3, 20), (5, 12)] {
        let mut rules = RunRules::new(baseline, ERROR_PROBABILITY);
        let series = run_count(20_000) as usize;
        let found = (0..series).filter(|_| {
            let logs: Vec<f64> = (0..=before).map(|_| normal(&mut random)).collect();
            is_slower(&mut rules, &logs)
        });
        let found = share(found.count(), series);
        println!("baseline {baseline}, {before} runs before: {:.2} %", 100.0 * found);
        assert!(found <= upper_bound(0.01, series as u32), "{baseline} {before}: {found}");
    }
}

#[test]
fn rules_by_hand() {
    let mut rules = RunRules::new(10, ERROR_PROBABILITY);
    assert_eq!(rules.apply(&[0.0, 0.1, 0.0]), [], "two runs before it");
    let one = rules.apply(&[0.0, 0.1, -0.1, 0.0]);
    assert_eq!((one.len(), one[0].recent, one[0].baseline, one[0].median, one[0].applies), (1, 1, 3, 0.0, false));
    let recent = |logs: &[f64]| rules.clone().apply(logs).iter().map(|rule| rule.recent).collect::<Vec<_>>();
    assert_eq!(recent(&[0.0; 6]), [1, 2, 3]);
    // Without any scatter every change is one, but not rounding.
    let slower = |last: f64| rules.clone().apply(&[0.0, 0.0, 0.0, 0.0, last])[0].applies;
    assert_eq!([slower(-1e-12), slower(0.1), slower(-0.001)], [false, false, true]);
    // A bad run before an ordinary one.
    let mut logs: Vec<f64> = (0..30).map(|n| 0.01 * f64::from(n % 5)).collect();
    logs.extend([-1.0, 0.02]);
    assert!(rules.apply(&logs).iter().all(|rule| !rule.applies));
    logs.extend([-1.0]);
    assert!(rules.apply(&logs)[0].applies);
}

#[test]
fn the_median_has_an_interval_of_order_statistics() {
    assert_eq!([median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0])], [2.0, 2.5]);
    let values = |number: u32| (1..=number).rev().map(f64::from).collect::<Vec<_>>();
    assert_eq!(median_interval(&values(5)), None);
    // Tables of the sign test: 6 to 8 values the extremes, 9 to 11 the second, 20 the sixth.
    for (number, ends) in [(6, [1.0, 6.0]), (8, [1.0, 8.0]), (9, [2.0, 8.0]), (10, [2.0, 9.0]), (20, [6.0, 15.0])] {
        assert_eq!(median_interval(&values(number)), Some(ends), "{number}");
    }
}
