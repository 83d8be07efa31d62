//! Lines for a log: one for each stage that is over.

use super::pace::end_in;
use super::stage::Stage;
use super::teller::{Moment, Teller};
use crate::frame::command::complain;
use crate::frame::plain::line;
use crate::frame::units::format_seconds;

/// Stages that end sooner after the last line have none: a short run would be nothing but lines.
const SHORTEST_SECONDS: f64 = 1.0;

pub(super) struct Lines {
    last_seconds: f64,
}

impl Lines {
    pub(super) fn new() -> Self {
        Self { last_seconds: 0.0 }
    }
}

/// What is told of a stage.
fn told(over: &Stage, now: &Moment<'_>, end: &str) -> String {
    let rates: Vec<String> = over.rates().map(|(who, rate)| format!("{} {rate:.1}", line(who))).collect();
    let rates = if rates.is_empty() { String::new() } else { format!(": {} MB/s", rates.join(", ")) };
    let (took, left) = (format_seconds(over.took_seconds), format_seconds(now.left_seconds.ceil()));
    format!("{:3.0} %  {}{rates}, took {took}; about {left} left, until {end}", 100.0 * now.share, line(&over.name))
}

impl Teller for Lines {
    fn stage(&mut self, over: &Stage, now: &Moment<'_>) {
        if now.elapsed_seconds - self.last_seconds >= SHORTEST_SECONDS {
            self.last_seconds = now.elapsed_seconds;
            complain(&told(over, now, &end_in(now.left_seconds)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{moved, standing};
    use super::*;

    #[test]
    fn a_line_tells_what_was_measured_and_when_it_ends() {
        let over = Stage {
            name: "first write, type 0 (scatter)".into(),
            took_seconds: 12.3,
            moved: vec![moved("mpiio", 1_000_000), moved("posix", 2_000_000), moved("null", 0)],
        };
        let standing = standing("first write, type 1 (shared)");
        let now = Moment { standing: &standing, elapsed_seconds: 15.0, left_seconds: 44.2, share: 0.25 };
        assert_eq!(
            told(&over, &now, "22:19:06 UTC"),
            " 25 %  first write, type 0 (scatter): mpiio 1.0, posix 2.0, null 0.0 MB/s, took 12.3 s; about 45.0 s left, \
             until 22:19:06 UTC"
        );
    }
}
