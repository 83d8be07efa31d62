//! Records of b_eff, the communication benchmark: times and counts of loops. Bandwidths are derived
//! ([`crate::b_eff::values`]).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::b_eff::config::CommConfig;
pub use crate::b_eff::plan::effort::MeasurementEffort;
use crate::b_eff::plan::PatternFamily;
use crate::frame::records::rank_runs::{self, RankRun};
pub use crate::frame::records::BareLoopPair;
use crate::frame::records::{
    run_record, Accumulate, InterferenceRecord, MachineRecord, Placement, RankNumbering, RunOutcome, Transport,
};

/// Value of the field `benchmark` in the files of b_eff.
pub const B_EFF: &str = "b_eff";

/// Method by which the messages of an iteration are exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageMethod {
    /// MPI_Sendrecv for each message in turn.
    Sendrecv,
    /// One MPI_Alltoallv over all ranks.
    Alltoallv,
    /// MPI_Irecv and MPI_Isend for all messages, then MPI_Waitall.
    Nonblocking,
    /// MPI_Send and MPI_Recv, back and forth: ping-pong only.
    PingPong,
}

impl MessageMethod {
    /// The three methods of the definition in the order of the paper.
    pub const EXCHANGES: [Self; 3] = [Self::Sendrecv, Self::Alltoallv, Self::Nonblocking];

    /// Name in printed output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sendrecv => "Sendrecv",
            Self::Alltoallv => "Alltoallv",
            Self::Nonblocking => "Isend/Irecv",
            Self::PingPong => "Send/Recv",
        }
    }
}

/// One timed loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoopRecord {
    /// Method.
    pub method: MessageMethod,
    /// Repetition, from 0; numbers from 3 are beyond the definition.
    pub repetition: u32,
    /// Iterations.
    pub iterations: u64,
    /// Time of the slowest rank from the barrier to the end of its loop.
    pub seconds: f64,
}

/// All loops of a pattern with one message size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeRecord {
    /// Message size L.
    pub message_bytes: u64,
    /// Loops in the order of measurement.
    pub loops: Vec<LoopRecord>,
}

/// One pattern with all its sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommPatternRecord {
    /// Name of the pattern: `ring-1` to `ring-6`, `random-1` to `random-30`, `worst-cycle`, ...
    pub pattern: String,
    /// Family.
    pub family: PatternFamily,
    /// Shape: `5x2+3` rings, `3x2` ranks of a grid.
    pub shape: String,
    /// Messages of all ranks in one iteration.
    pub messages: u64,
    /// Sizes in ascending order; sizes missing at the end were not reached.
    pub sizes: Vec<SizeRecord>,
    /// Bytes of received messages that were compared, all ranks.
    pub bytes_checked: u64,
    /// Wrong bytes, all ranks.
    pub bytes_wrong: u64,
    /// Memory allocations of the program in timed loops, all ranks. Any number but 0 is a defect.
    pub allocations_in_clock: u64,
    /// Interference during all repetitions, data comparison included; None if not observed.
    #[serde(default)]
    pub interference: Option<InterferenceRecord>,
    /// Time from the first barrier to the last comparison, sum over all repetitions.
    pub real_seconds: f64,
}

/// One repetition of a pattern: one line of the journal. In the result, all repetitions of a pattern are merged into one
/// record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PatternRepetition(pub Box<CommPatternRecord>);

impl Accumulate<PatternRepetition> for Vec<CommPatternRecord> {
    fn accumulate(&mut self, PatternRepetition(record): PatternRepetition) {
        match self.iter_mut().find(|known| known.pattern == record.pattern) {
            Some(known) => known.merge(*record),
            None => self.push(*record),
        }
    }
}

impl CommPatternRecord {
    /// Merges a later repetition of the same pattern. By index, because sizes may be equal where memory is tiny.
    fn merge(&mut self, later: Self) {
        for (index, size) in later.sizes.into_iter().enumerate() {
            match self.sizes.get_mut(index) {
                Some(known) => known.loops.extend(size.loops),
                None => self.sizes.push(size),
            }
        }
        self.bytes_checked += later.bytes_checked;
        self.bytes_wrong += later.bytes_wrong;
        self.allocations_in_clock += later.allocations_in_clock;
        match (&mut self.interference, later.interference) {
            (Some(known), Some(more)) => known.add(more),
            (known, _) => *known = None,
        }
        self.real_seconds += later.real_seconds;
    }
}

/// Pilot measurement of one size and method on one ring of all ranks, from which the time of the run is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PilotRecord {
    /// Message size.
    pub message_bytes: u64,
    /// Method.
    pub method: MessageMethod,
    /// Iterations.
    pub iterations: u64,
    /// Time of the slowest rank.
    pub seconds: f64,
}

/// Set-up of a b_eff run beyond its configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommSetup {
    /// Hosts and software.
    pub machine: MachineRecord,
    /// Host and CPUs of each rank; consecutive ranks with equal values have one entry.
    #[serde(with = "rank_runs")]
    #[schemars(with = "Vec<RankRun<Placement>>")]
    pub placement: Vec<Placement>,
    /// Binding of the ranks as reported by the launcher; None if not reported or not recorded.
    #[serde(default)]
    pub binding: Option<String>,
    /// Numbering of the ranks over the hosts.
    pub numbering: RankNumbering,
    /// Transport of the messages.
    pub transport: Transport,
    /// Lmax.
    pub lmax_bytes: u64,
    /// The 21 sizes.
    pub sizes_bytes: Vec<u64>,
    /// Number of planned patterns.
    pub patterns: u64,
    /// Smallest observed clock step.
    pub clock_resolution_ns: f64,
    /// Cost of one clock reading.
    pub clock_read_ns: f64,
    /// One barrier over all ranks, median.
    pub barrier_ns: f64,
}

/// Announcement before the first pattern.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Announcement {
    /// Time limit of the whole measurement.
    pub limit_seconds: f64,
    /// Expected time, pilot included.
    pub expected_seconds: f64,
    /// Effort that fits.
    pub effort: MeasurementEffort,
    /// Pilot measurements.
    pub pilot: Vec<PilotRecord>,
    /// Memory of the messages; None if not recorded.
    #[serde(default)]
    pub memory: Option<MessageMemory>,
}

/// Memory of the messages when the first pattern began. Its use is in the configuration (`buffers`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessageMemory {
    /// Length of the send memory of a rank, and of its receive memory.
    pub half_bytes: u64,
    /// Huge pages (AnonHugePages) in both memories, all ranks; None if the kernel does not report them.
    pub huge_page_total_bytes: Option<u64>,
    /// The same, smallest of all ranks.
    pub huge_page_smallest_bytes: Option<u64>,
}

/// Written when the definition is completely measured: a later end of the run does not affect the value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DefinitionRecord {
    /// Time from the pilot to the last comparison of the third repetition.
    pub real_seconds: f64,
    /// Changes of the effort after the announcement, as in the ending.
    pub efforts: Vec<(u64, MeasurementEffort)>,
}

/// Comparison with bare loops for one pattern, method and size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BareRecord {
    /// Pattern name.
    pub pattern: String,
    /// Method.
    pub method: MessageMethod,
    /// Message size.
    #[schemars(range(min = 1))]
    pub message_bytes: u64,
    /// Messages of all ranks in one iteration.
    pub messages: u64,
    /// Iterations of each loop.
    #[schemars(range(min = 1))]
    pub iterations: u64,
    /// Pairs of loops run in turn.
    pub pairs: Vec<BareLoopPair>,
}

/// Corruption of a received message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommCorruption {
    /// Pattern name.
    pub pattern: String,
    /// Method of the loop.
    pub method: MessageMethod,
    /// Repetition of the loop.
    pub repetition: u32,
    /// Message size.
    pub message_bytes: u64,
    /// Last iteration that wrote this location, from 0.
    pub iteration: u64,
    /// Rank that sent.
    pub sender: u64,
    /// Rank that received.
    pub receiver: u64,
    /// First wrong byte in the message.
    pub offset_bytes: u64,
    /// Expected byte.
    pub expected: u8,
    /// Actual byte.
    pub actual: u8,
    /// Diagnosis: `one bit flipped`, `never delivered`, `data of rank 3`, ...
    pub diagnosis: String,
    /// Wrong bytes from this sender in this loop.
    pub bytes_wrong: u64,
}

/// End of a b_eff run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommEnding {
    /// Outcome.
    pub outcome: RunOutcome,
    /// Time from the pilot to the last comparison.
    pub real_seconds: f64,
    /// Of that, memory initialisation and pilot.
    pub pilot_seconds: f64,
    /// Of that, data comparison, slowest rank.
    pub verify_seconds: f64,
    /// Changes of the effort after the announcement: first pattern with the new effort (index in the plan, counted on
    /// through the repetitions), and the effort. Empty if there was no change.
    pub efforts: Vec<(u64, MeasurementEffort)>,
    /// Largest peak resident memory of a rank (VmHWM).
    pub rank_memory_high_water_bytes: u64,
    /// Planned message memory per rank.
    pub rank_memory_planned_bytes: u64,
}

run_record! {
    /// Result of one b_eff run.
    result CommResult of B_EFF named benchmark,
    /// One line of the journal of b_eff.
    line CommLine,
    start {
        /// Configuration.
        config: CommConfig,
        /// Set-up.
        setup: CommSetup,
    }
    records {
        /// Announcement before the first pattern; None if the run ended before.
        announcement: Option<Announcement> = Announcement(Announcement),
        /// Patterns in the order of their first measurement, with the repetitions of the definition.
        patterns: Vec<CommPatternRecord> = Pattern(PatternRepetition),
        /// State when the definition was completely measured, before any further repetition: the value remains valid if a signal or a
        /// kill ends the run later. None if the run ended before, or was made by a version without this record.
        #[serde(default)]
        definition: Option<DefinitionRecord> = Definition(DefinitionRecord),
        /// Further repetitions in the remaining time, by pattern; they do not enter the value.
        #[serde(default)]
        repetitions: Vec<CommPatternRecord> = Repetition(PatternRepetition),
        /// Comparison with bare loops, if requested.
        bare: Vec<BareRecord> = Bare(BareRecord),
        /// Detected corruption.
        corruptions: Vec<CommCorruption> = Corruption(CommCorruption),
    }
    ending CommEnding,
}

impl CommResult {
    /// Iterates over all loops of the definition.
    pub fn definition_loops(&self) -> impl Iterator<Item = &LoopRecord> {
        self.patterns.iter().flat_map(|p| &p.sizes).flat_map(|s| &s.loops)
    }

    /// Iterates over all pattern records, those of the further repetitions included.
    pub fn all_pattern_records(&self) -> impl Iterator<Item = &CommPatternRecord> + Clone {
        self.patterns.iter().chain(&self.repetitions)
    }

    /// Compared bytes of received messages.
    #[must_use]
    pub fn bytes_checked(&self) -> u64 {
        self.all_pattern_records().map(|p| p.bytes_checked).fold(0, u64::saturating_add)
    }

    /// Wrong bytes among them.
    #[must_use]
    pub fn bytes_wrong(&self) -> u64 {
        self.all_pattern_records().map(|p| p.bytes_wrong).fold(0, u64::saturating_add)
    }

    fn has_wrong_data(&self) -> bool {
        self.bytes_wrong() > 0
    }

    /// Every method is a call of MPI: one that cannot be run is an error.
    fn nothing_was_run(&self) -> bool {
        false
    }
}
