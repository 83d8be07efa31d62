//! Confidence intervals of the bandwidths, from single repetitions: those of the definition and the further ones.
//!
//! b_eff is the best of three repetitions, of which a run has only one. But a run has several single repetitions of all patterns:
//! S of a pattern in one repetition is the mean over the sizes of the best method, and the values are derived from it as from
//! the best. Their mean is below the value, which is a maximum; the spread of single repetitions is a measure of the
//! reproducibility on this machine.

use std::collections::BTreeMap;

use beff_statistics::mean::{round_means, MeanEstimate};
use schemars::JsonSchema;
use serde::Serialize;

use super::rate::bytes_per_second;
use crate::b_eff::plan::PatternFamily;
use crate::b_eff::records::{CommPatternRecord, CommResult, LoopRecord};

/// A bandwidth of single repetitions, all ranks together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RateEstimate {
    /// Number of repetitions with all sizes, further ones included; for a value, those with all its patterns.
    #[schemars(range(min = 1))]
    pub repetitions: u64,
    /// Their geometric mean.
    pub mean_bytes_per_second: f64,
    /// 95 % interval of that mean within this run (Student's t on the logarithms); None with fewer than 3 repetitions.
    pub interval_bytes_per_second: Option<[f64; 2]>,
    /// Half-width: distance of the upper end from the mean, as a share of it; None if unknown.
    pub half_width_share: Option<f64>,
}

impl RateEstimate {
    fn of(rates: impl IntoIterator<Item = f64>) -> Option<Self> {
        let found = MeanEstimate::of(rates)?;
        Some(Self {
            repetitions: found.measurements,
            mean_bytes_per_second: found.mean,
            interval_bytes_per_second: found.interval,
            half_width_share: found.half_width_share(),
        })
    }
}

/// Values of single repetitions; None if no repetition has all their patterns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ValueEstimates {
    /// b_eff.
    pub b_eff: Option<RateEstimate>,
    /// The half of the rings.
    pub rings: Option<RateEstimate>,
    /// The half of the random rings.
    pub random: Option<RateEstimate>,
}

/// S of each repetition of a pattern with all sizes, in order.
pub(super) fn repetition_means(record: &CommPatternRecord, result: &CommResult) -> Vec<f64> {
    let again = result.repetitions.iter().filter(|again| again.pattern == record.pattern);
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

pub(super) fn pattern_estimate(record: &CommPatternRecord, result: &CommResult) -> Option<RateEstimate> {
    RateEstimate::of(repetition_means(record, result))
}

/// Estimates of the values, over rounds with all patterns; None where the run has no value.
pub(super) fn value_estimates(result: &CommResult, has_value: [bool; 3]) -> ValueEstimates {
    let family = |family: PatternFamily| -> Vec<Vec<f64>> {
        result.patterns.iter().filter(|p| p.family == family).map(|p| repetition_means(p, result)).collect()
    };
    let (rings, random) = (family(PatternFamily::Ring), family(PatternFamily::Random));
    let [rings, random] = [&rings, &random].map(|of| of.iter().map(Vec::as_slice).collect::<Vec<&[f64]>>());
    let [b_eff, of_rings, of_random] = has_value;
    let over = |wanted: bool, families: &[Vec<&[f64]>]| {
        if wanted {
            RateEstimate::of(round_means(families))
        } else {
            None
        }
    };
    ValueEstimates {
        b_eff: over(b_eff, &[rings.clone(), random.clone()]),
        rings: over(of_rings, &[rings]),
        random: over(of_random, &[random]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff::records::{
        CommEnding, CommLine, DefinitionRecord, MeasurementEffort, MessageMethod, PatternRepetition,
    };
    use crate::b_eff::values::fixture::run;
    use crate::b_eff::values::{derive, kinds, CommDerived};
    use crate::frame::records::{JournaledResult, RunOutcome};

    /// Bandwidth proportional to the size, with a factor for each repetition.
    fn speed(factors: [f64; 3]) -> impl Fn(&str, PatternFamily, u64, MessageMethod, u32) -> f64 {
        move |_, _, bytes, method, repetition| {
            let method = if method == MessageMethod::Alltoallv { 0.5 } else { 1.0 };
            1e6 * bytes as f64 * method * factors[repetition as usize]
        }
    }

    /// Adds a repetition of every pattern, faster than the first by `factor`, as recorded by a run.
    fn add_repetition(result: &mut CommResult, repetition: u32, factor: f64) {
        for record in result.patterns.clone() {
            let mut record = record;
            for one in record.sizes.iter_mut().flat_map(|size| &mut size.loops) {
                one.seconds /= factor;
            }
            record.sizes.iter_mut().for_each(|size| size.loops.retain(|one| one.repetition == 0));
            record.sizes.iter_mut().flat_map(|size| &mut size.loops).for_each(|one| one.repetition = repetition);
            result.apply(CommLine::Repetition(PatternRepetition(Box::new(record))));
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
            assert!(close(curve.repeated.unwrap().half_width_share.unwrap(), found.half_width_share.unwrap()));
        }
    }

    #[test]
    fn repetitions_make_the_interval_narrower_and_do_not_change_the_value() {
        let mut result = run(2, &speed([1.0, 0.97, 1.03]));
        let first = derive(&result);
        for (repetition, factor) in [(3, 1.01), (4, 0.99), (5, 1.02)] {
            add_repetition(&mut result, repetition, factor);
        }
        assert_eq!(result.repetitions.len(), result.patterns.len(), "one record for all repetitions of a pattern");
        let then = derive(&result);
        let without = |derived: &CommDerived| {
            let mut value = derived.value.clone();
            value.of_repetitions = ValueEstimates { b_eff: None, rings: None, random: None };
            value
        };
        assert_eq!(without(&first), without(&then));
        let points = |derived: &CommDerived| derived.curves.iter().map(|c| c.points.clone()).collect::<Vec<_>>();
        assert_eq!(points(&first), points(&then));
        let [before, after] = [&first, &then].map(|d| d.value.of_repetitions);
        for (before, after) in [(before.b_eff, after.b_eff), (before.rings, after.rings), (before.random, after.random)]
        {
            assert_eq!((before.unwrap().repetitions, after.unwrap().repetitions), (3, 6));
            assert!(after.unwrap().half_width_share < before.unwrap().half_width_share);
        }
    }

    /// A round counts for the value if all of its patterns were repeated; a pattern counts its own repetitions.
    #[test]
    fn an_incomplete_round_does_not_count_for_the_value() {
        let mut result = run(2, &speed([1.0, 0.97, 1.03]));
        add_repetition(&mut result, 3, 1.01);
        result.repetitions.retain(|record| record.pattern != "random-30");
        if let Some(ring) = result.repetitions.iter_mut().find(|record| record.pattern == "ring-2") {
            ring.sizes.truncate(20);
        }
        let derived = derive(&result);
        let of = |name: &str| derived.curve(name).unwrap().repeated.unwrap().repetitions;
        assert_eq!([of("ring-1"), of("ring-2"), of("random-1"), of("random-30")], [4, 3, 4, 3]);
        let value = derived.value.of_repetitions;
        assert_eq!([value.b_eff, value.rings, value.random].map(|v| v.unwrap().repetitions), [3; 3]);
    }

    #[test]
    fn too_few_repetitions_have_no_interval() {
        // The largest sizes once: only the first repetition has all of them.
        let mut result = run(2, &speed([1.0, 0.9, 0.8]));
        for size in result.patterns.iter_mut().flat_map(|p| p.sizes.iter_mut().skip(15)) {
            size.loops.retain(|one| one.repetition == 0);
        }
        let found = derive(&result).value.of_repetitions.b_eff.unwrap();
        assert_eq!((found.repetitions, found.interval_bytes_per_second, found.half_width_share), (1, None, None));
        let mut result = run(2, &speed([1.0, 0.9, 0.8]));
        result.patterns.retain(|p| p.pattern != "ring-6");
        let value = derive(&result).value.of_repetitions;
        assert!(value.b_eff.is_none() && value.rings.is_none() && value.random.is_some());
    }

    #[test]
    fn a_missed_half_width_raises_a_warning() {
        let warning_for = |share: Option<f64>, factors| {
            let mut result = run(2, &speed(factors));
            result.config.until_share = share;
            let derived = derive(&result);
            derived.warnings.into_iter().find(|w| w.is_kind(&kinds::UNTIL_NOT_REACHED))
        };
        assert_eq!(warning_for(None, [1.0, 0.5, 0.8]), None);
        assert_eq!(warning_for(Some(0.05), [1.0, 0.999, 1.001]), None);
        let found = warning_for(Some(0.05), [1.0, 0.5, 0.8]).unwrap();
        assert_eq!((found.number("until_share"), found.number("repetitions")), (Some(0.05), Some(3.0)));
        assert!(found.number("half_width_share").unwrap() > 0.5);
        assert!(
            found.cause.contains("within 5.0 %: the half-width of its 95 % interval over 3 repetitions is "),
            "{}",
            found.cause
        );
    }

    /// An end during further repetitions, after the line of the complete definition.
    #[test]
    fn an_end_during_repetitions_leaves_the_value_valid() {
        for outcome in [RunOutcome::Interrupted, RunOutcome::Killed] {
            let mut result = run(2, &speed([1.0, 0.9, 0.8]));
            result.ending = CommEnding { outcome, ..CommEnding::default() };
            assert!(!derive(&result).valid, "{outcome:?}");
            result.definition = Some(DefinitionRecord { real_seconds: 100.0, efforts: Vec::new() });
            assert!(derive(&result).valid, "{outcome:?}");
            // The loops became too short after the announcement, which the ending would report.
            let effort = MeasurementEffort { loop_seconds: 1e-3, ..result.announcement.as_ref().unwrap().effort };
            result.definition = Some(DefinitionRecord { real_seconds: 100.0, efforts: vec![(50, effort)] });
            assert!(!derive(&result).valid, "{outcome:?}");
        }
    }

    #[test]
    fn corruption_in_a_repetition_is_corruption() {
        let mut result = run(2, &speed([1.0, 0.9, 0.8]));
        assert!(derive(&result).valid && !result.is_corrupt());
        add_repetition(&mut result, 3, 1.0);
        result.repetitions[5].bytes_wrong = 1;
        assert!(!derive(&result).valid && result.is_corrupt());
    }
}
