//! Findings in words.

use crate::frame::report::text::{count, figure, percent};
use crate::replay::values::standout::{DeviationCause, DeviationKind, Finding};

/// `write, collective, posix: 2.3 times slower than recorded, 61 % of the time; direct: past the page cache`.
pub(super) fn finding_text(finding: &Finding, several: bool) -> String {
    let backend = if several { format!(", {}", finding.backend) } else { String::new() };
    let (factor, share) = (figure(finding.factor), percent(finding.share));
    match &finding.kind {
        DeviationKind::Class { class, cause } => {
            let speed = match finding.factor {
                f if f < 1.0 => format!("{} times slower", figure(1.0 / f)),
                _ => format!("{factor} times faster"),
            };
            format!(
                "{}{backend}: {speed} than recorded, {share} of the time{}",
                class.name(),
                cause_text(cause.as_ref())
            )
        }
        DeviationKind::Backend { class, best } => {
            format!("{}: {} {factor} times slower than {best}, {share} of its time", class.name(), finding.backend)
        }
        DeviationKind::Process { rank, recorded } => format!(
            "process {rank}{backend}: {factor} times the time of the median process; {} times when recorded",
            figure(*recorded)
        ),
        DeviationKind::Cost { class, recorded_share } => format!(
            "{}{backend}: {share} of the time, without data; {} when recorded, now {factor} times as long",
            class.name(),
            percent(*recorded_share)
        ),
    }
}

fn cause_text(cause: Option<&DeviationCause>) -> String {
    let Some(cause) = cause else { return String::new() };
    let text = match cause {
        DeviationCause::OtherResults(calls) => format!("{} had another result", count(*calls, "call")),
        DeviationCause::StorageReads(then, now) => {
            format!("{} of what was read came from storage when recorded, {} now", percent(*then), percent(*now))
        }
        DeviationCause::Direct => "direct I/O, past the page cache".to_owned(),
        DeviationCause::Interference(share) => format!("interference: up to {} of the CPU time lost", percent(*share)),
        DeviationCause::NoPauses => {
            "without the recorded pauses storage cannot write back in time: see --pace think".to_owned()
        }
    };
    format!("; {text}")
}
