//! Warnings of b_eff: at most one of each kind, with the worst case.

use super::curve::PatternCurve;
use super::kinds::{self, KINDS};
use super::validity::MIN_LOOP_SECONDS;
use super::value::CommValue;
use super::{all_efforts, identical, DEFINED_RANDOM_RINGS};
use crate::b_eff::plan::PatternFamily;
use crate::b_eff::records::CommResult;
use crate::frame::records::{RankNumbering, Warning};
use crate::frame::units::{count, format_seconds, format_size};
use crate::frame::values::time_limit;
use crate::frame::values::warning::{self, machine_warnings};
use crate::frame::values::{binding, interference};
use crate::frame::words::{figure, list, nanoseconds, percent};

/// A loop is disturbed if its worst repetition is this many times slower than the best.
const DISTURBED_RATIO: f64 = 2.0;

/// Share of disturbed loops above which there is a warning.
const DISTURBED_SHARE: f64 = 0.1;

/// Loops shorter than this many clock steps are too short.
const MIN_CLOCK_STEPS: f64 = 100.0;

const WITHOUT_QUICK: &str = "Omit --quick for a valid value.";

pub(super) fn warnings(result: &CommResult, curves: &[PatternCurve], value: &CommValue) -> Vec<Warning> {
    let setup = &result.setup;
    let mut found: Vec<Warning> = machine_warnings(&setup.machine, None).collect();
    found.extend(time_limit::warning(result));
    let watched = result.all_pattern_records().map(|p| (p.pattern.clone(), p.interference.as_ref()));
    found.extend(interference::interference_warning("pattern", watched));
    found.extend(numbering(result));
    found.extend(binding::message_warning(&setup.machine, &setup.placement));
    found.extend(effort_reduced(result));
    found.extend(disturbed(curves));
    found.extend(identical_differ(result, curves));
    found.extend(short_loops(result));
    found.extend(until_not_reached(result, value));
    found.extend(overrun(result));
    warning::merge_warnings(&result.warnings, found, KINDS)
}

fn until_not_reached(result: &CommResult, value: &CommValue) -> Option<Warning> {
    let until_share = result.config.until_share?;
    let found = value.of_repetitions.b_eff;
    let reach_share = found.and_then(|f| f.half_width_share);
    if reach_share.is_some_and(|half_width| half_width <= until_share) {
        return None;
    }
    let repetitions = found.map_or(0, |f| f.repetitions);
    let (asked, number, half_width) =
        (percent(until_share), count(repetitions, "repetition"), reach_share.map(percent));
    let (known, cause) = match &half_width {
        Some(half_width) => (
            format!("known within {half_width}"),
            format!(
                "The run ended before b_eff was known within {asked}: the half-width of its 95 % interval over {number} is {half_width}."
            ),
        ),
        None => (
            "of unknown precision".to_owned(),
            format!("b_eff within {asked} was requested, but {number} of all patterns are too few for an interval."),
        ),
    };
    let warning = kinds::UNTIL_NOT_REACHED.warning().with_figure("until_share", until_share);
    let warning = warning.with_figure("half_width_share", reach_share).with_figure("repetitions", repetitions);
    Some(warning.with_text(format!("b_eff is {known}, {asked} requested"), cause))
}

fn numbering(result: &CommResult) -> Option<Warning> {
    let numbering = result.setup.numbering;
    let hosts = result.setup.machine.hosts.len() as u64;
    let how = match numbering {
        RankNumbering::RoundRobin => "round-robin",
        RankNumbering::Mixed => "neither host by host nor round-robin",
        _ => return None,
    };
    Some(kinds::NUMBERING.warning().with_figure("numbering", numbering).with_figure("hosts", hosts).with_text(
        "ranks are not numbered host by host: neighbours are on different hosts",
        format!(
            "Ranks are numbered {how} over {}: many neighbours in a ring are on different hosts. The paper shows at least \
             twice the b_eff with ranks numbered host by host (SR 8000, 24 processes: 1806 against 915 MB/s).",
            count(hosts, "host")
        ),
    ))
}

/// Reductions of the effort. Each field is the least over the run.
struct EffortReduction {
    loop_seconds: f64,
    single_from_bytes: Option<u64>,
    once_from_bytes: Option<u64>,
    random_rings: Option<u64>,
    without_extras: bool,
    reductions: u64,
}

fn effort_reduced(result: &CommResult) -> Option<Warning> {
    let families = &result.config.families;
    let loop_seconds = all_efforts(result).map(|e| e.loop_seconds).reduce(f64::min)?;
    let single_from = all_efforts(result).map(|e| e.best_method_from).min()?;
    let random = all_efforts(result).map(|e| e.random_rings).min()?;
    let extra = [PatternFamily::WorstCycle, PatternFamily::Bisection, PatternFamily::Cartesian];
    let without_extras = all_efforts(result).any(|e| !e.extras) && families.iter().any(|f| extra.contains(f));
    let once_from = all_efforts(result).map(|e| e.unrepeated_from).min()?;
    let size = |index: u64| usize::try_from(index).ok().and_then(|i| result.setup.sizes_bytes.get(i)).copied();
    let (single_from_bytes, once_from_bytes) = (size(single_from), size(once_from));
    let random_rings = families.contains(&PatternFamily::Random).then_some(random);
    let is_cut = loop_seconds < MIN_LOOP_SECONDS
        || single_from_bytes.or(once_from_bytes).is_some()
        || random_rings.is_some_and(|n| n < DEFINED_RANDOM_RINGS)
        || without_extras;
    if !is_cut {
        return None;
    }
    let reductions = result.ending.efforts.len() as u64;
    let cuts =
        EffortReduction { loop_seconds, single_from_bytes, once_from_bytes, random_rings, without_extras, reductions };
    let warning = kinds::EFFORT_REDUCED.warning().with_figure("loop_seconds", loop_seconds);
    let warning = warning
        .with_figure("best_method_from_bytes", single_from_bytes)
        .with_figure("unrepeated_from_bytes", once_from_bytes);
    let warning = warning.with_figure("random_rings", random_rings).with_figure("without_extras", without_extras);
    let warning = warning.with_figure("reductions", reductions).with_text(
        format!("shortened to keep the time limit: loops of {}: --time", format_seconds(loop_seconds)),
        cuts.text(),
    );
    Some(if result.config.quick { warning.with_next_step(WITHOUT_QUICK) } else { warning })
}

impl EffortReduction {
    fn text(&self) -> String {
        let rings = self.random_rings.filter(|n| *n < DEFINED_RANDOM_RINGS);
        let is_short = self.loop_seconds < MIN_LOOP_SECONDS;
        let whole = !is_short && rings.or(self.once_from_bytes).is_none() && !self.without_extras;
        if let (true, Some(bytes)) = (whole, self.single_from_bytes) {
            return format!(
                "To keep the time limit, messages of {} and more were measured by the best method alone{}.",
                format_size(bytes),
                if bytes > 4096 { ", as the definition allows above 4 KiB" } else { "" }
            );
        }
        let (short, long) = (format_seconds(self.loop_seconds), format_seconds(MIN_LOOP_SECONDS));
        let more = |bytes: u64, how: &str| format!("messages of {} and more {how}", format_size(bytes));
        let cuts = [
            is_short.then(|| format!("loops of {short} instead of {long}")),
            self.single_from_bytes.map(|bytes| more(bytes, "by the best method alone")),
            self.once_from_bytes.map(|bytes| more(bytes, "without repetitions")),
            rings.map(|rings| format!("{rings} of {DEFINED_RANDOM_RINGS} random rings")),
            self.without_extras.then(|| "no patterns outside the average".to_owned()),
        ];
        let later = match self.reductions {
            0 => String::new(),
            1 => "; the effort was reduced once after the announcement".to_owned(),
            n => format!("; the effort was reduced {n} times after the announcement"),
        };
        let cuts: Vec<String> = cuts.into_iter().flatten().collect();
        format!("The time limit did not allow the whole definition: {}{later}.", list(&cuts))
    }
}

fn disturbed(curves: &[PatternCurve]) -> Option<Warning> {
    let points = curves.iter().flat_map(|c| c.points.iter().map(move |p| (c, p)));
    let repeated =
        points.flat_map(|(c, p)| p.methods.iter().map(move |m| (c, p, m))).filter(|(.., m)| m.repetitions > 1);
    let all: Vec<_> =
        repeated.map(|(c, p, m)| (c, p, m.method, m.bytes_per_second / m.worst_bytes_per_second)).collect();
    let loops = all.iter().filter(|(.., ratio)| *ratio > DISTURBED_RATIO).count();
    if loops as f64 <= DISTURBED_SHARE * all.len() as f64 {
        return None;
    }
    let (curve, point, method, ratio) = all.iter().max_by(|a, b| a.3.total_cmp(&b.3))?;
    let (of, pattern, most) = (all.len(), &curve.pattern, figure(*ratio));
    let warning =
        kinds::DISTURBED.warning().with_figure("loops", loops).with_figure("of", of).with_figure("pattern", pattern);
    let warning = warning
        .with_figure("message_bytes", point.message_bytes)
        .with_figure("method", method)
        .with_figure("ratio", ratio);
    Some(warning.with_text(
        format!("{loops} of {of} loops were disturbed: repetitions differ by up to a factor of {most}"),
        format!(
            "Repetitions differ widely: {loops} of {of} repeated loops ({}) are more than twice as slow in the worst as in the best \
             repetition; the largest factor is that of {pattern} with {} and {}, {most}.",
            percent(loops as f64 / of as f64),
            format_size(point.message_bytes),
            method.name()
        ),
    ))
}

fn identical_differ(result: &CommResult, curves: &[PatternCurve]) -> Option<Warning> {
    let found = identical::largest_spread(result, curves).filter(identical::RingSpread::is_large)?;
    let (fastest, slowest, factor) = (&found.fastest.pattern, &found.slowest.pattern, figure(found.ratio));
    let warning =
        kinds::IDENTICAL_DIFFER.warning().with_figure("patterns", found.patterns).with_figure("fastest", fastest);
    Some(warning.with_figure("slowest", slowest).with_figure("ratio", found.ratio).with_text(
        format!("{fastest} and {slowest} are the same exchange and differ by a factor of {factor}"),
        format!(
            "{} are the same exchange, but S of {fastest} is {factor} times that of {slowest}: the state of the machine changed \
             during the run, or ranks migrated.",
            count(found.patterns, "ring")
        ),
    ))
}

fn short_loops(result: &CommResult) -> Option<Warning> {
    let clock_resolution_ns = result.setup.clock_resolution_ns;
    let seconds = || result.definition_loops().map(|l| l.seconds);
    let loops = seconds().filter(|s| *s < MIN_CLOCK_STEPS * clock_resolution_ns * 1e-9).count();
    let shortest_seconds = seconds().reduce(f64::min)?;
    let of = seconds().count();
    let warning = kinds::SHORT_LOOPS.warning().with_figure("loops", loops).with_figure("of", of);
    let warning = warning
        .with_figure("shortest_seconds", shortest_seconds)
        .with_figure("clock_resolution_ns", clock_resolution_ns);
    (loops > 0).then(|| {
        warning.with_text(
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
    let announced = result.announcement.as_ref()?;
    let (limit_seconds, expected_seconds) = (announced.limit_seconds, announced.expected_seconds);
    let warning = warning::overrun_warning(
        &kinds::OVERRUN,
        result.ending.real_seconds,
        (limit_seconds, expected_seconds),
        |real| {
            let [limit, expected] = [limit_seconds, expected_seconds].map(format_seconds);
            format!("The measurement took {real}; announced were {expected}, the limit is {limit}.")
        },
    )?;
    Some(if result.config.quick { warning.with_next_step(WITHOUT_QUICK) } else { warning })
}
