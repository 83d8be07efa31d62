//! What stands out, in words.

use crate::frame::report::text::{count, figure, percent};
use crate::replay::values::standout::{Cause, Finding, Kind};

/// `write, collective, posix: 2.3 times slower than recorded, 61 % of the time; direct: past the page cache`.
pub(super) fn sentence(finding: &Finding, several: bool) -> String {
    let backend = if several { format!(", {}", finding.backend) } else { String::new() };
    let (factor, share) = (figure(finding.factor), percent(finding.share));
    match &finding.kind {
        Kind::Class { class, cause } => {
            let speed = match finding.factor {
                f if f < 1.0 => format!("{} times slower", figure(1.0 / f)),
                _ => format!("{factor} times faster"),
            };
            format!("{}{backend}: {speed} than recorded, {share} of the time{}", class.name(), why(cause.as_ref()))
        }
        Kind::Backend { class, best } => {
            format!("{}: {} {factor} times slower than {best}, {share} of its time", class.name(), finding.backend)
        }
        Kind::Process { rank, recorded } => format!(
            "process {rank}{backend}: {factor} times the time of the median process; {} times when recorded",
            figure(*recorded)
        ),
        Kind::Cost { class, recorded_share } => format!(
            "{}{backend}: {share} of the time, and moves nothing; {} when recorded, now {factor} times as long",
            class.name(),
            percent(*recorded_share)
        ),
    }
}

fn why(cause: Option<&Cause>) -> String {
    let Some(cause) = cause else { return String::new() };
    let text = match cause {
        Cause::OtherResults(calls) => format!("{} had another result", count(*calls, "call")),
        Cause::Caches(then, now) => {
            format!("{} of what was read came from storage then, {} now", percent(*then), percent(*now))
        }
        Cause::Direct => "direct I/O, past the page cache".to_owned(),
        Cause::MachineShared(share) => format!("others had {} of the machine", percent(*share)),
        Cause::Compared => "comparing data warms and cools caches: see --verify=off".to_owned(),
        Cause::NoPauses => "without the program's pauses storage has no time to catch up: see --pace think".to_owned(),
    };
    format!("; {text}")
}
