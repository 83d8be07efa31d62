//! What our loops cost beside bare ones.

use schemars::JsonSchema;
use serde::Serialize;

use crate::b_eff::records::{BareRecord, Method};
use crate::frame::values::pairs::{compare, Compared};

/// One comparison, by the median of its pairs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BareValue {
    /// Pattern name.
    pub pattern: String,
    /// Method.
    pub method: Method,
    /// Message size.
    #[schemars(range(min = 1))]
    pub message_bytes: u64,
    /// Messages one after the other in an iteration: there and back, or to the left and to the right.
    #[schemars(range(min = 1))]
    pub calls: u64,
    /// Ours beside the bare one, by iteration.
    #[serde(flatten)]
    pub compared: Compared,
}

pub(super) fn of(record: &BareRecord, ranks: u64) -> Option<BareValue> {
    Some(BareValue {
        pattern: record.pattern.clone(),
        method: record.method,
        message_bytes: record.message_bytes,
        calls: if record.method == Method::PingPong { 2 } else { (record.messages / ranks.max(1)).max(1) },
        compared: compare(&record.pairs, record.iterations)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff::records::BarePair;

    fn record(ratios: &[f64]) -> BareRecord {
        let pair = |(n, r): (usize, &f64)| {
            let bare_seconds = if n % 2 == 0 { 1.0 } else { 4.0 };
            BarePair { ours_seconds: r * bare_seconds, bare_seconds }
        };
        BareRecord {
            pattern: "ping-pong".into(),
            method: Method::PingPong,
            message_bytes: 1,
            messages: 2,
            iterations: 10,
            pairs: ratios.iter().enumerate().map(pair).collect(),
        }
    }

    /// The machine changes its speed from pair to pair; the ratio of a pair does not.
    #[test]
    fn the_ratio_is_that_of_the_pairs() {
        let value = of(&record(&[1.02; 20]), 2).unwrap().compared;
        assert!((value.ratio - 1.02).abs() < 1e-12 && value.pairs == 20);
        let [low, high] = value.interval.unwrap();
        assert!((low - 1.02).abs() < 1e-12 && (high - 1.02).abs() < 1e-12);
    }

    #[test]
    fn one_disturbed_pair_does_not_matter() {
        let mut ratios = vec![1.0, 1.01, 0.99, 1.0, 1.0, 1.02, 0.98, 1.0, 1.0, 1.0];
        ratios.push(250.0);
        let value = of(&record(&ratios), 2).unwrap().compared;
        assert!((value.ratio - 1.0).abs() < 1e-12);
        assert!(value.interval.unwrap()[1] < 1.1);
    }

    #[test]
    fn few_pairs_have_no_interval_and_none_no_value() {
        assert_eq!(of(&record(&[1.0; 5]), 2).unwrap().compared.interval, None);
        assert_eq!(of(&record(&[]), 2), None);
    }
}
