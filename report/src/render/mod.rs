//! Rendering of a [`crate::model::ReportModel`] for a terminal, as one screen or as full text; and of blocks as Markdown.

pub mod common_text;
pub mod markdown;
mod screen;
mod text;

pub use text::{blocks, table};

use crate::display::{DetailLevel, DisplayContext};
use crate::model::ReportModel;
use crate::terminal::TerminalOutput;

/// Output on stdout.
#[must_use]
pub fn sheet(model: &ReportModel, level: DetailLevel, place: &DisplayContext) -> TerminalOutput {
    match level {
        DetailLevel::Screen => TerminalOutput::Screen(screen::screen(model, place)),
        DetailLevel::Full | DetailLevel::Details | DetailLevel::Page => TerminalOutput::Text(text::text(model)),
    }
}
