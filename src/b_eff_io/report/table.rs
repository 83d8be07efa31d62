//! What a user reads on stdout: the machine in a few lines, the tables and the values; then what must be known about
//! them, what it cost, and how the run was set up; the result in one line at the end.

mod classic;
mod closing;
mod costs;
mod details;
mod evidence;
mod first_writes;
pub(super) mod header;
mod ladder;
mod latency;
mod program;
mod queue;
mod setup;
mod side_by_side;
mod troubles;
pub(super) mod validity;
pub(super) mod values;

use crate::b_eff_io::records::RunResult;
use crate::b_eff_io::report::layout::measuring;
use crate::b_eff_io::values::Derived;
use crate::frame::report::ending;
use crate::frame::report::text::Page;

/// The report of one run, no line wider than [`crate::frame::report::text::WIDTH`]. With `details` every pattern gets a line of its
/// own, with the parts of its time and the calls used.
#[must_use]
pub fn table(result: &RunResult, derived: &Derived, details: bool) -> String {
    let mut page = Page::default();
    let wrong_data = "DATA CORRUPTION: the storage did not give back what was written; see below.";
    ending::banner(&mut page, result, wrong_data);
    header::write(&mut page, result, derived);
    if measuring(result).count() > 1 {
        for partition in &result.partitions {
            side_by_side::write(&mut page, result, derived, partition, details);
            ladder::write(&mut page, result, derived, partition);
        }
    }
    for partition in &result.partitions {
        for backend in measuring(result) {
            classic::write(&mut page, result, derived, backend, partition);
        }
    }
    latency::write(&mut page, result);
    values::write(&mut page, result, derived);
    validity::write(&mut page, result, derived);
    ending::troubles(&mut page, result, derived, &troubles::corruption(result));
    if details {
        for partition in &result.partitions {
            for backend in &result.config.backends {
                details::write(&mut page, result, derived, backend, partition);
                evidence::write(&mut page, result, backend, partition);
            }
        }
        queue::write(&mut page, result);
    }
    costs::write(&mut page, result, derived);
    program::write(&mut page, result);
    setup::write(&mut page, result);
    closing::end(&mut page, result, derived);
    page.finish()
}

#[cfg(test)]
mod tests;
