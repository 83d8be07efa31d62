//! What a user of b_eff reads on stdout: the machine in a few lines, the values, the patterns, the curve, other systems;
//! then what must be known about them, what it cost, and how the run was set up; the result in one line at the end.

mod bare;
mod closing;
mod costs;
mod details;
pub(super) mod header;
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
    let wrong_data = "DATA CORRUPTION: messages received were not the messages sent; see below.";
    ending::banner(&mut page, result, wrong_data);
    header::write(&mut page, result, derived);
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
    ending::troubles(&mut page, result, derived, &troubles::corruption(result));
    bare::write(&mut page, derived);
    costs::write(&mut page, result);
    setup::write(&mut page, result);
    closing::end(&mut page, result, derived);
    page.finish()
}

fn validity(page: &mut Page, derived: &CommDerived) {
    page.heading("Validity for comparison with other systems");
    page.line(format!("  b_eff: {}", criteria::verdict(&derived.criteria)));
    criteria::missing_first(page, derived.criteria.iter());
}

#[cfg(test)]
mod tests;
