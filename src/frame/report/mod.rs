//! What the reports of all benchmarks share: pages of text, journal and document, the files of a run, and the machine, the
//! end, the criteria and the costs in words. Pure functions, but for the files.

mod binding;
#[cfg(test)]
pub(crate) mod checks;
pub(crate) mod common;
pub mod comparison;
pub(crate) mod costs;
pub(crate) mod csv;
mod elements;
pub(crate) mod ending;
pub mod facts;
pub mod journal;
pub mod json;
pub mod library;
pub(crate) mod machine;
pub mod outputs;
pub(crate) mod probe;
pub(crate) mod schema;
mod views;

pub use beff_report::{
    bars, html, marks, model, picture, place, render, sheet, table, text, Level, Place, Saved, Sheet,
};
pub use outputs::{OutputError, Outputs};
#[cfg(test)]
pub(crate) use views::parse;
pub use views::{document, journal, schema, Report, Shown, Views};
pub(crate) use views::{schema_of, write_document};
