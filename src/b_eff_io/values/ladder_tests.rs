use beff_statistics::simulation;

use super::*;
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{RepetitionRecord, TypeRepetitionRecord};
use crate::b_eff_io::values::derive;
use crate::b_eff_io::values::fixture::{edit_pattern, full_run};
use crate::frame::records::RoundRecord;
use rand_pcg::rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A run in which every backend has its own time for the same bytes, in eight rounds with some noise.
fn run(speeds: &[(&str, f64)]) -> RunResult {
    let mut result = full_run();
    let (patterns, types) = (std::mem::take(&mut result.patterns), std::mem::take(&mut result.types));
    result.config.backends = speeds.iter().map(|(b, _)| (*b).to_owned()).collect();
    for (number, &(backend, speed)) in speeds.iter().enumerate() {
        result.types.extend(types.iter().cloned().map(|mut t| {
            t.backend = backend.to_owned();
            t
        }));
        result.patterns.extend(patterns.iter().cloned().map(|mut p| {
            p.backend = backend.to_owned();
            p.intervals.transfer_seconds /= speed;
            p.intervals.decide_seconds = p.intervals.transfer_seconds / 4.0;
            let seconds = p.seconds() / 8.0;
            // Alternates by 2 %, in another order for each backend; the sum is unchanged.
            let noise = |i: usize| 1.0 + if (i >> number).is_multiple_of(2) { 0.02 } else { -0.02 };
            let round = |i| {
                let number = i as u32 + 1;
                RoundRecord { number, calls: 1, moved_bytes: p.moved_bytes / 8, seconds: seconds * noise(i) }
            };
            p.rounds = (0..8).map(round).collect();
            p.moved_bytes = p.rounds.iter().map(|r| r.moved_bytes).sum();
            p
        }));
    }
    result
}

fn of<'a>(ladder: &'a Ladder, backend: &str, access: AccessMethod, pattern: u8) -> &'a PatternComparison {
    let mut rungs = ladder.patterns.iter();
    rungs.find(|r| r.backend == backend && r.ranks == 4 && r.access == access && r.pattern == pattern).unwrap()
}

#[test]
fn one_backend_has_no_rival_and_null_is_none() {
    assert_eq!(derive(&full_run()).ladder, Ladder::default());
    assert_eq!(derive(&run(&[("null", 100.0), ("mpiio", 1.0)])).ladder, Ladder::default());
}

#[test]
fn ratios_have_intervals_around_the_truth() {
    let ladder = derive(&run(&[("mpiio", 0.5), ("posix", 1.0), ("null", 50.0)])).ladder;
    assert_eq!(ladder.patterns.len(), 2 * 2 * 3 * 43);
    assert_eq!(ladder.types.len(), 2 * 2 * 3 * 5);
    for rung in &ladder.patterns {
        let ratio = rung.ratio.unwrap();
        assert_eq!(rung.best.as_deref(), Some("posix"));
        if rung.backend == "posix" {
            assert_eq!(ratio, Ratio::without_interval(1.0, 0));
        } else {
            let interval = ratio.interval.unwrap();
            assert!((ratio.value - 0.5).abs() < 1e-9 && ratio.equal == Some(false) && ratio.rounds == 8);
            assert!(interval.low > 0.47 && interval.low < 0.5 && interval.high > 0.5 && interval.high < 0.53);
        }
    }
    for rung in ladder.types.iter().filter(|r| r.backend == "mpiio") {
        let (ratio, shares) = (rung.ratio.unwrap(), rung.shares.unwrap());
        let interval = ratio.interval.unwrap();
        assert!(interval.low < ratio.value && ratio.value < interval.high && ratio.value > 0.5);
        assert!((shares.values().iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!((shares.transfer / shares.decide - 4.0).abs() < 1e-9 && shares.open < shares.close);
    }
}

#[test]
fn close_rates_are_equal() {
    let ladder = derive(&run(&[("mpiio", 1.0), ("posix", 1.005)])).ladder;
    assert!(ladder.patterns.iter().filter(|r| r.backend == "mpiio").all(|r| r.ratio.unwrap().equal == Some(true)));
    assert!(ladder.verdicts.iter().all(|v| v.pattern.is_none() && v.ratio.equal == Some(true)));
    assert_eq!(ladder.verdicts.len(), 2 * 3 * 5);
}

#[test]
fn mpiio_is_the_subject_and_the_slowest_is_named_too() {
    let ladder = derive(&run(&[("mmap", 0.25), ("mpiio", 0.5), ("posix", 1.0)])).ladder;
    let verdict = &ladder.verdicts[0];
    assert_eq!((verdict.backend.as_str(), verdict.best.as_str()), ("mpiio", "posix"));
    assert_eq!(verdict.slowest.as_ref().map(|s| s.backend.as_str()), Some("mmap"));
    let ladder = derive(&run(&[("mmap", 0.25), ("mpiio", 2.0), ("posix", 1.0)])).ladder;
    let verdict = &ladder.verdicts[0];
    assert_eq!((verdict.backend.as_str(), verdict.best.as_str()), ("mmap", "mpiio"));
    assert_eq!(verdict.slowest, None);
}

#[test]
fn the_worst_patterns_are_listed_with_their_costs() {
    let mut result = run(&[("mpiio", 0.5), ("posix", 1.0)]);
    edit_pattern(&mut result, 4, AccessMethod::Read, 13, |p| {
        p.calls = 16;
        if p.backend == "mpiio" {
            p.intervals.sync_seconds = 9.0 * p.intervals.transfer_seconds;
            let seconds = p.seconds() / 8.0;
            p.rounds.iter_mut().for_each(|r| r.seconds = seconds);
        }
    });
    let ladder = derive(&result).ladder;
    let of_patterns: Vec<&BackendVerdict> = ladder
        .verdicts
        .iter()
        .filter(|v| v.ranks == 4 && v.access == AccessMethod::Read && v.pattern.is_some())
        .collect();
    assert_eq!(of_patterns.len(), WORST_PATTERNS);
    let worst = of_patterns[0];
    assert_eq!((worst.pattern, worst.largest.part, worst.largest.times), (Some(13), TimePart::Sync, None));
    assert!((worst.largest.share - 9.0 / 10.25).abs() < 1e-9);
    let [slow, fast] = worst.call_seconds.unwrap();
    assert!((slow / fast * worst.ratio.value - 1.0).abs() < 0.03, "{worst:?}");
    let record =
        |p: &&PatternRecord| p.backend == "mpiio" && p.ranks == 4 && p.access == AccessMethod::Read && p.pattern == 13;
    let record = result.patterns.iter().find(record).unwrap();
    assert!((slow - record.seconds() / 16.0).abs() < 1e-9, "{worst:?}");
    let other = of_patterns[1];
    assert_eq!((other.largest.part, other.excess), (TimePart::Transfer, None));
    assert!((other.largest.times.unwrap() - 2.0).abs() < 1e-9);
    assert!((of(&ladder, "mpiio", AccessMethod::Read, 13).ratio.unwrap().value) < 0.07);
}

#[test]
fn a_part_that_only_the_slower_one_has_is_the_loss() {
    let mut result = run(&[("mpiio", 1.0), ("posix", 1.0)]);
    for p in result.patterns.iter_mut().filter(|p| p.backend == "mpiio") {
        p.intervals.view_seconds = 0.5 * p.intervals.transfer_seconds;
    }
    let verdict = &derive(&result).ladder.verdicts[0];
    assert_eq!(verdict.largest.part, TimePart::Transfer);
    let excess = verdict.excess.unwrap();
    assert_eq!((excess.part, excess.times), (TimePart::View, None));
}

#[test]
fn without_enough_rounds_there_is_no_interval() {
    let mut result = run(&[("mpiio", 0.5), ("posix", 1.0)]);
    result.patterns.iter_mut().for_each(|p| p.rounds.clear());
    let ladder = derive(&result).ladder;
    let rung = of(&ladder, "mpiio", AccessMethod::Write, 5);
    assert!(rung.ratio.is_some_and(|r| r.interval.is_none() && r.equal.is_none() && r.rounds == 0));
    assert!(ladder.types.iter().all(|r| r.ratio.is_some_and(|r| r.interval.is_none())));

    let mut result = run(&[("mpiio", 0.5), ("posix", 1.0)]);
    edit_pattern(&mut result, 4, AccessMethod::Write, 3, |p| p.rounds.truncate(1));
    let ladder = derive(&result).ladder;
    let of_type = |t: PatternType| {
        ladder
            .types
            .iter()
            .find(|r| r.ranks == 4 && r.access == AccessMethod::Write && r.pattern_type == t)
            .unwrap()
            .ratio
    };
    // Pattern 3 is a large part of the time of type 0.
    assert!(
        of_type(PatternType::Scatter).unwrap().interval.is_none()
            && of_type(PatternType::Shared).unwrap().interval.is_some()
    );
}

/// A backend that stalled in its first round has three rounds where the other has eight: the pairs represent the whole pattern.
#[test]
fn rounds_of_one_backend_alone_do_not_take_the_interval_away() {
    let mut result = run(&[("mpiio", 0.5), ("posix", 1.0)]);
    let whole = derive(&result).ladder.types;
    for p in result.patterns.iter_mut().filter(|p| p.backend == "mpiio") {
        let [first, second] = [5, 2].map(|n| {
            let of: Vec<RoundRecord> = p.rounds.drain(..n).collect();
            let (seconds, moved_bytes) = (of.iter().map(|r| r.seconds).sum(), of.iter().map(|r| r.moved_bytes).sum());
            RoundRecord { number: of[0].number, calls: n as u64, moved_bytes, seconds }
        });
        p.rounds.splice(..0, [first, second]);
    }
    let ladder = derive(&result).ladder;
    // The ratio agrees with the rates, whatever rounds the other backend lacks.
    for rung in
        ladder.patterns.iter().filter(|rung| rung.backend == "mpiio" && rung.ratio.is_some_and(|r| r.rounds > 0))
    {
        let rate = |backend| of(&ladder, backend, rung.access, rung.pattern).mb_per_second.unwrap();
        let (ratio, rates) = (rung.ratio.unwrap(), rate("mpiio") / rate("posix"));
        let interval = ratio.interval.unwrap();
        assert!((ratio.value / rates - 1.0).abs() < 1e-9 && ratio.rounds == 3, "{ratio:?} {rates}");
        assert!(interval.low <= ratio.value && ratio.value <= interval.high, "{ratio:?}");
    }
    for (rung, whole) in ladder.types.iter().zip(&whole).filter(|(rung, _)| rung.backend == "mpiio") {
        let (ratio, known) = (rung.ratio.unwrap(), whole.ratio.unwrap());
        let [interval, of_all] = [ratio, known].map(|ratio| ratio.interval.unwrap());
        assert!((ratio.value / known.value - 1.0).abs() < 1e-9 && ratio.rounds == 3);
        assert!(interval.low < ratio.value && ratio.value < interval.high);
        // The same noise in fewer rounds, or representing more of the time, does not narrow the interval.
        assert!(interval.high / interval.low > 0.9 * of_all.high / of_all.low, "{interval:?} {of_all:?}");
    }
}

#[test]
fn what_was_not_run_is_no_rival() {
    let mut result = run(&[("mpiio", 0.5), ("posix", 1.0)]);
    edit_pattern(&mut result, 4, AccessMethod::Write, 5, |p| {
        if p.backend == "posix" {
            (p.calls, p.moved_bytes) = (0, 0);
            p.intervals = Default::default();
            p.rounds.clear();
            p.ended = crate::b_eff_io::records::StopReason::NotRun("direct".into());
        }
    });
    let ladder = derive(&result).ladder;
    let (mpiio, posix) = (of(&ladder, "mpiio", AccessMethod::Write, 5), of(&ladder, "posix", AccessMethod::Write, 5));
    assert_eq!((mpiio.best.as_deref(), posix.ratio), (Some("mpiio"), None));
    assert!(!ladder.verdicts.iter().any(|v| v.ranks == 4 && v.access == AccessMethod::Write && v.pattern == Some(5)));
}

/// mpiio is half as fast as posix, without rounds, and everything is repeated `repeats` times. Each measurement deviates by `spread`.
fn with_repetitions(random: &mut Pcg64Mcg, count: u32, spread: f64) -> RunResult {
    let mut result = run(&[("mpiio", 0.5), ("posix", 1.0)]);
    result.partitions.retain(|p| p.ranks == 4);
    result.types.retain(|t| t.ranks == 4 && t.access == AccessMethod::Read);
    result.patterns.retain(|p| p.ranks == 4 && p.access == AccessMethod::Read);
    let mut measure = |p: &PatternRecord| {
        let mut p = PatternRecord { rounds: Vec::new(), ..p.clone() };
        let slower = (spread * normal(random)).exp();
        p.intervals.transfer_seconds *= slower;
        p.intervals.decide_seconds *= slower;
        p
    };
    let truth = std::mem::take(&mut result.patterns);
    result.patterns = truth.iter().map(&mut measure).collect();
    for number in 1..=count {
        result.repetitions.extend(truth.iter().map(|p| RepetitionRecord {
            repetition: number,
            share: 1.0,
            measurement: measure(p),
        }));
        let files = result.types.iter().cloned();
        result
            .type_repetitions
            .extend(files.map(|measured| TypeRepetitionRecord { repetition: number, measurement: measured }));
    }
    result
}

#[test]
fn patterns_without_rounds_have_intervals_from_repetitions() {
    let mut random = Pcg64Mcg::seed_from_u64(4);
    let ladder = |result: &RunResult| derive(result).ladder;
    let two = ladder(&with_repetitions(&mut random, 1, 0.05));
    assert!(two
        .types
        .iter()
        .chain(&ladder(&with_repetitions(&mut random, 0, 0.05)).types)
        .all(|r| r.ratio.is_some_and(|r| r.interval.is_none())));
    let mut result = with_repetitions(&mut random, 2, 0.05);
    let three = ladder(&result);
    for rung in three.types.iter().filter(|r| r.backend == "mpiio") {
        let (ratio, interval) = (rung.ratio.unwrap(), rung.ratio.unwrap().interval.unwrap());
        assert_eq!((ratio.measurements, ratio.rounds, ratio.equal), (3, 0, Some(false)));
        assert!(interval.low <= ratio.value && ratio.value <= interval.high, "{ratio:?}");
    }
    assert!(of(&three, "mpiio", AccessMethod::Read, 1).ratio.unwrap().interval.is_some());
    assert!(three.verdicts.iter().filter(|v| v.pattern.is_none()).all(|v| v.ratio.interval.is_some()));
    // A repetition that was cut counts by its rate; one without a partner is ignored.
    let before = three.types;
    let cut = result
        .repetitions
        .iter_mut()
        .find(|r| r.measurement.pattern == 13 && r.measurement.backend == "mpiio")
        .unwrap();
    cut.measurement.moved_bytes /= 2;
    cut.measurement.intervals.transfer_seconds /= 2.0;
    cut.measurement.intervals.decide_seconds /= 2.0;
    let after = ladder(&result).types;
    for (a, b) in before.iter().zip(&after) {
        let of = |r: &TypeComparison| r.ratio.and_then(|r| r.interval).map_or(1.0, |i| i.high);
        assert!((of(a) / of(b) - 1.0).abs() < 1e-6);
    }
    // Pattern 10 is a large part of the time of type 1; small patterns need no interval.
    for (pattern, expected) in [(13, 5), (10, 4)] {
        let mut result = result.clone();
        result
            .repetitions
            .retain(|r| !(r.repetition == 2 && r.measurement.pattern == pattern && r.measurement.backend == "posix"));
        let missing = ladder(&result).types;
        let known = missing.iter().filter(|r| r.backend == "mpiio" && r.ratio.unwrap().interval.is_some()).count();
        assert_eq!(known, expected, "{pattern}");
    }
    // The third measurements of the two are not paired.
    result
        .repetitions
        .iter_mut()
        .filter(|r| r.repetition == 2 && r.measurement.backend == "posix")
        .for_each(|r| r.repetition = 3);
    assert!(ladder(&result).types.iter().all(|r| r.ratio.unwrap().interval.is_none()));
}

fn normal(random: &mut Pcg64Mcg) -> f64 {
    (0..12).map(|_| (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64).sum::<f64>() - 6.0
}

/// One long call of M_PART in each type, the other patterns in eight rounds; mpiio is half as fast as posix. Each round, each long call and
/// its repetitions deviate by `spread`. The second of two long calls is slower by `order`: in odd repetitions mpiio, else posix.
fn long_calls(random: &mut Pcg64Mcg, count: u32, spread: f64, order: f64) -> RunResult {
    const LONG: [u8; 5] = [1, 10, 18, 26, 35];
    let mut result = run(&[("mpiio", 0.5), ("posix", 1.0)]);
    result.partitions.retain(|p| p.ranks == 4);
    result.types.retain(|t| t.ranks == 4 && t.access == AccessMethod::Write);
    result.patterns.retain(|p| p.ranks == 4 && p.access == AccessMethod::Write);
    let truth = result.patterns.clone();
    let slower = |p: &mut PatternRecord, factor: f64| {
        p.intervals.transfer_seconds *= factor;
        p.intervals.decide_seconds *= factor;
    };
    let late = |p: &PatternRecord, nth: u32| if (p.backend == "posix") == nth.is_multiple_of(2) { order } else { 0.0 };
    for p in &mut result.patterns {
        let even = p.seconds() / 8.0;
        if LONG.contains(&p.pattern) {
            slower(p, (spread * normal(random) + late(p, 0)).exp());
            p.rounds = vec![RoundRecord { number: 1, calls: 1, moved_bytes: p.moved_bytes, seconds: p.seconds() }];
        } else {
            p.rounds.iter_mut().for_each(|r| r.seconds = even * (spread * normal(random)).exp());
            slower(p, p.rounds.iter().map(|r| r.seconds).sum::<f64>() / p.seconds());
        }
    }
    for index in 1..=count {
        for p in truth.iter().filter(|p| LONG.contains(&p.pattern)) {
            let mut measured = PatternRecord { rounds: Vec::new(), ..p.clone() };
            slower(&mut measured, (spread * normal(random) + late(p, index)).exp());
            result.repetitions.push(RepetitionRecord { repetition: index, share: 1.0, measurement: measured });
        }
    }
    result
}

/// Coverage: rounds of all other patterns and three measurements of the long calls contain the truth in at least 93 of 100 cases.
#[test]
fn types_with_one_long_call_hold_the_known_truth_once_it_was_repeated() {
    let mut random = Pcg64Mcg::seed_from_u64(91);
    let types = |result: &RunResult| {
        let all = derive(result).ladder.types.into_iter().filter(|t| t.backend == "mpiio");
        all.map(|t| t.ratio.unwrap()).collect::<Vec<_>>()
    };
    assert!(types(&long_calls(&mut random, 1, 0.1, 0.0)).iter().any(|r| r.interval.is_none()));
    for (repetitions, spread, order) in [(2, 0.05, 0.0), (2, 0.4, 0.0), (5, 0.2, 0.0), (2, 0.05, 0.2), (4, 0.1, 0.5)] {
        let (mut held, mut all, mut width) = (0, 0, 0.0);
        let truth = types(&long_calls(&mut random, 0, 0.0, 0.0));
        for _ in 0..simulation::run_count(60) {
            for (t, f) in truth.iter().zip(types(&long_calls(&mut random, repetitions, spread, order))) {
                let interval = f.interval.unwrap();
                // Long calls are sampled in each type: one round in the first measurement, and all measurements.
                assert_eq!((f.rounds, f.measurements), (1, u64::from(repetitions) + 1));
                assert!(interval.low <= f.value && f.value <= interval.high);
                // The median of lognormal times is not that of their sum, which is larger for both by the same factor.
                held += u32::from(interval.low <= t.value && t.value <= interval.high);
                all += 1;
                width += (interval.high / interval.low).ln() / 2.0;
            }
        }
        let (share, width) = (f64::from(held) / f64::from(all), width / f64::from(all));
        println!(
            "{repetitions} repeats, spread {spread}, order {order}: {:.1} %, half width {width:.3}",
            100.0 * share
        );
        assert!(share >= simulation::lower_bound(0.93, simulation::run_count(60)), "{repetitions} {spread}: {share}");
        assert!(width < 3.0 * (spread + order), "{repetitions} {spread}: {width}");
    }
}

/// Coverage: the intervals contain the truth in at least 93 of 100 cases. They are extended to the first measurement, so with few
/// measurements in nearly all.
#[test]
fn intervals_from_repetitions_hold_the_known_truth() {
    let mut random = Pcg64Mcg::seed_from_u64(44);
    for (repetitions, spread) in [(2, 0.02), (2, 0.3), (6, 0.1)] {
        let (mut held, mut all, mut width) = (0, 0, 0.0);
        for _ in 0..simulation::run_count(60) {
            let truth = derive(&with_repetitions(&mut random, 0, 0.0)).ladder.types;
            let found = derive(&with_repetitions(&mut random, repetitions, spread)).ladder.types;
            for (t, f) in truth.iter().zip(&found).filter(|(t, _)| t.backend == "mpiio") {
                let (t, i) = (t.ratio.unwrap().value, f.ratio.unwrap().interval.unwrap());
                (held, all) = (held + u32::from(i.low <= t && t <= i.high), all + 1);
                width += (i.high / i.low).ln() / 2.0;
            }
        }
        let share = f64::from(held) / f64::from(all);
        println!(
            "{repetitions} repeats, spread {spread}: {:.1} %, half width {:.3}",
            100.0 * share,
            width / f64::from(all)
        );
        assert!(share >= simulation::lower_bound(0.93, simulation::run_count(60)), "{repetitions} {spread}: {share}");
        assert!(width / f64::from(all) < 4.0 * spread, "{repetitions} {spread}: {width}");
    }
}
