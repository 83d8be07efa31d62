//! `beff-raw report`: results shown again from their files, without MPI.

use std::path::Path;

use anyhow::{anyhow, Context};

use crate::cli::values::ReportFormat;
use crate::cli::ReportArgs;
use crate::commands::publish;
use crate::error::{Exit, UsageError};
use crate::report::{comm, csv, imb, json, load, sum, table, Loaded};
use crate::results::comm::CommResult;
use crate::results::imb::ImbResult;
use crate::results::RunResult;
use crate::stats;

const SUM: &str = "--format sum is the summary file of b_eff_io, release 2.1";
const IMB: &str = "--format imb has the columns of IMB-IO";

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
            Loaded::Io(result) => of_io(&result, args, path)?,
            Loaded::Comm(result) => of_comm(&result, args, path)?,
            Loaded::Imb(result) => of_imb(&result, args, path)?,
        };
        if !publish(&view) {
            break;
        }
    }
    Ok(Exit::Ok)
}

fn of_io(result: &RunResult, args: &ReportArgs, path: &Path) -> anyhow::Result<Vec<u8>> {
    let derived = stats::derive(result);
    Ok(match args.format {
        ReportFormat::Table => table::table(result, &derived, args.details).into_bytes(),
        ReportFormat::Json => json::document(result, &derived)?,
        ReportFormat::Csv => csv::rows(result, &derived)?,
        ReportFormat::Sum => {
            result.config.backends.iter().map(|b| sum::summary(result, &derived, b)).collect::<String>().into_bytes()
        }
        ReportFormat::Imb => return Err(not_a_view(path, "b_eff_io", IMB, "table, json, csv or sum")),
    })
}

fn of_comm(result: &CommResult, args: &ReportArgs, path: &Path) -> anyhow::Result<Vec<u8>> {
    let derived = stats::comm::derive(result);
    Ok(match args.format {
        ReportFormat::Table => comm::table(result, &derived, args.details).into_bytes(),
        ReportFormat::Json => comm::document(result, &derived)?,
        ReportFormat::Csv => comm::csv(result, &derived)?,
        ReportFormat::Sum => return Err(not_a_view(path, "b_eff", SUM, "table, json or csv")),
        ReportFormat::Imb => return Err(not_a_view(path, "b_eff", IMB, "table, json or csv")),
    })
}

fn of_imb(result: &ImbResult, args: &ReportArgs, path: &Path) -> anyhow::Result<Vec<u8>> {
    let derived = stats::imb::derive(result);
    Ok(match args.format {
        ReportFormat::Table => imb::table(result, &derived, args.details).into_bytes(),
        ReportFormat::Json => imb::document(result, &derived)?,
        ReportFormat::Csv => imb::csv(result, &derived)?,
        ReportFormat::Imb => imb::imb_format(result, &derived).into_bytes(),
        ReportFormat::Sum => return Err(not_a_view(path, "IMB-IO", SUM, "table, json, csv or imb")),
    })
}

/// A view that the results of this benchmark do not have.
fn not_a_view(path: &Path, benchmark: &str, view: &str, others: &str) -> anyhow::Error {
    let cause = format!("{} is a result of {benchmark}: {view}", path.display());
    UsageError::new(cause, format!("Use --format {others}.")).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{comm, fixtures, imb};

    fn args(format: ReportFormat) -> ReportArgs {
        ReportArgs { files: Vec::new(), details: false, format }
    }

    const EVERY: [ReportFormat; 3] = [ReportFormat::Table, ReportFormat::Json, ReportFormat::Csv];

    #[test]
    fn every_benchmark_has_its_views_and_no_other() {
        let (io, comm, imb) = (fixtures::complete(), comm::fixtures::complete(), imb::fixtures::complete());
        let path = Path::new("run1.json");
        for format in EVERY.into_iter().chain([ReportFormat::Sum]) {
            assert!(!of_io(&io, &args(format), path).unwrap().is_empty());
        }
        for format in EVERY {
            assert!(!of_comm(&comm, &args(format), path).unwrap().is_empty());
        }
        for format in EVERY.into_iter().chain([ReportFormat::Imb]) {
            assert!(!of_imb(&imb, &args(format), path).unwrap().is_empty());
        }
        for (refused, name) in [
            (of_io(&io, &args(ReportFormat::Imb), path), "b_eff_io"),
            (of_comm(&comm, &args(ReportFormat::Sum), path), "b_eff"),
            (of_comm(&comm, &args(ReportFormat::Imb), path), "b_eff"),
            (of_imb(&imb, &args(ReportFormat::Sum), path), "IMB-IO"),
        ] {
            let error = refused.unwrap_err().downcast::<UsageError>().unwrap();
            assert!(error.cause.starts_with(&format!("run1.json is a result of {name}: --format ")), "{error}");
            assert!(error.next_step.contains("--format table"), "{error}");
        }
    }
}
