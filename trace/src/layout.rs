//! Sizes, bounds and type maps of datatypes (MPI-4.0 chapter 5), computed without an MPI library.
//!
//! Libraries differ in the upper bound of types that need alignment padding, and in whether explicit bounds propagate to an enclosing
//! struct. [`BoundRules`] describes the behaviour observed with MPICH and Open MPI.

mod bounds;
mod byte_ranges;
mod construct;
mod segments;

use std::ops::Range;

pub use bounds::BoundRules;
pub use byte_ranges::{ByteRange, ByteRanges};
pub use construct::{TypeError, TypeFault, MAX_SEGMENTS};
pub use segments::TypeSegment;

use construct::TypeLayout;

use crate::types::Datatype;

/// Layouts of a dictionary of types. Methods take the number of a type and panic, like an index, if it is not in the dictionary.
#[derive(Clone, Debug, Default)]
pub struct TypeLayouts {
    layouts: Vec<Option<TypeLayout>>,
    rules: BoundRules,
}

impl TypeLayouts {
    /// Computes the layouts by the rules of the standard.
    ///
    /// # Errors
    /// The first type that has invalid arguments, precedes its inner types, exceeds 63 bits, or has too many segments.
    pub fn new(types: &[Datatype]) -> Result<Self, TypeError> {
        Self::with_rules(types, BoundRules::Standard)
    }

    /// Computes the layouts as the library did that created the types; `library` is the string of MPI_Get_library_version.
    ///
    /// # Errors
    /// As [`TypeLayouts::new`].
    pub fn for_library(types: &[Datatype], library: &str) -> Result<Self, TypeError> {
        Self::with_rules(types, BoundRules::for_library(library))
    }

    /// Computes the layouts by the given rules.
    ///
    /// # Errors
    /// As [`TypeLayouts::new`].
    pub fn with_rules(types: &[Datatype], rules: BoundRules) -> Result<Self, TypeError> {
        Ok(Self { layouts: construct::build_all(types, rules, Err)?, rules })
    }

    /// Computes all layouts that can be computed, by the rules of a library, and returns the errors of the others, whose layouts must not
    /// be accessed.
    #[must_use]
    pub fn for_library_lenient(types: &[Datatype], library: &str) -> (Self, Vec<TypeError>) {
        let (rules, mut refused) = (BoundRules::for_library(library), Vec::new());
        let list = construct::build_all(types, rules, |error| {
            refused.push(error);
            Ok(())
        });
        (Self { layouts: list.unwrap_or_default(), rules }, refused)
    }

    /// True if the type is in the dictionary and has a layout.
    #[must_use]
    pub fn is_known(&self, number: u32) -> bool {
        self.layouts.get(number as usize).is_some_and(Option::is_some)
    }

    /// Number of types.
    #[must_use]
    pub fn len(&self) -> usize {
        self.layouts.len()
    }

    /// True if there are no types.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.layouts.is_empty()
    }

    /// The rules by which the layouts were computed.
    #[must_use]
    pub fn rules(&self) -> BoundRules {
        self.rules
    }

    fn layout(&self, number: u32) -> &TypeLayout {
        match &self.layouts[number as usize] {
            Some(layout) => layout,
            None => panic!("type {number} has no layout: it could not be computed"),
        }
    }

    /// Bytes of data per element.
    #[must_use]
    pub fn size(&self, number: u32) -> u64 {
        self.layout(number).segments.size_bytes()
    }

    /// Extent in bytes; may be negative.
    #[must_use]
    pub fn extent(&self, number: u32) -> i64 {
        let bounds = self.layout(number).bounds;
        bounds.upper - bounds.lower
    }

    /// Lower bound in bytes.
    #[must_use]
    pub fn lower_bound(&self, number: u32) -> i64 {
        self.layout(number).bounds.lower
    }

    /// Displacement by which MPICH 4.0 moves the memory of an access: a lower bound set by MPI_Type_create_resized or MPI_LB that is not that
    /// of the data. Other libraries do not.
    #[must_use]
    pub fn moved_bytes(&self, number: u32) -> u64 {
        let lower = self.lower_bound(number);
        if lower == self.true_span(number).start {
            0
        } else {
            lower.unsigned_abs()
        }
    }

    /// True extent: from the first to the end of the last byte of data, relative to the address of the element. Empty for a type without
    /// data.
    #[must_use]
    pub fn true_span(&self, number: u32) -> Range<i64> {
        self.layout(number).segments.span()
    }

    /// True if a sequence of elements is one range of bytes that begins at the address of the first.
    #[must_use]
    pub fn is_contiguous(&self, number: u32) -> bool {
        self.segments(number).first().is_some_and(|piece| piece.displacement_bytes == 0)
            && byte_ranges::is_contiguous(self.segments(number), self.extent(number))
    }

    /// Data of one element in the order of the type map; adjacent segments are joined.
    #[must_use]
    pub fn segments(&self, number: u32) -> &[TypeSegment] {
        self.layout(number).segments.as_slice()
    }

    /// A range that contains all that [`TypeLayouts::byte_ranges`] yields for the same arguments; it may be larger than necessary. Empty at `base` for
    /// no bytes. None if an offset exceeds 63 bits, or if the type has no data.
    #[must_use]
    pub fn hull(&self, number: u32, first_byte: u64, bytes: u64, base: i64) -> Option<Range<i64>> {
        if bytes == 0 {
            return Some(base..base);
        }
        let (size, span) = (self.size(number), self.true_span(number));
        let last_byte = first_byte.checked_add(bytes - 1)?;
        let shift = |byte: u64| i128::from(byte.checked_div(size)?).checked_mul(i128::from(self.extent(number)));
        let (one, other) = (shift(first_byte)?, shift(last_byte)?);
        let place = |shift: i128, at: i64| {
            i64::try_from(shift.checked_add(i128::from(base))?.checked_add(i128::from(at))?).ok()
        };
        if byte_ranges::is_contiguous(self.segments(number), self.extent(number)) {
            let start = i64::try_from(i128::from(base) + i128::from(span.start) + i128::from(first_byte)).ok()?;
            return Some(start..start.checked_add_unsigned(bytes)?);
        }
        Some(place(one.min(other), span.start)?..place(one.max(other), span.end)?)
    }

    /// Number of packed bytes before an offset in an unbounded sequence of elements that begins at 0; None if they are not in ascending
    /// order, as file views require.
    #[must_use]
    pub fn data_bytes_before(&self, number: u32, offset: i64) -> Option<u64> {
        let extent = self.extent(number);
        if extent <= 0 || self.true_span(number).start < 0 {
            return None;
        }
        let Ok(offset) = u64::try_from(offset) else { return Some(0) };
        let (elements, rest) = (offset / extent.unsigned_abs(), offset % extent.unsigned_abs());
        let inside = |piece: &TypeSegment| {
            let begin = u64::try_from(piece.displacement_bytes).unwrap_or(0);
            rest.saturating_sub(begin).min(piece.bytes)
        };
        elements.checked_mul(self.size(number))?.checked_add(self.segments(number).iter().map(inside).sum())
    }

    /// Byte ranges of the packed bytes from `first_byte` on in an unbounded sequence of elements that begins at `base`, in the order of the
    /// data; adjacent ranges are joined. An offset beyond 63 bits ends the iteration early: check [`TypeLayouts::hull`] first.
    #[must_use]
    pub fn byte_ranges(&self, number: u32, first_byte: u64, bytes: u64, base: i64) -> ByteRanges<'_> {
        ByteRanges::new(&self.layout(number).segments, self.extent(number), first_byte, bytes, base)
    }
}

#[cfg(test)]
mod tests;
