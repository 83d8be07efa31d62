//! Ranks that are slower than the others again and again, and what each host moved.
//!
//! One measurement cannot tell a slow rank from chance, least of all with two ranks, one of which is always the slower. With equal ranks each
//! is the slowest with the same probability, whatever the distribution of the times: the number of rounds in which it is one certain rank is
//! binomial. This test needs no spread among ranks, no normal noise, and is not moved by outliers.

use std::collections::BTreeMap;

use beff_statistics::binomial::upper_tail;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{HostTransfer, PatternRecord, RunResult, SlowestRank, TypeRecord};
use crate::frame::records::AccessMethod;
use crate::frame::units::mb_per_second;
use crate::frame::values::NULL_BACKEND;

/// Ratio to the mean own time of the other ranks from which the slowest rank counts.
const MIN_FACTOR: f64 = 1.2;

/// Probability that any rank of a run with equal ranks is called slow.
const ERROR_PROBABILITY: f64 = 0.01;

/// A pattern whose slowest rank stands out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowRank {
    /// Backend name.
    pub backend: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method.
    pub access: AccessMethod,
    /// Pattern type, 0 to 4.
    pub pattern_type: PatternType,
    /// Pattern number, 0 to 42.
    pub pattern: u8,
    /// The slowest rank in most rounds of the pattern.
    pub rank: u64,
    /// Name of its host.
    pub host: String,
    /// Its own time (without agreements) divided by the mean of the other ranks, in these rounds.
    pub factor: f64,
    /// Share of the pattern's time by which its own time exceeds that mean, 0 to 1.
    pub share: f64,
    /// Rounds of all patterns with this backend and access method, repetitions included, whose slowest rank needed 1.2 times the mean of the
    /// others or more.
    pub unequal_rounds: u64,
    /// Of these, rounds in which it was this rank. With equal ranks as many have a probability of 1 % in the whole run.
    pub slowest_in: u64,
}

/// Transfer of one host in the patterns of a type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostValue {
    /// Backend name.
    pub backend: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method.
    pub access: AccessMethod,
    /// Pattern type, 0 to 4.
    pub pattern_type: PatternType,
    /// Name of the host.
    pub host: String,
    /// Its ranks in the partition.
    pub host_ranks: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Own time of the slowest of them, without agreements, opening and closing.
    pub seconds: f64,
    /// Bytes divided by that time, 1e6 bytes/s; None without time.
    pub mb_per_second: Option<f64>,
}

type Group<'a> = (&'a str, u64, AccessMethod);

fn group(p: &PatternRecord) -> Group<'_> {
    (&p.backend, p.ranks, p.access)
}

fn is_counted(p: &PatternRecord) -> bool {
    p.backend != NULL_BACKEND && p.time_units > 0 && p.ranks > 1 && p.was_run() && !p.ended.is_cut()
}

/// Mean own time of the other ranks.
fn mean_of_others(slowest: &SlowestRank, ranks: u64) -> f64 {
    (slowest.all_ranks_seconds - slowest.seconds) / ranks.saturating_sub(1).max(1) as f64
}

/// Rounds of a pattern whose slowest rank needed much more time than the others.
fn unequal_rounds(p: &PatternRecord) -> impl Iterator<Item = &SlowestRank> {
    p.slowest_ranks.iter().filter(|slowest| {
        let others = mean_of_others(slowest, p.ranks);
        others > 0.0 && slowest.seconds >= MIN_FACTOR * others && slowest.rank < p.ranks
    })
}

/// In the order of measurement.
pub(super) fn slow_ranks(result: &RunResult) -> Vec<SlowRank> {
    let mut groups: BTreeMap<Group<'_>, BTreeMap<u64, u64>> = BTreeMap::new();
    let repetitions = result.repetitions.iter().map(|again| &again.measurement);
    for p in result.patterns.iter().chain(repetitions).filter(|p| is_counted(p)) {
        let counts = groups.entry(group(p)).or_default();
        unequal_rounds(p).for_each(|slowest| *counts.entry(slowest.rank).or_default() += 1);
    }
    let error_probability = ERROR_PROBABILITY / groups.len().max(1) as f64;
    let slow: BTreeMap<Group<'_>, (u64, Vec<(u64, u64)>)> = groups
        .into_iter()
        .map(|(group, counts)| {
            let rounds = counts.values().sum();
            // Any of the ranks could be the one.
            let chance = |made: u64| group.1 as f64 * upper_tail(rounds, made, 1.0 / group.1 as f64);
            (group, (rounds, counts.into_iter().filter(|(_, made)| chance(*made) <= error_probability).collect()))
        })
        .collect();
    let of_pattern = |p: &PatternRecord| {
        let (rounds, ranks) = slow.get(&group(p))?;
        ranks.iter().find_map(|(rank, made)| slow_rank(result, p, *rank, (*rounds, *made)))
    };
    result.patterns.iter().filter(|p| is_counted(p)).filter_map(of_pattern).collect()
}

/// None unless the rank is the slowest in more than half of the rounds of the pattern.
fn slow_rank(result: &RunResult, p: &PatternRecord, rank: u64, (unequal, made): (u64, u64)) -> Option<SlowRank> {
    let own: Vec<&SlowestRank> = unequal_rounds(p).filter(|slowest| slowest.rank == rank).collect();
    let first = own.first().filter(|_| 2 * own.len() > p.slowest_ranks.len())?;
    let seconds: f64 = own.iter().map(|slowest| slowest.seconds).sum();
    let others: f64 = own.iter().map(|slowest| mean_of_others(slowest, p.ranks)).sum();
    let share = (seconds - others) / p.seconds();
    let is_sound = (seconds / others).is_finite() && share.is_finite();
    is_sound.then(|| SlowRank {
        backend: p.backend.clone(),
        ranks: p.ranks,
        access: p.access,
        pattern_type: p.pattern_type,
        pattern: p.pattern,
        rank,
        host: host_name(result, first.host),
        factor: seconds / others,
        share: share.clamp(0.0, 1.0),
        unequal_rounds: unequal,
        slowest_in: made,
    })
}

fn host_name(result: &RunResult, host: u64) -> String {
    let known = usize::try_from(host).ok().and_then(|host| result.manifest.machine.hosts.get(host));
    known.map_or_else(|| format!("host {host}"), |host| host.name.clone())
}

/// By backend, partition, access, type, host; empty with one host.
pub(super) fn host_values(result: &RunResult) -> Vec<HostValue> {
    let value = |of: &TypeRecord, transfer: &HostTransfer| HostValue {
        backend: of.backend.clone(),
        ranks: of.ranks,
        access: of.access,
        pattern_type: of.pattern_type,
        host: host_name(result, transfer.host),
        host_ranks: transfer.ranks,
        bytes: transfer.bytes,
        seconds: transfer.seconds,
        mb_per_second: mb_per_second(transfer.bytes, transfer.seconds),
    };
    result.types.iter().flat_map(|of| of.hosts.iter().map(move |transfer| value(of, transfer))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::records::RepetitionRecord;
    use crate::b_eff_io::values::fixture::{edit_pattern, full_run};

    /// Rounds with these slowest ranks, each with a ratio to the mean of the others.
    fn rounds(p: &mut PatternRecord, all: &[(u64, f64)]) {
        let others = p.seconds() / 4.0;
        let one = |(rank, factor): &(u64, f64)| SlowestRank {
            rank: *rank,
            host: rank % 2,
            seconds: others * factor,
            all_ranks_seconds: others * (factor + p.ranks as f64 - 1.0),
        };
        p.slowest_ranks = all.iter().map(one).collect();
    }

    /// The run on 2 and 4 ranks; in all patterns of `ranks` the slowest rank and its ratio.
    fn run_with(ranks: u64, slowest: impl Fn(usize) -> (u64, f64)) -> RunResult {
        let mut result = full_run();
        result.patterns.iter_mut().filter(|p| p.ranks == ranks).enumerate().for_each(|(n, p)| rounds(p, &[slowest(n)]));
        result
    }

    #[test]
    fn equal_ranks_give_no_finding() {
        for ranks in [2, 4] {
            assert_eq!(
                slow_ranks(&run_with(ranks, |n| (n as u64 % ranks, 1.5))),
                [],
                "each is the slowest equally often"
            );
            assert_eq!(slow_ranks(&run_with(ranks, |_| (1, 1.19))), [], "always the same, but hardly slower");
        }
        assert_eq!(slow_ranks(&full_run()), [], "of older results nothing is known");
    }

    #[test]
    fn a_slow_rank_is_named_in_each_of_its_patterns() {
        for ranks in [2, 4] {
            let result = run_with(ranks, |_| (1, 2.0));
            let found = slow_ranks(&result);
            let timed = result.patterns.iter().filter(|p| p.ranks == ranks && p.time_units > 0).count();
            assert_eq!(found.len(), timed);
            let one = &found[0];
            assert_eq!((one.rank, one.ranks, one.access, one.factor), (1, ranks, AccessMethod::Write, 2.0));
            assert_eq!((one.share, one.unequal_rounds, one.slowest_in), (0.25, 36, 36));
        }
    }

    /// With two ranks the slower one needs ten rounds of six groups.
    #[test]
    fn few_rounds_prove_nothing() {
        let of = |patterns: u8| {
            let mut result = full_run();
            for pattern in 1..=patterns {
                edit_pattern(&mut result, 2, AccessMethod::Read, pattern, |p| rounds(p, &[(1, 3.0)]));
            }
            slow_ranks(&result).len()
        };
        // 2 * 2^-10 > 1 % / 6 >= 2 * 2^-11; pattern 9 is a fill-up.
        assert_eq!((of(1), of(11), of(12)), (0, 0, 11));
        // Rounds and repetitions count as patterns do.
        let mut result = full_run();
        edit_pattern(&mut result, 2, AccessMethod::Read, 3, |p| rounds(p, &[(1, 3.0); 8]));
        assert_eq!(slow_ranks(&result), []);
        let again = result.patterns.iter().find(|p| !p.slowest_ranks.is_empty()).unwrap().clone();
        result.repetitions = vec![RepetitionRecord { repetition: 1, share: 1.0, measurement: again }];
        let [one] = slow_ranks(&result).try_into().unwrap();
        assert_eq!((one.pattern, one.factor, one.unequal_rounds, one.slowest_in), (3, 3.0, 16, 16));
    }

    #[test]
    fn a_pattern_with_another_slowest_rank_is_not_named() {
        let mut result = run_with(4, |_| (1, 2.0));
        edit_pattern(&mut result, 4, AccessMethod::Write, 3, |p| rounds(p, &[(0, 9.0)]));
        edit_pattern(&mut result, 4, AccessMethod::Write, 4, |p| rounds(p, &[(1, 2.0), (1, 1.0)]));
        edit_pattern(&mut result, 4, AccessMethod::Write, 5, |p| rounds(p, &[(1, 2.0), (1, 4.0), (2, 3.0)]));
        let found = slow_ranks(&result);
        let of = |pattern| found.iter().find(|s| s.access == AccessMethod::Write && s.pattern == pattern);
        assert!(of(3).is_none() && of(4).is_none());
        assert_eq!((of(5).unwrap().rank, of(5).unwrap().factor), (1, 3.0));
    }

    #[test]
    fn damaged_records_give_no_finding() {
        for (seconds, all) in [(f64::NAN, 1.0), (f64::INFINITY, f64::INFINITY), (1.0, 1.0), (1.0, 0.5), (0.0, 0.0)] {
            let mut result = run_with(4, |_| (1, 2.0));
            for slowest in result.patterns.iter_mut().flat_map(|p| &mut p.slowest_ranks) {
                (slowest.seconds, slowest.all_ranks_seconds) = (seconds, all);
            }
            assert_eq!(slow_ranks(&result), [], "{seconds} {all}");
        }
        let mut result = run_with(4, |_| (7, 2.0));
        assert_eq!(slow_ranks(&result), [], "no such rank");
        result = run_with(4, |_| (1, 2.0));
        result.patterns.iter_mut().flat_map(|p| &mut p.slowest_ranks).for_each(|s| s.host = u64::MAX);
        assert_eq!(slow_ranks(&result)[0].host, format!("host {}", u64::MAX));
    }

    #[test]
    fn hosts_have_a_bandwidth() {
        let mut result = full_run();
        assert_eq!(host_values(&result), []);
        let transfer = |host, bytes, seconds| HostTransfer { host, ranks: 2, bytes, seconds };
        result.types[0].hosts = vec![transfer(0, 4_000_000, 2.0), transfer(9, 1, 0.0)];
        let found = host_values(&result);
        let expected = result.manifest.machine.hosts[0].name.clone();
        assert_eq!((&found[0].host, found[0].mb_per_second, found[0].host_ranks), (&expected, Some(2.0), 2));
        assert_eq!((found[1].host.as_str(), found[1].mb_per_second), ("host 9", None));
    }
}
