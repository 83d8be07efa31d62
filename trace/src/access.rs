//! Positions of the data accesses of one process: views, pointers and requests, tracked through its calls.

use std::collections::HashMap;
use std::ops::Range;

use crate::call::{Call, Completion};
use crate::function::{AccessForm, Direction, Function, PointerKind, Role};
use crate::layout::{BoundRules, ByteRanges, TypeLayouts};
use crate::names::Whence;

/// The part of a file view that determines positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrackedView {
    /// Displacement in bytes.
    pub displacement_bytes: i64,
    /// Filetype; None: contiguous bytes.
    pub filetype: Option<u32>,
}

/// Data in memory, relative to the buffer address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypedBuffer {
    /// Type of the elements; None: bytes.
    pub datatype: Option<u32>,
    /// Number of elements.
    pub count: u64,
}

/// A data access with known position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolvedAccess {
    /// The opening of the file.
    pub handle: u32,
    /// The file, if the call that opened it recorded it.
    pub file: Option<u32>,
    /// Direction of the data.
    pub direction: Direction,
    /// The view.
    pub view: TrackedView,
    /// First byte in the view's stream of packed data.
    pub first_byte: u64,
    /// Moved bytes; requested bytes while those are unknown.
    pub bytes: u64,
    /// Requested bytes.
    pub requested_bytes: u64,
    /// True if `bytes` is the number of moved bytes.
    pub is_complete: bool,
    /// Layout of the data in memory.
    pub memory: TypedBuffer,
}

impl ResolvedAccess {
    /// Byte ranges in the file, in the order of the data, at most one per segment of the filetype and element.
    #[must_use]
    pub fn file_ranges<'a>(&self, layouts: &'a TypeLayouts) -> ByteRanges<'a> {
        byte_ranges(layouts, self.view.filetype, self.first_byte, self.bytes, self.view.displacement_bytes)
    }

    /// Byte ranges in memory of some of its packed bytes, relative to the buffer address.
    #[must_use]
    pub fn memory_ranges<'a>(&self, layouts: &'a TypeLayouts, first_byte: u64, bytes: u64) -> ByteRanges<'a> {
        byte_ranges(layouts, self.memory.datatype, first_byte, bytes, 0)
    }

    /// A range of the file that contains all its byte ranges.
    #[must_use]
    pub fn hull(&self, layouts: &TypeLayouts) -> Range<i64> {
        hull(layouts, self.view, self.first_byte, self.bytes).unwrap_or_default()
    }

    /// The same access with the number of moved bytes, limited to the requested ones.
    #[must_use]
    pub fn with_moved_bytes(self, bytes: u64) -> Self {
        Self { bytes: bytes.min(self.requested_bytes), is_complete: true, ..self }
    }
}

fn byte_ranges(layouts: &TypeLayouts, of: Option<u32>, first_byte: u64, bytes: u64, base: i64) -> ByteRanges<'_> {
    match of {
        Some(of) => layouts.byte_ranges(of, first_byte, bytes, base),
        None => ByteRanges::single(base.saturating_add_unsigned(first_byte), bytes),
    }
}

fn hull(layouts: &TypeLayouts, view: TrackedView, first_byte: u64, bytes: u64) -> Option<Range<i64>> {
    let base = view.displacement_bytes;
    match view.filetype {
        Some(of) => layouts.hull(of, first_byte, bytes, base),
        None => {
            let start = base.checked_add_unsigned(first_byte)?;
            Some(start..start.checked_add_unsigned(bytes)?)
        }
    }
}

/// Effect of a call on the data of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEffect {
    /// Data access, or the begin of one.
    Access(ResolvedAccess),
    /// End of a split collective access.
    SplitEnd(ResolvedAccess),
    /// Data access, or the end of one, with unknown position.
    Unknown {
        /// The file, if known.
        file: Option<u32>,
        /// Direction of the data.
        direction: Direction,
        /// Reason.
        reason: &'static str,
    },
    /// No data access.
    NoAccess,
}

/// Reason of [`CallEffect::Unknown`]: no file has such an offset, and no call can have succeeded there.
pub const OUT_OF_RANGE: &str = "its offset is negative or beyond 63 bits";

#[derive(Clone, Debug)]
struct TrackedFile {
    file: Option<u32>,
    view: Result<TrackedView, &'static str>,
    etype: Option<u32>,
    /// Individual file pointer, in packed bytes of the view.
    pointer_bytes: Option<u64>,
    split_access: Option<CallEffect>,
    is_sequential: bool,
}

/// Tracks one process. Failed calls change nothing.
#[derive(Clone, Debug)]
pub struct AccessTracker<'a> {
    layouts: &'a TypeLayouts,
    files: HashMap<u32, TrackedFile>,
    pending: HashMap<u64, CallEffect>,
}

impl<'a> AccessTracker<'a> {
    /// A process before its first call. `layouts` are of the types that its calls refer to; their rules also determine how far the pointer
    /// moves at the end of the file: by the read bytes (MPICH) or by the requested ones (the standard).
    #[must_use]
    pub fn new(layouts: &'a TypeLayouts) -> Self {
        Self { layouts, files: HashMap::new(), pending: HashMap::new() }
    }

    /// Processes the next call. A nonblocking access is kept under its request until [`AccessTracker::complete`] or [`AccessTracker::forget`].
    pub fn resolve(&mut self, call: &Call) -> CallEffect {
        if call.error.is_some() {
            if let (Role::Data { form: AccessForm::End, .. }, Some(open)) = (call.function.role(), self.file_mut(call))
            {
                open.split_access = None;
            }
            return CallEffect::NoAccess;
        }
        let Role::Data { direction, pointer, form, .. } = call.function.role() else {
            self.update_state(call);
            return CallEffect::NoAccess;
        };
        let placed = match form {
            AccessForm::End => self.end_split(call, direction),
            _ => self.resolve_data(call, direction, pointer),
        };
        match (form, call.request) {
            (AccessForm::Nonblocking, Some(request)) => {
                self.pending.insert(request, placed);
            }
            (AccessForm::Begin, _) => {
                if let Some(open) = self.file_mut(call) {
                    open.split_access = Some(placed);
                }
            }
            _ => {}
        }
        placed
    }

    /// Returns the access of a request, with its moved bytes; None if there is none. A failed one moved nothing.
    pub fn complete(&mut self, completion: &Completion) -> Option<CallEffect> {
        let placed = self.pending.remove(&completion.request)?;
        let moved = if completion.error.is_some() { Some(0) } else { completion.bytes };
        Some(match (placed, moved) {
            (CallEffect::Access(access), Some(bytes)) => CallEffect::Access(access.with_moved_bytes(bytes)),
            (other, _) => other,
        })
    }

    /// Returns the access of a freed request: its completion is not recorded.
    pub fn forget(&mut self, request: u64) -> Option<CallEffect> {
        self.pending.remove(&request)
    }

    fn file_mut(&mut self, call: &Call) -> Option<&mut TrackedFile> {
        self.files.get_mut(&call.handle?)
    }

    fn is_known(&self, datatype: Option<u32>) -> bool {
        datatype.is_none_or(|of| self.layouts.is_known(of))
    }

    fn size(&self, datatype: Option<u32>) -> u64 {
        datatype.map_or(1, |of| self.layouts.size(of))
    }

    fn update_state(&mut self, call: &Call) {
        match call.function {
            Function::Open => {
                let Some(handle) = call.handle else { return };
                let has = |name| call.amode.is_some_and(|amode| amode.has(name));
                let end = call.number.map(|size| u64::try_from(size).unwrap_or(0));
                let open = TrackedFile {
                    file: call.file,
                    view: Ok(TrackedView::default()),
                    etype: None,
                    pointer_bytes: if has("append") { end } else { Some(0) },
                    split_access: None,
                    is_sequential: has("sequential"),
                };
                self.files.insert(handle, open);
            }
            Function::Close => {
                call.handle.and_then(|handle| self.files.remove(&handle));
            }
            Function::SetView => self.set_view(call),
            Function::Seek => self.seek(call),
            Function::GetPosition => {
                let etype_bytes = self.etype_bytes(call);
                let position = call.number.and_then(|at| u64::try_from(at).ok()).zip(etype_bytes);
                if let (Some((position, etype_bytes)), Some(open)) = (position, self.file_mut(call)) {
                    // Of a position inside an etype only whole etypes are returned.
                    let is_it = open.pointer_bytes.and_then(|at| at.checked_div(etype_bytes)) == Some(position);
                    if !is_it {
                        open.pointer_bytes = position.checked_mul(etype_bytes);
                    }
                }
            }
            _ => {}
        }
    }

    fn set_view(&mut self, call: &Call) {
        let (displacement, known) = (call.offset, self.is_known(call.filetype) && self.is_known(call.etype));
        let Some(open) = self.file_mut(call) else { return };
        let view = match displacement {
            _ if !known => Err("the view has an unknown type"),
            _ if call.name.is_some() => Err("the view has a data representation other than native"),
            Some(at) if at >= 0 => Ok(TrackedView { displacement_bytes: at, filetype: call.filetype }),
            _ => Err("the displacement of the view is unknown"),
        };
        (open.view, open.etype, open.pointer_bytes) = (view, call.etype.filter(|_| known), Some(0));
    }

    fn etype_bytes(&self, call: &Call) -> Option<u64> {
        let open = self.files.get(&call.handle?)?;
        open.view.ok()?;
        Some(self.size(open.etype))
    }

    fn seek(&mut self, call: &Call) {
        let etype_bytes = self.etype_bytes(call).and_then(|bytes| i64::try_from(bytes).ok());
        let Some(open) = self.file_mut(call) else { return };
        let by = call.offset.zip(etype_bytes).and_then(|(offset, bytes)| offset.checked_mul(bytes));
        open.pointer_bytes = match (call.whence, by) {
            (Some(Whence::Set), Some(by)) => u64::try_from(by).ok(),
            (Some(Whence::Current), Some(by)) => open.pointer_bytes.and_then(|at| at.checked_add_signed(by)),
            // The size of the file at that time is known by its result only.
            (Some(Whence::End), _) => {
                let etype_bytes = etype_bytes.and_then(|bytes| u64::try_from(bytes).ok());
                call.number.and_then(|at| u64::try_from(at).ok()?.checked_mul(etype_bytes?))
            }
            _ => None,
        };
    }

    /// Result of a seek relative to the end of a file of this size, in etypes; None if unknown, and for other seeks.
    #[must_use]
    pub fn end_position(&self, call: &Call, size_bytes: u64) -> Option<i64> {
        let (etype_bytes, open) = (self.etype_bytes(call)?, self.files.get(&call.handle?)?);
        let view = open.view.ok().filter(|_| call.whence == Some(Whence::End))?;
        let size = i64::try_from(size_bytes).ok()?.saturating_sub(view.displacement_bytes);
        let data_bytes = match view.filetype {
            None => u64::try_from(size).unwrap_or(0),
            Some(of) => self.layouts.data_bytes_before(of, size)?,
        };
        // The end is the first etype that does not begin within the file.
        i64::try_from(data_bytes.div_ceil(etype_bytes.max(1))).ok()?.checked_add(call.offset?)
    }

    fn end_split(&mut self, call: &Call, direction: Direction) -> CallEffect {
        let uses_recorded_size = self.layouts.rules() == BoundRules::Mpich;
        let Some(open) = self.file_mut(call) else {
            return CallEffect::Unknown { file: None, direction, reason: "the opening of the file was not recorded" };
        };
        let individual = matches!(call.function.role(), Role::Data { pointer: PointerKind::Individual, .. });
        match (open.split_access.take(), call.bytes) {
            (Some(CallEffect::Access(access)), Some(bytes)) => {
                let moved = access.with_moved_bytes(bytes);
                if individual && direction == Direction::Read && uses_recorded_size {
                    let short = access.requested_bytes - moved.bytes;
                    open.pointer_bytes = open.pointer_bytes.and_then(|at| at.checked_sub(short));
                }
                CallEffect::SplitEnd(moved)
            }
            (Some(CallEffect::Access(access)), None) => CallEffect::SplitEnd(access),
            (Some(CallEffect::Unknown { file, direction, reason }), _) => {
                CallEffect::Unknown { file, direction, reason }
            }
            _ => CallEffect::Unknown { file: open.file, direction, reason: "its begin was not recorded" },
        }
    }

    fn resolve_data(&mut self, call: &Call, direction: Direction, pointer: PointerKind) -> CallEffect {
        let file = self.file_mut(call).and_then(|open| open.file);
        match self.access(call, direction, pointer) {
            Ok(access) => CallEffect::Access(access),
            Err(reason) => {
                if pointer == PointerKind::Individual {
                    if let Some(open) = self.file_mut(call) {
                        open.pointer_bytes = None;
                    }
                }
                CallEffect::Unknown { file, direction, reason }
            }
        }
    }

    fn access(
        &mut self,
        call: &Call,
        direction: Direction,
        pointer: PointerKind,
    ) -> Result<ResolvedAccess, &'static str> {
        let handle = call.handle.ok_or("the call has no file")?;
        let open = self.files.get(&handle).ok_or("the opening of the file was not recorded")?;
        if pointer == PointerKind::Shared || open.is_sequential {
            return Err("the order of accesses at the shared file pointer is unknown");
        }
        let (view, file) = (open.view?, open.file);
        if !self.is_known(call.datatype) {
            return Err("its type is unknown");
        }
        let count = call.count.and_then(|count| u64::try_from(count).ok()).ok_or("its count is unknown")?;
        let asked_bytes = count.checked_mul(self.size(call.datatype)).ok_or(OUT_OF_RANGE)?;
        let first_byte = match pointer {
            PointerKind::Offset => {
                let offset = call.offset.and_then(|at| u64::try_from(at).ok()).ok_or("its offset is unknown")?;
                offset.checked_mul(self.size(open.etype)).ok_or(OUT_OF_RANGE)?
            }
            _ => open.pointer_bytes.ok_or("the file pointer is unknown")?,
        };
        let blocking = matches!(call.function.role(), Role::Data { form: AccessForm::Blocking, .. });
        let settled = blocking && call.bytes.is_some();
        let bytes = call.bytes.filter(|_| blocking).map_or(asked_bytes, |bytes| bytes.min(asked_bytes));
        let is_inside = |bytes: u64| hull(self.layouts, view, first_byte, bytes).is_some_and(|hull| hull.start >= 0);
        if view.filetype.is_some_and(|of| self.layouts.size(of) == 0) && asked_bytes > 0 {
            return Err("the view has no data");
        }
        if !is_inside(bytes) {
            return Err(OUT_OF_RANGE);
        }
        let memory = TypedBuffer { datatype: call.datatype, count };
        if memory.datatype.is_some_and(|of| self.layouts.hull(of, 0, asked_bytes, 0).is_none()) {
            return Err(OUT_OF_RANGE);
        }
        if pointer == PointerKind::Individual {
            let short = settled && direction == Direction::Read && self.layouts.rules() == BoundRules::Mpich;
            let by = if short { bytes } else { asked_bytes };
            let at = first_byte.checked_add(by);
            if let Some(open) = self.file_mut(call) {
                open.pointer_bytes = at;
            }
        }
        Ok(ResolvedAccess {
            handle,
            file,
            direction,
            view,
            first_byte,
            bytes,
            requested_bytes: asked_bytes,
            is_complete: settled,
            memory,
        })
    }
}

#[cfg(test)]
mod tests;
