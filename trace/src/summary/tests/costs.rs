//! Causes that `show` names, from small profiles with the pattern of each.

use std::fmt::Write as _;

use super::*;

const MIB: u64 = 1 << 20;

/// A profile: files by name, and the lines of each rank, which open all files together first.
struct Profile {
    head: String,
    files: Vec<String>,
    ranks: Vec<Vec<String>>,
}

impl Profile {
    fn new(ranks: usize, files: &[&str]) -> Self {
        let mut head =
            format!("beff-raw profile,1\nranks,{ranks}\ncomm,0,world\ntype,0,BYTE\ninfo,0,striping_unit=1048576\n");
        for (number, file) in files.iter().enumerate() {
            writeln!(head, "file,{number},{file}").unwrap();
        }
        Self { head, files: files.iter().map(|file| (*file).to_owned()).collect(), ranks: vec![Vec::new(); ranks] }
    }

    /// Adds a call at a time, with its duration.
    fn call(&mut self, rank: usize, begin: u64, ns: u64, call: &str) -> &mut Self {
        self.ranks[rank].push(format!("{begin},{},{call}", begin + ns));
        self
    }

    fn access(&mut self, rank: usize, begin: u64, ns: u64, function: &str, at: u64, bytes: u64) -> &mut Self {
        self.call(rank, begin, ns, &format!("File_{function},handle=1,offset={at},count={bytes},type=0,bytes={bytes}"))
    }

    fn summary(&self) -> ProfileSummary {
        let mut text = self.head.clone();
        for (rank, calls) in self.ranks.iter().enumerate() {
            writeln!(text, "calls,{rank},{}", calls.len() + self.files.len()).unwrap();
            for number in 0..self.files.len() {
                writeln!(
                    text,
                    "{number},{number},File_open,handle={},comm=0,file={number},mode=create;rdwr,granted=0",
                    number + 1
                )
                .unwrap();
            }
            calls.iter().for_each(|call| writeln!(text, "{call}").unwrap());
        }
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        summarize(file.path()).unwrap()
    }
}

fn cost<'a>(of: &'a ProfileSummary, kind: &str) -> Option<&'a IoCost> {
    of.costs.iter().find(|cost| cost.kind == kind)
}

/// Two ranks fill their halves of a file collectively, and overwrite them by small independent writes.
fn filled(file: &str) -> Profile {
    let mut profile = Profile::new(2, &[file]);
    for rank in 0..2 {
        let from = rank as u64 * 10 * MIB;
        profile.call(rank, 1000, 100, "File_set_view,handle=1,offset=0,etype=0,filetype=0");
        profile.access(rank, 2000, 5_000_000, "write_at_all", from, 10 * MIB);
        profile.call(rank, 5_500_000, 1000, "File_set_view,handle=1,offset=0,etype=0,filetype=0");
        // Rank 0 writes the half of rank 1.
        for n in 0..1280_u64 {
            profile.access(rank, 6_000_000 + n * 2000, 1000, "write_at", 10 * MIB - from + n * 8192, 8192);
        }
    }
    profile
}

#[test]
fn fill_values_are_the_first_cost() {
    for (name, call) in [("out.h5", "H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER)"), ("run.nc", "NC_NOFILL")] {
        let s = filled(name).summary();
        let first = &s.costs[0];
        assert_eq!((first.kind, first.bytes, first.is_certain), ("fill_values", 20 * MIB, false), "{first:?}");
        // The views that are set for it are part of it.
        assert!((first.seconds - 2.0 * 5.0011e-3).abs() < 1e-6, "{first:?}");
        assert!(
            first.what.starts_with("fill values: ") && first.what.contains("20 MiB (50 % of the written bytes)"),
            "{first:?}"
        );
        assert!(first.next.contains(call), "{first:?}");
        assert!(s.text(100).contains("1. fill values: "), "{}", s.text(100));
        // What is explained is not repeated as the cost of a function.
        assert!(s
            .costs
            .iter()
            .all(|cost| cost.function.as_deref() != Some("MPI_File_write_at_all") || cost.kind == "fill_values"));
    }
    let s = filled("out.dat").summary();
    assert_eq!(
        (s.costs[0].kind, s.costs[0].bytes, s.costs[0].is_certain),
        ("overwritten", 20 * MIB, true),
        "{:?}",
        s.costs
    );
    // Only half of the fill values are written again, and nothing else.
    let mut half = Profile::new(1, &["out.h5"]);
    half.access(0, 10, 1000, "write_at", 0, 4 * MIB).access(0, 2000, 1000, "write_at", MIB, 2 * MIB);
    let s = half.summary();
    assert_eq!(
        (s.costs[0].kind, s.costs[0].bytes, s.costs[0].seconds),
        ("fill_values", 2 * MIB, 0.5e-6),
        "{:?}",
        s.costs
    );
}

#[test]
fn what_is_read_in_between_or_belongs_to_another_file_is_not_overwritten() {
    let mut read = Profile::new(1, &["out.h5"]);
    read.access(0, 10, 10, "write_at", 0, MIB)
        .access(0, 30, 10, "read_at", 0, MIB)
        .access(0, 50, 10, "write_at", 0, MIB);
    assert!(cost(&read.summary(), "fill_values").is_none() && cost(&read.summary(), "overwritten").is_none());
    // Every step creates the file again, after it was removed, renamed, or moved by another process.
    for (end, discarded) in [("unlink,file=0", Some(3 * MIB)), ("rename,file=0,to=1", None), ("", None)] {
        let mut steps = Profile::new(1, &["out.dat", "out.dat.old"]);
        for step in 0..3_u64 {
            steps.access(0, 100 * step + 10, 10, "write_at", 0, MIB);
            steps.call(0, 100 * step + 40, 10, "File_close,handle=1");
            if !end.is_empty() {
                steps.call(0, 100 * step + 52, 2, end);
            }
            steps.call(0, 100 * step + 60, 10, "File_open,handle=1,comm=0,file=0,mode=create;rdwr,number=-1");
        }
        let s = steps.summary();
        assert!(cost(&s, "overwritten").is_none(), "{end}: {:?}", s.costs);
        assert_eq!(cost(&s, "discarded").map(|cost| cost.bytes), discarded, "{end}: {:?}", s.costs);
    }
    for end in
        ["File_delete,file=0", "File_set_size,handle=1,offset=0", "truncate,file=0,offset=0", "open_truncate,file=0"]
    {
        let mut lost = Profile::new(1, &["out.dat"]);
        lost.access(0, 10, 10, "write_at", 0, MIB).call(0, 30, 5, end).access(0, 50, 10, "write_at", 0, MIB);
        let s = lost.summary();
        assert_eq!(cost(&s, "discarded").map(|cost| cost.bytes), Some(MIB), "{end}: {:?}", s.costs);
        assert!(cost(&s, "overwritten").is_none(), "{end}");
    }
}

#[test]
fn reads_in_vain_are_named() {
    let mut modify = Profile::new(2, &["out.h5"]);
    for n in 0..20_u64 {
        modify.access(0, 100 * n + 10, 30, "read_at", n * 65536, 65536).access(
            0,
            100 * n + 50,
            10,
            "write_at",
            n * 65536,
            65536,
        );
    }
    let s = modify.summary();
    let found = cost(&s, "read_then_written").unwrap();
    assert_eq!((found.bytes, found.seconds), (20 * 65536, 600e-9), "{found:?}");
    assert!(found.next.contains("H5Pset_chunk_cache"), "{found:?}");
    let mut all = Profile::new(4, &["in.dat"]);
    for rank in 0..4 {
        all.access(rank, 100 + rank as u64, 50, "read_at", 0, 2 * MIB);
    }
    let s = all.summary();
    let found = cost(&s, "read_again").unwrap();
    assert_eq!((found.bytes, found.is_certain), (6 * MIB, true), "{found:?}");
    assert!(found.next.contains("MPI_Bcast"), "{found:?}");
    // Each its own part: nothing to say.
    let mut parts = Profile::new(4, &["in.dat"]);
    for rank in 0..4 {
        parts.access(rank, 100, 50, "read_at", rank as u64 * 2 * MIB, 2 * MIB);
    }
    assert!(parts.summary().costs.iter().all(|cost| cost.kind == "function"), "{:?}", parts.summary().costs);
}

#[test]
fn metadata_is_small_and_at_the_begin_of_a_larger_file() {
    let mut header = Profile::new(2, &["out.h5"]);
    for n in 0..50_u64 {
        header.access(0, 100 + n * 20, 10, "write_at", n * 96, 96);
    }
    header.access(0, 5000, 100, "write_at", MIB, 4 * MIB).access(1, 5000, 100, "write_at", 8 * MIB, 4 * MIB);
    let s = header.summary();
    let found = cost(&s, "metadata").unwrap();
    assert_eq!((found.bytes, found.is_certain, found.seconds), (4800, false, 500e-9), "{found:?}");
    assert!(found.what.contains("50 accesses") && found.next.contains("H5Pset_coll_metadata_write"), "{found:?}");
    // One header write is none, nor are small blocks everywhere.
    let mut one = Profile::new(2, &["out.h5"]);
    one.access(0, 100, 900, "write_at", 0, 96).access(0, 5000, 100, "write_at", MIB, 4 * MIB);
    assert!(cost(&one.summary(), "metadata").is_none());
    let mut small = Profile::new(1, &["out.dat"]);
    (0..600_u64).for_each(|n| {
        small.access(0, 100 + n * 20, 10, "write_at", n * 2048, 2048);
    });
    assert!(cost(&small.summary(), "metadata").is_none());
}

#[test]
fn accesses_that_cross_stripes_are_counted() {
    let blocks = |at: u64| {
        let mut profile = Profile::new(2, &["out.dat"]);
        for n in 0..8_u64 {
            let rank = usize::try_from(n % 2).unwrap();
            profile.access(rank, 100 * n + 10, 50, "write_at", at + n * MIB, MIB);
        }
        profile.summary()
    };
    let s = blocks(100);
    let found = cost(&s, "crossing").unwrap();
    assert_eq!((found.bytes, found.is_certain, found.seconds), (8 * MIB, true, 400e-9), "{found:?}");
    assert!(found.what.contains("cross stripes of 1 MiB") && found.next.contains("1048576"), "{found:?}");
    assert!(cost(&blocks(0), "crossing").is_none());
}

#[test]
fn ranks_wait_for_the_last_one() {
    let mut late = Profile::new(4, &["out.dat"]);
    for rank in 0..4 {
        let begin = if rank == 2 { 9000 } else { 100 };
        late.access(rank, begin, 10_000 - begin, "write_at_all", rank as u64 * MIB, MIB);
    }
    let s = late.summary();
    let found = cost(&s, "waiting").unwrap();
    assert!((found.seconds - 3.0 * 8900e-9).abs() < 1e-12 && found.is_certain, "{found:?}");
    assert!(found.what.contains("100 % of the time for rank 2"), "{found:?}");
}

#[test]
fn one_rank_that_does_all_the_work_is_named() {
    let mut one = Profile::new(4, &["out.nc"]);
    one.access(3, 100, 1000, "write_at", 0, 32 * MIB).access(1, 100, 10, "write_at", 40 * MIB, 100);
    let s = one.summary();
    let found = cost(&s, "one_rank").unwrap();
    assert!(found.what.starts_with("rank 3 moved 100 % of all bytes (4 ranks)"), "{found:?}");
    assert!(found.next.contains("nc_var_par_access") && (found.seconds - 1e-6).abs() < 1e-12, "{found:?}");
    // Of one file of two.
    one = Profile::new(4, &["a.dat", "b.dat"]);
    one.access(3, 100, 1000, "write_at", 0, 32 * MIB);
    for rank in 0..4 {
        one.call(
            rank,
            2000,
            1000,
            &format!("File_write_at,handle=2,offset={},count={1},type=0,bytes={1}", rank * 16_777_216, 16 * MIB),
        );
    }
    let s = one.summary();
    assert!(
        cost(&s, "one_rank").unwrap().what.starts_with("rank 3 moved 100 % of the bytes of a.dat"),
        "{:?}",
        s.costs
    );
    let mut all = Profile::new(4, &["out.nc"]);
    (0..4).for_each(|rank| {
        all.access(rank, 100, 10, "write_at", rank as u64 * 8 * MIB, 8 * MIB);
    });
    assert!(cost(&all.summary(), "one_rank").is_none());
}

#[test]
fn independent_accesses_that_could_be_collective() {
    let write = |file: &str, bytes: u64| {
        let mut profile = Profile::new(2, &[file]);
        for n in 0..200_u64 {
            profile.access(usize::try_from(n % 2).unwrap(), 100 * n + 10, 50, "write_at", n * bytes, bytes);
        }
        profile.summary()
    };
    for (file, call) in
        [("a.dat", "MPI_File_write_at_all"), ("a.h5", "H5FD_MPIO_COLLECTIVE"), ("a.nc", "NC_COLLECTIVE")]
    {
        let s = write(file, 100_000);
        let found = cost(&s, "independent").unwrap_or_else(|| panic!("{:?}", s.costs));
        assert!(found.next.contains(call) && !found.is_certain && found.bytes == 20_000_000, "{found:?}");
    }
    assert!(cost(&write("a.dat", 4 * MIB), "independent").is_none(), "large blocks gain nothing");
}

/// One function on 66 temporary files filled the list.
#[test]
fn a_function_on_many_files_is_one_cost() {
    let names: Vec<String> = (0..66).map(|n| format!("tmp{n}")).collect();
    let mut many = Profile::new(2, &names.iter().map(String::as_str).collect::<Vec<_>>());
    for n in 0..66_u64 {
        many.call(0, 1000 + n * 100, 50 + n, &format!("File_close,handle={}", n + 1));
        many.call(1, 1000 + n * 100, 50, &format!("File_close,handle={}", n + 1));
    }
    let s = many.summary();
    let closes: Vec<&IoCost> =
        s.costs.iter().filter(|cost| cost.function.as_deref() == Some("MPI_File_close")).collect();
    assert_eq!((closes.len(), closes[0].files), (1, 66), "{:?}", s.costs);
    assert!(
        closes[0].what.contains("132 calls of MPI_File_close on 66 files, ") && closes[0].what.contains("on tmp65"),
        "{closes:?}"
    );
    assert!(closes[0].what.starts_with("2 ranks spent 100 %") && closes[0].next.contains("fewer opens"), "{closes:?}");
}

#[test]
fn shares_of_calls_and_of_bytes_are_both_given() {
    let mut mixed = Profile::new(1, &["out.dat"]);
    mixed.access(0, 100, 10, "write_at_all", 0, MIB);
    (0..1024_u64).for_each(|n| {
        mixed.access(0, 1000 + n * 10, 5, "write_at", MIB + n * 1024, 1024);
    });
    let text = mixed.summary().text(100);
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.join(" ").contains("50 % of the bytes and less than 1 % of the accesses collective"), "{text}");
}

#[test]
fn the_advice_fits_the_calls_and_the_library() {
    let advice = |file: &str, calls: &dyn Fn(&mut Profile), function: &str| {
        let mut profile = Profile::new(2, &[file]);
        calls(&mut profile);
        let s = profile.summary();
        let found = s.costs.iter().find(|cost| cost.kind == "function" && cost.function.as_deref() == Some(function));
        found.unwrap_or_else(|| panic!("no {function} in {:?}", s.costs)).clone()
    };
    let views = |profile: &mut Profile| {
        (1..20_u64).for_each(|n| {
            profile.call(0, n * 100, 50, "File_set_view,handle=1,offset=0,etype=0,filetype=0");
        });
    };
    assert!(advice("a.dat", &views, "MPI_File_set_view").next.contains("set once"));
    assert!(!advice("a.h5", &views, "MPI_File_set_view").next.contains("set once"));
    let collective = |profile: &mut Profile| {
        for rank in 0..2 {
            (0..20_u64).for_each(|n| {
                profile.access(rank, 100 + n * 100, 50, "write_at_all", (rank as u64 * 20 + n) * 163_840, 163_840);
            });
        }
    };
    let found = advice("a.h5", &collective, "MPI_File_write_at_all").next;
    assert!(found.contains("medium size") && !found.contains("cb_nodes"), "{found}");
    let one = |profile: &mut Profile| {
        profile.access(0, 100, 50, "write_at", 0, 96);
    };
    let found = advice("a.dat", &one, "MPI_File_write_at").next;
    assert!(!found.contains("scattered") && !found.contains("collective"), "{found}");
    let open = |profile: &mut Profile| {
        profile.call(0, 100, 50, "File_open,handle=3,comm=0,file=0,mode=create;rdwr");
    };
    assert!(!advice("a.dat", &open, "MPI_File_open").next.contains("fewer files"));
    let failed = |profile: &mut Profile| {
        profile.call(0, 100, 50, "File_open,handle=3,comm=0,file=0,mode=rdwr,error=MPI_ERR_ACCESS");
    };
    assert!(advice("a.dat", &failed, "MPI_File_open").what.ends_with("1 call failed with MPI_ERR_ACCESS"));
}

/// With markers the cause is certain, and the datasets are named, whatever the name of the file.
#[test]
fn markers_name_the_datasets() {
    let mut marked = Profile::new(2, &["restart.0001"]);
    for rank in 0..2 {
        let from = rank as u64 * MIB;
        for (n, name) in ["/u", "/v", "/w"].iter().enumerate() {
            let (begin, at) = (n as u64 * 10_000, from + n as u64 * 2 * MIB);
            marked.call(rank, begin + 100, 0, &format!("Marker,name=H5Dcreate {name},flag=1"));
            marked.access(rank, begin + 200, 500, "write_at_all", at, MIB);
            marked.call(rank, begin + 800, 0, "Marker,flag=0");
            marked.call(rank, begin + 900, 0, &format!("Marker,name=H5Dwrite {name},flag=1"));
            marked.access(rank, begin + 1000, 500, "write_at_all", at, MIB);
            marked.call(rank, begin + 1600, 0, "Marker,flag=0");
        }
    }
    let s = marked.summary();
    let first = &s.costs[0];
    assert_eq!((first.kind, first.is_certain, first.bytes), ("fill_values", true, 6 * MIB), "{first:?}");
    assert!(first.what.contains("in restart.0001, datasets /u, /v and 1 more"), "{first:?}");
    // The same data written twice by the program is no fill value, also of one dataset.
    let mut twice = Profile::new(1, &["a.h5"]);
    twice.call(0, 10, 0, "Marker,name=H5Dwrite /u,flag=1");
    twice.access(0, 20, 10, "write_at", 0, MIB).access(0, 40, 10, "write_at", 0, MIB);
    twice.call(0, 60, 0, "Marker,flag=0");
    let s = twice.summary();
    assert!(s.costs[0].kind == "overwritten" && s.costs[0].what.contains(", dataset /u"), "{:?}", s.costs);
}
