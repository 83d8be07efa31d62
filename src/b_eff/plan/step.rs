//! The messages of one rank, step by step.

use serde::{Deserialize, Serialize};

/// One step of an iteration as one rank sees it. Step k of the sender is step k of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Rank that gets a message.
    pub send_to: Option<u64>,
    /// Rank that a message comes from.
    pub receive_from: Option<u64>,
}
