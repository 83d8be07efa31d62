//! Data access routines under their own names: function of the library and prepared arguments.

use std::ffi::{c_int, c_void};
use std::mem::transmute;

use beff_trace::{AccessForm, Function, PointerKind, Role};
use mpi_sys::{MPI_Count, MPI_Datatype, MPI_File, MPI_Offset, MPI_Request, MPI_Status};

use super::file::FileHandle;
use super::requests::{Request, Status};
use super::timing::{time_call, TimedCall};
use super::types::TypeHandle;
use crate::shim;

type RawDatatype = MPI_Datatype;
type BufferPointer = *mut c_void;
/// C is the type of the count, L that of the last argument.
type ExplicitOffsetFn<C, L> =
    unsafe extern "C" fn(MPI_File, MPI_Offset, BufferPointer, C, RawDatatype, *mut L) -> c_int;
type FilePointerFn<C, L> = unsafe extern "C" fn(MPI_File, BufferPointer, C, RawDatatype, *mut L) -> c_int;
type BeginExplicitOffsetFn<C> = unsafe extern "C" fn(MPI_File, MPI_Offset, BufferPointer, C, RawDatatype) -> c_int;
type BeginFilePointerFn<C> = unsafe extern "C" fn(MPI_File, BufferPointer, C, RawDatatype) -> c_int;
type EndFn = unsafe extern "C" fn(MPI_File, BufferPointer, *mut MPI_Status) -> c_int;

/// A function with its count as a C type.
#[derive(Clone, Copy, Debug)]
enum Signature<C> {
    ExplicitOffset(ExplicitOffsetFn<C, MPI_Status>, C),
    FilePointer(FilePointerFn<C, MPI_Status>, C),
    NonblockingExplicitOffset(ExplicitOffsetFn<C, MPI_Request>, C),
    NonblockingFilePointer(FilePointerFn<C, MPI_Request>, C),
    BeginExplicitOffset(BeginExplicitOffsetFn<C>, C),
    BeginFilePointer(BeginFilePointerFn<C>, C),
}

#[derive(Clone, Copy, Debug)]
enum CallSignature {
    Plain(Signature<c_int>),
    Large(Signature<MPI_Count>),
    End(EndFn),
}

/// A data access routine and its count.
#[derive(Clone, Copy, Debug)]
pub struct DataFunction(CallSignature);

impl DataFunction {
    /// The function, its large-count variant if `large` and available. None for other functions, or if the library has none for this
    /// count.
    #[must_use]
    pub fn new(function: Function, large: bool, count: i64) -> Option<Self> {
        let Role::Data { pointer, form, .. } = function.role() else { return None };
        let number = function as usize;
        // Data access routines come first, in the order of the tables.
        let (plain, twin) =
            (constant!(shim::beff_data_function)[number]?, constant!(shim::beff_data_function_c)[number]);
        if form == AccessForm::End {
            // SAFETY: the table has a function of this form at this number, which takes a file, memory and a status.
            return Some(Self(CallSignature::End(unsafe { transmute::<AnyFn, EndFn>(plain) })));
        }
        let explicit = pointer == PointerKind::Offset;
        match (twin, c_int::try_from(count)) {
            (Some(twin), _) if large => {
                // SAFETY: the large-count variant at this number: `form` and `explicit` are those of its row, counts are MPI_Count.
                Some(Self(CallSignature::Large(unsafe { signature_of(twin, form, explicit, count) })))
            }
            // SAFETY: as above, with a C integer as count.
            (_, Ok(count)) => Some(Self(CallSignature::Plain(unsafe { signature_of(plain, form, explicit, count) }))),
            _ => None,
        }
    }
}

type AnyFn = unsafe extern "C" fn();

/// # Safety
/// `function` has this form, an offset if `explicit`, and C as the type of its count.
unsafe fn signature_of<C>(function: AnyFn, form: AccessForm, explicit: bool, count: C) -> Signature<C> {
    // SAFETY: as the caller guarantees; functions of one form differ in the offset only (MPI-4.0 section 14.4).
    unsafe {
        match (form, explicit) {
            (AccessForm::Nonblocking, true) => Signature::NonblockingExplicitOffset(
                transmute::<AnyFn, ExplicitOffsetFn<C, MPI_Request>>(function),
                count,
            ),
            (AccessForm::Nonblocking, false) => {
                Signature::NonblockingFilePointer(transmute::<AnyFn, FilePointerFn<C, MPI_Request>>(function), count)
            }
            (AccessForm::Begin, true) => {
                Signature::BeginExplicitOffset(transmute::<AnyFn, BeginExplicitOffsetFn<C>>(function), count)
            }
            (AccessForm::Begin, false) => {
                Signature::BeginFilePointer(transmute::<AnyFn, BeginFilePointerFn<C>>(function), count)
            }
            (AccessForm::Blocking | AccessForm::End, true) => {
                Signature::ExplicitOffset(transmute::<AnyFn, ExplicitOffsetFn<C, MPI_Status>>(function), count)
            }
            (AccessForm::Blocking | AccessForm::End, false) => {
                Signature::FilePointer(transmute::<AnyFn, FilePointerFn<C, MPI_Status>>(function), count)
            }
        }
    }
}

/// A prepared data access.
#[derive(Clone, Copy, Debug)]
pub struct DataCall {
    /// The function.
    pub function: DataFunction,
    /// Address of the buffer.
    pub memory: *mut u8,
    /// Datatype in memory.
    pub datatype: TypeHandle,
    /// Offset in etypes of the view, for explicit offsets.
    pub offset: i64,
}

impl DataCall {
    /// Issues the call. Sets the status if it completes the access, the request if it posts one.
    ///
    /// # Safety
    /// The file is open, the type valid. All memory that the count of types touches is valid, readable for a write, writable for a read
    /// and not otherwise used, until the call returns, its request is complete, or, after a begin, the end call has returned.
    #[inline]
    pub unsafe fn issue(&self, file: &FileHandle, status: &mut Status, request: &mut Request) -> TimedCall {
        match self.function.0 {
            // SAFETY: as the caller guarantees.
            CallSignature::Plain(form) => unsafe { self.issue_with(form, file, status, request) },
            // SAFETY: as above.
            CallSignature::Large(form) => unsafe { self.issue_with(form, file, status, request) },
            // SAFETY: as above; the memory is that of the begin call.
            CallSignature::End(call) => unsafe {
                time_call(|| call(file.handle(), self.memory.cast(), status.as_mut_ptr()))
            },
        }
    }

    #[inline]
    unsafe fn issue_with<C>(
        &self,
        form: Signature<C>,
        file: &FileHandle,
        status: &mut Status,
        request: &mut Request,
    ) -> TimedCall {
        let (file, at, memory, kind) = (file.handle(), self.offset, self.memory.cast::<c_void>(), self.datatype.0);
        let (status, request) = (status.as_mut_ptr(), request.as_mut_ptr());
        // SAFETY: functions of these forms; file, type and memory are as the caller of `issue` guarantees.
        unsafe {
            match form {
                Signature::ExplicitOffset(call, count) => time_call(|| call(file, at, memory, count, kind, status)),
                Signature::FilePointer(call, count) => time_call(|| call(file, memory, count, kind, status)),
                Signature::NonblockingExplicitOffset(call, count) => {
                    time_call(|| call(file, at, memory, count, kind, request))
                }
                Signature::NonblockingFilePointer(call, count) => {
                    time_call(|| call(file, memory, count, kind, request))
                }
                Signature::BeginExplicitOffset(call, count) => time_call(|| call(file, at, memory, count, kind)),
                Signature::BeginFilePointer(call, count) => time_call(|| call(file, memory, count, kind)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_data_access_has_its_function() {
        let data = || Function::all().filter(|function| function.direction().is_some());
        assert_eq!(data().count(), shim::BEFF_DATA_FUNCTIONS as usize);
        for function in data() {
            let plain = DataFunction::new(function, false, 7).unwrap();
            assert_eq!(matches!(plain.0, CallSignature::End(_)), function.name().ends_with("_end"), "{function:?}");
            // Without a large-count variant the plain function is used if the count fits.
            assert!(DataFunction::new(function, true, 7).is_some());
            let has_twin = constant!(shim::beff_data_function_c)[function as usize].is_some();
            let beyond = DataFunction::new(function, true, 1 << 40);
            assert_eq!(beyond.is_some(), has_twin || matches!(plain.0, CallSignature::End(_)), "{function:?}");
            assert_eq!(beyond.is_some_and(|f| matches!(f.0, CallSignature::Large(_))), has_twin);
        }
        assert!(DataFunction::new(Function::Open, false, 1).is_none());
    }
}
