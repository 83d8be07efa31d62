//! Extent of the preallocation, and its complete removal.

use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use beff_ffi::Comm;
use nix::sys::statfs::{statfs, TMPFS_MAGIC};

use super::*;
use crate::testing::{fill_stream, interleaved_pattern, pattern, scratch};
use crate::{driver, Batches, Direct, DriverOptions, FilePath, Latency, OpenFile, TransferBuffer};

const MIB: u64 = 1 << 20;
const DIRECT: FileRoute = FileRoute::Direct { align_bytes: 512 };
const BUFFERED: FileRoute = FileRoute::Buffered { reason: None };

#[test]
fn interleaved_ranks_span_the_range_of_all_and_others_their_own() {
    let batch = Batch { first_call: 2, calls: 3 };
    for rank in 0..3 {
        assert_eq!(interleaved_pattern(rank).byte_range(batch), (100 + 4 * 3 * 1032, 100 + 10 * 3 * 1032));
    }
    let segment =
        AccessPattern { base_bytes: MIB, rank: 1, ranks: 3, rank_distance_bytes: MIB, ..pattern(1032, 2, 10) };
    assert_eq!(segment.byte_range(batch), (MIB + 4 * 1032, MIB + 10 * 1032));
    assert!(interleaved_pattern(1).is_interleaved() && !segment.is_interleaved() && !pattern(8, 1, 1).is_interleaved());
}

/// For any pattern: exactly the calls that end at or below the given offset.
#[test]
fn calls_within_a_length_end_at_or_below_it() {
    let segment =
        AccessPattern { base_bytes: MIB, rank: 1, ranks: 3, rank_distance_bytes: MIB, ..pattern(1032, 2, 10) };
    for p in [pattern(8, 1, 9), pattern(MIB, 3, 9), segment, interleaved_pattern(0), interleaved_pattern(2)] {
        let end_after = |calls| p.byte_range(Batch { first_call: 0, calls }).1;
        assert_eq!((p.calls_within(0), p.calls_within(end_after(1) - 1)), (0, 0));
        for calls in 1..20 {
            for end in [end_after(calls), end_after(calls) + 1, end_after(calls + 1) - 1] {
                assert_eq!(p.calls_within(end), calls, "{p:?} up to {end}");
            }
        }
    }
}

/// By offset and length: whole blocks, chunks smaller than a block, and ranges shared by ranks are preallocated.
#[test]
fn chunks_that_share_blocks_are_not_preallocated_unless_interleaved() {
    let cuts = |p: AccessPattern| shares_blocks(&p, 4096);
    assert!([MIB + 8, 4104, 32776].into_iter().all(|chunk| cuts(pattern(chunk, 1, 9))));
    assert!([MIB, 4096, 1024, 1032, 8].into_iter().all(|chunk| !cuts(pattern(chunk, 1, 9))));
    assert!(cuts(AccessPattern { base_bytes: 512, ..pattern(MIB, 1, 9) }));
    let segment = AccessPattern { base_bytes: 64 * MIB, rank: 1, ranks: 3, ..pattern(MIB + 8, 1, 9) };
    assert!(cuts(segment) && !cuts(AccessPattern { chunk_bytes: MIB, stride_bytes: MIB, ..segment }));
    assert!(!cuts(interleaved_pattern(1)) && interleaved_pattern(1).is_interleaved());
    assert!(!shares_blocks(&pattern(4104, 1, 9), 0), "a file system without blocks");
}

#[test]
fn preallocation_grows_with_the_pattern_and_ends_with_it() {
    let of = |begin, end, needed, limit| target_end(begin..end, needed, limit, &(0..=4 * MIB));
    // As much again as the pattern so far.
    assert_eq!(of(0, 0, 8192, 1 << 40), 16384);
    assert_eq!(of(MIB, MIB, MIB + 8192, 1 << 40), MIB + 16384);
    // In whole units, and at least the batch.
    assert_eq!(of(0, 0, 1032, 1 << 40), 1032);
    assert_eq!(of(0, 0, 3 * 1032, 1 << 40), 4096);
    // Limited by the maximum.
    assert_eq!(of(0, 99 * MIB, 100 * MIB, 1 << 40), 104 * MIB);
    assert_eq!(target_end(0..99 * MIB, 100 * MIB, 1 << 40, &(0..=MAX_AHEAD_BYTES)), 200 * MIB);
    // A batch as long as the maximum needs no excess.
    assert_eq!(of(0, 96 * MIB, 100 * MIB, 1 << 40), 100 * MIB);
    // Not beyond the last possible call.
    assert_eq!(of(0, 99 * MIB, 100 * MIB, 101 * MIB), 101 * MIB);
    assert_eq!(of(0, 99 * MIB, 100 * MIB, 100 * MIB), 100 * MIB);
    assert_eq!(of(0, 99 * MIB, 100 * MIB, 100 * MIB + 1032), 100 * MIB);
    // At least the minimum, but not beyond the last call either.
    let of = |begin, end, needed, limit| target_end(begin..end, needed, limit, &(8 * MIB..=16 * MIB));
    assert_eq!((of(MIB, MIB, 2 * MIB, 1 << 40), of(0, 9 * MIB, 10 * MIB, 1 << 40)), (10 * MIB, 20 * MIB));
    assert_eq!((of(MIB, MIB, 2 * MIB, 3 * MIB), of(0, 0, 4096, 4096)), (3 * MIB, 4096));
}

/// For any batches: sufficient, at most twice the need, few calls, and no end inside the last sector.
#[test]
fn few_calls_preallocate_for_every_batch() {
    for (chunk, most_batch) in
        [(1024, 1), (1032, 1), (1032, 7), (32 << 10, 64), (MIB, 1), (8 * MIB, 4), (1032, 100_000)]
    {
        for (least, most) in [
            (0, MAX_COSTLY_AHEAD_BYTES),
            (0, MAX_AHEAD_BYTES),
            (MAX_COSTLY_AHEAD_BYTES, MAX_AHEAD_BYTES),
            (MIN_SEGMENT_AHEAD_BYTES, MAX_AHEAD_BYTES),
        ] {
            let limit = 4000 * chunk;
            let (mut end, mut needed, mut allocations, mut batches) = (0, 0, 0_u64, 0_u64);
            let mut calls = 1;
            while needed < limit {
                needed = (needed + calls * chunk).min(limit);
                calls = (calls * 2).min(most_batch);
                batches += 1;
                if needed > end {
                    end = target_end(0..end, needed, limit, &(least..=most));
                    allocations += 1;
                }
                assert!(end >= needed && end <= limit && end - needed <= needed.clamp(least, most), "{chunk}");
                assert!(end == needed || end % AHEAD_ALIGN_BYTES == 0, "{chunk}: {end}");
            }
            let by_bytes = limit / most + 24;
            assert!(allocations <= by_bytes.min(batches), "{chunk}: {allocations} of {batches}");
        }
    }
}

/// A new file of this driver, direct, with this preallocation; None where direct I/O or fallocate is not available.
fn open(name: &str, path: &Path, preallocate: Preallocate) -> Option<Box<dyn OpenFile>> {
    if statfs(path.parent().unwrap()).unwrap().filesystem_type() == TMPFS_MAGIC {
        return None;
    }
    let options = DriverOptions { direct: Direct::Required, preallocate, ..DriverOptions::default() };
    let path = FilePath::of(path).unwrap();
    let request = OpenRequest { path: &path, mode: OpenMode::CreateNew, comm: &Comm::comm_self(), hints: &[] };
    let file = (driver(name).unwrap().create)(&options).open(&request).unwrap();
    file.support(&pattern(4096, 1, 1)).reason().is_none().then_some(file)
}

#[test]
fn the_file_is_longer_in_the_loop_and_trimmed_after_it() {
    let mut tried = 0;
    for name in ["posix", "uring"] {
        for (wanted, reported) in [
            (Preallocate::Native, "preallocated by fallocate"),
            (Preallocate::Auto, "preallocated by fallocate"),
            (Preallocate::Zeros, "preallocated by fallocate"),
            (Preallocate::Size, "preallocated by ftruncate"),
            (Preallocate::Off, "O_DIRECT"),
        ] {
            let dir = scratch();
            let path = dir.path().join("f");
            let Some(mut file) = open(name, &path, wanted) else { continue };
            tried += 1;
            assert_eq!(std::fs::metadata(&path).unwrap().len(), 0, "the check leaves nothing");
            let mut begin = 0;
            for (chunk, calls) in [(4096, 300), (1024, 600), (1032, 600), (4104, 100), (1 << 16, 9)] {
                let mut buffer = TransferBuffer::new(256 << 10, chunk).unwrap();
                fill_stream(&mut buffer, 7);
                let p = AccessPattern { base_bytes: begin, stream_bytes: begin, ..pattern(chunk, 1, calls * 2) };
                let in_force = file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap();
                assert!(in_force.strategy.contains(reported), "{}", in_force.strategy);
                assert_eq!(in_force.strategy.contains("preallocated"), wanted != Preallocate::Off);
                let small = wanted == Preallocate::Zeros && chunk < 4096;
                assert_eq!(in_force.strategy.contains("zeros"), small, "{}", in_force.strategy);
                // Two rounds, as with several backends.
                for first_call in [0, calls / 2] {
                    let batch = Batch { first_call, calls: calls / 2 };
                    file.preallocate(batch).unwrap();
                    let reached = begin + (first_call + calls / 2) * chunk;
                    let length = std::fs::metadata(&path).unwrap().len();
                    match wanted {
                        Preallocate::Off => assert!(length < reached),
                        _ => assert!(length >= reached, "{name} {wanted:?}: {length} of {reached}"),
                    }
                    file.write(Batches::new(batch, &mut Latency::off()), &buffer).unwrap();
                    assert_eq!(file.trim().unwrap(), None);
                    file.sync().unwrap();
                    assert_eq!(std::fs::metadata(&path).unwrap().len(), reached, "{name} {wanted:?}");
                }
                begin += calls / 2 * 2 * chunk;
            }
            file.close().unwrap();
            let bytes = std::fs::read(&path).unwrap();
            assert!(bytes.iter().all(|byte| *byte != 0), "{name} {wanted:?}: zeros on data");
            let reported = std::fs::metadata(&path).unwrap();
            assert_eq!(reported.len(), begin);
            assert!(
                reported.blocks() * 512 <= begin.next_multiple_of(4096) + 65536,
                "blocks beyond the data were deallocated too"
            );
        }
    }
    if tried == 0 {
        println!("SKIPPED: no direct I/O here");
    }
}

fn range_of(p: &AccessPattern) -> PreallocatedRange {
    let (begin, limit) = p.byte_range(Batch { first_call: 0, calls: p.max_calls });
    PreallocatedRange {
        pattern: *p,
        begin,
        limit,
        initial_bytes: 0,
        required_end: begin,
        allocated_end: begin,
        ahead_bytes: 0..=MAX_AHEAD_BYTES,
        has_excess: false,
        zero_block_bytes: None,
        stop_reason: None,
    }
}

#[test]
fn only_the_last_rank_truncates_a_shared_file_to_its_length() {
    let file = tempfile::tempfile().unwrap();
    for rank in 0..3 {
        let mut range = range_of(&interleaved_pattern(rank));
        range.required_end = range.pattern.byte_range(Batch { first_call: 0, calls: 1 }).1;
        range.extend_length(&file).unwrap();
        assert_eq!(file_bytes(&file).unwrap() > 0, rank == 2);
        range.trim(&file).unwrap();
    }
    assert_eq!(file_bytes(&file).unwrap(), 100 + 6 * 1032);
    // The file is never shortened.
    file.set_len(MIB).unwrap();
    let mut range = range_of(&interleaved_pattern(2));
    range.required_end = 5000;
    range.extend_length(&file).unwrap();
    assert_eq!(file_bytes(&file).unwrap(), MIB);
}

/// The rank that wrote the last sector has preallocated nothing itself.
#[test]
fn a_last_sector_beyond_the_data_is_trimmed_by_its_writer() {
    let dir = scratch();
    let files = FdPair::open_alone(&dir.path().join("f"), OpenMode::CreateNew, Direct::Off).unwrap();
    for (pattern, length) in [(interleaved_pattern(1), 5000), (pattern(1032, 1, 9), 5120)] {
        let preallocated = PreallocatedRange { required_end: 5000, ..range_of(&pattern) };
        let mut preallocation = Preallocation {
            method: PreallocationMethod::Fallocate,
            range: Some(preallocated),
            ..Preallocation::disabled()
        };
        files.buffered.set_len(5120).unwrap();
        preallocation.trim(&files).unwrap();
        assert_eq!(file_bytes(&files.buffered).unwrap(), 5120);
        preallocation.trim_shared(&files).unwrap();
        assert_eq!(file_bytes(&files.buffered).unwrap(), length);
    }
}

/// Otherwise data that another rank wrote beyond would be truncated.
#[test]
fn lockstep_is_needed_where_one_rank_sets_the_length() {
    let segment =
        AccessPattern { base_bytes: MIB, rank: 1, ranks: 3, rank_distance_bytes: MIB, ..pattern(1024, 1, 1024) };
    let dir = scratch();
    let files = FdPair::open_alone(&dir.path().join("f"), OpenMode::CreateNew, Direct::Off).unwrap();
    for (p, keeps) in
        [(interleaved_pattern(0), true), (interleaved_pattern(2), true), (segment, false), (pattern(1024, 1, 9), false)]
    {
        for (means, makes_length) in [
            (PreallocationMethod::Truncate, true),
            (PreallocationMethod::Fallocate, false),
            (PreallocationMethod::Disabled, false),
        ] {
            let mut preallocation = Preallocation { method: means, ..Preallocation::disabled() };
            assert!(!preallocation.needs_lockstep(), "no pattern is prepared");
            preallocation.prepare(&files, &p, Direction::Write, WritePath::individual(&DIRECT)).unwrap();
            assert_eq!(preallocation.needs_lockstep(), keeps && makes_length);
            preallocation.prepare(&files, &p, Direction::Read, WritePath::individual(&DIRECT)).unwrap();
            assert!(!preallocation.needs_lockstep());
        }
    }
}

/// Excess blocks of a segment are deallocated, those of its data and of the other ranks stay, and the last rank truncates the file.
#[test]
fn a_segment_trims_blocks_beyond_its_own_data() {
    let segment = |rank: u64| AccessPattern {
        base_bytes: rank * MIB,
        rank,
        ranks: 3,
        rank_distance_bytes: MIB,
        ..pattern(1024, 1, 1024)
    };
    let file = tempfile::tempfile().unwrap();
    let mut rooms: Vec<PreallocatedRange> = (0..3).map(|rank| range_of(&segment(rank))).collect();
    for (rank, range) in (0..3).zip(&mut rooms) {
        range.required_end = rank * MIB + 12 * 1024;
        range.allocate_blocks(&file).unwrap();
        assert_eq!(range.allocated_end, rank * MIB + 24 * 1024);
        file.write_all_at(&[7; 12 * 1024], rank * MIB).unwrap();
    }
    let blocks = || file.metadata().unwrap().blocks() * 512;
    assert!(blocks() >= 3 * 24 * 1024);
    for (rank, range) in (0..3).zip(&mut rooms) {
        range.trim(&file).unwrap();
        assert_eq!((range.allocated_end, range.has_excess), (range.required_end, false));
        assert_eq!(file_bytes(&file).unwrap(), 2 * MIB + if rank < 2 { 24 } else { 12 } * 1024);
    }
    let allocated = blocks();
    assert!((3 * 12 * 1024..3 * 24 * 1024).contains(&allocated), "{allocated}");
    let mut data = vec![0; 12 * 1024];
    for rank in 0..3 {
        file.read_exact_at(&mut data, rank * MIB).unwrap();
        assert!(data.iter().all(|byte| *byte == 7));
    }
}

/// Never into the segment of the next rank, for any batch length.
#[test]
fn a_segment_is_not_preallocated_beyond_its_last_call() {
    let segment =
        AccessPattern { base_bytes: MIB, rank: 1, ranks: 3, rank_distance_bytes: MIB, ..pattern(1024, 1, 1024) };
    let mut range = range_of(&segment);
    for calls in [1, 7, 300, 700, 1023, 1024] {
        range.required_end = MIB + calls * 1024;
        if range.required_end > range.allocated_end {
            range.allocated_end = range.target_end();
        }
        assert!((range.required_end..=2 * MIB).contains(&range.allocated_end), "{calls}");
    }
    let file = tempfile::tempfile().unwrap();
    let mut range = range_of(&segment);
    range.required_end = MIB + 8192;
    range.extend_length(&file).unwrap();
    assert!(!range.has_excess && range.allocated_end == range.required_end && file_bytes(&file).unwrap() == 0);
}

#[test]
fn data_from_before_a_pattern_is_never_truncated() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(2 * MIB).unwrap();
    let mut range = PreallocatedRange {
        initial_bytes: MIB,
        required_end: 4096,
        has_excess: true,
        ..range_of(&pattern(4096, 1, 10))
    };
    range.trim(&file).unwrap();
    assert_eq!(file_bytes(&file).unwrap(), MIB);
}

#[test]
fn refusals_and_full_disks_are_distinguished() {
    let of = |errno: Errno| io::Error::from(errno);
    assert!(is_unsupported(&of(Errno::EOPNOTSUPP)) && !is_out_of_space(&of(Errno::EOPNOTSUPP)));
    assert!([Errno::ENOSPC, Errno::EDQUOT, Errno::EFBIG]
        .into_iter()
        .all(|e| is_out_of_space(&of(e)) && !is_unsupported(&of(e))));
    assert!(!is_unsupported(&of(Errno::EIO)) && !is_out_of_space(&of(Errno::EIO)));
    let null = File::options().write(true).open("/dev/null").unwrap();
    let reason = support::refusal_reason(&null).unwrap().unwrap();
    assert!(reason.starts_with("fallocate refused by ") && reason.contains("os error"), "{reason}");
}

#[test]
fn the_support_check_counts_blocks_and_leaves_nothing() {
    let mut places = vec![std::env::temp_dir(), "/dev/shm".into()];
    places.retain(|place| place.exists());
    for place in places {
        let file = tempfile::tempfile_in(&place).unwrap();
        let before = file.metadata().unwrap();
        let refusal = support::refusal_reason(&file).unwrap();
        assert!(
            refusal.is_none_or(|why| why.starts_with("fallocate refused by ") || why.contains("by zfs")),
            "{place:?}"
        );
        let after = file.metadata().unwrap();
        assert_eq!((after.len(), after.blocks()), (before.len(), before.blocks()), "{place:?}");
    }
}

/// Where allocation may write zeros into each block, little is preallocated in vain.
#[test]
fn large_preallocation_only_where_allocation_is_cheap() {
    for path in ["/dev/shm", "/proc"].map(Path::new).into_iter().filter(|path| path.exists()) {
        assert!(is_allocation_costly(&File::open(path).unwrap()), "{path:?}");
    }
    let dir = scratch();
    let files = FdPair::open_alone(&dir.path().join("f"), OpenMode::CreateNew, Direct::Off).unwrap();
    let own = pattern(4096, 1, 9);
    let segment = AccessPattern { base_bytes: MIB, rank: 1, ranks: 3, rank_distance_bytes: MIB, ..own };
    for (is_dear, pattern, ahead_bytes) in [
        (false, own, 0..=MAX_AHEAD_BYTES),
        (false, segment, MIN_SEGMENT_AHEAD_BYTES..=MAX_AHEAD_BYTES),
        (false, interleaved_pattern(1), 0..=MAX_AHEAD_BYTES),
        (true, own, 0..=MAX_COSTLY_AHEAD_BYTES),
        (true, segment, 0..=MAX_COSTLY_AHEAD_BYTES),
    ] {
        let mut preallocation =
            Preallocation { method: PreallocationMethod::Fallocate, is_costly: is_dear, ..Preallocation::disabled() };
        preallocation.prepare(&files, &pattern, Direction::Write, WritePath::aggregated(true)).unwrap();
        assert_eq!(preallocation.range.unwrap().ahead_bytes, ahead_bytes);
    }
}

/// Pipelined batches need no call within the preallocated range, and their data is not truncated.
#[test]
fn pipelined_batches_use_preallocated_blocks_and_keep_their_data() {
    const CHUNK: u64 = 4096;
    for wanted in [Preallocate::Native, Preallocate::Size, Preallocate::Zeros, Preallocate::Off] {
        let dir = scratch();
        let path = dir.path().join("f");
        let Some(mut file) = open("uring", &path, wanted) else {
            println!("SKIPPED: no direct I/O here");
            return;
        };
        let mut buffer = TransferBuffer::new(256 << 10, CHUNK).unwrap();
        fill_stream(&mut buffer, 7);
        let p = pattern(CHUNK, 1, 1000);
        let prepared = file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap();
        assert!(file.protocol().pipelined, "{wanted:?}: {}", prepared.strategy);
        let (mut done, mut makes) = (0, 0);
        while done < 500 {
            let batch = Batch { first_call: done, calls: 1 };
            let most = file.preallocate(batch).unwrap();
            makes += 1;
            assert!(most > done, "{wanted:?}: {most} behind {done}");
            let mut calls = 1;
            let mut next = |_| {
                let more = done + calls < most.min(500);
                calls += u64::from(more);
                more.then_some(1)
            };
            let moved = file.write(Batches::new(batch, &mut Latency::off()).with_next(&mut next), &buffer).unwrap();
            assert_eq!(moved, calls * CHUNK);
            done += calls;
        }
        assert!(if wanted == Preallocate::Off { makes == 1 } else { (2..=10).contains(&makes) }, "{wanted:?}: {makes}");
        file.trim().unwrap();
        file.sync().unwrap();
        file.close().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len() as u64, 500 * CHUNK, "{wanted:?}");
        assert!(bytes.iter().all(|byte| *byte != 0), "{wanted:?}: zeros on data");
    }
}

#[test]
fn only_direct_writes_are_refused_or_described() {
    let reason = String::from("because");
    let preallocation = |by_name| Preallocation {
        method: PreallocationMethod::Refused { reason: reason.clone() },
        is_explicit: by_name,
        ..Preallocation::disabled()
    };
    assert_eq!(preallocation(false).unsupported(), None);
    assert!(preallocation(true).unsupported().unwrap().contains("because; use --preallocate auto"));
    let dir = scratch();
    let files = FdPair::open_alone(&dir.path().join("f"), OpenMode::CreateNew, Direct::Off).unwrap();
    let p = pattern(4096, 1, 1);
    for (direction, route, by_name, expected) in [
        (Direction::Write, DIRECT, false, ", not preallocated: because"),
        (Direction::Write, BUFFERED, false, ""),
        (Direction::Write, BUFFERED, true, ", not preallocated: not direct"),
        (Direction::Read, DIRECT, true, ""),
    ] {
        let mut preallocation = preallocation(by_name);
        preallocation.prepare(&files, &p, direction, WritePath::individual(&route)).unwrap();
        assert_eq!(preallocation.description(), expected);
        preallocation.extend(&files, Batch { first_call: 0, calls: 1 }).unwrap();
        preallocation.trim(&files).unwrap();
        assert_eq!(file_bytes(&files.buffered).unwrap(), 0);
    }
}

fn is_preallocated(preallocation: &Preallocation) -> bool {
    preallocation.covered_calls() < u64::MAX
}

/// Chunks larger than a block, but not whole blocks: preallocated on explicit request only.
#[test]
fn chunks_that_share_blocks_are_preallocated_only_on_request() {
    let dir = scratch();
    let files = FdPair::open_alone(&dir.path().join("f"), OpenMode::CreateNew, Direct::Off).unwrap();
    let block = files.buffered.metadata().unwrap().blksize();
    let behind = |bytes| AccessPattern { base_bytes: bytes, stream_bytes: bytes, ..pattern(2 * block, 1, 1) };
    let edges = |align_bytes| FileRoute::DirectEdges { align_bytes };
    for (p, route, cuts) in [
        (pattern(block + 8, 1, 1), edges(512), true),
        (pattern(block + 8, 1, 1), edges(block), false),
        (behind(512), DIRECT, true),
        (behind(512), edges(block), false),
        (behind(block), DIRECT, false),
        (pattern(8, 1, 1), edges(512), false),
    ] {
        for by_name in [false, true] {
            let mut preallocation = Preallocation {
                method: PreallocationMethod::Fallocate,
                is_explicit: by_name,
                ..Preallocation::disabled()
            };
            preallocation.prepare(&files, &p, Direction::Write, WritePath::individual(&route)).unwrap();
            assert_eq!(is_preallocated(&preallocation), by_name || !cuts, "{p:?} {route:?}");
            let expected = if is_preallocated(&preallocation) {
                "preallocated by fallocate"
            } else {
                "chunks begin or end inside blocks of"
            };
            assert!(preallocation.description().contains(expected), "{}", preallocation.description());
        }
    }
}
