//! Derived values of b_eff (paper section 4). Pure functions of the records.
//!
//! The bandwidth of a loop is L * messages of all ranks * iterations / time of the slowest rank. Of a size counts the best
//! method of the best repetition; S of a pattern is the mean of that over the 21 sizes; then
//!
//! b_eff = logavg(logavg of S over the six rings, logavg of S over the random rings), logavg the geometric mean.
//!
//! The paper reads the same number in another way: with the sizes on an abscissa of two logarithmic parts (12 intervals up
//! to 4 kB, 8 from there to Lmax) the mean is about the area under the curve, so b_eff = N * asymptotic bandwidth * that
//! area, of a curve scaled to 1. Nothing here needs it.
//!
//! There is a value only if every pattern it is made of has all its sizes; fewer random rings than 30, announced before
//! the run ([`Effort`](crate::b_eff::records::Effort)), give a value that is not valid.

mod average;
mod bare;
mod buffers;
mod curve;
mod definition;
#[cfg(test)]
pub(crate) mod fixture;
mod identical;
pub mod kinds;
mod rate;
mod repeated;
pub mod standout;
mod validity;
mod value;
mod warning;

pub use average::{logavg, SizeAverage};
pub use bare::BareValue;
pub use buffers::MessagesFrom;
pub use curve::{widest, Curve, MethodPoint, Point};
pub use definition::{efforts, RANDOM_RINGS, RINGS, SIZES};
pub use rate::bytes_per_second;
pub use repeated::{RepeatedRate, RepeatedValue};
pub use validity::{single_sizes, FREELY_SINGLE_FROM, LOOP_SECONDS, MOST_ITERATIONS};
pub use value::{CommValue, Latencies, Level, MethodValue};

use schemars::JsonSchema;
use serde::Serialize;

use crate::b_eff::plan::Family;
use crate::b_eff::records::CommResult;
use crate::frame::records::Warning;
use crate::frame::values::Criterion;

/// Everything derived from one result of b_eff.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CommDerived {
    /// Where the messages came from.
    pub messages_from: MessagesFrom,
    /// The values of the run.
    pub value: CommValue,
    /// The same by one method alone, in the order of the paper.
    pub methods: Vec<MethodValue>,
    /// Averages over the patterns, size by size.
    pub sizes: Vec<SizeAverage>,
    /// Pattern by pattern, in the order of measurement.
    pub curves: Vec<Curve>,
    /// Our loops beside bare ones, if measured.
    pub bare: Vec<BareValue>,
    /// All criteria met.
    pub valid: bool,
    /// What makes a value comparable with those of other systems.
    pub criteria: Vec<Criterion>,
    /// Warnings of the run and those that follow from the records.
    pub warnings: Vec<Warning>,
}

impl CommDerived {
    /// The curve of a pattern, if it was reached.
    #[must_use]
    pub fn curve(&self, pattern: &str) -> Option<&Curve> {
        self.curves.iter().find(|c| c.pattern == pattern)
    }

    /// The curves of a family in the order of measurement.
    pub fn family(&self, family: Family) -> impl Iterator<Item = &Curve> {
        self.curves.iter().filter(move |c| c.family == family)
    }
}

/// Derives everything from one result, also from one that ended early.
#[must_use]
pub fn derive(result: &CommResult) -> CommDerived {
    let curves: Vec<Curve> = result.patterns.iter().map(|p| curve::of(p, result)).collect();
    let random_rings = definition::random_rings_wanted(result);
    let criteria = validity::criteria(result, &curves);
    let value = value::of(result, &curves, random_rings);
    CommDerived {
        messages_from: buffers::of(result),
        methods: value::by_method(result, &curves, random_rings),
        sizes: average::by_size(result, &curves, random_rings),
        valid: criteria.iter().all(|c| c.met),
        criteria,
        warnings: warning::warnings(result, &curves, &value),
        value,
        bare: result.bare.iter().filter_map(|record| bare::of(record, result.setup.machine.ranks)).collect(),
        curves,
    }
}

#[cfg(test)]
mod tests;
