//! Agreement of one to three ranks that have different data.

use beff_backends::error::FailureCause;
use beff_backends::{BackendError, TransferBuffer};
use beff_ffi::Comm;
use hdrhistogram::Histogram;

use super::harness::median_ns;
use super::interference::{CpuObservation, HostCpus};
use super::interrupt::Interrupt;
use super::job_limit::JobLimit;
use super::testing::{approx_equal, run_ranks, scripted_call, traffic, Script};
use super::{agree, error_agreement, huge_pages, latency};
use crate::frame::records::RunOutcome;

#[test]
fn agreements_are_equal_on_all_ranks() {
    for ranks in 1..=3_u64 {
        let seen = run_ranks(
            ranks,
            |_| Script::default(),
            |comm| {
                let (rank, last) = (comm.rank(), ranks - 1);
                assert_eq!(agree::broadcast(comm, 10.0 + rank as f64).unwrap(), 10.0);
                assert_eq!(agree::first_message(comm, None).unwrap(), None);
                let mine = (rank > 0).then(|| format!("from {rank}"));
                let expected = (ranks > 1).then(|| (1, "from 1".to_owned()));
                assert_eq!(agree::first_message(comm, mine).unwrap(), expected, "the lowest that has one");
                let all = agree::all_or_first_error(comm, if rank == last { Err("no".to_owned()) } else { Ok(rank) })
                    .unwrap();
                assert_eq!(all, Err((last, "no".to_owned())));
                assert_eq!(agree::all_or_first_error(comm, Ok(rank)).unwrap(), Ok(rank));
                assert!(agree::any_rank(comm, rank == last).unwrap() && !agree::any_rank(comm, false).unwrap());
                assert_eq!(agree::count_ranks(comm, rank != 1).unwrap(), if ranks == 1 { 1 } else { ranks - 1 });
                assert_eq!(agree::sum(comm, 10 + rank).unwrap(), 10 * ranks + ranks * last / 2);
                assert_eq!(agree::max_seconds(comm, if rank == last { 7.0 } else { 3.0 }).unwrap(), 7.0);
                agree::collect(comm, vec![rank + 1]).unwrap()
            },
        );
        assert_eq!(seen[0], (1..=ranks).collect::<Vec<_>>());
        assert!(seen[1..].iter().all(Vec::is_empty));
    }
}

/// A reduction in a tree keeps the order of the ranks, and that of what is collected.
#[test]
fn values_are_combined_in_rank_order() {
    for ranks in [1, 2, 3, 7, 8, 64, 65_u64] {
        let of = |rank: u64| (0..rank % 3).map(|number| format!("{rank}.{number}")).collect::<Vec<_>>();
        let work = |comm: &Comm| {
            let range = |rank| Some((rank, rank));
            let adjacent = |lower: Option<(u64, u64)>, higher: Option<(u64, u64)>| {
                let ((first, end), (next, last)) = lower.zip(higher)?;
                (end + 1 == next).then_some((first, last))
            };
            let all = agree::reduce(comm, range(comm.rank()), adjacent).unwrap();
            assert_eq!(all, comm.is_root().then_some(Some((0, ranks - 1))));
            agree::collect(comm, of(comm.rank())).unwrap()
        };
        let found = run_ranks(ranks, |_| Script::default(), work);
        assert_eq!(found[0], (0..ranks).flat_map(of).collect::<Vec<_>>());
        assert!(found[1..].iter().all(Vec::is_empty));
    }
}

/// The records of a pattern take the same collective calls and bytes of each rank, whatever the number of ranks.
#[test]
fn records_cost_a_rank_the_same_among_2_8_and_64() {
    let work = |comm: &Comm| {
        let cpus = HostCpus::survey(comm).unwrap();
        let mut histogram = Histogram::<u64>::new_with_bounds(1, 1_000_000, 3).unwrap();
        (1..=100).for_each(|ns| histogram.record(ns).unwrap());
        let (mut observation, buffer) = (CpuObservation::default(), TransferBuffer::new(4096, 0).unwrap());
        let before = traffic();
        observation.resume(&cpus);
        observation.pause(&cpus);
        let record = observation.end(&cpus, comm).unwrap();
        let [of_interference, of_latency, of_memory] = [
            traffic().since(before),
            {
                let before = traffic();
                let record = latency::merge_histograms(comm, &histogram, "call").unwrap();
                assert_eq!(record.map(|record| record.count), comm.is_root().then_some(100 * comm.size()));
                traffic().since(before)
            },
            {
                let before = traffic();
                huge_pages::measure(comm, &buffer).unwrap();
                traffic().since(before)
            },
        ];
        assert_eq!(record.is_some(), comm.is_root());
        [of_interference, of_latency, of_memory]
    };
    for ranks in [2, 8, 64] {
        for (rank, [of_interference, of_latency, of_memory]) in
            run_ranks(ranks, |_| Script::default(), work).into_iter().enumerate()
        {
            let calls = [of_interference, of_latency, of_memory].map(|traffic| traffic.collective_calls);
            assert_eq!(calls, [2, 1, 1], "rank {rank} of {ranks}");
            let bytes = [of_interference, of_latency, of_memory].map(|traffic| traffic.contributed_bytes);
            assert!(bytes[0] < 600 && bytes[1] < 1000 && bytes[2] < 300, "rank {rank} of {ranks}: {bytes:?}");
        }
    }
}

/// Rank 0 has the limit, another one the signal: every rank ends in the same way.
#[test]
fn ranks_agree_on_the_limit_of_rank_0() {
    use RunOutcome::{Failed, Interrupted, Limit};
    run_ranks(
        3,
        |_| Script::default().cost("second", 1.0),
        |comm| {
            let last = comm.rank() == 2;
            let limit = comm.is_root().then(|| JobLimit::new(10.0, 0.0));
            let interrupt = Interrupt::default().with_limit(limit);
            assert_eq!(interrupt.agree(comm, 0.0).unwrap(), None);
            assert_eq!(interrupt.agree(comm, 7.0).unwrap(), None);
            assert_eq!(interrupt.agree(comm, 8.0).unwrap(), Some(Limit), "what follows would last too long");
            assert_eq!(interrupt.agree_on_stop(comm, None).unwrap(), None);
            (0..9).for_each(|_| assert_eq!(scripted_call("second", ""), None));
            assert_eq!(interrupt.is_raised(), comm.is_root(), "only rank 0's clock decides");
            assert_eq!(interrupt.agree(comm, 0.0).unwrap(), Some(Limit));
            assert_eq!(interrupt.agree_on_stop(comm, None).unwrap(), None, "a complete run is complete");
            assert_eq!(interrupt.agree_on_stop(comm, comm.is_root().then_some(Limit)).unwrap(), Some(Limit));
            assert_eq!(interrupt.agree_on_stop(comm, last.then_some(Failed)).unwrap(), Some(Failed));
            assert_eq!(interrupt.agree_on_cause(comm, false).unwrap(), None);
            // A rank without a limit that has stopped because another one has.
            assert_eq!(interrupt.agree_on_cause(comm, last).unwrap(), Some(Limit));
            if last {
                interrupt.raise();
            }
            assert_eq!(interrupt.agree(comm, 0.0).unwrap(), Some(Interrupted), "a signal outweighs the limit");
            assert_eq!(interrupt.agree_on_stop(comm, comm.is_root().then_some(Limit)).unwrap(), Some(Interrupted));
            assert_eq!(interrupt.agree_on_cause(comm, true).unwrap(), Some(Interrupted));
        },
    );
}

#[test]
fn a_shared_limit_is_as_far_away_on_all_ranks() {
    run_ranks(
        3,
        |_| Script::default().cost("second", 1.0),
        |comm| {
            let interrupt = Interrupt::default().with_limit(comm.is_root().then(|| JobLimit::new(10.0, 0.0)));
            let shared = interrupt.share_limit(comm).unwrap();
            assert!(shared.limit().is_some_and(|limit| approx_equal(limit.left_seconds(), 7.5)));
            let none = Interrupt::default().share_limit(comm).unwrap();
            assert!(none.limit().is_none() && !none.is_raised());
        },
    );
}

#[test]
fn the_record_of_an_error_is_that_of_the_lowest_rank_that_has_one() {
    let error = |rank: u64| {
        let cause = if rank == 1 { FailureCause::NoSpace } else { FailureCause::Io };
        BackendError::new("pwrite", "/f", cause, format!("on {rank}"))
    };
    for (who, expected) in [(0..0, None), (1..3, Some((1, 2, true))), (2..3, Some((2, 1, false)))] {
        let seen = run_ranks(
            3,
            |_| Script::default(),
            |comm| {
                let mine = who.contains(&comm.rank()).then(|| error(comm.rank()));
                error_agreement::first_error(comm, mine.as_ref(), "a test").unwrap()
            },
        );
        assert!(seen.iter().all(|record| *record == seen[0]));
        let found = seen[0].as_ref().map(|record| (record.rank, record.ranks_affected, record.no_space));
        assert_eq!(found, expected);
        if let Some(record) = &seen[0] {
            assert_eq!(record.message, format!("pwrite on /f: on {}", record.rank));
            assert_eq!((record.during.as_str(), record.next_step.contains("free space")), ("a test", record.no_space));
        }
    }
}

#[test]
fn times_of_all_ranks_are_in_one_record() {
    let seen = run_ranks(
        3,
        |_| Script::default(),
        |comm| {
            let mut histogram = Histogram::new_with_bounds(1, 1_000_000, 3).unwrap();
            // Ranks 0 and 1 record 1 to 1000 ns, the last rank nothing.
            let own = if comm.rank() < 2 { comm.rank() * 500 + 1..comm.rank() * 500 + 501 } else { 0..0 };
            own.for_each(|ns| histogram.record(ns).unwrap());
            latency::merge_histograms(comm, &histogram, "step").unwrap()
        },
    );
    let record = seen[0].as_ref().unwrap();
    assert_eq!((record.of.as_str(), record.count), ("step", 1000));
    assert_eq!((record.p50_ns, record.p99_ns, record.p999_ns, record.max_ns), (500, 990, 999, 1000));
}

/// Median of the slowest rank's times, without the first call.
#[test]
fn the_cost_of_a_call_is_the_median_of_the_slowest_rank() {
    let times =
        |rank| Script::default().costs("call", if rank == 0 { &[9.0, 0.1, 0.1, 0.2] } else { &[9.0, 0.1, 0.3, 0.1] });
    for ns in run_ranks(2, times, |comm| {
        median_ns(comm, || {
            scripted_call("call", "");
            Ok(())
        })
        .unwrap()
    }) {
        assert!(approx_equal(ns * 1e-9, 0.2), "{ns}");
    }
}
