//! Repetitions give the confidence intervals of values and change no value.

use beff_statistics::simulation;
use rand_pcg::rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{RepetitionRecord, StopReason, TypeRepetitionRecord};
use crate::b_eff_io::values::derive;
use crate::b_eff_io::values::fixture::full_run;
use crate::frame::records::RunOutcome;

fn normal(random: &mut Pcg64Mcg) -> f64 {
    let mut uniform = || (f64::from(random.next_u32()) + 0.5) / 4_294_967_296.0;
    (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos()
}

/// A run whose true rates are those of the fixture; each measurement deviates by `spread`, with `repeats` repetitions of each access
/// method.
fn noisy(seed: u64, spread: f64, repeats: [u32; 3]) -> RunResult {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut result = full_run();
    result.partitions.retain(|p| p.ranks == 4);
    result.config.repeat = RepeatPolicy::Auto;
    let truth = std::mem::take(&mut result.patterns);
    let truth: Vec<PatternRecord> = truth.into_iter().filter(|p| p.ranks == 4).collect();
    result.types.retain(|t| t.ranks == 4);
    let mut clock = 0.0;
    let mut measure = |p: &PatternRecord| {
        let rate = (spread * normal(&mut random)).exp();
        clock += 0.1;
        let mut p = PatternRecord { at_seconds: Some(clock), ..p.clone() };
        if p.ended == StopReason::Time {
            p.moved_bytes = (p.moved_bytes as f64 * rate) as u64;
        } else {
            p.intervals.transfer_seconds /= rate;
        }
        p
    };
    result.patterns = truth.iter().map(&mut measure).collect();
    for repeat in 1..=repeats.into_iter().max().unwrap_or(0) {
        for p in truth.iter().filter(|p| repeats[p.access as usize] >= repeat) {
            result.repetitions.push(RepetitionRecord { repetition: repeat, share: 1.0, measurement: measure(p) });
        }
        for t in result.types.clone().iter().filter(|t| repeats[t.access as usize] >= repeat) {
            result.type_repetitions.push(TypeRepetitionRecord { repetition: repeat, measurement: t.clone() });
        }
    }
    result
}

#[test]
fn repetitions_change_no_value() {
    for outcome in [RunOutcome::Complete, RunOutcome::Failed] {
        let mut with = noisy(3, 0.2, [1, 3, 3]);
        with.ending.outcome = outcome;
        let mut without = with.clone();
        without.repetitions.clear();
        without.type_repetitions.clear();
        let (a, b) = (derive(&with), derive(&without));
        assert_eq!((&a.patterns, &a.types, &a.partitions), (&b.patterns, &b.types, &b.partitions));
        assert_eq!((&a.systems, &a.times, &a.reads), (&b.systems, &b.times, &b.reads));
        assert_eq!(a.validity, b.validity);
        assert_eq!(b.intervals, RepetitionIntervals::default());
        assert_eq!((a.intervals.values.len(), a.intervals.types.len(), a.intervals.patterns.len()), (1, 15, 3 * 43));
    }
}

/// A run that was interrupted during its repetitions is complete.
#[test]
fn a_stop_during_repetitions_keeps_the_first_measurement_valid() {
    let valid = |result: &RunResult| derive(result).validity.iter().find(|v| v.release == Release::R1).unwrap().valid;
    let mut result = noisy(3, 0.01, [1, 2, 2]);
    assert!(valid(&result), "{:?}", derive(&result).validity);
    for outcome in [RunOutcome::Interrupted, RunOutcome::Limit, RunOutcome::Killed] {
        result.ending.outcome = outcome;
        assert!(valid(&result), "{outcome:?}");
    }
    result.repetitions.clear();
    assert!(!valid(&result), "it is unknown whether the first measurement was complete");
}

/// Coverage in simulated runs, through all of the values: by time and by counts, all releases.
#[test]
fn the_true_value_is_in_the_interval() {
    let (runs, spread) = (simulation::run_count(100), 0.1);
    for release in [Release::R1, Release::R0_5, Release::R2_1] {
        let mut exact = noisy(0, 0.0, [0, 0, 0]);
        exact.config.release = release;
        let exact = derive(&exact);
        let truth = release_value(&exact.partitions[0], release).unwrap();
        let (mut held, mut of_types) = (0, 0);
        for seed in 1..=u64::from(runs) {
            let mut result = noisy(seed, spread, [1, 3, 3]);
            result.config.release = release;
            let derived = derive(&result);
            let value = &derived.intervals.values[0];
            held += u32::from(value.low <= truth && truth <= value.high);
            of_types += derived
                .intervals
                .types
                .iter()
                .filter(|i| {
                    let is_it = |t: &&TypeValue| Some(t.access) == i.access && Some(t.pattern_type) == i.pattern_type;
                    let truth = exact.types.iter().find(is_it).and_then(|t| t.mb_per_second).unwrap();
                    i.low <= truth && truth <= i.high
                })
                .count() as u32;
        }
        let [held, of_types] = [f64::from(held) / f64::from(runs), f64::from(of_types) / f64::from(15 * runs)];
        println!("release {}: {:.1} % of b_eff_io, {:.1} % of types", release.name(), 100.0 * held, 100.0 * of_types);
        let least = simulation::lower_bound(0.93, runs);
        assert!(held >= least && of_types >= least, "{held} {of_types}");
    }
}

#[test]
fn what_was_not_measured_again_is_not_known() {
    let of = |counts| derive(&noisy(5, 0.05, counts)).intervals;
    let found = of([0, 2, 2]);
    assert!(
        found.values.is_empty() && found.of_type("mpiio", 4, AccessMethod::Write, PatternType::Scatter).is_none(),
        "no first write was repeated"
    );
    assert!(found.types.iter().all(|i| i.access != Some(AccessMethod::Write)));
    let found = of([1, 1, 1]);
    assert!(
        found.patterns.iter().all(|i| i.low.is_none() && i.measurements == 2),
        "two measurements are too few for an interval of their own"
    );
    assert!(found.values.len() == 1 && found.values[0].pooled_share > 0.9, "{found:?}");
    let found = of([2, 2, 2]);
    assert!(
        found.patterns.iter().all(|i| i.low.is_some()) && found.values[0].pooled_share < 0.05,
        "{:?}",
        found.values
    );
}

/// Scatter by 100 % of each measurement gives no interval of b_eff_io to speak of.
#[test]
fn a_wide_interval_names_the_time_that_would_resolve_it() {
    let value = |spread| derive(&noisy(5, spread, [1, 2, 2])).intervals.values.remove(0);
    let narrow = value(0.02);
    assert!(narrow.resolved().is_some() && narrow.resolving_time_seconds.is_none(), "{narrow:?}");
    let wide = value(3.0);
    assert!(wide.high > 2.0 * wide.low && wide.resolved().is_none(), "{wide:?}");
    // Four times T halves the logarithm of the width.
    let interval = |width: f64| Interval { low: 100.0 / width, high: 100.0 };
    assert_eq!(resolving_time_seconds(interval(2.0), 60.0), None);
    assert!((resolving_time_seconds(interval(4.0), 60.0).unwrap() - 240.0).abs() < 1e-9);
    assert!((resolving_time_seconds(interval(16.0), 60.0).unwrap() - 960.0).abs() < 1e-9);
    assert_eq!(
        wide.resolving_time_seconds,
        resolving_time_seconds(interval(wide.high / wide.low), full_run().config.time_seconds)
    );
    assert_eq!(resolving_time_seconds(Interval { low: 0.0, high: 1.0 }, 60.0), Some(f64::INFINITY));
}

#[test]
fn patterns_whose_repetitions_differ_are_named() {
    let warned = |result: &RunResult| derive(result).warnings.into_iter().find(|w| w.is_kind(&kinds::REPEATS_DIFFER));
    let mut result = noisy(5, 0.02, [3, 5, 5]);
    assert_eq!(warned(&result), None);
    for r in result
        .repetitions
        .iter_mut()
        .filter(|r| r.measurement.access == AccessMethod::Read && r.measurement.pattern == 12)
    {
        r.measurement.intervals.transfer_seconds /= 4.0;
    }
    let found = warned(&result).unwrap();
    assert_eq!(
        (found.number("patterns"), found.number("pattern"), found.text("access")),
        (Some(1.0), Some(12.0), "read")
    );
    assert!(found.cause.contains(", in pattern 12, read on "), "{}", found.cause);
}

#[test]
fn an_interval_wider_than_requested_is_reported() {
    let warned = |result: &RunResult| derive(result).warnings.iter().any(|w| w.is_kind(&kinds::NOT_NARROW));
    let mut result = noisy(5, 0.02, [2, 4, 4]);
    assert!(!warned(&result));
    result.config.until_percent = Some(50.0);
    assert!(!warned(&result));
    result.config.until_percent = Some(0.01);
    assert!(warned(&result));
    let number = |result: &RunResult| derive(result).warnings.iter().filter(|w| w.is_kind(&kinds::NOT_NARROW)).count();
    result.config.backends.push("uring".into());
    assert_eq!(number(&result), 1, "one was omitted");
    result.repetitions.clear();
    assert!(warned(&result), "without repetitions the interval is unknown");
}

/// The needs have one block for each partition; the widest interval and the weights are finite once there are repetitions.
#[test]
fn repetition_needs_have_their_order() {
    let result = noisy(5, 0.05, [1, 2, 2]);
    let judged = repetition_needs(&result);
    assert_eq!(judged.len(), 16);
    assert!(judged[0] > 0.0 && judged[0] < 1.0 && judged[1..].iter().all(|need| *need > 0.0), "{judged:?}");
    // A backend without measurements does not prevent the end of the run.
    let mut with_another = result.clone();
    with_another.config.backends.push("uring".into());
    assert_eq!(repetition_needs(&with_another), judged);
    let none = repetition_needs(&noisy(5, 0.05, [0, 0, 0]));
    assert!(none[0].is_infinite() && none[1..].iter().all(|need| *need == 0.0));
}
