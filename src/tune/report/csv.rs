//! PREFIX.csv of `tune`: one row for each trial.

use beff_tuning::trial::setting_text;

use crate::frame::report::csv::{csv_table, Column, CsvCell, RunColumns};
use crate::tune::records::{TrialRecord, TuneResult};

type Row<'a> = (usize, &'a TrialRecord);

fn columns<'a>() -> [Column<Row<'a>>; 11] {
    [
        ("trial", |(number, _)| (*number as u64).into()),
        ("phase", |(_, t)| CsvCell::word(t.planned.phase)),
        ("round", |(_, t)| t.planned.round.into()),
        ("setting", |(_, t)| setting_text(&t.planned.setting).into()),
        ("work_seconds", |(_, t)| t.planned.seconds.into()),
        ("begin_seconds", |(_, t)| t.begin_seconds.into()),
        ("end_seconds", |(_, t)| t.end_seconds.into()),
        ("mb_per_second", |(_, t)| {
            Some(t.outcome.bytes_per_second / 1e6).filter(|_| t.outcome.refusal.is_none()).into()
        }),
        ("words_checked", |(_, t)| t.outcome.words_checked.into()),
        ("words_wrong", |(_, t)| t.outcome.words_wrong.into()),
        ("refusal", |(_, t)| t.outcome.refusal.clone().unwrap_or_default().into()),
    ]
}

/// The table as UTF-8 bytes.
///
/// # Errors
/// An error of the csv writer.
pub fn csv(result: &TuneResult) -> Result<Vec<u8>, ::csv::Error> {
    let run = RunColumns::new(&result.setup.machine, result.config.out.as_deref(), "");
    csv_table(&run, &columns(), result.trials.iter().enumerate().collect::<Vec<_>>())
}
