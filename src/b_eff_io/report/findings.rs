//! What stands out, in words.

use crate::b_eff_io::values::standout::{Against, Cause, Finding};
use crate::b_eff_io::values::Part;
use crate::frame::report::text::{figure, percent};

use super::layout::chunk_label;

/// Smaller shares of a difference explain nothing.
const SHARE: f64 = 0.5;

/// `rewrite, 1 kB, shared: mpiio 1542 times slower than mmap (434 to 5473), 96 % of it sync`.
pub(super) fn sentence(f: &Finding, several: bool) -> String {
    let what = match f.chunk_bytes {
        Some(bytes) => {
            format!("{}, {}, {}", f.access.name(), chunk_label(bytes), f.pattern_type.descriptor().short_name)
        }
        None => format!("{}, {}", f.access.name(), f.pattern_type.descriptor().short_name),
    };
    let backend = if several { format!("{} ", f.backend) } else { String::new() };
    let against = match &f.against {
        Against::Backend(best) => best.clone(),
        Against::Aligned => {
            f.chunk_bytes.map_or_else(String::new, |bytes| format!("{} aligned", chunk_label(bytes - 8)))
        }
        Against::Type(t) => t.descriptor().short_name.to_owned(),
    };
    // One digit more where the ends would look the same.
    let ends = f.interval.map(|i| match [figure(i.low), figure(i.high)] {
        [low, high] if low == high => [format!("{:.1}", i.low), format!("{:.1}", i.high)],
        ends => ends,
    });
    let interval = ends.map(|[low, high]| format!(" ({low} to {high})")).unwrap_or_default();
    let few = if f.few_calls { "; from few calls" } else { "" };
    format!("{what}: {backend}{} times slower than {against}{interval}{}{few}", figure(f.factor), cause(f.cause))
}

fn cause(cause: Option<Cause>) -> String {
    match cause {
        Some(Cause::ReadToWrite(times)) => format!("; {} bytes were read for each byte written", figure(times)),
        Some(Cause::Part(part, share)) if share >= SHARE => format!("; {} of that {}", percent(share), place(part)),
        _ => String::new(),
    }
}

/// Where time goes, in words that need no legend.
fn place(part: Part) -> &'static str {
    match part {
        Part::Open => "in opening files",
        Part::View => "in setting the file view",
        Part::Room => "in making the file longer",
        Part::Transfer => "in the calls themselves",
        Part::Decide => "in waiting for other ranks",
        Part::Sync => "in sync to the storage",
        Part::Close => "in closing files",
    }
}
