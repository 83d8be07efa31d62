//! How far room is made, and that nothing of it is left.

use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use beff_ffi::Comm;
use nix::sys::statfs::{statfs, TMPFS_MAGIC};

use super::*;
use crate::testing::{fill, pattern, scattered, scratch};
use crate::{driver, Batches, Direct, DriverOptions, FilePath, Latency, OpenFile, Ring};

const MIB: u64 = 1 << 20;
const DIRECT: Route = Route::Direct { align_bytes: 512 };
const BUFFERED: Route = Route::Buffered { reason: None };

#[test]
fn interleaved_ranks_reach_the_stretch_of_all_and_others_their_own() {
    let batch = Batch { first_call: 2, calls: 3 };
    for rank in 0..3 {
        assert_eq!(scattered(rank).reach(batch), (100 + 4 * 3 * 1032, 100 + 10 * 3 * 1032));
    }
    let segment = Pattern { base_bytes: MIB, rank: 1, ranks: 3, rank_distance_bytes: MIB, ..pattern(1032, 2, 10) };
    assert_eq!(segment.reach(batch), (MIB + 4 * 1032, MIB + 10 * 1032));
    assert!(scattered(1).is_interleaved() && !segment.is_interleaved() && !pattern(8, 1, 1).is_interleaved());
}

/// Whatever the pattern: as many calls as end there or before, and not one more.
#[test]
fn calls_within_a_length_are_those_that_reach_no_further() {
    let segment = Pattern { base_bytes: MIB, rank: 1, ranks: 3, rank_distance_bytes: MIB, ..pattern(1032, 2, 10) };
    for p in [pattern(8, 1, 9), pattern(MIB, 3, 9), segment, scattered(0), scattered(2)] {
        let reach = |calls| p.reach(Batch { first_call: 0, calls }).1;
        assert_eq!((p.calls_within(0), p.calls_within(reach(1) - 1)), (0, 0));
        for calls in 1..20 {
            for end in [reach(calls), reach(calls) + 1, reach(calls + 1) - 1] {
                assert_eq!(p.calls_within(end), calls, "{p:?} up to {end}");
            }
        }
    }
}

/// By their place and length, each for itself: what is whole blocks, what is smaller than one, and what ranks share have room.
#[test]
fn chunks_that_cut_blocks_have_none_unless_ranks_share_the_stretch() {
    let cuts = |p: Pattern| cuts_blocks(&p, 4096);
    assert!([MIB + 8, 4104, 32776].into_iter().all(|chunk| cuts(pattern(chunk, 1, 9))));
    assert!([MIB, 4096, 1024, 1032, 8].into_iter().all(|chunk| !cuts(pattern(chunk, 1, 9))));
    assert!(cuts(Pattern { base_bytes: 512, ..pattern(MIB, 1, 9) }));
    let segment = Pattern { base_bytes: 64 * MIB, rank: 1, ranks: 3, ..pattern(MIB + 8, 1, 9) };
    assert!(cuts(segment) && !cuts(Pattern { chunk_bytes: MIB, stride_bytes: MIB, ..segment }));
    assert!(!cuts(scattered(1)) && scattered(1).is_interleaved());
    assert!(!cuts_blocks(&pattern(4104, 1, 9), 0), "a file system without blocks");
}

#[test]
fn room_grows_with_the_pattern_and_ends_with_it() {
    let of = |begin, end, needed, limit| target(begin..end, needed, limit, &(0..=4 * MIB));
    // As far again as the pattern has come.
    assert_eq!(of(0, 0, 8192, 1 << 40), 16384);
    assert_eq!(of(MIB, MIB, MIB + 8192, 1 << 40), MIB + 16384);
    // In whole units, and the batch in any case.
    assert_eq!(of(0, 0, 1032, 1 << 40), 1032);
    assert_eq!(of(0, 0, 3 * 1032, 1 << 40), 4096);
    // At most so far.
    assert_eq!(of(0, 99 * MIB, 100 * MIB, 1 << 40), 104 * MIB);
    assert_eq!(target(0..99 * MIB, 100 * MIB, 1 << 40, &(0..=MOST_AHEAD_BYTES)), 200 * MIB);
    // A batch that is as long needs nothing ahead.
    assert_eq!(of(0, 96 * MIB, 100 * MIB, 1 << 40), 100 * MIB);
    // Not behind the last call that may be.
    assert_eq!(of(0, 99 * MIB, 100 * MIB, 101 * MIB), 101 * MIB);
    assert_eq!(of(0, 99 * MIB, 100 * MIB, 100 * MIB), 100 * MIB);
    assert_eq!(of(0, 99 * MIB, 100 * MIB, 100 * MIB + 1032), 100 * MIB);
    // At least so far, but not behind the last call either.
    let of = |begin, end, needed, limit| target(begin..end, needed, limit, &(8 * MIB..=16 * MIB));
    assert_eq!((of(MIB, MIB, 2 * MIB, 1 << 40), of(0, 9 * MIB, 10 * MIB, 1 << 40)), (10 * MIB, 20 * MIB));
    assert_eq!((of(MIB, MIB, 2 * MIB, 3 * MIB), of(0, 0, 4096, 4096)), (3 * MIB, 4096));
}

/// Whatever the batches: enough, no more than as much again, few calls, and no end inside of the last sector.
#[test]
fn a_loop_has_room_for_every_batch_by_few_calls() {
    for (chunk, most_batch) in
        [(1024, 1), (1032, 1), (1032, 7), (32 << 10, 64), (MIB, 1), (8 * MIB, 4), (1032, 100_000)]
    {
        for (least, most) in [
            (0, MOST_AHEAD_DEAR_BYTES),
            (0, MOST_AHEAD_BYTES),
            (MOST_AHEAD_DEAR_BYTES, MOST_AHEAD_BYTES),
            (LEAST_AHEAD_OF_SEGMENT_BYTES, MOST_AHEAD_BYTES),
        ] {
            let limit = 4000 * chunk;
            let (mut end, mut needed, mut made, mut batches) = (0, 0, 0_u64, 0_u64);
            let mut calls = 1;
            while needed < limit {
                needed = (needed + calls * chunk).min(limit);
                calls = (calls * 2).min(most_batch);
                batches += 1;
                if needed > end {
                    end = target(0..end, needed, limit, &(least..=most));
                    made += 1;
                }
                assert!(end >= needed && end <= limit && end - needed <= needed.clamp(least, most), "{chunk}");
                assert!(end == needed || end % AHEAD_UNIT_BYTES == 0, "{chunk}: {end}");
            }
            let by_bytes = limit / most + 24;
            assert!(made <= by_bytes.min(batches), "{chunk}: {made} of {batches}");
        }
    }
}

/// A new file of this driver, direct, with this room; None where direct I/O or fallocate is not to be had.
fn open(name: &str, path: &Path, preallocate: Preallocate) -> Option<Box<dyn OpenFile>> {
    if statfs(path.parent().unwrap()).unwrap().filesystem_type() == TMPFS_MAGIC {
        return None;
    }
    let options = DriverOptions { direct: Direct::Required, preallocate, ..DriverOptions::default() };
    let path = FilePath::of(path).unwrap();
    let request = OpenRequest { path: &path, mode: OpenMode::CreateNew, comm: &Comm::own(), hints: &[] };
    let file = (driver(name).unwrap().make)(&options).open(&request).unwrap();
    file.support(&pattern(4096, 1, 1)).reason().is_none().then_some(file)
}

#[test]
fn the_file_is_longer_in_the_loop_and_as_long_as_its_data_behind_it() {
    let mut tried = 0;
    for name in ["posix", "uring"] {
        for (wanted, told) in [
            (Preallocate::Native, "room made by fallocate"),
            (Preallocate::Auto, "room made by fallocate"),
            (Preallocate::Zeros, "room made by fallocate"),
            (Preallocate::Size, "room made by ftruncate"),
            (Preallocate::Off, "O_DIRECT"),
        ] {
            let dir = scratch();
            let path = dir.path().join("f");
            let Some(mut file) = open(name, &path, wanted) else { continue };
            tried += 1;
            assert_eq!(std::fs::metadata(&path).unwrap().len(), 0, "the trial leaves nothing");
            let mut begin = 0;
            for (chunk, calls) in [(4096, 300), (1024, 600), (1032, 600), (4104, 100), (1 << 16, 9)] {
                let mut ring = Ring::new(256 << 10, chunk).unwrap();
                fill(&mut ring, 7);
                let p = Pattern { base_bytes: begin, stream_bytes: begin, ..pattern(chunk, 1, calls * 2) };
                let in_force = file.prepare(&p, Direction::Write, &mut ring, &[]).unwrap();
                assert!(in_force.strategy.contains(told), "{}", in_force.strategy);
                assert_eq!(in_force.strategy.contains("room"), wanted != Preallocate::Off);
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
                    file.write(Batches::new(batch, &mut Latency::off()), &ring).unwrap();
                    assert_eq!(file.trim().unwrap(), None);
                    file.sync().unwrap();
                    assert_eq!(std::fs::metadata(&path).unwrap().len(), reached, "{name} {wanted:?}");
                }
                begin += calls / 2 * 2 * chunk;
            }
            file.close().unwrap();
            let bytes = std::fs::read(&path).unwrap();
            assert!(bytes.iter().all(|byte| *byte != 0), "{name} {wanted:?}: zeros on data");
            let told = std::fs::metadata(&path).unwrap();
            assert_eq!(told.len(), begin);
            assert!(
                told.blocks() * 512 <= begin.next_multiple_of(4096) + 65536,
                "blocks behind the data went back too"
            );
        }
    }
    if tried == 0 {
        println!("SKIPPED: no direct I/O here");
    }
}

fn made(p: &Pattern) -> Made {
    let (begin, limit) = p.reach(Batch { first_call: 0, calls: p.max_calls });
    Made {
        pattern: *p,
        begin,
        limit,
        length: 0,
        needed: begin,
        end: begin,
        ahead_bytes: 0..=MOST_AHEAD_BYTES,
        ahead: false,
        zero_block: None,
        ended: None,
    }
}

#[test]
fn only_the_last_rank_makes_a_shared_file_longer_by_its_length() {
    let file = tempfile::tempfile().unwrap();
    for rank in 0..3 {
        let mut room = made(&scattered(rank));
        room.needed = room.pattern.reach(Batch { first_call: 0, calls: 1 }).1;
        room.length(&file).unwrap();
        assert_eq!(length(&file).unwrap() > 0, rank == 2);
        room.cut(&file).unwrap();
    }
    assert_eq!(length(&file).unwrap(), 100 + 6 * 1032);
    // A shorter file is never wanted.
    file.set_len(MIB).unwrap();
    let mut room = made(&scattered(2));
    room.needed = 5000;
    room.length(&file).unwrap();
    assert_eq!(length(&file).unwrap(), MIB);
}

/// The rank that has written the last sector has made no room itself.
#[test]
fn a_last_sector_behind_the_data_is_cut_off_by_whoever_wrote_it() {
    let dir = scratch();
    let files = FdPair::open_alone(&dir.path().join("f"), OpenMode::CreateNew, Direct::Off).unwrap();
    for (pattern, length) in [(scattered(1), 5000), (pattern(1032, 1, 9), 5120)] {
        let made = Made { needed: 5000, ..made(&pattern) };
        let mut room = Room { means: Means::Blocks, made: Some(made), ..Room::none() };
        files.buffered.set_len(5120).unwrap();
        room.give_back(&files).unwrap();
        assert_eq!(super::length(&files.buffered).unwrap(), 5120);
        room.settle(&files).unwrap();
        assert_eq!(super::length(&files.buffered).unwrap(), length);
    }
}

/// What another rank has written further behind would be cut off.
#[test]
fn ranks_keep_step_where_one_sets_the_length_for_all() {
    let segment = Pattern { base_bytes: MIB, rank: 1, ranks: 3, rank_distance_bytes: MIB, ..pattern(1024, 1, 1024) };
    let dir = scratch();
    let files = FdPair::open_alone(&dir.path().join("f"), OpenMode::CreateNew, Direct::Off).unwrap();
    for (p, keeps) in [(scattered(0), true), (scattered(2), true), (segment, false), (pattern(1024, 1, 9), false)] {
        for (means, makes_length) in [(Means::Length, true), (Means::Blocks, false), (Means::Nothing, false)] {
            let mut room = Room { means, ..Room::none() };
            assert!(!room.keeps_step(), "nothing is prepared");
            room.prepare(&files, &p, Direction::Write, Writes::alone(&DIRECT)).unwrap();
            assert_eq!(room.keeps_step(), keeps && makes_length);
            room.prepare(&files, &p, Direction::Read, Writes::alone(&DIRECT)).unwrap();
            assert!(!room.keeps_step());
        }
    }
}

/// The blocks of a segment go back, those of its data and of the other ranks stay, and the last rank cuts the file off.
#[test]
fn a_segment_gives_back_what_is_ahead_of_its_own_data() {
    let segment = |rank: u64| Pattern {
        base_bytes: rank * MIB,
        rank,
        ranks: 3,
        rank_distance_bytes: MIB,
        ..pattern(1024, 1, 1024)
    };
    let file = tempfile::tempfile().unwrap();
    let mut rooms: Vec<Made> = (0..3).map(|rank| made(&segment(rank))).collect();
    for (rank, room) in (0..3).zip(&mut rooms) {
        room.needed = rank * MIB + 12 * 1024;
        room.blocks(&file).unwrap();
        assert_eq!(room.end, rank * MIB + 24 * 1024);
        file.write_all_at(&[7; 12 * 1024], rank * MIB).unwrap();
    }
    let blocks = || file.metadata().unwrap().blocks() * 512;
    assert!(blocks() >= 3 * 24 * 1024);
    for (rank, room) in (0..3).zip(&mut rooms) {
        room.cut(&file).unwrap();
        assert_eq!((room.end, room.ahead), (room.needed, false));
        assert_eq!(length(&file).unwrap(), 2 * MIB + if rank < 2 { 24 } else { 12 } * 1024);
    }
    let told = blocks();
    assert!((3 * 12 * 1024..3 * 24 * 1024).contains(&told), "{told}");
    let mut data = vec![0; 12 * 1024];
    for rank in 0..3 {
        file.read_exact_at(&mut data, rank * MIB).unwrap();
        assert!(data.iter().all(|byte| *byte == 7));
    }
}

/// Never into the segment of the next rank, however long the batches are.
#[test]
fn a_segment_has_nothing_behind_its_last_call() {
    let segment = Pattern { base_bytes: MIB, rank: 1, ranks: 3, rank_distance_bytes: MIB, ..pattern(1024, 1, 1024) };
    let mut room = made(&segment);
    for calls in [1, 7, 300, 700, 1023, 1024] {
        room.needed = MIB + calls * 1024;
        if room.needed > room.end {
            room.end = room.target();
        }
        assert!((room.needed..=2 * MIB).contains(&room.end), "{calls}");
    }
    let file = tempfile::tempfile().unwrap();
    let mut room = made(&segment);
    room.needed = MIB + 8192;
    room.length(&file).unwrap();
    assert!(!room.ahead && room.end == room.needed && length(&file).unwrap() == 0);
}

#[test]
fn what_was_there_before_a_pattern_is_never_cut_off() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(2 * MIB).unwrap();
    let mut room = Made { length: MIB, needed: 4096, ahead: true, ..made(&pattern(4096, 1, 10)) };
    room.cut(&file).unwrap();
    assert_eq!(length(&file).unwrap(), MIB);
}

#[test]
fn refusals_and_full_disks_are_told_apart() {
    let of = |errno: Errno| io::Error::from(errno);
    assert!(is_refusal(&of(Errno::EOPNOTSUPP)) && !is_full(&of(Errno::EOPNOTSUPP)));
    assert!([Errno::ENOSPC, Errno::EDQUOT, Errno::EFBIG].into_iter().all(|e| is_full(&of(e)) && !is_refusal(&of(e))));
    assert!(!is_refusal(&of(Errno::EIO)) && !is_full(&of(Errno::EIO)));
    let null = File::options().write(true).open("/dev/null").unwrap();
    let reason = trial::refusal(&null).unwrap().unwrap();
    assert!(reason.starts_with("fallocate refused by ") && reason.contains("os error"), "{reason}");
}

#[test]
fn blocks_that_are_made_are_believed_and_the_trial_leaves_nothing() {
    let mut places = vec![std::env::temp_dir(), "/dev/shm".into()];
    places.retain(|place| place.exists());
    for place in places {
        let file = tempfile::tempfile_in(&place).unwrap();
        let before = file.metadata().unwrap();
        let refusal = trial::refusal(&file).unwrap();
        assert!(
            refusal.is_none_or(|why| why.starts_with("fallocate refused by ") || why.contains("by zfs")),
            "{place:?}"
        );
        let after = file.metadata().unwrap();
        assert_eq!((after.len(), after.blocks()), (before.len(), before.blocks()), "{place:?}");
    }
}

/// Where zeros may be written into each block little is made for nothing.
#[test]
fn much_is_made_ahead_only_where_that_is_known_to_be_cheap() {
    for path in ["/dev/shm", "/proc"].map(Path::new).into_iter().filter(|path| path.exists()) {
        assert!(is_dear(&File::open(path).unwrap()), "{path:?}");
    }
    let dir = scratch();
    let files = FdPair::open_alone(&dir.path().join("f"), OpenMode::CreateNew, Direct::Off).unwrap();
    let own = pattern(4096, 1, 9);
    let segment = Pattern { base_bytes: MIB, rank: 1, ranks: 3, rank_distance_bytes: MIB, ..own };
    for (is_dear, pattern, ahead_bytes) in [
        (false, own, 0..=MOST_AHEAD_BYTES),
        (false, segment, LEAST_AHEAD_OF_SEGMENT_BYTES..=MOST_AHEAD_BYTES),
        (false, scattered(1), 0..=MOST_AHEAD_BYTES),
        (true, own, 0..=MOST_AHEAD_DEAR_BYTES),
        (true, segment, 0..=MOST_AHEAD_DEAR_BYTES),
    ] {
        let mut room = Room { means: Means::Blocks, is_dear, ..Room::none() };
        room.prepare(&files, &pattern, Direction::Write, Writes::combined(true)).unwrap();
        assert_eq!(room.made.unwrap().ahead_bytes, ahead_bytes);
    }
}

/// A batch that flows goes without a call as long as there is room, and what it has written is not cut off.
#[test]
fn what_flows_uses_room_that_was_made_before_and_keeps_its_data() {
    const CHUNK: u64 = 4096;
    for wanted in [Preallocate::Native, Preallocate::Size, Preallocate::Zeros, Preallocate::Off] {
        let dir = scratch();
        let path = dir.path().join("f");
        let Some(mut file) = open("uring", &path, wanted) else {
            println!("SKIPPED: no direct I/O here");
            return;
        };
        let mut ring = Ring::new(256 << 10, CHUNK).unwrap();
        fill(&mut ring, 7);
        let p = pattern(CHUNK, 1, 1000);
        let told = file.prepare(&p, Direction::Write, &mut ring, &[]).unwrap();
        assert!(file.protocol().pipelined, "{wanted:?}: {}", told.strategy);
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
            let moved = file.write(Batches::new(batch, &mut Latency::off()).followed_by(&mut next), &ring).unwrap();
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
fn only_what_goes_directly_is_refused_or_told() {
    let reason = String::from("because");
    let room = |by_name| Room { means: Means::Refused { reason: reason.clone() }, by_name, ..Room::none() };
    assert_eq!(room(false).unsupported(), None);
    assert!(room(true).unsupported().unwrap().contains("because; use --preallocate auto"));
    let dir = scratch();
    let files = FdPair::open_alone(&dir.path().join("f"), OpenMode::CreateNew, Direct::Off).unwrap();
    let p = pattern(4096, 1, 1);
    for (direction, route, by_name, told) in [
        (Direction::Write, DIRECT, false, ", no room made: because"),
        (Direction::Write, BUFFERED, false, ""),
        (Direction::Write, BUFFERED, true, ", no room made: not direct"),
        (Direction::Read, DIRECT, true, ""),
    ] {
        let mut room = room(by_name);
        room.prepare(&files, &p, direction, Writes::alone(&route)).unwrap();
        assert_eq!(room.told(), told);
        room.make(&files, Batch { first_call: 0, calls: 1 }).unwrap();
        room.give_back(&files).unwrap();
        assert_eq!(length(&files.buffered).unwrap(), 0);
    }
}

fn is_made(room: &Room) -> bool {
    room.calls() < u64::MAX
}

/// Larger than a block, and not in whole ones: room by name only.
#[test]
fn chunks_that_cut_blocks_have_no_room_unless_asked_for() {
    let dir = scratch();
    let files = FdPair::open_alone(&dir.path().join("f"), OpenMode::CreateNew, Direct::Off).unwrap();
    let block = files.buffered.metadata().unwrap().blksize();
    let behind = |bytes| Pattern { base_bytes: bytes, stream_bytes: bytes, ..pattern(2 * block, 1, 1) };
    let edges = |align_bytes| Route::DirectEdges { align_bytes };
    for (p, route, cuts) in [
        (pattern(block + 8, 1, 1), edges(512), true),
        (pattern(block + 8, 1, 1), edges(block), false),
        (behind(512), DIRECT, true),
        (behind(512), edges(block), false),
        (behind(block), DIRECT, false),
        (pattern(8, 1, 1), edges(512), false),
    ] {
        for by_name in [false, true] {
            let mut room = Room { means: Means::Blocks, by_name, ..Room::none() };
            room.prepare(&files, &p, Direction::Write, Writes::alone(&route)).unwrap();
            assert_eq!(is_made(&room), by_name || !cuts, "{p:?} {route:?}");
            let told =
                if is_made(&room) { "room made by fallocate" } else { "chunks begin or end inside of blocks of" };
            assert!(room.told().contains(told), "{}", room.told());
        }
    }
}
