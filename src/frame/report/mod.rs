//! What the reports of all benchmarks share: pages of text, journal and document, the files of a run, and the machine, the
//! end, the criteria and the costs in words. Pure functions, but for the files.

pub mod bars;
mod binding;
#[cfg(test)]
pub(crate) mod checks;
pub(crate) mod columns;
pub mod comparison;
pub(crate) mod costs;
pub(crate) mod criteria;
pub(crate) mod csv;
mod elements;
pub(crate) mod ending;
pub mod facts;
pub(crate) mod grid;
pub mod html;
pub mod journal;
pub mod json;
pub mod library;
pub(crate) mod machine;
pub mod marks;
pub mod outputs;
pub mod picture;
pub mod place;
pub(crate) mod probe;
pub(crate) mod schema;
pub(crate) mod screen;
pub mod sheet;
pub mod text;
mod views;
pub mod warnings;

pub use outputs::{OutputError, Outputs};
pub use place::{Level, Place, Saved};
pub use sheet::Sheet;
#[cfg(test)]
pub(crate) use views::parse;
pub use views::{document, journal, schema, Report, Shown, Views};
pub(crate) use views::{schema_of, write_document};
