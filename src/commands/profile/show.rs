//! `beff-raw profile show FILE`.

use super::{ShowArgs, ShowFormat};
use crate::frame::command::publish;
use crate::frame::error::{Exit, UsageError};

/// Prints what is in a profile.
///
/// # Errors
/// A file that cannot be read or is no sound profile.
pub fn run(args: &ShowArgs) -> anyhow::Result<Exit> {
    let refused = |e: beff_trace::text::TextError| UsageError::new(e.to_string(), "Nothing was shown.");
    let summary = beff_trace::summary::summarize(&args.profile).map_err(refused)?;
    publish(match args.format {
        ShowFormat::Table => summary.text(args.details),
        ShowFormat::Json => summary.json()?,
    }.as_bytes());
    Ok(Exit::Ok)
}
