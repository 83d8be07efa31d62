//! How a [`crate::model::Model`] looks on a terminal: one screen, or all of it as text; and blocks as Markdown.

pub mod markdown;
pub mod said;
mod screen;
mod text;

pub use text::{blocks, table};

use crate::model::Model;
use crate::place::{Level, Place};
use crate::sheet::Sheet;

/// What a user reads on stdout.
#[must_use]
pub fn sheet(model: &Model, level: Level, place: &Place) -> Sheet {
    match level {
        Level::Screen => Sheet::Screen(screen::screen(model, place)),
        Level::Full | Level::Details | Level::Page => Sheet::Text(text::text(model)),
    }
}
