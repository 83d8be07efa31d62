//! `report --system`: the value of a system is the maximum over its runs. A list of results, its maxima, and what was tried.

mod maxima;
#[cfg(test)]
mod tests;
mod value;
mod views;

pub use maxima::{systems, Maximum, SystemMaxima, Tried};
pub use value::{ListedStatus, ListedValue, ReleaseEntry};
pub use views::{csv, document, section_list, text};
