//! The head of the report: what was replayed, where, and what is unusual about it.

use crate::frame::config::CachePolicy;
use crate::frame::report::library::short_name;
use crate::frame::report::machine;
use crate::frame::report::model::{pairs, Head};
use crate::frame::report::text::{count, list, settings};
use crate::frame::units::{format_seconds, format_size};
use crate::replay::config::{Pace, ReplayConfig};
use crate::replay::plan::names::shown;
use crate::replay::records::{ProfileFacts, ReplayResult};

pub(super) fn head(result: &ReplayResult, common: Head) -> Head {
    let (config, setup) = (&result.config, &result.setup);
    let passes = count(config.repeat.saturating_mul(config.backends.len() as u64), "pass");
    let pace = pace(config);
    let replayed = format!("with {}, {passes}, {pace}", list(&config.backends));
    let replayed = pairs([("replayed", Some(replayed))]);
    let machine = machine::facts(&setup.machine, None).into_iter().chain(machine::storage_facts(&setup.storage));
    Head {
        about: vec![profile(&setup.profile), content(&setup.profile)],
        asked: format!("{passes}, {pace}"),
        settings: unusual(config),
        facts: replayed.into_iter().chain(machine).collect(),
        ..common
    }
}

/// The program, as it was started.
pub(super) fn profile(profile: &ProfileFacts) -> String {
    let command: Vec<String> = profile.command.iter().map(|word| shown(word, 200)).collect();
    let command = if command.is_empty() { "a workload written by hand".to_owned() } else { command.join(" ") };
    let library = shown(&short_name(&profile.library), 60);
    let library = if library.is_empty() { String::new() } else { format!(", {library}") };
    format!("{command}: {} on {}{library}", count(profile.processes, "process"), count(profile.hosts, "host"))
}

/// What is in it, in one line.
pub(super) fn content(profile: &ProfileFacts) -> String {
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

/// How the recordings of the processes ended.
pub(super) fn recordings(profile: &ProfileFacts) -> String {
    let ends = profile.ended.iter().map(|e| format!("{} {}", count(e.processes, "process"), shown(&e.end, 20)));
    list(&ends.collect::<Vec<_>>())
}

/// When calls began, in words.
fn pace(config: &ReplayConfig) -> String {
    match config.pace {
        Pace::Fast => "as fast as possible".to_owned(),
        Pace::Think => "with the recorded time between calls".to_owned(),
        Pace::Absolute => format!("at the recorded times x {}", config.scale),
    }
}

/// What was chosen otherwise than by default and changes what the numbers mean.
fn unusual(config: &ReplayConfig) -> Option<String> {
    settings([
        config.inject.then(|| "DAMAGED ON PURPOSE (one bit)".to_owned()),
        (!config.verify).then(|| "nothing compared".to_owned()),
        (config.cache == CachePolicy::Keep).then(|| "pages of the files stay in the cache".to_owned()),
    ])
}
