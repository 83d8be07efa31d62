//! Maxima of each system, and what was tried.

use serde::Serialize;

use super::value::{ListedStatus, ListedValue, ReleaseEntry};
use crate::frame::units::format_seconds;

/// Maximum by one release.
#[derive(Clone, Debug, Serialize)]
pub struct Maximum<'a> {
    /// Release.
    pub release: &'static str,
    /// Value in 1e6 bytes/s.
    pub mb_per_second: f64,
    /// Its validity.
    pub status: ListedStatus,
    /// The partition of a run that achieved it.
    pub run: &'a ListedValue,
}

/// What was tried: the different values over all runs of a system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tried {
    /// Results.
    pub files: Vec<String>,
    /// Scheduled times T.
    pub times: Vec<String>,
    /// Ranks of partitions.
    pub ranks: Vec<u64>,
    /// Ranks on a host.
    pub ranks_per_host: Vec<u64>,
    /// MPI libraries.
    pub mpi: Vec<String>,
    /// Hints.
    pub hints: Vec<String>,
    /// Backends.
    pub backends: Vec<String>,
}

/// A system: maxima of its runs through MPI-IO; without any, of its other runs.
#[derive(Clone, Debug, Serialize)]
pub struct SystemMaxima<'a> {
    /// The system.
    pub system: &'a str,
    /// Maxima over the values that may be compared with those of other systems, by release.
    pub accepted: Vec<Maximum<'a>>,
    /// Maxima over all values, by release.
    pub highest: Vec<Maximum<'a>>,
    /// What was tried.
    pub tried: Tried,
}

/// The systems of a list, in its order.
#[must_use]
pub fn systems(all: &[ListedValue]) -> Vec<SystemMaxima<'_>> {
    let mut names: Vec<&str> = Vec::new();
    for value in all {
        if !names.contains(&value.system.as_str()) {
            names.push(&value.system);
        }
    }
    let of_system = |system| {
        let own: Vec<&ListedValue> = all.iter().filter(|value| value.system == system).collect();
        let is_mpi_io =
            own.iter().any(|value| value.is_mpi_io && value.values.iter().any(|v| v.mb_per_second.is_some()));
        let counted: Vec<&ListedValue> = own.iter().copied().filter(|value| value.is_mpi_io || !is_mpi_io).collect();
        SystemMaxima {
            system,
            accepted: maxima(&counted, |entry| entry.status.is_accepted()),
            highest: maxima(&counted, |_| true),
            tried: tried(&own),
        }
    };
    names.into_iter().map(of_system).collect()
}

/// The first of equal values is the maximum.
fn maxima<'a>(own: &[&'a ListedValue], counts: impl Fn(&ReleaseEntry) -> bool) -> Vec<Maximum<'a>> {
    let mut found: Vec<Maximum<'a>> = Vec::new();
    for run in own {
        for entry in run.values.iter().filter(|entry| counts(entry)) {
            let Some(mb_per_second) = entry.mb_per_second else { continue };
            let maximum = Maximum { release: entry.release, mb_per_second, status: entry.status, run };
            match found.iter_mut().find(|known| known.release == entry.release) {
                None => found.push(maximum),
                Some(known) if known.mb_per_second < mb_per_second => *known = maximum,
                Some(_) => {}
            }
        }
    }
    found.sort_by_key(|maximum| maximum.release);
    found
}

fn tried(own: &[&ListedValue]) -> Tried {
    fn add<T: PartialEq>(list: &mut Vec<T>, value: T) {
        if !list.contains(&value) {
            list.push(value);
        }
    }
    let mut all = Tried::default();
    let mut seconds: Vec<f64> = Vec::new();
    for value in own {
        add(&mut all.files, value.file.clone());
        value.time_seconds.into_iter().for_each(|time| add(&mut seconds, time));
        add(&mut all.ranks, value.ranks);
        value.ranks_per_host.into_iter().for_each(|ranks| add(&mut all.ranks_per_host, ranks));
        add(&mut all.mpi, if value.mpi.is_empty() { "not recorded".to_owned() } else { value.mpi.clone() });
        add(&mut all.hints, if value.hints.is_empty() { "none".to_owned() } else { value.hints.clone() });
        add(&mut all.backends, value.backend.clone());
    }
    seconds.sort_by(f64::total_cmp);
    all.ranks.sort_unstable();
    all.ranks_per_host.sort_unstable();
    all.times = seconds.into_iter().map(format_seconds).collect();
    all
}
