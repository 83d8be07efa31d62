//! Replays at explicit offsets on several ranks: changes of the whole file are visible on all ranks of the file.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests; what is skipped is said

mod replay_support;

use beff_backends::ProgramStep;
use beff_ffi::Comm;
use beff_trace::{Call, Function as F};
use replay_support::{bytes_of, class, close, data, on, on_1_2_and_3, open, own_comm, step, ProgramRunner};

/// Runs a test with each backend that stores data; unavailable ones are reported.
fn for_each_backend(comm: &Comm, directory: &std::path::Path, test: impl Fn(&mut ProgramRunner<'_>)) {
    for backend in ["posix", "uring"] {
        let directory = directory.join(backend);
        std::fs::create_dir_all(&directory).unwrap();
        match ProgramRunner::with_backend(backend, comm, &directory, vec![], &["f", "g"]) {
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

fn sized(function: F, bytes: i64) -> ProgramStep {
    step(Call { offset: Some(bytes), ..on(1, function) })
}

/// Sizes, the new file and its deletion, in rounds without other synchronization.
#[test]
fn all_ranks_see_a_change_of_the_whole_file() {
    on_1_2_and_3("all_ranks_see_a_change_of_the_whole_file", |comm, directory| {
        for_each_backend(comm, directory, |player| {
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
                let landed = player.program.landing_range(0..1001).unwrap();
                assert_eq!(landed[..6], [bytes_of(0, 100, 5), vec![0]].concat(), "round {round} of {ranks} ranks");
                landed.fill(0xee);
                // Deleted before any rank continues.
                let gone = player.run(vec![open(1, 0, own_comm(me), &["rdonly"])]);
                assert_eq!(gone[0].error, class("MPI_ERR_NO_SUCH_FILE"));
                player.program.unexpected_error().unwrap();
                comm.barrier().unwrap();
            }
        });
    });
}

#[test]
fn a_failed_open_of_one_rank_fails_on_all() {
    on_1_2_and_3("a_failed_open_of_one_rank_fails_on_all", |comm, directory| {
        for_each_backend(comm, directory, |player| {
            std::fs::write(player.directory.join("f"), "there").unwrap();
            comm.barrier().unwrap();
            // The last rank has an invalid mode.
            let last = comm.rank() == comm.size() - 1;
            let modes: &[&str] = if last { &["rdonly", "rdwr"] } else { &["rdonly"] };
            let outcomes = player.run(vec![
                open(1, 0, 0, modes),
                data(1, F::ReadAt, Some(0), 1, 0),
                open(2, 0, 1, &["rdwr", "create", "excl"]),
            ]);
            let errors: Vec<_> = outcomes.iter().map(|outcome| outcome.error).collect();
            assert_eq!(errors, ["MPI_ERR_AMODE", "MPI_ERR_FILE", "MPI_ERR_FILE_EXISTS"].map(class));
            let said = player.program.unexpected_error().unwrap();
            assert_eq!(said.contains("another rank"), !last, "{said}");
            comm.barrier().unwrap();
        });
    });
}

/// Left open, and closed at the end of the program.
#[test]
fn each_rank_may_leave_something_open() {
    on_1_2_and_3("each_rank_may_leave_something_open", |comm, directory| {
        for_each_backend(comm, directory, |player| {
            let me = comm.rank();
            let mut left = data(1, F::IwriteAt, Some(me as i64), 1, 0);
            left.call.request = Some(1);
            player.succeed(vec![open(1, 0, 0, &["rdwr", "create", "delete_on_close"]), left]);
            if me == 0 {
                player.succeed(vec![open(2, 1, own_comm(0), &["rdwr", "create"])]);
            }
        });
        if comm.is_root() {
            // Deleted on close only: an application that exits without closing leaves its file, too.
            let expected: Vec<u8> = (0..comm.size()).flat_map(|rank| bytes_of(rank, 0, 1)).collect();
            assert_eq!(std::fs::read(directory.join("posix/f")).unwrap(), expected);
        }
    });
}
