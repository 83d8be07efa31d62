//! How sure the bandwidths are: single repetitions against each other, those of the definition and those of the time that was left.
//!
//! b_eff takes the best of three repetitions, and nobody has several of these in one run. What a run has several of is one repetition
//! of everything: S of a pattern in it is the mean over the sizes of the best method there, and the values follow as they do
//! from the best. Their mean lies below the value, which is a maximum; how far single repetitions scatter is how far
//! the machine is to be trusted.

use std::collections::BTreeMap;

use beff_statistics::repeated::{rounds, Repeated};
use schemars::JsonSchema;
use serde::Serialize;

use super::rate::bytes_per_second;
use crate::b_eff::plan::Family;
use crate::b_eff::records::{CommPatternRecord, CommResult, LoopRecord};

/// A bandwidth of single repetitions, all ranks together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RepeatedRate {
    /// Repetitions that have all sizes, repeats included; of a value, of all its patterns.
    #[schemars(range(min = 1))]
    pub repetitions: u64,
    /// Their geometric mean.
    pub mean_bytes_per_second: f64,
    /// 95 % interval of that mean within this run (Student's t on the logarithms); None: not known, fewer than 3 repetitions.
    pub interval_bytes_per_second: Option<[f64; 2]>,
    /// How far its upper end is from the mean, as a share; None: not known.
    pub reach_share: Option<f64>,
}

impl RepeatedRate {
    fn of(rates: impl IntoIterator<Item = f64>) -> Option<Self> {
        let found = Repeated::of(rates)?;
        Some(Self {
            repetitions: found.measured,
            mean_bytes_per_second: found.mean,
            interval_bytes_per_second: found.interval,
            reach_share: found.reach(),
        })
    }
}

/// The values of single repetitions; None: there is no repetition of everything they are made of.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RepeatedValue {
    /// b_eff.
    pub b_eff: Option<RepeatedRate>,
    /// Its half of the rings.
    pub rings: Option<RepeatedRate>,
    /// Its half of the random rings.
    pub random: Option<RepeatedRate>,
}

/// S of each repetition of a pattern that has all sizes, in the order of the repetitions.
pub(super) fn means(record: &CommPatternRecord, result: &CommResult) -> Vec<f64> {
    let again = result.repeats.iter().filter(|again| again.pattern == record.pattern);
    let mut by_repetition: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for of_pattern in [record].into_iter().chain(again) {
        // By index, because sizes may be equal where memory is tiny.
        for (index, size) in of_pattern.sizes.iter().enumerate() {
            let rate = |one: &LoopRecord| bytes_per_second(size.message_bytes, record.messages, one);
            for (one, rate) in size.loops.iter().filter_map(|one| Some((one, rate(one)?))) {
                let best = by_repetition.entry(one.repetition).or_default();
                if best.len() == index {
                    best.push(rate);
                } else if let Some(known) = best.get_mut(index) {
                    *known = known.max(rate);
                }
            }
        }
    }
    let sizes = result.setup.sizes_bytes.len();
    let whole = by_repetition.into_values().filter(|best| best.len() == sizes && sizes > 0);
    whole.map(|best| best.iter().sum::<f64>() / sizes as f64).collect()
}

/// Of one pattern.
pub(super) fn of_pattern(record: &CommPatternRecord, result: &CommResult) -> Option<RepeatedRate> {
    RepeatedRate::of(means(record, result))
}

/// Of the value: only if it has one, and over rounds in which all of its patterns are.
pub(super) fn of_value(result: &CommResult, has_value: [bool; 3]) -> RepeatedValue {
    let family = |family: Family| -> Vec<Vec<f64>> {
        result.patterns.iter().filter(|p| p.family == family).map(|p| means(p, result)).collect()
    };
    let (rings, random) = (family(Family::Ring), family(Family::Random));
    let [rings, random] = [&rings, &random].map(|of| of.iter().map(Vec::as_slice).collect::<Vec<&[f64]>>());
    let [b_eff, of_rings, of_random] = has_value;
    let over = |wanted: bool, families: &[Vec<&[f64]>]| {
        if wanted {
            RepeatedRate::of(rounds(families))
        } else {
            None
        }
    };
    RepeatedValue {
        b_eff: over(b_eff, &[rings.clone(), random.clone()]),
        rings: over(of_rings, &[rings]),
        random: over(of_random, &[random]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff::records::{CommEnding, CommLine, Effort, Method, Visit, Whole};
    use crate::b_eff::values::fixture::run;
    use crate::b_eff::values::{derive, kinds, CommDerived};
    use crate::frame::records::{Outcome, Record};

    /// Bandwidth grows with the size; each repetition has its factor.
    fn speed(factors: [f64; 3]) -> impl Fn(&str, Family, u64, Method, u32) -> f64 {
        move |_, _, bytes, method, repetition| {
            let method = if method == Method::Alltoallv { 0.5 } else { 1.0 };
            1e6 * bytes as f64 * method * factors[repetition as usize]
        }
    }

    /// Measures every pattern again, so much faster than the first repetition was, as a run records it.
    fn again(result: &mut CommResult, repetition: u32, factor: f64) {
        for record in result.patterns.clone() {
            let mut record = record;
            for one in record.sizes.iter_mut().flat_map(|size| &mut size.loops) {
                one.seconds /= factor;
            }
            record.sizes.iter_mut().for_each(|size| size.loops.retain(|one| one.repetition == 0));
            record.sizes.iter_mut().flat_map(|size| &mut size.loops).for_each(|one| one.repetition = repetition);
            result.absorb(CommLine::Repeat(Visit(Box::new(record))));
        }
    }

    fn close(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 1e-9
    }

    #[test]
    fn three_repetitions_have_an_interval_and_the_value_lies_above_their_mean() {
        let derived = derive(&run(2, &speed([1.0, 0.9, 0.8])));
        let (value, found) = (derived.value.b_eff.unwrap(), derived.value.of_repetitions.b_eff.unwrap());
        assert_eq!(found.repetitions, 3);
        assert!(close(value.bytes_per_second * 0.72_f64.cbrt(), found.mean_bytes_per_second));
        let [low, high] = found.interval_bytes_per_second.unwrap();
        assert!(low < found.mean_bytes_per_second && close(high, found.mean_bytes_per_second.powi(2) / low));
        for curve in &derived.curves {
            assert!(close(curve.repeated.unwrap().reach_share.unwrap(), found.reach_share.unwrap()));
        }
    }

    #[test]
    fn repeats_make_the_interval_narrower_and_leave_the_value_alone() {
        let mut result = run(2, &speed([1.0, 0.97, 1.03]));
        let first = derive(&result);
        for (repetition, factor) in [(3, 1.01), (4, 0.99), (5, 1.02)] {
            again(&mut result, repetition, factor);
        }
        assert_eq!(result.repeats.len(), result.patterns.len(), "one record for all repeats of a pattern");
        let then = derive(&result);
        let without = |derived: &CommDerived| {
            let mut value = derived.value.clone();
            value.of_repetitions = RepeatedValue { b_eff: None, rings: None, random: None };
            value
        };
        assert_eq!(without(&first), without(&then));
        let points = |derived: &CommDerived| derived.curves.iter().map(|c| c.points.clone()).collect::<Vec<_>>();
        assert_eq!(points(&first), points(&then));
        let [before, after] = [&first, &then].map(|d| d.value.of_repetitions);
        for (before, after) in [(before.b_eff, after.b_eff), (before.rings, after.rings), (before.random, after.random)]
        {
            assert_eq!((before.unwrap().repetitions, after.unwrap().repetitions), (3, 6));
            assert!(after.unwrap().reach_share < before.unwrap().reach_share);
        }
    }

    /// A round counts for the value when all of its patterns were measured again; a pattern counts its own.
    #[test]
    fn half_a_round_is_no_round_of_the_value() {
        let mut result = run(2, &speed([1.0, 0.97, 1.03]));
        again(&mut result, 3, 1.01);
        result.repeats.retain(|record| record.pattern != "random-30");
        if let Some(ring) = result.repeats.iter_mut().find(|record| record.pattern == "ring-2") {
            ring.sizes.truncate(20);
        }
        let derived = derive(&result);
        let of = |name: &str| derived.curve(name).unwrap().repeated.unwrap().repetitions;
        assert_eq!([of("ring-1"), of("ring-2"), of("random-1"), of("random-30")], [4, 3, 4, 3]);
        let value = derived.value.of_repetitions;
        assert_eq!([value.b_eff, value.rings, value.random].map(|v| v.unwrap().repetitions), [3; 3]);
    }

    #[test]
    fn what_is_not_known_is_not_said() {
        // The largest sizes once: only the first repetition has all of them.
        let mut result = run(2, &speed([1.0, 0.9, 0.8]));
        for size in result.patterns.iter_mut().flat_map(|p| p.sizes.iter_mut().skip(15)) {
            size.loops.retain(|one| one.repetition == 0);
        }
        let found = derive(&result).value.of_repetitions.b_eff.unwrap();
        assert_eq!((found.repetitions, found.interval_bytes_per_second, found.reach_share), (1, None, None));
        let mut result = run(2, &speed([1.0, 0.9, 0.8]));
        result.patterns.retain(|p| p.pattern != "ring-6");
        let value = derive(&result).value.of_repetitions;
        assert!(value.b_eff.is_none() && value.rings.is_none() && value.random.is_some());
    }

    #[test]
    fn what_was_not_reached_is_told() {
        let told = |share: Option<f64>, factors| {
            let mut result = run(2, &speed(factors));
            result.config.until_share = share;
            let derived = derive(&result);
            derived.warnings.into_iter().find(|w| w.is(&kinds::UNTIL_NOT_REACHED))
        };
        assert_eq!(told(None, [1.0, 0.5, 0.8]), None);
        assert_eq!(told(Some(0.05), [1.0, 0.999, 1.001]), None);
        let found = told(Some(0.05), [1.0, 0.5, 0.8]).unwrap();
        assert_eq!((found.number("until_share"), found.number("repetitions")), (Some(0.05), Some(3.0)));
        assert!(found.number("reach_share").unwrap() > 0.5);
        assert!(found.cause.contains("within 5.0 %: the 95 % interval over 3 repetitions reaches "), "{}", found.cause);
    }

    /// A kill among the repeats, after the line that says that the definition is whole.
    #[test]
    fn what_ends_the_repeats_leaves_the_value_valid() {
        for outcome in [Outcome::Interrupted, Outcome::Killed] {
            let mut result = run(2, &speed([1.0, 0.9, 0.8]));
            result.ending = CommEnding { outcome, ..CommEnding::default() };
            assert!(!derive(&result).valid, "{outcome:?}");
            result.whole = Some(Whole { real_seconds: 100.0, efforts: Vec::new() });
            assert!(derive(&result).valid, "{outcome:?}");
            // The loops became too short behind the announcement: the ending would have told.
            let effort = Effort { loop_seconds: 1e-3, ..result.announcement.as_ref().unwrap().effort };
            result.whole = Some(Whole { real_seconds: 100.0, efforts: vec![(50, effort)] });
            assert!(!derive(&result).valid, "{outcome:?}");
        }
    }

    #[test]
    fn wrong_data_of_a_repeat_is_wrong_data() {
        let mut result = run(2, &speed([1.0, 0.9, 0.8]));
        assert!(derive(&result).valid && !result.is_corrupt());
        again(&mut result, 3, 1.0);
        result.repeats[5].bytes_wrong = 1;
        assert!(!derive(&result).valid && result.is_corrupt());
    }
}
