//! Which names are one file.

use crate::merge::{merge, MergeOptions};
use crate::raw::recorder::{head, FixtureRecorder};
use crate::raw::Event;
use crate::{text, Amode, Call, ErrorClass, FileIdentity, Function, OpenedFile};

/// An opening by rank 0 or 1 of `name`, which is `path`, at this time.
#[derive(Clone)]
struct Use {
    rank: usize,
    call: Call,
}

fn opened(rank: usize, begin_ns: u64, name: &str, path: &str, inode: u64) -> Use {
    let mut call = Call::new(Function::Open, begin_ns, begin_ns + 1);
    (call.handle, call.comm, call.amode) = (Some(begin_ns as u32), Some(0), Some(Amode(1 << 1)));
    call.path = Some(path.to_owned()).filter(|path| path != name);
    call.name = Some(name.to_owned());
    call.number = Some(8);
    call.identity = Some(FileIdentity { device: 7, inode, created_unix_ns: 0 }).filter(|_| inode > 0);
    Use { rank, call }
}

fn deleted(rank: usize, begin_ns: u64, path: &str) -> Use {
    let mut delete = opened(rank, begin_ns, path, path, 0);
    (delete.call.function, delete.call.handle, delete.call.comm, delete.call.amode) =
        (Function::Delete, None, None, None);
    delete
}

/// The files, and the file of each use.
fn files(hosts: [&str; 2], comm: &[u32], uses: &[Use]) -> (Vec<OpenedFile>, Vec<u32>) {
    let directory = tempfile::tempdir().unwrap();
    for (rank, host) in (0..).zip(hosts) {
        let head = crate::raw::ProcessHeader { host: host.to_owned(), ..head(rank, 2, "MPICH 4", 1000) };
        let mut recorder = FixtureRecorder::new(directory.path(), &head).unwrap();
        recorder.event(&Event::Comm { id: 0, ranks: comm.to_vec() }).unwrap();
        for one in uses.iter().filter(|one| one.rank == rank as usize) {
            recorder.event(&Event::Call(Box::new(one.call.clone()))).unwrap();
        }
        recorder.finish().unwrap();
    }
    let out = directory.path().join("all.csv");
    merge(directory.path(), &out, &MergeOptions::default()).unwrap();
    let (head, calls) = text::read_all_ranks(&out).unwrap();
    let calls: Vec<(u32, Call)> = calls.map(Result::unwrap).collect();
    let first = uses.iter().map(|one| one.call.begin_ns).min().unwrap();
    let file_of = |one: &Use| {
        let is_it =
            |(rank, call): &&(u32, Call)| *rank as usize == one.rank && call.begin_ns == one.call.begin_ns - first;
        calls.iter().find(is_it).and_then(|(_, call)| call.file).unwrap()
    };
    (head.files, uses.iter().map(file_of).collect())
}

fn named(files: &[OpenedFile]) -> Vec<&str> {
    files.iter().map(|file| file.path.as_str()).collect()
}

#[test]
fn a_relative_name_is_that_of_its_directory() {
    let uses = [
        opened(0, 10, "f", "/a/f", 1),
        opened(0, 20, "f", "/b/f", 2),
        opened(0, 30, "../a/f", "/a/f", 1),
        opened(0, 40, "ufs:/b/f", "/b/f", 2),
        opened(0, 50, "g", "/b/g", 3),
        // The working directories of ranks differ; the file did not exist.
        opened(1, 60, "f", "/c/f", 0),
        deleted(1, 70, "/a/f"),
    ];
    let (found, of) = files(["h", "h"], &[0, 1], &uses);
    assert_eq!((named(&found), of), (vec!["/a/f", "/b/f", "g", "/c/f"], vec![0, 1, 0, 1, 2, 3, 0]));
}

#[test]
fn names_of_one_inode_are_one_file_while_both_exist() {
    let link = |between: &[Use]| {
        let mut uses = vec![opened(0, 10, "/a", "/a", 1), opened(0, 50, "/b", "/b", 1)];
        uses.extend_from_slice(between);
        files(["h", "h"], &[0], &uses).1[..2].to_vec()
    };
    assert_eq!(link(&[]), [0, 0], "a hard link, or another mount");
    assert_eq!(link(&[opened(1, 20, "/a", "/a", 1)]), [0, 0]);
    assert_eq!(link(&[deleted(1, 30, "/a")]), [0, 1], "/b is the rest of it, or reuses the inode");
    assert_eq!(link(&[deleted(1, 5, "/a"), deleted(1, 60, "/a")]), [0, 0], "before and after");
    let failed = |mut one: Use| {
        one.call.error = ErrorClass::from_name("MPI_ERR_NO_SUCH_FILE");
        one
    };
    assert_eq!(link(&[failed(deleted(1, 30, "/a"))]), [0, 0]);
    // An inode that is used again.
    let mut created = opened(0, 50, "/b", "/b", 1);
    created.call.number = Some(-1);
    assert_eq!(files(["h", "h"], &[0], &[opened(0, 10, "/a", "/a", 1), created]).1, [0, 1]);
    let mut later = opened(0, 50, "/b", "/b", 1);
    later.call.identity.as_mut().unwrap().created_unix_ns = 9;
    assert_eq!(files(["h", "h"], &[0], &[opened(0, 10, "/a", "/a", 1), later]).1, [0, 1]);
    // Equal numbers on different hosts.
    let both = [opened(0, 10, "/a", "/a", 1), opened(1, 50, "/b", "/b", 1)];
    assert_eq!(files(["h", "i"], &[0], &both).1, [0, 1]);
    assert_eq!(files(["h", "h"], &[0], &both).1, [0, 0]);
}

#[test]
fn a_file_may_be_mounted_at_another_place_on_another_host() {
    let mut uses = vec![
        opened(0, 10, "d/f", "/net/x/d/f", 1),
        opened(1, 10, "d/f", "/export/d/f", 1),
        opened(0, 20, "g", "/net/x/g", 0),
        opened(1, 21, "g", "/export/g", 0),
        // Threads may open in another order.
        opened(0, 30, "one", "/net/x/one", 0),
        opened(0, 40, "two", "/net/x/two", 0),
        opened(1, 30, "two", "/export/two", 0),
        opened(1, 40, "one", "/export/one", 0),
    ];
    let (found, of) = files(["h", "i"], &[0, 1], &uses);
    assert_eq!(of, [0, 0, 1, 1, 2, 3, 4, 5]);
    assert_eq!(named(&found), ["d/f", "g", "/net/x/one", "/net/x/two", "/export/two", "/export/one"]);
    uses.truncate(4);
    // Without a common opening, the inode and the given name tell.
    assert_eq!(files(["h", "h"], &[0, 1], &uses[2..]).1, [0, 1], "on one host");
    uses.iter_mut().for_each(|one| one.call.comm = None);
    assert_eq!(files(["h", "i"], &[0, 1], &uses).1, [0, 0, 1, 2]);
}

#[test]
fn a_file_that_is_deleted_first_has_existed() {
    let mut create = opened(0, 20, "/a", "/a", 1);
    create.call.number = Some(-1);
    let (found, _) = files(["h", "h"], &[0], &[deleted(0, 10, "/a"), create.clone()]);
    assert_eq!(found[0].size_bytes, Some(8));
    let mut unknown = deleted(0, 10, "/a");
    unknown.call.number = None;
    let (found, _) = files(["h", "h"], &[0], &[unknown, create]);
    assert_eq!(found[0].size_bytes, None);
}

fn posix(function: Function, begin_ns: u64, path: &str, target: Option<&str>) -> Use {
    let mut call = Call::new(function, begin_ns, begin_ns + 1);
    (call.name, call.target_path) = (Some(path.to_owned()), target.map(str::to_owned));
    call.offset = Some(5).filter(|_| function == Function::Truncate);
    call.amode = Some(Amode(1 << 2 | 1 << 3)).filter(|_| function == Function::OpenTruncate);
    Use { rank: 0, call }
}

/// Function, file and new name of a POSIX call in a profile.
type PosixCall = (Function, u32, Option<u32>);

fn posix_calls(uses: &[Use]) -> (Vec<OpenedFile>, Vec<PosixCall>) {
    let directory = tempfile::tempdir().unwrap();
    let mut recorder = FixtureRecorder::new(directory.path(), &head(0, 1, "MPICH 4", 1000)).unwrap();
    recorder.event(&Event::Comm { id: 0, ranks: vec![0] }).unwrap();
    uses.iter().for_each(|one| recorder.event(&Event::Call(Box::new(one.call.clone()))).unwrap());
    recorder.finish().unwrap();
    let out = directory.path().join("all.csv");
    merge(directory.path(), &out, &MergeOptions::default()).unwrap();
    let (head, calls) = text::read_rank(&out, 0).unwrap();
    let calls = calls.map(Result::unwrap).filter(|call| call.function.role() == crate::Role::Posix);
    (head.files, calls.map(|call| (call.function, call.file.unwrap(), call.target)).collect())
}

#[test]
fn posix_calls_on_files_of_mpi_io_are_kept() {
    use Function::{OpenTruncate, Rename, Truncate, Unlink};
    let (found, calls) = posix_calls(&[
        posix(Unlink, 10, "/a", None),
        posix(Unlink, 12, "/other", None),
        opened(0, 20, "a", "/a", 1),
        posix(Truncate, 30, "/a", None),
        posix(Rename, 40, "/a", Some("/old")),
        posix(Rename, 50, "/old", Some("/older")),
        posix(Rename, 60, "/x", Some("/y")),
        posix(Unlink, 70, "/older", None),
        posix(OpenTruncate, 80, "/log", None),
        posix(Rename, 90, "/new", Some("/b")),
        opened(0, 100, "/b", "/b", 0),
    ]);
    assert_eq!(named(&found), ["/a", "/old", "/older", "/new", "/b"]);
    let expected = [
        (Unlink, 0, None),
        (Truncate, 0, None),
        (Rename, 0, Some(1)),
        (Rename, 1, Some(2)),
        (Unlink, 2, None),
        (Rename, 3, Some(4)),
    ];
    assert_eq!(calls, expected);
    // A replay executes none of them: the state of a file is that at its first opening.
    let sizes: Vec<_> = found.iter().map(|file| file.size_bytes).collect();
    assert_eq!(sizes, [Some(8), None, None, None, Some(8)]);
    let mut failed = posix(Unlink, 10, "/a", None);
    failed.call.error = ErrorClass::from_name("MPI_ERR_NO_SUCH_FILE");
    assert_eq!(posix_calls(&[failed, opened(0, 20, "/a", "/a", 1)]).1, [(Unlink, 0, None)]);
}

/// The name of a deleted file may reuse its inode.
#[test]
fn a_file_that_was_removed_by_posix_is_another_one() {
    let uses = |between: Use| [opened(0, 10, "/a", "/a", 1), between, opened(0, 50, "/b", "/b", 1)];
    assert_eq!(files(["h", "h"], &[0], &uses(posix(Function::Unlink, 30, "/a", None))).1[2], 1);
    assert_eq!(files(["h", "h"], &[0], &uses(posix(Function::Rename, 30, "/a", Some("/b")))).1[2], 1);
    assert_eq!(files(["h", "h"], &[0], &uses(posix(Function::Truncate, 30, "/a", None))).1[2], 0);
}
