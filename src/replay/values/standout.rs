//! Findings of a replay: classes of calls with times far from the recorded ones, backends far from each other, a process much slower than
//! the others, time in calls without data. With the cause, if the records show one.

use beff_trace::Function;

use super::{kinds, CallSubset, LevelComparison, LevelKind, ReplayDerived};
use crate::frame::config::DirectPolicy;
use crate::frame::records::Warning;
use crate::frame::values::{interference, NULL_BACKEND};
use crate::replay::config::Pace;
use crate::replay::plan::CallClass;
use crate::replay::records::{ProfileRepetition, ReplayResult};

/// Minimum factors of a finding: against the recorded run, between backends, between processes.
const MIN_FACTOR: f64 = 1.25;
const MIN_BACKEND_FACTOR: f64 = 1.5;
const MIN_PROCESS_FACTOR: f64 = 1.5;
/// Minimum difference, as a share of the time in all calls.
const MIN_SHARE: f64 = 0.05;
/// Minimum share of the time in all calls for calls without data.
const MIN_COST_SHARE: f64 = 0.2;
/// Minimum number of processes for a finding about one of them.
const MIN_PROCESSES: usize = 3;
const MAX_FINDINGS: usize = 3;
/// The program had pauses if its calls took less than this share of its time.
const MAX_PAUSED_FRACTION: f64 = 0.5;

/// Cause of a deviation from the recorded time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DeviationCause {
    /// Number of calls of this class with another result than recorded.
    OtherResults(u64),
    /// Shares of the bytes read that came from storage, recorded and replayed.
    StorageReads(f64, f64),
    /// Direct I/O, while the recorded program probably used the page cache.
    Direct,
    /// Interference, as a share of the CPU time.
    Interference(f64),
    /// The replay omits the pauses of the program, in which storage could write back.
    NoPauses,
}

/// Subject of a finding.
#[derive(Clone, Debug, PartialEq)]
pub enum DeviationKind {
    /// A class took another time than recorded: `factor` above 1 is faster.
    Class {
        /// The class.
        class: CallClass,
        /// Cause, if known.
        cause: Option<DeviationCause>,
    },
    /// A class is `factor` times slower than with the best backend.
    Backend {
        /// The class.
        class: CallClass,
        /// The best backend.
        best: String,
    },
    /// A process took `factor` times the median; in the recording, `recorded` times the median.
    Process {
        /// World rank.
        rank: u64,
        /// The recorded factor.
        recorded: f64,
    },
    /// A class without data, with its recorded share of the time; `factor` is replayed over recorded time.
    Cost {
        /// The class.
        class: CallClass,
        /// Recorded share of the time in all calls, 0 to 1.
        recorded_share: f64,
    },
}

/// A finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Backend name.
    pub backend: String,
    /// Subject.
    pub kind: DeviationKind,
    /// Factor; see [`DeviationKind`].
    pub factor: f64,
    /// Share of the time in all calls of this backend, 0 to 1.
    pub share: f64,
    /// Time concerned, relative to the recorded time in all calls: sort key.
    weight: f64,
}

/// At most one finding of a kind (slower and faster count as two), in descending order of the time concerned.
#[must_use]
pub fn findings(result: &ReplayResult, derived: &ReplayDerived) -> Vec<Finding> {
    let backends: Vec<BackendLevels<'_>> = result
        .config
        .backends
        .iter()
        .filter(|name| *name != NULL_BACKEND)
        .filter_map(|name| BackendLevels::for_backend(derived, name))
        .collect();
    let is_compared = result.config.what_if.is_some() || !result.config.variants.is_empty();
    let rivals = if is_compared { &[][..] } else { &backends[..] };
    let classes = || backends.iter().flat_map(|times| class_findings(result, derived, times));
    let kinds = [
        longest_finding(classes().filter(|f| f.factor < 1.0)),
        longest_finding(classes().filter(|f| f.factor > 1.0)),
        // The effects of a change and of variants have lines of their own.
        longest_finding(rivals.iter().flat_map(|times| backend_findings(times, rivals))),
        longest_finding(backends.iter().filter_map(process_finding)),
        longest_finding(backends.iter().flat_map(cost_findings)),
    ];
    let mut found: Vec<Finding> = kinds.into_iter().flatten().collect();
    // A cost that is also slower than recorded is reported once.
    let slower: Vec<(String, CallClass)> = found.iter().filter_map(slower_class_of).collect();
    found.retain(
        |f| !matches!(&f.kind, DeviationKind::Cost { class, .. } if slower.contains(&(f.backend.clone(), *class))),
    );
    found.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    found.truncate(MAX_FINDINGS);
    found
}

fn slower_class_of(finding: &Finding) -> Option<(String, CallClass)> {
    match finding.kind {
        DeviationKind::Class { class, .. } if finding.factor < 1.0 => Some((finding.backend.clone(), class)),
        _ => None,
    }
}

fn longest_finding(found: impl Iterator<Item = Finding>) -> Option<Finding> {
    let sound = |f: &Finding| [f.factor, f.share, f.weight].into_iter().all(|v| v.is_finite() && v > 0.0);
    found.filter(sound).max_by(|a, b| a.weight.total_cmp(&b.weight))
}

struct BackendLevels<'a> {
    backend: &'a str,
    classes: Vec<(CallClass, &'a LevelComparison)>,
    processes: Vec<(u64, &'a LevelComparison)>,
    recorded_seconds: f64,
    replayed_seconds: f64,
}

impl<'a> BackendLevels<'a> {
    fn for_backend(derived: &'a ReplayDerived, backend: &'a str) -> Option<Self> {
        let own = || derived.levels.iter().filter(|l| l.backend == backend && l.part == CallSubset::All);
        let whole = own().find(|l| l.level == LevelKind::Run)?;
        let processes = own().filter(|l| l.level == LevelKind::Process);
        (whole.recorded_seconds > 0.0 && whole.replayed_seconds > 0.0).then(|| Self {
            backend,
            classes: own().filter_map(|l| Some((l.class?, l))).collect(),
            processes: processes.filter_map(|l| Some((l.rank?, l))).collect(),
            recorded_seconds: whole.recorded_seconds,
            replayed_seconds: whole.replayed_seconds,
        })
    }

    fn finding(&self, kind: DeviationKind, factor: f64, seconds: f64, about_seconds: f64) -> Finding {
        Finding {
            backend: self.backend.to_owned(),
            kind,
            factor,
            share: seconds / self.replayed_seconds,
            weight: about_seconds / self.recorded_seconds,
        }
    }

    fn is_significant(&self, seconds: f64) -> bool {
        seconds >= MIN_SHARE * self.recorded_seconds.max(self.replayed_seconds)
    }
}

fn class_findings(result: &ReplayResult, derived: &ReplayDerived, times: &BackendLevels<'_>) -> Vec<Finding> {
    let of = |(class, line): &(CallClass, &LevelComparison)| {
        let factor = line.ratio?;
        let about = (line.replayed_seconds - line.recorded_seconds).abs();
        // Repetitions on both sides of 1 give no finding.
        let agree = line.ratio_range.is_none_or(|[low, high]| (low > 1.0) == (high > 1.0));
        let is_reported = agree && (factor >= MIN_FACTOR || factor <= 1.0 / MIN_FACTOR) && times.is_significant(about);
        is_reported.then(|| {
            let cause = deviation_cause(result, derived, times, *class, factor);
            times.finding(DeviationKind::Class { class: *class, cause }, factor, line.replayed_seconds, about)
        })
    };
    times.classes.iter().filter_map(of).collect()
}

/// The first cause shown by the records; certain ones precede likely ones.
fn deviation_cause(
    result: &ReplayResult,
    derived: &ReplayDerived,
    times: &BackendLevels<'_>,
    class: CallClass,
    factor: f64,
) -> Option<DeviationCause> {
    let own: Vec<&ProfileRepetition> =
        result.repetitions.iter().filter(|p| p.backend == times.backend && p.is_timed_complete()).collect();
    let of_class = |function: &str| Function::from_name(function).is_some_and(|(f, _)| CallClass::of(f) == class);
    let differences = own.iter().flat_map(|p| &p.differences).filter(|d| of_class(&d.function));
    let others = differences.map(|d| d.calls).fold(0, u64::saturating_add);
    if others > 0 {
        return Some(DeviationCause::OtherResults(others));
    }
    let is_it = |w: &&Warning| w.is_kind(&kinds::CACHE_DIFFERS) && w.backend.as_deref() == Some(times.backend);
    let caches = derived.warnings.iter().find(is_it);
    let caches = caches.and_then(|w| Some((w.number("recorded_share")?, w.number("replayed_share")?)));
    // More data from storage explains slower reads, less explains faster ones.
    if let Some((then, now)) = caches.filter(|(then, now)| class.is_read() && (now > then) == (factor < 1.0)) {
        return Some(DeviationCause::StorageReads(then, now));
    }
    let direct = result.config.direct.of(times.backend) != DirectPolicy::Off;
    if direct && (class.is_read() || class.is_write()) {
        return Some(DeviationCause::Direct);
    }
    let shares = interference::shares(own.iter().filter_map(|p| p.interference.as_ref()));
    let others = shares.map_or(0.0, interference::InterferenceShares::largest);
    if factor < 1.0 && others > interference::INTERFERENCE_THRESHOLD {
        return Some(DeviationCause::Interference(others));
    }
    let profile = &result.setup.profile;
    let had_pauses = times.recorded_seconds < MAX_PAUSED_FRACTION * profile.span_seconds * profile.processes as f64;
    let waits_for_storage = class.is_write() || matches!(class, CallClass::Sync | CallClass::Close);
    (result.config.pace == Pace::Fast && factor < 1.0 && had_pauses && waits_for_storage)
        .then_some(DeviationCause::NoPauses)
}

fn backend_findings(times: &BackendLevels<'_>, all: &[BackendLevels<'_>]) -> Vec<Finding> {
    let of = |(class, line): &(CallClass, &LevelComparison)| {
        let own = line.ratio?;
        let rivals = all.iter().filter_map(|other| {
            let (_, rival) = other.classes.iter().find(|(c, _)| c == class)?;
            Some((other.backend, rival.ratio?))
        });
        let (best, ratio) = rivals.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let factor = ratio / own;
        let about = line.replayed_seconds * (1.0 - 1.0 / factor);
        (factor >= MIN_BACKEND_FACTOR && times.is_significant(about)).then(|| {
            let kind = DeviationKind::Backend { class: *class, best: best.to_owned() };
            times.finding(kind, factor, line.replayed_seconds, about)
        })
    };
    times.classes.iter().filter_map(of).collect()
}

fn process_finding(times: &BackendLevels<'_>) -> Option<Finding> {
    let median = |seconds: fn(&LevelComparison) -> f64| {
        let mut all: Vec<f64> = times.processes.iter().map(|(_, l)| seconds(l)).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    if times.processes.len() < MIN_PROCESSES {
        return None;
    }
    let (rank, slowest) =
        times.processes.iter().max_by(|a, b| a.1.replayed_seconds.total_cmp(&b.1.replayed_seconds))?;
    let [then, now] = [median(|l| l.recorded_seconds), median(|l| l.replayed_seconds)];
    let (factor, recorded) = (slowest.replayed_seconds / now, slowest.recorded_seconds / then);
    // An imbalance of the recording belongs to the program.
    let is_news = factor >= MIN_PROCESS_FACTOR && recorded * MIN_FACTOR < factor;
    let about = slowest.replayed_seconds - now;
    (is_news && times.is_significant(about)).then(|| {
        times.finding(DeviationKind::Process { rank: *rank, recorded }, factor, slowest.replayed_seconds, about)
    })
}

fn cost_findings(times: &BackendLevels<'_>) -> Vec<Finding> {
    let moves_nothing = |class: CallClass| !class.is_read() && !class.is_write();
    let of = |(class, line): &(CallClass, &LevelComparison)| {
        let share = line.replayed_seconds / times.replayed_seconds;
        let recorded_share = line.recorded_seconds / times.recorded_seconds;
        let factor = line.replayed_seconds / line.recorded_seconds;
        (moves_nothing(*class) && share >= MIN_COST_SHARE).then(|| {
            let kind = DeviationKind::Cost { class: *class, recorded_share };
            times.finding(kind, factor, line.replayed_seconds, line.replayed_seconds)
        })
    };
    times.classes.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::config::DirectPolicy;
    use crate::replay::plan::TallyPair;
    use crate::replay::values::derive;
    use crate::replay::values::fixture::{difference, run};

    /// As fast as recorded, without any cause.
    fn equal_to_recorded(backends: &[&str], repetitions: u64) -> ReplayResult {
        let mut result = run(backends, repetitions);
        result.config.direct = DirectPolicy::Off;
        let both = |both: &mut TallyPair| both.replayed.seconds = both.recorded.seconds;
        result.classes.iter_mut().for_each(|c| both(&mut c.both));
        result.processes.iter_mut().for_each(|p| both(&mut p.both));
        result
    }

    fn of(result: &ReplayResult) -> Vec<Finding> {
        findings(result, &derive(result))
    }

    fn slow_down(result: &mut ReplayResult, backend: &str, class: CallClass, factor: f64) {
        for record in result.classes.iter_mut().filter(|c| c.backend == backend && c.class == class) {
            record.both.replayed.seconds *= factor;
        }
    }

    fn cause_of(result: &ReplayResult) -> Option<DeviationCause> {
        match of(result).remove(0).kind {
            DeviationKind::Class { cause, .. } => cause,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_replay_equal_to_the_recording_has_no_findings() {
        assert_eq!(of(&equal_to_recorded(&["mpiio", "posix"], 2)), []);
        let mut nothing = equal_to_recorded(&["mpiio"], 1);
        nothing.repetitions.clear();
        assert_eq!(of(&nothing), []);
    }

    #[test]
    fn a_slower_class_is_found_if_significant() {
        let mut result = equal_to_recorded(&["mpiio"], 1);
        slow_down(&mut result, "mpiio", CallClass::WriteCollective, 3.0);
        let found = of(&result);
        assert!(
            matches!(found[..], [Finding { kind: DeviationKind::Class { class: CallClass::WriteCollective, .. }, .. }]),
            "{found:?}"
        );
        assert!((found[0].factor - 1.0 / 3.0).abs() < 1e-9 && found[0].share > 0.5, "{found:?}");
        // A large factor of a negligible time is not significant.
        let mut result = equal_to_recorded(&["mpiio"], 1);
        for record in result.classes.iter_mut().filter(|c| c.class == CallClass::Close) {
            record.both.recorded.seconds = 1e-6;
            record.both.replayed.seconds = 1e-4;
        }
        assert_eq!(of(&result), []);
    }

    #[test]
    fn repetitions_on_both_sides_give_no_finding() {
        let mut result = equal_to_recorded(&["mpiio"], 2);
        let mut factors = [8.0, 0.5].into_iter();
        for record in result.classes.iter_mut().filter(|c| c.class == CallClass::WriteCollective) {
            record.both.replayed.seconds *= factors.next().unwrap();
        }
        assert_eq!(of(&result), []);
    }

    #[test]
    fn backends_are_compared_with_the_best() {
        let mut result = equal_to_recorded(&["mpiio", "posix", "null"], 1);
        slow_down(&mut result, "mpiio", CallClass::WriteCollective, 1.2);
        slow_down(&mut result, "posix", CallClass::WriteCollective, 0.6);
        let found = of(&result);
        let backends = found.iter().find(|f| matches!(f.kind, DeviationKind::Backend { .. })).unwrap();
        let kind = DeviationKind::Backend { class: CallClass::WriteCollective, best: "posix".into() };
        assert_eq!((&backends.backend[..], &backends.kind), ("mpiio", &kind));
        assert!((backends.factor - 2.0).abs() < 1e-9, "{found:?}");
        assert!(found.iter().all(|f| f.backend != "null"), "the null backend is not compared");
    }

    #[test]
    fn a_process_slower_than_recorded_is_found() {
        let mut result = equal_to_recorded(&["mpiio"], 1);
        let others: Vec<_> = result.processes.iter().filter(|p| p.rank == 0).cloned().collect();
        for rank in 2..4 {
            result.processes.extend(others.iter().cloned().map(|mut p| {
                p.rank = rank;
                p
            }));
        }
        assert_eq!(of(&result), []);
        result.processes.iter_mut().filter(|p| p.rank == 3).for_each(|p| p.both.replayed.seconds *= 4.0);
        let found = of(&result);
        assert!(matches!(found[..], [Finding { kind: DeviationKind::Process { rank: 3, .. }, .. }]), "{found:?}");
        // The imbalance was recorded: a property of the program.
        result.processes.iter_mut().filter(|p| p.rank == 3).for_each(|p| p.both.recorded.seconds *= 4.0);
        assert_eq!(of(&result), []);
    }

    #[test]
    fn time_without_data_is_a_cost() {
        let mut result = equal_to_recorded(&["mpiio"], 1);
        for record in result.classes.iter_mut().filter(|c| c.class == CallClass::Open) {
            (record.both.recorded.seconds, record.both.replayed.seconds) = (1.0, 1.0);
        }
        let found = of(&result);
        assert!(
            matches!(found[..], [Finding { kind: DeviationKind::Cost { class: CallClass::Open, .. }, .. }]),
            "{found:?}"
        );
        slow_down(&mut result, "mpiio", CallClass::Open, 3.0);
        let found = of(&result);
        assert!(
            matches!(found[..], [Finding { kind: DeviationKind::Class { class: CallClass::Open, .. }, .. }]),
            "{found:?}"
        );
    }

    #[test]
    fn the_cause_follows_from_the_records() {
        let mut slow = equal_to_recorded(&["mpiio"], 1);
        slow.setup.profile.span_seconds = 1e-3;
        slow_down(&mut slow, "mpiio", CallClass::ReadNonblocking, 3.0);
        assert_eq!(cause_of(&slow), None);
        let with = |change: &dyn Fn(&mut ReplayResult)| {
            let mut result = slow.clone();
            change(&mut result);
            cause_of(&result)
        };
        assert_eq!(with(&|r| r.config.direct = DirectPolicy::Required), Some(DeviationCause::Direct));
        let caches = |r: &mut ReplayResult| r.setup.profile.storage_read_bytes = Some(0);
        assert!(matches!(with(&caches), Some(DeviationCause::StorageReads(then, now)) if then == 0.0 && now > 0.9));
        // Less data from storage does not explain slower reads.
        let other_way = |r: &mut ReplayResult| r.repetitions.iter_mut().for_each(|p| p.storage_read_bytes = Some(0));
        assert_eq!(with(&other_way), None);
        let mut other = difference();
        other.function = "File_iread_at".into();
        assert_eq!(with(&|r| r.repetitions[0].differences.push(other.clone())), Some(DeviationCause::OtherResults(2)));
        assert_eq!(with(&|r| r.repetitions[0].differences.push(difference())), None, "of another class");
    }

    #[test]
    fn omitted_pauses_are_a_cause_of_slower_writes() {
        let mut slow = equal_to_recorded(&["mpiio"], 1);
        slow_down(&mut slow, "mpiio", CallClass::WriteCollective, 3.0);
        slow.setup.profile.span_seconds = 100.0;
        assert_eq!(cause_of(&slow), Some(DeviationCause::NoPauses));
        slow.config.pace = Pace::Think;
        assert_eq!(cause_of(&slow), None);
    }
}
