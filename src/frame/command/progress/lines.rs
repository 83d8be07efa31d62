//! Lines for a log: one for each completed stage.

use super::remaining::end_time;
use super::reporter::{ProgressReporter, ProgressSnapshot};
use super::stage::Stage;
use crate::frame::command::print_diagnostic;
use crate::frame::terminal_escape::line;
use crate::frame::units::format_seconds;

/// Stages that end sooner after the last line have none, so that short runs print few lines.
const MIN_INTERVAL_SECONDS: f64 = 1.0;

pub(super) struct LineReporter {
    last_seconds: f64,
}

impl LineReporter {
    pub(super) fn new() -> Self {
        Self { last_seconds: 0.0 }
    }
}

fn format_line(over: &Stage, now: &ProgressSnapshot<'_>, end: &str) -> String {
    let rates: Vec<String> = over.rates().map(|(who, rate)| format!("{} {rate:.1}", line(who))).collect();
    let rates = if rates.is_empty() { String::new() } else { format!(": {} MB/s", rates.join(", ")) };
    let (took, left) = (format_seconds(over.took_seconds), format_seconds(now.left_seconds.ceil()));
    format!("{:3.0} %  {}{rates}, took {took}; about {left} left, until {end}", 100.0 * now.share, line(&over.name))
}

impl ProgressReporter for LineReporter {
    fn stage(&mut self, over: &Stage, now: &ProgressSnapshot<'_>) {
        if now.elapsed_seconds - self.last_seconds >= MIN_INTERVAL_SECONDS {
            self.last_seconds = now.elapsed_seconds;
            print_diagnostic(&format_line(over, now, &end_time(now.left_seconds)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{moved, standing};
    use super::*;

    #[test]
    fn a_line_has_rates_and_the_time_of_the_end() {
        let over = Stage {
            name: "first write, type 0 (scatter)".into(),
            took_seconds: 12.3,
            moved: vec![moved("mpiio", 1_000_000), moved("posix", 2_000_000), moved("null", 0)],
        };
        let standing = standing("first write, type 1 (shared)");
        let now = ProgressSnapshot { standing: &standing, elapsed_seconds: 15.0, left_seconds: 44.2, share: 0.25 };
        assert_eq!(
            format_line(&over, &now, "22:19:06 UTC"),
            " 25 %  first write, type 0 (scatter): mpiio 1.0, posix 2.0, null 0.0 MB/s, took 12.3 s; about 45.0 s left, \
             until 22:19:06 UTC"
        );
    }
}
