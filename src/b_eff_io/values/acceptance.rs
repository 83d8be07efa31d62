//! Figures of a run for the requirements of its acceptance.

use super::averages::access_average;
use super::coffee_cup::{release_index, release_value};
use super::ladder::{type_ratio, BackendTypeRecords, ComparedBackend};
use super::repetitions::RepetitionIndex;
use super::series::{by_partition, MeasuredSeries};
use super::totals::{TypeRecordIndex, TypeRecords};
use super::{
    CacheVerdict, CacheYardstick, CoffeeCup, Derived, PartitionValue, TypeValue, Validity, VerifiedWords, WORD_BYTES,
};
use crate::b_eff_io::config::RepeatPolicy;
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::plan::schedule::is_rewritten;
use crate::b_eff_io::records::{PatternRecord, RunResult, Verification};
use crate::b_eff_io::requirements::{Requirement, Subject};
use crate::frame::backends::backend_of;
use crate::frame::records::{AccessMethod, JournaledResult};
use crate::frame::units::{count, format_size, mb_per_second};
use crate::frame::values::acceptance::{FigureKind, MeasuredFigure, RequiredFigures, RequirementVerdict};
use crate::frame::values::doubt::{doubts, Doubt};
use crate::frame::values::{Criterion, MPI_IO, NULL_BACKEND};

const NO_INTERVAL: &str = "no interval: without repetitions of all its parts (--repeat auto)";

/// Figures for all requirements of the configuration.
#[must_use]
pub(in crate::b_eff_io) fn required_figures(result: &RunResult, derived: &Derived) -> Vec<RequiredFigures> {
    let run = JudgedRun { result, derived, doubts: run_doubts(result, derived) };
    let of_requirement = |requirement: &Requirement| {
        let is_about_speed = !matches!(
            requirement.subject,
            Subject::WrongWords | Subject::Time | Subject::Cache { .. } | Subject::Valid
        );
        let doubts: Vec<Doubt> =
            run.doubts.iter().filter(|doubt| is_about_speed || matches!(doubt, Doubt::Cut { .. })).cloned().collect();
        let size = requirement.unit_size();
        let in_unit = |figure: MeasuredFigure| MeasuredFigure {
            value: figure.value.map(|value| value / size),
            interval: figure.interval.map(|ends| ends.map(|end| end / size)),
            doubts: doubts.clone(),
            ..figure
        };
        RequiredFigures {
            line: requirement.line,
            requirement: requirement.to_string(),
            unit: requirement.unit.clone(),
            limit: requirement.limit(),
            figures: run.figures(&requirement.subject).into_iter().map(in_unit).collect(),
        }
    };
    result.config.requirements.iter().map(of_requirement).collect()
}

/// Evidence in a run that it decides nothing.
pub(in crate::b_eff_io) fn run_doubts(result: &RunResult, derived: &Derived) -> Vec<Doubt> {
    let values = derived.intervals.values.iter().filter(|i| i.backend != NULL_BACKEND);
    doubts(result.outcome(), &derived.warnings, values.map(|i| [i.low, i.high]))
}

/// A run, with the evidence against it.
struct JudgedRun<'a> {
    result: &'a RunResult,
    derived: &'a Derived,
    doubts: Vec<Doubt>,
}

impl<'a> JudgedRun<'a> {
    fn figures(&self, subject: &Subject) -> Vec<MeasuredFigure> {
        match subject {
            Subject::Value { backend } => vec![self.value(backend)],
            Subject::Spread { backend } => vec![self.spread(backend)],
            Subject::Mean { access, backend } => self.of_each(*access, |access| self.mean(backend, access)),
            Subject::Type { pattern_type, access, backend } => {
                let types: Vec<PatternType> = pattern_type.map_or_else(|| PatternType::ALL.into(), |t| vec![t]);
                let of_type = |t: PatternType| self.of_each_of(*access, t, |access| self.of_type(backend, t, access));
                types.into_iter().flat_map(of_type).collect()
            }
            Subject::SmallestChunk { access, backend } => {
                self.of_each(*access, |access| self.smallest_chunk(backend, access))
            }
            Subject::Ratio { backends, pattern_type, access } => {
                let ratio = |access| self.ratio(backends, *pattern_type, access);
                match pattern_type {
                    Some(t) => self.of_each_of(*access, *t, ratio),
                    None => self.of_each(*access, ratio),
                }
            }
            Subject::WrongWords => vec![self.wrong_words()],
            Subject::Time => vec![self.time()],
            Subject::Cache { access } => self.of_each(*access, |access| self.cache(access)),
            Subject::CoffeeCup => vec![self.coffee_cup()],
            Subject::Valid => vec![self.valid()],
        }
    }

    /// For one access method, or for each.
    fn of_each(
        &self,
        access: Option<AccessMethod>,
        figure: impl Fn(AccessMethod) -> MeasuredFigure,
    ) -> Vec<MeasuredFigure> {
        access.map_or_else(|| AccessMethod::ALL.into(), |access| vec![access]).into_iter().map(figure).collect()
    }

    /// The same for a type, which may not be rewritten by the definition.
    fn of_each_of(
        &self,
        access: Option<AccessMethod>,
        t: PatternType,
        figure: impl Fn(AccessMethod) -> MeasuredFigure,
    ) -> Vec<MeasuredFigure> {
        let is_part = |a: &AccessMethod| {
            access == Some(*a) || *a != AccessMethod::Rewrite || is_rewritten(self.result.config.full_rewrite, t)
        };
        let all = access.map_or_else(|| AccessMethod::ALL.into(), |access| vec![access]);
        all.into_iter().filter(is_part).map(figure).collect()
    }

    /// The partition with the value of the system, else the largest.
    fn ranks(&self, backend: &str) -> u64 {
        let system = self.derived.systems.iter().find(|s| s.backend == backend);
        let best = system.and_then(|s| s.ranks[release_index(self.result.config.release)]);
        best.unwrap_or_else(|| self.result.partitions.iter().map(|p| p.ranks).max().unwrap_or(0))
    }

    /// `posix, write`; MPI-IO alone needs no name.
    fn subject<const N: usize>(&self, backend: &str, words: [&str; N]) -> String {
        let backend = if backend == MPI_IO && self.result.config.backends.len() == 1 { "" } else { backend };
        [&[backend], &words[..]].concat().into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
    }

    /// Why a backend has no figures.
    fn unmeasured(&self, backend: &str) -> String {
        match self.result.config.backends.iter().any(|name| name == backend) {
            true => "not measured completely".to_owned(),
            false => format!("{backend} is not among the backends of the run"),
        }
    }

    fn value(&self, backend: &str) -> MeasuredFigure {
        let subject = self.subject(backend, []);
        let release = self.result.config.release;
        let system = self.derived.systems.iter().find(|s| s.backend == backend);
        let Some(value) = system.and_then(|s| release_value(&s.values, release)) else {
            return MeasuredFigure::absent(subject, FigureKind::Quantity, self.unmeasured(backend));
        };
        let interval = self.derived.intervals.value(backend, self.ranks(backend)).map(|i| [i.low, i.high]);
        let figure = MeasuredFigure::new(subject, FigureKind::Quantity, value, interval);
        with_interval_note(figure).blocked_by(self.invalid(backend))
    }

    /// Why the value is not valid by the definition. Other backends than MPI-IO, which the definition requires, are judged by its other criteria.
    fn invalid(&self, backend: &str) -> Option<String> {
        let release = self.result.config.release;
        let of = backend_of(backend);
        let validity = self.derived.validity.iter().find(|v| v.backend == of && v.release == release)?;
        unmet(validity, backend == MPI_IO).map(|lack| format!("not valid: {lack}"))
    }

    fn spread(&self, backend: &str) -> MeasuredFigure {
        let subject = self.subject(backend, []);
        let value = self.value(backend);
        let kind = FigureKind::HalfWidth { of: value.value };
        match (value.value, value.interval) {
            (Some(value), Some([low, high])) => {
                let half_width = (high / value - 1.0).max(1.0 - low / value);
                MeasuredFigure::new(subject, kind, 100.0 * half_width, None)
            }
            (Some(_), None) => MeasuredFigure::absent(subject, kind, NO_INTERVAL),
            _ => MeasuredFigure::absent(subject, kind, self.unmeasured(backend)),
        }
    }

    fn of_type(&self, backend: &str, t: PatternType, access: AccessMethod) -> MeasuredFigure {
        let number = format!("type {t}");
        let subject = self.subject(backend, [&number, access.name()]);
        let ranks = self.ranks(backend);
        let is_own = |v: &&TypeValue| {
            v.backend == backend && v.ranks == ranks && v.access == access && v.pattern_type == t && v.complete
        };
        match self.derived.types.iter().find(is_own).and_then(|v| v.mb_per_second) {
            None => MeasuredFigure::absent(subject, FigureKind::Quantity, self.unmeasured(backend)),
            Some(rate) => {
                let interval = self.derived.intervals.of_type(backend, ranks, access, t).map(|i| [i.low, i.high]);
                with_interval_note(MeasuredFigure::new(subject, FigureKind::Quantity, rate, interval))
            }
        }
    }

    fn mean(&self, backend: &str, access: AccessMethod) -> MeasuredFigure {
        let subject = self.subject(backend, [access.name()]);
        let ranks = self.ranks(backend);
        match self.access_mean(backend, access) {
            None => MeasuredFigure::absent(subject, FigureKind::Quantity, self.unmeasured(backend)),
            Some(rate) => {
                let interval = self.mean_factors(backend, ranks, access).map(|ends| ends.map(|end| end * rate));
                with_interval_note(MeasuredFigure::new(subject, FigureKind::Quantity, rate, interval))
            }
        }
    }

    fn access_mean(&self, backend: &str, access: AccessMethod) -> Option<f64> {
        let ranks = self.ranks(backend);
        let is_own = |p: &&PartitionValue| p.backend == backend && p.ranks == ranks;
        self.derived.partitions.iter().find(is_own)?.access_mb_per_second[access as usize]
    }

    /// Interval of the mean of an access method, as factors of it.
    fn mean_factors(&self, backend: &str, ranks: u64, access: AccessMethod) -> Option<[f64; 2]> {
        let series = self.series(backend, ranks)?;
        let (bound, _) = series.interval(self.result.config.release, |w| access_average(w.types[access as usize]))?;
        Some([bound.low, bound.high])
    }

    /// Repetitions of all parts of values; long calls alone give no interval of them.
    fn series(&self, backend: &str, ranks: u64) -> Option<MeasuredSeries> {
        if self.result.config.repeat == RepeatPolicy::Rounds {
            return None;
        }
        by_partition(self.result).get(&(backend, ranks)).and_then(MeasuredSeries::new)
    }

    /// All types together: all bytes by all time of the patterns with the smallest chunk.
    fn smallest_chunk(&self, backend: &str, access: AccessMethod) -> MeasuredFigure {
        let subject = self.subject(backend, [access.name()]);
        let ranks = self.ranks(backend);
        let is_own =
            |p: &&PatternRecord| p.backend == backend && p.ranks == ranks && p.access == access && p.time_units > 0;
        let own = || self.result.patterns.iter().filter(is_own);
        let Some(smallest) = own().map(|p| p.chunk_bytes).min() else {
            return MeasuredFigure::absent(subject, FigureKind::Quantity, self.unmeasured(backend));
        };
        let with_it: Vec<&PatternRecord> = own().filter(|p| p.chunk_bytes == smallest).collect();
        let bytes = with_it.iter().map(|p| p.moved_bytes).fold(0, u64::saturating_add);
        let rate = mb_per_second(bytes, with_it.iter().map(|p| p.seconds()).sum());
        let is_whole = with_it.iter().all(|p| p.calls > 0 && p.was_run() && !p.ended.is_cut());
        let Some(rate) = rate.filter(|_| is_whole && bytes > 0) else {
            return MeasuredFigure::absent(subject, FigureKind::Quantity, self.unmeasured(backend));
        };
        let numbers: Vec<u8> = with_it.iter().map(|p| p.pattern).collect();
        let factors = self.series(backend, ranks).and_then(|series| series.interval_of_patterns(access, &numbers));
        let interval = factors.map(|bound| [rate * bound.low, rate * bound.high]);
        with_interval_note(MeasuredFigure::new(subject, FigureKind::Quantity, rate, interval))
    }

    fn ratio(&self, backends: &[String; 2], t: Option<PatternType>, access: AccessMethod) -> MeasuredFigure {
        let absent = |cause: String| MeasuredFigure::absent(access.name(), FigureKind::Quantity, cause);
        let known = |name: &String| self.result.config.backends.contains(name);
        if let Some(missing) = backends.iter().find(|name| !known(name)) {
            return absent(self.unmeasured(missing));
        }
        let index = TypeRecordIndex::new(self.result);
        let repetitions = RepetitionIndex::new(self.result);
        let ranks = self.ranks(&backends[0]);
        let types = t.map_or_else(|| PatternType::ALL.to_vec(), |t| vec![t]);
        let of_types = types.iter().map(|t| [0, 1].map(|side| index.of(&backends[side], ranks, access, *t)));
        // Of types that both have measured.
        let both = of_types.filter(|pair| pair.iter().all(|of| of.patterns.iter().any(|p| p.calls > 0)));
        let [own, base] = both.fold([(); 2].map(|()| TypeRecords::empty()), |mut sum, pair| {
            sum.iter_mut().zip(&pair).for_each(|(sum, of_type)| sum.add(of_type));
            sum
        });
        let pair = total(&backends[0], own).zip(total(&backends[1], base));
        let ratio = pair.and_then(|(own, base)| type_ratio(&own, &base, &own.samples(&base, &repetitions)));
        let Some(ratio) = ratio else { return absent(self.unmeasured(&backends[0])) };
        let interval = ratio.interval.map(|i| [i.low, i.high]);
        let few = interval.is_none().then(|| {
            "no interval: fewer than three rounds or repetitions of most patterns (--rounds, --repeat rounds)"
                .to_owned()
        });
        MeasuredFigure { note: few, ..MeasuredFigure::new(access.name(), FigureKind::Quantity, ratio.value, interval) }
    }

    /// Words in buffers of reads, in complete checks and in samples of the files.
    fn wrong_words(&self) -> MeasuredFigure {
        let result = self.result;
        let Verification { words_checked: checked, words_wrong: counted } = VerifiedWords::of(result, None).total();
        let recorded = result.corruptions.iter().map(|c| c.words_wrong).fold(0, u64::saturating_add);
        let wrong = counted.max(recorded);
        let wrong = wrong.max(u64::from(result.is_corrupt()));
        let figure = MeasuredFigure::new("", FigureKind::Exact, wrong as f64, None);
        let said =
            format!("of {} compared ({})", count(checked, "word"), format_size(checked.saturating_mul(WORD_BYTES)));
        match (wrong, checked) {
            (1.., _) => figure.settled(RequirementVerdict::Fail, said),
            (0, 0) => figure.blocked_by(Some("no word was compared".into())),
            (0, _) => figure.settled(RequirementVerdict::Pass, said),
        }
    }

    /// Of the shortest partition.
    fn time(&self) -> MeasuredFigure {
        match self.result.partitions.iter().map(|p| p.time_seconds).reduce(f64::min) {
            Some(seconds) => MeasuredFigure::new("", FigureKind::Exact, seconds, None),
            None => MeasuredFigure::absent("", FigureKind::Exact, "there is no partition"),
        }
    }

    /// Through MPI-IO, or else through the first backend.
    fn main_backend(&self) -> &'a str {
        let backends = &self.result.config.backends;
        let own = || backends.iter().map(String::as_str).filter(|name| *name != NULL_BACKEND);
        own().find(|name| *name == MPI_IO).or_else(|| own().next()).unwrap_or(MPI_IO)
    }

    fn cache(&self, access: AccessMethod) -> MeasuredFigure {
        let backend = self.main_backend();
        let ranks = self.ranks(backend);
        let is_own = |y: &&CacheYardstick| y.backend == backend && y.ranks == ranks && y.access == access;
        let Some(y) = self.derived.cache_yardsticks.iter().find(is_own) else {
            return MeasuredFigure::absent(access.name(), FigureKind::Exact, self.unmeasured(backend));
        };
        let times = y.cached_bytes as f64 / y.cache_bytes as f64;
        let figure = MeasuredFigure::new(access.name(), FigureKind::Exact, times, None);
        let said = format!("{} of {}", format_size(y.cached_bytes), format_size(y.required_bytes));
        let (pass, fail) = (RequirementVerdict::Pass, RequirementVerdict::Fail);
        match y.verdict {
            CacheVerdict::Met => figure.settled(pass, said),
            CacheVerdict::NotMet => figure.settled(fail, said),
            CacheVerdict::Direct => {
                MeasuredFigure { value: None, ..figure }.settled(pass, "direct I/O bypassed the cache")
            }
            CacheVerdict::InMemory => MeasuredFigure { value: None, ..figure }.settled(fail, "the files are in memory"),
        }
    }

    fn coffee_cup(&self) -> MeasuredFigure {
        let backend = self.main_backend();
        let ranks = self.ranks(backend);
        let is_own = |cup: &&CoffeeCup| cup.backend == backend && cup.ranks == ranks;
        let seconds = self.derived.coffee_cups.iter().find(is_own).and_then(|cup| cup.seconds[0]);
        let subject = self.subject(backend, []);
        let Some(seconds) = seconds else {
            return MeasuredFigure::absent(subject, FigureKind::Quantity, self.unmeasured(backend));
        };
        let factors = self.mean_factors(backend, ranks, AccessMethod::Write);
        let interval = factors.map(|[low, high]| [seconds / high, seconds / low]);
        with_interval_note(MeasuredFigure::new(subject, FigureKind::Quantity, seconds, interval))
    }

    fn valid(&self) -> MeasuredFigure {
        let release = self.result.config.release;
        let own = self.derived.validity.iter().find(|v| v.backend == MPI_IO && v.release == release);
        let figure = MeasuredFigure { value: None, ..MeasuredFigure::new("", FigureKind::Exact, 1.0, None) };
        match own.map(|validity| unmet(validity, true)) {
            None => figure.settled(RequirementVerdict::Fail, "not through MPI-IO"),
            Some(Some(lack)) => figure.settled(RequirementVerdict::Fail, lack),
            Some(None) => figure.settled(RequirementVerdict::Pass, format!("by release {}", release.name())),
        }
    }
}

fn total<'r>(backend: &'r str, records: TypeRecords<'r>) -> Option<ComparedBackend<'r>> {
    ComparedBackend::total(&BackendTypeRecords { backend, records })
}

/// Why it has no interval, if it has none.
fn with_interval_note(figure: MeasuredFigure) -> MeasuredFigure {
    let has_none = figure.interval.is_none();
    MeasuredFigure { note: has_none.then(|| NO_INTERVAL.to_owned()), ..figure }
}

/// The first unmet criterion; None: the value is valid. Without `of_mpi_io` that of measuring through MPI-IO does not count.
fn unmet(validity: &Validity, of_mpi_io: bool) -> Option<&str> {
    const NOT_MPI_IO: &str = "not through MPI-IO";
    let counts = |c: &&Criterion| !c.met && (of_mpi_io || c.lack() != NOT_MPI_IO);
    validity.criteria.iter().find(counts).map(Criterion::lack)
}

#[cfg(test)]
#[path = "acceptance_tests.rs"]
mod tests;
