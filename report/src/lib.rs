//! Reports of results: a result as data ([`model`]), its rendering for a terminal ([`render`]) and a browser ([`html`]), and formatting
//! of texts and numbers. No MPI, no files, no clock.

#![forbid(unsafe_code)]

pub mod bars;
pub mod criterion;
pub mod digits;
pub mod display;
pub mod html;
pub mod marks;
pub mod model;
pub mod picture;
pub mod render;
pub mod table;
pub mod terminal;
pub mod terminal_escape;
pub mod text;
pub mod units;
pub mod words;

pub use criterion::Criterion;
pub use display::{DetailLevel, DisplayContext, SaveStatus};
pub use terminal::TerminalOutput;
