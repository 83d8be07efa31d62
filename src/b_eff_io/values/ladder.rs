//! Comparison of backends: rates, ratios to the best with confidence intervals, where the time went, and what explains the differences. The
//! null backend is not compared.

use beff_statistics::bootstrap::{
    pair_rounds, paired_ratio, pooled_ratio, PairedTotals, Ratio, Round, MIN_ROUNDS, SAMPLED_SHARE,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::repetitions::RepetitionIndex;
use super::time_parts::{PartSeconds, TimePart, TimeShares};
use super::totals::{TypeRecordIndex, TypeRecords};
use super::verified_words::VerifiedWords;
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{PatternRecord, RunResult};
use crate::frame::backends::is_variant;
use crate::frame::records::{AccessMethod, RoundRecord};
use crate::frame::units::mb_per_second;
use crate::frame::values::MPI_IO;
use crate::frame::values::NULL_BACKEND;

/// Number of verdicts on single patterns, for each partition and access method.
const WORST_PATTERNS: usize = 3;

/// One backend in one pattern.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PatternComparison {
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
    /// 1e6 bytes/s; None if nothing was moved.
    pub mb_per_second: Option<f64>,
    /// Backend with the largest rate; None if none has one.
    pub best: Option<String>,
    /// This rate divided by that of the best backend; 1 for the best itself, without an interval.
    pub ratio: Option<Ratio>,
}

/// One backend in one pattern type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TypeComparison {
    /// Backend name.
    pub backend: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method.
    pub access: AccessMethod,
    /// Pattern type, 0 to 4.
    pub pattern_type: PatternType,
    /// Value of the type, 1e6 bytes/s; None if nothing was moved.
    pub mb_per_second: Option<f64>,
    /// Backend with the largest value; None if none has one.
    pub best: Option<String>,
    /// This value divided by that of the best backend; 1 for the best itself, without an interval.
    pub ratio: Option<Ratio>,
    /// Shares of the time from opening to closing; None if there was none.
    pub shares: Option<TimeShares>,
}

/// Cost of a part of the time of the slower backend.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartCost {
    /// The part.
    pub part: TimePart,
    /// Its share of the time, 0 to 1.
    #[schemars(range(min = 0, max = 1))]
    pub share: f64,
    /// Time per byte divided by that of the best backend; None if that has none.
    pub times: Option<f64>,
}

/// Another backend and its ratio to the best.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowestBackend {
    /// Backend name.
    pub backend: String,
    /// Its rate divided by that of the best.
    pub ratio: Ratio,
}

/// Comparison of a backend with the best one, in a type or in one pattern, and the causes of the difference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BackendVerdict {
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method.
    pub access: AccessMethod,
    /// Pattern type, 0 to 4.
    pub pattern_type: PatternType,
    /// Pattern number; None: the type as a whole.
    pub pattern: Option<u8>,
    /// mpiio if it was measured and is not the best, else the slowest.
    pub backend: String,
    /// The best backend.
    pub best: String,
    /// Rate of `backend` divided by that of `best`.
    pub ratio: Ratio,
    /// The slowest, if that is neither of the two.
    pub slowest: Option<SlowestBackend>,
    /// Time of a call, all parts included, of `backend` and of `best`; None for a type.
    pub call_seconds: Option<[f64; 2]>,
    /// The largest part of the time of `backend`.
    pub largest: PartCost,
    /// The part with the largest excess of time per byte over that of `best`, if it is not `largest`.
    pub excess: Option<PartCost>,
}

/// A variant compared with its backend, with one access method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantComparison {
    /// Name of the variant.
    pub backend: String,
    /// Its backend.
    pub base: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method.
    pub access: AccessMethod,
    /// Pattern type; None: all types that both have measured.
    pub pattern_type: Option<PatternType>,
    /// All bytes divided by the time from opening to closing, 1e6 bytes/s; None if nothing was moved.
    pub mb_per_second: Option<f64>,
    /// This rate divided by that of the backend; None if one of the two has none.
    pub ratio: Option<Ratio>,
    /// Wrong words in the whole run; above 0 the variant is disqualified.
    pub wrong_words: u64,
}

impl VariantComparison {
    /// True if wrong data excludes it from every comparison.
    #[must_use]
    pub fn is_disqualified(&self) -> bool {
        self.wrong_words > 0
    }
}

/// The comparison of all backends of a run but null; empty with fewer than two.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ladder {
    /// By partition, access, type, pattern, backend.
    pub patterns: Vec<PatternComparison>,
    /// By partition, access, type, backend.
    pub types: Vec<TypeComparison>,
    /// By partition and access: one for each type, then the patterns with the worst ratios.
    pub verdicts: Vec<BackendVerdict>,
    /// By variant, partition, access: all types together, then each type.
    #[serde(default)]
    pub variants: Vec<VariantComparison>,
}

/// Records of one backend in a type with one access method on one partition.
pub(super) struct BackendTypeRecords<'a> {
    pub(super) backend: &'a str,
    pub(super) records: TypeRecords<'a>,
}

/// One backend in a comparison.
pub(super) struct ComparedBackend<'a> {
    backend: &'a str,
    bytes: u64,
    parts: PartSeconds,
    calls: u64,
    records: Vec<&'a PatternRecord>,
    /// Ratio to the best; None until that is determined.
    ratio: Option<Ratio>,
}

/// Compares the backends of a run, and the variants that are not disqualified.
pub(super) fn ladder<'a>(result: &'a RunResult, index: &TypeRecordIndex<'a>) -> Ladder {
    let is_compared = |name: &&String| *name != NULL_BACKEND && !is_disqualified(result, name);
    let backends: Vec<&'a String> = result.config.backends.iter().filter(is_compared).collect();
    let mut ladder = Ladder::default();
    if backends.len() < 2 {
        return ladder;
    }
    let repetition_index = RepetitionIndex::new(result);
    for ranks in result.partitions.iter().map(|p| p.ranks) {
        for access in AccessMethod::ALL {
            let mut of_patterns = Vec::new();
            for &pattern_type in &result.config.types {
                let place = ComparisonContext { ranks, access, pattern_type, repetitions: &repetition_index };
                let side = |backend: &&'a String| BackendTypeRecords {
                    backend: backend.as_str(),
                    records: index.of(backend, ranks, access, pattern_type),
                };
                let sides: Vec<BackendTypeRecords<'_>> = backends.iter().map(side).collect();
                place.patterns(&sides, &mut ladder, &mut of_patterns);
                place.type_total(&sides, &mut ladder);
            }
            of_patterns.retain(|v| v.ratio.equal != Some(true));
            of_patterns.sort_by(|a, b| a.ratio.value.total_cmp(&b.ratio.value));
            of_patterns.truncate(WORST_PATTERNS);
            ladder.verdicts.append(&mut of_patterns);
        }
    }
    ladder
}

/// True for a variant with wrong data: it could be the best for this reason.
fn is_disqualified(result: &RunResult, name: &str) -> bool {
    is_variant(name) && VerifiedWords::wrong_of(result, name) > 0
}

/// What is compared: a type with one access method on one partition.
#[derive(Clone, Copy)]
struct ComparisonContext<'a> {
    ranks: u64,
    access: AccessMethod,
    pattern_type: PatternType,
    repetitions: &'a RepetitionIndex<'a>,
}

impl ComparisonContext<'_> {
    fn patterns(self, sides: &[BackendTypeRecords<'_>], ladder: &mut Ladder, verdicts: &mut Vec<BackendVerdict>) {
        let records = || sides.iter().flat_map(|s| &s.records.patterns);
        let mut numbers: Vec<u8> = records().map(|p| p.pattern).collect();
        numbers.sort_unstable();
        numbers.dedup();
        for pattern in numbers {
            let mut entries: Vec<ComparedBackend<'_>> =
                sides.iter().filter_map(|s| ComparedBackend::pattern(s, pattern)).collect();
            let best = rank_against_best(&mut entries, |entry, best| {
                pattern_ratio(&entry.samples(best, self.repetitions), &entry.totals(best))
            });
            for entry in &entries {
                ladder.patterns.push(PatternComparison {
                    backend: entry.backend.to_owned(),
                    ranks: self.ranks,
                    access: self.access,
                    pattern_type: self.pattern_type,
                    pattern,
                    mb_per_second: entry.rate(),
                    best: best.map(|b| entries[b].backend.to_owned()),
                    ratio: entry.ratio,
                });
            }
            // Warm-up and fill-up have no weight in any value.
            if records().any(|p| p.pattern == pattern && p.time_units > 0) {
                verdicts.extend(best.and_then(|b| self.verdict(&entries, b, Some(pattern))));
            }
        }
    }

    fn type_total(self, sides: &[BackendTypeRecords<'_>], ladder: &mut Ladder) {
        let mut entries: Vec<ComparedBackend<'_>> = sides.iter().filter_map(ComparedBackend::total).collect();
        let best = rank_against_best(&mut entries, |entry, best| {
            type_ratio(entry, best, &entry.samples(best, self.repetitions))
        });
        for entry in &entries {
            ladder.types.push(TypeComparison {
                backend: entry.backend.to_owned(),
                ranks: self.ranks,
                access: self.access,
                pattern_type: self.pattern_type,
                mb_per_second: entry.rate(),
                best: best.map(|b| entries[b].backend.to_owned()),
                ratio: entry.ratio,
                shares: entry.parts.shares(),
            });
        }
        ladder.verdicts.extend(best.and_then(|b| self.verdict(&entries, b, None)));
    }

    /// Compares MPI-IO with the best, or the slowest if MPI-IO is the best; None without a second backend.
    fn verdict(self, entries: &[ComparedBackend<'_>], best: usize, pattern: Option<u8>) -> Option<BackendVerdict> {
        let best = &entries[best];
        let rivals = || entries.iter().filter(|e| e.backend != best.backend).filter_map(|e| e.ratio.map(|r| (e, r)));
        let slowest = rivals().min_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
        let (entry, ratio) = rivals().find(|(e, _)| e.backend == MPI_IO).unwrap_or(slowest);
        let is_other = slowest.0.backend != entry.backend;
        let (largest, excess) = costs(entry, best)?;
        Some(BackendVerdict {
            ranks: self.ranks,
            access: self.access,
            pattern_type: self.pattern_type,
            pattern,
            backend: entry.backend.to_owned(),
            best: best.backend.to_owned(),
            ratio,
            slowest: is_other.then(|| SlowestBackend { backend: slowest.0.backend.to_owned(), ratio: slowest.1 }),
            call_seconds: pattern.and_then(|_| Some([entry.call_seconds()?, best.call_seconds()?])),
            largest,
            excess,
        })
    }
}

impl<'a> ComparedBackend<'a> {
    fn new(side: &BackendTypeRecords<'a>, records: Vec<&'a PatternRecord>) -> Option<Self> {
        let mut parts = PartSeconds::default();
        records.iter().for_each(|p| parts.add_pattern(&p.intervals));
        let bytes = records.iter().map(|p| p.moved_bytes).fold(0, u64::saturating_add);
        let calls = records.iter().map(|p| p.calls).fold(0, u64::saturating_add);
        let backend = side.backend;
        (!records.is_empty()).then_some(Self { backend, bytes, parts, calls, records, ratio: None })
    }

    fn pattern(side: &BackendTypeRecords<'a>, pattern: u8) -> Option<Self> {
        Self::new(side, side.records.patterns.iter().copied().filter(|p| p.pattern == pattern).collect())
    }

    /// All patterns, with opening and closing.
    pub(super) fn total(side: &BackendTypeRecords<'a>) -> Option<Self> {
        let mut entry = Self::new(side, side.records.patterns.clone())?;
        side.records.files.iter().for_each(|t| entry.parts.add_files(t));
        Some(entry)
    }

    pub(super) fn rate(&self) -> Option<f64> {
        mb_per_second(self.bytes, self.parts.seconds()).filter(|_| self.bytes > 0)
    }

    fn call_seconds(&self) -> Option<f64> {
        (self.calls > 0).then(|| self.parts.seconds() / self.calls as f64)
    }

    fn totals(&self, base: &Self) -> PairedTotals {
        PairedTotals {
            bytes: self.bytes as f64,
            seconds: self.parts.seconds(),
            base_bytes: base.bytes as f64,
            base_seconds: base.parts.seconds(),
        }
    }

    /// Samples of its patterns, paired with those of `base`.
    pub(super) fn samples(&self, base: &Self, repetitions: &RepetitionIndex<'_>) -> Vec<PairedSample> {
        let partner = |p: &PatternRecord| base.records.iter().find(|b| b.pattern == p.pattern);
        self.records.iter().filter_map(|p| partner(p).map(|b| PairedSample::of(p, b, repetitions))).collect()
    }
}

/// Paired samples of one pattern, for resampling.
pub(super) struct PairedSample {
    /// Paired rounds of the first measurement; if these are too few, paired measurements, if there are enough.
    pairs: Vec<PairedTotals>,
    /// Number of paired rounds of the first measurement.
    rounds: usize,
    /// Totals of both in the first measurement.
    first: PairedTotals,
    is_of_repetitions: bool,
}

fn rounds_of(record: &PatternRecord) -> Vec<Round> {
    let round = |r: &RoundRecord| Round { number: r.number, moved_bytes: r.moved_bytes, seconds: r.seconds };
    record.rounds.iter().map(round).collect()
}

impl PairedSample {
    fn of(record: &PatternRecord, base: &PatternRecord, repetitions: &RepetitionIndex<'_>) -> Self {
        let first = PairedTotals {
            bytes: record.moved_bytes as f64,
            seconds: record.seconds(),
            base_bytes: base.moved_bytes as f64,
            base_seconds: base.seconds(),
        };
        let rounds = pair_rounds(&rounds_of(record), &rounds_of(base));
        let measurements =
            if rounds.len() < MIN_ROUNDS { repetitions.paired_measurements(record, base) } else { Vec::new() };
        let (number, is_of_repetitions) = (rounds.len(), measurements.len() >= MIN_ROUNDS);
        Self { pairs: if is_of_repetitions { measurements } else { rounds }, rounds: number, first, is_of_repetitions }
    }

    fn has_min_rounds(&self) -> bool {
        self.pairs.len() >= MIN_ROUNDS
    }

    /// Pairs that represent the pattern in its type. Rounds that only one backend has are represented by those that both have.
    fn draws(&self) -> Vec<PairedTotals> {
        if self.is_of_repetitions {
            return self.pairs.clone();
        }
        let mut sum = PairedTotals::default();
        self.pairs.iter().for_each(|pair| sum.add(pair, 1.0));
        self.pairs.iter().map(|pair| pair.scaled_to(&self.first, &sum)).collect()
    }
}

/// Smallest number of measurements of the patterns that are sampled from these; 0: none.
fn min_measurements<'a>(samples: impl Iterator<Item = &'a PairedSample>) -> u64 {
    samples.filter(|s| s.is_of_repetitions).map(|s| s.pairs.len() as u64).min().unwrap_or(0)
}

/// Determines the best backend and sets the ratios to it.
fn rank_against_best(
    entries: &mut [ComparedBackend<'_>],
    ratio: impl Fn(&ComparedBackend<'_>, &ComparedBackend<'_>) -> Option<Ratio>,
) -> Option<usize> {
    let rates = entries.iter().enumerate().filter_map(|(i, e)| e.rate().map(|rate| (i, rate)));
    // The first with the largest rate.
    let (best, _) = rates.reduce(|best, next| if next.1 > best.1 { next } else { best })?;
    for i in 0..entries.len() {
        entries[i].ratio =
            if i == best { Some(Ratio::without_interval(1.0, 0)) } else { ratio(&entries[i], &entries[best]) };
    }
    Some(best)
}

/// Ratio of all bytes and seconds, with an interval from the paired rounds or measurements, extended to contain it.
fn pattern_ratio(samples: &[PairedSample], whole: &PairedTotals) -> Option<Ratio> {
    let value = whole.ratio()?;
    let found = samples.first().and_then(|sample| Some((sample, paired_ratio(&sample.pairs)?)));
    let Some((sample, ratio)) = found else { return Some(Ratio::without_interval(value, 0)) };
    let count = if sample.is_of_repetitions { sample.pairs.len() as u64 } else { 0 };
    Some(Ratio { rounds: sample.rounds as u64, measurements: count, ..ratio.widened_to(value) })
}

/// Ratio of all bytes and seconds of the first measurement; the interval is from the patterns that have enough rounds or
/// measurements, if they make up nearly all of the time.
pub(super) fn type_ratio(
    entry: &ComparedBackend<'_>,
    best: &ComparedBackend<'_>,
    samples: &[PairedSample],
) -> Option<Ratio> {
    let whole = entry.totals(best);
    let value = whole.ratio()?;
    let drawn = || samples.iter().filter(|s| s.has_min_rounds());
    let mut sampled = PairedTotals::default();
    drawn().for_each(|s| sampled.add(&s.first, 1.0));
    let seconds = |e: &ComparedBackend<'_>| e.records.iter().map(|p| p.seconds()).sum::<f64>();
    let enough =
        sampled.seconds >= SAMPLED_SHARE * seconds(entry) && sampled.base_seconds >= SAMPLED_SHARE * seconds(best);
    let fewest = |rounds: Option<usize>| rounds.unwrap_or(0) as u64;
    if !enough {
        return Some(Ratio::without_interval(value, fewest(samples.iter().map(|s| s.rounds).min())));
    }
    // The centre uses the mean over all measurements of a pattern, of which the first is one.
    let mut middle = whole;
    for sample in drawn() {
        middle.add(&sample.first, -1.0);
    }
    let patterns: Vec<Vec<PairedTotals>> = drawn().map(PairedSample::draws).collect();
    patterns.iter().flatten().for_each(|pair| middle.add(pair, 1.0));
    let ratio = pooled_ratio(&middle, &patterns.iter().map(Vec::as_slice).collect::<Vec<_>>())?.widened_to(value);
    Some(Ratio { rounds: fewest(drawn().map(|s| s.rounds).min()), measurements: min_measurements(drawn()), ..ratio })
}

/// Largest part of the time of `entry`, and the part with the largest loss against `best` if that is another.
fn costs(entry: &ComparedBackend<'_>, best: &ComparedBackend<'_>) -> Option<(PartCost, Option<PartCost>)> {
    let total = entry.parts.seconds();
    let per_byte = |e: &ComparedBackend<'_>, part: TimePart| e.parts.of(part) / e.bytes as f64;
    let lost = |part: TimePart| per_byte(entry, part) - per_byte(best, part);
    let cost = |part: TimePart| PartCost {
        part,
        share: entry.parts.of(part) / total,
        times: (best.parts.of(part) > 0.0).then(|| per_byte(entry, part) / per_byte(best, part)),
    };
    let by = |value: &dyn Fn(TimePart) -> f64| TimePart::ALL.into_iter().max_by(|a, b| value(*a).total_cmp(&value(*b)));
    let (largest, excess) = (by(&|part| entry.parts.of(part))?, by(&lost)?);
    Some((cost(largest), (excess != largest && lost(excess) > 0.0).then(|| cost(excess))))
}

#[cfg(test)]
#[path = "ladder_tests.rs"]
mod tests;
