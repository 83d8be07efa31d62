//! Storage drift: comparison of the probes at the start and the end of a run.

use beff_statistics::student;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::frame::records::{kinds, AccessMethod, ProbeRecord, ProbeTime, Warning};

const DRIFT_THRESHOLD: f64 = 0.10;

/// Error probability of one direction: 5 % for both together.
const ERROR_PROBABILITY: f64 = 0.05 / 2.0;

/// Verdict on the drift between two probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DriftVerdict {
    /// Drift of more than 10 %: the whole interval is beyond.
    Changed,
    /// Drift of at most 10 %: the whole interval is within.
    Steady,
    /// The interval is too wide.
    NotDecided,
}

/// Drift of one direction from the start to the end of the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StorageDrift {
    /// `write` (rewrites) or `read`.
    pub access: AccessMethod,
    /// Geometric mean of the rounds at the start, 1e6 bytes/s.
    pub start_mb_per_second: f64,
    /// The same at the end.
    pub end_mb_per_second: f64,
    /// End divided by start.
    pub ratio: f64,
    /// Confidence interval of the ratio (Welch, of the logarithms): 95 % for both directions together.
    pub interval: [f64; 2],
    /// Verdict.
    pub verdict: DriftVerdict,
}

/// Drift of both directions, if there are probes at the start and the end.
#[must_use]
pub fn drift_by_direction(probes: &[ProbeRecord]) -> Vec<StorageDrift> {
    let at = |at: ProbeTime| probes.iter().find(|probe| probe.at == at && probe.unknown_reason.is_none());
    let (Some(start), Some(end)) = (at(ProbeTime::Start), at(ProbeTime::End)) else { return Vec::new() };
    let write = compare_probes(AccessMethod::Write, (start, &start.write_seconds), (end, &end.write_seconds));
    let read = compare_probes(AccessMethod::Read, (start, &start.read_seconds), (end, &end.read_seconds));
    write.into_iter().chain(read).collect()
}

/// Warns of the direction with the largest drift, if any.
#[must_use]
pub fn drift_warning(probes: &[ProbeRecord]) -> Option<Warning> {
    let changed = drift_by_direction(probes).into_iter().filter(|m| m.verdict == DriftVerdict::Changed);
    let most = changed.max_by(|a, b| a.ratio.ln().abs().total_cmp(&b.ratio.ln().abs()))?;
    let StorageDrift { access, start_mb_per_second, end_mb_per_second, ratio, interval, .. } = most;
    let what = if access == AccessMethod::Read { "reads of" } else { "rewrites of" };
    let [low, high] = interval;
    let warning = kinds::STORAGE_DRIFT.warning().with_figure("access", access);
    let warning = warning
        .with_figure("start_mb_per_second", start_mb_per_second)
        .with_figure("end_mb_per_second", end_mb_per_second);
    Some(warning.with_figure("ratio", ratio).with_figure("interval", interval).with_text(
        format!("storage drift: {} at the end of the run is {ratio:.2} times as fast as at its start", access.name()),
        format!(
            "The storage drifted during the run: a short probe by rank 0 alone with direct I/O measured {what} {start_mb_per_second:.0} MB/s \
             before it and {end_mb_per_second:.0} MB/s after it, ratio {ratio:.2} [{low:.2}, {high:.2}]."
        ),
    ))
}

/// Welch's interval of the difference of the mean logarithms. None without two rounds on each side.
fn compare_probes(
    access: AccessMethod,
    (start, start_seconds): (&ProbeRecord, &[f64]),
    (end, end_seconds): (&ProbeRecord, &[f64]),
) -> Option<StorageDrift> {
    let rates = |probe: &ProbeRecord, seconds: &[f64]| {
        let logs = seconds.iter().filter(|s| **s > 0.0).map(|s| (probe.round_bytes as f64 / s / 1e6).ln());
        LogRateSample::of(&logs.collect::<Vec<_>>())
    };
    let (a, b) = (rates(start, start_seconds)?, rates(end, end_seconds)?);
    let (va, vb) = (a.variance / a.number, b.variance / b.number);
    let difference = b.mean - a.mean;
    let half = match va + vb {
        // All rounds took the same time, as with an injected clock.
        none if none <= 0.0 => 0.0,
        both => {
            let degrees = both * both / (va * va / (a.number - 1.0) + vb * vb / (b.number - 1.0));
            student::two_sided_quantile(ERROR_PROBABILITY, degrees) * both.sqrt()
        }
    };
    let interval = [(difference - half).exp(), (difference + half).exp()];
    let verdict = match interval {
        [low, high] if low > 1.0 + DRIFT_THRESHOLD || high < 1.0 - DRIFT_THRESHOLD => DriftVerdict::Changed,
        [low, high] if low >= 1.0 - DRIFT_THRESHOLD && high <= 1.0 + DRIFT_THRESHOLD => DriftVerdict::Steady,
        _ => DriftVerdict::NotDecided,
    };
    let [start_mb_per_second, end_mb_per_second] = [a.mean.exp(), b.mean.exp()];
    Some(StorageDrift { access, start_mb_per_second, end_mb_per_second, ratio: difference.exp(), interval, verdict })
}

struct LogRateSample {
    number: f64,
    mean: f64,
    variance: f64,
}

impl LogRateSample {
    fn of(values: &[f64]) -> Option<Self> {
        let number = values.len() as f64;
        if values.len() < 2 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / number;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (number - 1.0);
        Some(Self { number, mean, variance })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of a megabyte with these rates and a relative `spread` to both sides.
    fn probe(at: ProbeTime, [write, read]: [f64; 2], spread: f64, rounds: u32) -> ProbeRecord {
        let times = |rate: f64| (0..rounds).map(|n| (1.0 + spread * (f64::from(n % 5) - 2.0) / 2.0) / rate).collect();
        ProbeRecord {
            at,
            round_bytes: 1_000_000,
            write_seconds: times(write),
            read_seconds: times(read),
            ..ProbeRecord::default()
        }
    }

    fn verdicts(start: [f64; 2], end: [f64; 2], spread: f64, rounds: u32) -> Vec<DriftVerdict> {
        let probes = [probe(ProbeTime::Start, start, spread, rounds), probe(ProbeTime::End, end, spread, rounds)];
        drift_by_direction(&probes).iter().map(|m| m.verdict).collect()
    }

    #[test]
    fn drift_is_reported_only_where_the_spread_allows_it() {
        use DriftVerdict::{Changed, NotDecided, Steady};
        assert_eq!(verdicts([100.0, 200.0], [100.0, 200.0], 0.05, 50), [Steady, Steady]);
        assert_eq!(verdicts([100.0, 200.0], [104.0, 140.0], 0.05, 50), [Steady, Changed]);
        assert_eq!(verdicts([100.0, 200.0], [125.0, 200.0], 0.05, 50), [Changed, Steady]);
        // Similar drifts, but few rounds that differ by half.
        assert_eq!(verdicts([100.0, 200.0], [104.0, 170.0], 0.5, 5), [NotDecided, NotDecided]);
        // Drift at the threshold is not decided.
        assert_eq!(verdicts([100.0, 100.0], [110.0, 90.0], 0.05, 20), [NotDecided, NotDecided]);
        assert_eq!(verdicts([100.0, 100.0], [200.0, 100.0], 0.0, 9), [Changed, Steady]);
        assert_eq!(verdicts([100.0, 100.0], [200.0, 100.0], 0.0, 1), []);
    }

    #[test]
    fn the_largest_drift_is_the_warning_and_one_probe_alone_gives_none() {
        let probes =
            [probe(ProbeTime::Start, [100.0, 200.0], 0.01, 50), probe(ProbeTime::End, [130.0, 100.0], 0.01, 50)];
        let found = drift_warning(&probes).unwrap();
        assert_eq!(found.text("access"), "read");
        let [ratio, start_mb_per_second] = ["ratio", "start_mb_per_second"].map(|name| found.number(name).unwrap());
        assert!((ratio - 0.5).abs() < 0.001 && (start_mb_per_second - 200.0).abs() < 1.0, "{ratio}");
        assert_eq!(drift_by_direction(&probes[..1]), []);
        let unknown = ProbeRecord { unknown_reason: Some("x".into()), ..probes[1].clone() };
        assert_eq!(drift_warning(&[probes[0].clone(), unknown]), None);
    }

    /// Of many pairs of probes with a drift of exactly 10 % at most about one of twenty is decided.
    #[test]
    fn chance_alone_seldom_reports_drift() {
        let mut state = 1_u64;
        let mut unit = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut wrong = 0;
        for _ in 0..1000 {
            let mut rounds = |rate: f64| -> Vec<f64> {
                (0..20).map(|_| (0.2 * (unit() + unit() + unit() - 1.5)).exp() / rate).collect()
            };
            let record = |at, write_seconds, read_seconds| ProbeRecord {
                at,
                round_bytes: 1_000_000,
                write_seconds,
                read_seconds,
                ..ProbeRecord::default()
            };
            let (start, end) = ([rounds(100.0), rounds(100.0)], [rounds(110.0), rounds(110.0)]);
            let [a, b] = start;
            let [c, d] = end;
            let probes = [record(ProbeTime::Start, a, b), record(ProbeTime::End, c, d)];
            wrong += u32::from(drift_by_direction(&probes).iter().any(|m| m.verdict != DriftVerdict::NotDecided));
        }
        assert!(wrong <= 80, "{wrong} of 1000 at the threshold");
    }
}
