//! A page of results for a browser: one file with style, pictures and records inside. It needs no script and asks for nothing.
//!
//! The rooms say what there is ([`model`]), draw with [`lines`], [`stacks`] and [`lanes`], and [`write`] makes the file. Each picture
//! has a table behind it, so nothing is told by colour or by a pointer alone.

mod escape;
pub mod facts;
mod gnuplot;
pub mod lanes;
pub mod lines;
pub mod model;
mod ranks;
pub mod raw;
pub mod scale;
pub mod stacks;
mod svg;
pub mod table;
mod write;

pub use escape::{escape, slug};
pub use gnuplot::gnuplot;
pub use model::{Block, Finding, Frame, Headline, Key, Picture, Run, Section, Tone};
pub use ranks::{over_ranks, together};
pub use svg::alone;
pub use table::{Cell, Table};
pub use write::{page, Source};

#[cfg(test)]
mod tests;
