//! Derived values of IMB-IO. Pure functions of the records.
//!
//! Mbytes/sec is X / t_max / 1e6, X the size of the sample over all ranks of a group. That holds for private files (P_*_Priv)
//! too: the parts that the ranks move add up to X. A row that is not complete has no times and no bandwidth.

mod bare;
#[cfg(test)]
pub(crate) mod fixture;
pub mod kinds;
mod repeated;
mod row;
pub mod standout;
mod verdict;
mod warning;

pub use bare::ImbBareValue;
pub use repeated::RepeatedRow;
pub use row::{GroupValue, RowValue};
pub use verdict::{ImbVerdict, Verdict};

use schemars::JsonSchema;
use serde::Serialize;

use crate::frame::records::Warning;
use crate::imb_io::records::ImbResult;

/// Everything derived from one result of IMB-IO.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ImbDerived {
    /// Row by row, in the order of the records.
    pub rows: Vec<RowValue>,
    /// Our loops beside bare ones, if measured.
    pub bare: Vec<ImbBareValue>,
    /// Whether the run is whole and its data right.
    pub verdict: ImbVerdict,
    /// Warnings of the run and those that follow from the records.
    pub warnings: Vec<Warning>,
}

/// Derives everything from one result, also from one that ended early.
#[must_use]
pub fn derive(result: &ImbResult) -> ImbDerived {
    let rows: Vec<RowValue> = {
        let again = repeated::by_row(result);
        result.rows.iter().zip(&again).map(|(record, again)| row::of(result, record, again)).collect()
    };
    let verdict = verdict::of(result);
    ImbDerived {
        warnings: warning::warnings(result, &rows, &verdict),
        bare: result.bare.iter().filter_map(bare::of).collect(),
        verdict,
        rows,
    }
}

#[cfg(test)]
mod tests;
