//! PREFIX.sum: the summary file of release 2.1, identical in layout and spelling, including misspellings, since readers match them: they
//! read its columns or the third field of the line with `b_eff_io =`. Additional information is in lines that begin with `#`.

mod closing;
mod context;
mod head;
mod table;

use crate::b_eff_io::records::RunResult;
use crate::b_eff_io::values::Derived;
use crate::frame::report::text::TextPage;

use self::context::SummaryContext;

/// Summary of one backend: for each partition the table, the averages and the value; then the validity by release 2.1 and the
/// maximum over the partitions.
#[must_use]
pub fn summary(result: &RunResult, derived: &Derived, backend: &str) -> String {
    let mut page = TextPage::default();
    let of = SummaryContext { result, derived, backend };
    head::write(&mut page, of);
    for partition in &result.partitions {
        table::write(&mut page, of, partition);
        closing::values(&mut page, of, partition);
    }
    closing::validity(&mut page, of);
    closing::maximum(&mut page, of);
    page.finish()
}

#[cfg(test)]
mod structure_tests;
#[cfg(test)]
mod tests;
