use super::*;
use crate::error::FailureCause;
use crate::testing::{fill_stream, open_alone, pattern, scratch, stream_byte};
use crate::{AccessKind, Batches, CallForm, CallStyle, OpenMode};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

const PERIOD: u64 = 5 * 4096;

fn open(path: &Path, mode: OpenMode) -> Box<dyn OpenFile> {
    open_alone("mmap", path, mode, Direct::Off, 1).unwrap().unwrap()
}

fn buffer_for(p: &AccessPattern) -> TransferBuffer {
    let mut buffer = TransferBuffer::new(PERIOD, p.call_bytes()).unwrap();
    fill_stream(&mut buffer, 3);
    buffer
}

/// Prepares and writes in these batches.
fn write(file: &mut dyn OpenFile, p: &AccessPattern, batches: &[u64]) -> TransferStrategy {
    let mut buffer = buffer_for(p);
    let prepared = file.prepare(p, Direction::Write, &mut buffer, &[]).unwrap();
    let mut first_call = 0;
    for calls in batches {
        let batch = Batch { first_call, calls: *calls };
        file.preallocate(batch).unwrap();
        assert_eq!(file.write(Batches::new(batch, &mut Latency::off()), &buffer).unwrap(), calls * p.call_bytes());
        first_call += calls;
    }
    file.sync().unwrap();
    prepared
}

/// File content after the same batches through posix.
fn written_by_posix(path: &Path, patterns: &[AccessPattern], calls: u64) -> Vec<u8> {
    let mut file = open_alone("posix", path, OpenMode::CreateNew, Direct::Off, 1).unwrap().unwrap();
    for p in patterns {
        let mut buffer = buffer_for(p);
        file.prepare(p, Direction::Write, &mut buffer, &[]).unwrap();
        file.write(Batches::new(Batch { first_call: 0, calls }, &mut Latency::off()), &buffer).unwrap();
    }
    file.close().unwrap();
    std::fs::read(path).unwrap()
}

/// Rank `rank` of three with interleaved odd chunks at an odd offset.
fn scattered(rank: u64, max_calls: u64) -> AccessPattern {
    let base_bytes = 5000 + rank * 1032;
    let (origin_bytes, stride_bytes) = (5000, 3 * 1032);
    let p = pattern(1032, 3, max_calls);
    AccessPattern {
        base_bytes,
        origin_bytes,
        stride_bytes,
        rank,
        ranks: 3,
        rank_distance_bytes: 1032,
        stream_bytes: 8,
        ..p
    }
}

#[test]
fn interleaved_ranks_leave_the_file_that_posix_leaves() {
    let dir = scratch();
    let patterns = [0, 1, 2].map(|rank| scattered(rank, 40));
    let expected = written_by_posix(&dir.path().join("p"), &patterns, 40);
    let path = dir.path().join("m");
    open(&path, OpenMode::CreateNew).close().unwrap();
    for (p, batches) in patterns.iter().zip([&[1, 2, 4, 33][..], &[40], &[39, 1]]) {
        let mut file = open(&path, OpenMode::Update);
        write(file.as_mut(), p, batches);
        file.close().unwrap();
    }
    assert_eq!(std::fs::read(&path).unwrap(), expected);

    // The same without fallocate: the zeros of one rank must not overwrite data of others.
    let path = dir.path().join("z");
    open(&path, OpenMode::CreateNew).close().unwrap();
    for p in &patterns {
        let files = FdPair::open_alone(&path, OpenMode::Update, Direct::Off).unwrap();
        let mut file = MmapFile::new(files, false, p.rank, p.ranks).unwrap();
        file.has_fallocate = Some(false);
        let prepared = write(&mut file, p, &[3, 37]);
        assert!(prepared.strategy.contains("zeros"), "{}", prepared.strategy);
    }
    assert_eq!(std::fs::read(&path).unwrap(), expected);
}

#[test]
fn a_segment_at_an_odd_offset_and_its_length() {
    let dir = scratch();
    let p = AccessPattern { base_bytes: 123_456, stream_bytes: 456, ..pattern(5000, 1, 100) };
    let expected = written_by_posix(&dir.path().join("p"), &[p], 9);
    let path = dir.path().join("m");
    let mut file = open(&path, OpenMode::CreateNew);
    let prepared = write(file.as_mut(), &p, &[1, 3, 5]);
    assert!(prepared.strategy.contains("allocated before each batch"), "{}", prepared.strategy);
    assert_eq!(prepared.direct, Some(false));
    file.close().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), expected);

    // Existing blocks need no preallocation, and the length is unchanged.
    let mut file = open(&path, OpenMode::Update);
    let prepared = write(file.as_mut(), &AccessPattern { max_calls: 9, ..p }, &[4, 5]);
    assert!(prepared.strategy.contains("blocks allocated"), "{}", prepared.strategy);
    file.close().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), expected);
}

#[test]
fn reads_what_is_there_and_times_each_call() {
    let dir = scratch();
    let path = dir.path().join("f");
    let p = AccessPattern { base_bytes: 4097, stride_bytes: 2048, stream_bytes: 16, ..pattern(1032, 2, 7) };
    write(open(&path, OpenMode::CreateNew).as_mut(), &p, &[7]);
    let mut file = open(&path, OpenMode::ReadOnly);
    let mut buffer = buffer_for(&p);
    buffer.bytes_mut().fill(0);
    let prepared = file.prepare(&p, Direction::Read, &mut buffer, &[]).unwrap();
    assert!(prepared.strategy.contains("out of a shared mapping"), "{}", prepared.strategy);
    let mut latency = Latency::on();
    for batch in [Batch { first_call: 0, calls: 2 }, Batch { first_call: 2, calls: 5 }] {
        file.read(Batches::new(batch, &mut latency), &mut buffer).unwrap();
    }
    assert_eq!(latency.histogram().unwrap().len(), 7);
    let seen = (0..7).flat_map(|call| {
        let position = p.stream_position(call);
        buffer.window(position, p.call_bytes() as usize).iter().zip(position..)
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
    let mut buffer = buffer_for(&p);
    file.prepare(&p, Direction::Read, &mut buffer, &[]).unwrap();
    let error =
        file.read(Batches::new(Batch { first_call: 0, calls: 3 }, &mut Latency::off()), &mut buffer).unwrap_err();
    assert_eq!((error.cause, error.offset_bytes), (FailureCause::Short, Some(8192)));
    assert_eq!(error.expected_got_bytes, Some((4096, 10_000 - 8192)));
}

#[test]
fn without_preallocation_or_preparation_nothing_is_touched() {
    let dir = scratch();
    let path = dir.path().join("f");
    let mut file = open(&path, OpenMode::CreateNew);
    let p = pattern(4096, 1, 4);
    let mut buffer = buffer_for(&p);
    let batch = Batch { first_call: 0, calls: 1 };
    let mut off = Latency::off();
    assert!(file.preallocate(batch).unwrap_err().text.contains("prepare"));
    assert!(file.write(Batches::new(batch, &mut off), &buffer).unwrap_err().text.contains("prepare"));
    file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap();
    let error = file.write(Batches::new(batch, &mut off), &buffer).unwrap_err();
    assert!(error.cause == FailureCause::Short && error.text.contains("not preallocated"), "{error}");
    assert!(
        file.read(Batches::new(batch, &mut off), &mut buffer).unwrap_err().text.contains("prepare"),
        "prepared for writing"
    );
    file.prepare(&p, Direction::Read, &mut buffer, &[]).unwrap();
    assert!(
        file.write(Batches::new(batch, &mut off), &buffer).unwrap_err().text.contains("prepare"),
        "prepared for reading"
    );
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
}

#[test]
fn windows_slide_over_a_long_file() {
    let dir = scratch();
    let path = dir.path().join("f");
    // Three windows; the file is sparse except for the chunks.
    let p = AccessPattern { base_bytes: 8, stride_bytes: (100 << 20) + 8, ..pattern(4096, 1, 7) };
    let mut file = open(&path, OpenMode::CreateNew);
    File::options().write(true).open(&path).unwrap().set_len(1 << 30).unwrap();
    let mut buffer = buffer_for(&p);
    file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap();
    // No preallocate(): it would allocate the space between the chunks as well.
    file.write(Batches::new(Batch { first_call: 0, calls: 7 }, &mut Latency::off()), &buffer).unwrap();
    file.sync().unwrap();
    buffer.bytes_mut().fill(0);
    file.prepare(&p, Direction::Read, &mut buffer, &[]).unwrap();
    file.read(Batches::new(Batch { first_call: 0, calls: 7 }, &mut Latency::off()), &mut buffer).unwrap();
    for (at, byte) in buffer.bytes()[..PERIOD as usize].iter().enumerate() {
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
    let error = file.prepare(&p, Direction::Write, &mut buffer_for(&p), &[]).unwrap_err();
    assert_eq!((error.operation, error.cause), ("mmap", FailureCause::Path));
}

/// A memory file system rejects immediately any length beyond its size.
#[test]
fn failed_preallocation_is_no_space_with_the_offset() {
    let shm = Path::new("/dev/shm");
    let all = nix::sys::statvfs::statvfs(shm).map_or(0, |facts| facts.blocks() * facts.fragment_size());
    if all == 0 || !in_memory(shm) {
        return println!("SKIPPED: /dev/shm is no memory file system with a size");
    }
    let dir = tempfile::tempdir_in(shm).unwrap();
    let mut file = open(&dir.path().join("f"), OpenMode::CreateNew);
    let p = AccessPattern { base_bytes: 8192, ..pattern(1 << 20, 1, (2 * all) >> 20) };
    let mut buffer = buffer_for(&p);
    file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap();
    let error = file.preallocate(Batch { first_call: 0, calls: p.max_calls }).unwrap_err();
    assert_eq!((error.operation, error.cause, error.offset_bytes), ("fallocate", FailureCause::NoSpace, Some(8192)));
}

#[test]
fn sync_leaves_no_dirty_page() {
    let dir = scratch();
    let path = dir.path().join("f");
    let mut file = open(&path, OpenMode::CreateNew);
    let p = pattern(64 << 10, 1, 16);
    let mut buffer = buffer_for(&p);
    file.prepare(&p, Direction::Write, &mut buffer, &[]).unwrap();
    for first_call in [0, 8] {
        let batch = Batch { first_call, calls: 8 };
        file.preallocate(batch).unwrap();
        file.write(Batches::new(batch, &mut Latency::off()), &buffer).unwrap();
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
        AccessPattern { kind: AccessKind::SharedArrival, ..pattern(8, 1, 1) },
        AccessPattern { form: request, ..pattern(8, 1, 1) },
        AccessPattern { partition: RankPartition::Unequal, ranks: 2, ..pattern(8, 1, 1) },
        pattern(0, 1, 1),
    ];
    let mut buffer = buffer_for(&pattern(8, 1, 1));
    for p in refused {
        assert!(file.support(&p).reason().is_some(), "{p:?}");
        assert_eq!(file.prepare(&p, Direction::Read, &mut buffer, &[]).unwrap_err().cause, FailureCause::Unsupported);
    }
    // A file of one rank may have parts of any length.
    let odd = AccessPattern { partition: RankPartition::Unequal, base_bytes: 3, ..pattern(5, 1, 4) };
    file.prepare(&odd, Direction::Read, &mut buffer, &[]).unwrap();
    assert_eq!(
        file.read(Batches::new(Batch { first_call: 0, calls: 4 }, &mut Latency::off()), &mut buffer).unwrap(),
        20
    );
}

/// Not a test by itself: [`a_truncated_file_is_reported_as_a_bus_error`] starts it in a process of its own.
#[test]
fn child_with_a_truncated_file() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let path = Path::new(&path);
    let mut file = open(path, OpenMode::Update);
    let p = pattern(4096, 1, 2);
    let mut buffer = buffer_for(&p);
    file.prepare(&p, Direction::Read, &mut buffer, &[]).unwrap();
    file.read(Batches::new(Batch { first_call: 0, calls: 1 }, &mut Latency::off()), &mut buffer).unwrap();
    File::options().write(true).open(path).unwrap().set_len(0).unwrap();
    let _ = file.read(Batches::new(Batch { first_call: 1, calls: 1 }, &mut Latency::off()), &mut buffer);
    unreachable!("the read ends the process");
}

#[test]
fn a_truncated_file_is_reported_as_a_bus_error() {
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
