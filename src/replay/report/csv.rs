//! PREFIX.csv of a replay: one line for each level above single calls. Lines of several replays, with different numbers of processes and
//! file systems, give the picture of the papers: bandwidth per process over processes.

use crate::frame::report::csv::{csv_table, Column, CsvCell, RunColumns};
use crate::replay::plan::printable::printable;
use crate::replay::records::ReplayResult;
use crate::replay::values::{LevelComparison, ReplayDerived};

struct LevelRow<'a> {
    result: &'a ReplayResult,
    level: &'a LevelComparison,
}

impl LevelRow<'_> {
    fn recorded_file(&self) -> Option<String> {
        let number = usize::try_from(self.level.file?).ok()?.checked_sub(1)?;
        Some(printable(&self.result.setup.profile.files.get(number)?.path, 4096))
    }
}

fn columns<'r>() -> [Column<LevelRow<'r>>; 23] {
    [
        ("backend", |l| (&l.level.backend).into()),
        ("pace", |l| CsvCell::word(l.result.config.pace)),
        ("processes", |l| l.result.setup.profile.processes.into()),
        ("fs_type", |l| (&l.result.setup.storage.fs_type).into()),
        ("level", |l| CsvCell::word(l.level.level)),
        ("file", |l| l.level.file.into()),
        ("recorded_file", |l| l.recorded_file().into()),
        ("class", |l| l.level.class.map_or(CsvCell::Empty, CsvCell::word)),
        ("rank", |l| l.level.rank.into()),
        ("part", |l| CsvCell::word(l.level.part)),
        ("repetitions", |l| l.level.repetitions.into()),
        ("calls", |l| l.level.calls.into()),
        ("recorded_bytes", |l| l.level.recorded_bytes.into()),
        ("replayed_bytes", |l| l.level.replayed_bytes.into()),
        ("recorded_seconds", |l| l.level.recorded_seconds.into()),
        ("replayed_seconds", |l| l.level.replayed_seconds.into()),
        ("recorded_mb_per_second_per_process", |l| l.level.recorded_bytes_per_second.map(|r| r / 1e6).into()),
        ("replayed_mb_per_second_per_process", |l| l.level.replayed_bytes_per_second.map(|r| r / 1e6).into()),
        ("ratio", |l| l.level.ratio.into()),
        ("deviation", |l| l.level.deviation.into()),
        ("ratio_min", |l| l.level.ratio_range.map(|[low, _]| low).into()),
        ("ratio_max", |l| l.level.ratio_range.map(|[_, high]| high).into()),
        ("seed", |l| l.result.config.seed.into()),
    ]
}

/// The table as UTF-8 bytes.
///
/// # Errors
/// What the csv writer reports.
pub fn csv(result: &ReplayResult, derived: &ReplayDerived) -> Result<Vec<u8>, ::csv::Error> {
    let setup = &result.setup;
    let origin =
        RunColumns::new(&setup.machine, result.config.out.as_deref(), &setup.run_dir).with_storage(&setup.storage);
    csv_table(&origin, &columns(), derived.levels.iter().map(|level| LevelRow { result, level }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::report::csv::read_csv;
    use crate::replay::report::fixtures;

    #[test]
    fn golden_rows() {
        for (name, result, derived) in fixtures::all() {
            let bytes = csv(&result, &derived).unwrap();
            insta::assert_snapshot!(format!("{name}.csv"), String::from_utf8(bytes).unwrap());
        }
    }

    #[test]
    fn profile_names_are_escaped() {
        let (_, result, derived) = fixtures::all().swap_remove(0);
        let (column, lines) = read_csv(&csv(&result, &derived).unwrap());
        assert!(lines.iter().any(|l| &l[column("recorded_file")] == "/work/in\\u{1b}[2J.dat"));
    }
}
