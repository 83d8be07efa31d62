//! Steps of one rank.

use serde::{Deserialize, Serialize};

/// One step of an iteration on one rank. Step k of the sender is step k of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExchangeStep {
    /// Destination of the message sent.
    pub send_to: Option<u64>,
    /// Source of the message received.
    pub receive_from: Option<u64>,
}
