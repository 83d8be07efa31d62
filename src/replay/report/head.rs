//! Head of the report: profile, hosts, and unusual settings.

use crate::frame::backends::is_variant;
use crate::frame::config::CachePolicy;
use crate::frame::report::library::short_name;
use crate::frame::report::machine;
use crate::frame::report::model::{labelled_texts, ReportHead};
use crate::frame::report::text::{count, join_settings, list};
use crate::frame::report::variants::variants_text;
use crate::frame::units::{format_seconds, format_size};
use crate::replay::config::{Pace, ReplayConfig};
use crate::replay::plan::printable::printable;
use crate::replay::records::{ProfileFacts, ReplayResult};

pub(super) fn head(result: &ReplayResult, common: ReportHead) -> ReportHead {
    let (config, setup) = (&result.config, &result.setup);
    let verifies = result.repetitions.iter().any(|p| !p.is_timed());
    let repetitions = repetitions_text(config.repeat, verifies);
    let pace = pace_text(config);
    let backends: Vec<String> = config.backends.iter().filter(|name| !is_variant(name)).cloned().collect();
    let replayed = format!("with {}, {repetitions}, {pace}", list(&backends));
    let replayed = labelled_texts([("replayed", Some(replayed)), ("variants", variants_text(&config.variants))]);
    let machine =
        machine::head_facts(&setup.machine, None).into_iter().chain(machine::storage_head_facts(&setup.storage));
    ReportHead {
        about: vec![profile_line(&setup.profile), content_line(&setup.profile)],
        requested_time: format!("{repetitions}, {pace}"),
        settings: unusual_settings(config),
        facts: replayed.into_iter().chain(machine).collect(),
        ..common
    }
}

/// Timed repetitions, and whether one that verifies data precedes them, in words.
#[must_use]
pub fn repetitions_text(timed: u64, verifies: bool) -> String {
    match (verifies, timed) {
        (false, _) => count(timed, "repetition"),
        (true, 0) => "a verification without times".to_owned(),
        (true, _) => format!("{} after a verification", count(timed, "repetition")),
    }
}

pub(super) fn profile_line(profile: &ProfileFacts) -> String {
    let command: Vec<String> = profile.command.iter().map(|word| printable(word, 200)).collect();
    let command = if command.is_empty() { "a workload written by hand".to_owned() } else { command.join(" ") };
    let library = printable(&short_name(&profile.library), 60);
    let library = if library.is_empty() { String::new() } else { format!(", {library}") };
    format!("{command}: {} on {}{library}", count(profile.processes, "process"), count(profile.hosts, "host"))
}

pub(super) fn content_line(profile: &ProfileFacts) -> String {
    format!(
        "{}, {} with data: {} read, {} written, {}, {}",
        count(profile.calls, "call"),
        profile.data_calls,
        format_size(profile.read_bytes),
        format_size(profile.written_bytes),
        count(profile.files.len() as u64, "file"),
        format_seconds(profile.span_seconds)
    )
}

pub(super) fn recordings_text(profile: &ProfileFacts) -> String {
    let ends = profile.ended.iter().map(|e| format!("{} {}", count(e.processes, "process"), printable(&e.end, 20)));
    list(&ends.collect::<Vec<_>>())
}

fn pace_text(config: &ReplayConfig) -> String {
    match config.pace {
        Pace::Fast => "as fast as possible".to_owned(),
        Pace::Think => "with the recorded time between calls".to_owned(),
        Pace::Absolute => format!("at the recorded times x {}", config.scale),
    }
}

/// Settings other than the default that change the meaning of the numbers.
fn unusual_settings(config: &ReplayConfig) -> Option<String> {
    join_settings([
        config.inject.then(|| "INJECTED FAULT (one bit)".to_owned()),
        (!config.verify).then(|| "nothing compared".to_owned()),
        (config.cache == CachePolicy::Keep).then(|| "pages of the files stay in the cache".to_owned()),
    ])
}
