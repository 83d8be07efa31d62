//! Measurements of chunks in another order, beside the definition: what is measured, and for how long.

use super::patterns::patterns;
use super::schedule::{is_rewritten, pattern_seconds};
use super::space::PartitionSpace;
use super::PatternSpec;
use crate::b_eff_io::config::{call_orders, CallOrder, ChunkOrder, Config, ReadShare, Release};
use crate::b_eff_io::pattern_type::PatternType;
use crate::frame::records::AccessMethod;

/// One type with one access method in one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderUnit {
    /// The order, and the share of reads.
    pub order: CallOrder,
    /// Rewrite or read; with reads and writes it is a rewrite.
    pub access: AccessMethod,
    /// Pattern type: one that [has orders](PatternType::has_orders).
    pub pattern_type: PatternType,
    /// Number of the write of the type in its partition, from 1; a read has one, too.
    pub generation: u32,
}

impl OrderUnit {
    /// Access method of the definition whose time it has: with reads and writes that of a read, because not every type is rewritten.
    #[must_use]
    pub fn timed_as(&self) -> AccessMethod {
        if self.order.mix.is_some() {
            AccessMethod::Read
        } else {
            self.access
        }
    }
}

/// The units in order: for each order all rewrites, then all reads, then all with both, so that reads do not follow the writes of their type.
#[must_use]
pub fn units(config: &Config) -> Vec<OrderUnit> {
    units_of((&config.orders, config.mix), &config.types, config.full_rewrite)
}

/// [`units`] of these settings.
#[must_use]
pub fn units_of(
    (orders, mix): (&[ChunkOrder], Option<ReadShare>),
    types: &[PatternType],
    full_rewrite: bool,
) -> Vec<OrderUnit> {
    let mut units = Vec::new();
    for order in call_orders(orders, mix) {
        let accesses: &[AccessMethod] =
            if order.mix.is_some() { &[AccessMethod::Rewrite] } else { &[AccessMethod::Rewrite, AccessMethod::Read] };
        for &access in accesses {
            let is_measured = |t: &&PatternType| {
                let is_defined = access == AccessMethod::Read || order.mix.is_some();
                t.has_orders() && (is_defined || is_rewritten(full_rewrite, **t))
            };
            for &pattern_type in types.iter().filter(is_measured) {
                let generation = units.len() as u32 + 1;
                units.push(OrderUnit { order, access, pattern_type, generation });
            }
        }
    }
    units
}

/// True for a pattern that is measured in other orders: one with time.
#[must_use]
pub fn is_ordered(spec: &PatternSpec) -> bool {
    spec.time_units > 0 && spec.pattern_type.has_orders()
}

/// Scheduled time of the units on all partitions, of one backend: for each pattern that of the definition.
#[must_use]
pub fn scheduled_seconds(
    units: &[OrderUnit],
    (release, full_rewrite): (Release, bool),
    partition_seconds: f64,
    partitions: &[PartitionSpace],
) -> f64 {
    let of_unit = |specs: &[PatternSpec], unit: &OrderUnit| {
        let own = specs.iter().filter(|spec| spec.pattern_type == unit.pattern_type && is_ordered(spec));
        own.map(|spec| pattern_seconds(release, full_rewrite, partition_seconds, spec, unit.timed_as())).sum::<f64>()
    };
    let of_partition = |part: &PartitionSpace| {
        let specs = patterns(part.m_part_bytes);
        units.iter().map(|unit| of_unit(&specs, unit)).sum::<f64>()
    };
    partitions.iter().map(of_partition).sum()
}
