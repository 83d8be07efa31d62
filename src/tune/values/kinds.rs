//! Warning kinds of `tune`, in addition to the common ones.

use crate::frame::records::{kinds, AccessMethod, Warning};
use crate::frame::units::format_seconds;
use crate::frame::values::binding::shared_host_warning;
use crate::frame::values::interference::interference_warning;
use crate::tune::records::TuneResult;

/// Share of the read bytes that must come from storage.
const MIN_STORAGE_SHARE: f64 = 0.9;

kinds! {
    /// Reads came from a cache, or their source is unknown.
    READS_FROM_CACHE = "reads_from_cache", 10,
    "Give --cache keep, if the program that is tuned reads from the cache as well, or --direct required with posix or uring." {
        /// Share of the bytes from storage, mean of the trials; None: unknown.
        storage_share: Option<f64>,
    }

    /// The search took more than 1.05 times its budget.
    BUDGET_EXCEEDED = "budget_exceeded", 60,
    "A trial takes long compared with the budget: increase --budget." {
        /// Budget.
        budget_seconds: f64,
        /// End of the last trial.
        real_seconds: f64,
    }
}

/// Warnings of the run, and those that follow from the trials.
pub(super) fn warnings(result: &TuneResult) -> Vec<Warning> {
    // The ratios are of pairs that alternate, so that other load widens their intervals rather than shifting them.
    let observed = std::iter::once(("the search".to_owned(), result.ending.interference.as_ref()));
    let derived = [
        reads_from_cache(result),
        shared_host_warning(&result.setup.machine),
        interference_warning("search", observed),
        budget_exceeded(result),
    ];
    result.warnings.iter().cloned().chain(derived.into_iter().flatten()).collect()
}

fn reads_from_cache(result: &TuneResult) -> Option<Warning> {
    let trials = &result.config.trials;
    let drops = trials.cache.drops_pages() && trials.profile.is_none();
    if trials.access != AccessMethod::Read || !drops {
        return None;
    }
    let measured = || result.trials.iter().filter(|trial| trial.outcome.refusal.is_none());
    let shares: Option<Vec<f64>> = measured().map(|trial| trial.outcome.storage_share).collect();
    let share = shares.map(|shares| shares.iter().sum::<f64>() / shares.len().max(1) as f64);
    if measured().next().is_none() || share.is_some_and(|share| share >= MIN_STORAGE_SHARE) {
        return None;
    }
    let text = match share {
        Some(share) => format!("only {:.0} % of the bytes came from storage", 100.0 * share),
        None => "the source of the reads is unknown".to_owned(),
    };
    let warning = READS_FROM_CACHE.warning().with_figure("storage_share", share);
    Some(warning.with_text(&text, format!("Reads are tuned for the storage, but {text}.")))
}

fn budget_exceeded(result: &TuneResult) -> Option<Warning> {
    let budget_seconds = result.config.budget_seconds;
    let real_seconds = result.trials.last()?.end_seconds;
    if real_seconds <= 1.05 * budget_seconds {
        return None;
    }
    let [budget, real] = [budget_seconds, real_seconds].map(format_seconds);
    let warning = BUDGET_EXCEEDED.warning().with_figure("budget_seconds", budget_seconds);
    Some(warning.with_figure("real_seconds", real_seconds).with_text(
        format!("the search took {real}, with a budget of {budget}"),
        format!("The search took {real}; its budget was {budget}."),
    ))
}
