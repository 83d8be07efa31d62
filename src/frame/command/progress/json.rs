//! One JSON object in a line for each event, on stderr, for programs that watch a run.

use std::io::Write;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::stage::Stage;
use super::teller::{End, Moment, Teller};

/// What happened. Every line has the same fields; those that an event does not have are null.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Event<'a> {
    /// `begin`, `part` (a pattern, row or visit begins), `stage` (a type, benchmark, repetition or pass is over), `end`.
    event: &'static str,
    /// When it was told.
    time_utc: String,
    /// Of `begin`: what is measured.
    benchmark: Option<&'a str>,
    /// Of `part`: what is measured next.
    what: Option<&'a str>,
    /// The stage it belongs to, or that is over.
    stage: Option<&'a str>,
    /// How much of the run is done, 0 to 1, by time; of `end` below 1 if a signal or an error ended the run.
    share: Option<f64>,
    /// Since the begin.
    elapsed_seconds: Option<f64>,
    /// Until the end, as measured so far.
    left_seconds: Option<f64>,
    /// Of `stage`: its real time.
    took_seconds: Option<f64>,
    /// Of `part` those of the part before, of `stage` of all its parts.
    rates: Option<Vec<Rate<'a>>>,
}

/// How fast something was.
#[derive(Debug, Serialize, JsonSchema)]
struct Rate<'a> {
    /// Backend; of b_eff the size of the messages.
    who: &'a str,
    /// In the clock.
    bytes_per_second: f64,
}

pub(super) struct Json;

impl Json {
    pub(super) fn new() -> Self {
        Self
    }
}

/// A closed stderr is no reason to fail.
fn tell(event: Event<'_>) {
    let event = Event { time_utc: Timestamp::now().to_string(), ..event };
    if let Ok(mut line) = serde_json::to_vec(&event) {
        line.push(b'\n');
        let _ = std::io::stderr().write_all(&line);
    }
}

fn of_moment<'a>(event: &'static str, now: &Moment<'a>) -> Event<'a> {
    Event {
        event,
        what: Some(&now.standing.what),
        stage: Some(&now.standing.stage),
        share: Some(now.share),
        elapsed_seconds: Some(now.elapsed_seconds),
        left_seconds: Some(now.left_seconds),
        ..Event::default()
    }
}

impl Teller for Json {
    fn begin(&mut self, title: &str) {
        tell(Event { event: "begin", benchmark: Some(title), ..Event::default() });
    }

    fn part(&mut self, now: &Moment<'_>) {
        let last = now.standing.last.iter().filter(|last| last.seconds > 0.0);
        let rates = last.map(|last| Rate { who: &last.who, bytes_per_second: last.bytes as f64 / last.seconds });
        tell(Event { rates: Some(rates.collect()), ..of_moment("part", now) });
    }

    fn stage(&mut self, over: &Stage, now: &Moment<'_>) {
        let rates = over.rates().map(|(who, rate)| Rate { who, bytes_per_second: 1e6 * rate }).collect();
        tell(Event {
            what: None,
            stage: Some(&over.name),
            took_seconds: Some(over.took_seconds),
            rates: Some(rates),
            ..of_moment("stage", now)
        });
    }

    fn end(&mut self, end: End) {
        let (share, elapsed_seconds, left_seconds) = (Some(end.share), Some(end.elapsed_seconds), Some(0.0));
        tell(Event { event: "end", share, left_seconds, elapsed_seconds, ..Event::default() });
    }
}
