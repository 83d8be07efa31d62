//! Acceptance: figures of one or several runs against required limits. A line passes if the whole 95 % interval satisfies the limit, fails if
//! the whole interval violates it, and is undecided otherwise, or where a comparison would be inconclusive ([`super::doubt`]).

use beff_statistics::bootstrap::Interval;
use beff_statistics::mean::MeanEstimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::doubt::Doubt;

/// Verdict on a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequirementVerdict {
    /// The whole interval satisfies the limit.
    Pass,
    /// The whole interval violates it.
    Fail,
    /// Neither: the interval contains the limit, the figure or its interval is unknown, or the run is in doubt.
    Undecided,
}

impl RequirementVerdict {
    /// Printed name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Undecided => "UNDECIDED",
        }
    }

    /// Verdict on all of them: FAIL before UNDECIDED before PASS. Nothing at all is undecided.
    #[must_use]
    pub fn of_all(all: impl IntoIterator<Item = Self>) -> Self {
        let worst = |a: Self, b: Self| match (a, b) {
            (Self::Fail, _) | (_, Self::Fail) => Self::Fail,
            (Self::Undecided, _) | (_, Self::Undecided) => Self::Undecided,
            _ => Self::Pass,
        };
        all.into_iter().reduce(worst).unwrap_or(Self::Undecided)
    }
}

/// Required limit of a figure, in the unit of the requirement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// The figure is at least this.
    AtLeast(f64),
    /// The figure is at most this.
    AtMost(f64),
}

impl Limit {
    fn satisfied_by(self, value: f64) -> bool {
        match self {
            Self::AtLeast(limit) => value >= limit,
            Self::AtMost(limit) => value <= limit,
        }
    }
}

/// How figures of several runs become one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FigureKind {
    /// A measured quantity: the mean of the runs, with the interval of their scatter.
    Quantity,
    /// The half-width, in percent, of the interval of a quantity with this value: that of the mean of the runs.
    HalfWidth {
        /// The quantity; None if it is unknown.
        of: Option<f64>,
    },
    /// Exact: each run must satisfy the limit.
    Exact,
}

/// A figure of a run, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredFigure {
    /// What it is the figure of: `posix, type 0, write`.
    pub subject: String,
    /// Kind.
    pub kind: FigureKind,
    /// The figure, in the unit of the requirement.
    pub value: Option<f64>,
    /// Its 95 % interval, in that unit.
    pub interval: Option<[f64; 2]>,
    /// Why it decides nothing, or a remark.
    pub note: Option<String>,
    /// It decides nothing, whatever its value: not valid, incomplete.
    pub is_blocked: bool,
    /// Verdict without a limit.
    pub settled: Option<RequirementVerdict>,
    /// Evidence that the run decides nothing.
    pub doubts: Vec<Doubt>,
}

impl MeasuredFigure {
    /// A figure without a value.
    #[must_use]
    pub fn absent(subject: impl Into<String>, kind: FigureKind, cause: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            kind,
            value: None,
            interval: None,
            note: Some(cause.into()),
            is_blocked: true,
            settled: None,
            doubts: Vec::new(),
        }
    }

    /// A figure with a value, and with an interval if it has one.
    #[must_use]
    pub fn new(subject: impl Into<String>, kind: FigureKind, value: f64, interval: Option<[f64; 2]>) -> Self {
        let known = Some(value).filter(|value| value.is_finite());
        Self { value: known, interval, note: None, is_blocked: false, ..Self::absent(subject, kind, "") }
    }

    /// States why it decides nothing.
    #[must_use]
    pub fn blocked_by(mut self, cause: Option<String>) -> Self {
        if let Some(cause) = cause {
            (self.is_blocked, self.note) = (true, Some(cause));
        }
        self
    }

    /// Sets the verdict, with a remark.
    #[must_use]
    pub fn settled(mut self, verdict: RequirementVerdict, note: impl Into<String>) -> Self {
        (self.settled, self.note, self.is_blocked) = (Some(verdict), Some(note.into()), false);
        self
    }

    fn judge(&self, limit: Limit) -> RequirementVerdict {
        let of_value = |is_satisfied: bool| match is_satisfied {
            true => RequirementVerdict::Pass,
            false => RequirementVerdict::Fail,
        };
        // Wrong data is wrong, however the run ended.
        if self.settled == Some(RequirementVerdict::Fail) {
            return RequirementVerdict::Fail;
        }
        if self.is_blocked || !self.doubts.is_empty() {
            return RequirementVerdict::Undecided;
        }
        if let Some(verdict) = self.settled {
            return verdict;
        }
        match (self.kind, self.value, self.interval) {
            (_, None, _) => RequirementVerdict::Undecided,
            (FigureKind::Exact | FigureKind::HalfWidth { .. }, Some(value), _) => of_value(limit.satisfied_by(value)),
            (FigureKind::Quantity, Some(_), None) => RequirementVerdict::Undecided,
            (FigureKind::Quantity, Some(_), Some([low, high])) => {
                let is_resolved = Interval { low, high }.is_resolved();
                match [low, high].map(|end| limit.satisfied_by(end)) {
                    [true, true] if is_resolved => RequirementVerdict::Pass,
                    [false, false] if is_resolved => RequirementVerdict::Fail,
                    _ => RequirementVerdict::Undecided,
                }
            }
        }
    }
}

/// A requirement with the figures of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RequiredFigures {
    /// Line of the file, from 1.
    pub line: u64,
    /// The requirement.
    pub requirement: String,
    /// Unit of the figures.
    pub unit: String,
    /// Limit.
    pub limit: Limit,
    /// The figures, each of which must satisfy the limit.
    pub figures: Vec<MeasuredFigure>,
}

/// A figure with its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgedFigure {
    /// What it is the figure of: backend, pattern type, access method.
    pub subject: String,
    /// The figure, in `unit`; None if unknown.
    pub value: Option<f64>,
    /// Its 95 % confidence interval; None if unknown, or if the figure is exact.
    pub interval: Option<[f64; 2]>,
    /// Verdict.
    pub verdict: RequirementVerdict,
    /// Why it is undecided although it may have an interval, or a remark; None: the figures tell.
    pub note: Option<String>,
    /// Evidence that the run decides nothing; None if there is none.
    pub doubt: Option<Doubt>,
}

/// A requirement with its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgedRequirement {
    /// Line of the file of requirements, from 1.
    pub line: u64,
    /// The requirement.
    pub requirement: String,
    /// Unit of its figures; empty for numbers.
    pub unit: String,
    /// Verdict on all of its figures.
    pub verdict: RequirementVerdict,
    /// The figures, each of which must satisfy it.
    pub figures: Vec<JudgedFigure>,
}

/// Requirements of `--require` and their verdicts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Acceptance {
    /// `pass` if all pass, `fail` if one fails, else `undecided`.
    pub verdict: RequirementVerdict,
    /// In the order of the file.
    pub requirements: Vec<JudgedRequirement>,
}

impl Acceptance {
    /// Judges all requirements; None without any.
    #[must_use]
    pub fn of(required: &[RequiredFigures]) -> Option<Self> {
        let requirements: Vec<JudgedRequirement> = required.iter().map(judge_line).collect();
        let verdict = RequirementVerdict::of_all(requirements.iter().map(|r| r.verdict));
        (!requirements.is_empty()).then_some(Self { verdict, requirements })
    }

    /// Number of requirements with this verdict.
    #[must_use]
    pub fn count(&self, verdict: RequirementVerdict) -> u64 {
        self.requirements.iter().filter(|r| r.verdict == verdict).count() as u64
    }
}

fn judge_line(required: &RequiredFigures) -> JudgedRequirement {
    let judged = |figure: &MeasuredFigure| JudgedFigure {
        subject: figure.subject.clone(),
        value: figure.value,
        interval: figure.interval,
        verdict: figure.judge(required.limit),
        note: figure.note.clone(),
        doubt: figure.doubts.first().cloned(),
    };
    let figures: Vec<JudgedFigure> = required.figures.iter().map(judged).collect();
    JudgedRequirement {
        line: required.line,
        requirement: required.requirement.clone(),
        unit: required.unit.clone(),
        verdict: RequirementVerdict::of_all(figures.iter().map(|f| f.verdict)),
        figures,
    }
}

/// Figures of several runs of the same requirements: quantities become the mean with the interval of their scatter from run to run, exact
/// figures stand for each run.
#[must_use]
pub fn combine(runs: &[Vec<RequiredFigures>]) -> Vec<RequiredFigures> {
    let [first, _, ..] = runs else { return runs.concat() };
    let of_line = |(at, line): (usize, &RequiredFigures)| {
        let figures = |place: usize| runs.iter().filter_map(move |run| run.get(at)?.figures.get(place));
        let all = (0..line.figures.len()).flat_map(|place| combine_figures(&figures(place).collect::<Vec<_>>()));
        RequiredFigures { figures: all.collect(), ..line.clone() }
    };
    first.iter().enumerate().map(of_line).collect()
}

fn combine_figures(all: &[&MeasuredFigure]) -> Vec<MeasuredFigure> {
    let Some(first) = all.first() else { return Vec::new() };
    // The scatter of several runs replaces the intervals within them.
    let doubts =
        |one: &MeasuredFigure| one.doubts.iter().filter(|d| !d.is_of_single_runs()).cloned().collect::<Vec<_>>();
    if first.kind == FigureKind::Exact {
        let of_run = |(at, one): (usize, &&MeasuredFigure)| MeasuredFigure {
            subject: join_subject(&one.subject, &format!("run {}", at + 1)),
            doubts: doubts(one),
            ..(*one).clone()
        };
        return all.iter().enumerate().map(of_run).collect();
    }
    let value = |one: &MeasuredFigure| match one.kind {
        FigureKind::HalfWidth { of } => of,
        FigureKind::Quantity | FigureKind::Exact => one.value,
    };
    let blocked = all.iter().enumerate().find(|(_, one)| value(one).is_none() || (one.is_blocked && !one.is_spread()));
    let mean = MeanEstimate::of(all.iter().filter_map(|one| value(one)));
    let cause = blocked.map(|(at, one)| {
        format!("run {}: {}", at + 1, one.note.clone().unwrap_or_else(|| "the figure is unknown".to_owned()))
    });
    let half_width = || mean.as_ref().and_then(MeanEstimate::half_width_share);
    let (value, interval) = match first.kind {
        FigureKind::HalfWidth { .. } => (half_width().map(|share| 100.0 * share), None),
        _ => (mean.map(|mean| mean.mean), mean.and_then(|mean| mean.interval)),
    };
    let few = (all.len() < beff_statistics::mean::MIN_MEASUREMENTS).then(|| {
        format!("{} runs have no interval, {} are needed", all.len(), beff_statistics::mean::MIN_MEASUREMENTS)
    });
    let note = cause.or(few);
    vec![MeasuredFigure {
        subject: first.subject.clone(),
        kind: first.kind,
        value,
        interval,
        is_blocked: note.is_some(),
        note,
        settled: None,
        doubts: all.iter().flat_map(|one| doubts(one)).collect(),
    }]
}

impl MeasuredFigure {
    /// One run alone may have no interval.
    fn is_spread(&self) -> bool {
        matches!(self.kind, FigureKind::HalfWidth { .. })
    }
}

/// Two parts of a subject, either of which may be empty.
fn join_subject(a: &str, b: &str) -> String {
    [a, b].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[path = "acceptance_tests.rs"]
mod tests;
