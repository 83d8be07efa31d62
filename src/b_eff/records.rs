//! Plain records of b_eff, the communication benchmark: times and counts of loops. Bandwidths are derived when shown
//! ([`crate::b_eff::values`]).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::b_eff::config::CommConfig;
pub use crate::b_eff::plan::effort::Effort;
use crate::b_eff::plan::Family;
pub use crate::frame::records::BarePair;
use crate::frame::records::{run_record, Machine, MachineShare, Numbering, Outcome, Placement, TakeIn, Transport};

/// Value of the field `benchmark` in the files of b_eff.
pub const B_EFF: &str = "b_eff";

/// How the messages of an iteration are exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// MPI_Sendrecv, one message after the other.
    Sendrecv,
    /// One MPI_Alltoallv over all ranks.
    Alltoallv,
    /// MPI_Irecv and MPI_Isend for all messages, then MPI_Waitall.
    Nonblocking,
    /// MPI_Send there, MPI_Recv back: the ping-pong alone.
    PingPong,
}

impl Method {
    /// The three methods of the definition in the order of the paper.
    pub const EXCHANGES: [Self; 3] = [Self::Sendrecv, Self::Alltoallv, Self::Nonblocking];

    /// The name as it is printed.
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
    /// How.
    pub method: Method,
    /// Repetition, from 0; from 3 on behind those of the definition.
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
    /// The loops in the order they were measured.
    pub loops: Vec<LoopRecord>,
}

/// One pattern with all its sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommPatternRecord {
    /// Name: `ring-1` to `ring-6`, `random-1` to `random-30`, `worst-cycle`, ...
    pub pattern: String,
    /// What it is one of.
    pub family: Family,
    /// Its shape: `5x2+3` rings, `3x2` ranks of a grid.
    pub shape: String,
    /// Messages of all ranks in one iteration.
    pub messages: u64,
    /// By size, in ascending order; sizes missing at the end were not reached.
    pub sizes: Vec<SizeRecord>,
    /// Bytes of received messages compared with what was sent, all ranks.
    pub bytes_checked: u64,
    /// Bytes that were wrong, all ranks.
    pub bytes_wrong: u64,
    /// Memory allocations of the program inside the clock, all ranks. Anything but 0 is a defect.
    pub allocations_in_clock: u64,
    /// Who had the CPUs meanwhile, in all repetitions, comparing of data included; None: not watched.
    #[serde(default)]
    pub machine: Option<MachineShare>,
    /// Time of the pattern from the first barrier to the last comparison, in all repetitions.
    pub real_seconds: f64,
}

/// What one repetition brought of a pattern. The repetitions of a pattern are far apart in time, and each has a line of the
/// journal; in the result they are one record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Visit(pub Box<CommPatternRecord>);

impl TakeIn<Visit> for Vec<CommPatternRecord> {
    fn take_in(&mut self, Visit(record): Visit) {
        match self.iter_mut().find(|known| known.pattern == record.pattern) {
            Some(known) => known.add(*record),
            None => self.push(*record),
        }
    }
}

impl CommPatternRecord {
    /// Another repetition of the same pattern. By index, because sizes may be equal where memory is tiny.
    fn add(&mut self, later: Self) {
        for (index, size) in later.sizes.into_iter().enumerate() {
            match self.sizes.get_mut(index) {
                Some(known) => known.loops.extend(size.loops),
                None => self.sizes.push(size),
            }
        }
        self.bytes_checked += later.bytes_checked;
        self.bytes_wrong += later.bytes_wrong;
        self.allocations_in_clock += later.allocations_in_clock;
        match (&mut self.machine, later.machine) {
            (Some(known), Some(more)) => known.add(more),
            (known, _) => *known = None,
        }
        self.real_seconds += later.real_seconds;
    }
}

/// What the pilot saw of one size and method on one ring of all ranks: from this the time of the run is announced.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PilotRecord {
    /// Message size.
    pub message_bytes: u64,
    /// How.
    pub method: Method,
    /// Iterations.
    pub iterations: u64,
    /// Slowest rank.
    pub seconds: f64,
}

/// What b_eff works with, as far as it is not in the configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommSetup {
    /// Where it runs.
    pub machine: Machine,
    /// Rank by rank.
    pub placement: Vec<Placement>,
    /// What binds the ranks, as the launcher tells; None: it does not, or it was not recorded.
    #[serde(default)]
    pub binding: Option<String>,
    /// How ranks are numbered over hosts.
    pub numbering: Numbering,
    /// The way of the messages.
    pub transport: Transport,
    /// Lmax.
    pub lmax_bytes: u64,
    /// The 21 sizes.
    pub sizes_bytes: Vec<u64>,
    /// Patterns that are to run.
    pub patterns: u64,
    /// Smallest step of the clock seen.
    pub clock_resolution_ns: f64,
    /// One reading of the clock.
    pub clock_read_ns: f64,
    /// One barrier over all ranks, median.
    pub barrier_ns: f64,
}

/// What was told before the first pattern.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Announcement {
    /// Time of the whole measurement at most.
    pub limit_seconds: f64,
    /// Time expected, pilot included.
    pub expected_seconds: f64,
    /// Effort that fits.
    pub effort: Effort,
    /// What the pilot measured.
    pub pilot: Vec<PilotRecord>,
    /// The memory of the messages; None: not recorded.
    #[serde(default)]
    pub memory: Option<MessageMemory>,
}

/// The memory of the messages, as it was when the first pattern began. Which way they use it is in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessageMemory {
    /// Length of the memory that a rank sends from, and of the one that it receives into.
    pub half_bytes: u64,
    /// Of both memories in huge pages (AnonHugePages), all ranks; None: the kernel does not tell.
    pub huge_page_total_bytes: Option<u64>,
    /// The same of the rank that has least.
    pub huge_page_smallest_bytes: Option<u64>,
}

/// The definition was measured as a whole: what ends the run later takes nothing from its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Whole {
    /// From the pilot to the last comparison of the third repetition.
    pub real_seconds: f64,
    /// Efforts later than the announced one up to then, as at the end of the run.
    pub efforts: Vec<(u64, Effort)>,
}

/// Our loops of one kind beside bare ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BareRecord {
    /// Pattern name.
    pub pattern: String,
    /// How the messages of an iteration are exchanged.
    pub method: Method,
    /// Message size.
    #[schemars(range(min = 1))]
    pub message_bytes: u64,
    /// Messages of all ranks in one iteration.
    pub messages: u64,
    /// Iterations of each loop.
    #[schemars(range(min = 1))]
    pub iterations: u64,
    /// In turns.
    pub pairs: Vec<BarePair>,
}

/// Bytes of a received message that were not the bytes sent, named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommCorruption {
    /// Pattern name.
    pub pattern: String,
    /// Method of the loop.
    pub method: Method,
    /// Its repetition.
    pub repetition: u32,
    /// Message size.
    pub message_bytes: u64,
    /// Last iteration that wrote this place, from 0.
    pub iteration: u64,
    /// Rank that sent.
    pub sender: u64,
    /// Rank that received.
    pub receiver: u64,
    /// First wrong byte in the message.
    pub offset_bytes: u64,
    /// Byte expected there.
    pub expected: u8,
    /// Byte found.
    pub found: u8,
    /// What it looks like: `one bit flipped`, `never delivered`, `data of rank 3`, ...
    pub looks_like: String,
    /// Wrong bytes of this loop from this sender.
    pub bytes_wrong: u64,
}

/// The end of a run of b_eff.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommEnding {
    /// How.
    pub outcome: Outcome,
    /// From the pilot to the last comparison.
    pub real_seconds: f64,
    /// Of that, laying out memory and the pilot.
    pub pilot_seconds: f64,
    /// Of that, comparing data, slowest rank.
    pub verify_seconds: f64,
    /// Efforts later than the announced one: from which pattern (its index in the plan, counted on through the repetitions)
    /// on, and which. Empty if the announcement held.
    pub efforts: Vec<(u64, Effort)>,
    /// Largest resident memory of a rank (VmHWM).
    pub rank_memory_high_water_bytes: u64,
    /// Message memory per rank as planned.
    pub rank_memory_planned_bytes: u64,
}

run_record! {
    /// Everything about one run of b_eff.
    result CommResult of B_EFF named benchmark,
    /// One line of the journal of b_eff.
    line CommLine,
    start {
        /// What was asked.
        config: CommConfig,
        /// With what.
        setup: CommSetup,
    }
    records {
        /// What was told before the first pattern; None: it ended before that.
        announcement: Option<Announcement> = Announcement(Announcement),
        /// Patterns in the order in which they were first measured, with all their repetitions.
        patterns: Vec<CommPatternRecord> = Pattern(Visit),
        /// What was known when the definition was measured as a whole, before any repeat. What ends the run later (a signal, a kill) leaves the
        /// value valid. None: the run did not get there, or is from before it was told.
        #[serde(default)]
        whole: Option<Whole> = Whole(Whole),
        /// Patterns that were measured again in the time that was left, with all these repetitions; the value does not know them.
        #[serde(default)]
        repeats: Vec<CommPatternRecord> = Repeat(Visit),
        /// Our loops beside bare ones, if asked for.
        bare: Vec<BareRecord> = Bare(BareRecord),
        /// Corruption found.
        corruptions: Vec<CommCorruption> = Corruption(CommCorruption),
    }
    ending CommEnding,
}

impl CommResult {
    /// All loops of all patterns, as the definition has them.
    pub fn loops(&self) -> impl Iterator<Item = &LoopRecord> {
        self.patterns.iter().flat_map(|p| &p.sizes).flat_map(|s| &s.loops)
    }

    /// Every record of a pattern, of the definition and of the repeats.
    pub fn measured(&self) -> impl Iterator<Item = &CommPatternRecord> + Clone {
        self.patterns.iter().chain(&self.repeats)
    }

    /// Bytes of received messages that were compared.
    #[must_use]
    pub fn bytes_checked(&self) -> u64 {
        self.measured().map(|p| p.bytes_checked).fold(0, u64::saturating_add)
    }

    /// Of these, bytes that were wrong.
    #[must_use]
    pub fn bytes_wrong(&self) -> u64 {
        self.measured().map(|p| p.bytes_wrong).fold(0, u64::saturating_add)
    }

    fn has_wrong_data(&self) -> bool {
        self.bytes_wrong() > 0
    }

    /// Every method is MPI's: what cannot be run is an error.
    fn nothing_was_run(&self) -> bool {
        false
    }
}
