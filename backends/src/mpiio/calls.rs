//! Which calls of MPI-IO a pattern is made of, and how the file is seen through them.

use beff_ffi::{Access, Element, FileType, MpiError};

use crate::{AccessKind, CallPlace, CallStyle, Direction, Pattern, Unit};

/// The calls of one pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) access: Access,
    pub(super) style: CallStyle,
}

impl Call {
    /// The calls of a pattern.
    ///
    /// # Errors
    /// Why the standard has none.
    pub(super) fn of(pattern: &Pattern) -> Result<Self, String> {
        let (place, style) = (pattern.form.place, pattern.form.style);
        let access = match (pattern.kind, place) {
            (AccessKind::Independent, CallPlace::Pointer) => Access::Pointer,
            (AccessKind::Independent, CallPlace::Explicit) => Access::Offset,
            (AccessKind::Collective, CallPlace::Pointer) => Access::PointerAll,
            (AccessKind::Collective, CallPlace::Explicit) => Access::OffsetAll,
            (AccessKind::SharedArrival, CallPlace::Pointer) => Access::Shared,
            (AccessKind::SharedOrdered, CallPlace::Pointer) => Access::Ordered,
            (AccessKind::SharedArrival | AccessKind::SharedOrdered, CallPlace::Explicit) => {
                return Err("a call through the shared file pointer takes no offset".into());
            }
        };
        match (style, access) {
            (_, Access::Offset | Access::OffsetAll) if pattern.chunks_per_call > 1 && !pattern.is_contiguous() => {
                Err("a call with an offset moves one contiguous piece".into())
            }
            (CallStyle::Request, Access::Ordered) => {
                Err("MPI has no nonblocking call for access in rank order; it has a split collective one".into())
            }
            (CallStyle::Split, Access::Pointer | Access::Offset | Access::Shared) => {
                Err("MPI has split calls for collective access alone; others are nonblocking".into())
            }
            _ => Ok(Self { access, style }),
        }
    }

    /// As it is reported, and named in errors.
    pub(super) fn name(self, direction: Direction) -> &'static str {
        let (write, read) = match (self.style, self.access) {
            (CallStyle::Blocking, access) => blocking(access),
            (CallStyle::Request, access) => nonblocking(access),
            (CallStyle::Split, access) => split(access),
        };
        match direction {
            Direction::Write => write,
            Direction::Read => read,
        }
    }
}

fn blocking(access: Access) -> (&'static str, &'static str) {
    match access {
        Access::Pointer => ("MPI_File_write", "MPI_File_read"),
        Access::PointerAll => ("MPI_File_write_all", "MPI_File_read_all"),
        Access::Offset => ("MPI_File_write_at", "MPI_File_read_at"),
        Access::OffsetAll => ("MPI_File_write_at_all", "MPI_File_read_at_all"),
        Access::Shared => ("MPI_File_write_shared", "MPI_File_read_shared"),
        Access::Ordered => ("MPI_File_write_ordered", "MPI_File_read_ordered"),
    }
}

fn nonblocking(access: Access) -> (&'static str, &'static str) {
    match access {
        Access::Pointer => ("MPI_File_iwrite, MPI_Waitall", "MPI_File_iread, MPI_Waitall"),
        Access::PointerAll => ("MPI_File_iwrite_all, MPI_Waitall", "MPI_File_iread_all, MPI_Waitall"),
        Access::Offset => ("MPI_File_iwrite_at, MPI_Waitall", "MPI_File_iread_at, MPI_Waitall"),
        Access::OffsetAll => ("MPI_File_iwrite_at_all, MPI_Waitall", "MPI_File_iread_at_all, MPI_Waitall"),
        Access::Shared => ("MPI_File_iwrite_shared, MPI_Waitall", "MPI_File_iread_shared, MPI_Waitall"),
        // `Call::of` makes none.
        Access::Ordered => blocking(access),
    }
}

fn split(access: Access) -> (&'static str, &'static str) {
    match access {
        Access::PointerAll => ("MPI_File_write_all_begin, _end", "MPI_File_read_all_begin, _end"),
        Access::OffsetAll => ("MPI_File_write_at_all_begin, _end", "MPI_File_read_at_all_begin, _end"),
        Access::Ordered => ("MPI_File_write_ordered_begin, _end", "MPI_File_read_ordered_begin, _end"),
        // `Call::of` makes none.
        Access::Pointer | Access::Offset | Access::Shared => blocking(access),
    }
}

/// What a pattern is counted in.
pub(super) fn element(pattern: &Pattern) -> Element {
    match pattern.form.unit {
        Unit::Word => Element::Double,
        Unit::Byte => Element::Byte,
    }
}

/// How the file is seen.
pub(super) struct View {
    /// First byte that is seen.
    pub(super) displacement_bytes: u64,
    pub(super) tile: FileType,
    /// For the report.
    pub(super) shape: &'static str,
}

impl View {
    /// The view for the calls of a pattern.
    ///
    /// # Errors
    /// What MPI says to the datatype.
    pub(super) fn of(pattern: &Pattern, call: Call) -> Result<Self, MpiError> {
        let element = element(pattern);
        let plain = |displacement_bytes, shape| Self { displacement_bytes, tile: FileType::plain(element), shape };
        Ok(match call.access {
            // A shared pointer needs the same view on all ranks.
            Access::Shared | Access::Ordered => plain(pattern.origin_bytes, "shared pointer"),
            Access::Offset | Access::OffsetAll => plain(0, "explicit offsets"),
            // A rank without a part sees anything.
            Access::Pointer | Access::PointerAll if pattern.chunk_bytes == 0 => plain(0, "contiguous view"),
            Access::Pointer | Access::PointerAll if pattern.is_contiguous() => {
                plain(pattern.base_bytes, "contiguous view")
            }
            // Each rank's view begins at its own chunk.
            Access::Pointer | Access::PointerAll => Self {
                displacement_bytes: pattern.base_bytes,
                tile: FileType::strided(element, pattern.chunk_bytes, pattern.stride_bytes)?,
                shape: "strided view",
            },
        })
    }
}

impl View {
    /// The view a file has when it is opened, MPI-3.1 section 13.3, for calls that leave the pointers alone.
    pub(super) fn is_as_opened(&self, pattern: &Pattern, call: Call) -> bool {
        let by_offset = matches!(call.access, Access::Offset | Access::OffsetAll);
        by_offset && pattern.form.unit == Unit::Byte && self.displacement_bytes == 0
    }
}

/// Calls of `pattern` from its first one on that lie wholly within `file_bytes`.
pub(super) fn whole_calls(pattern: &Pattern, file_bytes: u64) -> u64 {
    let Pattern { chunk_bytes, stride_bytes, chunks_per_call, .. } = *pattern;
    if chunk_bytes == 0 || chunks_per_call == 0 {
        return u64::MAX;
    }
    // Where the last chunk of the first call ends.
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
            let p = Pattern { base_bytes: base, stride_bytes: chunk + gap, ..pattern(chunk, per_call, 1000) };
            let end = |call: u64| p.chunk_offset((call + 1) * per_call - 1) + chunk;
            let whole = whole_calls(&p, file_bytes);
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
            let form = CallForm { place, style, unit: Unit::Byte };
            Call::of(&Pattern { kind, form, ..pattern(8, 1, 1) }).map(|call| call.name(direction))
        };
        let (write, read) = (Direction::Write, Direction::Read);
        let (pointer, explicit) = (CallPlace::Pointer, CallPlace::Explicit);
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
        let form = CallForm { place: explicit, ..CallForm::default() };
        let scattered = Pattern { form, stride_bytes: 16, ..pattern(8, 2, 1) };
        assert!(Call::of(&scattered).unwrap_err().contains("contiguous"));
    }
}
