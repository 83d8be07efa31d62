//! Requests of replayed programs: completed late, in any order, by every function, freed, and never.

#![allow(clippy::unwrap_used)] // helpers of tests

mod replayed;

use std::panic::{catch_unwind, AssertUnwindSafe};

use beff_backends::{Outcome, Step};
use beff_trace::{Call, Function};
use replayed::{alone, asks, bytes_of, close, data, done, on_1_2_and_3, open, with_request, Player, SOURCE_BYTES};

const PART: u64 = 500;

/// Begins a write of its own part for each of the requests.
fn writes(requests: std::ops::Range<u64>) -> Vec<Step> {
    let one = |request: u64| {
        let at = request * PART;
        with_request(data(1, Function::IwriteAt, Some(at as i64), PART, at), request)
    };
    requests.map(one).collect()
}

fn completed(outcome: &Outcome) -> Vec<(u64, Option<u64>)> {
    outcome.completions.iter().map(|done| (done.request, done.bytes)).collect()
}

fn whole(requests: &[u64]) -> Vec<(u64, Option<u64>)> {
    requests.iter().map(|request| (*request, Some(PART))).collect()
}

fn opened<'a>(comm: &'a beff_ffi::Comm, directory: &std::path::Path) -> Player<'a> {
    let mut player = Player::new(comm, directory, vec![], &[&format!("own-{}", comm.rank())]);
    player.succeed(vec![open(1, 0, alone(comm.rank()), &["rdwr", "create"])]);
    player
}

#[test]
fn requests_are_completed_as_recorded_in_whatever_order_they_end() {
    on_1_2_and_3("requests_are_completed_as_recorded_in_whatever_order_they_end", |comm, directory| {
        use Function::{Test, Testall, Testany, Testsome, Wait, Waitall, Waitany, Waitsome};
        let mut player = opened(comm, directory);
        // Each names the last of its list as the one it completed first: the library may well begin with the first.
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
            // Found nothing among these when it was recorded: a message was completed.
            (Waitany, &[17, 18], &[]),
            (Testsome, &[17, 18], &[]),
            (Test, &[18], &[]),
            (Waitsome, &[18, 17], &[17]),
            (Wait, &[18], &[18]),
            (Waitall, &[], &[]),
        ];
        let mut steps = writes(0..19);
        steps.extend(asked.iter().map(|(function, requests, completed)| asks(*function, requests, completed)));
        let outcomes = player.succeed(steps);
        for ((function, _, expected), outcome) in asked.iter().zip(&outcomes[19..]) {
            assert_eq!(completed(outcome), whole(expected), "{function:?}");
        }
        // Slots are used again, also in a window of its own.
        player.succeed(writes(19..22));
        let outcomes = player.succeed(vec![asks(Waitall, &[21, 20, 19], &[19, 20, 21]), close(1)]);
        assert_eq!(completed(&outcomes[0]), whole(&[19, 20, 21]));
        assert!(player.file(&format!("own-{}", comm.rank())) == bytes_of(comm.rank(), 0, 22 * PART));
        player.program.finish().unwrap();
    });
}

/// The first of two requests is complete long before the second one: MPICH aborts in an MPI_Testall that meets it again.
#[test]
fn tests_of_all_survive_what_was_complete_before() {
    on_1_2_and_3("tests_of_all_survive_what_was_complete_before", |comm, directory| {
        let mut player = opened(comm, directory);
        let large = SOURCE_BYTES - PART;
        for _ in 0..20 {
            let mut steps = writes(0..1);
            steps.push(with_request(data(1, Function::IwriteAt, Some(PART as i64), large, PART), 1));
            // Two that found less than all when they were recorded, one that found all.
            steps.extend([&[][..], &[], &[0, 1]].map(|found| asks(Function::Testall, &[0, 1], found)));
            let outcomes = player.succeed(steps);
            assert_eq!(completed(&outcomes[4]), [(0, Some(PART)), (1, Some(large))]);
        }
        player.succeed(vec![close(1)]);
        assert!(player.file(&format!("own-{}", comm.rank())) == bytes_of(comm.rank(), 0, PART + large));
        player.program.finish().unwrap();
    });
}

#[test]
fn what_a_pending_read_lands_in_is_not_handed_out() {
    on_1_2_and_3("what_a_pending_read_lands_in_is_not_handed_out", |comm, directory| {
        let mut player = opened(comm, directory);
        player.succeed(vec![data(1, Function::WriteAt, Some(0), 2 * PART, 0)]);
        let read = |at: u64, request| with_request(data(1, Function::IreadAt, Some(at as i64), PART, at), request);
        player.succeed(vec![read(PART, 1)]);
        let told = player.program.landed(0..PART + 1).unwrap_err().to_string();
        assert!(told.contains("pending"), "{told}");
        player.program.landed(0..PART).unwrap().fill(0);
        player.succeed(vec![asks(Function::Wait, &[1], &[1])]);
        assert_eq!(player.program.landed(0..2 * PART).unwrap()[PART as usize..], bytes_of(comm.rank(), PART, PART));
        // Freed: nobody can know when it ends, so the memory stays in use.
        player.succeed(vec![read(0, 2), asks(Function::RequestFree, &[2], &[])]);
        assert!(player.program.landed(0..1).is_err());
        player.program.landed(PART..2 * PART).unwrap();
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
        assert!(player.program.landed(0..1).is_err());
        // Neither made without its beginning, nor twice.
        let end = || replayed::step(replayed::on(1, Function::ReadAtAllEnd));
        let outcomes = player.play(vec![end(), end(), close(1)]);
        assert_eq!((outcomes[0].bytes, outcomes[0].error), (Some(PART), None));
        assert_eq!(outcomes[1].error, replayed::class("MPI_ERR_IO"));
        assert!(player.program.complaint().is_some_and(|told| told.contains("MPI_File_read_at_all_end")));
        assert_eq!(player.program.landed(0..PART).unwrap(), bytes_of(comm.rank(), 0, PART));
        player.program.finish().unwrap();
    });
}

#[test]
fn what_was_never_completed_is_completed_at_the_end() {
    on_1_2_and_3("what_was_never_completed_is_completed_at_the_end", |comm, directory| {
        let name = format!("own-{}", comm.rank());
        let mut player = opened(comm, directory);
        player.succeed(writes(0..3));
        // The last request of a call that failed when it was recorded.
        let mut unknown = writes(3..4);
        unknown[0].call.request = None;
        unknown[0].call.error = replayed::class("MPI_ERR_IO");
        player.play(unknown);
        player.program.finish().unwrap();
        let expected = bytes_of(comm.rank(), 0, 4 * PART);
        assert!(std::fs::read(directory.join(&name)).unwrap() == expected);

        // Dropped by a panic, it waits too.
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
fn a_question_without_an_answer_has_an_end() {
    on_1_2_and_3("a_question_without_an_answer_has_an_end", |comm, directory| {
        let mut player = opened(comm, directory);
        let ask = Call { flag: Some(true), ..asks(Function::RequestGetStatus, &[0], &[]).call };
        let mut steps = writes(0..1);
        steps.extend([replayed::step(ask.clone()), replayed::step(ask), asks(Function::Wait, &[0], &[0]), close(1)]);
        let outcomes = player.play(steps);
        for outcome in &outcomes[1..3] {
            // MPICH 4.0 never says that a write has ended.
            let ended = outcome.number == Some(1);
            assert_eq!(outcome.error, if ended { None } else { replayed::class("MPI_ERR_PENDING") });
            assert!(ended || outcome.polls > 0);
        }
        assert_eq!(outcomes[1].number, outcomes[2].number);
        assert!(outcomes[2].polls <= outcomes[1].polls, "the second one is not asked as long: {outcomes:?}");
        assert_eq!(completed(&outcomes[3]), whole(&[0]));
        player.program.finish().unwrap();
    });
}

#[test]
fn requests_that_are_asked_about_or_unknown() {
    on_1_2_and_3("requests_that_are_asked_about_or_unknown", |comm, directory| {
        let mut player = opened(comm, directory);
        // Waited for first: whether it ever says so while a request is pending, libraries disagree.
        let ask = Call { flag: Some(true), ..asks(Function::RequestGetStatus, &[0], &[]).call };
        let mut steps = writes(0..1);
        steps.extend([
            asks(Function::Wait, &[0], &[0]),
            replayed::step(ask),
            asks(Function::Wait, &[77], &[77]),
            asks(Function::Waitall, &[77, 78], &[78]),
            asks(Function::RequestFree, &[77], &[]),
            asks(Function::Cancel, &[77], &[]),
        ]);
        let outcomes = player.play(steps);
        assert_eq!((outcomes[2].number, outcomes[2].error), (Some(1), None));
        for (outcome, request) in [(&outcomes[3], 77), (&outcomes[4], 78)] {
            let expected = beff_trace::Completion { error: replayed::class("MPI_ERR_REQUEST"), ..done(request) };
            assert_eq!(outcome.completions, [expected]);
        }
        player.succeed(vec![close(1)]);
        player.program.finish().unwrap();
    });
}
