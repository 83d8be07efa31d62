//! Interference: shares of CPU time that the ranks did not get, and the threshold for a mark.

use crate::frame::records::{kinds, InterferenceRecord, Warning};
use crate::frame::units::count;
use crate::frame::words::percent;

/// Share above which a measurement counts as disturbed.
pub const INTERFERENCE_THRESHOLD: f64 = 0.05;
/// Less CPU time than this is ignored: the kernel counts in ticks of some 10 ms.
const MIN_CPU_SECONDS: f64 = 0.03;
/// Less run-queue wait than this is ordinary wake-up latency.
const MIN_WAIT_SECONDS: f64 = 0.001;

/// Shares of time, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct InterferenceShares {
    /// Steal time, as a share of the ranks' CPUs.
    pub steal: f64,
    /// CPU time of other processes, as a share of the ranks' CPUs.
    pub other_processes: f64,
    /// Run-queue wait of the rank that waited longest, as a share of the observed time.
    pub run_queue_wait: f64,
}

impl InterferenceShares {
    /// The largest share.
    #[must_use]
    pub fn largest(self) -> f64 {
        self.steal.max(self.other_processes).max(self.run_queue_wait)
    }
}

/// Shares over several measurements; None if all are unknown.
#[must_use]
pub fn shares<'a>(of: impl IntoIterator<Item = &'a InterferenceRecord>) -> Option<InterferenceShares> {
    let (mut known, mut sum) = (false, InterferenceRecord::default());
    let (mut waited_seconds, mut watched_seconds) = (0.0, 0.0);
    for share in of {
        known |= share.cpu_seconds > 0.0 || share.run_queue_wait_seconds.is_some();
        sum.cpu_seconds += share.cpu_seconds;
        sum.steal_seconds += share.steal_seconds;
        sum.other_process_seconds += share.other_process_seconds;
        if let Some(seconds) = share.run_queue_wait_seconds {
            waited_seconds += seconds;
            watched_seconds += share.observed_seconds;
        }
    }
    let believed = |seconds: f64| if seconds < MIN_CPU_SECONDS { 0.0 } else { ratio(seconds, sum.cpu_seconds) };
    let waited = if waited_seconds < MIN_WAIT_SECONDS { 0.0 } else { ratio(waited_seconds, watched_seconds) };
    known.then(|| InterferenceShares {
        steal: believed(sum.steal_seconds),
        other_processes: believed(sum.other_process_seconds),
        run_queue_wait: waited,
    })
}

/// `part / whole`, 0 if the whole is 0.
#[must_use]
pub fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        part / whole
    } else {
        0.0
    }
}

/// True if these measurements together exceed the threshold.
#[must_use]
pub fn is_disturbed<'a>(of: impl IntoIterator<Item = &'a InterferenceRecord>) -> bool {
    shares(of).is_some_and(|shares| shares.largest() > INTERFERENCE_THRESHOLD)
}

/// The warning, if any of the named measurements (`noun`s) is disturbed: their number, and the shares over all of them.
pub(crate) fn interference_warning<'a>(
    noun: &str,
    named: impl Iterator<Item = (String, Option<&'a InterferenceRecord>)>,
) -> Option<Warning> {
    let all: Vec<(String, &InterferenceRecord)> = named.filter_map(|(name, share)| Some((name, share?))).collect();
    let marked: Vec<(&str, f64)> = all
        .iter()
        .filter_map(|(name, share)| Some((name.as_str(), shares([*share])?.largest())))
        .filter(|(_, share)| *share > INTERFERENCE_THRESHOLD)
        .collect();
    let (worst, worst_share) = marked.iter().copied().reduce(|most, one| if one.1 > most.1 { one } else { most })?;
    let InterferenceShares { steal, other_processes: others, run_queue_wait: waited } =
        shares(all.iter().map(|(_, share)| *share))?;
    let (marked, of) = (marked.len(), all.len());
    let of_all = count(of as u64, noun);
    let warning =
        kinds::INTERFERENCE.warning().with_figure("noun", noun).with_figure("marked", marked).with_figure("of", of);
    let warning = warning
        .with_figure("steal_share", steal)
        .with_figure("other_process_share", others)
        .with_figure("run_queue_wait_share", waited);
    let most = percent(worst_share);
    let [steal, others, waited] = [steal, others, waited].map(percent);
    Some(warning.with_figure("worst", worst).with_figure("worst_share", worst_share).with_text(
        format!("interference during {marked} of {of_all}: up to {most} of the CPU time lost"),
        format!(
            "More than 5 % of the CPU time was lost to interference during {marked} of {of_all}, most ({most}) during {worst}. Over all \
             of them, steal time was {steal} of the ranks' CPUs, other processes used {others}, and runnable ranks waited \
             {waited} of the time for a CPU."
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two CPUs observed for ten seconds.
    fn share(steal_seconds: f64, others_seconds: f64, waited_seconds: f64) -> InterferenceRecord {
        InterferenceRecord {
            host: "a".into(),
            cpus: 2,
            observed_seconds: 10.0,
            cpu_seconds: 20.0,
            steal_seconds,
            other_process_seconds: others_seconds,
            run_queue_wait_seconds: Some(waited_seconds),
            ..InterferenceRecord::default()
        }
    }

    #[test]
    fn the_threshold_applies_to_each_share() {
        for (of, shared) in [
            (share(0.99, 0.99, 0.49), false),
            (share(1.01, 0.0, 0.0), true),
            (share(0.0, 1.01, 0.0), true),
            (share(0.0, 0.0, 0.51), true),
            (InterferenceRecord { kernel_seconds: 20.0, ..share(0.0, 0.0, 0.0) }, false),
        ] {
            assert_eq!(is_disturbed([&of]), shared, "{of:?}");
        }
    }

    #[test]
    fn a_few_ticks_and_wake_ups_are_ignored() {
        let short = |steal_seconds, waited_seconds| InterferenceRecord {
            observed_seconds: 0.01,
            cpu_seconds: 0.02,
            ..share(steal_seconds, steal_seconds, waited_seconds)
        };
        assert!(!is_disturbed([&short(0.02, 0.0009)]));
        assert!(is_disturbed([&short(0.03, 0.0)]));
        assert!(is_disturbed([&short(0.0, 0.0011)]));
    }

    #[test]
    fn unknown_interference_is_not_disturbed() {
        let silent = InterferenceRecord { cpu_seconds: 0.0, run_queue_wait_seconds: None, ..share(0.0, 0.0, 0.0) };
        assert_eq!(shares([&silent]), None);
        assert_eq!(shares([]), None);
        // Measurements without data do not count in the denominator.
        let both = [silent, share(0.0, 0.0, 1.0)];
        assert_eq!(shares(&both).map(|s| s.run_queue_wait), Some(0.1));
    }

    #[test]
    fn the_warning_has_the_sum_and_the_largest_share() {
        let shared = [share(4.0, 0.0, 0.0), share(0.0, 0.0, 0.0), share(0.0, 3.0, 0.0)];
        let named = |of: &'static str| shared.iter().map(move |s| (format!("{of} {}", s.steal_seconds), Some(s)));
        let known = named("pattern").chain([("not known".to_owned(), None)]);
        let expected = serde_json::json!({
            "noun": "pattern run", "marked": 2, "of": 3, "steal_share": 4.0 / 60.0, "other_process_share": 3.0 / 60.0,
            "run_queue_wait_share": 0.0, "worst": "pattern 4", "worst_share": 0.2,
        });
        assert_eq!(serde_json::json!(interference_warning("pattern run", known).unwrap().figures), expected);
        assert_eq!(interference_warning("pattern run", named("pattern").skip(1).take(1)), None);
        assert_eq!(interference_warning("pattern run", std::iter::empty()), None);
    }
}
