//! Whether the storage changed under a run: the probes at its start and end against each other.

use beff_statistics::student;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::frame::records::{kinds, Access, ProbeAt, ProbeRecord, Warning};

/// A move of more than this is told.
const MOVED: f64 = 0.10;

/// Both directions together are wrong by chance in one of twenty runs.
const CHANCE: f64 = 0.05 / 2.0;

/// What two probes say together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It moved by more than 10 %: all of the interval is beyond.
    Changed,
    /// It did not: all of the interval is within.
    Steady,
    /// The probes know too little of themselves.
    NotDecided,
}

/// One direction of the storage at the end against its start.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StorageMove {
    /// `write` (rewrites) or `read`.
    pub access: Access,
    /// Geometric mean of the rounds at the start, 1e6 bytes/s.
    pub start_mb_per_second: f64,
    /// The same at the end.
    pub end_mb_per_second: f64,
    /// End divided by start.
    pub ratio: f64,
    /// Its interval (Welch, of the logarithms): of both directions together 95 %.
    pub interval: [f64; 2],
    /// What may be said.
    pub verdict: Verdict,
}

/// Both directions, if there are probes of both ends.
#[must_use]
pub fn moves(probes: &[ProbeRecord]) -> Vec<StorageMove> {
    let at = |at: ProbeAt| probes.iter().find(|probe| probe.at == at && probe.not_known.is_none());
    let (Some(start), Some(end)) = (at(ProbeAt::Start), at(ProbeAt::End)) else { return Vec::new() };
    let write = compare(Access::Write, (start, &start.write_seconds), (end, &end.write_seconds));
    let read = compare(Access::Read, (start, &start.read_seconds), (end, &end.read_seconds));
    write.into_iter().chain(read).collect()
}

/// The one that moved most, if any did.
#[must_use]
pub fn warning(probes: &[ProbeRecord]) -> Option<Warning> {
    let changed = moves(probes).into_iter().filter(|m| m.verdict == Verdict::Changed);
    let most = changed.max_by(|a, b| a.ratio.ln().abs().total_cmp(&b.ratio.ln().abs()))?;
    let StorageMove { access, start_mb_per_second, end_mb_per_second, ratio, interval, .. } = most;
    let what = if access == Access::Read { "reads of" } else { "rewrites of" };
    let [low, high] = interval;
    let warning = kinds::STORAGE_CHANGED.warning().figure("access", access);
    let warning =
        warning.figure("start_mb_per_second", start_mb_per_second).figure("end_mb_per_second", end_mb_per_second);
    Some(warning.figure("ratio", ratio).figure("interval", interval).told(
        format!("the storage changed under the run: {} at its end {ratio:.2} times as fast as at its start", access.name()),
        format!(
            "The storage changed under the run: a short probe of rank 0 alone, past the page cache, saw {what} {start_mb_per_second:.0} MB/s \
             before it and {end_mb_per_second:.0} MB/s after it, {ratio:.2} times as much [{low:.2}, {high:.2}]."
        ),
    ))
}

/// Welch's interval of the difference of the means of the logarithms. None without two rounds on each side.
fn compare(
    access: Access,
    (start, start_seconds): (&ProbeRecord, &[f64]),
    (end, end_seconds): (&ProbeRecord, &[f64]),
) -> Option<StorageMove> {
    let rates = |probe: &ProbeRecord, seconds: &[f64]| {
        let logs = seconds.iter().filter(|s| **s > 0.0).map(|s| (probe.round_bytes as f64 / s / 1e6).ln());
        Sample::of(&logs.collect::<Vec<_>>())
    };
    let (a, b) = (rates(start, start_seconds)?, rates(end, end_seconds)?);
    let (va, vb) = (a.variance / a.number, b.variance / b.number);
    let difference = b.mean - a.mean;
    let half = match va + vb {
        // All rounds took the same time, as under a planted clock.
        none if none <= 0.0 => 0.0,
        both => {
            let degrees = both * both / (va * va / (a.number - 1.0) + vb * vb / (b.number - 1.0));
            student::quantile(CHANCE, degrees) * both.sqrt()
        }
    };
    let interval = [(difference - half).exp(), (difference + half).exp()];
    let verdict = match interval {
        [low, high] if low > 1.0 + MOVED || high < 1.0 - MOVED => Verdict::Changed,
        [low, high] if low >= 1.0 - MOVED && high <= 1.0 + MOVED => Verdict::Steady,
        _ => Verdict::NotDecided,
    };
    let [start_mb_per_second, end_mb_per_second] = [a.mean.exp(), b.mean.exp()];
    Some(StorageMove { access, start_mb_per_second, end_mb_per_second, ratio: difference.exp(), interval, verdict })
}

struct Sample {
    number: f64,
    mean: f64,
    variance: f64,
}

impl Sample {
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

    /// Rounds of a megabyte with these rates, spread by so much to both sides.
    fn probe(at: ProbeAt, [write, read]: [f64; 2], spread: f64, rounds: u32) -> ProbeRecord {
        let times = |rate: f64| (0..rounds).map(|n| (1.0 + spread * (f64::from(n % 5) - 2.0) / 2.0) / rate).collect();
        ProbeRecord {
            at,
            round_bytes: 1_000_000,
            write_seconds: times(write),
            read_seconds: times(read),
            ..ProbeRecord::default()
        }
    }

    fn verdicts(start: [f64; 2], end: [f64; 2], spread: f64, rounds: u32) -> Vec<Verdict> {
        let probes = [probe(ProbeAt::Start, start, spread, rounds), probe(ProbeAt::End, end, spread, rounds)];
        moves(&probes).iter().map(|m| m.verdict).collect()
    }

    #[test]
    fn a_move_is_told_only_where_the_spread_allows_it() {
        use Verdict::{Changed, NotDecided, Steady};
        assert_eq!(verdicts([100.0, 200.0], [100.0, 200.0], 0.05, 50), [Steady, Steady]);
        assert_eq!(verdicts([100.0, 200.0], [104.0, 140.0], 0.05, 50), [Steady, Changed]);
        assert_eq!(verdicts([100.0, 200.0], [125.0, 200.0], 0.05, 50), [Changed, Steady]);
        // The same moves, but rounds differ by half, and there are few.
        assert_eq!(verdicts([100.0, 200.0], [104.0, 170.0], 0.5, 5), [NotDecided, NotDecided]);
        // Around the bound nothing is said.
        assert_eq!(verdicts([100.0, 100.0], [110.0, 90.0], 0.05, 20), [NotDecided, NotDecided]);
        assert_eq!(verdicts([100.0, 100.0], [200.0, 100.0], 0.0, 9), [Changed, Steady]);
        assert_eq!(verdicts([100.0, 100.0], [200.0, 100.0], 0.0, 1), []);
    }

    #[test]
    fn the_largest_move_is_the_warning_and_one_probe_alone_says_nothing() {
        let probes = [probe(ProbeAt::Start, [100.0, 200.0], 0.01, 50), probe(ProbeAt::End, [130.0, 100.0], 0.01, 50)];
        let found = warning(&probes).unwrap();
        assert_eq!(found.text("access"), "read");
        let [ratio, start_mb_per_second] = ["ratio", "start_mb_per_second"].map(|name| found.number(name).unwrap());
        assert!((ratio - 0.5).abs() < 0.001 && (start_mb_per_second - 200.0).abs() < 1.0, "{ratio}");
        assert_eq!(moves(&probes[..1]), []);
        let unknown = ProbeRecord { not_known: Some("x".into()), ..probes[1].clone() };
        assert_eq!(warning(&[probes[0].clone(), unknown]), None);
    }

    /// Of many pairs of probes of one steady storage at most one of twenty is called changed or steadily beyond; with a move of 10 %
    /// exactly, no more either.
    #[test]
    fn chance_alone_seldom_moves_the_storage() {
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
            let probes = [record(ProbeAt::Start, a, b), record(ProbeAt::End, c, d)];
            wrong += u32::from(moves(&probes).iter().any(|m| m.verdict != Verdict::NotDecided));
        }
        assert!(wrong <= 80, "{wrong} of 1000 at the bound itself");
    }
}
