//! Findings that stand out, in words.

use crate::b_eff_io::values::standout::{Baseline, Finding, FindingCause};
use crate::b_eff_io::values::TimePart;
use crate::frame::report::text::{figure, percent};

use super::layout::chunk_label;

/// Smallest share of a difference that explains it.
const MIN_CAUSE_SHARE: f64 = 0.5;

/// `rewrite, 1 kB, shared: mpiio 1542 times slower than mmap (1434 to 1673), 96 % of it sync`; with a wide interval `at least 434 times`.
pub(super) fn sentence(f: &Finding, several: bool) -> String {
    let what = match f.chunk_bytes {
        Some(bytes) => {
            format!("{}, {}, {}", f.access.name(), chunk_label(bytes), f.pattern_type.descriptor().short_name)
        }
        None => format!("{}, {}", f.access.name(), f.pattern_type.descriptor().short_name),
    };
    let backend = if several { format!("{} ", f.backend) } else { String::new() };
    let against = match &f.against {
        Baseline::Backend(best) => best.clone(),
        Baseline::Aligned => {
            f.chunk_bytes.map_or_else(String::new, |bytes| format!("{} aligned", chunk_label(bytes - 8)))
        }
        Baseline::Type(t) => t.descriptor().short_name.to_owned(),
    };
    // One more digit if the bounds would look equal.
    let is_wide = f.interval.is_some_and(|i| !i.is_resolved());
    let ends = f.interval.filter(|_| !is_wide).map(|i| match [figure(i.low), figure(i.high)] {
        [low, high] if low == high => [format!("{:.1}", i.low), format!("{:.1}", i.high)],
        ends => ends,
    });
    let interval = ends.map(|[low, high]| format!(" ({low} to {high})")).unwrap_or_default();
    let factor = match f.interval.filter(|_| is_wide) {
        Some(interval) => format!("at least {}", figure(interval.low)),
        None => figure(f.factor),
    };
    let few = if f.few_calls { "; from few calls" } else { "" };
    format!("{what}: {backend}{factor} times slower than {against}{interval}{}{few}", cause_text(f.cause))
}

fn cause_text(cause: Option<FindingCause>) -> String {
    match cause {
        Some(FindingCause::ReadToWrite(times)) => format!("; {} bytes were read for each byte written", figure(times)),
        Some(FindingCause::Part(part, share)) if share >= MIN_CAUSE_SHARE => {
            format!("; {} of that {}", percent(share), part_label(part))
        }
        _ => String::new(),
    }
}

fn part_label(part: TimePart) -> &'static str {
    match part {
        TimePart::Open => "in opening files",
        TimePart::View => "in setting the file view",
        TimePart::Preallocate => "in preallocation",
        TimePart::Transfer => "in the I/O calls",
        TimePart::Decide => "in waiting for other ranks",
        TimePart::Sync => "in sync to the storage",
        TimePart::Close => "in closing files",
    }
}
