//! What fits into the time limit of a run: before it, the T that fits; during it, the parts to omit. Arithmetic on numbers of rank 0.

use crate::b_eff_io::config::{Config, RepeatPolicy, Verify};
use crate::frame::records::OmittedPart;

/// Expected time of a run as a multiple of its scheduled time: opening, syncs beyond their pattern, verification, removal of files.
const EXPECTED_FACTOR: f64 = 1.2;

/// Part of the scheduled time after which the ratio of real to scheduled time is known.
const KNOWN_SHARE: f64 = 0.05;

/// T that fits into `available_seconds`, in whole seconds, if a run of `planned_seconds` with `time_seconds` does not.
#[must_use]
pub fn fitting_time_seconds(time_seconds: f64, planned_seconds: f64, available_seconds: f64) -> Option<f64> {
    let expected_seconds = EXPECTED_FACTOR * planned_seconds;
    let fits = expected_seconds <= available_seconds;
    (!fits).then(|| (time_seconds * available_seconds.max(0.0) / expected_seconds).floor())
}

/// The parts of a run that can be omitted, in this order.
#[must_use]
pub fn omissible_parts(config: &Config, writes_files: bool) -> Vec<OmittedPart> {
    let parts = [
        (config.repeat != RepeatPolicy::Off, OmittedPart::Repetitions),
        (config.rounds > 1, OmittedPart::Rounds),
        (config.verify == Verify::Sample && writes_files, OmittedPart::VerificationSamples),
    ];
    parts.into_iter().filter_map(|(exists, part)| exists.then_some(part)).collect()
}

/// Progress of the first measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LimitProgress {
    /// Real time since the last omission, or since the start of the patterns.
    pub real_seconds: f64,
    /// Scheduled time of the patterns completed in it.
    pub done_seconds: f64,
    /// Scheduled time of the patterns that are left.
    pub remaining_seconds: f64,
    /// Scheduled time of all patterns.
    pub all_seconds: f64,
    /// Time until the run must end.
    pub left_seconds: f64,
}

impl LimitProgress {
    /// Expected time of the patterns that are left. At first, and directly after an omission, nothing is known but their scheduled time.
    fn expected_seconds(&self) -> f64 {
        let is_known = self.done_seconds > KNOWN_SHARE * self.all_seconds;
        self.remaining_seconds * if is_known { self.real_seconds / self.done_seconds } else { 1.0 }
    }

    /// Number of `parts` to omit from now on, if `omitted` are already: the next one that the first measurement contains. Repetitions
    /// follow it, so that their omission does not help it.
    #[must_use]
    pub fn omissions(&self, parts: &[OmittedPart], omitted: usize) -> usize {
        if self.remaining_seconds <= 0.0 || self.expected_seconds() <= self.left_seconds {
            return omitted;
        }
        let next = parts[omitted..].iter().position(|part| *part != OmittedPart::Repetitions);
        next.map_or(parts.len(), |next| omitted + next + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use OmittedPart::{Repetitions, Rounds, VerificationSamples};

    #[test]
    fn the_time_that_fits_is_less_than_the_limit() {
        // Two backends with T = 900 s: 36 min.
        assert_eq!(fitting_time_seconds(900.0, 1800.0, 2160.0), None);
        assert_eq!(fitting_time_seconds(900.0, 1800.0, 2159.0), Some(899.0));
        assert_eq!(fitting_time_seconds(900.0, 1800.0, 180.0), Some(75.0));
        assert_eq!(fitting_time_seconds(60.0, 60.0, -1.0), Some(0.0));
        // What is advised fits.
        for available in [5.0, 100.0, 1234.5] {
            let advised = fitting_time_seconds(900.0, 1800.0, available).unwrap();
            assert_eq!(fitting_time_seconds(advised, 2.0 * advised, available), None, "{available}");
        }
    }

    const ALL: [OmittedPart; 3] = [Repetitions, Rounds, VerificationSamples];

    fn progress(done: f64, real: f64, left: f64) -> LimitProgress {
        LimitProgress {
            real_seconds: real,
            done_seconds: done,
            remaining_seconds: 100.0 - done,
            all_seconds: 100.0,
            left_seconds: left,
        }
    }

    #[test]
    fn a_run_that_fits_omits_nothing() {
        assert_eq!(progress(0.0, 0.0, 101.0).omissions(&ALL, 0), 0);
        assert_eq!(progress(50.0, 55.0, 56.0).omissions(&ALL, 0), 0);
        // Reads end early: the rest takes less than scheduled.
        assert_eq!(progress(50.0, 25.0, 25.0).omissions(&ALL, 0), 0);
        assert_eq!(progress(100.0, 300.0, -5.0).omissions(&ALL, 0), 0, "nothing is left");
    }

    #[test]
    fn parts_are_omitted_one_after_the_other() {
        assert_eq!(progress(0.0, 0.0, 99.0).omissions(&ALL, 0), 2, "repetitions alone do not help");
        assert_eq!(progress(0.0, 0.0, 101.0).omissions(&ALL, 2), 2, "the effect is not known yet");
        assert_eq!(progress(0.0, 0.0, 99.0).omissions(&ALL, 2), 3, "not even the schedule fits");
        assert_eq!(progress(20.0, 23.0, 91.0).omissions(&ALL, 2), 3);
        assert_eq!(progress(20.0, 22.0, 89.0).omissions(&ALL, 2), 2);
        assert_eq!(progress(20.0, 40.0, 10.0).omissions(&ALL, 3), 3, "nothing else can be omitted");
        for parts in [&ALL[..1], &ALL[..2], &ALL[2..], &[Repetitions, VerificationSamples]] {
            let most = progress(0.0, 0.0, 1.0).omissions(parts, 0);
            assert_eq!(most, parts.len(), "{parts:?}");
            assert_eq!(progress(0.0, 0.0, 1.0).omissions(parts, most), most);
        }
        assert_eq!(progress(0.0, 0.0, 1.0).omissions(&[], 0), 0);
    }
}
