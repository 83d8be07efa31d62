//! Outcome of a trial, from the records of its repetition.

use crate::b_eff_io::plan::PatternSpec;
use crate::b_eff_io::records::{JournalLine, PatternRecord};
use crate::b_eff_io::run::state::RunState;
use crate::b_eff_io::run::trials::work::{NamedPattern, TrialWork};
use crate::frame::records::{AccessMethod, StorageRecord};
use crate::frame::run::storage_sheet::stripes_of;
use crate::frame::run::trials::{TrialOutcome, TrialPart, TrialScope};
use crate::frame::run::{ProgressReport, RunObserver, TransferVolume};
use crate::frame::system::backing_store::{backing_store, BackingStore};
use crate::frame::trials::TrialGoal;
use crate::frame::values::read_source::ReadObservation;

/// The records of one trial.
#[derive(Default)]
pub(super) struct TrialJournal {
    lines: Vec<JournalLine>,
    /// Patterns that could not be run, with the reason.
    pub(super) refusals: Vec<(u8, String)>,
    /// An error ended the trial.
    pub(super) has_failed: bool,
    /// Facts about a file.
    pub(super) layout: Vec<(String, String)>,
}

impl RunObserver<JournalLine> for TrialJournal {
    fn record(&mut self, line: JournalLine) {
        self.lines.push(line);
    }

    fn progress(&mut self, _standing: &ProgressReport) {}

    fn measurement_ended(&mut self, _is_complete: bool, _last: Vec<TransferVolume>) {}
}

impl TrialJournal {
    fn records(&self) -> impl Iterator<Item = &PatternRecord> {
        self.lines.iter().filter_map(|line| match line {
            JournalLine::Repetition(record) => Some(&record.measurement),
            _ => None,
        })
    }

    fn record_of(&self, spec: &PatternSpec, access: AccessMethod) -> Option<&PatternRecord> {
        self.records().find(|record| record.pattern == spec.number && record.access == access)
    }

    /// Calls, time, and time without the sync.
    pub(super) fn pace(&self, spec: &PatternSpec, access: AccessMethod) -> [f64; 3] {
        self.record_of(spec, access).map_or([0.0; 3], |record| {
            let parts = &record.intervals;
            [record.calls as f64, record.seconds(), parts.preallocate_seconds + parts.transfer_seconds]
        })
    }

    /// The error that ended the trial, equal on all ranks; None without one.
    pub(super) fn error(&self) -> Option<&str> {
        // Hints that cannot be queried are an error too, but the trial continues: the last error has ended it.
        self.lines.iter().rev().filter(|_| self.has_failed).find_map(|line| match line {
            JournalLine::Error(error) => Some(error.message.as_str()),
            _ => None,
        })
    }

    /// Why a pattern has no measurement.
    pub(super) fn refusal(&self, pattern: u8, name: &str) -> String {
        let own = self.refusals.iter().find(|(number, _)| *number == pattern).map(|(_, reason)| reason.as_str());
        format!("{name}: {}", own.unwrap_or("no call was completed"))
    }

    /// Words compared, and wrong ones. A sample that follows named corruptions only counts.
    fn words(&self) -> (u64, u64) {
        let mut words = (0, 0);
        for record in self.records() {
            words.0 += record.verification.words_checked + record.sample.as_ref().map_or(0, |sample| sample.bytes / 8);
            words.1 += record.verification.words_wrong + record.sample.as_ref().map_or(0, |sample| sample.words_wrong);
        }
        // Writes that only prepare have no records.
        let corruptions = self.lines.iter().filter(|line| matches!(line, JournalLine::Corruption(_))).count() as u64;
        (words.0, words.1.max(corruptions))
    }

    fn hints_granted(&self, access: AccessMethod) -> Vec<(String, String)> {
        let granted = self.lines.iter().find_map(|line| match line {
            JournalLine::TypeRepetition(record) if record.measurement.access == access => {
                Some(record.measurement.hints_granted.clone())
            }
            _ => None,
        });
        granted.unwrap_or_default()
    }
}

/// How a trial is evaluated.
pub(super) struct Evaluation<'a> {
    pub(super) work: &'a TrialWork,
    pub(super) patterns: &'a [NamedPattern],
    pub(super) scope: TrialScope,
}

impl Evaluation<'_> {
    pub(super) fn outcome(&self, journal: &TrialJournal, storage: &StorageRecord) -> TrialOutcome {
        let access = self.work.access;
        let (words_checked, words_wrong) = journal.words();
        let outcome = TrialOutcome {
            words_checked,
            words_wrong,
            hints_granted: journal.hints_granted(access),
            layout: journal.layout.clone(),
            ..TrialOutcome::default()
        };
        if let Some(error) = journal.error() {
            return TrialOutcome { refusal: Some(error.to_owned()), ..outcome };
        }
        let find = |pattern: &NamedPattern| {
            let record = journal.record_of(&pattern.spec, access);
            record.ok_or_else(|| journal.refusal(pattern.spec.number, &pattern.name))
        };
        let records: Vec<&PatternRecord> = match self.patterns.iter().map(find).collect() {
            Ok(records) => records,
            Err(refusal) => return TrialOutcome { refusal: Some(refusal), ..outcome },
        };
        let part = |(pattern, record): (&NamedPattern, &&PatternRecord)| TrialPart {
            name: pattern.name.clone(),
            bytes: record.moved_bytes,
            seconds: record.seconds(),
        };
        let parts: Vec<TrialPart> = self.patterns.iter().zip(&records).map(part).collect();
        let bytes_per_second = self.figure(&parts);
        TrialOutcome { bytes_per_second, parts, storage_share: storage_share(&records, storage), ..outcome }
    }

    /// Without the pattern of a goal, the others count as in a value.
    fn figure(&self, parts: &[TrialPart]) -> f64 {
        let rate = |bytes: u64, seconds: f64| bytes as f64 / seconds.max(1e-9);
        match (self.work.goal, self.scope) {
            (TrialGoal::Seconds, _) => {
                rate(parts.iter().map(|part| part.bytes).sum(), parts.iter().map(|part| part.seconds).sum())
            }
            (TrialGoal::Value | TrialGoal::Pattern(_), _) => {
                let units = |pattern: &NamedPattern| f64::from(pattern.spec.time_units);
                let weighted =
                    self.patterns.iter().zip(parts).map(|(p, part)| units(p) * rate(part.bytes, part.seconds));
                weighted.sum::<f64>() / self.patterns.iter().map(units).sum::<f64>().max(1.0)
            }
        }
    }
}

/// Share of the read bytes that came from storage; None if it is unknown of any read.
fn storage_share(records: &[&PatternRecord], storage: &StorageRecord) -> Option<f64> {
    let mut bytes = (0, 0);
    for record in records {
        let is_read = record.access == AccessMethod::Read && record.moved_bytes > 0;
        let observation = ReadObservation {
            storage,
            evidence: &record.evidence,
            moved_bytes: record.moved_bytes,
            counted_bytes: record.storage_read_bytes,
            direct: record.direct,
        };
        bytes.0 += if is_read { observation.source().storage_bytes? } else { return None };
        bytes.1 += record.moved_bytes;
    }
    (bytes.1 > 0).then(|| bytes.0 as f64 / bytes.1 as f64)
}

/// Stripes of the first file, on rank 0. On local file systems they do not depend on the file.
pub(super) fn layout(run: &RunState<'_>, storage: &StorageRecord) -> Vec<(String, String)> {
    let is_remote = matches!(backing_store(&storage.fs_type), BackingStore::Server | BackingStore::Unknown);
    let Some(file) = run.files.first().filter(|_| is_remote && run.world.is_root() && run.stop.is_none()) else {
        return Vec::new();
    };
    stripes_of(&run.run_dir.file(&file.name(0)), &storage.fs_type)
}
