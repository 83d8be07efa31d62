//! Interposed system calls of the tests: a thread can record its calls, and can have them fail or be short. They replace the functions of
//! the C library and call the kernel themselves.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};

#[derive(Clone, Copy, Debug)]
pub(crate) enum InjectedOutcome {
    /// That of the kernel.
    Unchanged,
    /// The call is not executed and fails with this error number.
    Fails(c_int),
    /// The call is executed with at most this many bytes.
    Short(usize),
}

#[derive(Default)]
struct SyscallRecorder {
    log: Vec<String>,
    outcomes: VecDeque<InjectedOutcome>,
}

thread_local! {
    static WATCH: RefCell<Option<SyscallRecorder>> = const { RefCell::new(None) };
}

/// Runs `work` and returns its calls. `fates`: outcomes of the first calls, in order.
pub(crate) fn with_recorded_syscalls<R>(fates: &[InjectedOutcome], work: impl FnOnce() -> R) -> (R, Vec<String>) {
    WATCH.set(Some(SyscallRecorder { log: Vec::new(), outcomes: fates.iter().copied().collect() }));
    let result = work();
    let watch = WATCH.take().unwrap_or_default();
    assert!(watch.outcomes.is_empty(), "outcomes of calls that were not issued: {:?}", watch.outcomes);
    (result, watch.log)
}

fn record_call(fd: c_int, name: &str, arguments: &str) -> InjectedOutcome {
    // The thread-local may be destroyed already.
    let fate = WATCH.try_with(|watch| {
        let mut watch = watch.try_borrow_mut().ok()?;
        let watch = watch.as_mut()?;
        // SAFETY: reads the flags of a descriptor, open or not.
        let is_direct = unsafe { libc::fcntl(fd, libc::F_GETFL) } & libc::O_DIRECT != 0;
        let way = if is_direct { "direct " } else { "" };
        watch.log.push(format!("{way}{name}{arguments}"));
        watch.outcomes.pop_front()
    });
    fate.ok().flatten().unwrap_or(InjectedOutcome::Unchanged)
}

fn fail(errno: c_int) -> i64 {
    // SAFETY: the address of this thread's error number.
    unsafe { *libc::__errno_location() = errno };
    -1
}

#[no_mangle]
extern "C" fn pwrite64(fd: c_int, memory: *const c_void, bytes: usize, offset: i64) -> isize {
    let make = |bytes: usize| {
        // SAFETY: guaranteed by the caller of pwrite.
        unsafe { libc::syscall(libc::SYS_pwrite64, fd, memory, bytes, offset) }
    };
    let done = match record_call(fd, "pwrite", &format!(" {bytes} at {offset}")) {
        InjectedOutcome::Unchanged => make(bytes),
        InjectedOutcome::Fails(errno) => fail(errno),
        InjectedOutcome::Short(most) => make(bytes.min(most)),
    };
    done as isize
}

#[no_mangle]
extern "C" fn pread64(fd: c_int, memory: *mut c_void, bytes: usize, offset: i64) -> isize {
    let make = |bytes: usize| {
        // SAFETY: guaranteed by the caller of pread.
        unsafe { libc::syscall(libc::SYS_pread64, fd, memory, bytes, offset) }
    };
    let done = match record_call(fd, "pread", &format!(" {bytes} at {offset}")) {
        InjectedOutcome::Unchanged => make(bytes),
        InjectedOutcome::Fails(errno) => fail(errno),
        InjectedOutcome::Short(most) => make(bytes.min(most)),
    };
    done as isize
}

/// Calls without data.
macro_rules! plain {
    ($($symbol:ident $name:literal $number:path, ($($argument:ident: $kind:ty),*);)+) => {
        $(
            #[no_mangle]
            extern "C" fn $symbol(fd: c_int $(, $argument: $kind)*) -> c_int {
                let told = String::new() $(+ &format!(" {}", $argument))*;
                let done = match record_call(fd, $name, &told) {
                    InjectedOutcome::Fails(errno) => fail(errno),
                    // SAFETY: only numbers are passed.
                    InjectedOutcome::Unchanged | InjectedOutcome::Short(_) => unsafe { libc::syscall($number, fd $(, $argument)*) },
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
    use crate::error::FailureCause;
    use crate::testing::{fill_stream, open_alone, pattern, scratch, stream_byte};
    use crate::{AccessPattern, Batch, Batches, Direct, Direction, Latency, OpenFile, OpenMode, TransferBuffer};

    const ALL: Batch = Batch { first_call: 0, calls: 3 };

    fn open_prepared(
        name: &str,
        path: &Path,
        mode: OpenMode,
        direct: Direct,
        p: &AccessPattern,
    ) -> (Box<dyn OpenFile>, TransferBuffer) {
        let mut buffer = TransferBuffer::new(1 << 16, p.call_bytes()).unwrap();
        fill_stream(&mut buffer, 7);
        let mut file = open_alone(name, path, mode, direct, 4).unwrap().unwrap();
        let direction = if mode == OpenMode::ReadOnly { Direction::Read } else { Direction::Write };
        file.prepare(p, direction, &mut buffer, &[]).unwrap();
        (file, buffer)
    }

    fn content(bytes: u64) -> Vec<u8> {
        (0..bytes).map(|at| stream_byte(7, at, 1 << 16)).collect()
    }

    #[test]
    fn posix_issues_one_call_per_chunk_and_syncs_on_request() {
        let (dir, p) = (scratch(), pattern(1000, 2, 3));
        let path = dir.path().join("f");
        let (mut file, buffer) = open_prepared("posix", &path, OpenMode::CreateNew, Direct::Off, &p);
        let (moved, log) = with_recorded_syscalls(&[], || {
            file.preallocate(ALL).unwrap();
            let moved = file.write(Batches::new(ALL, &mut Latency::off()), &buffer).unwrap();
            file.trim().unwrap();
            file.sync().unwrap();
            file.close().unwrap();
            moved
        });
        let mut expected: Vec<String> = (0..6).map(|n| format!("pwrite 1000 at {}", n * 1000)).collect();
        expected.push("fsync".to_owned());
        assert_eq!((moved, log), (6000, expected));
        assert!(std::fs::read(&path).unwrap() == content(6000));
        let (mut file, mut buffer) = open_prepared("posix", &path, OpenMode::ReadOnly, Direct::Off, &p);
        let whole = buffer.bytes()[..6000].to_vec();
        buffer.bytes_mut().fill(0);
        let (_, log) =
            with_recorded_syscalls(&[], || file.read(Batches::new(ALL, &mut Latency::off()), &mut buffer).unwrap());
        assert_eq!(log, (0..6).map(|n| format!("pread 1000 at {}", n * 1000)).collect::<Vec<_>>());
        assert!(buffer.bytes()[..6000] == whole);
    }

    #[test]
    fn short_transfers_continue_and_failures_are_reported() {
        let (dir, p) = (scratch(), pattern(1000, 1, 3));
        let path = dir.path().join("f");
        let (mut file, buffer) = open_prepared("posix", &path, OpenMode::CreateNew, Direct::Off, &p);
        let interrupted = InjectedOutcome::Fails(libc::EINTR);
        let mut write = |fates: &[InjectedOutcome]| {
            with_recorded_syscalls(fates, || file.write(Batches::new(ALL, &mut Latency::off()), &buffer))
        };
        let (moved, log) = write(&[interrupted, InjectedOutcome::Short(300), interrupted, InjectedOutcome::Unchanged]);
        let all = ["1000 at 0", "1000 at 0", "700 at 300", "700 at 300", "1000 at 1000", "1000 at 2000"];
        assert_eq!((moved.unwrap(), log), (3000, all.map(|details| format!("pwrite {details}")).to_vec()));
        assert!(std::fs::read(&path).unwrap() == content(3000));
        for (errno, cause) in [
            (libc::ENOSPC, FailureCause::NoSpace),
            (libc::EDQUOT, FailureCause::NoSpace),
            (libc::EIO, FailureCause::Io),
        ] {
            let (moved, log) =
                write(&[InjectedOutcome::Unchanged, InjectedOutcome::Short(10), InjectedOutcome::Fails(errno)]);
            let error = moved.unwrap_err();
            assert_eq!((error.cause, error.offset_bytes, log.len()), (cause, Some(1010), 3), "{error}");
        }
        let (moved, _) = write(&[InjectedOutcome::Unchanged, InjectedOutcome::Short(0)]);
        let error = moved.unwrap_err();
        let details = (error.cause, error.offset_bytes, error.expected_got_bytes);
        assert_eq!(details, (FailureCause::Short, Some(1000), Some((1000, 0))));
        assert_eq!(
            with_recorded_syscalls(&[InjectedOutcome::Fails(libc::EIO)], || file.sync()).0.unwrap_err().cause,
            FailureCause::Io
        );

        let (mut file, mut buffer) = open_prepared("posix", &path, OpenMode::ReadOnly, Direct::Off, &p);
        let mut read = |fates: &[InjectedOutcome]| {
            with_recorded_syscalls(fates, || file.read(Batches::new(ALL, &mut Latency::off()), &mut buffer))
        };
        assert_eq!(read(&[interrupted, InjectedOutcome::Short(1)]).0.unwrap(), 3000);
        let error = read(&[InjectedOutcome::Unchanged, InjectedOutcome::Unchanged, InjectedOutcome::Fails(libc::EIO)])
            .0
            .unwrap_err();
        assert_eq!((error.cause, error.offset_bytes), (FailureCause::Io, Some(2000)));
        let error = read(&[InjectedOutcome::Short(0)]).0.unwrap_err();
        assert_eq!((error.cause, error.expected_got_bytes), (FailureCause::Short, Some((1000, 0))));
    }

    #[test]
    fn mmap_reserves_what_it_stores_and_syncs() {
        let (dir, p) = (scratch(), pattern(5000, 1, 3));
        let path = dir.path().join("f");
        let (mut file, buffer) = open_prepared("mmap", &path, OpenMode::CreateNew, Direct::Off, &p);
        let batch = Batch { first_call: 1, calls: 2 };
        let (_, log) = with_recorded_syscalls(&[], || {
            file.preallocate(Batch { first_call: 0, calls: 1 }).unwrap();
            file.preallocate(batch).unwrap();
            file.write(Batches::new(batch, &mut Latency::off()), &buffer).unwrap();
            file.sync().unwrap();
        });
        let rooms = ["fallocate 0 0 5000", "fallocate 0 5000 10000"];
        if log.iter().any(|line| line.starts_with("fallocate 0")) {
            assert_eq!(log, [rooms[0], rooms[1], "fsync"]);
        }
        let (refused, _) = with_recorded_syscalls(&[InjectedOutcome::Fails(libc::ENOSPC)], || file.preallocate(ALL));
        assert_eq!(refused.map_or_else(|error| error.cause, |_| FailureCause::NoSpace), FailureCause::NoSpace);
        assert_eq!(
            with_recorded_syscalls(&[InjectedOutcome::Fails(libc::EIO)], || file.sync()).0.unwrap_err().cause,
            FailureCause::Io
        );
        drop(file);
        assert_eq!(std::fs::read(&path).unwrap().len(), 15_000);
    }

    /// Whole sectors are written directly, the rest of the last one with the sync, and the file is as long as its data.
    #[test]
    fn direct_writes_keep_the_last_sector_for_the_sync() {
        let (dir, p) = (scratch(), pattern(5000, 1, 3));
        let path = dir.path().join("f");
        let (mut file, buffer) = open_prepared("posix", &path, OpenMode::CreateNew, Direct::Auto, &p);
        let (moved, written) =
            with_recorded_syscalls(&[], || file.write(Batches::new(ALL, &mut Latency::off()), &buffer));
        assert_eq!(moved.unwrap(), 15_000);
        if !written.iter().any(|line| line.starts_with("direct")) {
            println!("SKIPPED: no direct I/O in {}", dir.path().display());
            return;
        }
        assert!(written.iter().all(|line| line.starts_with("direct pwrite ")), "{written:?}");
        let ((), synced) = with_recorded_syscalls(&[], || file.sync().unwrap());
        assert_eq!(synced.last().map(String::as_str), Some("fsync"), "{synced:?}");
        assert!(synced.iter().any(|line| line.starts_with("direct pwrite ")), "{synced:?}");
        file.close().unwrap();
        assert!(std::fs::read(&path).unwrap() == content(15_000));

        let mut file = open_prepared("posix", &path, OpenMode::Update, Direct::Auto, &p).0;
        file.write(Batches::new(ALL, &mut Latency::off()), &buffer).unwrap();
        // The sector is read first, because it contains other bytes.
        let failed = with_recorded_syscalls(&[InjectedOutcome::Fails(libc::EIO)], || file.sync()).0.unwrap_err();
        assert_eq!(failed.cause, FailureCause::Io, "{failed}");
    }
}
