//! A whole run as one record, and as lines of its journal.

use super::{
    Calibration, CorruptionRecord, DamageRecord, Ending, FirstWriteTrial, IoWarning, Manifest, PartitionRecord,
    PatternRecord, QueueCalibration, RepeatRecord, TypeRecord, TypeRepeatRecord, B_EFF_IO,
};
use crate::b_eff_io::config::Config;
use crate::frame::records::{run_record, ColdRecord, HarnessCost, PagesRecord, ProbeRecord};

run_record! {
    /// Everything about one run.
    result RunResult of B_EFF_IO,
    /// One line of the journal.
    line JournalLine,
    start {
        /// What was asked.
        config: Config,
        /// Where it ran.
        manifest: Manifest,
        /// Cost of the harness.
        harness: HarnessCost,
        /// Partitions as planned.
        partitions: Vec<PartitionRecord>,
    }
    records {
        /// Whether the memory of the transfers was cold: one, or none.
        #[serde(default)]
        cold: Vec<ColdRecord> = Cold(ColdRecord),
        /// Whether it is in huge pages: one, or none.
        #[serde(default)]
        pages: Vec<PagesRecord> = Pages(PagesRecord),
        /// Probes of the storage at start and end.
        #[serde(default)]
        probes: Vec<ProbeRecord> = Probe(ProbeRecord),
        /// Calibrations, one per backend.
        calibrations: Vec<Calibration> = Calibration(Calibration),
        /// Calibrations of the queue (uring).
        #[serde(default, alias = "tunings")]
        queue_calibrations: Vec<QueueCalibration> = #[serde(alias = "tuning")] QueueCalibration(QueueCalibration),
        /// Trials of two-phase first writes, direct and buffered.
        #[serde(default)]
        first_write_trials: Vec<FirstWriteTrial> = FirstWriteTrial(FirstWriteTrial),
        /// Patterns in order of measurement.
        patterns: Vec<PatternRecord> = Pattern(Box<PatternRecord>),
        /// Types in order of measurement.
        types: Vec<TypeRecord> = Type(TypeRecord),
        /// Patterns measured again, in order of measurement.
        #[serde(default)]
        repeats: Vec<RepeatRecord> = Repeat(Box<RepeatRecord>),
        /// Types opened and closed again for them.
        #[serde(default)]
        type_repeats: Vec<TypeRepeatRecord> = TypeRepeat(TypeRepeatRecord),
        /// Corruption found.
        corruptions: Vec<CorruptionRecord> = Corruption(CorruptionRecord),
        /// Damage done on purpose.
        #[serde(default)]
        damages: Vec<DamageRecord> = Damage(DamageRecord),
    }
    warnings IoWarning,
    ending Ending cleaned up in cleanup_seconds,
}

impl RunResult {
    fn has_wrong_data(&self) -> bool {
        let patterns = || self.patterns.iter().chain(self.repeats.iter().map(|r| &r.measured));
        let types = self.types.iter().chain(self.type_repeats.iter().map(|r| &r.measured));
        let mut all = patterns().map(|p| p.verification).chain(types.filter_map(|t| t.full_verification));
        let mut samples = patterns().filter_map(|p| p.sample.as_ref());
        all.any(|v| v.words_wrong > 0) || samples.any(|s| s.words_wrong > 0)
    }

    /// What stands after a pattern that was refused is no pattern that was run: without a call nothing was measured.
    fn nothing_was_run(&self) -> bool {
        !self.patterns.iter().all(PatternRecord::was_run) && self.patterns.iter().all(|p| p.calls == 0)
    }
}
