//! Setup of the run: what is needed to reproduce it or to explain a number.

use crate::b_eff_io::records::{FirstWriteTrial, QueueCalibration, RunResult};
use crate::frame::backends::any_supports;
use crate::frame::records::AccessMethod;
use crate::frame::report::common;
use crate::frame::report::model::{labelled_texts, ReportSection};
use crate::frame::report::text::{count, figure, percent};
use crate::frame::units::{format_seconds, format_size};

use super::comparable;
use super::layout::chunk_label;

/// The facts, and parameters measured or chosen at run time.
pub(super) fn section(result: &RunResult) -> ReportSection {
    let (config, manifest) = (&result.config, &result.manifest);
    let partition = |p: &crate::b_eff_io::records::PartitionRecord| {
        format!("{} {}", count(p.ranks, "rank"), format_seconds(p.time_seconds))
    };
    let partitions: Vec<String> = result.partitions.iter().map(partition).collect();
    let data = format!("seed {}, period {}{}", config.seed, format_size(manifest.period_bytes), sample_note(result));
    let kept = if config.keep_files { " (files kept)" } else { "" };
    let own = [
        ("time of partitions", (!partitions.is_empty()).then(|| partitions.join(", "))),
        ("data", Some(data)),
        ("queue", queue_depth(result)),
    ];
    let trials = result.first_write_trials.iter().map(|trial| ("first writes", Some(first_write_trial(trial))));
    let directory = [("run directory", Some(format!("{}{kept}, under {}", manifest.run_dir, manifest.storage.path)))];
    let own = labelled_texts(own.into_iter().chain(trials).chain(directory));
    common::set_up(&manifest.machine, Some(&manifest.storage), &comparable::config_facts(result), own)
}

fn sample_note(result: &RunResult) -> String {
    let (mut bytes, mut of_bytes, mut past_cache_bytes) = (0_u64, 0_u64, 0_u64);
    for sample in result.patterns.iter().filter_map(|r| r.sample.as_ref()) {
        bytes = bytes.saturating_add(sample.bytes);
        of_bytes = of_bytes.saturating_add(sample.of_bytes);
        past_cache_bytes = past_cache_bytes.saturating_add(sample.past_cache_bytes);
    }
    if bytes == 0 {
        return String::new();
    }
    let [share, past] = [(bytes, of_bytes), (past_cache_bytes, bytes)].map(|(a, b)| percent(a as f64 / b as f64));
    format!("; after each pattern a sample of its bytes in the file was compared: {share} of them, {past} of the sample from outside the \
             page cache")
}

/// Queue depth by calibration; None if not applicable.
fn queue_depth(result: &RunResult) -> Option<String> {
    let config = &result.config;
    if config.queue_depth.is_some() || !any_supports(&config.backends, |row| row.has_queue) {
        return None;
    }
    Some(match result.queue_calibrations.as_slice() {
        [] => "default of the driver; no calibration recorded".to_owned(),
        queue_calibrations => format!("depth by calibration{}", chosen_depths(queue_calibrations)),
    })
}

/// `: write 32 from 1 kB, 8 from 1 MB; read ...`.
fn chosen_depths(queue_calibrations: &[QueueCalibration]) -> String {
    let mut text = String::new();
    for access in AccessMethod::ALL {
        let depths: Vec<String> = queue_calibrations
            .iter()
            .filter(|t| t.access == access)
            .map(|t| format!("{} from {}", t.depth, chunk_label(t.chunk_bytes)))
            .collect();
        if !depths.is_empty() {
            text.push_str(&format!("; {} {}", access.name(), depths.join(", ")));
        }
    }
    text
}

/// Mode of two-phase first writes, and the trial before the run.
fn first_write_trial(trial: &FirstWriteTrial) -> String {
    let FirstWriteTrial { backend, chosen, .. } = trial;
    let start = format!("two-phase ones of {backend} {}", chosen.name());
    let Some(ratio) = trial.ratio else {
        return format!("{start}: no trial, {}", trial.skip_reason.as_deref().unwrap_or("no reason recorded"));
    };
    let ms = |seconds: f64| figure(1000.0 * seconds);
    let pairs: Vec<String> =
        trial.pairs.iter().map(|p| format!("{}/{}", ms(p.direct_seconds), ms(p.buffered_seconds))).collect();
    format!(
        "{start}: in {} of {} direct/buffered took {} ms with the sync, median {ratio:.2}",
        count(trial.pairs.len() as u64, "pair"),
        format_size(trial.bytes),
        pairs.join(", ")
    )
}
