//! Notes on the intervals of the values: what they are, what this T cannot resolve, or why there are none.

use crate::b_eff_io::records::RunResult;
use crate::b_eff_io::values::{Derived, ValueInterval};
use crate::frame::records::RunOutcome;
use crate::frame::report::text::count;
use crate::frame::units::format_seconds;
use crate::frame::values::NULL_BACKEND;
use crate::frame::words::figure;

/// A first measurement longer than this share of T has used it up.
const USED_UP_SHARE: f64 = 0.9;

/// Longer times are not advised: the scatter is not one that averages out.
const LONGEST_SECONDS: f64 = 86_400.0;

/// Notes of a run with `--repeat auto`, a line each.
pub(super) fn notes(result: &RunResult, derived: &Derived) -> Vec<String> {
    let known: Vec<&ValueInterval> = derived.intervals.values.iter().filter(|i| i.backend != NULL_BACKEND).collect();
    if known.is_empty() {
        return missing(result);
    }
    let number = count(result.repetitions.len() as u64, "repetition");
    let cut = result.repetitions.iter().filter(|r| r.share < 1.0).count() as u64;
    let cut = if cut > 0 { format!(", {cut} of them partial") } else { String::new() };
    let is_beyond = used_seconds(result) > USED_UP_SHARE * total_seconds(result);
    let within = if is_beyond { "after T" } else { "within T" };
    let meaning = known.iter().any(|i| i.resolved().is_some());
    let meaning = meaning.then(|| format!("[low, high]: 95 % interval, from {number} {within}{cut}"));
    let widest = known.iter().filter(|i| i.resolving_time_seconds.is_some());
    let widest = widest.max_by(|a, b| (a.high / a.low).total_cmp(&(b.high / b.low)));
    meaning.into_iter().chain(widest.into_iter().flat_map(|i| too_wide(result, i, &number))).collect()
}

fn too_wide(result: &RunResult, interval: &ValueInterval, number: &str) -> [String; 2] {
    let time = format_seconds(result.config.time_seconds);
    let factor = figure(interval.high / interval.low);
    let seconds = interval.resolving_time_seconds.unwrap_or(f64::INFINITY);
    let remedy = match time_option(seconds) {
        option if option.starts_with('-') => {
            format!("{number}; about {option} resolves a factor of 2, if scatter ~ 1/sqrt(T)")
        }
        _ => format!("{number}; no T of a day resolves a factor of 2: what disturbs the storage?"),
    };
    [format!("no interval: with T = {time} b_eff_io is known to a factor of {factor} only:"), remedy]
}

/// Option with a round time that is not shorter; `> 1 day` beyond that.
pub(super) fn time_option(seconds: f64) -> String {
    let round_up = |unit: f64, step: f64| (seconds / unit / step).ceil() * step;
    match seconds {
        s if s <= 120.0 => format!("-T {}s", round_up(1.0, 10.0)),
        s if s <= 3600.0 => format!("-T {}m", round_up(60.0, 1.0)),
        s if s <= LONGEST_SECONDS => format!("-T {}h", round_up(3600.0, 1.0)),
        _ => "> 1 day".to_owned(),
    }
}

/// Wall-clock time from the start until the first repetition, or the end of a run without any.
fn used_seconds(result: &RunResult) -> f64 {
    let starts = result.repetitions.iter().filter_map(|r| r.measurement.at_seconds);
    starts.reduce(f64::min).unwrap_or(result.ending.real_seconds)
}

/// T for all partitions and backends.
fn total_seconds(result: &RunResult) -> f64 {
    result.partitions.iter().map(|p| p.time_seconds).sum::<f64>() * result.config.backends.len() as f64
}

/// Why there is no interval, and the remedy.
fn missing(result: &RunResult) -> Vec<String> {
    let number = count(result.repetitions.len() as u64, "repetition");
    let (used, total) = (used_seconds(result), total_seconds(result));
    let is_limited = result.time_limit.as_ref().is_some_and(|limit| !limit.omitted.is_empty());
    match result.ending.outcome {
        RunOutcome::Interrupted | RunOutcome::Killed => {
            vec![format!("no interval: the run ended after {number} of patterns")]
        }
        outcome if is_limited || outcome == RunOutcome::Limit => {
            vec![format!("no interval: the time limit left time for {number} of patterns only")]
        }
        _ if used > USED_UP_SHARE * total => vec![
            format!(
                "no interval: the first measurement took all of T ({} of {}), and",
                format_seconds(used),
                format_seconds(total)
            ),
            format!("{number} of patterns after it are too few; a longer -T allows more"),
        ],
        _ => vec![
            format!("no interval: {number} of patterns within T are too few;"),
            "a smaller --space or a longer -T allows more".to_owned(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::report::fixtures;
    use crate::b_eff_io::values::derive;

    #[test]
    fn times_are_round_and_not_shorter() {
        let options = [1.0, 61.0, 120.0, 121.0, 2478.9, 3601.0, 86_400.0, 86_401.0, f64::INFINITY].map(time_option);
        assert_eq!(
            options,
            ["-T 10s", "-T 70s", "-T 120s", "-T 3m", "-T 42m", "-T 2h", "-T 24h", "> 1 day", "> 1 day"]
        );
    }

    #[test]
    fn a_wide_interval_is_not_shown_and_named() {
        let result = fixtures::repeated();
        let mut derived = derive(&result);
        let [meaning] = &notes(&result, &derived)[..] else { panic!() };
        assert!(meaning.starts_with("[low, high]: 95 % interval, from 301 repetitions"), "{meaning}");
        let own = &mut derived.intervals.values[0];
        (own.low, own.high, own.resolving_time_seconds) = (176.0, 15_140.0, Some(2478.9));
        let found = notes(&result, &derived);
        assert_eq!(
            found,
            [
                "no interval: with T = 15.0 min b_eff_io is known to a factor of 86 only:",
                "301 repetitions; about -T 42m resolves a factor of 2, if scatter ~ 1/sqrt(T)"
            ]
        );
        derived.intervals.values[0].resolving_time_seconds = Some(1e6);
        assert!(notes(&result, &derived)[1].contains("no T of a day"));
    }

    #[test]
    fn a_run_without_interval_says_why() {
        let mut result = fixtures::repeated();
        result.repetitions.clear();
        result.type_repetitions.clear();
        let note = |result: &RunResult| {
            let all = notes(result, &derive(result));
            assert!(all.iter().all(|line| line.chars().count() <= 78), "{all:?}");
            all.join(" ")
        };
        result.ending.real_seconds = 950.0;
        let used = note(&result);
        let expected = "no interval: the first measurement took all of T (15.8 min of 15.0 min), and 0 repetitions";
        assert!(used.starts_with(expected), "{used}");
        result.ending.real_seconds = 300.0;
        assert!(note(&result).contains("a smaller --space or a longer -T allows more"));
        result.ending.outcome = RunOutcome::Interrupted;
        assert!(note(&result).contains("the run ended after 0 repetitions"));
        result.ending.outcome = RunOutcome::Limit;
        assert!(note(&result).contains("time limit"));
    }
}
