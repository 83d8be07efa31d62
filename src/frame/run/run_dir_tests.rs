use super::*;
use crate::frame::rank_directories::rank_file_name;
use crate::frame::run::testing::{run_ranks, Script};

/// Three ranks, at most two files in a directory: every rank finds the files of all, removes its own, and rank 0 the rest, but not what
/// belongs to somebody else.
#[test]
fn files_of_ranks_are_spread_over_directories() {
    let scratch = tempfile::tempdir().unwrap();
    let run = scratch.path().join("run");
    let backends = ["posix".to_owned(), "uring".to_owned()];
    run_ranks(
        3,
        |_| Script::default(),
        |comm| {
            let directories = RankDirectories::new(3, 2);
            let run_dir = RunDir::create(comm, scratch.path(), "run", (&backends, directories)).unwrap().unwrap();
            if comm.is_root() {
                // Those whose new files get the stripes of a run.
                let held: Vec<&Path> = run_dir.directories().map(|path| path.strip_prefix(&run).unwrap()).collect();
                let of = |backend: &str| {
                    ["", "from-rank0000000", "from-rank0000002"].map(|name| Path::new(backend).join(name))
                };
                assert!(
                    ["posix", "uring"]
                        .iter()
                        .flat_map(|backend| of(backend))
                        .all(|path| held.contains(&path.as_path())),
                    "{held:?}"
                );
            }
            let name = |rank: u64| Path::new("posix").join(rank_file_name("file", rank));
            let shared = run_dir.file(Path::new("posix/shared.dat"));
            if comm.is_root() {
                shared.create().unwrap();
            }
            run_dir.file(&name(comm.rank())).create().unwrap();
            run_dir.file(Path::new(&format!("uring/other-rank000000{}.dat", comm.rank()))).create().unwrap();
            comm.barrier().unwrap();
            assert!((0..3).all(|rank| run_dir.file(&name(rank)).open_to_read().is_ok()));
            assert_eq!(run_dir.located(&name(2)), Path::new("posix/from-rank0000002/file-rank0000002.dat"));
            assert!(
                run.join("posix/from-rank0000000/file-rank0000001.dat").exists()
                    && run.join("posix/shared.dat").exists()
            );
            comm.barrier().unwrap();
            if comm.rank() > 0 {
                run_dir.remove_rank_files();
            }
            comm.barrier().unwrap();
            if !comm.is_root() {
                return;
            }
            let left = |directory: &str| std::fs::read_dir(run.join(directory)).unwrap().count();
            assert_eq!(
                ["posix/from-rank0000000", "posix/from-rank0000002", "uring/from-rank0000002"].map(left),
                [1, 0, 0]
            );
            let precious = run.join("posix/from-rank0000002/thesis.txt");
            std::fs::write(&precious, "precious").unwrap();
            let error = run_dir.remove().unwrap_err().to_string();
            assert!(error.contains("from-rank0000002/thesis.txt does not belong to this run"), "{error}");
            assert!(!run.join("uring").exists() && !run.join("posix/from-rank0000000").exists());
            std::fs::remove_file(precious).unwrap();
            run_dir.remove().unwrap();
            assert!(!run.exists());
        },
    );
}

/// A subdirectory that was exchanged during the run is not touched, although its files have names of the run.
#[test]
fn an_exchanged_directory_of_ranks_is_not_touched() {
    let scratch = tempfile::tempdir().unwrap();
    let (run, posix) = (scratch.path().join("run"), ["posix".to_owned()]);
    run_ranks(
        1,
        |_| Script::default(),
        |comm| {
            let directories = RankDirectories::new(2, 1);
            let run_dir = RunDir::create(comm, scratch.path(), "run", (&posix, directories)).unwrap().unwrap();
            run_dir.file(Path::new("posix/file-rank0000000.dat")).create().unwrap();
            let [own, moved] = ["posix/from-rank0000000", "posix/moved"].map(|name| run.join(name));
            std::fs::rename(&own, &moved).unwrap();
            std::fs::create_dir(&own).unwrap();
            std::fs::write(own.join("file-rank0000000.dat"), "precious").unwrap();
            assert!(run_dir.remove().is_err());
            assert_eq!(std::fs::read(own.join("file-rank0000000.dat")).unwrap(), b"precious");
            assert!(!moved.join("file-rank0000000.dat").exists(), "the file of the run is removed, wherever it is");
        },
    );
}

#[test]
fn own_files_differ_in_numbers_only() {
    let names = ["n2-type0.dat", "file-0001"].map(|name| name_pattern(OsStr::new(name))).into();
    for own in [
        "n2-type0.dat",
        "n16-type4.dat",
        "file-0312",
        ".n2-type0.dat.shfp.4711",
        "file-0001.locktest.3",
        ".nfs000000000a1",
    ] {
        assert!(is_own(&names, OsStr::new(own)), "{own}");
    }
    for other in ["thesis.txt", "n2-type0.bak", "n-type0.dat", "my-file-0001", ".bashrc", "file-", "", "..."] {
        assert!(!is_own(&names, OsStr::new(other)), "{other}");
    }
}
