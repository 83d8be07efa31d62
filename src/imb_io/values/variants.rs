//! Comparison of each variant with its backend: ratios of their rates, by pairs of measurements of the same round.

use std::collections::BTreeMap;

use beff_statistics::bootstrap::{Interval, Ratio};
use beff_statistics::mean::MeanEstimate;
use schemars::JsonSchema;
use serde::Serialize;

use super::repeated::by_row;
use crate::frame::backends::{backend_of, is_variant};
use crate::imb_io::plan::Mode;
use crate::imb_io::records::{ImbResult, RowRecord, RowStatus};

/// A variant compared with its backend, in the rows of a benchmark or in all rows.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ImbVariant {
    /// Name of the variant.
    pub backend: String,
    /// Its backend.
    pub base: String,
    /// Benchmark; None: the rows of all benchmarks.
    pub benchmark: Option<String>,
    /// Ranks of each group; None: all numbers.
    pub ranks: Option<u64>,
    /// Position of the sync of a write; None: both.
    pub mode: Option<Mode>,
    /// X; None: all sizes.
    pub sample_bytes: Option<u64>,
    /// Rows that both measured.
    pub rows: u64,
    /// Rate of the variant divided by that of its backend (time of the backend divided by that of the variant), geometric mean over the
    /// rows. In each round, which is the unit of sampling, all rows that both have in that round. None without common rows.
    pub ratio: Option<Ratio>,
    /// Wrong bytes of the variant in the whole run; above 0 it is disqualified.
    pub bytes_wrong: u64,
}

/// Ratios of a row, by round.
struct RowPair<'a> {
    record: &'a RowRecord,
    ratios: Vec<Option<f64>>,
}

/// All rows together, then each benchmark on each number of ranks in each mode, then its sizes.
pub(super) fn variants(result: &ImbResult) -> Vec<ImbVariant> {
    let again = by_row(result);
    let mut all = Vec::new();
    for variant in result.config.backends.iter().filter(|name| is_variant(name)) {
        let pairs = pairs(result, &again, variant);
        let wrong = result.measurements().filter(|row| row.backend == *variant).map(|row| row.bytes_wrong);
        let whole = ImbVariant {
            backend: variant.clone(),
            base: backend_of(variant).to_owned(),
            benchmark: None,
            ranks: None,
            mode: None,
            sample_bytes: None,
            rows: 0,
            ratio: None,
            bytes_wrong: wrong.fold(0, u64::saturating_add),
        };
        all.push(with_ratio(&whole, &pairs.iter().collect::<Vec<_>>()));
        let mut blocks: Vec<Vec<&RowPair<'_>>> = Vec::new();
        let key = |pair: &RowPair<'_>| (pair.record.benchmark.clone(), pair.record.ranks, pair.record.mode);
        for pair in &pairs {
            match blocks.iter_mut().find(|block| key(block[0]) == key(pair)) {
                Some(block) => block.push(pair),
                None => blocks.push(vec![pair]),
            }
        }
        for block in blocks {
            let record = block[0].record;
            let of_block = ImbVariant {
                benchmark: Some(record.benchmark.clone()),
                ranks: Some(record.ranks),
                mode: Some(record.mode),
                ..whole.clone()
            };
            all.push(with_ratio(&of_block, &block));
            for pair in block.iter().filter(|pair| pair.record.sample_bytes.is_some() && block.len() > 1) {
                all.push(with_ratio(
                    &ImbVariant { sample_bytes: pair.record.sample_bytes, ..of_block.clone() },
                    &[pair],
                ));
            }
        }
    }
    all
}

/// Rows of a variant that its backend measured, too.
fn pairs<'a>(result: &'a ImbResult, again: &[Vec<&'a RowRecord>], variant: &str) -> Vec<RowPair<'a>> {
    let key =
        |row: &'a RowRecord| (row.benchmark.as_str(), row.ranks, row.groups, mode_number(row.mode), row.sample_bytes);
    let of_base: BTreeMap<_, usize> = (0..result.rows.len())
        .filter(|row| result.rows[*row].backend == backend_of(variant))
        .map(|row| (key(&result.rows[row]), row))
        .collect();
    let own = (0..result.rows.len()).filter(|row| result.rows[*row].backend == variant);
    let pair = |row: usize| {
        let base = *of_base.get(&key(&result.rows[row]))?;
        let measurements = |row: usize| [&result.rows[row]].into_iter().chain(again[row].iter().copied());
        let ratio = |(own, base)| Some(seconds(base)? / seconds(own)?);
        Some(RowPair {
            record: &result.rows[row],
            ratios: measurements(row).zip(measurements(base)).map(ratio).collect(),
        })
    };
    own.filter_map(pair).filter(|pair| pair.ratios.first().is_some_and(Option::is_some)).collect()
}

fn mode_number(mode: Mode) -> u8 {
    u8::from(mode == Mode::NonAggregate)
}

/// Time of an iteration of the slowest group; None: not complete, or too short for the clock.
fn seconds(record: &RowRecord) -> Option<f64> {
    let slowest = record.times.iter().map(|times| times.max_seconds).fold(0.0, f64::max);
    (record.ended == RowStatus::Complete && slowest > 0.0 && slowest.is_finite()).then_some(slowest)
}

fn with_ratio(of: &ImbVariant, pairs: &[&RowPair<'_>]) -> ImbVariant {
    // A round counts if all rows have it: otherwise rounds would be means of different rows.
    let rounds = pairs.iter().map(|pair| pair.ratios.len()).min().unwrap_or(0);
    let of_round = |round: usize| {
        let logs: Option<Vec<f64>> = pairs.iter().map(|pair| pair.ratios[round].map(f64::ln)).collect();
        logs.map(|logs| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
    };
    let found = MeanEstimate::of((0..rounds).filter_map(of_round));
    let ratio = found.map(|found| {
        let interval = found.interval.map(Interval::from);
        Ratio {
            value: found.mean,
            interval,
            equal: interval.map(|i| i.low <= 1.0 && i.high >= 1.0),
            rounds: found.measurements,
            measurements: 0,
        }
    });
    ImbVariant { rows: pairs.len() as u64, ratio, ..of.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::variants::BackendVariant;
    use crate::imb_io::records::RowRepetition;
    use crate::imb_io::values::fixture;

    /// The variant is faster by `factor(round)` in all rows.
    fn result(rounds: u64, factor: impl Fn(u64) -> f64) -> ImbResult {
        let mut result = fixture::run();
        result.config.backends.push("mpiio+deep".into());
        result.config.variants = vec![BackendVariant { backend: "mpiio+deep".into(), ..BackendVariant::default() }];
        for bytes in [4096, 65536] {
            let row = fixture::row("P_Write_Expl", 2, Mode::Aggregate, Some(bytes));
            let changed = |round: u64| {
                let mut changed = RowRecord { backend: "mpiio+deep".into(), ..row.clone() };
                changed.times.iter_mut().for_each(|times| times.max_seconds /= factor(round));
                changed
            };
            let at = result.rows.len() as u64;
            for round in 1..rounds {
                result.repetitions.push(RowRepetition { row: at, measurement: row.clone() });
                result.repetitions.push(RowRepetition { row: at + 1, measurement: changed(round) });
            }
            result.rows.extend([row.clone(), changed(0)]);
        }
        result
    }

    #[test]
    fn a_faster_variant_has_its_ratio_in_all_rows_in_the_benchmark_and_in_each_size() {
        let found = variants(&result(5, |round| 1.5 + 0.01 * round as f64));
        assert_eq!(found.iter().map(|v| v.rows).collect::<Vec<_>>(), [2, 2, 1, 1]);
        let sizes: Vec<_> = found.iter().map(|v| v.sample_bytes).collect();
        assert_eq!(sizes, [None, None, Some(4096), Some(65536)]);
        for one in &found {
            let ratio = one.ratio.unwrap();
            assert!((1.5..1.55).contains(&ratio.value), "{one:?}");
            assert_eq!((ratio.equal, ratio.rounds, &one.base[..]), (Some(false), 5, "mpiio"));
        }
        assert_eq!((&found[0].benchmark, found[1].benchmark.as_deref()), (&None, Some("P_Write_Expl")));
    }

    #[test]
    fn a_variant_without_effect_is_equal_and_two_rounds_give_no_interval() {
        let found = variants(&result(6, |round| if round % 2 == 0 { 1.02 } else { 0.98 }));
        assert!(found.iter().all(|v| v.ratio.unwrap().equal == Some(true)), "{found:?}");
        let few = variants(&result(2, |_| 2.0));
        assert_eq!(few[0].ratio.map(|r| (r.interval, r.equal)), Some((None, None)));
    }

    #[test]
    fn failed_rows_do_not_count_and_wrong_data_disqualifies() {
        let mut result = result(4, |_| 2.0);
        result.rows[1].ended = RowStatus::Error("no".into());
        result.rows[3].bytes_wrong = 8;
        let found = variants(&result);
        assert_eq!(found.iter().map(|v| (v.rows, v.bytes_wrong)).collect::<Vec<_>>(), [(1, 8), (1, 8)]);
        result.rows.truncate(2);
        result.repetitions.clear();
        assert_eq!(variants(&result).iter().map(|v| v.ratio).collect::<Vec<_>>(), [None]);
        result.config.backends.truncate(1);
        assert_eq!(variants(&result), []);
    }
}
