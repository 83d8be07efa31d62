//! A run as one record, and as lines of its journal.

use super::{
    Calibration, ContinuationRecord, CorruptionRecord, FirstWriteTrial, InjectedFaultRecord, IoEnding, Manifest,
    OrderedRecord, OrderedTypeRecord, PartitionRecord, PatternRecord, QueueCalibration, RepetitionRecord, TypeRecord,
    TypeRepetitionRecord, B_EFF_IO,
};
use crate::b_eff_io::config::Config;
use crate::frame::records::{run_record, CacheColdRecord, HarnessCost, HugePagesRecord, ProbeRecord};

run_record! {
    /// The result of one run.
    result RunResult of B_EFF_IO,
    /// One line of the journal.
    line JournalLine,
    start {
        /// Requested configuration.
        config: Config,
        /// Machine and software.
        manifest: Manifest,
        /// Harness overhead, measured at the start.
        harness: HarnessCost,
        /// Partitions as planned.
        partitions: Vec<PartitionRecord>,
    }
    records {
        /// Whether transfer buffers are cache-cold: one, or none.
        #[serde(default)]
        cache_cold: Vec<CacheColdRecord> = CacheCold(CacheColdRecord),
        /// Huge pages of the transfer buffers: one, or none.
        #[serde(default)]
        pages: Vec<HugePagesRecord> = Pages(HugePagesRecord),
        /// Storage rate before and after all measurements.
        #[serde(default)]
        probes: Vec<ProbeRecord> = Probe(ProbeRecord),
        /// Write rate of each backend before the run.
        calibrations: Vec<Calibration> = Calibration(Calibration),
        /// Calibration of the queue of `uring` for each direction and chunk size, with all trials.
        #[serde(default)]
        queue_calibrations: Vec<QueueCalibration> = QueueCalibration(QueueCalibration),
        /// Trials of direct and buffered two-phase first writes, for each backend with the choice.
        #[serde(default)]
        first_write_trials: Vec<FirstWriteTrial> = FirstWriteTrial(FirstWriteTrial),
        /// Runs that were cut and whose records are part of this result.
        #[serde(default)]
        continuations: Vec<ContinuationRecord> = Continuation(ContinuationRecord),
        /// One record for each pattern, access method, partition and backend, in the order of measurement.
        patterns: Vec<PatternRecord> = Pattern(Box<PatternRecord>),
        /// Opening and closing of the files of each pattern type.
        types: Vec<TypeRecord> = Type(TypeRecord),
        /// Rewrites and reads in other orders, beside the definition, in the order of measurement.
        #[serde(default)]
        ordered: Vec<OrderedRecord> = Ordered(Box<OrderedRecord>),
        /// Opening and closing of the files for other orders.
        #[serde(default)]
        ordered_types: Vec<OrderedTypeRecord> = OrderedType(OrderedTypeRecord),
        /// Repetitions of patterns in the remaining time, in the order of measurement.
        #[serde(default)]
        repetitions: Vec<RepetitionRecord> = Repetition(Box<RepetitionRecord>),
        /// Opening and closing of the files for the repetitions.
        #[serde(default)]
        type_repetitions: Vec<TypeRepetitionRecord> = TypeRepetition(TypeRepetitionRecord),
        /// Corruptions, by location.
        corruptions: Vec<CorruptionRecord> = Corruption(CorruptionRecord),
        /// Injected faults.
        #[serde(default)]
        injected_faults: Vec<InjectedFaultRecord> = InjectedFault(InjectedFaultRecord),
    }
    ending IoEnding cleaned up in cleanup_seconds, set up in set_up,
}

impl RunResult {
    fn has_wrong_data(&self) -> bool {
        let ordered = || self.ordered.iter().map(|o| &o.measurement);
        let patterns = || self.patterns.iter().chain(self.repetitions.iter().map(|r| &r.measurement)).chain(ordered());
        let types = self.types.iter().chain(self.type_repetitions.iter().map(|r| &r.measurement));
        let types = types.chain(self.ordered_types.iter().map(|o| &o.measurement));
        let mut all = patterns().map(|p| p.verification).chain(types.filter_map(|t| t.full_verification));
        let mut samples = patterns().filter_map(|p| p.sample.as_ref());
        all.any(|v| v.words_wrong > 0) || samples.any(|s| s.words_wrong > 0)
    }

    /// Patterns after a rejected one have no calls, so nothing was measured.
    fn nothing_was_run(&self) -> bool {
        !self.patterns.iter().all(PatternRecord::was_run) && self.patterns.iter().all(|p| p.calls == 0)
    }
}
