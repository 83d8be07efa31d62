//! The data accesses, by their own names: which function of the library, with its arguments ready to be passed.

use std::ffi::{c_int, c_void};
use std::mem::transmute;

use beff_trace::{Form, Function, Pointer, Role};
use mpi_sys::{MPI_Count, MPI_Datatype, MPI_File, MPI_Offset, MPI_Request, MPI_Status};

use super::file::File;
use super::requests::{Request, Status};
use super::timed::{timed, Timed};
use super::types::TypeHandle;
use crate::shim;

type Kind = MPI_Datatype;
type Memory = *mut c_void;
/// C is the type of the count, L that of the last argument.
type At<C, L> = unsafe extern "C" fn(MPI_File, MPI_Offset, Memory, C, Kind, *mut L) -> c_int;
type Here<C, L> = unsafe extern "C" fn(MPI_File, Memory, C, Kind, *mut L) -> c_int;
type BeginAt<C> = unsafe extern "C" fn(MPI_File, MPI_Offset, Memory, C, Kind) -> c_int;
type BeginHere<C> = unsafe extern "C" fn(MPI_File, Memory, C, Kind) -> c_int;
type End = unsafe extern "C" fn(MPI_File, Memory, *mut MPI_Status) -> c_int;

/// One with its count as C takes it.
#[derive(Clone, Copy, Debug)]
enum Signature<C> {
    At(At<C, MPI_Status>, C),
    Here(Here<C, MPI_Status>, C),
    IAt(At<C, MPI_Request>, C),
    IHere(Here<C, MPI_Request>, C),
    BeginAt(BeginAt<C>, C),
    BeginHere(BeginHere<C>, C),
}

#[derive(Clone, Copy, Debug)]
enum Which {
    Plain(Signature<c_int>),
    Large(Signature<MPI_Count>),
    End(End),
}

/// A function of data access and the count it will be called with.
#[derive(Clone, Copy, Debug)]
pub struct DataFunction(Which);

impl DataFunction {
    /// The function, its twin with large counts if `large` and the library has it. None if it is no function of data access,
    /// or the library has none that takes this count.
    #[must_use]
    pub fn of(function: Function, large: bool, count: i64) -> Option<Self> {
        let Role::Data { pointer, form, .. } = function.role() else { return None };
        let number = function as usize;
        // The functions of data access are the first ones, in the order of the tables.
        let (plain, twin) =
            (constant!(shim::beff_data_function)[number]?, constant!(shim::beff_data_function_c)[number]);
        if form == Form::End {
            // SAFETY: the table has at this number a function of this form, which takes a file, memory and a status.
            return Some(Self(Which::End(unsafe { transmute::<Any, End>(plain) })));
        }
        let explicit = pointer == Pointer::Offset;
        match (twin, c_int::try_from(count)) {
            // SAFETY: the twin of the function at this number: `form` and `explicit` are those of its row, counts are MPI_Count.
            (Some(twin), _) if large => Some(Self(Which::Large(unsafe { of_form(twin, form, explicit, count) }))),
            // SAFETY: as above, with a count of C.
            (_, Ok(count)) => Some(Self(Which::Plain(unsafe { of_form(plain, form, explicit, count) }))),
            _ => None,
        }
    }
}

type Any = unsafe extern "C" fn();

/// # Safety
/// `function` is one of this form, with an offset if `explicit`, and takes its count as C.
unsafe fn of_form<C>(function: Any, form: Form, explicit: bool, count: C) -> Signature<C> {
    // SAFETY: the caller's promise; functions of one form differ in the offset alone (MPI-4.0 section 14.4).
    unsafe {
        match (form, explicit) {
            (Form::Nonblocking, true) => Signature::IAt(transmute::<Any, At<C, MPI_Request>>(function), count),
            (Form::Nonblocking, false) => Signature::IHere(transmute::<Any, Here<C, MPI_Request>>(function), count),
            (Form::Begin, true) => Signature::BeginAt(transmute::<Any, BeginAt<C>>(function), count),
            (Form::Begin, false) => Signature::BeginHere(transmute::<Any, BeginHere<C>>(function), count),
            (Form::Blocking | Form::End, true) => Signature::At(transmute::<Any, At<C, MPI_Status>>(function), count),
            (Form::Blocking | Form::End, false) => {
                Signature::Here(transmute::<Any, Here<C, MPI_Status>>(function), count)
            }
        }
    }
}

/// A data access, ready to be made.
#[derive(Clone, Copy, Debug)]
pub struct DataCall {
    /// What is called.
    pub function: DataFunction,
    /// The address that is given to it.
    pub memory: *mut u8,
    /// The type in memory.
    pub datatype: TypeHandle,
    /// For calls with an offset, in etypes of the view.
    pub offset: i64,
}

impl DataCall {
    /// Makes the call. It fills in the status if it ends here, the request if it leaves one.
    ///
    /// # Safety
    /// The file is open and the type alive. All that the count of types touches from the address on is valid memory, readable
    /// for a write, writable for a read and used by nobody else: until the call returns, or until the request is completed,
    /// or, after a begin, until the call that ends it has returned.
    #[inline]
    pub unsafe fn make(&self, file: &File, status: &mut Status, request: &mut Request) -> Timed {
        match self.function.0 {
            // SAFETY: the caller's promise, handed on.
            Which::Plain(form) => unsafe { self.plain(form, file, status, request) },
            // SAFETY: as above.
            Which::Large(form) => unsafe { self.plain(form, file, status, request) },
            // SAFETY: as above; the memory is that of the begin.
            Which::End(call) => unsafe { timed(|| call(file.handle(), self.memory.cast(), status.memory())) },
        }
    }

    #[inline]
    unsafe fn plain<C>(&self, form: Signature<C>, file: &File, status: &mut Status, request: &mut Request) -> Timed {
        let (file, at, memory, kind) = (file.handle(), self.offset, self.memory.cast::<c_void>(), self.datatype.0);
        let (status, request) = (status.memory(), request.memory());
        // SAFETY: functions of these forms; file, type and memory are as the caller of `make` promised.
        unsafe {
            match form {
                Signature::At(call, count) => timed(|| call(file, at, memory, count, kind, status)),
                Signature::Here(call, count) => timed(|| call(file, memory, count, kind, status)),
                Signature::IAt(call, count) => timed(|| call(file, at, memory, count, kind, request)),
                Signature::IHere(call, count) => timed(|| call(file, memory, count, kind, request)),
                Signature::BeginAt(call, count) => timed(|| call(file, at, memory, count, kind)),
                Signature::BeginHere(call, count) => timed(|| call(file, memory, count, kind)),
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
            let plain = DataFunction::of(function, false, 7).unwrap();
            assert_eq!(matches!(plain.0, Which::End(_)), function.name().ends_with("_end"), "{function:?}");
            // Without a twin the plain one takes what it can.
            assert!(DataFunction::of(function, true, 7).is_some());
            let has_twin = constant!(shim::beff_data_function_c)[function as usize].is_some();
            let beyond = DataFunction::of(function, true, 1 << 40);
            assert_eq!(beyond.is_some(), has_twin || matches!(plain.0, Which::End(_)), "{function:?}");
            assert_eq!(beyond.is_some_and(|f| matches!(f.0, Which::Large(_))), has_twin);
        }
        assert!(DataFunction::of(Function::Open, false, 1).is_none());
    }
}
