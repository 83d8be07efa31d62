//! Backends against each other: rates, ratios to the best with intervals, where the time went, and what explains the
//! difference. The null backend is no rival.

use beff_statistics::bootstrap::{paired, pairs, pooled, Ratio, Round, Totals, MIN_ROUNDS, SAMPLED_SHARE};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::parts::{Part, Parts, Shares};
use super::passes::Repeats;
use super::totals::{Index, TypeRecords};
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::records::{PatternRecord, RunResult};
use crate::frame::records::{Access, RoundRecord};
use crate::frame::units::mb_per_second;
use crate::frame::values::MPI_IO;
use crate::frame::values::NULL_BACKEND;

/// Verdicts on single patterns, for each partition and access method.
const WORST_PATTERNS: usize = 3;

/// One backend in one pattern.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PatternRung {
    /// Backend name.
    pub backend: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method.
    pub access: Access,
    /// Pattern type, 0 to 4.
    pub pattern_type: PatternType,
    /// Pattern number, 0 to 42.
    pub pattern: u8,
    /// 1e6 bytes/s; None if nothing was moved.
    pub mb_per_second: Option<f64>,
    /// Backend with the largest rate; None if none has one.
    pub best: Option<String>,
    /// This rate divided by that of the best; for the best itself 1, without an interval.
    pub ratio: Option<Ratio>,
}

/// One backend in one pattern type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TypeRung {
    /// Backend name.
    pub backend: String,
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method.
    pub access: Access,
    /// Pattern type, 0 to 4.
    pub pattern_type: PatternType,
    /// Value of the type, 1e6 bytes/s; None if nothing was moved.
    pub mb_per_second: Option<f64>,
    /// Backend with the largest value; None if none has one.
    pub best: Option<String>,
    /// This value divided by that of the best; for the best itself 1, without an interval.
    pub ratio: Option<Ratio>,
    /// Where the time from opening to closing went; None if there was none.
    pub shares: Option<Shares>,
}

/// A part of the time of the slower backend.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Which.
    pub part: Part,
    /// Its share of the time, 0 to 1.
    #[schemars(range(min = 0, max = 1))]
    pub share: f64,
    /// Time per byte divided by that of the best backend; None if that spent none.
    pub times: Option<f64>,
}

/// Another backend and its ratio to the best.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slowest {
    /// Backend name.
    pub backend: String,
    /// Its rate divided by that of the best.
    pub ratio: Ratio,
}

/// A backend against the best one, in a type or in one pattern, and what the difference consists of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Ranks of the partition.
    pub ranks: u64,
    /// Access method.
    pub access: Access,
    /// Pattern type, 0 to 4.
    pub pattern_type: PatternType,
    /// Pattern number; None: the type as a whole.
    pub pattern: Option<u8>,
    /// mpiio if it took part and is not the best, else the slowest.
    pub backend: String,
    /// The best.
    pub best: String,
    /// Rate of `backend` divided by that of `best`.
    pub ratio: Ratio,
    /// The slowest, if that is neither of the two.
    pub slowest: Option<Slowest>,
    /// Time of a call, everything included, of `backend` and of `best`; None for a type.
    pub call_seconds: Option<[f64; 2]>,
    /// The largest part of the time of `backend`.
    pub largest: Cost,
    /// The part that the most time per byte goes to beyond that of `best`, if it is not `largest`.
    pub excess: Option<Cost>,
}

/// The comparison of all backends of a run but null; empty with fewer than two.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ladder {
    /// By partition, access, type, pattern, backend.
    pub patterns: Vec<PatternRung>,
    /// By partition, access, type, backend.
    pub types: Vec<TypeRung>,
    /// By partition and access: one for each type, then the patterns with the worst ratios.
    pub verdicts: Vec<Verdict>,
}

/// What one backend did in a type with one access method on one partition.
struct Side<'a> {
    backend: &'a str,
    records: TypeRecords<'a>,
}

/// One backend in the thing that is compared.
struct Entry<'a> {
    backend: &'a str,
    bytes: u64,
    parts: Parts,
    calls: u64,
    records: Vec<&'a PatternRecord>,
    /// To the best; None until that is known.
    ratio: Option<Ratio>,
}

/// Compares the backends of a run.
pub(super) fn ladder<'a>(result: &'a RunResult, index: &Index<'a>) -> Ladder {
    let backends: Vec<&'a String> = result.config.backends.iter().filter(|b| *b != NULL_BACKEND).collect();
    let mut ladder = Ladder::default();
    if backends.len() < 2 {
        return ladder;
    }
    let repeats = Repeats::new(result);
    for ranks in result.partitions.iter().map(|p| p.ranks) {
        for access in Access::ALL {
            let mut of_patterns = Vec::new();
            for &pattern_type in &result.config.types {
                let place = Place { ranks, access, pattern_type, repeats: &repeats };
                let side = |backend: &&'a String| Side {
                    backend: backend.as_str(),
                    records: index.of(backend, ranks, access, pattern_type),
                };
                let sides: Vec<Side<'_>> = backends.iter().map(side).collect();
                place.patterns(&sides, &mut ladder, &mut of_patterns);
                place.total(&sides, &mut ladder);
            }
            of_patterns.retain(|v| v.ratio.equal != Some(true));
            of_patterns.sort_by(|a, b| a.ratio.value.total_cmp(&b.ratio.value));
            of_patterns.truncate(WORST_PATTERNS);
            ladder.verdicts.append(&mut of_patterns);
        }
    }
    ladder
}

/// What is compared.
#[derive(Clone, Copy)]
struct Place<'a> {
    ranks: u64,
    access: Access,
    pattern_type: PatternType,
    repeats: &'a Repeats<'a>,
}

impl Place<'_> {
    fn patterns(self, sides: &[Side<'_>], ladder: &mut Ladder, verdicts: &mut Vec<Verdict>) {
        let records = || sides.iter().flat_map(|s| &s.records.patterns);
        let mut numbers: Vec<u8> = records().map(|p| p.pattern).collect();
        numbers.sort_unstable();
        numbers.dedup();
        for pattern in numbers {
            let mut entries: Vec<Entry<'_>> = sides.iter().filter_map(|s| Entry::pattern(s, pattern)).collect();
            let best = compare(&mut entries, |entry, best| {
                pattern_ratio(&entry.samples(best, self.repeats), &entry.totals(best))
            });
            for entry in &entries {
                ladder.patterns.push(PatternRung {
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

    fn total(self, sides: &[Side<'_>], ladder: &mut Ladder) {
        let mut entries: Vec<Entry<'_>> = sides.iter().filter_map(Entry::total).collect();
        let best = compare(&mut entries, |entry, best| type_ratio(entry, best, &entry.samples(best, self.repeats)));
        for entry in &entries {
            ladder.types.push(TypeRung {
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

    /// MPI-IO against the best, or the slowest if MPI-IO is the best; None without a second backend.
    fn verdict(self, entries: &[Entry<'_>], best: usize, pattern: Option<u8>) -> Option<Verdict> {
        let best = &entries[best];
        let rivals = || entries.iter().filter(|e| e.backend != best.backend).filter_map(|e| e.ratio.map(|r| (e, r)));
        let slowest = rivals().min_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
        let (entry, ratio) = rivals().find(|(e, _)| e.backend == MPI_IO).unwrap_or(slowest);
        let is_other = slowest.0.backend != entry.backend;
        let (largest, excess) = costs(entry, best)?;
        Some(Verdict {
            ranks: self.ranks,
            access: self.access,
            pattern_type: self.pattern_type,
            pattern,
            backend: entry.backend.to_owned(),
            best: best.backend.to_owned(),
            ratio,
            slowest: is_other.then(|| Slowest { backend: slowest.0.backend.to_owned(), ratio: slowest.1 }),
            call_seconds: pattern.and_then(|_| Some([entry.call_seconds()?, best.call_seconds()?])),
            largest,
            excess,
        })
    }
}

impl<'a> Entry<'a> {
    fn new(side: &Side<'a>, records: Vec<&'a PatternRecord>) -> Option<Self> {
        let mut parts = Parts::default();
        records.iter().for_each(|p| parts.add_pattern(&p.intervals));
        let bytes = records.iter().map(|p| p.moved_bytes).fold(0, u64::saturating_add);
        let calls = records.iter().map(|p| p.calls).fold(0, u64::saturating_add);
        let backend = side.backend;
        (!records.is_empty()).then_some(Self { backend, bytes, parts, calls, records, ratio: None })
    }

    fn pattern(side: &Side<'a>, pattern: u8) -> Option<Self> {
        Self::new(side, side.records.patterns.iter().copied().filter(|p| p.pattern == pattern).collect())
    }

    fn total(side: &Side<'a>) -> Option<Self> {
        let mut entry = Self::new(side, side.records.patterns.clone())?;
        side.records.files.iter().for_each(|t| entry.parts.add_files(t));
        Some(entry)
    }

    fn rate(&self) -> Option<f64> {
        mb_per_second(self.bytes, self.parts.seconds()).filter(|_| self.bytes > 0)
    }

    fn call_seconds(&self) -> Option<f64> {
        (self.calls > 0).then(|| self.parts.seconds() / self.calls as f64)
    }

    fn totals(&self, base: &Self) -> Totals {
        Totals {
            bytes: self.bytes as f64,
            seconds: self.parts.seconds(),
            base_bytes: base.bytes as f64,
            base_seconds: base.parts.seconds(),
        }
    }

    /// What is known of its patterns beside the same ones of `base`.
    fn samples(&self, base: &Self, repeats: &Repeats<'_>) -> Vec<Sample> {
        let partner = |p: &PatternRecord| base.records.iter().find(|b| b.pattern == p.pattern);
        self.records.iter().filter_map(|p| partner(p).map(|b| Sample::of(p, b, repeats))).collect()
    }
}

/// Pairs of one pattern from which can be drawn.
struct Sample {
    /// Paired rounds of the first pass; where they are few and there are enough passes, those.
    pairs: Vec<Totals>,
    /// Rounds of the first pass, in pairs.
    rounds: usize,
    /// Both in the first pass.
    first: Totals,
    is_of_passes: bool,
}

/// The rounds of a pattern in the clock.
fn rounds_of(record: &PatternRecord) -> Vec<Round> {
    let round = |r: &RoundRecord| Round { number: r.number, moved_bytes: r.moved_bytes, seconds: r.seconds };
    record.rounds.iter().map(round).collect()
}

impl Sample {
    fn of(record: &PatternRecord, base: &PatternRecord, repeats: &Repeats<'_>) -> Self {
        let first = Totals {
            bytes: record.moved_bytes as f64,
            seconds: record.seconds(),
            base_bytes: base.moved_bytes as f64,
            base_seconds: base.seconds(),
        };
        let rounds = pairs(&rounds_of(record), &rounds_of(base));
        let passes = if rounds.len() < MIN_ROUNDS { repeats.passes(record, base) } else { Vec::new() };
        let (number, is_of_passes) = (rounds.len(), passes.len() >= MIN_ROUNDS);
        Self { pairs: if is_of_passes { passes } else { rounds }, rounds: number, first, is_of_passes }
    }

    fn is_enough(&self) -> bool {
        self.pairs.len() >= MIN_ROUNDS
    }

    /// What stands for the pattern in its type. Rounds that only one backend had are in it by those that both had.
    fn drawn(&self) -> Vec<Totals> {
        if self.is_of_passes {
            return self.pairs.clone();
        }
        let mut sum = Totals::default();
        self.pairs.iter().for_each(|pair| sum.add(pair, 1.0));
        self.pairs.iter().map(|pair| pair.scaled(&self.first, &sum)).collect()
    }
}

/// The smallest number of passes of the patterns that are drawn from those; 0: none is.
fn fewest_passes<'a>(samples: impl Iterator<Item = &'a Sample>) -> u64 {
    samples.filter(|s| s.is_of_passes).map(|s| s.pairs.len() as u64).min().unwrap_or(0)
}

/// Finds the best and sets the ratios to it.
fn compare(entries: &mut [Entry<'_>], ratio: impl Fn(&Entry<'_>, &Entry<'_>) -> Option<Ratio>) -> Option<usize> {
    let rates = entries.iter().enumerate().filter_map(|(i, e)| e.rate().map(|rate| (i, rate)));
    // The first of those with the largest rate.
    let (best, _) = rates.reduce(|best, next| if next.1 > best.1 { next } else { best })?;
    for i in 0..entries.len() {
        entries[i].ratio = if i == best { Some(Ratio::alone(1.0, 0)) } else { ratio(&entries[i], &entries[best]) };
    }
    Some(best)
}

/// From all bytes and seconds, with an interval from the rounds that both have or from passes, stretched to it.
fn pattern_ratio(samples: &[Sample], whole: &Totals) -> Option<Ratio> {
    let value = whole.ratio()?;
    let found = samples.first().and_then(|sample| Some((sample, paired(&sample.pairs)?)));
    let Some((sample, ratio)) = found else { return Some(Ratio::alone(value, 0)) };
    let passes = if sample.is_of_passes { sample.pairs.len() as u64 } else { 0 };
    Some(Ratio { rounds: sample.rounds as u64, passes, ..ratio.around(value) })
}

/// From all bytes and seconds of the first pass; the interval from the patterns that have rounds or passes, if they are nearly all of it.
fn type_ratio(entry: &Entry<'_>, best: &Entry<'_>, samples: &[Sample]) -> Option<Ratio> {
    let whole = entry.totals(best);
    let value = whole.ratio()?;
    let drawn = || samples.iter().filter(|s| s.is_enough());
    let mut sampled = Totals::default();
    drawn().for_each(|s| sampled.add(&s.first, 1.0));
    let seconds = |e: &Entry<'_>| e.records.iter().map(|p| p.seconds()).sum::<f64>();
    let enough =
        sampled.seconds >= SAMPLED_SHARE * seconds(entry) && sampled.base_seconds >= SAMPLED_SHARE * seconds(best);
    let fewest = |rounds: Option<usize>| rounds.unwrap_or(0) as u64;
    if !enough {
        return Some(Ratio::alone(value, fewest(samples.iter().map(|s| s.rounds).min())));
    }
    // Passes say what the pattern takes in the middle; its first pass was one of them.
    let mut middle = whole;
    for sample in drawn() {
        middle.add(&sample.first, -1.0);
    }
    let patterns: Vec<Vec<Totals>> = drawn().map(Sample::drawn).collect();
    patterns.iter().flatten().for_each(|pair| middle.add(pair, 1.0));
    let ratio = pooled(&middle, &patterns.iter().map(Vec::as_slice).collect::<Vec<_>>())?.around(value);
    Some(Ratio { rounds: fewest(drawn().map(|s| s.rounds).min()), passes: fewest_passes(drawn()), ..ratio })
}

/// The largest part of the time of `entry`, and the one in which it loses most against `best` if that is another.
fn costs(entry: &Entry<'_>, best: &Entry<'_>) -> Option<(Cost, Option<Cost>)> {
    let total = entry.parts.seconds();
    let per_byte = |e: &Entry<'_>, part: Part| e.parts.of(part) / e.bytes as f64;
    let lost = |part: Part| per_byte(entry, part) - per_byte(best, part);
    let cost = |part: Part| Cost {
        part,
        share: entry.parts.of(part) / total,
        times: (best.parts.of(part) > 0.0).then(|| per_byte(entry, part) / per_byte(best, part)),
    };
    let by = |value: &dyn Fn(Part) -> f64| Part::ALL.into_iter().max_by(|a, b| value(*a).total_cmp(&value(*b)));
    let (largest, excess) = (by(&|part| entry.parts.of(part))?, by(&lost)?);
    Some((cost(largest), (excess != largest && lost(excess) > 0.0).then(|| cost(excess))))
}

#[cfg(test)]
#[path = "ladder_tests.rs"]
mod tests;
