//! A page of results for a browser: one file with style, pictures and records inside. It needs no script and asks for nothing.
//!
//! The rooms say what there is ([`crate::model`]), draw with [`lines`], [`stacks`] and [`lanes`], and [`write`] makes the file. Each picture
//! has a table behind it, so nothing is told by colour or by a pointer alone.

mod escape;
mod gnuplot;
pub mod lanes;
pub mod lines;
mod ranks;
pub mod raw;
pub mod scale;
pub mod stacks;
mod svg;
mod table;
mod write;

pub use escape::{escape, slug};
pub use gnuplot::gnuplot;
pub use ranks::{over_ranks, together};
pub use svg::alone;

pub use write::{page, Source};

#[cfg(test)]
mod tests;
