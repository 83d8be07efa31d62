//! Replays by offsets on several ranks: what all ranks of a file see of a change of the whole file.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests; what is skipped is said

mod replayed;

use beff_backends::Step;
use beff_ffi::Comm;
use beff_trace::{Call, Function as F};
use replayed::{alone, bytes_of, class, close, data, on, on_1_2_and_3, open, step, Player};

/// A player for each backend that stores data; those that are not available say so.
fn each(comm: &Comm, directory: &std::path::Path, test: impl Fn(&mut Player<'_>)) {
    for backend in ["posix", "uring"] {
        let directory = directory.join(backend);
        std::fs::create_dir_all(&directory).unwrap();
        match Player::through(backend, comm, &directory, vec![], &["f", "g"]) {
            Ok(mut player) => {
                test(&mut player);
                player.program.finish().unwrap();
            }
            Err(error) if error.operation == "io_uring_setup" => println!("SKIPPED: {error}"),
            Err(error) => panic!("{error}"),
        }
        comm.barrier().unwrap();
    }
}

fn sized(function: F, bytes: i64) -> Step {
    step(Call { offset: Some(bytes), ..on(1, function) })
}

/// Sizes, the new file and its deletion, in rounds without any other meeting of the ranks.
#[test]
fn all_ranks_see_a_change_of_the_whole_file() {
    on_1_2_and_3("all_ranks_see_a_change_of_the_whole_file", |comm, directory| {
        each(comm, directory, |player| {
            let (me, ranks) = (comm.rank(), comm.size());
            let size = step(on(1, F::GetSize));
            for round in 0..50 {
                let reader = ["rdonly", "delete_on_close"];
                let outcomes = player.succeed(vec![
                    open(1, 0, round % 2, &["rdwr", "create", "excl"]),
                    data(1, F::WriteAtAll, Some(me as i64 * 10), 10, 100),
                    sized(F::SetSize, 5),
                    size.clone(),
                    sized(F::Preallocate, 1000),
                    size.clone(),
                    close(1),
                    open(1, 0, 0, &reader),
                    data(1, F::ReadAtAll, Some(0), 2000, 0),
                    close(1),
                ]);
                assert_eq!((outcomes[3].number, outcomes[5].number), (Some(5), Some(1000)));
                assert_eq!(outcomes[8].bytes, Some(1000));
                let landed = player.program.landed(0..1001).unwrap();
                assert_eq!(landed[..6], [bytes_of(0, 100, 5), vec![0]].concat(), "round {round} of {ranks} ranks");
                landed.fill(0xee);
                // Deleted before any rank goes on.
                let gone = player.play(vec![open(1, 0, alone(me), &["rdonly"])]);
                assert_eq!(gone[0].error, class("MPI_ERR_NO_SUCH_FILE"));
                player.program.complaint().unwrap();
                comm.barrier().unwrap();
            }
        });
    });
}

#[test]
fn what_one_rank_cannot_open_nobody_has_open() {
    on_1_2_and_3("what_one_rank_cannot_open_nobody_has_open", |comm, directory| {
        each(comm, directory, |player| {
            std::fs::write(player.directory.join("f"), "there").unwrap();
            comm.barrier().unwrap();
            // The last rank has a mode that cannot be.
            let last = comm.rank() == comm.size() - 1;
            let modes: &[&str] = if last { &["rdonly", "rdwr"] } else { &["rdonly"] };
            let outcomes = player.play(vec![
                open(1, 0, 0, modes),
                data(1, F::ReadAt, Some(0), 1, 0),
                open(2, 0, 1, &["rdwr", "create", "excl"]),
            ]);
            let errors: Vec<_> = outcomes.iter().map(|outcome| outcome.error).collect();
            assert_eq!(errors, ["MPI_ERR_AMODE", "MPI_ERR_FILE", "MPI_ERR_FILE_EXISTS"].map(class));
            let said = player.program.complaint().unwrap();
            assert_eq!(said.contains("another rank"), !last, "{said}");
            comm.barrier().unwrap();
        });
    });
}

/// Left open, and ended by the end of the program.
#[test]
fn each_rank_may_leave_something_open() {
    on_1_2_and_3("each_rank_may_leave_something_open", |comm, directory| {
        each(comm, directory, |player| {
            let me = comm.rank();
            let mut left = data(1, F::IwriteAt, Some(me as i64), 1, 0);
            left.call.request = Some(1);
            player.succeed(vec![open(1, 0, 0, &["rdwr", "create", "delete_on_close"]), left]);
            if me == 0 {
                player.succeed(vec![open(2, 1, alone(0), &["rdwr", "create"])]);
            }
        });
        if comm.is_root() {
            // Deleted on close only: an application that ends without leaves its file too.
            let expected: Vec<u8> = (0..comm.size()).flat_map(|rank| bytes_of(rank, 0, 1)).collect();
            assert_eq!(std::fs::read(directory.join("posix/f")).unwrap(), expected);
        }
    });
}
