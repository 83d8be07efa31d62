//! How two-phase first writes go, and what the trial before the run saw.

use crate::b_eff_io::records::{FirstWriteTrial, RunResult};
use crate::frame::report::text::figure;
use crate::frame::units::{count, format_size};

/// A line for each backend that had a choice.
pub(super) fn told(result: &RunResult) -> impl Iterator<Item = String> + use<'_> {
    result.first_write_trials.iter().map(of_backend)
}

fn of_backend(trial: &FirstWriteTrial) -> String {
    let FirstWriteTrial { backend, chosen, .. } = trial;
    let start = format!("two-phase ones of {backend} {}", chosen.name());
    let Some(ratio) = trial.ratio else {
        return format!("{start}: not tried, {}", trial.not_tried.as_deref().unwrap_or("for no recorded reason"));
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
