//! One JSON object per line and event on stderr, for programs that monitor a run.

use std::io::Write;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::reporter::{FinalProgress, ProgressReporter, ProgressSnapshot};
use super::stage::Stage;

/// An event. Every line has the same fields; those that an event does not have are null.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct ProgressEvent<'a> {
    /// `begin`, `part` (a pattern, row or visit begins), `stage` (a type, benchmark or repetition is complete), `end`.
    event: &'static str,
    /// Time of the event.
    time_utc: String,
    /// Of `begin`: the measurement.
    benchmark: Option<&'a str>,
    /// Of `part`: the next measurement.
    what: Option<&'a str>,
    /// Stage of the part, or the completed stage.
    stage: Option<&'a str>,
    /// Completed share of the run, 0 to 1, by time; of `end` below 1 if a signal, an error or the time limit ended the run.
    share: Option<f64>,
    /// Time since the begin of the run.
    elapsed_seconds: Option<f64>,
    /// Estimated time to the end of the run.
    left_seconds: Option<f64>,
    /// Of `stage`: its real time.
    took_seconds: Option<f64>,
    /// Of `part`: rates of the previous part; of `stage`: rates of all its parts.
    rates: Option<Vec<TransferRate<'a>>>,
}

/// Rate of a backend or message size.
#[derive(Debug, Serialize, JsonSchema)]
struct TransferRate<'a> {
    /// Backend; of b_eff the message size.
    who: &'a str,
    /// Rate in the clock.
    bytes_per_second: f64,
}

pub(super) struct JsonReporter;

impl JsonReporter {
    pub(super) fn new() -> Self {
        Self
    }
}

/// A closed stderr is not an error.
fn write_event(event: ProgressEvent<'_>) {
    let event = ProgressEvent { time_utc: Timestamp::now().to_string(), ..event };
    if let Ok(mut line) = serde_json::to_vec(&event) {
        line.push(b'\n');
        let _ = std::io::stderr().write_all(&line);
    }
}

fn event_from_snapshot<'a>(event: &'static str, now: &ProgressSnapshot<'a>) -> ProgressEvent<'a> {
    ProgressEvent {
        event,
        what: Some(&now.standing.what),
        stage: Some(&now.standing.stage),
        share: Some(now.share),
        elapsed_seconds: Some(now.elapsed_seconds),
        left_seconds: Some(now.left_seconds),
        ..ProgressEvent::default()
    }
}

impl ProgressReporter for JsonReporter {
    fn begin(&mut self, title: &str) {
        write_event(ProgressEvent { event: "begin", benchmark: Some(title), ..ProgressEvent::default() });
    }

    fn part(&mut self, now: &ProgressSnapshot<'_>) {
        let last = now.standing.transferred.iter().filter(|last| last.seconds > 0.0);
        let rates =
            last.map(|last| TransferRate { who: &last.who, bytes_per_second: last.bytes as f64 / last.seconds });
        write_event(ProgressEvent { rates: Some(rates.collect()), ..event_from_snapshot("part", now) });
    }

    fn stage(&mut self, over: &Stage, now: &ProgressSnapshot<'_>) {
        let rates = over.rates().map(|(who, rate)| TransferRate { who, bytes_per_second: 1e6 * rate }).collect();
        write_event(ProgressEvent {
            what: None,
            stage: Some(&over.name),
            took_seconds: Some(over.took_seconds),
            rates: Some(rates),
            ..event_from_snapshot("stage", now)
        });
    }

    fn end(&mut self, end: FinalProgress) {
        let (share, elapsed_seconds, left_seconds) = (Some(end.share), Some(end.elapsed_seconds), Some(0.0));
        write_event(ProgressEvent { event: "end", share, left_seconds, elapsed_seconds, ..ProgressEvent::default() });
    }
}
