//! The run that a run continues: its records, as far as its units are complete.

use std::path::Path;

use crate::b_eff_io::config::Config;
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::plan::schedule::is_rewritten;
use crate::b_eff_io::records::{PatternRecord, RunResult, TypeRecord, UnitRecord};
use crate::b_eff_io::run::files::file_name;
use crate::frame::records::AccessMethod;
use crate::frame::run::run_dir::RunDir;

/// A run that was cut, up to its last complete unit.
#[derive(Debug)]
pub struct CutRun {
    /// Its journal.
    pub journal: String,
    /// Its records, of complete units only.
    pub result: RunResult,
    /// Its complete units.
    pub kept: Vec<UnitRecord>,
    /// The unit in which it was cut; None: in the repetitions.
    pub cut_in: Option<UnitRecord>,
    /// Its directory, if it still exists.
    pub directory: Option<RunDir>,
}

/// All units in the order of their measurement.
fn units<'a>(config: &'a Config, partitions: &'a [u64]) -> impl Iterator<Item = UnitRecord> + 'a {
    AccessMethod::ALL.into_iter().flat_map(move |access| {
        let is_measured = move |t| access != AccessMethod::Rewrite || is_rewritten(config.full_rewrite, t);
        let of_partition = move |ranks: &u64| {
            let ranks = *ranks;
            let types = config.types.iter().copied().filter(move |t| is_measured(*t));
            types.map(move |pattern_type| UnitRecord { ranks, access, pattern_type })
        };
        partitions.iter().flat_map(of_partition)
    })
}

/// True for a record of the unit.
#[must_use]
pub fn is_of_type(record: &TypeRecord, unit: &UnitRecord) -> bool {
    record.ranks == unit.ranks && record.access == unit.access && record.pattern_type == unit.pattern_type
}

/// True for a record of the unit.
#[must_use]
pub fn is_of_pattern(record: &PatternRecord, unit: &UnitRecord) -> bool {
    record.ranks == unit.ranks && record.access == unit.access && record.pattern_type == unit.pattern_type
}

impl CutRun {
    /// Keeps the complete units of a run.
    #[must_use]
    pub fn new(journal: String, mut result: RunResult) -> Self {
        let partitions: Vec<u64> = result.partitions.iter().map(|partition| partition.ranks).collect();
        let is_complete = |unit: &UnitRecord| {
            let closed = |backend: &String| result.types.iter().any(|t| t.backend == *backend && is_of_type(t, unit));
            result.config.backends.iter().all(closed)
        };
        let kept: Vec<UnitRecord> = units(&result.config, &partitions).take_while(is_complete).collect();
        let cut_in = units(&result.config, &partitions).nth(kept.len());
        result.patterns.retain(|record| kept.iter().any(|unit| is_of_pattern(record, unit)));
        result.types.retain(|record| kept.iter().any(|unit| is_of_type(record, unit)));
        Self { journal, result, kept, cut_in, directory: None }
    }

    /// Opens its directory.
    #[must_use]
    pub fn with_directory(self, run_dir: &RunDir) -> Self {
        let path = Path::new(&self.result.manifest.run_dir);
        let directory = run_dir.open_other(path, &self.result.config.backends).ok();
        // Files of types that this run has not opened yet belong to it, too.
        for unit in self.kept.iter().chain(&self.cut_in) {
            for backend in &self.result.config.backends {
                let _ = run_dir.file(&file_name(backend, unit.ranks, unit.pattern_type, 0));
            }
        }
        Self { directory, ..self }
    }

    /// True for a unit that is not measured again.
    #[must_use]
    pub fn is_kept(&self, access: AccessMethod, ranks: u64, pattern_type: PatternType) -> bool {
        self.kept.contains(&UnitRecord { ranks, access, pattern_type })
    }

    /// Time of the run up to its last complete unit.
    #[must_use]
    pub fn used_seconds(&self) -> f64 {
        let end = |record: &PatternRecord| record.at_seconds.unwrap_or(0.0) + record.seconds();
        self.result.patterns.iter().map(end).fold(0.0, f64::max)
    }

    /// Time by which a backend was behind its schedule at the end of the kept units of an access method.
    #[must_use]
    pub fn debt_seconds(&self, backend: &str, access: AccessMethod, ranks: u64) -> f64 {
        let own = self.kept.iter().filter(|unit| unit.access == access && unit.ranks == ranks);
        own.fold(0.0, |debt, unit| {
            let record = self.result.types.iter().find(|t| t.backend == backend && is_of_type(t, unit));
            let [open, close] = record.map_or([0.0; 2], |t| [t.open_seconds, t.close_seconds]);
            let patterns = self.result.patterns.iter().filter(|p| p.backend == backend && is_of_pattern(p, unit));
            patterns.fold(debt + open, |debt, p| (debt + p.seconds() - p.scheduled_seconds).max(0.0)) + close
        })
    }

    /// True if the files of a type contain what the records of the kept units say.
    #[must_use]
    pub fn has_intact_files(&self, ranks: u64, pattern_type: PatternType) -> bool {
        self.cut_in.is_some_and(|cut| {
            (cut.ranks, cut.pattern_type) != (ranks, pattern_type) || cut.access == AccessMethod::Read
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::run::run_tests::config;

    #[test]
    fn units_follow_the_order_of_measurement() {
        let config = config("--types 0,2 --rewrite scatter");
        let names: Vec<String> = units(&config, &[1, 2]).map(|unit| unit.name()).collect();
        let expected = [
            "write of type 0 on 1 rank",
            "write of type 2 on 1 rank",
            "write of type 0 on 2 ranks",
            "write of type 2 on 2 ranks",
            "rewrite of type 0 on 1 rank",
            "rewrite of type 0 on 2 ranks",
            "read of type 0 on 1 rank",
            "read of type 2 on 1 rank",
            "read of type 0 on 2 ranks",
            "read of type 2 on 2 ranks",
        ];
        assert_eq!(names, expected);
    }
}
