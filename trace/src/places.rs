//! Where the calls of one process touch files: views, pointers and requests, followed through the calls in their order.

use std::collections::HashMap;
use std::ops::Range;

use crate::call::{Call, Completion};
use crate::function::{Direction, Form, Function, Pointer, Role};
use crate::layout::{Layouts, Rules, Walk};
use crate::names::Whence;

/// A file view, as far as places go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Where it begins in the file, in bytes.
    pub displacement_bytes: i64,
    /// Type that is repeated from there on; None: bytes, one behind the other.
    pub filetype: Option<u32>,
}

/// Data in memory, from the address that is given to MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Type of the elements; None: bytes.
    pub datatype: Option<u32>,
    /// Elements.
    pub count: u64,
}

/// A data access whose places are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The opening of the file.
    pub handle: u32,
    /// The file, if the call that opened it told.
    pub file: Option<u32>,
    /// Which way the data goes.
    pub direction: Direction,
    /// The view.
    pub view: View,
    /// First byte in the view's stream of packed data.
    pub first_byte: u64,
    /// Bytes that were moved; that were asked for as long as that is not known.
    pub bytes: u64,
    /// Bytes that were asked for.
    pub asked_bytes: u64,
    /// True if `bytes` were moved.
    pub settled: bool,
    /// Where the data is in memory.
    pub memory: Memory,
}

impl Access {
    /// The places in the file, in the order of the data. At most one run for each piece of the filetype and element.
    #[must_use]
    pub fn extents<'a>(&self, layouts: &'a Layouts) -> Walk<'a> {
        row(layouts, self.view.filetype, self.first_byte, self.bytes, self.view.displacement_bytes)
    }

    /// The places in memory of some of its packed bytes, from the address given to MPI on.
    #[must_use]
    pub fn memory<'a>(&self, layouts: &'a Layouts, first_byte: u64, bytes: u64) -> Walk<'a> {
        row(layouts, self.memory.datatype, first_byte, bytes, 0)
    }

    /// A range of the file that holds all its places.
    #[must_use]
    pub fn hull(&self, layouts: &Layouts) -> Range<i64> {
        hull(layouts, self.view, self.first_byte, self.bytes).unwrap_or_default()
    }

    /// The same access after it was found to have moved so much; more than was asked for cannot be.
    #[must_use]
    pub fn moved(self, bytes: u64) -> Self {
        Self { bytes: bytes.min(self.asked_bytes), settled: true, ..self }
    }
}

fn row(layouts: &Layouts, of: Option<u32>, first_byte: u64, bytes: u64, base: i64) -> Walk<'_> {
    match of {
        Some(of) => layouts.walk(of, first_byte, bytes, base),
        None => Walk::run(base.saturating_add_unsigned(first_byte), bytes),
    }
}

fn hull(layouts: &Layouts, view: View, first_byte: u64, bytes: u64) -> Option<Range<i64>> {
    let base = view.displacement_bytes;
    match view.filetype {
        Some(of) => layouts.hull(of, first_byte, bytes, base),
        None => {
            let start = base.checked_add_unsigned(first_byte)?;
            Some(start..start.checked_add_unsigned(bytes)?)
        }
    }
}

/// What a call does to the data of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// It moves data, or begins to.
    Data(Access),
    /// It ends a split collective access that was begun before.
    Ends(Access),
    /// It moves data, or ends such an access, but where cannot be known.
    Unknown {
        /// The file, if known.
        file: Option<u32>,
        /// Which way the data goes.
        direction: Direction,
        /// Why.
        reason: &'static str,
    },
    /// It moves none.
    Nothing,
}

/// Reason of [`Placed::Unknown`]: no file has such a place, and no call can have succeeded there.
pub const LIMITS: &str = "it lies before the file or beyond 63 bits";

#[derive(Clone, Debug)]
struct Open {
    file: Option<u32>,
    view: Result<View, &'static str>,
    etype: Option<u32>,
    /// The individual pointer, in packed bytes of the view.
    pointer_bytes: Option<u64>,
    split: Option<Placed>,
    sequential: bool,
}

/// Follows one process. Calls that failed change nothing.
#[derive(Clone, Debug)]
pub struct Tracker<'a> {
    layouts: &'a Layouts,
    open: HashMap<u32, Open>,
    pending: HashMap<u64, Placed>,
}

impl<'a> Tracker<'a> {
    /// A process before its first call. `layouts` are of the types that its calls refer to. They also tell how far the pointer moves
    /// at the end of the file: by what was read (MPICH), or by what was asked for (the standard).
    #[must_use]
    pub fn new(layouts: &'a Layouts) -> Self {
        Self { layouts, open: HashMap::new(), pending: HashMap::new() }
    }

    /// What the next call does. A nonblocking access is kept under its request until [`Tracker::completed`] or [`Tracker::forget`].
    pub fn place(&mut self, call: &Call) -> Placed {
        if call.error.is_some() {
            if let (Role::Data { form: Form::End, .. }, Some(open)) = (call.function.role(), self.opened(call)) {
                open.split = None;
            }
            return Placed::Nothing;
        }
        let Role::Data { direction, pointer, form, .. } = call.function.role() else {
            self.manage(call);
            return Placed::Nothing;
        };
        let placed = match form {
            Form::End => self.end(call, direction),
            _ => self.data(call, direction, pointer),
        };
        match (form, call.request) {
            (Form::Nonblocking, Some(request)) => {
                self.pending.insert(request, placed);
            }
            (Form::Begin, _) => {
                if let Some(open) = self.opened(call) {
                    open.split = Some(placed);
                }
            }
            _ => {}
        }
        placed
    }

    /// The access that a request stood for, with the bytes that it moved; None if there is none. A failed one moved nothing.
    pub fn completed(&mut self, completion: &Completion) -> Option<Placed> {
        let placed = self.pending.remove(&completion.request)?;
        let moved = if completion.error.is_some() { Some(0) } else { completion.bytes };
        Some(match (placed, moved) {
            (Placed::Data(access), Some(bytes)) => Placed::Data(access.moved(bytes)),
            (other, _) => other,
        })
    }

    /// The access of a request that the program freed: its end is never seen.
    pub fn forget(&mut self, request: u64) -> Option<Placed> {
        self.pending.remove(&request)
    }

    fn opened(&mut self, call: &Call) -> Option<&mut Open> {
        self.open.get_mut(&call.handle?)
    }

    fn known(&self, datatype: Option<u32>) -> bool {
        datatype.is_none_or(|of| self.layouts.is_known(of))
    }

    fn size(&self, datatype: Option<u32>) -> u64 {
        datatype.map_or(1, |of| self.layouts.size(of))
    }

    fn manage(&mut self, call: &Call) {
        match call.function {
            Function::Open => {
                let Some(handle) = call.handle else { return };
                let has = |name| call.amode.is_some_and(|amode| amode.has(name));
                let end = call.number.map(|size| u64::try_from(size).unwrap_or(0));
                let open = Open {
                    file: call.file,
                    view: Ok(View::default()),
                    etype: None,
                    pointer_bytes: if has("append") { end } else { Some(0) },
                    split: None,
                    sequential: has("sequential"),
                };
                self.open.insert(handle, open);
            }
            Function::Close => {
                call.handle.and_then(|handle| self.open.remove(&handle));
            }
            Function::SetView => self.set_view(call),
            Function::Seek => self.seek(call),
            Function::GetPosition => {
                let etype_bytes = self.etype_bytes(call);
                let position = call.number.and_then(|at| u64::try_from(at).ok()).zip(etype_bytes);
                if let (Some((position, etype_bytes)), Some(open)) = (position, self.opened(call)) {
                    // Of a position inside an etype the answer tells only the whole ones.
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
        let (displacement, known) = (call.offset, self.known(call.filetype) && self.known(call.etype));
        let Some(open) = self.opened(call) else { return };
        let view = match displacement {
            _ if !known => Err("the view has a type that is not known"),
            _ if call.name.is_some() => Err("the view has a data representation of its own"),
            Some(at) if at >= 0 => Ok(View { displacement_bytes: at, filetype: call.filetype }),
            _ => Err("the view begins at a place that is not known"),
        };
        (open.view, open.etype, open.pointer_bytes) = (view, call.etype.filter(|_| known), Some(0));
    }

    fn etype_bytes(&self, call: &Call) -> Option<u64> {
        let open = self.open.get(&call.handle?)?;
        open.view.ok()?;
        Some(self.size(open.etype))
    }

    fn seek(&mut self, call: &Call) {
        let etype_bytes = self.etype_bytes(call).and_then(|bytes| i64::try_from(bytes).ok());
        let Some(open) = self.opened(call) else { return };
        let by = call.offset.zip(etype_bytes).and_then(|(offset, bytes)| offset.checked_mul(bytes));
        open.pointer_bytes = match (call.whence, by) {
            (Some(Whence::Set), Some(by)) => u64::try_from(by).ok(),
            (Some(Whence::Current), Some(by)) => open.pointer_bytes.and_then(|at| at.checked_add_signed(by)),
            // The size of the file at that moment is not known.
            _ => None,
        };
    }

    fn end(&mut self, call: &Call, direction: Direction) -> Placed {
        let moves_by_moved = self.layouts.rules() == Rules::Mpich;
        let Some(open) = self.opened(call) else {
            return Placed::Unknown { file: None, direction, reason: "the file was not seen being opened" };
        };
        let individual = matches!(call.function.role(), Role::Data { pointer: Pointer::Individual, .. });
        match (open.split.take(), call.bytes) {
            (Some(Placed::Data(access)), Some(bytes)) => {
                let moved = access.moved(bytes);
                if individual && direction == Direction::Read && moves_by_moved {
                    let short = access.asked_bytes - moved.bytes;
                    open.pointer_bytes = open.pointer_bytes.and_then(|at| at.checked_sub(short));
                }
                Placed::Ends(moved)
            }
            (Some(Placed::Data(access)), None) => Placed::Ends(access),
            (Some(Placed::Unknown { file, direction, reason }), _) => Placed::Unknown { file, direction, reason },
            _ => Placed::Unknown { file: open.file, direction, reason: "its begin was not seen" },
        }
    }

    fn data(&mut self, call: &Call, direction: Direction, pointer: Pointer) -> Placed {
        let file = self.opened(call).and_then(|open| open.file);
        match self.access(call, direction, pointer) {
            Ok(access) => Placed::Data(access),
            Err(reason) => {
                if pointer == Pointer::Individual {
                    if let Some(open) = self.opened(call) {
                        open.pointer_bytes = None;
                    }
                }
                Placed::Unknown { file, direction, reason }
            }
        }
    }

    fn access(&mut self, call: &Call, direction: Direction, pointer: Pointer) -> Result<Access, &'static str> {
        let handle = call.handle.ok_or("the call has no file")?;
        let open = self.open.get(&handle).ok_or("the file was not seen being opened")?;
        if pointer == Pointer::Shared || open.sequential {
            return Err("the shared file pointer has no order that is known");
        }
        let (view, file) = (open.view?, open.file);
        if !self.known(call.datatype) {
            return Err("its type is not known");
        }
        let count = call.count.and_then(|count| u64::try_from(count).ok()).ok_or("its count is not known")?;
        let asked_bytes = count.checked_mul(self.size(call.datatype)).ok_or(LIMITS)?;
        let first_byte = match pointer {
            Pointer::Offset => {
                let offset = call.offset.and_then(|at| u64::try_from(at).ok()).ok_or("its offset is not known")?;
                offset.checked_mul(self.size(open.etype)).ok_or(LIMITS)?
            }
            _ => open.pointer_bytes.ok_or("the file pointer is not known")?,
        };
        let blocking = matches!(call.function.role(), Role::Data { form: Form::Blocking, .. });
        let settled = blocking && call.bytes.is_some();
        let bytes = call.bytes.filter(|_| blocking).map_or(asked_bytes, |bytes| bytes.min(asked_bytes));
        let is_inside = |bytes: u64| hull(self.layouts, view, first_byte, bytes).is_some_and(|hull| hull.start >= 0);
        if view.filetype.is_some_and(|of| self.layouts.size(of) == 0) && asked_bytes > 0 {
            return Err("the view has no data");
        }
        if !is_inside(bytes) {
            return Err(LIMITS);
        }
        let memory = Memory { datatype: call.datatype, count };
        if memory.datatype.is_some_and(|of| self.layouts.hull(of, 0, asked_bytes, 0).is_none()) {
            return Err(LIMITS);
        }
        if pointer == Pointer::Individual {
            let short = settled && direction == Direction::Read && self.layouts.rules() == Rules::Mpich;
            let by = if short { bytes } else { asked_bytes };
            let at = first_byte.checked_add(by);
            if let Some(open) = self.opened(call) {
                open.pointer_bytes = at;
            }
        }
        Ok(Access { handle, file, direction, view, first_byte, bytes, asked_bytes, settled, memory })
    }
}

#[cfg(test)]
mod tests;
