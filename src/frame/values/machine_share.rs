//! Which part of the machine others had: shares, and what of it is worth a mark.

use crate::frame::records::{kinds, MachineShare, Warning};
use crate::frame::units::count;
use crate::frame::words::percent;

/// Others had too much of what was measured above this share.
pub const OTHERS_SHARE: f64 = 0.05;
/// Less CPU time than this is not believed: the kernel counts in ticks of some 10 ms.
const BELIEVED_SECONDS: f64 = 0.03;
/// Less waiting than this is what waking up takes.
const WAKING_SECONDS: f64 = 0.001;

/// Shares of time, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shares {
    /// Of the CPUs that the ranks may use: taken by the hypervisor.
    pub steal: f64,
    /// Of the CPUs that the ranks may use: used by programs that are no ranks.
    pub others: f64,
    /// Of the time watched: the rank that waited longest for a CPU.
    pub waited: f64,
}

impl Shares {
    /// The largest of them.
    #[must_use]
    pub fn largest(self) -> f64 {
        self.steal.max(self.others).max(self.waited)
    }
}

/// Shares over several measurements; None: nothing is known of any of them.
#[must_use]
pub fn shares<'a>(of: impl IntoIterator<Item = &'a MachineShare>) -> Option<Shares> {
    let (mut known, mut sum) = (false, MachineShare::default());
    let (mut waited_seconds, mut watched_seconds) = (0.0, 0.0);
    for share in of {
        known |= share.cpu_seconds > 0.0 || share.waited_seconds.is_some();
        sum.cpu_seconds += share.cpu_seconds;
        sum.steal_seconds += share.steal_seconds;
        sum.others_seconds += share.others_seconds;
        if let Some(seconds) = share.waited_seconds {
            waited_seconds += seconds;
            watched_seconds += share.watched_seconds;
        }
    }
    let believed = |seconds: f64| if seconds < BELIEVED_SECONDS { 0.0 } else { ratio(seconds, sum.cpu_seconds) };
    let waited = if waited_seconds < WAKING_SECONDS { 0.0 } else { ratio(waited_seconds, watched_seconds) };
    known.then(|| Shares { steal: believed(sum.steal_seconds), others: believed(sum.others_seconds), waited })
}

/// Part of a whole, 0 of nothing.
#[must_use]
pub fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        part / whole
    } else {
        0.0
    }
}

/// True if others had so much of the machine that these measurements together show it.
#[must_use]
pub fn is_shared<'a>(of: impl IntoIterator<Item = &'a MachineShare>) -> bool {
    shares(of).is_some_and(|shares| shares.largest() > OTHERS_SHARE)
}

/// The warning, if any of the named measurements (`noun`s) is worth a mark: how many, and the shares over all of them.
pub(crate) fn warning<'a>(
    noun: &str,
    named: impl Iterator<Item = (String, Option<&'a MachineShare>)>,
) -> Option<Warning> {
    let all: Vec<(String, &MachineShare)> = named.filter_map(|(name, share)| Some((name, share?))).collect();
    let marked: Vec<(&str, f64)> = all
        .iter()
        .filter_map(|(name, share)| Some((name.as_str(), shares([*share])?.largest())))
        .filter(|(_, share)| *share > OTHERS_SHARE)
        .collect();
    let (worst, worst_share) = marked.iter().copied().reduce(|most, one| if one.1 > most.1 { one } else { most })?;
    let Shares { steal, others, waited } = shares(all.iter().map(|(_, share)| *share))?;
    let (marked, of) = (marked.len(), all.len());
    let of_all = count(of as u64, noun);
    let warning = kinds::MACHINE_SHARED.warning().figure("noun", noun).figure("marked", marked).figure("of", of);
    let warning = warning.figure("steal_share", steal).figure("others_share", others).figure("waited_share", waited);
    let most = percent(worst_share);
    let [steal, others, waited] = [steal, others, waited].map(percent);
    Some(warning.figure("worst", worst).figure("worst_share", worst_share).told(
        format!("the machine was shared during {marked} of {of_all}: others had up to {most} of it"),
        format!(
            "Others had more than 5 % of the machine during {marked} of {of_all}, most ({most}) during {worst}. Over all of them the \
             hypervisor took {steal} of the ranks' CPUs (steal), other programs used {others}, and ranks that were ready \
             waited {waited} of the time for a CPU."
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two CPUs watched for ten seconds.
    fn share(steal_seconds: f64, others_seconds: f64, waited_seconds: f64) -> MachineShare {
        MachineShare {
            host: "a".into(),
            cpus: 2,
            watched_seconds: 10.0,
            cpu_seconds: 20.0,
            steal_seconds,
            others_seconds,
            waited_seconds: Some(waited_seconds),
            ..MachineShare::default()
        }
    }

    #[test]
    fn a_twentieth_is_the_bound_of_each() {
        for (of, shared) in [
            (share(0.99, 0.99, 0.49), false),
            (share(1.01, 0.0, 0.0), true),
            (share(0.0, 1.01, 0.0), true),
            (share(0.0, 0.0, 0.51), true),
            (MachineShare { kernel_seconds: 20.0, ..share(0.0, 0.0, 0.0) }, false),
        ] {
            assert_eq!(is_shared([&of]), shared, "{of:?}");
        }
    }

    #[test]
    fn a_few_ticks_and_waking_up_say_nothing() {
        let short = |steal_seconds, waited_seconds| MachineShare {
            watched_seconds: 0.01,
            cpu_seconds: 0.02,
            ..share(steal_seconds, steal_seconds, waited_seconds)
        };
        assert!(!is_shared([&short(0.02, 0.0009)]));
        assert!(is_shared([&short(0.03, 0.0)]));
        assert!(is_shared([&short(0.0, 0.0011)]));
    }

    #[test]
    fn not_known_is_not_shared_and_has_no_share() {
        let silent = MachineShare { cpu_seconds: 0.0, waited_seconds: None, ..share(0.0, 0.0, 0.0) };
        assert_eq!(shares([&silent]), None);
        assert_eq!(shares([]), None);
        // What is known of some counts by their time alone.
        let both = [silent, share(0.0, 0.0, 1.0)];
        assert_eq!(shares(&both).map(|s| s.waited), Some(0.1));
    }

    #[test]
    fn the_warning_has_the_sum_and_the_worst() {
        let shared = [share(4.0, 0.0, 0.0), share(0.0, 0.0, 0.0), share(0.0, 3.0, 0.0)];
        let named = |of: &'static str| shared.iter().map(move |s| (format!("{of} {}", s.steal_seconds), Some(s)));
        let known = named("pattern").chain([("not known".to_owned(), None)]);
        let expected = serde_json::json!({
            "noun": "pattern run", "marked": 2, "of": 3, "steal_share": 4.0 / 60.0, "others_share": 3.0 / 60.0,
            "waited_share": 0.0, "worst": "pattern 4", "worst_share": 0.2,
        });
        assert_eq!(serde_json::json!(warning("pattern run", known).unwrap().figures), expected);
        assert_eq!(warning("pattern run", named("pattern").skip(1).take(1)), None);
        assert_eq!(warning("pattern run", std::iter::empty()), None);
    }
}
