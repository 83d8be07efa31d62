//! Rates of measurements in other orders. No value of b_eff_io depends on them.

use std::collections::HashMap;

use beff_statistics::bootstrap::{paired_ratio, PairedTotals, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ladder::{self, PatternComparison};
use super::pattern::rate;
use super::totals::TypeRecordIndex;
use crate::b_eff_io::config::{CallOrder, ChunkOrder, ReadShare};
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{OrderedRecord, PatternRecord, RunResult};
use crate::frame::records::AccessMethod;

/// Rate of one pattern in one order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OrderValue {
    /// The order.
    pub order: ChunkOrder,
    /// Share of reads; None: all calls have one direction.
    #[serde(default)]
    pub mix: Option<ReadShare>,
    /// Backend name.
    pub backend: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method: rewrite or read; with reads and writes rewrite.
    pub access: AccessMethod,
    /// Pattern type: 0, 2 or 3.
    pub pattern_type: PatternType,
    /// Pattern number, 0 to 42.
    pub pattern: u8,
    /// 1e6 bytes/s, of both directions together; None if nothing was moved.
    pub mb_per_second: Option<f64>,
    /// Lower end of its 95 % confidence interval, from the rounds; None with fewer than 3.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Backend with the largest rate in this order; None with one backend, or if none has a rate.
    pub best: Option<String>,
    /// This rate divided by that of the best backend; 1 for the best itself, without an interval.
    pub ratio: Option<Ratio>,
}

impl OrderValue {
    /// The order, and the share of reads.
    #[must_use]
    pub fn call_order(&self) -> CallOrder {
        CallOrder { order: self.order, mix: self.mix }
    }
}

/// The measurements in one order as those of a run of their own.
#[must_use]
pub fn in_order(result: &RunResult, order: CallOrder) -> RunResult {
    let RunResult { config, manifest, harness, partitions, .. } = result;
    let mut own = RunResult::new(config.clone(), manifest.clone(), *harness, partitions.clone());
    let of_order = result.ordered.iter().filter(|o| o.call_order() == order);
    own.patterns = of_order.map(|o| o.measurement.clone()).collect();
    own
}

/// One for each record, in the sequence of measurement.
pub(super) fn values(result: &RunResult) -> Vec<OrderValue> {
    let mut compared = HashMap::new();
    for order in result.config.call_orders() {
        let own = in_order(result, order);
        let ladder = ladder::ladder(&own, &TypeRecordIndex::new(&own));
        let key = |c: &PatternComparison| (order, c.backend.clone(), c.ranks, c.access, c.pattern);
        compared.extend(ladder.patterns.into_iter().map(|c| (key(&c), c)));
    }
    let of = |o: &OrderedRecord| {
        let p = &o.measurement;
        let order = o.call_order();
        value(order, p, compared.get(&(order, p.backend.clone(), p.ranks, p.access, p.pattern)))
    };
    result.ordered.iter().map(of).collect()
}

fn value(order: CallOrder, p: &PatternRecord, comparison: Option<&PatternComparison>) -> OrderValue {
    let interval = interval(p);
    OrderValue {
        order: order.order,
        mix: order.mix,
        backend: p.backend.clone(),
        ranks: p.ranks,
        access: p.access,
        pattern_type: p.pattern_type,
        pattern: p.pattern,
        mb_per_second: rate(p),
        low: interval.map(|(low, _)| low),
        high: interval.map(|(_, high)| high),
        best: comparison.and_then(|c| c.best.clone()),
        ratio: comparison.and_then(|c| c.ratio),
    }
}

/// Interval of the rate: that of its ratio to a constant rate of 1e6 bytes/s.
fn interval(p: &PatternRecord) -> Option<(f64, f64)> {
    let round = |bytes: u64, seconds: f64| PairedTotals {
        bytes: bytes as f64,
        seconds,
        base_bytes: 1e6 * seconds,
        base_seconds: seconds,
    };
    let moved = p.rounds.iter().filter(|r| r.moved_bytes > 0 && r.seconds > 0.0);
    let rounds: Vec<PairedTotals> = moved.map(|r| round(r.moved_bytes, r.seconds)).collect();
    let interval = paired_ratio(&rounds)?.interval?;
    Some((interval.low, interval.high))
}

#[cfg(test)]
mod tests {
    use crate::b_eff_io::report::fixtures;
    use crate::b_eff_io::values::derive;

    #[test]
    fn orders_change_no_value_and_have_their_own_ladder() {
        let result = fixtures::ordered();
        let mut without = result.clone();
        without.ordered.clear();
        without.ordered_types.clear();
        let (with, without) = (derive(&result), derive(&without));
        assert_eq!((&with.systems, &with.types, &with.validity), (&without.systems, &without.types, &without.validity));
        assert_eq!((&with.intervals, &with.ladder), (&without.intervals, &without.ladder));
        assert_eq!(with.orders.len(), result.ordered.len());
        for (value, record) in with.orders.iter().zip(&result.ordered) {
            let p = &record.measurement;
            let (order, own) = (value.call_order(), record.call_order());
            assert_eq!((order, &value.backend, value.pattern), (own, &p.backend, p.pattern));
            assert_eq!(value.mb_per_second, Some(p.moved_bytes as f64 / p.seconds() / 1e6));
            let (low, high) = (value.low.unwrap(), value.high.unwrap());
            assert!(low < value.mb_per_second.unwrap() && value.mb_per_second.unwrap() < high, "{value:?}");
            let is_best = value.best.as_ref() == Some(&value.backend);
            let ratio = value.ratio.unwrap();
            assert!(is_best == (ratio.value == 1.0) && (is_best || ratio.interval.is_some()), "{value:?}");
        }
    }
}
