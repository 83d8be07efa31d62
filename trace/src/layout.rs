//! Where the bytes of datatypes lie: sizes, bounds and type maps (MPI-4.0 chapter 5), worked out without an MPI library.
//!
//! Libraries differ in the upper bound of types that they have to round up, and in whether bounds that were set stick to a struct around them.
//! [`Rules`] names what was seen with MPICH and Open MPI.

mod bounds;
mod construct;
mod pieces;
mod walk;

use std::ops::Range;

pub use bounds::Rules;
pub use construct::{TypeError, TypeFault, MOST_PIECES};
pub use pieces::Piece;
pub use walk::{Extent, Walk};

use construct::Layout;

use crate::types::Type;

/// The layouts of a dictionary of types. The methods take the number of a type; one that is not in the dictionary panics, as an index does.
#[derive(Clone, Debug, Default)]
pub struct Layouts {
    list: Vec<Option<Layout>>,
    rules: Rules,
}

impl Layouts {
    /// Works the types out by the rules of the standard.
    ///
    /// # Errors
    /// The first type that has wrong arguments, stands before its parts, reaches beyond 63 bits, or falls into too many pieces.
    pub fn new(types: &[Type]) -> Result<Self, TypeError> {
        Self::with_rules(types, Rules::Standard)
    }

    /// Works the types out as the library did under which they were made: `library` is what MPI_Get_library_version says.
    ///
    /// # Errors
    /// As [`Layouts::new`].
    pub fn of_library(types: &[Type], library: &str) -> Result<Self, TypeError> {
        Self::with_rules(types, Rules::of_library(library))
    }

    /// Works the types out by the rules given.
    ///
    /// # Errors
    /// As [`Layouts::new`].
    pub fn with_rules(types: &[Type], rules: Rules) -> Result<Self, TypeError> {
        Ok(Self { list: construct::all(types, rules, Err)?, rules })
    }

    /// Works out what can be, by the rules of a library; tells of the others, whose layout must not be asked for.
    #[must_use]
    pub fn what_can_be(types: &[Type], library: &str) -> (Self, Vec<TypeError>) {
        let (rules, mut refused) = (Rules::of_library(library), Vec::new());
        let list = construct::all(types, rules, |error| {
            refused.push(error);
            Ok(())
        });
        (Self { list: list.unwrap_or_default(), rules }, refused)
    }

    /// True if the type is in the dictionary and was worked out.
    #[must_use]
    pub fn is_known(&self, number: u32) -> bool {
        self.list.get(number as usize).is_some_and(Option::is_some)
    }

    /// Number of types.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// True if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The rules by which they were worked out.
    #[must_use]
    pub fn rules(&self) -> Rules {
        self.rules
    }

    fn of(&self, number: u32) -> &Layout {
        match &self.list[number as usize] {
            Some(layout) => layout,
            None => panic!("the layout of type {number} was asked for, but it could not be worked out"),
        }
    }

    /// Bytes of data in one element.
    #[must_use]
    pub fn size(&self, number: u32) -> u64 {
        self.of(number).pieces.size_bytes()
    }

    /// Distance from one element to the next in bytes. It can be negative.
    #[must_use]
    pub fn extent(&self, number: u32) -> i64 {
        let bounds = self.of(number).bounds;
        bounds.upper - bounds.lower
    }

    /// Lower bound in bytes.
    #[must_use]
    pub fn lower_bound(&self, number: u32) -> i64 {
        self.of(number).bounds.lower
    }

    /// From the first byte of data to behind the last one, in bytes from the address of the element. Empty for a type without data.
    #[must_use]
    pub fn true_span(&self, number: u32) -> Range<i64> {
        self.of(number).pieces.span()
    }

    /// True if a row of elements is one run of bytes that begins at the address of the first.
    #[must_use]
    pub fn is_contiguous(&self, number: u32) -> bool {
        self.pieces(number).first().is_some_and(|piece| piece.displacement_bytes == 0)
            && walk::is_run(self.pieces(number), self.extent(number))
    }

    /// The data of one element in the order of the type map, neighbours joined.
    #[must_use]
    pub fn pieces(&self, number: u32) -> &[Piece] {
        self.of(number).pieces.as_slice()
    }

    /// The smallest range that is sure to hold what [`Layouts::walk`] yields for the same arguments; it may be wider. Empty at `base` for no bytes.
    /// None if a place lies beyond 63 bits, or if the type has no data.
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
        if walk::is_run(self.pieces(number), self.extent(number)) {
            let start = i64::try_from(i128::from(base) + i128::from(span.start) + i128::from(first_byte)).ok()?;
            return Some(start..start.checked_add_unsigned(bytes)?);
        }
        Some(place(one.min(other), span.start)?..place(one.max(other), span.end)?)
    }

    /// The places of the packed bytes from `first_byte` on in an endless row of elements that begins at `base`, in the order of the data,
    /// neighbours joined. Places beyond 63 bits end the walk early: ask [`Layouts::hull`] before.
    #[must_use]
    pub fn walk(&self, number: u32, first_byte: u64, bytes: u64, base: i64) -> Walk<'_> {
        Walk::new(&self.of(number).pieces, self.extent(number), first_byte, bytes, base)
    }
}

#[cfg(test)]
mod tests;
