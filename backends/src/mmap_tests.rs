use super::*;
use crate::error::Cause;
use crate::testing::{fill, open_alone, pattern, scratch, stream_byte};
use crate::{Batches, CallForm, CallStyle, OpenMode};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

const PERIOD: u64 = 5 * 4096;

fn open(path: &Path, mode: OpenMode) -> Box<dyn OpenFile> {
    open_alone("mmap", path, mode, Direct::Off, 1).unwrap().unwrap()
}

fn ring_for(p: &Pattern) -> Ring {
    let mut ring = Ring::new(PERIOD, p.call_bytes()).unwrap();
    fill(&mut ring, 3);
    ring
}

/// Prepares and writes in these batches.
fn write(file: &mut dyn OpenFile, p: &Pattern, batches: &[u64]) -> InForce {
    let mut ring = ring_for(p);
    let told = file.prepare(p, Direction::Write, &mut ring, &[]).unwrap();
    let mut first_call = 0;
    for calls in batches {
        let batch = Batch { first_call, calls: *calls };
        file.preallocate(batch).unwrap();
        assert_eq!(file.write(Batches::new(batch, &mut Latency::off()), &ring).unwrap(), calls * p.call_bytes());
        first_call += calls;
    }
    file.sync().unwrap();
    told
}

/// What posix leaves of the same batches.
fn by_posix(path: &Path, patterns: &[Pattern], calls: u64) -> Vec<u8> {
    let mut file = open_alone("posix", path, OpenMode::CreateNew, Direct::Off, 1).unwrap().unwrap();
    for p in patterns {
        let mut ring = ring_for(p);
        file.prepare(p, Direction::Write, &mut ring, &[]).unwrap();
        file.write(Batches::new(Batch { first_call: 0, calls }, &mut Latency::off()), &ring).unwrap();
    }
    file.close().unwrap();
    std::fs::read(path).unwrap()
}

/// Rank `rank` of three with odd chunks side by side behind something odd.
fn scattered(rank: u64, max_calls: u64) -> Pattern {
    let base_bytes = 5000 + rank * 1032;
    let (origin_bytes, stride_bytes) = (5000, 3 * 1032);
    let p = pattern(1032, 3, max_calls);
    Pattern { base_bytes, origin_bytes, stride_bytes, rank, ranks: 3, rank_distance_bytes: 1032, stream_bytes: 8, ..p }
}

#[test]
fn interleaved_ranks_leave_the_file_that_posix_leaves() {
    let dir = scratch();
    let patterns = [0, 1, 2].map(|rank| scattered(rank, 40));
    let expected = by_posix(&dir.path().join("p"), &patterns, 40);
    let path = dir.path().join("m");
    open(&path, OpenMode::CreateNew).close().unwrap();
    for (p, batches) in patterns.iter().zip([&[1, 2, 4, 33][..], &[40], &[39, 1]]) {
        let mut file = open(&path, OpenMode::Update);
        write(file.as_mut(), p, batches);
        file.close().unwrap();
    }
    assert_eq!(std::fs::read(&path).unwrap(), expected);

    // The same where the file system cannot reserve: the zeros of one rank must spare what others have stored.
    let path = dir.path().join("z");
    open(&path, OpenMode::CreateNew).close().unwrap();
    for p in &patterns {
        let files = FdPair::open_alone(&path, OpenMode::Update, Direct::Off).unwrap();
        let mut file = MmapFile::new(files, false, p.rank, p.ranks).unwrap();
        file.has_fallocate = Some(false);
        let told = write(&mut file, p, &[3, 37]);
        assert!(told.strategy.contains("zeros"), "{}", told.strategy);
    }
    assert_eq!(std::fs::read(&path).unwrap(), expected);
}

#[test]
fn a_segment_at_an_odd_offset_and_its_length() {
    let dir = scratch();
    let p = Pattern { base_bytes: 123_456, stream_bytes: 456, ..pattern(5000, 1, 100) };
    let expected = by_posix(&dir.path().join("p"), &[p], 9);
    let path = dir.path().join("m");
    let mut file = open(&path, OpenMode::CreateNew);
    let told = write(file.as_mut(), &p, &[1, 3, 5]);
    assert!(told.strategy.contains("reserved before each batch"), "{}", told.strategy);
    assert_eq!(told.direct, Some(false));
    file.close().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), expected);

    // What is there needs no room, and does not become longer.
    let mut file = open(&path, OpenMode::Update);
    let told = write(file.as_mut(), &Pattern { max_calls: 9, ..p }, &[4, 5]);
    assert!(told.strategy.contains("blocks are there"), "{}", told.strategy);
    file.close().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), expected);
}

#[test]
fn reads_what_is_there_and_times_each_call() {
    let dir = scratch();
    let path = dir.path().join("f");
    let p = Pattern { base_bytes: 4097, stride_bytes: 2048, stream_bytes: 16, ..pattern(1032, 2, 7) };
    write(open(&path, OpenMode::CreateNew).as_mut(), &p, &[7]);
    let mut file = open(&path, OpenMode::ReadOnly);
    let mut ring = ring_for(&p);
    ring.bytes_mut().fill(0);
    let told = file.prepare(&p, Direction::Read, &mut ring, &[]).unwrap();
    assert!(told.strategy.contains("out of a shared mapping"), "{}", told.strategy);
    let mut latency = Latency::on();
    for batch in [Batch { first_call: 0, calls: 2 }, Batch { first_call: 2, calls: 5 }] {
        file.read(Batches::new(batch, &mut latency), &mut ring).unwrap();
    }
    assert_eq!(latency.histogram().unwrap().len(), 7);
    let seen = (0..7).flat_map(|call| {
        let position = p.stream_position(call);
        ring.window(position, p.call_bytes() as usize).iter().zip(position..)
    });
    for (byte, position) in seen {
        assert_eq!(*byte, stream_byte(3, position, PERIOD), "{position}");
    }
    file.close().unwrap();
}

#[test]
fn the_end_of_the_file_is_a_short_read() {
    let dir = scratch();
    let path = dir.path().join("f");
    std::fs::write(&path, vec![1; 10_000]).unwrap();
    let mut file = open(&path, OpenMode::ReadOnly);
    let p = pattern(4096, 1, 100);
    let mut ring = ring_for(&p);
    file.prepare(&p, Direction::Read, &mut ring, &[]).unwrap();
    let error = file.read(Batches::new(Batch { first_call: 0, calls: 3 }, &mut Latency::off()), &mut ring).unwrap_err();
    assert_eq!((error.cause, error.offset_bytes), (Cause::Short, Some(8192)));
    assert_eq!(error.expected_got_bytes, Some((4096, 10_000 - 8192)));
}

#[test]
fn without_room_or_preparation_nothing_is_touched() {
    let dir = scratch();
    let path = dir.path().join("f");
    let mut file = open(&path, OpenMode::CreateNew);
    let p = pattern(4096, 1, 4);
    let mut ring = ring_for(&p);
    let batch = Batch { first_call: 0, calls: 1 };
    let mut off = Latency::off();
    assert!(file.preallocate(batch).unwrap_err().text.contains("prepare"));
    assert!(file.write(Batches::new(batch, &mut off), &ring).unwrap_err().text.contains("prepare"));
    file.prepare(&p, Direction::Write, &mut ring, &[]).unwrap();
    let error = file.write(Batches::new(batch, &mut off), &ring).unwrap_err();
    assert!(error.cause == Cause::Short && error.text.contains("no room"), "{error}");
    assert!(
        file.read(Batches::new(batch, &mut off), &mut ring).unwrap_err().text.contains("prepare"),
        "prepared for writing"
    );
    file.prepare(&p, Direction::Read, &mut ring, &[]).unwrap();
    assert!(
        file.write(Batches::new(batch, &mut off), &ring).unwrap_err().text.contains("prepare"),
        "prepared for reading"
    );
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
}

#[test]
fn windows_slide_over_a_long_file() {
    let dir = scratch();
    let path = dir.path().join("f");
    // Three windows; the file is sparse but for the chunks.
    let p = Pattern { base_bytes: 8, stride_bytes: (100 << 20) + 8, ..pattern(4096, 1, 7) };
    let mut file = open(&path, OpenMode::CreateNew);
    File::options().write(true).open(&path).unwrap().set_len(1 << 30).unwrap();
    let mut ring = ring_for(&p);
    file.prepare(&p, Direction::Write, &mut ring, &[]).unwrap();
    // No preallocate(): it would reserve what lies between the chunks as well.
    file.write(Batches::new(Batch { first_call: 0, calls: 7 }, &mut Latency::off()), &ring).unwrap();
    file.sync().unwrap();
    ring.bytes_mut().fill(0);
    file.prepare(&p, Direction::Read, &mut ring, &[]).unwrap();
    file.read(Batches::new(Batch { first_call: 0, calls: 7 }, &mut Latency::off()), &mut ring).unwrap();
    for (at, byte) in ring.bytes()[..PERIOD as usize].iter().enumerate() {
        assert_eq!(*byte, stream_byte(3, at as u64, PERIOD), "{at}");
    }
    file.close().unwrap();
}

#[test]
fn a_read_only_file_cannot_be_prepared_for_writing() {
    let dir = scratch();
    let path = dir.path().join("f");
    std::fs::write(&path, vec![1; 8192]).unwrap();
    let mut file = open(&path, OpenMode::ReadOnly);
    let p = pattern(4096, 1, 2);
    let error = file.prepare(&p, Direction::Write, &mut ring_for(&p), &[]).unwrap_err();
    assert_eq!((error.operation, error.cause), ("mmap", Cause::Path));
}

/// A memory file system refuses at once what is longer than all of it.
#[test]
fn no_room_is_no_space_with_the_offset() {
    let shm = Path::new("/dev/shm");
    let all = nix::sys::statvfs::statvfs(shm).map_or(0, |facts| facts.blocks() * facts.fragment_size());
    if all == 0 || !in_memory(shm) {
        return println!("SKIPPED: /dev/shm is no memory file system with a size");
    }
    let dir = tempfile::tempdir_in(shm).unwrap();
    let mut file = open(&dir.path().join("f"), OpenMode::CreateNew);
    let p = Pattern { base_bytes: 8192, ..pattern(1 << 20, 1, (2 * all) >> 20) };
    let mut ring = ring_for(&p);
    file.prepare(&p, Direction::Write, &mut ring, &[]).unwrap();
    let error = file.preallocate(Batch { first_call: 0, calls: p.max_calls }).unwrap_err();
    assert_eq!((error.operation, error.cause, error.offset_bytes), ("fallocate", Cause::NoSpace, Some(8192)));
}

#[test]
fn sync_leaves_no_dirty_page() {
    let dir = scratch();
    let path = dir.path().join("f");
    let mut file = open(&path, OpenMode::CreateNew);
    let p = pattern(64 << 10, 1, 16);
    let mut ring = ring_for(&p);
    file.prepare(&p, Direction::Write, &mut ring, &[]).unwrap();
    for first_call in [0, 8] {
        let batch = Batch { first_call, calls: 8 };
        file.preallocate(batch).unwrap();
        file.write(Batches::new(batch, &mut Latency::off()), &ring).unwrap();
        assert!(dirty_kb(&path) > 0);
        file.sync().unwrap();
        if in_memory(&path) {
            return println!("SKIPPED: {} is on a memory file system, whose pages stay dirty", path.display());
        }
        assert_eq!(dirty_kb(&path), 0, "after the sync of calls from {first_call}");
    }
}

fn in_memory(path: &Path) -> bool {
    use nix::sys::statfs::{statfs, TMPFS_MAGIC};
    statfs(path).unwrap().filesystem_type() == TMPFS_MAGIC
}

/// Dirty kilobytes of this process's mapping of a file.
fn dirty_kb(path: &Path) -> u64 {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let name = path.to_string_lossy().into_owned();
    let of_file = maps.lines().skip_while(|line| !line.contains(&name)).take_while(|line| !line.starts_with("VmFlags"));
    let dirty = of_file.filter(|line| line.contains("_Dirty:"));
    dirty.map(|line| line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()).sum()
}

const CHILD: &str = "BEFF_TEST_BUS_ERROR";

#[test]
fn what_a_mapping_cannot_do_is_refused() {
    let dir = scratch();
    let path = dir.path().join("f");
    std::fs::write(&path, [1; 8192]).unwrap();
    let mut file = open(&path, OpenMode::Update);
    let request = CallForm { style: CallStyle::Request, ..CallForm::default() };
    let refused = [
        Pattern { kind: AccessKind::SharedArrival, ..pattern(8, 1, 1) },
        Pattern { form: request, ..pattern(8, 1, 1) },
        Pattern { parts: Parts::Unequal, ranks: 2, ..pattern(8, 1, 1) },
        pattern(0, 1, 1),
    ];
    let mut ring = ring_for(&pattern(8, 1, 1));
    for p in refused {
        assert!(file.support(&p).reason().is_some(), "{p:?}");
        assert_eq!(file.prepare(&p, Direction::Read, &mut ring, &[]).unwrap_err().cause, Cause::Unsupported);
    }
    // A file of its own may have parts of any length.
    let odd = Pattern { parts: Parts::Unequal, base_bytes: 3, ..pattern(5, 1, 4) };
    file.prepare(&odd, Direction::Read, &mut ring, &[]).unwrap();
    assert_eq!(file.read(Batches::new(Batch { first_call: 0, calls: 4 }, &mut Latency::off()), &mut ring).unwrap(), 20);
}

/// Not a test by itself: what [`a_truncated_file_is_told_and_ends_in_a_bus_error`] starts in a process of its own.
#[test]
fn child_with_a_truncated_file() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let path = Path::new(&path);
    let mut file = open(path, OpenMode::Update);
    let p = pattern(4096, 1, 2);
    let mut ring = ring_for(&p);
    file.prepare(&p, Direction::Read, &mut ring, &[]).unwrap();
    file.read(Batches::new(Batch { first_call: 0, calls: 1 }, &mut Latency::off()), &mut ring).unwrap();
    File::options().write(true).open(path).unwrap().set_len(0).unwrap();
    let _ = file.read(Batches::new(Batch { first_call: 1, calls: 1 }, &mut Latency::off()), &mut ring);
    unreachable!("the read ends the process");
}

#[test]
fn a_truncated_file_is_told_and_ends_in_a_bus_error() {
    let dir = scratch();
    let path = dir.path().join("f");
    std::fs::write(&path, vec![1; 8192]).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "--nocapture", "mmap::tests::child_with_a_truncated_file"]).env(CHILD, &path);
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(libc::SIGBUS), "{text}");
    let start = format!("in {} at offset 4096: ", path.display());
    assert!(text.contains("bus error") && text.contains(&start) && text.contains("--backend posix"), "{text}");
}
