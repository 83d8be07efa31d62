//! Heap allocations in the timed region, those of the MPI library included: see `tests/planted/allocations.c`.

use std::fs;

use crate::patient;
use crate::support::{launcher, Launch, Scratch};

/// Per rank.
#[derive(Debug)]
struct Allocations {
    program: u64,
    reductions: u64,
    system_calls: u64,
    regions: u64,
}

fn allocations(backends: &str) -> Vec<Allocations> {
    let library = patient::library_of("allocations", include_str!("../planted/allocations.c"));
    let scratch = Scratch::new();
    let counts = scratch.join("counts");
    fs::create_dir(&counts).unwrap();
    let both = format!("{}:{}", patient::library().display(), library.display());
    let launch = Launch::new(2).env("LD_PRELOAD", both).env("BEFF_ALLOCATIONS", &counts);
    let args =
        ["--backend", backends, "-T", "2s", "--memory-per-process", "64M", "--space", "500M", "--types", "0,2,3"];
    launch.args(args).into(&scratch).run().expect(0);
    let read = |path| {
        let words: Vec<u64> =
            fs::read(path).unwrap().chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
        Allocations { program: words[0], reductions: words[1], system_calls: words[3], regions: words[4] }
    };
    let files = fs::read_dir(&counts).unwrap().map(|entry| read(entry.unwrap().path()));
    // The launcher's own processes, which measure nothing, have a file too.
    let ranks: Vec<_> = files.filter(|found: &Allocations| found.regions > 0).collect();
    assert_eq!(ranks.len(), 2, "{ranks:?}");
    ranks
}

/// Libraries allocate in the calls that move data; those of agreements do not, where the library's persistent reductions do not.
#[test]
fn nothing_is_allocated_between_the_first_batch_and_the_sync() {
    for rank in allocations("mpiio,posix,uring,mmap") {
        println!("{}: {rank:?}", launcher().mpi);
        assert!(rank.regions > 100, "{rank:?}");
        assert_eq!((rank.program, rank.system_calls), (0, 0), "{rank:?}");
        if launcher().mpi == "mpich" {
            assert_eq!(rank.reductions, 0, "{rank:?}");
        }
    }
}
