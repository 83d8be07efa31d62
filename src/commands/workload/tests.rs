//! Every workload is a valid profile with the bytes and offsets of its definition.

use beff_trace::text::read_all_ranks;
use beff_trace::{Call, Function, ProfileHead, TypeLayouts};

use super::{profile, Workload};
use crate::frame::benchmark::options_from_words;

fn text(words: &str) -> Result<String, String> {
    let args: super::WorkloadArgs = options_from_words(words.split_whitespace());
    profile(&args.workload).map_err(|e| e.to_string())
}

fn read(words: &str) -> (ProfileHead, Vec<Vec<Call>>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("w.csv");
    let text = text(words).unwrap();
    assert!(text.contains("# Source: ") && text.contains("made by: beff-raw workload"), "{words}");
    std::fs::write(&path, text).unwrap();
    let (head, calls) = read_all_ranks(&path).unwrap();
    assert!(head.is_handwritten(), "{words}");
    let mut ranks = vec![Vec::new(); head.processes.len()];
    for call in calls {
        let (rank, call) = call.unwrap_or_else(|e| panic!("{words}: {e}"));
        ranks[rank as usize].push(call);
    }
    // As `profile show` and a replay read it.
    beff_trace::summary::summarize(&path).unwrap_or_else(|e| panic!("{words}: {e}"));
    (head, ranks)
}

fn of_name<'a>(calls: &'a [Call], name: &str) -> Vec<&'a Call> {
    let (function, _) = Function::from_name(name).unwrap();
    calls.iter().filter(|call| call.function == function).collect()
}

/// The ranks together write each byte of a time step once, and the datatypes in memory have as many points.
#[test]
fn bt_io_tiles_its_grid() {
    for (class, points, ranks) in
        [("s", 12, 1_u64), ("S", 12, 4), ("S", 12, 9), ("S", 12, 16), ("W", 24, 64), ("A", 64, 4), ("A", 64, 25)]
    {
        let words = format!("btio --ranks {ranks} --class {class}");
        let (head, calls) = read(&words);
        let layouts = TypeLayouts::new(&head.types).unwrap();
        let (step_bytes, cells) = (40_u64 * points * points * points, ranks.isqrt());
        let mut seen = vec![false; step_bytes as usize];
        for rank in 0..ranks {
            let memory = (2 + rank * (2 * cells + 2) + 2 * cells) as u32;
            let view = memory + 1;
            assert_eq!(layouts.size(memory), layouts.size(view), "{words}");
            assert_eq!(layouts.extent(view), step_bytes as i64, "{words}: the next time step follows");
            for range in layouts.byte_ranges(view, 0, layouts.size(view), 0) {
                for byte in &mut seen[range.at as usize..(range.at as u64 + range.bytes) as usize] {
                    assert!(!std::mem::replace(byte, true), "{words}: written twice");
                }
            }
            let own = &calls[rank as usize];
            let dumps = if points == 12 { 12 } else { 40 };
            let writes = of_name(own, "File_write_at_all");
            assert_eq!((writes.len(), of_name(own, "File_read_at_all").len()), (dumps, dumps), "{words}");
            let etypes = (layouts.size(view) / 40) as i64;
            for (dump, write) in (0..).zip(writes) {
                assert_eq!((write.offset, write.count), (Some(dump * etypes), Some(1)), "{words}");
                assert_eq!(write.datatype, Some(memory), "{words}");
            }
        }
        assert!(seen.iter().all(|byte| *byte), "{words}: a hole");
    }
}

/// By hand: rank 0 of 4 has the cells (0, 0, 0) and (1, 1, 1) of 32^3 points each.
#[test]
fn bt_io_of_class_a_has_the_pieces_of_the_benchmark() {
    let (head, _) = read("btio --ranks 4 --class A");
    let layouts = TypeLayouts::new(&head.types).unwrap();
    let ranges: Vec<(i64, u64)> =
        layouts.byte_ranges(7, 0, layouts.size(7), 0).map(|range| (range.at, range.bytes)).collect();
    assert_eq!(ranges.len(), 2 * 32 * 32);
    assert_eq!(ranges[..2], [(0, 1280), (2560, 1280)]);
    assert_eq!(ranges[32], (64 * 64 * 40, 1280), "the next plane");
    assert_eq!(ranges[1024], (40 * (32 + 64 * 32 + 64 * 64 * 32), 1280), "the second cell");
    // The cells in memory have two layers of ghosts at each face, in an array of 37^3 points each.
    assert_eq!(layouts.true_span(6).start, 40 * (2 + 37 * 2 + 37 * 37 * 2));
}

#[test]
fn what_the_benchmark_cannot_run_is_refused_with_what_it_can() {
    let refused = |words: &str| text(words).unwrap_err();
    assert!(refused("btio --ranks 5").contains("4 or 9"));
    assert!(refused("btio --ranks 169 --class D").contains("at most 144 ranks"));
    assert!(text("btio --ranks 144 --class D").is_ok());
    assert!(refused("btio --ranks 25 --class S").contains("at most 16 ranks"));
    assert!(refused("ior-hard --ranks 1000 --segments 1000000").contains("--segments"));
    assert!(refused("checkpoint --ranks 1000 --size 1000T").contains("--checkpoints"));
    assert!(refused("strided --ranks 1048576 --block 1000000G --blocks 1").contains("--block"));
}

/// Bytes of each file, each written once, and as many read.
#[test]
fn the_other_workloads_write_each_byte_once_and_read_it() {
    let cases = [
        ("ior-hard --ranks 3 --segments 5", 3 * 5 * 47_008, 1),
        ("ior-easy --ranks 3 --size 5M", 5 << 20, 3),
        ("ior-easy --ranks 1 --size 2M", 2 << 20, 1),
        ("checkpoint --ranks 3 --size 1000 --header 10 --transfer 300 --checkpoints 2", 3010, 2),
        ("checkpoint --ranks 3 --layout n-n --size 1000 --header 10 --transfer 300 --checkpoints 2", 1010, 6),
        ("checkpoint --ranks 2 --size 4M --header 0 --checkpoints 1", 8 << 20, 1),
    ];
    for (words, file_bytes, files) in cases {
        let (head, ranks) = read(words);
        assert_eq!(head.files.len(), files, "{words}");
        let mut written = vec![vec![0_u8; file_bytes]; files];
        let mut reads = 0;
        for (rank, calls) in ranks.iter().enumerate() {
            let mut handles = std::collections::HashMap::new();
            for call in calls {
                if let (Some(handle), Some(file)) = (call.handle, call.file) {
                    handles.insert(handle, file);
                }
                let (Some(offset), Some(count), Some(handle)) = (call.offset, call.count, call.handle) else {
                    continue;
                };
                let range = offset as usize..(offset + count) as usize;
                let bytes = &mut written[handles[&handle] as usize][range];
                if call.function.name().contains("write") {
                    bytes.iter_mut().for_each(|byte| *byte += 1);
                } else {
                    reads += count as usize;
                    let is_own = handles[&handle] as usize == rank && ranks.len() > 1;
                    assert!(!is_own || !words.starts_with("ior-easy"), "{words}");
                }
            }
        }
        assert!(written.iter().flatten().all(|times| *times == 1), "{words}");
        assert!(reads > 0, "{words}");
    }
}

#[test]
fn the_strided_workload_is_the_published_one() {
    let (head, ranks) = read("strided --ranks 4 --block 4K --blocks 8");
    let layouts = TypeLayouts::new(&head.types).unwrap();
    assert_eq!((layouts.size(2), layouts.extent(2)), (4096, 16384));
    for (rank, calls) in (0..).zip(&ranks) {
        let writes: Vec<i64> = of_name(calls, "File_write_at").iter().map(|call| call.offset.unwrap()).collect();
        assert!(writes.into_iter().eq((8..16).map(|block| block * 16384 + rank * 4096)));
        assert_eq!(of_name(calls, "File_write_all").len(), 4);
    }
    let Workload::Strided(args) = options_from_words::<super::WorkloadArgs>("strided -n 4".split_whitespace()).workload
    else {
        panic!("another workload")
    };
    assert_eq!((args.block, args.per_call), (4096, 2));
}
