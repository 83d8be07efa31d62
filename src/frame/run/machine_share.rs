//! Who had the CPUs while something was measured: looked at before and after, outside the clock.

use beff_ffi::{Comm, MpiError};
use serde::{Deserialize, Serialize};

use crate::frame::records::MachineShare;
use crate::frame::run::agree::gather;
use crate::frame::run::clock::Instant;
use crate::frame::system::cpu_time::{self, HostTimes, OwnTimes};
use crate::frame::system::host;

/// The CPUs of this host on which the ranks of a communicator may run. Made once for each communicator.
#[derive(Debug)]
pub struct HostCpus {
    /// Number of this host's first rank: what tells hosts apart. Two hosts can have one name.
    leader: u64,
    is_leader: bool,
    host: String,
    cpus: Vec<u32>,
}

impl HostCpus {
    /// Collective.
    ///
    /// # Errors
    /// MPI between the ranks.
    pub fn survey(comm: &Comm) -> Result<Self, MpiError> {
        let node = if comm.size() > 1 { comm.node()? } else { None }.unwrap_or_else(Comm::own);
        let mut leader = [comm.rank()];
        node.min_u64(&mut leader)?;
        let mut cpus: Vec<u32> = gather(&node, &host::allowed_cpus().unwrap_or_default())?.concat();
        cpus.sort_unstable();
        cpus.dedup();
        let host = host::host_name().unwrap_or_else(|_| format!("host-of-rank-{}", leader[0]));
        Ok(Self { leader: leader[0], is_leader: node.is_root(), host, cpus })
    }
}

/// What was seen so far around one measurement, in one or several looks.
#[derive(Debug, Default)]
pub struct CpuWatch {
    since: Option<(Instant, OwnTimes, Option<HostTimes>)>,
    watched_seconds: f64,
    own: Option<OwnTimes>,
    host: Option<HostTimes>,
}

impl CpuWatch {
    /// Before the clock starts. Not collective.
    pub fn resume(&mut self, cpus: &HostCpus) {
        let host = if cpus.is_leader { cpu_time::host(&cpus.cpus) } else { None };
        self.since = Some((Instant::now(), cpu_time::own(), host));
    }

    /// After it has stopped. Not collective.
    pub fn pause(&mut self, cpus: &HostCpus) {
        let Some((begin, own, host)) = self.since.take() else { return };
        self.watched_seconds += begin.elapsed().as_secs_f64();
        let own = cpu_time::own().since(own);
        self.own = Some(self.own.map_or(own, |sum| sum.plus(own)));
        let now = if cpus.is_leader { cpu_time::host(&cpus.cpus) } else { None };
        if let Some(part) = now.zip(host).map(|(now, then)| now.since(then)) {
            self.host = Some(self.host.map_or(part, |sum| sum.plus(part)));
        }
    }

    /// All of it, of all ranks, on rank 0; nothing on the others, and where nothing was watched. Collective.
    ///
    /// # Errors
    /// MPI between the ranks.
    pub fn end(self, cpus: &HostCpus, comm: &Comm) -> Result<Option<MachineShare>, MpiError> {
        let mine = Witness {
            leader: cpus.leader,
            host: cpus.is_leader.then(|| (cpus.host.clone(), cpus.cpus.len() as u64, self.host)),
            watched_seconds: self.watched_seconds,
            own: self.own,
        };
        Ok(combine(&gather(comm, &mine)?))
    }
}

/// What one rank saw.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Witness {
    leader: u64,
    /// Of the first rank on its host: the host, its CPUs and their times.
    host: Option<(String, u64, Option<HostTimes>)>,
    watched_seconds: f64,
    own: Option<OwnTimes>,
}

fn combine(all: &[Witness]) -> Option<MachineShare> {
    let own: Vec<(u64, OwnTimes)> = all.iter().filter_map(|w| Some((w.leader, w.own?))).collect();
    let hosts = all.iter().filter_map(|w| Some((w, w.host.as_ref()?)));
    let shares = hosts.map(|(w, (host, cpus, times))| {
        let of_host = own.iter().filter(|(leader, _)| *leader == w.leader);
        let ranks = of_host.fold(OwnTimes::default(), |sum, (_, own)| OwnTimes { waited_ns: None, ..sum.plus(*own) });
        of_one_host(host, *cpus, times.unwrap_or_default(), ranks)
    });
    let lost = |s: &MachineShare| (s.steal_seconds + s.others_seconds + s.kernel_seconds) / s.cpu_seconds.max(1e-9);
    let worst = shares.reduce(|worst, s| if lost(&s) > lost(&worst) { s } else { worst })?;
    let waited = own.iter().map(|(_, own)| own.waited_ns).try_fold(0, |most, ns| Some(ns?.max(most)));
    (!own.is_empty()).then(|| MachineShare {
        watched_seconds: all.iter().map(|w| w.watched_seconds).fold(0.0, f64::max),
        waited_seconds: waited.map(seconds),
        voluntary_switches: own.iter().map(|(_, own)| own.voluntary_switches).sum(),
        involuntary_switches: own.iter().map(|(_, own)| own.involuntary_switches).sum(),
        ..worst
    })
}

/// The ranks' own times are exact, those of the host come in ticks: what is left may fall below nothing.
fn of_one_host(host: &str, cpus: u64, times: HostTimes, ranks: OwnTimes) -> MachineShare {
    MachineShare {
        host: host.to_owned(),
        cpus,
        cpu_seconds: seconds(times.all_ns),
        steal_seconds: seconds(times.steal_ns),
        others_seconds: seconds(times.user_ns.saturating_sub(ranks.user_ns)),
        kernel_seconds: seconds(times.kernel_ns.saturating_sub(ranks.kernel_ns)),
        ..MachineShare::default()
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn own(user_ns: u64, kernel_ns: u64, waited_ns: Option<u64>) -> OwnTimes {
        OwnTimes { user_ns, kernel_ns, waited_ns, voluntary_switches: 3, involuntary_switches: 1 }
    }

    fn rank(leader: u64, host: Option<(&str, HostTimes)>, own: OwnTimes) -> Witness {
        let host = host.map(|(name, times)| (name.to_owned(), 2, Some(times)));
        Witness { leader, host, watched_seconds: 10.0, own: Some(own) }
    }

    fn times(user_ns: u64, kernel_ns: u64, steal_ns: u64) -> HostTimes {
        HostTimes { user_ns, kernel_ns, steal_ns, all_ns: 20 * S }
    }

    #[test]
    fn what_the_ranks_did_not_use_was_used_by_others() {
        let all = [
            rank(0, Some(("a", times(13 * S, 4 * S, S))), own(6 * S, S, Some(S / 2))),
            rank(0, None, own(5 * S, S, Some(0))),
        ];
        let share = combine(&all).unwrap();
        assert_eq!((share.host.as_str(), share.cpus, share.watched_seconds, share.cpu_seconds), ("a", 2, 10.0, 20.0));
        assert_eq!((share.steal_seconds, share.others_seconds, share.kernel_seconds), (1.0, 2.0, 2.0));
        assert_eq!(share.waited_seconds, Some(0.5), "the rank that waited longest");
        assert_eq!((share.voluntary_switches, share.involuntary_switches), (6, 2));
    }

    #[test]
    fn the_host_that_lost_most_stands_for_all() {
        let quiet = rank(0, Some(("quiet", times(6 * S, S, 0))), own(6 * S, S, Some(0)));
        let robbed = rank(1, Some(("robbed", times(6 * S, S, 4 * S))), own(6 * S, S, Some(3 * S)));
        let busy = rank(2, Some(("busy", times(8 * S, S, 0))), own(6 * S, S, Some(S)));
        for all in [[&quiet, &robbed, &busy], [&busy, &quiet, &robbed]] {
            let share = combine(&all.map(Clone::clone)).unwrap();
            assert_eq!((share.host.as_str(), share.steal_seconds, share.others_seconds), ("robbed", 4.0, 0.0));
        }
        let share = combine(&[quiet, busy]).unwrap();
        assert_eq!((share.host.as_str(), share.others_seconds, share.waited_seconds), ("busy", 2.0, Some(1.0)));
    }

    #[test]
    fn what_is_not_known_is_not_nothing() {
        let silent = |waited| rank(0, None, own(S, S, waited));
        let first = Witness { host: Some(("a".into(), 2, None)), ..silent(Some(0)) };
        let share = combine(&[first, silent(None)]).unwrap();
        assert_eq!((share.cpu_seconds, share.waited_seconds), (0.0, None));
        assert_eq!(combine(&[]), None);
        assert_eq!(combine(&[Witness { own: None, ..rank(0, Some(("a", times(0, 0, 0))), own(0, 0, None)) }]), None);
    }

    #[test]
    fn ticks_can_be_behind_the_ranks() {
        let share = combine(&[rank(0, Some(("a", times(S, S, 0))), own(2 * S, 2 * S, Some(0)))]).unwrap();
        assert_eq!((share.others_seconds, share.kernel_seconds), (0.0, 0.0));
    }

    #[test]
    fn looks_add_up_and_pauses_between_them_do_not_count() {
        let cpus = HostCpus { leader: 0, is_leader: true, host: "a".into(), cpus: host::allowed_cpus().unwrap() };
        let mut watch = CpuWatch::default();
        watch.pause(&cpus);
        assert!(watch.own.is_none(), "never begun");
        let mut worked = OwnTimes::default();
        for _ in 0..2 {
            watch.resume(&cpus);
            let begin = cpu_time::own();
            while cpu_time::own().since(begin).user_ns < 2_000_000 {}
            watch.pause(&cpus);
            worked = worked.plus(cpu_time::own().since(begin));
            let idle = cpu_time::own();
            while cpu_time::own().since(idle).user_ns < 20_000_000 {}
        }
        let seen = watch.own.unwrap().user_ns;
        assert!((4_000_000..20_000_000).contains(&seen), "{seen} of {worked:?}");
    }
}
