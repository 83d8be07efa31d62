//! The MPI-IO calls and the file view of a pattern.

use beff_ffi::{DataAccess, Element, FileType, MpiError};

use crate::{AccessKind, AccessPattern, Batch, CallAddressing, CallStyle, Direction, ElementUnit};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AccessCall {
    pub(super) access: DataAccess,
    pub(super) style: CallStyle,
}

impl AccessCall {
    /// The calls of a pattern.
    ///
    /// # Errors
    /// The reason why the standard has none.
    pub(super) fn of(pattern: &AccessPattern) -> Result<Self, String> {
        let (place, style) = (pattern.form.addressing, pattern.form.style);
        let access = match (pattern.kind, place) {
            (AccessKind::Independent, CallAddressing::Pointer) => DataAccess::Pointer,
            (AccessKind::Independent, CallAddressing::Explicit) => DataAccess::Offset,
            (AccessKind::Collective, CallAddressing::Pointer) => DataAccess::PointerAll,
            (AccessKind::Collective, CallAddressing::Explicit) => DataAccess::OffsetAll,
            (AccessKind::SharedArrival, CallAddressing::Pointer) => DataAccess::Shared,
            (AccessKind::SharedOrdered, CallAddressing::Pointer) => DataAccess::Ordered,
            (AccessKind::SharedArrival | AccessKind::SharedOrdered, CallAddressing::Explicit) => {
                return Err("a call through the shared file pointer takes no offset".into());
            }
        };
        if pattern.order.is_some() && place == CallAddressing::Pointer {
            return Err("a file pointer does not move backwards: an order needs explicit offsets".into());
        }
        match (style, access) {
            (_, DataAccess::Offset | DataAccess::OffsetAll)
                if pattern.chunks_per_call > 1 && !pattern.is_contiguous() =>
            {
                Err("a call with an offset transfers one contiguous range".into())
            }
            (CallStyle::Request, DataAccess::Ordered) => {
                Err("MPI has no nonblocking call for access in rank order, only a split collective one".into())
            }
            (CallStyle::Split, DataAccess::Pointer | DataAccess::Offset | DataAccess::Shared) => {
                Err("MPI has split calls for collective access only; others are nonblocking".into())
            }
            _ => Ok(Self { access, style }),
        }
    }

    /// Name for reports and errors.
    pub(super) fn name(self, direction: Direction) -> &'static str {
        let (write, read) = match (self.style, self.access) {
            (CallStyle::Blocking, access) => blocking_names(access),
            (CallStyle::Request, access) => nonblocking_names(access),
            (CallStyle::Split, access) => split_names(access),
        };
        match direction {
            Direction::Write => write,
            Direction::Read => read,
        }
    }
}

fn blocking_names(access: DataAccess) -> (&'static str, &'static str) {
    match access {
        DataAccess::Pointer => ("MPI_File_write", "MPI_File_read"),
        DataAccess::PointerAll => ("MPI_File_write_all", "MPI_File_read_all"),
        DataAccess::Offset => ("MPI_File_write_at", "MPI_File_read_at"),
        DataAccess::OffsetAll => ("MPI_File_write_at_all", "MPI_File_read_at_all"),
        DataAccess::Shared => ("MPI_File_write_shared", "MPI_File_read_shared"),
        DataAccess::Ordered => ("MPI_File_write_ordered", "MPI_File_read_ordered"),
    }
}

fn nonblocking_names(access: DataAccess) -> (&'static str, &'static str) {
    match access {
        DataAccess::Pointer => ("MPI_File_iwrite, MPI_Waitall", "MPI_File_iread, MPI_Waitall"),
        DataAccess::PointerAll => ("MPI_File_iwrite_all, MPI_Waitall", "MPI_File_iread_all, MPI_Waitall"),
        DataAccess::Offset => ("MPI_File_iwrite_at, MPI_Waitall", "MPI_File_iread_at, MPI_Waitall"),
        DataAccess::OffsetAll => ("MPI_File_iwrite_at_all, MPI_Waitall", "MPI_File_iread_at_all, MPI_Waitall"),
        DataAccess::Shared => ("MPI_File_iwrite_shared, MPI_Waitall", "MPI_File_iread_shared, MPI_Waitall"),
        // Rejected by `of`.
        DataAccess::Ordered => blocking_names(access),
    }
}

fn split_names(access: DataAccess) -> (&'static str, &'static str) {
    match access {
        DataAccess::PointerAll => ("MPI_File_write_all_begin, _end", "MPI_File_read_all_begin, _end"),
        DataAccess::OffsetAll => ("MPI_File_write_at_all_begin, _end", "MPI_File_read_at_all_begin, _end"),
        DataAccess::Ordered => ("MPI_File_write_ordered_begin, _end", "MPI_File_read_ordered_begin, _end"),
        // Rejected by `of`.
        DataAccess::Pointer | DataAccess::Offset | DataAccess::Shared => blocking_names(access),
    }
}

pub(super) fn elementary_type(pattern: &AccessPattern) -> Element {
    match pattern.form.unit {
        ElementUnit::Word => Element::Double,
        ElementUnit::Byte => Element::Byte,
    }
}

pub(super) struct FileView {
    /// First visible byte.
    pub(super) displacement_bytes: u64,
    pub(super) filetype: FileType,
    /// Description for the report.
    pub(super) description: &'static str,
}

impl FileView {
    /// # Errors
    /// Errors of MPI for the datatype.
    pub(super) fn of(pattern: &AccessPattern, call: AccessCall) -> Result<Self, MpiError> {
        let element = elementary_type(pattern);
        let plain = |displacement_bytes, shape| Self {
            displacement_bytes,
            filetype: FileType::plain(element),
            description: shape,
        };
        Ok(match call.access {
            // A shared pointer needs the same view on all ranks.
            DataAccess::Shared | DataAccess::Ordered => plain(pattern.origin_bytes, "shared pointer"),
            DataAccess::Offset | DataAccess::OffsetAll => plain(0, "explicit offsets"),
            // Any view will do for an empty part.
            DataAccess::Pointer | DataAccess::PointerAll if pattern.chunk_bytes == 0 => plain(0, "contiguous view"),
            DataAccess::Pointer | DataAccess::PointerAll if pattern.is_contiguous() => {
                plain(pattern.base_bytes, "contiguous view")
            }
            // Each rank's view begins at its own chunk.
            DataAccess::Pointer | DataAccess::PointerAll => Self {
                displacement_bytes: pattern.base_bytes,
                filetype: FileType::strided(element, pattern.chunk_bytes, pattern.stride_bytes)?,
                description: "strided view",
            },
        })
    }
}

impl FileView {
    /// True for the default view (MPI-3.1 section 13.3) and calls without file pointers.
    pub(super) fn is_default(&self, pattern: &AccessPattern, call: AccessCall) -> bool {
        let by_offset = matches!(call.access, DataAccess::Offset | DataAccess::OffsetAll);
        by_offset && pattern.form.unit == ElementUnit::Byte && self.displacement_bytes == 0
    }
}

/// Number of calls from the first on that lie entirely within `file_bytes`; with an order all or none.
pub(super) fn calls_within_file(pattern: &AccessPattern, file_bytes: u64) -> u64 {
    let AccessPattern { chunk_bytes, stride_bytes, chunks_per_call, .. } = *pattern;
    if chunk_bytes == 0 || chunks_per_call == 0 {
        return u64::MAX;
    }
    if let Some(order) = pattern.order {
        let (_, end) = pattern.byte_range(Batch { first_call: 0, calls: order.calls() });
        return if end <= file_bytes { u64::MAX } else { 0 };
    }
    // End of the last chunk of the first call.
    let end = pattern.chunk_offset(chunks_per_call - 1) + chunk_bytes;
    match (file_bytes.checked_sub(end), stride_bytes * chunks_per_call) {
        (None, _) => 0,
        (Some(_), 0) => u64::MAX,
        (Some(left), step) => left / step + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pattern;
    use crate::CallForm;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whole_calls_lie_within_the_file_and_the_next_does_not(
            chunk in 0_u64..20, per_call in 1_u64..4, gap in 0_u64..9, base in 0_u64..50, file_bytes in 0_u64..400,
        ) {
            let p = AccessPattern { base_bytes: base, stride_bytes: chunk + gap, ..pattern(chunk, per_call, 1000) };
            let end = |call: u64| p.chunk_offset((call + 1) * per_call - 1) + chunk;
            let whole = calls_within_file(&p, file_bytes);
            if chunk == 0 {
                prop_assert_eq!(whole, u64::MAX);
            } else {
                prop_assert!(whole == 0 || end(whole - 1) <= file_bytes);
                prop_assert!(end(whole) > file_bytes);
            }
        }
    }

    #[test]
    fn names_are_those_of_the_standard() {
        let of = |kind, place, style, direction| {
            let form = CallForm { addressing: place, style, unit: ElementUnit::Byte };
            AccessCall::of(&AccessPattern { kind, form, ..pattern(8, 1, 1) }).map(|call| call.name(direction))
        };
        let (write, read) = (Direction::Write, Direction::Read);
        let (pointer, explicit) = (CallAddressing::Pointer, CallAddressing::Explicit);
        assert_eq!(of(AccessKind::Independent, pointer, CallStyle::Blocking, write), Ok("MPI_File_write"));
        assert_eq!(
            of(AccessKind::Independent, explicit, CallStyle::Request, read),
            Ok("MPI_File_iread_at, MPI_Waitall")
        );
        assert_eq!(
            of(AccessKind::Collective, explicit, CallStyle::Split, write),
            Ok("MPI_File_write_at_all_begin, _end")
        );
        assert_eq!(of(AccessKind::SharedArrival, pointer, CallStyle::Blocking, read), Ok("MPI_File_read_shared"));
        assert_eq!(
            of(AccessKind::SharedOrdered, pointer, CallStyle::Split, read),
            Ok("MPI_File_read_ordered_begin, _end")
        );
        assert!(of(AccessKind::SharedOrdered, pointer, CallStyle::Request, read).is_err());
        let form = CallForm { addressing: explicit, ..CallForm::default() };
        let scattered = AccessPattern { form, stride_bytes: 16, ..pattern(8, 2, 1) };
        assert!(AccessCall::of(&scattered).unwrap_err().contains("contiguous"));
    }
}
