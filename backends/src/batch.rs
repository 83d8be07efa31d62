//! A range of calls, and the direction of a call.

/// Write or read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Memory to file.
    #[default]
    Write,
    /// File to memory.
    Read,
}

/// Calls `first_call .. first_call + calls` of the prepared pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Number of the first call.
    pub first_call: u64,
    /// Number of calls.
    pub calls: u64,
}
