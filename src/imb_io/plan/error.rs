//! Why something cannot be planned.

/// A plan that is impossible, with the next step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A partition that the world cannot hold.
    #[error(
        "a partition of {ranks} ranks is impossible: the program runs with {world_ranks} rank(s); \
         ask for 1 to {world_ranks} ranks or start more of them"
    )]
    Partition {
        /// Ranks asked for.
        ranks: u64,
        /// Ranks there are.
        world_ranks: u64,
    },
    /// Input that makes no sense.
    #[error("cannot plan: {what}")]
    Argument {
        /// Which input, its value and what is allowed.
        what: String,
    },
}

impl PlanError {
    /// Shorthand for [`PlanError::Argument`].
    pub(crate) fn argument(what: impl Into<String>) -> Self {
        Self::Argument { what: what.into() }
    }
}
