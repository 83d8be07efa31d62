//! What the reader of the numbers of b_eff must know. At most one of a kind, with the worst case named.

use super::curve::Curve;
use super::kinds::{self, KINDS};
use super::validity::LOOP_SECONDS;
use super::value::CommValue;
use super::{efforts, identical, RANDOM_RINGS};
use crate::b_eff::plan::Family;
use crate::b_eff::records::CommResult;
use crate::frame::records::{Numbering, Warning};
use crate::frame::units::{count, format_seconds, format_size};
use crate::frame::values::warning::{self, of_machine};
use crate::frame::values::{binding, machine_share};
use crate::frame::words::{figure, list, nanoseconds, percent};

/// A worst repetition this many times slower than the best of the same loop is disturbed.
const DISTURBED: f64 = 2.0;

/// Disturbed loops are told if they are more than this share.
const DISTURBED_SHARE: f64 = 0.1;

/// A loop shorter than this many steps of the clock is not timed well.
const CLOCK_STEPS: f64 = 100.0;

/// Its next step where `--quick` is what took the time away.
const NOT_QUICK: &str = "Leave out --quick for a value that counts.";

/// The warnings of the run itself and those that follow from its records.
pub(super) fn warnings(result: &CommResult, curves: &[Curve], value: &CommValue) -> Vec<Warning> {
    let setup = &result.setup;
    let mut found: Vec<Warning> = of_machine(&setup.machine, None).collect();
    let watched = result.measured().map(|p| (p.pattern.clone(), p.machine.as_ref()));
    found.extend(machine_share::warning("pattern", watched));
    found.extend(numbering(result));
    found.extend(binding::not_bound(&setup.machine, &setup.placement));
    found.extend(effort_reduced(result));
    found.extend(disturbed(curves));
    found.extend(identical_differ(result, curves));
    found.extend(short_loops(result));
    found.extend(until_not_reached(result, value));
    found.extend(overrun(result));
    warning::all(&result.warnings, found, KINDS)
}

fn until_not_reached(result: &CommResult, value: &CommValue) -> Option<Warning> {
    let until_share = result.config.until_share?;
    let found = value.of_repetitions.b_eff;
    let reach_share = found.and_then(|f| f.reach_share);
    if reach_share.is_some_and(|reach| reach <= until_share) {
        return None;
    }
    let repetitions = found.map_or(0, |f| f.repetitions);
    let (asked, number, reach) = (percent(until_share), count(repetitions, "repetition"), reach_share.map(percent));
    let (known, cause) = match &reach {
        Some(reach) => (
            format!("known within {reach}"),
            format!(
                "The time ended before b_eff was known within {asked}: the 95 % interval over {number} reaches {reach} from their mean."
            ),
        ),
        None => (
            "not known".to_owned(),
            format!("b_eff was to be known within {asked}, and {number} of all patterns cannot tell how far they scatter."),
        ),
    };
    let warning = kinds::UNTIL_NOT_REACHED.warning().figure("until_share", until_share);
    let warning = warning.figure("reach_share", reach_share).figure("repetitions", repetitions);
    Some(warning.told(format!("b_eff is {known}, {asked} were asked for"), cause))
}

fn numbering(result: &CommResult) -> Option<Warning> {
    let numbering = result.setup.numbering;
    let hosts = result.setup.machine.hosts.len() as u64;
    let how = match numbering {
        Numbering::RoundRobin => "round-robin",
        Numbering::Mixed => "neither host by host nor round-robin",
        _ => return None,
    };
    Some(kinds::NUMBERING.warning().figure("numbering", numbering).figure("hosts", hosts).told(
        "ranks are not numbered host by host: neighbours are on other hosts",
        format!(
            "Ranks are numbered {how} over {}: many neighbours in a ring are on different hosts. The paper shows twice the \
             b_eff and more with ranks numbered host by host (SR 8000, 24 processes: 1806 against 915 MB/s).",
            count(hosts, "host")
        ),
    ))
}

/// What was cut. Each is the least over the run.
struct Cuts {
    loop_seconds: f64,
    single_from_bytes: Option<u64>,
    once_from_bytes: Option<u64>,
    random_rings: Option<u64>,
    without_extras: bool,
    reductions: u64,
}

fn effort_reduced(result: &CommResult) -> Option<Warning> {
    let families = &result.config.families;
    let loop_seconds = efforts(result).map(|e| e.loop_seconds).reduce(f64::min)?;
    let single_from = efforts(result).map(|e| e.single_from).min()?;
    let random = efforts(result).map(|e| e.random_rings).min()?;
    let extra = [Family::WorstCycle, Family::Bisection, Family::Cartesian];
    let without_extras = efforts(result).any(|e| !e.extras) && families.iter().any(|f| extra.contains(f));
    let once_from = efforts(result).map(|e| e.once_from).min()?;
    let size = |index: u64| usize::try_from(index).ok().and_then(|i| result.setup.sizes_bytes.get(i)).copied();
    let (single_from_bytes, once_from_bytes) = (size(single_from), size(once_from));
    let random_rings = families.contains(&Family::Random).then_some(random);
    let is_cut = loop_seconds < LOOP_SECONDS
        || single_from_bytes.or(once_from_bytes).is_some()
        || random_rings.is_some_and(|n| n < RANDOM_RINGS)
        || without_extras;
    if !is_cut {
        return None;
    }
    let reductions = result.ending.efforts.len() as u64;
    let cuts = Cuts { loop_seconds, single_from_bytes, once_from_bytes, random_rings, without_extras, reductions };
    let warning = kinds::EFFORT_REDUCED.warning().figure("loop_seconds", loop_seconds);
    let warning = warning.figure("single_from_bytes", single_from_bytes).figure("once_from_bytes", once_from_bytes);
    let warning = warning.figure("random_rings", random_rings).figure("without_extras", without_extras);
    let warning = warning.figure("reductions", reductions).told(
        format!("shortened to keep the time limit: loops of {}: --time", format_seconds(loop_seconds)),
        cuts.in_words(),
    );
    Some(if result.config.quick { warning.next(NOT_QUICK) } else { warning })
}

impl Cuts {
    /// What was cut, and nothing else.
    fn in_words(&self) -> String {
        let rings = self.random_rings.filter(|n| *n < RANDOM_RINGS);
        let is_short = self.loop_seconds < LOOP_SECONDS;
        let whole = !is_short && rings.or(self.once_from_bytes).is_none() && !self.without_extras;
        if let (true, Some(bytes)) = (whole, self.single_from_bytes) {
            return format!(
                "To keep within the time messages of {} and more were measured by the best method alone{}.",
                format_size(bytes),
                if bytes > 4096 { ", as the definition allows above 4 KiB" } else { "" }
            );
        }
        let (short, long) = (format_seconds(self.loop_seconds), format_seconds(LOOP_SECONDS));
        let more = |bytes: u64, how: &str| format!("messages of {} and more {how}", format_size(bytes));
        let cuts = [
            is_short.then(|| format!("loops of {short} instead of {long}")),
            self.single_from_bytes.map(|bytes| more(bytes, "by the best method alone")),
            self.once_from_bytes.map(|bytes| more(bytes, "without repetitions")),
            rings.map(|rings| format!("{rings} of {RANDOM_RINGS} random rings")),
            self.without_extras.then(|| "no patterns outside the average".to_owned()),
        ];
        let later = match self.reductions {
            0 => String::new(),
            1 => "; the time became short once after the announcement".to_owned(),
            n => format!("; the time became short {n} times after the announcement"),
        };
        let cuts: Vec<String> = cuts.into_iter().flatten().collect();
        format!("The time did not allow the whole definition: {}{later}.", list(&cuts))
    }
}

fn disturbed(curves: &[Curve]) -> Option<Warning> {
    let points = curves.iter().flat_map(|c| c.points.iter().map(move |p| (c, p)));
    let repeated =
        points.flat_map(|(c, p)| p.methods.iter().map(move |m| (c, p, m))).filter(|(.., m)| m.repetitions > 1);
    let all: Vec<_> =
        repeated.map(|(c, p, m)| (c, p, m.method, m.bytes_per_second / m.worst_bytes_per_second)).collect();
    let loops = all.iter().filter(|(.., ratio)| *ratio > DISTURBED).count();
    if loops as f64 <= DISTURBED_SHARE * all.len() as f64 {
        return None;
    }
    let (curve, point, method, ratio) = all.iter().max_by(|a, b| a.3.total_cmp(&b.3))?;
    let (of, pattern, most) = (all.len(), &curve.pattern, figure(*ratio));
    let warning = kinds::DISTURBED.warning().figure("loops", loops).figure("of", of).figure("pattern", pattern);
    let warning = warning.figure("message_bytes", point.message_bytes).figure("method", method).figure("ratio", ratio);
    Some(warning.told(
        format!("{loops} of {of} loops were disturbed: repetitions differ by up to a factor of {most}"),
        format!(
            "Repetitions differ a lot: {loops} of {of} loops that were repeated ({}) are more than twice as slow at their worst as at \
             their best; the most in {pattern} with {} and {}, {most} times.",
            percent(loops as f64 / of as f64),
            format_size(point.message_bytes),
            method.name()
        ),
    ))
}

fn identical_differ(result: &CommResult, curves: &[Curve]) -> Option<Warning> {
    let found = identical::largest(result, curves).filter(identical::Difference::is_large)?;
    let (fastest, slowest, factor) = (&found.fastest.pattern, &found.slowest.pattern, figure(found.ratio));
    let warning = kinds::IDENTICAL_DIFFER.warning().figure("patterns", found.patterns).figure("fastest", fastest);
    Some(warning.figure("slowest", slowest).figure("ratio", found.ratio).told(
        format!("{fastest} and {slowest} are the same exchange and differ by a factor of {factor}"),
        format!(
            "{} are the same exchange, and yet S of {fastest} is {factor} times that of {slowest}: the machine was not the same all \
             the time, or ranks were moved.",
            count(found.patterns, "ring")
        ),
    ))
}

fn short_loops(result: &CommResult) -> Option<Warning> {
    let clock_resolution_ns = result.setup.clock_resolution_ns;
    let seconds = || result.loops().map(|l| l.seconds);
    let loops = seconds().filter(|s| *s < CLOCK_STEPS * clock_resolution_ns * 1e-9).count();
    let shortest_seconds = seconds().reduce(f64::min)?;
    let of = seconds().count();
    let warning = kinds::SHORT_LOOPS.warning().figure("loops", loops).figure("of", of);
    let warning =
        warning.figure("shortest_seconds", shortest_seconds).figure("clock_resolution_ns", clock_resolution_ns);
    (loops > 0).then(|| {
        warning.told(
            format!("{loops} of {of} loops are too short for the clock"),
            format!(
                "{loops} of {of} loops are shorter than 100 steps of the clock ({} each); the shortest took {}.",
                nanoseconds(clock_resolution_ns),
                format_seconds(shortest_seconds)
            ),
        )
    })
}

fn overrun(result: &CommResult) -> Option<Warning> {
    let told = result.announcement.as_ref()?;
    let (limit_seconds, expected_seconds) = (told.limit_seconds, told.expected_seconds);
    let warning =
        warning::overrun(&kinds::OVERRUN, result.ending.real_seconds, (limit_seconds, expected_seconds), |real| {
            let [limit, expected] = [limit_seconds, expected_seconds].map(format_seconds);
            format!("The measurement took {real}; {expected} were announced and {limit} allowed.")
        })?;
    Some(if result.config.quick { warning.next(NOT_QUICK) } else { warning })
}
