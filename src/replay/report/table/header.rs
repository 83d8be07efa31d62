//! The head of the report: what was replayed, where.

use crate::frame::config::CachePolicy;
use crate::frame::report::library::short_name;
use crate::frame::report::machine;
use crate::frame::report::text::{count, list, settings, Page};
use crate::frame::units::{format_seconds, format_size};
use crate::replay::config::Pace;
use crate::replay::plan::names::shown;
use crate::replay::records::{ProfileFacts, ReplayResult};

pub(super) fn write(page: &mut Page, result: &ReplayResult) {
    let (config, setup) = (&result.config, &result.setup);
    let units = "bandwidths per process: bytes over the time in the calls, MB/s = 1 000 000 bytes/s; ratio: replayed / recorded";
    machine::title(page, &setup.machine, "replay of a recorded application", units);
    page.short_field("profile", &profile(&setup.profile));
    page.short_field("holds", &content(&setup.profile));
    let backends = count(config.repeat.saturating_mul(config.backends.len() as u64), "pass");
    page.short_field(
        "replayed",
        &format!("with {}, {backends}, {}", list(&config.backends), pace(config.pace, config.scale)),
    );
    if let Some(text) = unusual(result) {
        page.short_field("settings", &text);
    }
    machine::head(page, &setup.machine, None);
    machine::storage(page, &setup.storage);
}

/// The program, as it was started.
pub(in crate::replay::report) fn profile(profile: &ProfileFacts) -> String {
    let command: Vec<String> = profile.command.iter().map(|word| shown(word, 200)).collect();
    let command = if command.is_empty() { "a workload written by hand".to_owned() } else { command.join(" ") };
    let library = shown(&short_name(&profile.library), 60);
    let library = if library.is_empty() { String::new() } else { format!(", {library}") };
    format!("{command}: {} on {}{library}", count(profile.processes, "process"), count(profile.hosts, "host"))
}

/// What is in it.
pub(in crate::replay::report) fn content(profile: &ProfileFacts) -> String {
    format!(
        "{}, {} of them move data; {} read, {} written in {}, {}",
        count(profile.calls, "call"),
        profile.data_calls,
        format_size(profile.read_bytes),
        format_size(profile.written_bytes),
        count(profile.files.len() as u64, "file"),
        format_seconds(profile.span_seconds)
    )
}

/// When calls began, in words.
pub(in crate::replay::report) fn pace(pace: Pace, scale: f64) -> String {
    match pace {
        Pace::Fast => "as fast as possible".to_owned(),
        Pace::Think => "with the recorded time between calls".to_owned(),
        Pace::Absolute => format!("at the recorded times x {scale}"),
    }
}

/// What was chosen otherwise than by default and changes what the numbers mean.
pub(in crate::replay::report) fn unusual(result: &ReplayResult) -> Option<String> {
    let config = &result.config;
    settings([
        config.inject.then(|| "DAMAGED ON PURPOSE (one bit)".to_owned()),
        (!config.verify).then(|| "nothing compared".to_owned()),
        (config.cache == CachePolicy::Keep).then(|| "pages of the files stay in the cache".to_owned()),
    ])
}
