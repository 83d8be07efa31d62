//! `beff-raw profile show FILE`.

use super::{page, ShowArgs, ShowFormat};
use crate::frame::command::publish;
use crate::frame::error::{Exit, UsageError};
use crate::frame::report::text::WIDTH;

/// Prints the content of a profile.
///
/// # Errors
/// A file that cannot be read or is not a valid profile.
pub fn run(args: &ShowArgs) -> anyhow::Result<Exit> {
    let refused = |e: beff_trace::text::TextError| {
        let (all, next) = (e.to_string(), e.next_step());
        UsageError::new(all.strip_suffix(next).unwrap_or(&all).trim_end_matches("; "), next)
    };
    if let Some(out) = &args.html {
        return page::write(&args.profile, out, refused);
    }
    let summary = beff_trace::summary::summarize(&args.profile).map_err(refused)?;
    let mut text = match args.format {
        ShowFormat::Table => summary.text(WIDTH),
        ShowFormat::Json => summary.json()? + "\n",
    };
    if args.details && args.format == ShowFormat::Table {
        text.push('\n');
        text += &summary.details(WIDTH);
    }
    publish(text.as_bytes())?;
    Ok(Exit::Ok)
}
