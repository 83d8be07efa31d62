//! Effect of a change of the calls (`--what-if`), and of the options of variants: times over those of the unchanged calls, by pairs of
//! repetitions.

use std::collections::BTreeMap;

use beff_statistics::bootstrap::{paired_ratio, PairedTotals, Ratio};
use schemars::JsonSchema;
use serde::Serialize;

use crate::frame::backends::{backend_of, is_variant};
use crate::replay::plan::CallTally;
use crate::replay::records::ReplayResult;

/// Effect of a change.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ChangeEffect {
    /// The change.
    pub change: String,
    /// Pairs of complete repetitions with the same number, one unchanged, one changed.
    pub pairs: u64,
    /// Time in all calls with the change over the time without, each summed over the pairs; None without pairs.
    pub time_ratio: Option<f64>,
    /// 95 % confidence interval of the ratio; None with fewer than 3 pairs.
    pub interval: Option<[f64; 2]>,
    /// True if the interval contains 1: the difference is not significant; None without an interval.
    pub is_insignificant: Option<bool>,
    /// Time in all calls without the change, mean over the pairs.
    pub unchanged_seconds: f64,
    /// The same with the change.
    pub changed_seconds: f64,
    /// Bytes written by a repetition without the change.
    pub unchanged_written_bytes: u64,
    /// The same with the change.
    pub changed_written_bytes: u64,
}

/// Sums of one repetition.
#[derive(Clone, Copy, Default)]
struct RepetitionSums {
    seconds: f64,
    written_bytes: u64,
}

/// The sums of each complete timed repetition of this name.
fn repetitions(result: &ReplayResult, name: &str) -> BTreeMap<u64, RepetitionSums> {
    let complete = result.repetitions.iter().filter(|p| p.backend == name && p.is_timed_complete());
    let mut all: BTreeMap<u64, RepetitionSums> = complete.map(|p| (p.repetition, RepetitionSums::default())).collect();
    for record in result.classes.iter().filter(|record| record.backend == name) {
        let Some(sums) = all.get_mut(&record.repetition) else { continue };
        let CallTally { seconds, bytes, .. } = record.both.replayed;
        sums.seconds += seconds;
        if record.class.is_write() {
            sums.written_bytes = sums.written_bytes.saturating_add(bytes);
        }
    }
    all
}

/// Complete repetitions of two names with the same number.
fn pairs(result: &ReplayResult, names: [&str; 2]) -> Vec<[RepetitionSums; 2]> {
    let [of_first, of_second] = names.map(|name| repetitions(result, name));
    of_first.iter().filter_map(|(number, own)| Some([*own, *of_second.get(number)?])).collect()
}

/// Rate of the first of each pair over that of the second, which do equal amounts of work: the inverse of the ratio of their times.
fn rate_ratio(pairs: &[[RepetitionSums; 2]]) -> Option<Ratio> {
    let totals = |[own, base]: &[RepetitionSums; 2]| PairedTotals {
        bytes: 1.0,
        seconds: own.seconds,
        base_bytes: 1.0,
        base_seconds: base.seconds,
    };
    paired_ratio(&pairs.iter().map(totals).collect::<Vec<_>>())
}

/// A variant compared with its backend.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReplayVariant {
    /// Name of the variant.
    pub backend: String,
    /// Its backend.
    pub base: String,
    /// Rate of the variant divided by that of its backend (time in all calls with the backend divided by that with the variant), by pairs
    /// of complete repetitions with the same number. None without pairs.
    pub ratio: Option<Ratio>,
    /// Wrong bytes of the variant in the whole run; above 0 it is disqualified.
    pub bytes_wrong: u64,
}

pub(super) fn variants(result: &ReplayResult) -> Vec<ReplayVariant> {
    let compare = |name: &String| {
        let wrong = result.repetitions.iter().filter(|p| p.backend == *name).map(|p| p.bytes_wrong);
        ReplayVariant {
            backend: name.clone(),
            base: backend_of(name).to_owned(),
            ratio: rate_ratio(&pairs(result, [name, backend_of(name)])),
            bytes_wrong: wrong.fold(0, u64::saturating_add),
        }
    };
    result.config.backends.iter().filter(|name| is_variant(name)).map(compare).collect()
}

pub(super) fn change_effect(result: &ReplayResult) -> Option<ChangeEffect> {
    let change = result.config.what_if.as_ref()?;
    let pairs = pairs(result, [result.config.backends.first()?, change.name()]);
    let ratio = rate_ratio(&pairs);
    let mean = |which: usize| pairs.iter().map(|pair| pair[which].seconds).sum::<f64>() / pairs.len().max(1) as f64;
    let last = pairs.last().copied().unwrap_or_default();
    Some(ChangeEffect {
        change: change.text(),
        pairs: pairs.len() as u64,
        time_ratio: ratio.as_ref().map(|ratio| ratio.value),
        interval: ratio.as_ref().and_then(|ratio| Some([ratio.interval?.low, ratio.interval?.high])),
        is_insignificant: ratio.as_ref().and_then(|ratio| ratio.equal),
        unchanged_seconds: mean(0),
        changed_seconds: mean(1),
        unchanged_written_bytes: last[0].written_bytes,
        changed_written_bytes: last[1].written_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::config::WhatIf;
    use crate::replay::records::RepetitionStatus;
    use crate::replay::values::fixture::run;

    /// The changed calls take this many times as long.
    fn slowed(repetitions: u64, factor: impl Fn(u64) -> f64) -> ReplayResult {
        let mut result = run(&["mpiio", "fill-never"], repetitions);
        result.config.what_if = Some(WhatIf::FillNever);
        let unchanged: Vec<_> = result.classes.iter().filter(|record| record.backend == "mpiio").cloned().collect();
        result.classes.retain(|record| record.backend == "mpiio");
        result.classes.extend(unchanged.into_iter().map(|mut record| {
            record.backend = "fill-never".to_owned();
            record.both.replayed.seconds *= factor(record.repetition);
            record.both.replayed.bytes /= 2;
            record
        }));
        result
    }

    #[test]
    fn the_effect_is_a_ratio_of_times_with_an_interval() {
        let effect = change_effect(&slowed(4, |_| 0.5)).unwrap();
        assert!((effect.time_ratio.unwrap() - 0.5).abs() < 1e-9, "{effect:?}");
        assert_eq!((effect.pairs, effect.is_insignificant, &effect.change[..]), (4, Some(false), "fill-never"));
        assert!((effect.changed_seconds * 2.0 - effect.unchanged_seconds).abs() < 1e-9, "{effect:?}");
        assert_eq!((effect.unchanged_written_bytes, effect.changed_written_bytes), (20 << 20, 10 << 20));
        let varied = change_effect(&slowed(4, |number| if number % 2 == 0 { 0.8 } else { 1.25 })).unwrap();
        assert_eq!(varied.is_insignificant, Some(true), "{varied:?}");
        let few = change_effect(&slowed(2, |_| 0.5)).unwrap();
        assert_eq!((few.pairs, few.interval, few.is_insignificant), (2, None, None));
    }

    #[test]
    fn a_variant_is_compared_with_its_backend() {
        let mut result = slowed(4, |number| 0.5 + 0.001 * number as f64);
        assert_eq!(variants(&result), []);
        result.config.what_if = None;
        let rename = |name: &mut String| *name = name.replace("fill-never", "mpiio+two");
        result.config.backends.iter_mut().for_each(rename);
        result.repetitions.iter_mut().for_each(|p| rename(&mut p.backend));
        result.classes.iter_mut().for_each(|record| rename(&mut record.backend));
        let found = variants(&result).remove(0);
        let ratio = found.ratio.unwrap();
        assert!((1.98..2.0).contains(&ratio.value) && ratio.equal == Some(false), "{found:?}");
        assert_eq!((&found.backend[..], &found.base[..], found.bytes_wrong), ("mpiio+two", "mpiio", 0));
        result.repetitions.iter_mut().filter(|p| p.backend == "mpiio+two").for_each(|p| p.bytes_wrong = 1);
        assert_eq!(variants(&result)[0].bytes_wrong, 4);
        result.repetitions.retain(|p| p.backend == "mpiio");
        assert_eq!(variants(&result)[0].ratio, None);
    }

    #[test]
    fn only_complete_pairs_count() {
        let mut result = slowed(3, |_| 0.5);
        result.repetitions.iter_mut().filter(|p| p.repetition == 2 && p.backend == "mpiio").for_each(|p| {
            p.ended = RepetitionStatus::Interrupted;
        });
        assert_eq!(change_effect(&result).unwrap().pairs, 2);
        result.repetitions.clear();
        let nothing = change_effect(&result).unwrap();
        assert_eq!((nothing.pairs, nothing.time_ratio), (0, None));
        result.config.what_if = None;
        assert_eq!(change_effect(&result), None);
    }
}
