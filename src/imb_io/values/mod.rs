//! Derived values of IMB-IO. Pure functions of the records.
//!
//! Mbytes/sec is X / t_max / 1e6, with X the size of the sample over all ranks of a group, also for private files (P_*_Priv):
//! the portions of the ranks add up to X. A row that is not complete has no times and no bandwidth.

mod bare;
#[cfg(test)]
pub(crate) mod fixture;
pub mod kinds;
mod repeated;
mod row;
pub mod standout;
mod variants;
mod verdict;
mod warning;

pub use bare::ImbBareValue;
pub use repeated::RepeatedRow;
pub use row::{GroupValue, RowValue};
pub use variants::ImbVariant;
pub use verdict::{ImbVerdict, VerificationVerdict};

use schemars::JsonSchema;
use serde::Serialize;

use crate::frame::records::Warning;
use crate::imb_io::records::ImbResult;

/// Everything derived from one result of IMB-IO.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ImbDerived {
    /// Values of the rows, in the order of the records.
    pub rows: Vec<RowValue>,
    /// Variants compared with their backends: all rows, each benchmark, each size.
    pub variants: Vec<ImbVariant>,
    /// Comparison with bare loops, if measured.
    pub bare: Vec<ImbBareValue>,
    /// Completeness of the run and correctness of its data.
    pub verdict: ImbVerdict,
    /// Warnings of the run and those derived from the records.
    pub warnings: Vec<Warning>,
}

/// Derives all values of a result, also of an incomplete one.
#[must_use]
pub fn derive(result: &ImbResult) -> ImbDerived {
    let rows: Vec<RowValue> = {
        let again = repeated::by_row(result);
        result.rows.iter().zip(&again).map(|(record, again)| row::of(result, record, again)).collect()
    };
    let verdict = verdict::of(result);
    ImbDerived {
        warnings: warning::warnings(result, &rows, &verdict),
        variants: variants::variants(result),
        bare: result.bare.iter().filter_map(bare::of).collect(),
        verdict,
        rows,
    }
}

#[cfg(test)]
mod tests;
