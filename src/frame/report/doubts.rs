//! Texts of the evidence that a run decides nothing.

use super::text::percent;
use crate::frame::records::RunOutcome;
use crate::frame::values::doubt::Doubt;
use crate::frame::values::interference::INTERFERENCE_THRESHOLD;

/// What is said of the run: `was shared: other processes used 23 % of the CPUs`.
#[must_use]
pub fn doubt_text(doubt: &Doubt) -> String {
    match doubt {
        Doubt::Shared { other_process_share, steal_share } => {
            let shares = [
                (*other_process_share, "other processes used", "of the CPUs"),
                (*steal_share, "steal time was", "of the CPU time"),
            ];
            let above = shares.iter().filter(|(share, ..)| *share > INTERFERENCE_THRESHOLD);
            let texts: Vec<String> =
                above.map(|(share, what, of)| format!("{what} {} {of}", percent(*share))).collect();
            format!("was shared: {}", texts.join(", "))
        }
        Doubt::Cut { outcome } => match outcome {
            RunOutcome::Complete => "is complete",
            RunOutcome::Limit => "was ended by its time limit",
            RunOutcome::Interrupted => "was interrupted",
            RunOutcome::Failed => "was ended by an error",
            RunOutcome::Killed => "was killed",
        }
        .to_owned(),
        Doubt::StorageDrift { access, ratio } => {
            format!("was on storage that drifted: {access} at its end {ratio:.2} times as fast as at its start")
        }
        Doubt::TooShort { factor } => {
            format!("was too short: within it the value is known to a factor of {factor:.1} only")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_stated_with_its_figure() {
        let shared = |other_process_share, steal_share| Doubt::Shared { other_process_share, steal_share };
        for (doubt, text) in [
            (shared(0.23, 0.05), "was shared: other processes used 23 % of the CPUs"),
            (shared(0.0, 0.12), "was shared: steal time was 12 % of the CPU time"),
            (
                shared(0.4, 0.3),
                "was shared: other processes used 40 % of the CPUs, steal time was 30 % of the CPU time",
            ),
            (Doubt::Cut { outcome: RunOutcome::Killed }, "was killed"),
            (
                Doubt::StorageDrift { access: "read".into(), ratio: 0.704 },
                "was on storage that drifted: read at its end 0.70 times as fast as at its start",
            ),
            (Doubt::TooShort { factor: 3.21 }, "was too short: within it the value is known to a factor of 3.2 only"),
        ] {
            assert_eq!(doubt_text(&doubt), text);
        }
    }
}
