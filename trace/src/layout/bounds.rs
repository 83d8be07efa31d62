//! Lower and upper bounds, by the standard and as libraries set them.

use super::pieces::Excess;

/// How bounds come about where the standard and the libraries differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// MPI-4.0 section 5.1: bounds set by a resized type (also by subarray and darray) stick to the types around it, all others are
    /// rounded up to the alignment. Open MPI does so.
    #[default]
    Standard,
    /// MPICH and what derives from it: bounds that were set do not stick, and only structs of different types are rounded up.
    Mpich,
}

impl Rules {
    /// Those of a library, by what MPI_Get_library_version says.
    #[must_use]
    pub fn of_library(library: &str) -> Self {
        let names = ["MPICH", "Intel(R) MPI", "MVAPICH"];
        if names.iter().any(|name| library.contains(name)) {
            Self::Mpich
        } else {
            Self::Standard
        }
    }
}

/// Bounds of a type in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) lower: i64,
    pub(super) upper: i64,
    /// They were set, directly or by a part.
    pub(super) set: bool,
    /// The largest alignment of the parts.
    pub(super) alignment: i64,
}

impl Bounds {
    pub(super) fn extent(self) -> i64 {
        self.upper - self.lower
    }

    /// Bounds that are set.
    pub(super) fn fixed(lower: i128, upper: i128, alignment: i64) -> Result<Self, Excess> {
        Self::checked(lower, upper, true, alignment)
    }

    fn checked(lower: i128, upper: i128, set: bool, alignment: i64) -> Result<Self, Excess> {
        i64::try_from(upper - lower).map_err(|_| Excess::Bits)?;
        let narrow = |bound: i128| i64::try_from(bound).map_err(|_| Excess::Bits);
        Ok(Self { lower: narrow(lower)?, upper: narrow(upper)?, set, alignment })
    }
}

/// Joins the bounds of parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Union {
    rules: Rules,
    lower: Option<i128>,
    upper: Option<i128>,
    set: bool,
    alignment: i64,
}

impl Union {
    pub(super) fn new(rules: Rules) -> Self {
        Self { rules, lower: None, upper: None, set: false, alignment: 1 }
    }

    /// `block` copies of a part, the first at `at`, each `stride` behind the one before.
    pub(super) fn add(&mut self, part: Bounds, block: u64, stride: i64, at: i128) -> Result<(), Excess> {
        let Some(last) = block.checked_sub(1) else { return Ok(()) };
        let last = i64::try_from(last).map_err(|_| Excess::Bits)?;
        let reach = i128::from(last) * i128::from(stride);
        let sum = |bound: i64, reach: i128| at.checked_add(i128::from(bound))?.checked_add(reach);
        let lower = sum(part.lower, reach.min(0)).ok_or(Excess::Bits)?;
        let upper = sum(part.upper, reach.max(0)).ok_or(Excess::Bits)?;
        self.alignment = self.alignment.max(part.alignment);
        let sticks = part.set && self.rules == Rules::Standard;
        if sticks && !self.set {
            (self.lower, self.upper) = (None, None);
        }
        if sticks || !self.set {
            self.lower = Some(self.lower.map_or(lower, |known| known.min(lower)));
            self.upper = Some(self.upper.map_or(upper, |known| known.max(upper)));
        }
        self.set |= sticks;
        Ok(())
    }

    /// The bounds of the whole; `mixed` if it is a struct of different types.
    pub(super) fn finish(self, mixed: bool) -> Result<Bounds, Excess> {
        let (lower, mut upper) = (self.lower.unwrap_or(0), self.upper.unwrap_or(0));
        if !self.set && (mixed || self.rules == Rules::Standard) {
            let beyond = (upper - lower).rem_euclid(i128::from(self.alignment));
            if beyond > 0 {
                upper += i128::from(self.alignment) - beyond;
            }
        }
        Bounds::checked(lower, upper, self.set, self.alignment)
    }
}

/// The alignment of a predefined type on the usual 64-bit machines: that of its largest part.
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
