//! `beff-raw report`: results shown again from their files, without MPI.

use anyhow::{anyhow, Context};

use crate::cli::values::ReportFormat;
use crate::cli::ReportArgs;
use crate::commands::publish;
use crate::error::{Exit, UsageError};
use crate::report::{csv, json, load, sum, table};
use crate::stats::derive;

/// Runs the command.
///
/// # Errors
/// The first file that cannot be read or is no result.
pub fn run(args: &ReportArgs) -> anyhow::Result<Exit> {
    args.check()?;
    if args.format == ReportFormat::Csv && args.files.len() > 1 {
        return Err(UsageError::new(
            "--format csv of several files would not be one table: the rows do not say which run they are of",
            "Name one file at a time.",
        )
        .into());
    }
    for path in &args.files {
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let result = load(&bytes).map_err(|e| anyhow!("{}: {e}", path.display()))?;
        let derived = derive(&result);
        let view = match args.format {
            ReportFormat::Table => table::table(&result, &derived, args.details).into_bytes(),
            ReportFormat::Json => json::document(&result, &derived)?,
            ReportFormat::Csv => csv::rows(&result, &derived)?,
            ReportFormat::Sum => result
                .config
                .backends
                .iter()
                .map(|b| sum::summary(&result, &derived, b))
                .collect::<String>()
                .into_bytes(),
        };
        if !publish(&view) {
            break;
        }
    }
    Ok(Exit::Ok)
}
