//! What a user of IMB-IO reads on stdout: the machine in a few lines; the rows, the columns of the release first and then
//! ours; corruption, errors and warnings; bare loops; what it cost; how it was set up; the verdict in one line at the end.

mod bare;
mod closing;
mod costs;
pub(super) mod header;
mod rows;
mod setup;
mod troubles;

use crate::frame::report::ending;
use crate::frame::report::text::Page;
use crate::imb_io::records::ImbResult;
use crate::imb_io::values::ImbDerived;

pub(super) use super::table::closing::{rows_by_end, verdict};

/// The report of one run. Text is no wider than [`crate::frame::report::text::WIDTH`]; the tables of the rows, with the columns of
/// the release and ours, may be. With `details` also sync, bytes, sources and calls of each row.
#[must_use]
pub fn table(result: &ImbResult, derived: &ImbDerived, details: bool) -> String {
    let mut page = Page::default();
    ending::banner(&mut page, result, "WRONG DATA: bytes read were not the bytes written; see below.");
    header::write(&mut page, result);
    rows::write(&mut page, result, derived, details);
    ending::troubles(&mut page, result, derived, &troubles::corruption(result, derived));
    bare::write(&mut page, derived);
    costs::write(&mut page, result, derived);
    setup::write(&mut page, result);
    closing::end(&mut page, result, derived);
    page.finish()
}

#[cfg(test)]
mod tests;
