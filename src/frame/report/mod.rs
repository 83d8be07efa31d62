//! Common parts of the reports of all benchmarks: journal and document, output files of a run, and texts about machine, outcome,
//! criteria and overheads. Pure functions except for the files.

pub mod acceptance;
mod binding;
#[cfg(test)]
pub(crate) mod checks;
pub(crate) mod common;
pub mod comparison;
pub(crate) mod costs;
pub(crate) mod csv;
pub mod doubts;
mod elements;
pub mod facts;
pub mod journal;
pub mod json;
pub mod library;
pub(crate) mod machine;
pub mod metrics;
mod old_names;
pub(crate) mod outcome_text;
pub mod outputs;
pub mod over_time;
pub(crate) mod schema;
pub(crate) mod storage_drift;
pub mod system_list;
pub(crate) mod variants;
mod views;

pub use beff_report::{
    bars, display, html, marks, model, picture, render, table, terminal, text, DetailLevel, DisplayContext, SaveStatus,
    TerminalOutput,
};
pub use outputs::{OutputError, Outputs};
pub use views::{document, journal, schema, LoadedReport, ResultReport, Views};
pub(crate) use views::{parse, schema_with, write_document};
