//! Every data access of MPI-IO, replayed through the driver `mpiio` on 1, 2 and 3 ranks.

#![allow(clippy::unwrap_used)] // helpers of tests

mod replayed;

use beff_backends::Step;
use beff_ffi::Comm;
use beff_trace::{Call, Direction, Form, Function, Pointer, Role, Whence};
use replayed::{asks, bytes_of, call, close, data, on, on_1_2_and_3, open, step, with_request, Player};

/// Bytes of one call of one rank.
const PART: u64 = 1000;

/// Data accesses of one direction that begin one, with and without large counts.
fn accesses(direction: Direction) -> Vec<(Function, bool)> {
    let begins = |function: &Function| match function.role() {
        Role::Data { direction: way, form, .. } => way == direction && form != Form::End,
        _ => false,
    };
    let all: Vec<_> =
        Function::all().filter(begins).flat_map(|function| [(function, false), (function, true)]).collect();
    assert_eq!(all.len(), 28);
    all
}

fn ending(function: Function) -> Function {
    Function::named(&function.name().replace("_begin", "_end")).unwrap().0
}

/// The steps of one access to region `number` of the file.
fn access(function: Function, large: bool, number: u64, comm: &Comm) -> Vec<Step> {
    let Role::Data { pointer, form, .. } = function.role() else { panic!() };
    let (region, own) = (number * PART * comm.size(), PART * comm.rank());
    let place =
        |function, at: u64| step(Call { offset: Some(at as i64), whence: Some(Whence::Set), ..on(1, function) });
    let mut steps = match pointer {
        Pointer::Offset => vec![],
        Pointer::Individual => vec![place(Function::Seek, region + own)],
        Pointer::Shared => vec![place(Function::SeekShared, region)],
    };
    let offset = (pointer == Pointer::Offset).then_some((region + own) as i64);
    let mut it = data(1, function, offset, PART, number * PART);
    it.call.large = large;
    match form {
        Form::Nonblocking => {
            steps.push(with_request(it, number + 7));
            steps.push(asks(Function::Wait, &[number + 7], &[number + 7]));
        }
        Form::Begin => {
            steps.push(it);
            steps.push(step(on(1, ending(function))));
        }
        _ => steps.push(it),
    }
    steps
}

/// Whatever says how many bytes were moved.
fn moved(outcomes: &[beff_backends::Outcome], form: Form) -> Option<u64> {
    let last = outcomes.last().unwrap();
    match form {
        Form::Nonblocking => last.completions[0].bytes,
        _ => last.bytes,
    }
}

fn form(function: Function) -> Form {
    match function.role() {
        Role::Data { form, .. } => form,
        _ => panic!(),
    }
}

/// Whether the parts of the ranks may come in any order.
fn any_order(function: Function) -> bool {
    matches!(function.role(), Role::Data { pointer: Pointer::Shared, collective: false, .. })
}

#[test]
fn every_data_access_moves_its_bytes() {
    on_1_2_and_3("every_data_access_moves_its_bytes", |comm, directory| {
        let mut player = Player::new(comm, directory, vec![], &["data"]);
        player.succeed(vec![open(1, 0, 0, &["rdwr", "create", "excl"])]);
        let writes = accesses(Direction::Write);
        for (number, (function, large)) in writes.iter().enumerate() {
            let outcomes = player.succeed(access(*function, *large, number as u64, comm));
            assert_eq!(moved(&outcomes, form(*function)), Some(PART), "{function:?} {large}");
            player.barrier();
        }
        player.succeed(vec![step(on(1, Function::Sync))]);
        player.barrier();
        let content = player.file("data");
        assert_eq!(content.len() as u64, writes.len() as u64 * PART * comm.size());
        let part_of = |number: u64, rank: u64| bytes_of(rank, number * PART, PART);
        for (number, region) in content.chunks((PART * comm.size()) as usize).enumerate() {
            let function = writes[number].0;
            let mut expected: Vec<_> = (0..comm.size()).map(|rank| part_of(number as u64, rank)).collect();
            let mut found: Vec<_> = region.chunks(PART as usize).map(<[u8]>::to_vec).collect();
            if any_order(function) {
                expected.sort();
                found.sort();
            }
            assert!(expected == found, "{function:?}: region {number}");
        }
        for (number, (function, large)) in accesses(Direction::Read).into_iter().enumerate() {
            let number = number as u64;
            let outcomes = player.succeed(access(function, large, number, comm));
            assert_eq!(moved(&outcomes, form(function)), Some(PART), "{function:?} {large}");
            let begin = number * PART;
            let landed = player.program.landed(begin..begin + PART).unwrap().to_vec();
            let region = &content[(begin * comm.size()) as usize..][..(PART * comm.size()) as usize];
            let mut parts = region.chunks(PART as usize);
            if any_order(function) {
                assert!(parts.any(|part| part == landed), "{function:?}");
            } else {
                assert!(parts.nth(comm.rank() as usize) == Some(&landed), "{function:?}");
            }
            player.barrier();
        }
        player.succeed(vec![close(1)]);
        player.program.finish().unwrap();
    });
}

#[test]
fn reads_at_the_end_come_short() {
    on_1_2_and_3("reads_at_the_end_come_short", |comm, directory| {
        let mut player = Player::new(comm, directory, vec![], &[&format!("own-{}", comm.rank())]);
        let alone = replayed::alone(comm.rank());
        let outcomes = player.succeed(vec![
            open(4, 0, alone, &["rdwr", "create"]),
            data(4, Function::WriteAt, Some(0), 100, 0),
            data(4, Function::ReadAt, Some(60), 100, 0),
            data(4, Function::ReadAt, Some(100), 100, 200),
            data(4, Function::Read, None, 70, 400),
            data(4, Function::Read, None, 70, 500),
            data(4, Function::WriteAt, Some(0), 0, 0),
        ]);
        let bytes: Vec<_> = outcomes.iter().map(|outcome| outcome.bytes).collect();
        assert_eq!(bytes[1..6], [Some(100), Some(40), Some(0), Some(70), Some(30)]);
        assert_eq!(bytes[6], Some(0));
        let rank = comm.rank();
        let expected = [bytes_of(rank, 60, 40), vec![0; 60]].concat();
        assert_eq!(player.program.landed(0..100).unwrap(), expected);
        assert_eq!(player.program.landed(500..570).unwrap(), [bytes_of(rank, 70, 30), vec![0; 40]].concat());
        assert_eq!(player.program.source()[..100], bytes_of(rank, 0, 100));

        // Without an end in Open MPI: said, and nothing waits for it.
        let come_short = |request: u64, function, requests: &[u64], at: u64| {
            let mut it = asks(function, requests, &[request]);
            it.call.completions[0].bytes = Some(10);
            [with_request(data(4, Function::IreadAt, Some(90), 100, at), request), it]
        };
        let mut end = step(on(4, Function::ReadAtAllEnd));
        end.call.bytes = Some(20);
        let steps = [
            come_short(1, Function::Wait, &[1], 700).to_vec(),
            come_short(2, Function::Waitall, &[2], 800).to_vec(),
            come_short(3, Function::Test, &[3], 900).to_vec(),
            come_short(4, Function::Waitany, &[4], 1000).to_vec(),
            vec![data(4, Function::ReadAtAllBegin, Some(80), 100, 1100), end, close(4)],
        ];
        let outcomes = player.play(steps.concat());
        let told = player.program.complaint();
        for (number, at) in [(1, 700), (3, 800), (5, 900), (7, 1000), (9, 1100)] {
            let (outcome, bytes) = (&outcomes[number], if at == 1100 { 20 } else { 10 });
            let landed = player.program.landed(at..at + 1).map(|landed| landed[0]);
            if replayed::short_reads_are_endless() {
                assert_eq!(outcome.error, replayed::class("MPI_ERR_PENDING"), "{number}");
                assert!(landed.is_err() && outcome.completions.is_empty());
            } else {
                assert_eq!(outcome.completions.first().map_or(outcome.bytes, |done| done.bytes), Some(bytes));
                assert_eq!(landed.unwrap(), bytes_of(rank, 100 - bytes, 1)[0]);
            }
        }
        assert_eq!(told.is_some_and(|told| told.contains("never completes")), replayed::short_reads_are_endless());
        assert_eq!(outcomes[10].error, None);
        player.program.finish().unwrap();
    });
}

#[test]
fn what_begins_and_ends_a_program_is_not_called() {
    on_1_2_and_3("what_begins_and_ends_a_program_is_not_called", |comm, directory| {
        let mut player = Player::new(comm, directory, vec![], &[]);
        use Function::{Abort, Finalize, Init, InitThread, Pcontrol, SessionFinalize, SessionInit};
        let steps = [Init, InitThread, SessionInit, Pcontrol, Abort, SessionFinalize, Finalize];
        player.succeed(steps.into_iter().map(|function| step(call(function))).collect());
        player.program.finish().unwrap();
    });
}
