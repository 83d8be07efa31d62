//! The profile of an application's MPI-IO: what was called, with what, when, and what came of it.
//!
//! The profiler writes one binary file for each process; these become one text that people read, edit and write as workloads, with
//! the order and the origin of the data worked out. The text is shown or replayed.
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate self as beff_trace; // of `raw::recorder`, which is a part of an example too

pub mod call;
pub mod function;
pub mod head;
pub mod layout;
pub mod merge;
pub mod names;
pub mod places;
pub mod raw;
pub mod summary;
pub mod text;
pub mod types;

pub use call::{After, Call, Completion, Content, Origin};
pub use function::{Direction, Form, Function, Pointer, Role};
pub use head::{End, Head, OpenedFile, Process};
pub use layout::{Extent, Layouts, Piece, TypeError};
pub use names::{Amode, ErrorClass, Whence};
pub use places::{Access, Memory, Placed, Tracker, View};
pub use types::{Order, Type};
