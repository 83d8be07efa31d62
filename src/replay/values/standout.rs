//! What stands out in a replay: classes of calls whose time is far from the recorded one, backends far from each other, a process
//! that takes much longer than the others, time in calls that move nothing. With the cause, where the records tell one.

use beff_trace::Function;

use super::{kinds, Level, LevelKind, Part, ReplayDerived};
use crate::frame::config::DirectPolicy;
use crate::frame::records::Warning;
use crate::frame::values::{machine_share, NULL_BACKEND};
use crate::replay::config::Pace;
use crate::replay::plan::CallClass;
use crate::replay::records::{PassEnd, PassRecord, ReplayResult};

/// Smaller factors do not stand out: against the recorded run, between backends, between processes.
const FACTOR: f64 = 1.25;
const FACTOR_OF_BACKENDS: f64 = 1.5;
const FACTOR_OF_PROCESSES: f64 = 1.5;
/// A difference that is a smaller part of the time in all calls does not matter.
const SHARE: f64 = 0.05;
/// Calls that move nothing cost much above this part of the time in all calls.
const SHARE_OF_COSTS: f64 = 0.2;
/// Of fewer processes none is told from the others.
const PROCESSES: usize = 3;
/// More are not looked for.
const MOST: usize = 3;
/// From this size on, the comparison of data is felt in the caches of the processor (docs/replay.md, Contents), up to this factor.
const COMPARED_BYTES: u64 = 128 << 10;
const COMPARED_FACTOR: f64 = 2.0;
/// The program had pauses if its calls took less than this part of its time.
const BUSY: f64 = 0.5;

/// Why a class may be slower or faster than recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cause {
    /// Calls of this class had another result than the recorded one: so many.
    OtherResults(u64),
    /// Of the bytes read this share came past the page cache when it was recorded, and now.
    Caches(f64, f64),
    /// Past the page cache, which the recorded program probably used.
    Direct,
    /// Others had this share of the machine.
    MachineShared(f64),
    /// Data is compared between the calls, which fills and empties the caches of the processor.
    Compared,
    /// The pauses of the program, in which storage could write, are left out.
    NoPauses,
}

/// What the finding says.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A class took another time than recorded: `factor` above 1 is faster.
    Class {
        /// Which.
        class: CallClass,
        /// Why, if the records tell.
        cause: Option<Cause>,
    },
    /// A class is slower than through the best backend; `factor` is how many times.
    Backend {
        /// Which class.
        class: CallClass,
        /// The best.
        best: String,
    },
    /// A process took `factor` times the median of all; when it was recorded, it took `recorded` times its median.
    Process {
        /// World rank.
        rank: u64,
        /// The same factor then.
        recorded: f64,
    },
    /// A class that moves nothing: its share of the time was this one when it was recorded; `factor` is now over then.
    Cost {
        /// Which.
        class: CallClass,
        /// Share of the time in all calls then, 0 to 1.
        recorded_share: f64,
    },
}

/// Something that stands out.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Backend name.
    pub backend: String,
    /// What.
    pub kind: Kind,
    /// How many times; see [`Kind`].
    pub factor: f64,
    /// Part of the time in all calls of this backend that it is about, 0 to 1.
    pub share: f64,
    /// How much time it is about, over the recorded time in all calls: what the findings are sorted by.
    weight: f64,
}

/// At most one of a kind, slower and faster being two, the one that is about most time first.
#[must_use]
pub fn findings(result: &ReplayResult, derived: &ReplayDerived) -> Vec<Finding> {
    let backends: Vec<Times<'_>> = result
        .config
        .backends
        .iter()
        .filter(|name| *name != NULL_BACKEND)
        .filter_map(|name| Times::of(derived, name))
        .collect();
    let classes = || backends.iter().flat_map(|times| of_classes(result, derived, times));
    let kinds = [
        heaviest(classes().filter(|f| f.factor < 1.0)),
        heaviest(classes().filter(|f| f.factor > 1.0)),
        heaviest(backends.iter().flat_map(|times| of_backends(times, &backends))),
        heaviest(backends.iter().filter_map(of_processes)),
        heaviest(backends.iter().flat_map(of_costs)),
    ];
    let mut found: Vec<Finding> = kinds.into_iter().flatten().collect();
    // A cost that is slower than recorded is told once.
    let slower: Vec<(String, CallClass)> = found.iter().filter_map(slower_class).collect();
    found.retain(|f| !matches!(&f.kind, Kind::Cost { class, .. } if slower.contains(&(f.backend.clone(), *class))));
    found.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    found.truncate(MOST);
    found
}

fn slower_class(finding: &Finding) -> Option<(String, CallClass)> {
    match finding.kind {
        Kind::Class { class, .. } if finding.factor < 1.0 => Some((finding.backend.clone(), class)),
        _ => None,
    }
}

fn heaviest(found: impl Iterator<Item = Finding>) -> Option<Finding> {
    let sound = |f: &Finding| [f.factor, f.share, f.weight].into_iter().all(|v| v.is_finite() && v > 0.0);
    found.filter(sound).max_by(|a, b| a.weight.total_cmp(&b.weight))
}

/// The lines of one backend that has some.
struct Times<'a> {
    backend: &'a str,
    classes: Vec<(CallClass, &'a Level)>,
    processes: Vec<(u64, &'a Level)>,
    recorded_seconds: f64,
    replayed_seconds: f64,
}

impl<'a> Times<'a> {
    fn of(derived: &'a ReplayDerived, backend: &'a str) -> Option<Self> {
        let own = || derived.levels.iter().filter(|l| l.backend == backend && l.part == Part::All);
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

    fn finding(&self, kind: Kind, factor: f64, seconds: f64, about_seconds: f64) -> Finding {
        Finding {
            backend: self.backend.to_owned(),
            kind,
            factor,
            share: seconds / self.replayed_seconds,
            weight: about_seconds / self.recorded_seconds,
        }
    }

    /// Whether so much time matters.
    fn is_much(&self, seconds: f64) -> bool {
        seconds >= SHARE * self.recorded_seconds.max(self.replayed_seconds)
    }
}

fn of_classes(result: &ReplayResult, derived: &ReplayDerived, times: &Times<'_>) -> Vec<Finding> {
    let of = |(class, line): &(CallClass, &Level)| {
        let factor = line.ratio?;
        let about = (line.replayed_seconds - line.recorded_seconds).abs();
        // Passes that do not agree on which side they are decide nothing.
        let agree = line.ratio_range.is_none_or(|[low, high]| (low > 1.0) == (high > 1.0));
        let is_told = agree && (factor >= FACTOR || factor <= 1.0 / FACTOR) && times.is_much(about);
        is_told.then(|| {
            let cause = cause(result, derived, times, *class, line, factor);
            times.finding(Kind::Class { class: *class, cause }, factor, line.replayed_seconds, about)
        })
    };
    times.classes.iter().filter_map(of).collect()
}

/// The first cause that the records tell of: what is certain before what is likely.
fn cause(
    result: &ReplayResult,
    derived: &ReplayDerived,
    times: &Times<'_>,
    class: CallClass,
    line: &Level,
    factor: f64,
) -> Option<Cause> {
    let own: Vec<&PassRecord> =
        result.passes.iter().filter(|p| p.backend == times.backend && p.ended == PassEnd::Complete).collect();
    let of_class = |function: &str| Function::named(function).is_some_and(|(f, _)| CallClass::of(f) == class);
    let differences = own.iter().flat_map(|p| &p.differences).filter(|d| of_class(&d.function));
    let others = differences.map(|d| d.calls).fold(0, u64::saturating_add);
    if others > 0 {
        return Some(Cause::OtherResults(others));
    }
    let is_it = |w: &&Warning| w.is(&kinds::CACHE_DIFFERS) && w.backend.as_deref() == Some(times.backend);
    let caches = derived.warnings.iter().find(is_it);
    let caches = caches.and_then(|w| Some((w.number("recorded_share")?, w.number("replayed_share")?)));
    // More from storage explains slower reads, less explains faster ones.
    if let Some((then, now)) = caches.filter(|(then, now)| class.is_read() && (now > then) == (factor < 1.0)) {
        return Some(Cause::Caches(then, now));
    }
    let direct = result.config.direct.of(times.backend) != DirectPolicy::Off;
    if direct && (class.is_read() || class.is_write()) {
        return Some(Cause::Direct);
    }
    let shares = machine_share::shares(own.iter().filter_map(|p| p.machine.as_ref()));
    let others = shares.map_or(0.0, machine_share::Shares::largest);
    if factor < 1.0 && others > machine_share::OTHERS_SHARE {
        return Some(Cause::MachineShared(others));
    }
    let mean_bytes = line.recorded_bytes / line.calls.max(1);
    let is_felt = factor.max(1.0 / factor) < COMPARED_FACTOR
        && (class == CallClass::Write && factor > 1.0 || class == CallClass::Read && factor < 1.0);
    if result.config.verify && mean_bytes >= COMPARED_BYTES && is_felt {
        return Some(Cause::Compared);
    }
    let profile = &result.setup.profile;
    let had_pauses = times.recorded_seconds < BUSY * profile.span_seconds * profile.processes as f64;
    let waits_for_storage = class.is_write() || matches!(class, CallClass::Sync | CallClass::Close);
    (result.config.pace == Pace::Fast && factor < 1.0 && had_pauses && waits_for_storage).then_some(Cause::NoPauses)
}

fn of_backends(times: &Times<'_>, all: &[Times<'_>]) -> Vec<Finding> {
    let of = |(class, line): &(CallClass, &Level)| {
        let own = line.ratio?;
        let rivals = all.iter().filter_map(|other| {
            let (_, rival) = other.classes.iter().find(|(c, _)| c == class)?;
            Some((other.backend, rival.ratio?))
        });
        let (best, ratio) = rivals.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let factor = ratio / own;
        let about = line.replayed_seconds * (1.0 - 1.0 / factor);
        (factor >= FACTOR_OF_BACKENDS && times.is_much(about)).then(|| {
            let kind = Kind::Backend { class: *class, best: best.to_owned() };
            times.finding(kind, factor, line.replayed_seconds, about)
        })
    };
    times.classes.iter().filter_map(of).collect()
}

fn of_processes(times: &Times<'_>) -> Option<Finding> {
    let median = |seconds: fn(&Level) -> f64| {
        let mut all: Vec<f64> = times.processes.iter().map(|(_, l)| seconds(l)).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    if times.processes.len() < PROCESSES {
        return None;
    }
    let (rank, slowest) =
        times.processes.iter().max_by(|a, b| a.1.replayed_seconds.total_cmp(&b.1.replayed_seconds))?;
    let [then, now] = [median(|l| l.recorded_seconds), median(|l| l.replayed_seconds)];
    let (factor, recorded) = (slowest.replayed_seconds / now, slowest.recorded_seconds / then);
    // What was so when it was recorded belongs to the program.
    let is_news = factor >= FACTOR_OF_PROCESSES && recorded * FACTOR < factor;
    let about = slowest.replayed_seconds - now;
    (is_news && times.is_much(about))
        .then(|| times.finding(Kind::Process { rank: *rank, recorded }, factor, slowest.replayed_seconds, about))
}

fn of_costs(times: &Times<'_>) -> Vec<Finding> {
    let moves_nothing = |class: CallClass| !class.is_read() && !class.is_write();
    let of = |(class, line): &(CallClass, &Level)| {
        let share = line.replayed_seconds / times.replayed_seconds;
        let recorded_share = line.recorded_seconds / times.recorded_seconds;
        let factor = line.replayed_seconds / line.recorded_seconds;
        (moves_nothing(*class) && share >= SHARE_OF_COSTS).then(|| {
            let kind = Kind::Cost { class: *class, recorded_share };
            times.finding(kind, factor, line.replayed_seconds, line.replayed_seconds)
        })
    };
    times.classes.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::config::DirectPolicy;
    use crate::replay::plan::Both;
    use crate::replay::values::derive;
    use crate::replay::values::fixture::{difference, run};

    /// As fast as recorded, without anything that could be a cause.
    fn alike(backends: &[&str], passes: u64) -> ReplayResult {
        let mut result = run(backends, passes);
        result.config.direct = DirectPolicy::Off;
        let both = |both: &mut Both| both.replayed.seconds = both.recorded.seconds;
        result.classes.iter_mut().for_each(|c| both(&mut c.both));
        result.processes.iter_mut().for_each(|p| both(&mut p.both));
        result
    }

    fn of(result: &ReplayResult) -> Vec<Finding> {
        findings(result, &derive(result))
    }

    fn slower(result: &mut ReplayResult, backend: &str, class: CallClass, factor: f64) {
        for record in result.classes.iter_mut().filter(|c| c.backend == backend && c.class == class) {
            record.both.replayed.seconds *= factor;
        }
    }

    fn cause_of(result: &ReplayResult) -> Option<Cause> {
        match of(result).remove(0).kind {
            Kind::Class { cause, .. } => cause,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn where_all_is_as_recorded_nothing_stands_out() {
        assert_eq!(of(&alike(&["mpiio", "posix"], 2)), []);
        let mut nothing = alike(&["mpiio"], 1);
        nothing.passes.clear();
        assert_eq!(of(&nothing), []);
    }

    #[test]
    fn a_class_that_is_slower_is_found_if_it_matters() {
        let mut result = alike(&["mpiio"], 1);
        slower(&mut result, "mpiio", CallClass::WriteCollective, 3.0);
        let found = of(&result);
        assert!(
            matches!(found[..], [Finding { kind: Kind::Class { class: CallClass::WriteCollective, .. }, .. }]),
            "{found:?}"
        );
        assert!((found[0].factor - 1.0 / 3.0).abs() < 1e-9 && found[0].share > 0.5, "{found:?}");
        // A hundred times nearly nothing is little more than nothing.
        let mut result = alike(&["mpiio"], 1);
        for record in result.classes.iter_mut().filter(|c| c.class == CallClass::Close) {
            record.both.recorded.seconds = 1e-6;
            record.both.replayed.seconds = 1e-4;
        }
        assert_eq!(of(&result), []);
    }

    #[test]
    fn passes_on_both_sides_decide_nothing() {
        let mut result = alike(&["mpiio"], 2);
        let mut passes = [8.0, 0.5].into_iter();
        for record in result.classes.iter_mut().filter(|c| c.class == CallClass::WriteCollective) {
            record.both.replayed.seconds *= passes.next().unwrap();
        }
        assert_eq!(of(&result), []);
    }

    #[test]
    fn backends_are_compared_with_the_best() {
        let mut result = alike(&["mpiio", "posix", "null"], 1);
        slower(&mut result, "mpiio", CallClass::WriteCollective, 1.2);
        slower(&mut result, "posix", CallClass::WriteCollective, 0.6);
        let found = of(&result);
        let backends = found.iter().find(|f| matches!(f.kind, Kind::Backend { .. })).unwrap();
        let kind = Kind::Backend { class: CallClass::WriteCollective, best: "posix".into() };
        assert_eq!((&backends.backend[..], &backends.kind), ("mpiio", &kind));
        assert!((backends.factor - 2.0).abs() < 1e-9, "{found:?}");
        assert!(found.iter().all(|f| f.backend != "null"), "what moves nothing is no rival");
    }

    #[test]
    fn a_process_that_takes_longer_than_it_did_is_found() {
        let mut result = alike(&["mpiio"], 1);
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
        assert!(matches!(found[..], [Finding { kind: Kind::Process { rank: 3, .. }, .. }]), "{found:?}");
        // It was so when it was recorded: that is the program.
        result.processes.iter_mut().filter(|p| p.rank == 3).for_each(|p| p.both.recorded.seconds *= 4.0);
        assert_eq!(of(&result), []);
    }

    #[test]
    fn time_that_moves_nothing_is_a_cost() {
        let mut result = alike(&["mpiio"], 1);
        for record in result.classes.iter_mut().filter(|c| c.class == CallClass::Open) {
            (record.both.recorded.seconds, record.both.replayed.seconds) = (1.0, 1.0);
        }
        let found = of(&result);
        assert!(matches!(found[..], [Finding { kind: Kind::Cost { class: CallClass::Open, .. }, .. }]), "{found:?}");
        // What is slower than recorded is told once.
        slower(&mut result, "mpiio", CallClass::Open, 3.0);
        let found = of(&result);
        assert!(matches!(found[..], [Finding { kind: Kind::Class { class: CallClass::Open, .. }, .. }]), "{found:?}");
    }

    #[test]
    fn the_cause_is_what_the_records_tell() {
        let mut slow = alike(&["mpiio"], 1);
        slow.setup.profile.span_seconds = 1e-3;
        slower(&mut slow, "mpiio", CallClass::ReadNonblocking, 3.0);
        assert_eq!(cause_of(&slow), None);
        let with = |change: &dyn Fn(&mut ReplayResult)| {
            let mut result = slow.clone();
            change(&mut result);
            cause_of(&result)
        };
        assert_eq!(with(&|r| r.config.direct = DirectPolicy::Required), Some(Cause::Direct));
        let caches = |r: &mut ReplayResult| r.setup.profile.storage_read_bytes = Some(0);
        assert!(matches!(with(&caches), Some(Cause::Caches(then, now)) if then == 0.0 && now > 0.9));
        // Less from storage makes nothing slower.
        let other_way = |r: &mut ReplayResult| r.passes.iter_mut().for_each(|p| p.storage_read_bytes = Some(0));
        assert_eq!(with(&other_way), None);
        let mut other = difference();
        other.function = "File_iread_at".into();
        assert_eq!(with(&|r| r.passes[0].differences.push(other.clone())), Some(Cause::OtherResults(2)));
        assert_eq!(with(&|r| r.passes[0].differences.push(difference())), None, "of another class");
    }

    #[test]
    fn pauses_that_are_left_out_are_a_cause_of_slower_writes() {
        let mut slow = alike(&["mpiio"], 1);
        slower(&mut slow, "mpiio", CallClass::WriteCollective, 3.0);
        slow.setup.profile.span_seconds = 100.0;
        assert_eq!(cause_of(&slow), Some(Cause::NoPauses));
        slow.config.pace = Pace::Think;
        assert_eq!(cause_of(&slow), None);
    }
}
