//! Operations on whole files: opening, sizes, errors by class, queries and refused calls.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use beff_fake_mpi::ranks;
use beff_ffi::Universe;
use beff_trace::Function as F;

use super::*;

#[test]
fn opening_fails_by_class() {
    for_each_backend(Direct::Off, |rig| {
        let mut failing = |names: &[&str], class_name: &str| {
            let outcome = rig.run_step(open(names));
            assert_eq!(outcome.error, class(class_name), "{names:?}");
            let said = rig.program.unexpected_error().unwrap();
            assert!(said.contains(class_name) && said.contains("MPI_File_open"), "{said}");
        };
        failing(&["rdonly"], "MPI_ERR_NO_SUCH_FILE");
        failing(&["rdonly", "create"], "MPI_ERR_AMODE");
        failing(&["rdonly", "rdwr"], "MPI_ERR_AMODE");
        failing(&["create"], "MPI_ERR_AMODE");
        failing(&["rdwr", "sequential"], "MPI_ERR_AMODE");
        std::fs::write(rig.path(), "old").unwrap();
        let mut failing = |names: &[&str], class_name: &str| {
            assert_eq!(rig.run_step(open(names)).error, class(class_name), "{names:?}");
            rig.program.unexpected_error().unwrap();
        };
        failing(&["wronly", "create", "excl"], "MPI_ERR_FILE_EXISTS");
        rig.open(&["rdwr", "create"]);
        assert_eq!(rig.file(), b"old", "nothing is truncated");
        // As recorded: no complaint.
        let mut again = open(&["rdwr", "create", "excl"]);
        again.call.error = class("MPI_ERR_FILE_EXISTS");
        again.call.handle = Some(2);
        assert_eq!(rig.run_step(again).error, class("MPI_ERR_FILE_EXISTS"));
        // An argument error is returned without access to the file.
        let mut wrong = open(&["rdwr"]);
        (wrong.call.error, wrong.call.handle) = (class("MPI_ERR_NOT_SAME"), Some(3));
        assert_eq!(rig.run_step(wrong).error, class("MPI_ERR_NOT_SAME"));
    });
}

#[test]
fn a_file_whose_recorded_open_failed_is_closed_again() {
    for_each_backend(Direct::Off, |rig| {
        let descriptors = || {
            std::fs::read_dir("/proc/self/fd")
                .unwrap()
                .filter(|f| std::fs::read_link(f.as_ref().unwrap().path()).is_ok_and(|to| to == rig.path()))
                .count()
        };
        assert_eq!(descriptors(), 0);
        let mut recorded = open(&["rdwr", "create"]);
        recorded.call.error = class("MPI_ERR_NO_SUCH_FILE");
        assert_eq!(rig.run_step(recorded).error, None);
        let path = rig.path();
        let open_now =
            std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|f| std::fs::read_link(f.unwrap().path()).ok());
        assert_eq!(open_now.filter(|to| *to == path).count(), 0);
    });
}

#[test]
fn modes_close_and_delete() {
    for_each_backend(Direct::Off, |rig| {
        rig.open(&["wronly", "create", "delete_on_close"]);
        let mut outcomes = rig.run_steps(vec![
            data(F::ReadAt, Some(0), 1, INT, 0),
            file_call(F::Sync),
            file_call(F::Close),
            file_call(F::Sync),
        ]);
        assert_eq!(outcomes.remove(0).error, class("MPI_ERR_ACCESS"));
        assert_eq!((outcomes[0].error, outcomes[1].error, outcomes[2].error), (None, None, class("MPI_ERR_FILE")));
        assert!(!rig.path().exists());
        rig.program.unexpected_error().unwrap();
        std::fs::write(rig.path(), "12345678").unwrap();
        rig.open(&["rdonly"]);
        let mut recorded = data(F::WriteAt, Some(0), 1, INT, 0);
        recorded.call.error = class("MPI_ERR_AMODE");
        let outcomes = rig.run_steps(vec![
            recorded,
            data(F::WriteAt, Some(0), 1, INT, 0),
            data(F::Read, None, 1, INT, 0),
            file_call(F::Close),
        ]);
        let errors: Vec<_> = outcomes.iter().map(|outcome| outcome.error).collect();
        assert_eq!(errors, [class("MPI_ERR_AMODE"), class("MPI_ERR_READ_ONLY"), None, None]);
        assert!(rig.program.unexpected_error().unwrap().contains("MPI_MODE_RDONLY"));
        let delete = || {
            let mut step = file_call(F::Delete);
            (step.call.handle, step.call.file) = (None, Some(0));
            step
        };
        let outcomes = rig.run_steps(vec![delete(), delete()]);
        assert_eq!((outcomes[0].error, outcomes[1].error), (None, class("MPI_ERR_NO_SUCH_FILE")));
        assert!(rig.program.unexpected_error().unwrap().contains("unlink"));
        assert!(!rig.path().exists());
    });
}

#[test]
fn sizes() {
    for_each_backend(Direct::Off, |rig| {
        rig.open(&["rdwr", "create"]);
        let outcomes = rig.run_steps(vec![
            sized(F::SetSize, 1000),
            file_call(F::GetSize),
            sized(F::Preallocate, 0),
            sized(F::Preallocate, 5000),
            file_call(F::GetSize),
            sized(F::SetSize, 10),
            data(F::ReadAt, Some(4), 100, BYTE, 0),
            data(F::ReadAt, Some(10), 100, BYTE, 0),
            sized(F::SetSize, -1),
        ]);
        let values: Vec<_> = outcomes.iter().map(|o| o.number.or(o.bytes.map(|b| b as i64))).collect();
        assert_eq!(values, [None, Some(1000), None, None, Some(5000), None, Some(6), Some(0), None]);
        assert_eq!(outcomes[8].error, class("MPI_ERR_ARG"));
        assert!(outcomes[..8].iter().all(|outcome| outcome.error.is_none()));
        assert!(rig.program.unexpected_error().unwrap().contains("negative size"));
        assert_eq!(rig.file(), [0; 10]);
    });
}

#[test]
fn queries_follow_from_earlier_calls() {
    for_each_backend(Direct::Off, |rig| {
        rig.open(&["rdwr", "create"]);
        let mut extent = file_call(F::GetTypeExtent);
        extent.call.datatype = Some(NEGATIVE);
        let outcomes = rig.run_steps(vec![
            view(3, INT, HOLES),
            data(F::Write, None, 6, BYTE, 0),
            data(F::Write, None, 2, BYTE, 0),
            file_call(F::GetPosition),
            sized(F::GetByteOffset, 5),
            extent,
            file_call(F::GetAtomicity),
            data(F::Write, None, 1, INT, 0),
            file_call(F::GetPosition),
            file_call(F::GetView),
        ]);
        let numbers: Vec<_> = outcomes.iter().map(|outcome| outcome.number).collect();
        assert_eq!(numbers, [None, None, None, Some(2), Some(43), Some(20), None, None, Some(3), None]);
    });
}

#[test]
fn wrong_arguments_fail_without_a_system_call() {
    for_each_backend(Direct::Off, |rig| {
        rig.open(&["rdwr", "create"]);
        let recorded = |mut step: ProgramStep, name| {
            step.call.error = class(name);
            step
        };
        let mut lost = data(F::WriteAt, Some(0), 1, INT, 0);
        lost.call.handle = Some(99);
        let outcomes = rig.run_steps(vec![
            recorded(data(F::WriteAt, Some(0), -1, INT, 0), "MPI_ERR_COUNT"),
            recorded(data(F::WriteAt, Some(-5), 1, INT, 0), "MPI_ERR_ARG"),
            recorded(data(F::WriteAt, Some(0), 1, INT, 0), "MPI_ERR_TYPE"),
            recorded(data(F::Write, None, 1, INT, 0), "MPI_ERR_BUFFER"),
            recorded(lost, "MPI_ERR_OTHER"),
            data(F::Write, None, 1, BYTE, 0),
        ]);
        let classes: Vec<_> = outcomes.iter().map(|outcome| outcome.error.map(ErrorClass::name)).collect();
        let names = ["MPI_ERR_COUNT", "MPI_ERR_ARG", "MPI_ERR_TYPE", "MPI_ERR_BUFFER", "MPI_ERR_OTHER"];
        assert_eq!(classes[..5], names.map(Some));
        assert_eq!(classes[5], None);
        assert_eq!(rig.file(), [source_byte(0)], "and the pointer has not moved");
    });
}

#[test]
fn a_recorded_storage_error_is_retried() {
    for_each_backend(Direct::Off, |rig| {
        rig.open(&["rdwr", "create"]);
        let full = |mut step: ProgramStep| {
            step.call.error = class("MPI_ERR_NO_SPACE");
            step
        };
        let outcomes = rig.run_steps(vec![
            full(data(F::Write, None, 2, BYTE, 0)),
            data(F::Write, None, 1, BYTE, 9),
            full(data(F::IwriteAt, Some(5), 1, BYTE, 0)),
        ]);
        assert!(outcomes.iter().all(|outcome| outcome.error.is_none()));
        assert_eq!(rig.file(), [source_byte(9), source_byte(1), 0, 0, 0, source_byte(0)]);
    });
}

#[test]
fn an_access_at_an_unknown_offset_is_an_error_of_its_step() {
    for_each_backend(Direct::Off, |rig| {
        rig.open(&["rdwr", "create"]);
        let mut seek = sized(F::Seek, 0);
        seek.call.whence = Some(beff_trace::Whence::End);
        let outcomes = rig.run_steps(vec![seek, data(F::Write, None, 1, INT, 0), data(F::WriteAt, Some(0), 1, INT, 0)]);
        assert_eq!((outcomes[1].error, outcomes[2].error), (class("MPI_ERR_OTHER"), None));
        assert!(rig.program.unexpected_error().unwrap().contains("pointer is unknown"));
    });
}

#[test]
fn invalid_steps_are_refused_before_they_run() {
    for_each_backend(Direct::Off, |rig| {
        rig.open(&["rdwr", "create"]);
        for (step, part) in [
            (data(F::WriteAt, Some(0), 2, BYTE, AREA_BYTES - 1), "exceeds the area"),
            (data(F::ReadAt, Some(0), 1, NEGATIVE, 7), "exceeds the area"),
            (data(F::WriteAt, Some(0), 1, 99, 0), "type 99 is not defined"),
            (data(F::WriteAt, Some(i64::MAX), 1, INT, 0), "beyond 63 bits"),
            (view(0, BYTE, 99), "type 99 is not defined"),
        ] {
            let refused = rig.program.prepare(vec![step]);
            let said = match refused {
                Err(error) => error.to_string(),
                Ok(()) => {
                    let mut outcome = [StepOutcome::default()];
                    rig.program.run(0..1, &mut outcome);
                    assert!(outcome[0].error.is_some(), "{part}");
                    rig.program.unexpected_error().unwrap()
                }
            };
            assert!(said.contains(part), "{part}: {said}");
        }
    });
}

#[test]
fn unsupported_calls_give_the_reason() {
    let unable = driver("posix").unwrap().replay.unwrap().unsupported_reason;
    let mut external = view(0, BYTE, BYTE).call;
    external.name = Some("external32".into());
    assert!(unable(&external).unwrap().contains("data representation"));
    let mut atomic = Call::new(F::SetAtomicity, 0, 0);
    atomic.flag = Some(false);
    assert_eq!(unable(&atomic), None);
    atomic.flag = Some(true);
    assert!(unable(&atomic).unwrap().contains("atomic"));
    let refused: Vec<F> = F::all().filter(|function| unable(&Call::new(*function, 0, 0)).is_some()).collect();
    for function in &refused {
        let shared = function.name().contains("shared") || function.name().contains("ordered");
        assert_eq!(
            shared,
            unable(&Call::new(*function, 0, 0)).unwrap().starts_with("shared file pointer:"),
            "{function:?}"
        );
    }
    let shared = F::all().filter(|f| f.name().contains("shared") || f.name().contains("ordered")).count();
    assert_eq!(refused.len(), shared + 1 + 4 + 4 + 1, "{refused:?}");
    assert!(driver("mmap").unwrap().replay.is_none());
}

#[test]
fn a_missing_rank_is_refused() {
    let tables = ProgramTables { comms: vec![vec![0, 1]], ..ProgramTables::default() };
    let request = ProgramRequest {
        world: &Comm::comm_self(),
        tables,
        options: DriverOptions::default(),
        source: allocate_area(1).unwrap(),
        landing_bytes: 0,
    };
    let refused = (driver("posix").unwrap().replay.unwrap().begin)(request);
    let Err(refused) = refused else { panic!("two ranks of one") };
    assert!(refused.text.contains("rank 1"), "{refused}");
}

/// Rank 1 has an invalid mode, then a file exists for rank 0 only, then rank 0 sets a size for both.
#[test]
fn a_failure_of_one_rank_is_a_failure_of_all() {
    for name in STORAGE_BACKENDS {
        let shared = scratch();
        // Compared after the ranks have ended: a panic of one would block the others.
        let results = ranks(2, |rank| {
            let universe = Universe::init().unwrap();
            let path = |_: &Path| shared.path().join("f");
            let mut rig = ProgramRig::among(&universe.world(), name, DriverOptions::default(), path)?;
            let opening = |handle, file, names: &[&str]| {
                let mut opening = open(names);
                (opening.call.handle, opening.call.file) = (Some(handle), Some(file));
                opening
            };
            let good = ["rdwr", "create"];
            let steps = [
                opening(2, 0, if rank == 1 { &["create"] } else { &good }),
                // The first rank creates it, in its own directory.
                opening(3, 1, &good),
                opening(1, 0, &good),
                sized(F::SetSize, -1),
                sized(F::SetSize, 10),
            ];
            let results =
                steps.map(|step| (rig.run_step(step).error, rig.program.unexpected_error().unwrap_or_default()));
            let finished = rig.program.finish().is_ok();
            Some((results, finished))
        });
        let causes = [("MPI_ERR_AMODE", 1), ("MPI_ERR_NO_SUCH_FILE", 1), ("", 0), ("MPI_ERR_ARG", 0), ("", 0)];
        for (rank, (results, finished)) in results.into_iter().flatten().enumerate() {
            assert!(finished);
            for ((error, said), (class, cause)) in results.into_iter().zip(causes) {
                assert_eq!(error.map_or("", ErrorClass::name), class, "{name} {rank}: {said}");
                let is_others = !class.is_empty() && rank != cause;
                assert_eq!(said.contains("another rank"), is_others, "{name} {rank}: {said}");
            }
        }
    }
}

/// Neither rank leaves such a call before the other has entered it, and no file is created before.
#[test]
fn calls_on_whole_files_synchronize_the_ranks() {
    let steps = || {
        [
            open(&["rdwr", "create"]),
            file_call(F::Sync),
            sized(F::SetSize, 9),
            sized(F::Preallocate, 9),
            file_call(F::Close),
        ]
    };
    for name in STORAGE_BACKENDS {
        for late in 0..2 {
            let (shared, has_entered) = (scratch(), AtomicUsize::new(0));
            let path = shared.path().join("f");
            let seen = ranks(2, |rank| {
                let universe = Universe::init().unwrap();
                let mut rig = ProgramRig::among(&universe.world(), name, DriverOptions::default(), |_| path.clone())?;
                let results = steps().map(|step| {
                    let function = step.call.function;
                    if rank == late {
                        std::thread::sleep(Duration::from_millis(30));
                        let is_early = function == F::Open && path.exists();
                        has_entered.fetch_add(1, Ordering::SeqCst);
                        return (function, is_early, rig.run_step(step).error);
                    }
                    let before = has_entered.load(Ordering::SeqCst);
                    let error = rig.run_step(step).error;
                    (function, has_entered.load(Ordering::SeqCst) == before, error)
                });
                rig.program.finish().unwrap();
                Some(results)
            });
            for (function, is_early, error) in seen.into_iter().flatten().flatten() {
                assert_eq!((is_early, error), (false, None), "{name}, rank {late} is late: {function:?}");
            }
        }
    }
}
