//! System calls of the tests' own: a thread that watches sees what it asks of the kernel, and can have calls fail or come short. In place
//! of the functions of the C library; the kernel is called all the same.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};

/// What becomes of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    /// What the kernel does.
    Made,
    /// It is not made, and fails with this number.
    Fails(c_int),
    /// It is made with so many bytes at most.
    Short(usize),
}

#[derive(Default)]
struct Watch {
    log: Vec<String>,
    fates: VecDeque<Fate>,
}

thread_local! {
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

/// Runs `work`; its calls, and `fates` of the first of them, in order.
pub(crate) fn watched<R>(fates: &[Fate], work: impl FnOnce() -> R) -> (R, Vec<String>) {
    WATCH.set(Some(Watch { log: Vec::new(), fates: fates.iter().copied().collect() }));
    let result = work();
    let watch = WATCH.take().unwrap_or_default();
    assert!(watch.fates.is_empty(), "fates of calls that were not made: {:?}", watch.fates);
    (result, watch.log)
}

/// Notes a call; its fate.
fn note(fd: c_int, name: &str, told: &str) -> Fate {
    // A thread that ends has no watch any more.
    let fate = WATCH.try_with(|watch| {
        let mut watch = watch.try_borrow_mut().ok()?;
        let watch = watch.as_mut()?;
        // SAFETY: asks for the flags of a descriptor, open or not.
        let is_direct = unsafe { libc::fcntl(fd, libc::F_GETFL) } & libc::O_DIRECT != 0;
        let way = if is_direct { "direct " } else { "" };
        watch.log.push(format!("{way}{name}{told}"));
        watch.fates.pop_front()
    });
    fate.ok().flatten().unwrap_or(Fate::Made)
}

fn fail(errno: c_int) -> i64 {
    // SAFETY: the place of this thread's error number.
    unsafe { *libc::__errno_location() = errno };
    -1
}

#[no_mangle]
extern "C" fn pwrite64(fd: c_int, memory: *const c_void, bytes: usize, offset: i64) -> isize {
    let make = |bytes: usize| {
        // SAFETY: as the caller of pwrite promises.
        unsafe { libc::syscall(libc::SYS_pwrite64, fd, memory, bytes, offset) }
    };
    let done = match note(fd, "pwrite", &format!(" {bytes} at {offset}")) {
        Fate::Made => make(bytes),
        Fate::Fails(errno) => fail(errno),
        Fate::Short(most) => make(bytes.min(most)),
    };
    done as isize
}

#[no_mangle]
extern "C" fn pread64(fd: c_int, memory: *mut c_void, bytes: usize, offset: i64) -> isize {
    let make = |bytes: usize| {
        // SAFETY: as the caller of pread promises.
        unsafe { libc::syscall(libc::SYS_pread64, fd, memory, bytes, offset) }
    };
    let done = match note(fd, "pread", &format!(" {bytes} at {offset}")) {
        Fate::Made => make(bytes),
        Fate::Fails(errno) => fail(errno),
        Fate::Short(most) => make(bytes.min(most)),
    };
    done as isize
}

/// Calls that move no data.
macro_rules! plain {
    ($($symbol:ident $name:literal $number:path, ($($argument:ident: $kind:ty),*);)+) => {
        $(
            #[no_mangle]
            extern "C" fn $symbol(fd: c_int $(, $argument: $kind)*) -> c_int {
                let told = String::new() $(+ &format!(" {}", $argument))*;
                let done = match note(fd, $name, &told) {
                    Fate::Fails(errno) => fail(errno),
                    // SAFETY: numbers alone.
                    Fate::Made | Fate::Short(_) => unsafe { libc::syscall($number, fd $(, $argument)*) },
                };
                done as c_int
            }
        )+
    };
}

plain! {
    fsync "fsync" libc::SYS_fsync, ();
    fdatasync "fdatasync" libc::SYS_fdatasync, ();
    ftruncate64 "ftruncate" libc::SYS_ftruncate, (bytes: i64);
    fallocate "fallocate" libc::SYS_fallocate, (mode: c_int, offset: i64, bytes: i64);
}

mod tests {
    use std::path::Path;

    use super::*;
    use crate::error::Cause;
    use crate::testing::{fill, open_alone, pattern, scratch, stream_byte};
    use crate::{Batch, Batches, Direct, Direction, Latency, OpenFile, OpenMode, Pattern, Ring};

    const ALL: Batch = Batch { first_call: 0, calls: 3 };

    fn ready(name: &str, path: &Path, mode: OpenMode, direct: Direct, p: &Pattern) -> (Box<dyn OpenFile>, Ring) {
        let mut ring = Ring::new(1 << 16, p.call_bytes()).unwrap();
        fill(&mut ring, 7);
        let mut file = open_alone(name, path, mode, direct, 4).unwrap().unwrap();
        let direction = if mode == OpenMode::ReadOnly { Direction::Read } else { Direction::Write };
        file.prepare(p, direction, &mut ring, &[]).unwrap();
        (file, ring)
    }

    fn content(bytes: u64) -> Vec<u8> {
        (0..bytes).map(|at| stream_byte(7, at, 1 << 16)).collect()
    }

    #[test]
    fn posix_makes_one_call_for_each_chunk_and_syncs_when_it_is_told_to() {
        let (dir, p) = (scratch(), pattern(1000, 2, 3));
        let path = dir.path().join("f");
        let (mut file, ring) = ready("posix", &path, OpenMode::CreateNew, Direct::Off, &p);
        let (moved, log) = watched(&[], || {
            file.preallocate(ALL).unwrap();
            let moved = file.write(Batches::new(ALL, &mut Latency::off()), &ring).unwrap();
            file.trim().unwrap();
            file.sync().unwrap();
            file.close().unwrap();
            moved
        });
        let mut expected: Vec<String> = (0..6).map(|n| format!("pwrite 1000 at {}", n * 1000)).collect();
        expected.push("fsync".to_owned());
        assert_eq!((moved, log), (6000, expected));
        assert!(std::fs::read(&path).unwrap() == content(6000));
        let (mut file, mut ring) = ready("posix", &path, OpenMode::ReadOnly, Direct::Off, &p);
        let whole = ring.bytes()[..6000].to_vec();
        ring.bytes_mut().fill(0);
        let (_, log) = watched(&[], || file.read(Batches::new(ALL, &mut Latency::off()), &mut ring).unwrap());
        assert_eq!(log, (0..6).map(|n| format!("pread 1000 at {}", n * 1000)).collect::<Vec<_>>());
        assert!(ring.bytes()[..6000] == whole);
    }

    #[test]
    fn what_comes_short_goes_on_and_what_fails_is_told() {
        let (dir, p) = (scratch(), pattern(1000, 1, 3));
        let path = dir.path().join("f");
        let (mut file, ring) = ready("posix", &path, OpenMode::CreateNew, Direct::Off, &p);
        let interrupted = Fate::Fails(libc::EINTR);
        let mut write = |fates: &[Fate]| watched(fates, || file.write(Batches::new(ALL, &mut Latency::off()), &ring));
        let (moved, log) = write(&[interrupted, Fate::Short(300), interrupted, Fate::Made]);
        let all = ["1000 at 0", "1000 at 0", "700 at 300", "700 at 300", "1000 at 1000", "1000 at 2000"];
        assert_eq!((moved.unwrap(), log), (3000, all.map(|told| format!("pwrite {told}")).to_vec()));
        assert!(std::fs::read(&path).unwrap() == content(3000));
        for (errno, cause) in [(libc::ENOSPC, Cause::NoSpace), (libc::EDQUOT, Cause::NoSpace), (libc::EIO, Cause::Io)] {
            let (moved, log) = write(&[Fate::Made, Fate::Short(10), Fate::Fails(errno)]);
            let error = moved.unwrap_err();
            assert_eq!((error.cause, error.offset_bytes, log.len()), (cause, Some(1010), 3), "{error}");
        }
        let (moved, _) = write(&[Fate::Made, Fate::Short(0)]);
        let error = moved.unwrap_err();
        let told = (error.cause, error.offset_bytes, error.expected_got_bytes);
        assert_eq!(told, (Cause::Short, Some(1000), Some((1000, 0))));
        assert_eq!(watched(&[Fate::Fails(libc::EIO)], || file.sync()).0.unwrap_err().cause, Cause::Io);

        let (mut file, mut ring) = ready("posix", &path, OpenMode::ReadOnly, Direct::Off, &p);
        let mut read = |fates: &[Fate]| watched(fates, || file.read(Batches::new(ALL, &mut Latency::off()), &mut ring));
        assert_eq!(read(&[interrupted, Fate::Short(1)]).0.unwrap(), 3000);
        let error = read(&[Fate::Made, Fate::Made, Fate::Fails(libc::EIO)]).0.unwrap_err();
        assert_eq!((error.cause, error.offset_bytes), (Cause::Io, Some(2000)));
        let error = read(&[Fate::Short(0)]).0.unwrap_err();
        assert_eq!((error.cause, error.expected_got_bytes), (Cause::Short, Some((1000, 0))));
    }

    #[test]
    fn mmap_reserves_what_it_stores_and_syncs() {
        let (dir, p) = (scratch(), pattern(5000, 1, 3));
        let path = dir.path().join("f");
        let (mut file, ring) = ready("mmap", &path, OpenMode::CreateNew, Direct::Off, &p);
        let batch = Batch { first_call: 1, calls: 2 };
        let (_, log) = watched(&[], || {
            file.preallocate(Batch { first_call: 0, calls: 1 }).unwrap();
            file.preallocate(batch).unwrap();
            file.write(Batches::new(batch, &mut Latency::off()), &ring).unwrap();
            file.sync().unwrap();
        });
        let rooms = ["fallocate 0 0 5000", "fallocate 0 5000 10000"];
        if log.iter().any(|line| line.starts_with("fallocate 0")) {
            assert_eq!(log, [rooms[0], rooms[1], "fsync"]);
        }
        let (refused, _) = watched(&[Fate::Fails(libc::ENOSPC)], || file.preallocate(ALL));
        assert_eq!(refused.map_or_else(|error| error.cause, |_| Cause::NoSpace), Cause::NoSpace);
        assert_eq!(watched(&[Fate::Fails(libc::EIO)], || file.sync()).0.unwrap_err().cause, Cause::Io);
        drop(file);
        assert_eq!(std::fs::read(&path).unwrap().len(), 15_000);
    }

    /// Sectors as a whole past the page cache, what is left of the last one with the sync, and the file as long as its data.
    #[test]
    fn direct_writes_keep_the_last_sector_for_the_sync() {
        let (dir, p) = (scratch(), pattern(5000, 1, 3));
        let path = dir.path().join("f");
        let (mut file, ring) = ready("posix", &path, OpenMode::CreateNew, Direct::Auto, &p);
        let (moved, written) = watched(&[], || file.write(Batches::new(ALL, &mut Latency::off()), &ring));
        assert_eq!(moved.unwrap(), 15_000);
        if !written.iter().any(|line| line.starts_with("direct")) {
            println!("SKIPPED: no direct I/O in {}", dir.path().display());
            return;
        }
        assert!(written.iter().all(|line| line.starts_with("direct pwrite ")), "{written:?}");
        let ((), synced) = watched(&[], || file.sync().unwrap());
        assert_eq!(synced.last().map(String::as_str), Some("fsync"), "{synced:?}");
        assert!(synced.iter().any(|line| line.starts_with("direct pwrite ")), "{synced:?}");
        file.close().unwrap();
        assert!(std::fs::read(&path).unwrap() == content(15_000));

        let mut file = ready("posix", &path, OpenMode::Update, Direct::Auto, &p).0;
        file.write(Batches::new(ALL, &mut Latency::off()), &ring).unwrap();
        // The sector is read first: its rest is not ours.
        let failed = watched(&[Fate::Fails(libc::EIO)], || file.sync()).0.unwrap_err();
        assert_eq!(failed.cause, Cause::Io, "{failed}");
    }
}
