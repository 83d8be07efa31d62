//! Overhead of the harness compared with bare loops.

use schemars::JsonSchema;
use serde::Serialize;

use crate::b_eff::records::{BareRecord, MessageMethod};
use crate::frame::values::bare_loop::{compare_pairs, BareLoopRatio};

/// One comparison, by the median of its pairs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BareValue {
    /// Pattern name.
    pub pattern: String,
    /// Method.
    pub method: MessageMethod,
    /// Message size.
    #[schemars(range(min = 1))]
    pub message_bytes: u64,
    /// Consecutive messages in an iteration: back and forth, or to the left and to the right.
    #[schemars(range(min = 1))]
    pub calls: u64,
    /// Time per iteration, harness and bare loop.
    #[serde(flatten)]
    pub compared: BareLoopRatio,
}

pub(super) fn derive_bare(record: &BareRecord, ranks: u64) -> Option<BareValue> {
    Some(BareValue {
        pattern: record.pattern.clone(),
        method: record.method,
        message_bytes: record.message_bytes,
        calls: if record.method == MessageMethod::PingPong { 2 } else { (record.messages / ranks.max(1)).max(1) },
        compared: compare_pairs(&record.pairs, record.iterations)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff::records::BareLoopPair;

    fn record(ratios: &[f64]) -> BareRecord {
        let pair = |(n, r): (usize, &f64)| {
            let bare_seconds = if n % 2 == 0 { 1.0 } else { 4.0 };
            BareLoopPair { harness_seconds: r * bare_seconds, bare_seconds }
        };
        BareRecord {
            pattern: "ping-pong".into(),
            method: MessageMethod::PingPong,
            message_bytes: 1,
            messages: 2,
            iterations: 10,
            pairs: ratios.iter().enumerate().map(pair).collect(),
        }
    }

    /// The speed of the machine changes from pair to pair; the ratio of a pair does not.
    #[test]
    fn the_ratio_is_that_of_the_pairs() {
        let value = derive_bare(&record(&[1.02; 20]), 2).unwrap().compared;
        assert!((value.ratio - 1.02).abs() < 1e-12 && value.pairs == 20);
        let [low, high] = value.interval.unwrap();
        assert!((low - 1.02).abs() < 1e-12 && (high - 1.02).abs() < 1e-12);
    }

    #[test]
    fn one_disturbed_pair_does_not_matter() {
        let mut ratios = vec![1.0, 1.01, 0.99, 1.0, 1.0, 1.02, 0.98, 1.0, 1.0, 1.0];
        ratios.push(250.0);
        let value = derive_bare(&record(&ratios), 2).unwrap().compared;
        assert!((value.ratio - 1.0).abs() < 1e-12);
        assert!(value.interval.unwrap()[1] < 1.1);
    }

    #[test]
    fn few_pairs_have_no_interval_and_none_no_value() {
        assert_eq!(derive_bare(&record(&[1.0; 5]), 2).unwrap().compared.interval, None);
        assert_eq!(derive_bare(&record(&[]), 2), None);
    }
}
