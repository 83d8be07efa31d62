//! Requirements of an acceptance that a planned run cannot decide, and what would make them decidable.

use serde::Serialize;

use super::cache_yardstick::CacheForecast;
use super::preview::Preview;
use super::repetitions::MIN_REPEATED_SECONDS;
use super::schedule::is_rewritten;
use crate::b_eff_io::config::{Config, Release, RepeatPolicy};
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::requirements::{Requirement, Subject};
use crate::frame::records::AccessMethod;
use crate::frame::units::format_seconds;
use crate::frame::values::MPI_IO;

/// Rounds that an interval of a ratio needs.
const MIN_ROUNDS: u32 = 3;

/// A requirement before the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlannedRequirement {
    /// Line of the file, from 1.
    pub line: u64,
    /// The requirement.
    pub requirement: String,
    /// Why the run cannot decide it, or will fail it; None: it can decide it.
    pub obstacle: Option<String>,
    /// What would make it decidable; None if nothing is in the way.
    pub remedy: Option<String>,
}

/// Obstacle and remedy.
type Obstacle = (String, String);

fn obstacle(cause: impl Into<String>, remedy: impl Into<String>) -> Option<Obstacle> {
    Some((cause.into(), remedy.into()))
}

/// Looks at each requirement of the configuration.
#[must_use]
pub fn planned_requirements(config: &Config, plan: &Preview, caches: &[CacheForecast]) -> Vec<PlannedRequirement> {
    let outlook = AcceptanceOutlook { config, plan, caches };
    let planned = |requirement: &Requirement| {
        let found = outlook.obstacle(requirement);
        let (obstacle, remedy) = found.unzip();
        PlannedRequirement { line: requirement.line, requirement: requirement.to_string(), obstacle, remedy }
    };
    config.requirements.iter().map(planned).collect()
}

struct AcceptanceOutlook<'a> {
    config: &'a Config,
    plan: &'a Preview,
    caches: &'a [CacheForecast],
}

impl AcceptanceOutlook<'_> {
    fn obstacle(&self, requirement: &Requirement) -> Option<Obstacle> {
        if let Some(fitting) = self.plan.fitting_time_seconds {
            return obstacle(
                "the run does not fit into its time limit and would be cut",
                format!("-T {fitting:.0}s, or a longer --time-limit"),
            );
        }
        match &requirement.subject {
            Subject::Value { backend } => self
                .contestant(backend)
                .or_else(|| self.whole("a value"))
                .or_else(|| self.not_valid("not valid"))
                .or_else(|| self.interval()),
            Subject::Spread { backend } => {
                self.contestant(backend).or_else(|| self.whole("a value")).or_else(|| self.interval())
            }
            Subject::Mean { access, backend } => {
                let rewrite = (*access != Some(AccessMethod::Write) && *access != Some(AccessMethod::Read))
                    .then(|| self.whole("a mean of rewrites"));
                let types = self.all_types("a mean");
                self.contestant(backend).or(types).or_else(|| rewrite.flatten()).or_else(|| self.interval())
            }
            Subject::Type { pattern_type, access, backend } => {
                self.contestant(backend).or_else(|| self.types(*pattern_type, *access)).or_else(|| self.interval())
            }
            Subject::SmallestChunk { backend, .. } => self.contestant(backend).or_else(|| self.interval()),
            Subject::Ratio { backends: [a, b], pattern_type, access } => self
                .contestant(a)
                .or_else(|| self.contestant(b))
                .or_else(|| self.types(pattern_type.or(self.config.types.first().copied()), *access))
                .or_else(|| self.rounds()),
            Subject::WrongWords => None,
            Subject::Time => self.time(requirement),
            Subject::Cache { access } => self.cache(*access),
            Subject::CoffeeCup => self.all_types("the mean of the first writes").or_else(|| self.interval()),
            Subject::Valid => self
                .contestant(MPI_IO)
                .or_else(|| self.whole("a valid value"))
                .or_else(|| self.not_valid("it will FAIL")),
        }
    }

    fn contestant(&self, backend: &str) -> Option<Obstacle> {
        let backends = &self.config.backends;
        let is_there = backends.iter().any(|name| name == backend);
        let wanted = [backends.as_slice(), &[backend.to_owned()]].concat().join(",");
        (!is_there).then(|| (format!("{backend} is not among the backends of the run"), format!("--backend {wanted}")))
    }

    /// All types, and all rewrites of the release.
    fn whole(&self, what: &str) -> Option<Obstacle> {
        let misses_rewrites = !self.config.full_rewrite && self.config.release != Release::R2_1;
        self.all_types(what).or_else(|| {
            misses_rewrites
                .then(|| (format!("{what} needs the rewrites of all types"), "omit --rewrite scatter".into()))
        })
    }

    fn all_types(&self, what: &str) -> Option<Obstacle> {
        let is_whole = self.config.types.len() == PatternType::COUNT;
        (!is_whole).then(|| (format!("{what} needs all pattern types"), "omit --types".into()))
    }

    fn types(&self, pattern_type: Option<PatternType>, access: Option<AccessMethod>) -> Option<Obstacle> {
        let Some(t) = pattern_type else { return self.all_types("a line about all types") };
        if !self.config.types.contains(&t) {
            return obstacle(format!("type {t} is not among the types of the run"), format!("--types with {t}"));
        }
        let is_missing = access == Some(AccessMethod::Rewrite) && !is_rewritten(self.config.full_rewrite, t);
        is_missing.then(|| (format!("type {t} is not rewritten"), "--rewrite all".into()))
    }

    /// Intervals of values need repetitions of whole types.
    fn interval(&self) -> Option<Obstacle> {
        match self.config.repeat {
            RepeatPolicy::Auto => None,
            RepeatPolicy::Rounds => obstacle(
                "with several backends only long calls are repeated: no interval of values",
                "--repeat auto, or a run of one backend",
            ),
            RepeatPolicy::Off if self.config.time_seconds < MIN_REPEATED_SECONDS => {
                obstacle("T is too short for repetitions: no interval", "-T 10s or more, or --repeat auto")
            }
            RepeatPolicy::Off => obstacle("no repetitions: no interval", "--repeat auto"),
        }
    }

    /// Intervals of ratios need rounds, and repetitions of long calls.
    fn rounds(&self) -> Option<Obstacle> {
        let has_repetitions = self.config.repeat != RepeatPolicy::Off;
        if self.config.rounds < MIN_ROUNDS && self.config.repeat == RepeatPolicy::Off {
            return obstacle("fewer than three rounds: no interval of the ratio", "--rounds 8, or --repeat auto");
        }
        let is_short = !has_repetitions && self.config.time_seconds < MIN_REPEATED_SECONDS;
        is_short.then(|| {
            let cause = "T is too short for repetitions of long calls: an interval of the ratio is not certain";
            (cause.to_owned(), "-T 10s or more, or --repeat rounds".to_owned())
        })
    }

    /// One loop for each pattern, and the T of each partition, as the definition requires.
    fn not_valid(&self, verdict: &str) -> Option<Obstacle> {
        if self.config.rounds != 1 {
            let cause = format!("{verdict}: each pattern is measured in {} rounds", self.config.rounds);
            return obstacle(cause, "--rounds 1 (with --repeat auto for intervals), or a run of one backend");
        }
        let minutes = match self.config.release {
            Release::R0_5 => 10.0,
            Release::R1 => 15.0,
            Release::R2_1 => 30.0,
        };
        let (shortest, remedy) = self.time_option(60.0 * minutes)?;
        let cause = format!(
            "{verdict}: a partition has {}, a valid value of release {} needs {minutes:.0} min",
            format_seconds(shortest),
            self.config.release.name()
        );
        Some((cause, remedy))
    }

    fn time(&self, requirement: &Requirement) -> Option<Obstacle> {
        let (shortest, remedy) = self.time_option(requirement.number * requirement.unit_size())?;
        Some((format!("it will FAIL: a partition has {}", format_seconds(shortest)), remedy))
    }

    /// Scheduled time of a partition, and the T that gives each the required one; None if this T does.
    fn time_option(&self, required_seconds: f64) -> Option<(f64, String)> {
        let shortest = self.plan.partitions.iter().map(|p| p.time_seconds).reduce(f64::min)?;
        let seconds = (required_seconds * self.config.time_seconds / shortest).ceil();
        let option =
            if seconds % 60.0 == 0.0 { format!("-T {:.0}m", seconds / 60.0) } else { format!("-T {seconds:.0}s") };
        (shortest < required_seconds).then_some((shortest, option))
    }

    fn cache(&self, access: Option<AccessMethod>) -> Option<Obstacle> {
        let ranks = self.caches.iter().map(|f| f.ranks).max()?;
        let own = self.caches.iter().filter(|f| f.ranks == ranks && access.is_none_or(|access| f.access == access));
        let unmet: Vec<&CacheForecast> = own.filter(|f| f.bytes < f.required_bytes).collect();
        let first = unmet.first()?;
        if first.may_be_direct && !first.is_given {
            return None;
        }
        let names: Vec<&str> = unmet.iter().map(|f| f.access.name()).collect();
        let needed = unmet.iter().map(|f| f.required_time_seconds).try_fold(0.0_f64, |most, t| Some(most.max(t?)));
        let remedy = match needed {
            Some(seconds) => format!("-T {seconds:.0}s at this rate"),
            None => "more --space".to_owned(),
        };
        obstacle(format!("it will FAIL at this rate: {} less than 20 times the cache", names.join(", ")), remedy)
    }
}

#[cfg(test)]
#[path = "acceptance_tests.rs"]
mod tests;
