//! Forecast of the communication of a run beside its data transfers: collective calls, and the bytes of a rank and of rank 0.
//!
//! Reductions combine in binomial trees: rank 0 receives the message of log2(ranks) others, whatever their number. What grows with the
//! ranks is the description of their binding, and with the hosts the figures of each. The numbers of calls are those of the program, the
//! bytes are the lengths of its messages on average; a test compares both with the messages of simulated runs.

use serde::Serialize;

use super::preview::Preview;
use crate::b_eff_io::config::Config;
use crate::frame::backends::backend_of;
use crate::frame::values::NULL_BACKEND;

/// From the start of the program to the first measurement, without that of the harness; and after the last one.
const CALLS_OF_START: u64 = 100;
const CALLS_OF_RUN: u64 = 20;
/// Barriers and reductions whose time is that of the harness, fewer where they are slow.
const CALLS_OF_HARNESS: u64 = 4000;
const BYTES_OF_HARNESS: u64 = 64_000;
/// For each type, access method and contestant: open, close, sync, and their agreements.
const CALLS_OF_TYPE: u64 = 8;
/// For each pattern, access method and contestant: preparation, and the reduction of its record.
const CALLS_OF_PATTERN: u64 = 11;
const BYTES_OF_PATTERN: u64 = 600;
/// With data in files: evidence of the storage, and verification.
const CALLS_OF_EVIDENCE: u64 = 7;
const BYTES_OF_EVIDENCE: u64 = 150;
/// For each further round of a pattern.
const CALLS_OF_ROUND: u64 = 8;
const BYTES_OF_ROUND: u64 = 190;
/// Loops that are driven by time agree after batches of growing numbers of calls.
const MAX_AGREEMENTS: u64 = 60;
const BYTES_OF_AGREEMENT: u64 = 48;
/// Survey: what a rank reports to its host, what rank 0 receives for each rank, and what every rank receives for each host.
const BYTES_OF_RANK_SURVEY: u64 = 2000;
const SURVEY_BYTES_PER_RANK: u64 = 100;
const SURVEY_BYTES_PER_HOST: u64 = 16;
/// Figures of a host in the record of a type.
const TYPE_BYTES_PER_HOST: u64 = 70;

/// Counts that determine the communication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommunicationCounts {
    /// Ranks.
    pub ranks: u64,
    /// Hosts.
    pub hosts: u64,
    /// Records of types: for each partition, access method and contestant.
    pub type_records: u64,
    /// Records of patterns: likewise.
    pub pattern_records: u64,
    /// Those of contestants with data in files.
    pub evidence_records: u64,
    /// Rounds beyond the first of each.
    pub further_rounds: u64,
    /// Agreements in loops that are driven by time.
    pub agreements: u64,
}

/// Communication of a phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PhaseCommunication {
    /// Name of the phase.
    pub phase: &'static str,
    /// Collective calls of a rank.
    pub collective_calls: u64,
    /// Bytes that a rank sends.
    pub rank_bytes: u64,
    /// Bytes that rank 0 receives.
    pub root_bytes: u64,
}

impl CommunicationCounts {
    /// Those of a plan.
    #[must_use]
    pub fn of_plan(plan: &Preview, config: &Config) -> Self {
        let (ranks, rounds) = (plan.input.ranks, u64::from(config.rounds));
        let contestants = config.backends.len() as u64;
        let with_data = config.backends.iter().filter(|name| backend_of(name) != NULL_BACKEND).count() as u64;
        let outlooks = || plan.partitions.iter().flat_map(|p| &p.patterns).flat_map(|p| p.outlook.iter().flatten());
        let records = outlooks().count() as u64;
        let rounds_of = |calls: u64| calls.min(rounds).saturating_sub(1);
        let accesses = |file_type| {
            let own = plan.partitions.iter().flat_map(|p| &p.patterns).filter(move |p| p.pattern_type == file_type);
            own.map(|p| p.outlook.iter().flatten().count() as u64).max().unwrap_or(0)
        };
        let type_records = plan.partitions.iter().flat_map(|p| &p.files).map(|file| accesses(file.pattern_type));
        Self {
            ranks,
            hosts: ranks.div_ceil(plan.input.ranks_of_host.max(1)),
            type_records: contestants * type_records.sum::<u64>(),
            pattern_records: contestants * records,
            evidence_records: with_data * records,
            further_rounds: contestants * outlooks().map(|o| rounds_of(o.calls)).sum::<u64>(),
            agreements: contestants * outlooks().map(|o| o.calls.min(MAX_AGREEMENTS)).sum::<u64>(),
        }
    }

    /// The phases of a run.
    #[must_use]
    pub fn phases(&self) -> [PhaseCommunication; 4] {
        let Self { ranks, hosts, type_records, pattern_records, evidence_records, further_rounds, agreements } = *self;
        let levels = u64::from(ranks.next_power_of_two().ilog2());
        let in_tree = |phase, collective_calls, rank_bytes| PhaseCommunication {
            phase,
            collective_calls,
            rank_bytes,
            root_bytes: levels * rank_bytes,
        };
        let record_calls = type_records * CALLS_OF_TYPE
            + pattern_records * CALLS_OF_PATTERN
            + evidence_records * CALLS_OF_EVIDENCE
            + further_rounds * CALLS_OF_ROUND;
        let record_bytes =
            pattern_records * BYTES_OF_PATTERN + evidence_records * BYTES_OF_EVIDENCE + further_rounds * BYTES_OF_ROUND;
        let mut records = in_tree("records", CALLS_OF_RUN + record_calls, record_bytes);
        records.root_bytes += type_records * hosts * TYPE_BYTES_PER_HOST;
        let survey = PhaseCommunication {
            phase: "survey of ranks and hosts",
            collective_calls: CALLS_OF_START,
            rank_bytes: BYTES_OF_RANK_SURVEY + hosts * SURVEY_BYTES_PER_HOST,
            root_bytes: ranks * SURVEY_BYTES_PER_RANK,
        };
        [
            survey,
            in_tree("cost of the harness, at most", CALLS_OF_HARNESS, BYTES_OF_HARNESS),
            in_tree("agreements in the loops, at most", agreements, agreements * BYTES_OF_AGREEMENT),
            records,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A whole run of mpiio on 782 hosts.
    #[test]
    fn the_messages_of_100_000_ranks_are_small() {
        let counts = CommunicationCounts {
            ranks: 100_000,
            hosts: 782,
            type_records: 15,
            pattern_records: 129,
            evidence_records: 129,
            further_rounds: 0,
            agreements: 129 * MAX_AGREEMENTS,
        };
        let sum = |of: fn(&PhaseCommunication) -> u64| counts.phases().iter().map(of).sum::<u64>();
        assert!(sum(|p| p.root_bytes) < 200_000_000 && sum(|p| p.rank_bytes) < 5_000_000, "{:?}", counts.phases());
    }
}
