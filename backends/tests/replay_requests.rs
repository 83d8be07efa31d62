//! Requests of replayed programs: completed late, in any order, by every function, freed, and never completed.

#![allow(clippy::unwrap_used)] // helpers of tests

mod replay_support;

use std::panic::{catch_unwind, AssertUnwindSafe};

use beff_backends::{ProgramStep, StepOutcome};
use beff_trace::{Call, Function};
use replay_support::{
    bytes_of, close, completion, completion_call, data, on_1_2_and_3, open, own_comm, with_request, ProgramRunner,
    SOURCE_BYTES,
};

const PART: u64 = 500;

/// Posts a write of a separate part for each of the requests.
fn writes(requests: std::ops::Range<u64>) -> Vec<ProgramStep> {
    let one = |request: u64| {
        let at = request * PART;
        with_request(data(1, Function::IwriteAt, Some(at as i64), PART, at), request)
    };
    requests.map(one).collect()
}

fn completed(outcome: &StepOutcome) -> Vec<(u64, Option<u64>)> {
    outcome.completions.iter().map(|done| (done.request, done.bytes)).collect()
}

fn whole(requests: &[u64]) -> Vec<(u64, Option<u64>)> {
    requests.iter().map(|request| (*request, Some(PART))).collect()
}

fn opened<'a>(comm: &'a beff_ffi::Comm, directory: &std::path::Path) -> ProgramRunner<'a> {
    let mut player = ProgramRunner::new(comm, directory, vec![], &[&format!("own-{}", comm.rank())]);
    player.succeed(vec![open(1, 0, own_comm(comm.rank()), &["rdwr", "create"])]);
    player
}

#[test]
fn requests_are_completed_as_recorded_in_whatever_order_they_end() {
    on_1_2_and_3("requests_are_completed_as_recorded_in_whatever_order_they_end", |comm, directory| {
        use Function::{Test, Testall, Testany, Testsome, Wait, Waitall, Waitany, Waitsome};
        let mut player = opened(comm, directory);
        // Each records the last of its list as completed first: the library may begin with the first.
        let asked: Vec<(Function, &[u64], &[u64])> = vec![
            (Waitany, &[0, 1, 2], &[2]),
            (Waitany, &[0, 1], &[1]),
            (Waitany, &[0], &[0]),
            (Waitsome, &[3, 4, 5], &[5, 4]),
            (Waitsome, &[3], &[3]),
            (Testany, &[6, 7], &[7]),
            (Testany, &[6], &[6]),
            (Testsome, &[8, 9, 10], &[10]),
            (Testsome, &[8, 9], &[9, 8]),
            (Testall, &[11, 12], &[12, 11]),
            (Waitall, &[13, 14], &[14, 13]),
            (Test, &[15], &[15]),
            (Wait, &[16], &[16]),
            // Recorded without a completion among these: a message was completed.
            (Waitany, &[17, 18], &[]),
            (Testsome, &[17, 18], &[]),
            (Test, &[18], &[]),
            (Waitsome, &[18, 17], &[17]),
            (Wait, &[18], &[18]),
            (Waitall, &[], &[]),
        ];
        let mut steps = writes(0..19);
        steps.extend(
            asked.iter().map(|(function, requests, completed)| completion_call(*function, requests, completed)),
        );
        let outcomes = player.succeed(steps);
        for ((function, _, expected), outcome) in asked.iter().zip(&outcomes[19..]) {
            assert_eq!(completed(outcome), whole(expected), "{function:?}");
        }
        // Slots are reused, also in another window.
        player.succeed(writes(19..22));
        let outcomes = player.succeed(vec![completion_call(Waitall, &[21, 20, 19], &[19, 20, 21]), close(1)]);
        assert_eq!(completed(&outcomes[0]), whole(&[19, 20, 21]));
        assert!(player.file(&format!("own-{}", comm.rank())) == bytes_of(comm.rank(), 0, 22 * PART));
        player.program.finish().unwrap();
    });
}

/// The first of two requests completes long before the second: MPICH aborts in an MPI_Testall on a completed request.
#[test]
fn testall_tolerates_requests_completed_earlier() {
    on_1_2_and_3("testall_tolerates_requests_completed_earlier", |comm, directory| {
        let mut player = opened(comm, directory);
        let large = SOURCE_BYTES - PART;
        for _ in 0..20 {
            let mut steps = writes(0..1);
            steps.push(with_request(data(1, Function::IwriteAt, Some(PART as i64), large, PART), 1));
            // Two recorded as incomplete, one as complete.
            steps.extend([&[][..], &[], &[0, 1]].map(|found| completion_call(Function::Testall, &[0, 1], found)));
            let outcomes = player.succeed(steps);
            assert_eq!(completed(&outcomes[4]), [(0, Some(PART)), (1, Some(large))]);
        }
        player.succeed(vec![close(1)]);
        assert!(player.file(&format!("own-{}", comm.rank())) == bytes_of(comm.rank(), 0, PART + large));
        player.program.finish().unwrap();
    });
}

#[test]
fn memory_of_a_pending_read_is_not_accessible() {
    on_1_2_and_3("memory_of_a_pending_read_is_not_accessible", |comm, directory| {
        let mut player = opened(comm, directory);
        player.succeed(vec![data(1, Function::WriteAt, Some(0), 2 * PART, 0)]);
        let read = |at: u64, request| with_request(data(1, Function::IreadAt, Some(at as i64), PART, at), request);
        player.succeed(vec![read(PART, 1)]);
        let message = player.program.landing_range(0..PART + 1).unwrap_err().to_string();
        assert!(message.contains("pending"), "{message}");
        player.program.landing_range(0..PART).unwrap().fill(0);
        player.succeed(vec![completion_call(Function::Wait, &[1], &[1])]);
        assert_eq!(
            player.program.landing_range(0..2 * PART).unwrap()[PART as usize..],
            bytes_of(comm.rank(), PART, PART)
        );
        // Freed: its completion is unknown, so that the memory stays in use.
        player.succeed(vec![read(0, 2), completion_call(Function::RequestFree, &[2], &[])]);
        assert!(player.program.landing_range(0..1).is_err());
        player.program.landing_range(PART..2 * PART).unwrap();
        player.succeed(vec![close(1)]);
        player.program.finish().unwrap();
    });
}

#[test]
fn split_collective_calls_keep_their_memory_until_the_end() {
    on_1_2_and_3("split_collective_calls_keep_their_memory_until_the_end", |comm, directory| {
        let mut player = opened(comm, directory);
        player.succeed(vec![data(1, Function::WriteAt, Some(0), PART, 0)]);
        player.succeed(vec![data(1, Function::ReadAtAllBegin, Some(0), PART, 0)]);
        assert!(player.program.landing_range(0..1).is_err());
        // Executed neither without its begin nor twice.
        let end = || replay_support::step(replay_support::on(1, Function::ReadAtAllEnd));
        let outcomes = player.run(vec![end(), end(), close(1)]);
        assert_eq!((outcomes[0].bytes, outcomes[0].error), (Some(PART), None));
        assert_eq!(outcomes[1].error, replay_support::class("MPI_ERR_IO"));
        assert!(player.program.unexpected_error().is_some_and(|message| message.contains("MPI_File_read_at_all_end")));
        assert_eq!(player.program.landing_range(0..PART).unwrap(), bytes_of(comm.rank(), 0, PART));
        player.program.finish().unwrap();
    });
}

#[test]
fn uncompleted_requests_are_completed_at_the_end() {
    on_1_2_and_3("uncompleted_requests_are_completed_at_the_end", |comm, directory| {
        let name = format!("own-{}", comm.rank());
        let mut player = opened(comm, directory);
        player.succeed(writes(0..3));
        // The request of a call that failed when it was recorded is unknown.
        let mut unknown = writes(3..4);
        unknown[0].call.request = None;
        unknown[0].call.error = replay_support::class("MPI_ERR_IO");
        player.run(unknown);
        player.program.finish().unwrap();
        let expected = bytes_of(comm.rank(), 0, 4 * PART);
        assert!(std::fs::read(directory.join(&name)).unwrap() == expected);

        // A drop by a panic also waits.
        let mut player = opened(comm, directory);
        player.succeed(vec![data(1, Function::WriteAt, Some(0), 4 * PART, 8 * PART)]);
        let panics = catch_unwind(AssertUnwindSafe(move || {
            player.succeed(writes(0..4));
            panic!("in the middle");
        }));
        assert!(panics.is_err());
        assert!(std::fs::read(directory.join(&name)).unwrap() == expected);
    });
}

#[test]
fn polling_for_a_status_is_limited() {
    on_1_2_and_3("polling_for_a_status_is_limited", |comm, directory| {
        let mut player = opened(comm, directory);
        let ask = Call { flag: Some(true), ..completion_call(Function::RequestGetStatus, &[0], &[]).call };
        let mut steps = writes(0..1);
        steps.extend([
            replay_support::step(ask.clone()),
            replay_support::step(ask),
            completion_call(Function::Wait, &[0], &[0]),
            close(1),
        ]);
        let outcomes = player.run(steps);
        for outcome in &outcomes[1..3] {
            // MPICH 4.0 never reports the completion of a write.
            let ended = outcome.number == Some(1);
            assert_eq!(outcome.error, if ended { None } else { replay_support::class("MPI_ERR_PENDING") });
            assert!(ended || outcome.polls > 0);
        }
        assert_eq!(outcomes[1].number, outcomes[2].number);
        assert!(outcomes[2].polls <= outcomes[1].polls, "the second one is not polled as long: {outcomes:?}");
        assert_eq!(completed(&outcomes[3]), whole(&[0]));
        player.program.finish().unwrap();
    });
}

#[test]
fn status_queries_and_unknown_requests() {
    on_1_2_and_3("status_queries_and_unknown_requests", |comm, directory| {
        let mut player = opened(comm, directory);
        // Completed first: libraries differ in whether they report completion of a pending request.
        let ask = Call { flag: Some(true), ..completion_call(Function::RequestGetStatus, &[0], &[]).call };
        let mut steps = writes(0..1);
        steps.extend([
            completion_call(Function::Wait, &[0], &[0]),
            replay_support::step(ask),
            completion_call(Function::Wait, &[77], &[77]),
            completion_call(Function::Waitall, &[77, 78], &[78]),
            completion_call(Function::RequestFree, &[77], &[]),
            completion_call(Function::Cancel, &[77], &[]),
        ]);
        let outcomes = player.run(steps);
        assert_eq!((outcomes[2].number, outcomes[2].error), (Some(1), None));
        for (outcome, request) in [(&outcomes[3], 77), (&outcomes[4], 78)] {
            let expected =
                beff_trace::Completion { error: replay_support::class("MPI_ERR_REQUEST"), ..completion(request) };
            assert_eq!(outcome.completions, [expected]);
        }
        player.succeed(vec![close(1)]);
        player.program.finish().unwrap();
    });
}
