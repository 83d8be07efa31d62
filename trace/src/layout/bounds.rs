//! Lower and upper bounds, by the standard and as libraries compute them.

use super::segments::LayoutExcess;

/// Rules for bounds where libraries differ from the standard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BoundRules {
    /// MPI-4.0 section 5.1: explicit bounds of a resized type (also of subarray and darray) propagate to enclosing types, all others are
    /// padded to the alignment. Open MPI follows this.
    #[default]
    Standard,
    /// MPICH and its derivatives: explicit bounds do not propagate, and only structs of different types are padded.
    Mpich,
}

impl BoundRules {
    /// Returns the rules of a library, identified by MPI_Get_library_version.
    #[must_use]
    pub fn for_library(library: &str) -> Self {
        let names = ["MPICH", "Intel(R) MPI", "MVAPICH"];
        if names.iter().any(|name| library.contains(name)) {
            Self::Mpich
        } else {
            Self::Standard
        }
    }
}

/// MPI_LB or MPI_UB (MPI-1, removed in MPI-3.0): sets a bound of the struct that contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BoundMarker {
    Lower,
    Upper,
}

impl BoundMarker {
    pub(super) fn by_name(name: &str) -> Option<Self> {
        match name {
            "LB" => Some(Self::Lower),
            "UB" => Some(Self::Upper),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ExtentBounds {
    pub(super) lower: i64,
    pub(super) upper: i64,
    /// Explicit, directly or through an inner type.
    pub(super) is_explicit: bool,
    /// Maximum alignment of the inner types.
    pub(super) alignment: i64,
    pub(super) marker: Option<BoundMarker>,
}

impl ExtentBounds {
    pub(super) fn extent(self) -> i64 {
        self.upper - self.lower
    }

    pub(super) fn explicit(lower: i128, upper: i128, alignment: i64) -> Result<Self, LayoutExcess> {
        Self::checked(lower, upper, true, alignment)
    }

    fn checked(lower: i128, upper: i128, set: bool, alignment: i64) -> Result<Self, LayoutExcess> {
        i64::try_from(upper - lower).map_err(|_| LayoutExcess::Bits)?;
        let narrow = |bound: i128| i64::try_from(bound).map_err(|_| LayoutExcess::Bits);
        Ok(Self { lower: narrow(lower)?, upper: narrow(upper)?, is_explicit: set, alignment, marker: None })
    }
}

/// Accumulates the bounds of inner types.
#[derive(Clone, Copy, Debug)]
pub(super) struct BoundsUnion {
    rules: BoundRules,
    lower: Option<i128>,
    upper: Option<i128>,
    marked_lower: Option<i128>,
    marked_upper: Option<i128>,
    is_explicit: bool,
    alignment: i64,
}

impl BoundsUnion {
    pub(super) fn new(rules: BoundRules) -> Self {
        Self {
            rules,
            lower: None,
            upper: None,
            marked_lower: None,
            marked_upper: None,
            is_explicit: false,
            alignment: 1,
        }
    }

    /// Adds `block` copies of a type, the first at `at`, each `stride` after the previous one.
    pub(super) fn add(&mut self, part: ExtentBounds, block: u64, stride: i64, at: i128) -> Result<(), LayoutExcess> {
        let Some(last) = block.checked_sub(1) else { return Ok(()) };
        let last = i64::try_from(last).map_err(|_| LayoutExcess::Bits)?;
        match part.marker {
            Some(BoundMarker::Lower) => self.marked_lower = Some(self.marked_lower.map_or(at, |known| known.min(at))),
            Some(BoundMarker::Upper) => self.marked_upper = Some(self.marked_upper.map_or(at, |known| known.max(at))),
            None => {}
        }
        if part.marker.is_some() {
            return Ok(());
        }
        let displacement = i128::from(last) * i128::from(stride);
        let sum = |bound: i64, displacement: i128| at.checked_add(i128::from(bound))?.checked_add(displacement);
        let lower = sum(part.lower, displacement.min(0)).ok_or(LayoutExcess::Bits)?;
        let upper = sum(part.upper, displacement.max(0)).ok_or(LayoutExcess::Bits)?;
        self.alignment = self.alignment.max(part.alignment);
        let sticks = part.is_explicit && self.rules == BoundRules::Standard;
        if sticks && !self.is_explicit {
            (self.lower, self.upper) = (None, None);
        }
        if sticks || !self.is_explicit {
            self.lower = Some(self.lower.map_or(lower, |known| known.min(lower)));
            self.upper = Some(self.upper.map_or(upper, |known| known.max(upper)));
        }
        self.is_explicit |= sticks;
        Ok(())
    }

    /// Returns the total bounds; `mixed` for a struct of different types.
    pub(super) fn finish(self, mixed: bool) -> Result<ExtentBounds, LayoutExcess> {
        let (lower, mut upper) = (self.lower.unwrap_or(0), self.upper.unwrap_or(0));
        if !self.is_explicit && (mixed || self.rules == BoundRules::Standard) {
            let beyond = (upper - lower).rem_euclid(i128::from(self.alignment));
            if beyond > 0 {
                upper += i128::from(self.alignment) - beyond;
            }
        }
        let is_explicit = self.is_explicit || self.marked_lower.or(self.marked_upper).is_some();
        let (lower, upper) = (self.marked_lower.unwrap_or(lower), self.marked_upper.unwrap_or(upper));
        ExtentBounds::checked(lower, upper, is_explicit, self.alignment)
    }
}

/// Alignment of a predefined type on common 64-bit machines: that of its largest member.
pub(super) fn alignment(name: &str, extent_bytes: i64) -> i64 {
    let part = match name {
        "FLOAT_INT" | "SHORT_INT" => 4,
        "DOUBLE_INT" | "LONG_INT" => 8,
        "LONG_DOUBLE_INT" => 16,
        _ if name.contains("COMPLEX") || name.starts_with('2') => extent_bytes / 2,
        _ => extent_bytes,
    };
    if matches!(part, 1 | 2 | 4 | 8 | 16) {
        part
    } else {
        1
    }
}
