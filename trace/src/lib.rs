//! Profile of an application's MPI-IO: functions, arguments, times and results of its calls.
//!
//! The profiler writes one binary file per process; these are merged to one text that can be read, edited and written as a workload, with
//! the order of the calls and the origin of the data. The text is summarized or replayed.
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate self as beff_trace; // of `raw::recorder`, which is a part of an example too

pub mod access;
pub mod call;
pub mod function;
pub mod head;
pub mod layout;
pub mod merge;
pub mod names;
pub mod overwritten;
mod range_map;
pub mod raw;
pub mod summary;
pub mod text;
pub mod types;
pub mod workload;

pub use access::{AccessTracker, CallEffect, ResolvedAccess, TrackedView, TypedBuffer};
pub use call::{Call, CallId, Completion, DataOrigin, FileIdentity, OriginRange};
pub use function::{AccessForm, Direction, Function, PointerKind, Role};
pub use head::{OpenedFile, Process, ProfileHead, RecordingStatus};
pub use layout::{ByteRange, TypeError, TypeLayouts, TypeSegment};
pub use names::{strip_driver_prefix, Amode, ErrorClass, Whence};
pub use types::{ArrayOrder, Datatype};
