//! What a user of b_eff reads on stdout: the machine in a few lines, the values, the patterns, the curve, other systems;
//! then what must be known about them, what it cost, and how the run was set up; the result in one line at the end.

mod bare;
mod closing;
mod costs;
mod details;
mod header;
mod patterns;
mod published;
mod setup;
mod sizes;
mod troubles;
mod values;

use crate::b_eff::records::CommResult;
use crate::b_eff::values::CommDerived;
use crate::frame::report::text::Page;
use crate::frame::report::{criteria, ending};

/// The report of one run, no line wider than [`crate::frame::report::text::WIDTH`]. With `details` the curve of every pattern by
/// each method.
#[must_use]
pub fn table(result: &CommResult, derived: &CommDerived, details: bool) -> String {
    let mut page = Page::default();
    closing::banner(&mut page, result);
    header::write(&mut page, result);
    values::write(&mut page, result, derived);
    values::methods(&mut page, derived);
    patterns::average(&mut page, derived);
    patterns::others(&mut page, derived);
    sizes::write(&mut page, derived);
    if details {
        details::write(&mut page, derived);
    }
    published::write(&mut page, result, derived);
    validity(&mut page, derived);
    troubles::corruptions(&mut page, result);
    ending::errors(&mut page, &result.errors);
    troubles::warnings(&mut page, result, derived);
    bare::write(&mut page, derived);
    costs::write(&mut page, result);
    setup::write(&mut page, result);
    closing::end(&mut page, result, derived);
    page.finish()
}

fn validity(page: &mut Page, derived: &CommDerived) {
    page.heading("Validity for comparison with other systems");
    page.line(format!("  b_eff: {}", criteria::verdict(&derived.criteria)));
    // What is missing first: it is what the reader can change.
    criteria::lines(page, derived.criteria.iter().filter(|c| !c.met));
    criteria::lines(page, derived.criteria.iter().filter(|c| c.met));
}

/// Bandwidth in 1e6 bytes per second, right-aligned; `-` where there is none.
fn mb(bytes_per_second: Option<f64>, width: usize) -> String {
    bytes_per_second.map_or_else(
        || format!("{:>width$}", "-"),
        |rate| format!("{:>width$}", crate::frame::report::text::fit(rate / 1e6, width.saturating_sub(1))),
    )
}

/// A latency in microseconds, right-aligned.
fn microseconds(seconds: Option<f64>, width: usize) -> String {
    seconds.map_or_else(|| format!("{:>width$}", "-"), |s| format!("{:>width$.3}", s * 1e6))
}

/// A message size for a narrow column.
fn size(bytes: u64) -> String {
    crate::frame::units::format_size(bytes)
}

#[cfg(test)]
mod tests;
