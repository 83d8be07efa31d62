//! `beff-raw report`: results shown again from their files, without MPI.

use std::path::Path;

use anyhow::{anyhow, Context};

use crate::cli::values::ReportFormat;
use crate::cli::ReportArgs;
use crate::commands::publish;
use crate::error::{Exit, UsageError};
use crate::report::{comm, csv, json, load, sum, table, Loaded};
use crate::results::comm::CommResult;
use crate::results::RunResult;
use crate::stats;

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
        let view = match load(&bytes).map_err(|e| anyhow!("{}: {e}", path.display()))? {
            Loaded::Io(result) => of_io(&result, args)?,
            Loaded::Comm(result) => of_comm(&result, args, path)?,
        };
        if !publish(&view) {
            break;
        }
    }
    Ok(Exit::Ok)
}

fn of_io(result: &RunResult, args: &ReportArgs) -> anyhow::Result<Vec<u8>> {
    let derived = stats::derive(result);
    Ok(match args.format {
        ReportFormat::Table => table::table(result, &derived, args.details).into_bytes(),
        ReportFormat::Json => json::document(result, &derived)?,
        ReportFormat::Csv => csv::rows(result, &derived)?,
        ReportFormat::Sum => {
            result.config.backends.iter().map(|b| sum::summary(result, &derived, b)).collect::<String>().into_bytes()
        }
    })
}

fn of_comm(result: &CommResult, args: &ReportArgs, path: &Path) -> anyhow::Result<Vec<u8>> {
    let derived = stats::comm::derive(result);
    Ok(match args.format {
        ReportFormat::Table => comm::table(result, &derived, args.details).into_bytes(),
        ReportFormat::Json => comm::document(result, &derived)?,
        ReportFormat::Csv => comm::csv(result, &derived)?,
        ReportFormat::Sum => {
            let cause = format!(
                "{} is a result of b_eff: --format sum is the summary file of b_eff_io, release 2.1",
                path.display()
            );
            return Err(UsageError::new(cause, "Use --format table, json or csv.").into());
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::comm::fixtures;

    #[test]
    fn b_eff_has_every_view_but_the_summary_of_b_eff_io() {
        let result = fixtures::complete();
        let args = |format| ReportArgs { files: Vec::new(), details: false, format };
        for format in [ReportFormat::Table, ReportFormat::Json, ReportFormat::Csv] {
            assert!(!of_comm(&result, &args(format), Path::new("run1.json")).unwrap().is_empty());
        }
        let error = of_comm(&result, &args(ReportFormat::Sum), Path::new("run1.json")).unwrap_err();
        let error = error.downcast::<UsageError>().unwrap();
        assert!(error.cause.starts_with("run1.json is a result of b_eff"), "{error}");
        assert!(error.next_step.contains("--format table"), "{error}");
    }
}
