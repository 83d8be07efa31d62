//! Derived values of b_eff (paper section 4). Pure functions of the records.
//!
//! The bandwidth of a loop is L * messages of all ranks * iterations / time of the slowest rank. That of a size is the one of
//! the best method and repetition; S of a pattern is its mean over the 21 sizes; then
//!
//! b_eff = logavg(logavg of S over the six rings, logavg of S over the random rings), logavg the geometric mean.
//!
//! The paper also interprets the number as an area: with the sizes on an abscissa of two logarithmic parts (12 intervals up to
//! 4 kB, 8 from there to Lmax) the mean is about the area under the curve, so b_eff = N * asymptotic bandwidth * area of the
//! curve scaled to 1. It is not used here.
//!
//! There is a value only if every pattern of the average has all sizes; with fewer than 30 random rings, announced before the
//! run ([`MeasurementEffort`](crate::b_eff::records::MeasurementEffort)), the value is not valid.

mod average;
mod bare;
mod curve;
mod definition;
mod estimates;
#[cfg(test)]
pub(crate) mod fixture;
mod identical;
pub mod kinds;
mod message_source;
mod rate;
pub mod standout;
mod validity;
mod value;
mod warning;

pub use average::{logavg, SizeAverage};
pub use bare::BareValue;
pub use curve::{widest_interval, MethodPoint, PatternCurve, SizePoint};
pub use definition::{all_efforts, DEFINED_RANDOM_RINGS, DEFINED_RINGS, DEFINED_SIZES};
pub use estimates::{RateEstimate, ValueEstimates};
pub use message_source::MessageSource;
pub use rate::bytes_per_second;
pub use validity::{single_sizes, MAX_ITERATIONS, MIN_LOOP_SECONDS, SINGLE_METHOD_ALLOWED_FROM};
pub use value::{AggregateBandwidth, CommValue, Latencies, MethodValue};

use schemars::JsonSchema;
use serde::Serialize;

use crate::b_eff::plan::PatternFamily;
use crate::b_eff::records::CommResult;
use crate::frame::records::Warning;
use crate::frame::values::Criterion;

/// Everything derived from one result of b_eff.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CommDerived {
    /// Source of the messages.
    pub messages_from: MessageSource,
    /// The values of the run.
    pub value: CommValue,
    /// Values by one method alone, in the order of the paper.
    pub methods: Vec<MethodValue>,
    /// Averages over the patterns by size.
    pub sizes: Vec<SizeAverage>,
    /// Curves of the patterns in the order of measurement.
    pub curves: Vec<PatternCurve>,
    /// Comparison with bare loops, if measured.
    pub bare: Vec<BareValue>,
    /// True if all criteria are met.
    pub valid: bool,
    /// Criteria for a value that is comparable with other systems.
    pub criteria: Vec<Criterion>,
    /// Warnings of the run and those that follow from the records.
    pub warnings: Vec<Warning>,
}

impl CommDerived {
    /// Curve of a pattern, if measured.
    #[must_use]
    pub fn curve(&self, pattern: &str) -> Option<&PatternCurve> {
        self.curves.iter().find(|c| c.pattern == pattern)
    }

    /// Curves of a family in the order of measurement.
    pub fn family(&self, family: PatternFamily) -> impl Iterator<Item = &PatternCurve> {
        self.curves.iter().filter(move |c| c.family == family)
    }
}

/// Derives the values of a result, complete or not.
#[must_use]
pub fn derive(result: &CommResult) -> CommDerived {
    let curves: Vec<PatternCurve> = result.patterns.iter().map(|p| curve::derive_curve(p, result)).collect();
    let random_rings = definition::required_random_rings(result);
    let criteria = validity::criteria(result, &curves);
    let value = value::derive_value(result, &curves, random_rings);
    CommDerived {
        messages_from: message_source::derive_source(result),
        methods: value::values_by_method(result, &curves, random_rings),
        sizes: average::averages_by_size(result, &curves, random_rings),
        valid: criteria.iter().all(|c| c.met),
        criteria,
        warnings: warning::warnings(result, &curves, &value),
        value,
        bare: result.bare.iter().filter_map(|record| bare::derive_bare(record, result.setup.machine.ranks)).collect(),
        curves,
    }
}

#[cfg(test)]
mod tests;
