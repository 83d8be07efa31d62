//! A whole run as one record, and as lines of its journal.

use super::{
    Calibration, CorruptionRecord, DamageRecord, Ending, FirstWriteTrial, Manifest, PartitionRecord, PatternRecord,
    QueueCalibration, RepeatRecord, TypeRecord, TypeRepeatRecord, B_EFF_IO,
};
use crate::b_eff_io::config::Config;
use crate::frame::records::{run_record, ColdRecord, HarnessCost, PagesRecord, ProbeRecord};

run_record! {
    /// Everything about one run.
    result RunResult of B_EFF_IO,
    /// One line of the journal.
    line JournalLine,
    start {
        /// What was asked for.
        config: Config,
        /// Machine and software.
        manifest: Manifest,
        /// What measuring itself costs, measured at the start.
        harness: HarnessCost,
        /// Partitions as planned.
        partitions: Vec<PartitionRecord>,
    }
    records {
        /// Whether transfer memory is read from memory and not from caches: one, or none.
        #[serde(default)]
        cold: Vec<ColdRecord> = Cold(ColdRecord),
        /// How much of it lies in huge pages: one, or none.
        #[serde(default)]
        pages: Vec<PagesRecord> = Pages(PagesRecord),
        /// Speed of the storage before and after everything that is measured.
        #[serde(default)]
        probes: Vec<ProbeRecord> = Probe(ProbeRecord),
        /// Write rate of each backend before the run.
        calibrations: Vec<Calibration> = Calibration(Calibration),
        /// Calibration of the queue of `uring` for each direction and chunk size, with every trial.
        #[serde(default, alias = "tunings")]
        queue_calibrations: Vec<QueueCalibration> = #[serde(alias = "tuning")] QueueCalibration(QueueCalibration),
        /// Two-phase first writes, direct and buffered, tried for each backend that had the choice.
        #[serde(default)]
        first_write_trials: Vec<FirstWriteTrial> = FirstWriteTrial(FirstWriteTrial),
        /// One record for each pattern, access method, partition and backend, in the order of measurement.
        patterns: Vec<PatternRecord> = Pattern(Box<PatternRecord>),
        /// Opening and closing of the files of each pattern type.
        types: Vec<TypeRecord> = Type(TypeRecord),
        /// Patterns measured again in the time that was left, in the order of measurement.
        #[serde(default)]
        repeats: Vec<RepeatRecord> = Repeat(Box<RepeatRecord>),
        /// Opening and closing of the files for them.
        #[serde(default)]
        type_repeats: Vec<TypeRepeatRecord> = TypeRepeat(TypeRepeatRecord),
        /// Wrong data that was found, place by place.
        corruptions: Vec<CorruptionRecord> = Corruption(CorruptionRecord),
        /// Damage that was done on purpose.
        #[serde(default)]
        damages: Vec<DamageRecord> = Damage(DamageRecord),
    }
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
