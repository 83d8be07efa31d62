//! Interference during a measurement: CPU times are read before and after it, outside the clock.

use beff_ffi::{Comm, MpiError};
use serde::{Deserialize, Serialize};

use crate::frame::records::InterferenceRecord;
use crate::frame::run::agree::{collect, reduce};
use crate::frame::run::clock::Instant;
use crate::frame::system::cpu_time::{self, HostCpuTimes, ProcessCpuTimes};
use crate::frame::system::host;

/// CPUs of this host on which the ranks of a communicator may run. Created once for each communicator.
#[derive(Debug)]
pub struct HostCpus {
    /// True on the first rank of this host.
    is_leader: bool,
    host: String,
    cpus: Vec<u32>,
    /// The ranks of this host.
    node: Comm,
}

impl HostCpus {
    /// Collective.
    ///
    /// # Errors
    /// MPI errors.
    pub fn survey(comm: &Comm) -> Result<Self, MpiError> {
        let node = if comm.size() > 1 { comm.node()? } else { None }.unwrap_or_else(Comm::comm_self);
        let mut leader = [comm.rank()];
        node.min_u64(&mut leader)?;
        let mut cpus = collect(&node, host::allowed_cpus().unwrap_or_default())?;
        cpus.sort_unstable();
        cpus.dedup();
        let host = host::host_name().unwrap_or_else(|_| format!("host-of-rank-{}", leader[0]));
        Ok(Self { is_leader: node.is_root(), host, cpus, node })
    }
}

/// CPU times of one measurement, added over one or several intervals.
#[derive(Debug, Default)]
pub struct CpuObservation {
    since: Option<(Instant, ProcessCpuTimes, Option<HostCpuTimes>)>,
    observed_seconds: f64,
    own: Option<ProcessCpuTimes>,
    host: Option<HostCpuTimes>,
}

impl CpuObservation {
    /// Begins an interval, before the clock starts. Not collective.
    pub fn resume(&mut self, cpus: &HostCpus) {
        let host = if cpus.is_leader { cpu_time::host_cpu_times(&cpus.cpus) } else { None };
        self.since = Some((Instant::now(), cpu_time::process_cpu_times(), host));
    }

    /// Ends the interval, after the clock has stopped. Not collective.
    pub fn pause(&mut self, cpus: &HostCpus) {
        let Some((begin, own, host)) = self.since.take() else { return };
        self.observed_seconds += begin.elapsed().as_secs_f64();
        let own = cpu_time::process_cpu_times().since(own);
        self.own = Some(self.own.map_or(own, |sum| sum.plus(own)));
        let now = if cpus.is_leader { cpu_time::host_cpu_times(&cpus.cpus) } else { None };
        if let Some(part) = now.zip(host).map(|(now, then)| now.since(then)) {
            self.host = Some(self.host.map_or(part, |sum| sum.plus(part)));
        }
    }

    /// Combines all ranks on rank 0; None on other ranks, and if nothing was observed. Collective.
    ///
    /// # Errors
    /// MPI errors.
    pub fn end(self, cpus: &HostCpus, comm: &Comm) -> Result<Option<InterferenceRecord>, MpiError> {
        let mut of_host = [self.own.map_or(0, |own| own.user_ns), self.own.map_or(0, |own| own.kernel_ns)];
        cpus.node.sum_u64(&mut of_host)?;
        let mine = CpuTimes::of_rank(self.observed_seconds, self.own);
        let mine = match cpus.is_leader {
            true => mine.with_host(&cpus.host, cpus.cpus.len() as u64, self.host.unwrap_or_default(), of_host),
            false => mine,
        };
        Ok(reduce(comm, mine, CpuTimes::plus)?.and_then(CpuTimes::into_record))
    }
}

/// CPU times of several ranks, of which rank 0 makes the record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct CpuTimes {
    /// Host that lost the largest share of its CPU time; the one with the lowest rank if several did.
    worst_host: Option<InterferenceRecord>,
    observed_seconds: f64,
    /// Ranks that know their CPU times, and the longest wait of these; None if it is unknown of one.
    ranks: u64,
    waited_ns: Option<u64>,
    voluntary_switches: u64,
    involuntary_switches: u64,
}

impl CpuTimes {
    fn of_rank(observed_seconds: f64, own: Option<ProcessCpuTimes>) -> Self {
        let Some(own) = own else { return Self { observed_seconds, waited_ns: Some(0), ..Self::default() } };
        Self {
            worst_host: None,
            observed_seconds,
            ranks: 1,
            waited_ns: own.waited_ns,
            voluntary_switches: own.voluntary_switches,
            involuntary_switches: own.involuntary_switches,
        }
    }

    /// Adds the times of the rank's host, whose ranks used `ranks_ns` in user and kernel mode.
    fn with_host(self, host: &str, cpus: u64, times: HostCpuTimes, ranks_ns: [u64; 2]) -> Self {
        let [user_ns, kernel_ns] = ranks_ns;
        let ranks = ProcessCpuTimes { user_ns, kernel_ns, ..ProcessCpuTimes::default() };
        Self { worst_host: Some(host_interference(host, cpus, times, ranks)), ..self }
    }

    fn plus(self, higher: Self) -> Self {
        let lost = |s: &InterferenceRecord| {
            (s.steal_seconds + s.other_process_seconds + s.kernel_seconds) / s.cpu_seconds.max(1e-9)
        };
        let worse = |lower, higher| if lost(&higher) > lost(&lower) { higher } else { lower };
        Self {
            worst_host: [self.worst_host, higher.worst_host].into_iter().flatten().reduce(worse),
            observed_seconds: self.observed_seconds.max(higher.observed_seconds),
            ranks: self.ranks + higher.ranks,
            waited_ns: self.waited_ns.zip(higher.waited_ns).map(|(lower, higher)| lower.max(higher)),
            voluntary_switches: self.voluntary_switches + higher.voluntary_switches,
            involuntary_switches: self.involuntary_switches + higher.involuntary_switches,
        }
    }

    fn into_record(self) -> Option<InterferenceRecord> {
        let worst = self.worst_host.filter(|_| self.ranks > 0)?;
        Some(InterferenceRecord {
            observed_seconds: self.observed_seconds,
            run_queue_wait_seconds: self.waited_ns.map(seconds),
            voluntary_switches: self.voluntary_switches,
            involuntary_switches: self.involuntary_switches,
            ..worst
        })
    }
}

/// Times of ranks are exact and those of the host are counted in ticks, so differences saturate at zero.
fn host_interference(host: &str, cpus: u64, times: HostCpuTimes, ranks: ProcessCpuTimes) -> InterferenceRecord {
    InterferenceRecord {
        host: host.to_owned(),
        cpus,
        cpu_seconds: seconds(times.all_ns),
        steal_seconds: seconds(times.steal_ns),
        other_process_seconds: seconds(times.user_ns.saturating_sub(ranks.user_ns)),
        kernel_seconds: seconds(times.kernel_ns.saturating_sub(ranks.kernel_ns)),
        ..InterferenceRecord::default()
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn own(user_ns: u64, kernel_ns: u64, waited_ns: Option<u64>) -> ProcessCpuTimes {
        ProcessCpuTimes { user_ns, kernel_ns, waited_ns, voluntary_switches: 3, involuntary_switches: 1 }
    }

    /// One rank: the first rank of its host, what it knows about the host, its own times.
    #[derive(Clone)]
    struct RankCpuTimes {
        leader: u64,
        host: Option<(&'static str, Option<HostCpuTimes>)>,
        own: Option<ProcessCpuTimes>,
    }

    fn rank(leader: u64, host: Option<(&'static str, HostCpuTimes)>, own: ProcessCpuTimes) -> RankCpuTimes {
        let host = host.map(|(name, times)| (name, Some(times)));
        RankCpuTimes { leader, host, own: Some(own) }
    }

    /// As in `end`.
    fn combine_hosts(all: &[RankCpuTimes]) -> Option<InterferenceRecord> {
        let of_rank = |one: &RankCpuTimes| {
            let mine = CpuTimes::of_rank(10.0, one.own);
            let Some((host, times)) = one.host else { return mine };
            let own: Vec<ProcessCpuTimes> =
                all.iter().filter(|other| other.leader == one.leader).filter_map(|other| other.own).collect();
            let of_host = [own.iter().map(|own| own.user_ns).sum(), own.iter().map(|own| own.kernel_ns).sum()];
            mine.with_host(host, 2, times.unwrap_or_default(), of_host)
        };
        all.iter().map(of_rank).reduce(CpuTimes::plus).and_then(CpuTimes::into_record)
    }

    fn times(user_ns: u64, kernel_ns: u64, steal_ns: u64) -> HostCpuTimes {
        HostCpuTimes { user_ns, kernel_ns, steal_ns, all_ns: 20 * S }
    }

    #[test]
    fn cpu_time_not_used_by_ranks_is_that_of_other_processes() {
        let all = [
            rank(0, Some(("a", times(13 * S, 4 * S, S))), own(6 * S, S, Some(S / 2))),
            rank(0, None, own(5 * S, S, Some(0))),
        ];
        let share = combine_hosts(&all).unwrap();
        assert_eq!((share.host.as_str(), share.cpus, share.observed_seconds, share.cpu_seconds), ("a", 2, 10.0, 20.0));
        assert_eq!((share.steal_seconds, share.other_process_seconds, share.kernel_seconds), (1.0, 2.0, 2.0));
        assert_eq!(share.run_queue_wait_seconds, Some(0.5), "the rank that waited longest");
        assert_eq!((share.voluntary_switches, share.involuntary_switches), (6, 2));
    }

    #[test]
    fn the_host_that_lost_most_stands_for_all() {
        let quiet = rank(0, Some(("quiet", times(6 * S, S, 0))), own(6 * S, S, Some(0)));
        let robbed = rank(1, Some(("robbed", times(6 * S, S, 4 * S))), own(6 * S, S, Some(3 * S)));
        let busy = rank(2, Some(("busy", times(8 * S, S, 0))), own(6 * S, S, Some(S)));
        for all in [[&quiet, &robbed, &busy], [&busy, &quiet, &robbed]] {
            let share = combine_hosts(&all.map(Clone::clone)).unwrap();
            assert_eq!((share.host.as_str(), share.steal_seconds, share.other_process_seconds), ("robbed", 4.0, 0.0));
        }
        let share = combine_hosts(&[quiet, busy]).unwrap();
        assert_eq!(
            (share.host.as_str(), share.other_process_seconds, share.run_queue_wait_seconds),
            ("busy", 2.0, Some(1.0))
        );
    }

    #[test]
    fn what_is_not_known_is_not_nothing() {
        let silent = |waited| rank(0, None, own(S, S, waited));
        let first = RankCpuTimes { host: Some(("a", None)), ..silent(Some(0)) };
        let share = combine_hosts(&[first, silent(None)]).unwrap();
        assert_eq!((share.cpu_seconds, share.run_queue_wait_seconds), (0.0, None));
        assert_eq!(combine_hosts(&[]), None);
        assert_eq!(
            combine_hosts(&[RankCpuTimes { own: None, ..rank(0, Some(("a", times(0, 0, 0))), own(0, 0, None)) }]),
            None
        );
    }

    #[test]
    fn ticks_can_be_behind_the_ranks() {
        let share = combine_hosts(&[rank(0, Some(("a", times(S, S, 0))), own(2 * S, 2 * S, Some(0)))]).unwrap();
        assert_eq!((share.other_process_seconds, share.kernel_seconds), (0.0, 0.0));
    }

    #[test]
    fn observations_add_up_without_the_pauses() {
        let cpus = HostCpus {
            is_leader: true,
            host: "a".into(),
            cpus: host::allowed_cpus().unwrap(),
            node: Comm::comm_self(),
        };
        let mut watch = CpuObservation::default();
        watch.pause(&cpus);
        assert!(watch.own.is_none(), "no interval was begun");
        let mut worked = ProcessCpuTimes::default();
        for _ in 0..2 {
            watch.resume(&cpus);
            let begin = cpu_time::process_cpu_times();
            while cpu_time::process_cpu_times().since(begin).user_ns < 2_000_000 {}
            watch.pause(&cpus);
            worked = worked.plus(cpu_time::process_cpu_times().since(begin));
            let idle = cpu_time::process_cpu_times();
            while cpu_time::process_cpu_times().since(idle).user_ns < 20_000_000 {}
        }
        let seen = watch.own.unwrap().user_ns;
        assert!((4_000_000..20_000_000).contains(&seen), "{seen} of {worked:?}");
    }
}
