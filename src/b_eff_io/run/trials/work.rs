//! What trials measure.

use crate::b_eff_io::plan::PatternSpec;
use crate::frame::records::AccessMethod;
use crate::frame::run::trials::TrialScope;
use crate::frame::trials::TrialGoal;

/// A pattern with its name in outcomes.
#[derive(Clone, Debug)]
pub struct NamedPattern {
    /// Pattern.
    pub spec: PatternSpec,
    /// Name.
    pub name: String,
}

/// What trials measure.
#[derive(Clone, Debug)]
pub struct TrialWork {
    /// Access method.
    pub access: AccessMethod,
    /// Figure.
    pub goal: TrialGoal,
    /// Patterns of the figure.
    pub of_goal: Vec<NamedPattern>,
    /// The other patterns of the same types.
    pub others: Vec<NamedPattern>,
}

impl TrialWork {
    /// The patterns of a scope.
    #[must_use]
    pub fn patterns(&self, scope: TrialScope) -> &[NamedPattern] {
        match scope {
            TrialScope::Goal => &self.of_goal,
            TrialScope::Others => &self.others,
        }
    }
}
