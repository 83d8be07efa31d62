//! Where data accesses go in their file.

use std::collections::HashMap;

use beff_trace::layout::Layouts;
use beff_trace::{Call, Function, Pointer, Role, Whence};

/// The row of elements that an access goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// None: plain bytes.
    pub(super) filetype: Option<u32>,
    pub(super) displacement_bytes: i64,
    pub(super) first_byte: u64,
}

#[derive(Clone, Copy, Debug)]
struct View {
    filetype: Option<u32>,
    displacement_bytes: i64,
    etype_bytes: u64,
    /// In etypes; None: unknown.
    pointer: Option<i64>,
}

/// Views and individual pointers.
#[derive(Debug)]
pub(super) struct Positions(HashMap<u32, View>);

impl Positions {
    pub(super) fn new() -> Self {
        Self(HashMap::new())
    }

    /// Where a data access goes; moves the pointer.
    pub(super) fn place(&mut self, call: &Call, layouts: &Layouts) -> Result<Place, &'static str> {
        let view = call.handle.and_then(|handle| self.0.get_mut(&handle)).ok_or("its file is not open")?;
        let bytes =
            u64::try_from(call.count.unwrap_or(0)).unwrap_or(0) * call.datatype.map_or(0, |of| layouts.size(of));
        let etype = view.etype_bytes.max(1);
        let at = match call.function.role() {
            Role::Data { pointer: Pointer::Individual, .. } => {
                let at = view.pointer;
                if call.error.is_none() {
                    view.pointer = at.map(|at| at + (bytes / etype) as i64);
                }
                at.ok_or("its file pointer is unknown")?
            }
            _ => call.offset.ok_or("it has no offset")?,
        };
        let first_byte = u64::try_from(at).map_err(|_| "a negative offset")? * etype;
        Ok(Place { filetype: view.filetype, displacement_bytes: view.displacement_bytes, first_byte })
    }

    /// What a management call does to the view, and the number it answers, if that is known.
    pub(super) fn manage(&mut self, call: &Call, layouts: &Layouts) -> Option<i64> {
        let handle = call.handle?;
        if call.function == Function::Open {
            let append = call.amode.is_some_and(|amode| amode.has("append"));
            let pointer = if append { call.number.map(|size| size.max(0)) } else { Some(0) };
            self.0.insert(handle, View { filetype: None, displacement_bytes: 0, etype_bytes: 1, pointer });
            return None;
        }
        let view = self.0.get_mut(&handle)?;
        match call.function {
            Function::SetView if call.error.is_none() => {
                let etype_bytes = call.etype.map_or(1, |etype| layouts.size(etype));
                let displacement_bytes = call.offset.unwrap_or(0);
                *view = View { filetype: call.filetype, displacement_bytes, etype_bytes, pointer: Some(0) };
            }
            Function::Seek if call.error.is_none() => {
                view.pointer = match call.whence {
                    Some(Whence::Set) => call.offset,
                    Some(Whence::Current) => view.pointer.zip(call.offset).map(|(at, by)| at + by),
                    _ => None,
                };
            }
            Function::GetPosition => return view.pointer,
            Function::GetTypeExtent => return call.datatype.map(|of| layouts.extent(of)),
            _ => {}
        }
        None
    }
}
