//! Reports of results: a result as data ([`model`]), what it looks like on a terminal ([`render`]) and in a browser ([`html`]), and the
//! words and numbers in it. No MPI, no files, no clock.

#![forbid(unsafe_code)]

pub mod bars;
pub mod criterion;
pub mod digits;
pub mod html;
pub mod marks;
pub mod model;
pub mod picture;
pub mod place;
pub mod plain;
pub mod render;
pub mod sheet;
pub mod table;
pub mod text;
pub mod units;
pub mod words;

pub use criterion::Criterion;
pub use place::{Level, Place, Saved};
pub use sheet::Sheet;
