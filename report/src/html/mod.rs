//! A page of results for a browser: one file including style, pictures and records. It uses no script and no external resource.
//!
//! The benchmark modules provide the content ([`crate::model`]) and draw with [`lines`], [`stacks`], [`timeline`] and [`heat`]; [`write`] creates the
//! file. Each picture has a table, so that no information depends on colour or tooltips alone.

mod escape;
mod gnuplot;
pub mod heat;
pub mod lines;
mod ranks;
pub mod records;
pub mod scale;
pub mod stacks;
mod svg;
mod table;
pub mod timeline;
mod write;

pub use escape::{escape, slug};
pub use gnuplot::gnuplot;
pub use ranks::{ranks_section, ranks_svg};
pub use svg::standalone_svg;

pub use write::{page, printed_page, section_page, PageRun};

#[cfg(test)]
mod tests;
