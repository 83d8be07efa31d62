//! Text of the warnings of b_eff: the cause, with figures, and the next step.

use crate::b_eff::config::CommConfig;
use crate::b_eff::values::{CommWarning, LOOP_SECONDS, RANDOM_RINGS};
use crate::frame::records::Numbering;
use crate::frame::report::text::{count, figure, list, nanoseconds, percent};
use crate::frame::report::warnings as frame_warnings;
use crate::frame::report::Brief;
use crate::frame::units::{format_seconds, format_size};

/// Cause and next step of a warning of a run with this configuration, each a few plain sentences.
#[must_use]
pub fn text(warning: &CommWarning, config: &CommConfig) -> (String, String) {
    match warning {
        CommWarning::Shared(shared) => frame_warnings::text(shared),
        own => (cause(own), next_step(own, config)),
    }
}

/// A warning in a few words, with its place among others.
#[must_use]
pub fn brief(warning: &CommWarning) -> Brief {
    let (rank, text) = match warning {
        CommWarning::Shared(shared) => return frame_warnings::brief(shared),
        CommWarning::IdenticalDiffer { fastest, slowest, ratio, .. } => {
            (10, format!("{fastest} and {slowest} are the same exchange and differ by a factor of {}", figure(*ratio)))
        }
        CommWarning::Disturbed { loops, of, ratio, .. } => (
            20,
            format!("{loops} of {of} loops were disturbed: repetitions differ by up to a factor of {}", figure(*ratio)),
        ),
        CommWarning::Numbering { .. } => {
            (31, "ranks are not numbered host by host: neighbours are on other hosts".to_owned())
        }
        CommWarning::EffortReduced { loop_seconds, .. } => {
            (50, format!("shortened to keep the time limit: loops of {}: --time", format_seconds(*loop_seconds)))
        }
        CommWarning::ShortLoops { loops, of, .. } => (51, format!("{loops} of {of} loops are too short for the clock")),
        CommWarning::UntilNotReached { until_share, reach_share, .. } => {
            let known =
                reach_share.map_or_else(|| "not known".to_owned(), |reach| format!("known within {}", percent(reach)));
            (55, format!("b_eff is {known}, {} were asked for", percent(*until_share)))
        }
        CommWarning::Overrun { limit_seconds, real_seconds, .. } => {
            (60, format!("took {}, {} were allowed", format_seconds(*real_seconds), format_seconds(*limit_seconds)))
        }
    };
    Brief::new(rank, text)
}

fn cause(warning: &CommWarning) -> String {
    match warning {
        CommWarning::Numbering { numbering, hosts } => {
            let how = match numbering {
                Numbering::RoundRobin => "round-robin",
                _ => "neither host by host nor round-robin",
            };
            format!(
                "Ranks are numbered {how} over {}: many neighbours in a ring are on different hosts. The paper shows twice the \
                 b_eff and more with ranks numbered host by host (SR 8000, 24 processes: 1806 against 915 MB/s).",
                count(*hosts, "host")
            )
        }
        CommWarning::EffortReduced { .. } => effort_reduced(warning),
        CommWarning::Disturbed { loops, of, pattern, message_bytes, method, ratio } => format!(
            "Repetitions differ a lot: {} of {} loops that were repeated ({}) are more than twice as slow at their worst as at \
             their best; the most in {pattern} with {} and {}, {} times.",
            loops,
            of,
            percent(*loops as f64 / *of as f64),
            format_size(*message_bytes),
            method.name(),
            figure(*ratio)
        ),
        CommWarning::IdenticalDiffer { patterns, fastest, slowest, ratio } => format!(
            "{} are the same exchange, and yet S of {fastest} is {} times that of {slowest}: the machine was not the same all the \
             time, or ranks were moved.",
            count(*patterns, "ring"),
            figure(*ratio)
        ),
        CommWarning::ShortLoops { loops, of, shortest_seconds, clock_resolution_ns } => format!(
            "{loops} of {of} loops are shorter than 100 steps of the clock ({} each); the shortest took {}.",
            nanoseconds(*clock_resolution_ns),
            format_seconds(*shortest_seconds)
        ),
        CommWarning::UntilNotReached { until_share, reach_share, repetitions } => {
            let (asked, number) = (percent(*until_share), count(*repetitions, "repetition"));
            match reach_share {
                Some(reach) => format!(
                    "The time ended before b_eff was known within {asked}: the 95 % interval over {number} reaches {} from their mean.",
                    percent(*reach)
                ),
                None => format!("b_eff was to be known within {asked}, and {number} of all patterns cannot tell how far they scatter."),
            }
        }
        CommWarning::Overrun { limit_seconds, expected_seconds, real_seconds } => format!(
            "The measurement took {}; {} were announced and {} allowed.",
            format_seconds(*real_seconds),
            format_seconds(*expected_seconds),
            format_seconds(*limit_seconds)
        ),
        CommWarning::Shared(shared) => frame_warnings::text(shared).0,
    }
}

/// What was cut, and nothing else.
fn effort_reduced(warning: &CommWarning) -> String {
    let CommWarning::EffortReduced {
        loop_seconds,
        single_from_bytes,
        once_from_bytes,
        random_rings,
        without_extras,
        reductions,
    } = warning
    else {
        return String::new();
    };
    let rings = random_rings.filter(|n| *n < RANDOM_RINGS);
    let whole = *loop_seconds >= LOOP_SECONDS && rings.or(*once_from_bytes).is_none() && !without_extras;
    if let (true, Some(bytes)) = (whole, single_from_bytes) {
        return format!(
            "To keep within the time messages of {} and more were measured by the best method alone{}.",
            format_size(*bytes),
            if *bytes > 4096 { ", as the definition allows above 4 KiB" } else { "" }
        );
    }
    let mut cuts = Vec::new();
    if *loop_seconds < LOOP_SECONDS {
        let (short, whole) = (format_seconds(*loop_seconds), format_seconds(LOOP_SECONDS));
        cuts.push(format!("loops of {short} instead of {whole}"));
    }
    if let Some(bytes) = single_from_bytes {
        cuts.push(format!("messages of {} and more by the best method alone", format_size(*bytes)));
    }
    if let Some(bytes) = once_from_bytes {
        cuts.push(format!("messages of {} and more without repetitions", format_size(*bytes)));
    }
    if let Some(rings) = rings {
        cuts.push(format!("{rings} of {RANDOM_RINGS} random rings"));
    }
    if *without_extras {
        cuts.push("no patterns outside the average".to_owned());
    }
    let later = match reductions {
        0 => String::new(),
        n => format!("; the time became short {} after the announcement", times(*n)),
    };
    format!("The time did not allow the whole definition: {}{later}.", list(&cuts))
}

fn times(number: u64) -> String {
    if number == 1 {
        "once".to_owned()
    } else {
        format!("{number} times")
    }
}

fn next_step(warning: &CommWarning, config: &CommConfig) -> String {
    let fixed = match warning {
        CommWarning::Numbering { .. } => {
            "Measure the other numbering too and report both: with Open MPI --map-by core, with MPICH a host list of name:ranks."
        }
        CommWarning::EffortReduced { .. } | CommWarning::Overrun { .. } if config.quick => {
            "Leave out --quick for a value that counts."
        }
        CommWarning::EffortReduced { .. } => "Give a longer --time.",
        CommWarning::Disturbed { .. } => {
            "Repeat on an idle machine, with each rank bound to a core; the best repetition counts, but it may be disturbed too."
        }
        CommWarning::IdenticalDiffer { .. } => {
            "Repeat on an idle machine, with each rank bound to a core; the value is not valid until they agree within 10 %."
        }
        CommWarning::UntilNotReached { .. } => {
            "Give a longer --time; where single repetitions scatter widely, look for what else uses the machine first."
        }
        CommWarning::ShortLoops { .. } => {
            "Give a longer --time; if the clock is coarse, look at the clock source of the kernel (available_clocksource)."
        }
        CommWarning::Overrun { .. } => "Give a longer --time; the machine became slower than the pilot saw it.",
        CommWarning::Shared(shared) => return frame_warnings::text(shared).1,
    };
    fixed.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff::report::fixtures;

    #[test]
    fn every_warning_has_a_cause_and_a_next_step() {
        let config = fixtures::complete().config;
        let shown: Vec<String> = fixtures::every_warning()
            .iter()
            .map(|w| {
                let (cause, next_step) = text(w, &config);
                assert!(cause.ends_with('.') && next_step.ends_with('.'), "{cause}");
                format!("{cause}\n  -> {next_step}\n")
            })
            .collect();
        insta::assert_snapshot!("warnings", shown.concat());
    }

    #[test]
    fn nobody_is_told_to_use_what_is_not_in_use() {
        let quick = fixtures::failed().config;
        for warning in fixtures::every_warning().iter().filter(|w| matches!(w, CommWarning::EffortReduced { .. })) {
            assert!(text(warning, &quick).1.contains("--quick"));
            assert!(!text(warning, &fixtures::complete().config).1.contains("--quick"));
        }
    }
}
