//! What the reports of all benchmarks share: pages of text, journal and document, the files of a run, and the machine, the
//! end, the criteria and the costs in words. Pure functions, but for the files.

#[cfg(test)]
pub(crate) mod checks;
pub(crate) mod columns;
pub(crate) mod costs;
pub(crate) mod criteria;
pub(crate) mod csv;
pub(crate) mod ending;
pub(crate) mod grid;
pub mod journal;
pub mod json;
pub mod library;
pub(crate) mod machine;
pub mod marks;
pub mod outputs;
pub mod picture;
pub mod text;
mod views;
pub mod warnings;

pub use outputs::{OutputError, Outputs};
#[cfg(test)]
pub(crate) use views::parse;
pub(crate) use views::write_document;
pub use views::{document, journal, Report, Shown, Views};
