//! MPI-IO calls on 1, 2 and 3 ranks: transferred bytes, large counts, concurrent requests, panics between begin and end.

#![allow(clippy::unwrap_used)] // helpers of tests

mod ranks;

use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::path::Path;

use beff_ffi::{
    AccessMode, Comm, DataAccess, Element, FileType, Info, MpiErrorCause, MpiFile, Transfer, TransferRequests,
    TransferType,
};

const ALL: [DataAccess; 6] = [
    DataAccess::Pointer,
    DataAccess::PointerAll,
    DataAccess::Offset,
    DataAccess::OffsetAll,
    DataAccess::Shared,
    DataAccess::Ordered,
];

/// Bytes of a rank; 0 for the last of three.
fn part_bytes(rank: u64) -> usize {
    [5, 4097, 0][rank as usize % 3]
}

/// Offset of a rank's bytes, in rank order.
fn offset(rank: u64) -> u64 {
    (0..rank).map(|r| part_bytes(r) as u64).sum()
}

fn bytes_of(rank: u64) -> Vec<u8> {
    (0..part_bytes(rank)).map(|n| (rank as usize * 83 + n % 79) as u8 + 1).collect()
}

/// How a call completes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum CompletionForm {
    Blocking,
    Request,
    Split,
}

fn exists(access: DataAccess, style: CompletionForm) -> bool {
    match style {
        CompletionForm::Blocking => true,
        CompletionForm::Request => access != DataAccess::Ordered,
        CompletionForm::Split => matches!(access, DataAccess::PointerAll | DataAccess::OffsetAll | DataAccess::Ordered),
    }
}

fn open(comm: &Comm, path: &Path, how: AccessMode) -> MpiFile {
    MpiFile::open(comm, path, how, false, &Info::new(&[]).unwrap()).unwrap()
}

/// A view of bytes, from the rank's own offset or from 0 for all.
fn view(file: &MpiFile, access: DataAccess, rank: u64) {
    let own = matches!(access, DataAccess::Pointer | DataAccess::PointerAll);
    let displacement = if own { offset(rank) } else { 0 };
    file.set_view(displacement, &FileType::plain(Element::Byte), &Info::new(&[]).unwrap()).unwrap();
}

fn write_with(file: &MpiFile, access: DataAccess, style: CompletionForm, rank: u64) -> beff_ffi::Result<u64> {
    let (data, what) = (bytes_of(rank), TransferType::new(Element::Byte, part_bytes(rank) as u64, None).unwrap());
    match style {
        CompletionForm::Blocking => file.write(access, offset(rank), &data, &what),
        CompletionForm::Request => {
            let one = Transfer { what: &what, offset_bytes: offset(rank), memory: &data[..] };
            TransferRequests::with_capacity(1).write_one(file, access, one)
        }
        CompletionForm::Split => file.write_split(access, offset(rank), &data, &what, &mut || {}),
    }
}

fn read_with(
    file: &MpiFile,
    access: DataAccess,
    style: CompletionForm,
    rank: u64,
    data: &mut [u8],
) -> beff_ffi::Result<u64> {
    let what = TransferType::new(Element::Byte, data.len() as u64, None).unwrap();
    match style {
        CompletionForm::Blocking => file.read(access, offset(rank), data, &what),
        CompletionForm::Request => {
            let one = Transfer { what: &what, offset_bytes: offset(rank), memory: data };
            TransferRequests::with_capacity(1).read_one(file, access, one)
        }
        CompletionForm::Split => file.read_split(access, offset(rank), data, &what, &mut || {}),
    }
}

/// Every call writes and reads back the bytes of all ranks.
fn round_trip(comm: &Comm, directory: &Path) {
    let (rank, ranks) = (comm.rank(), comm.size());
    for access in ALL {
        for style in [CompletionForm::Blocking, CompletionForm::Request, CompletionForm::Split] {
            let path = directory.join(format!("{access:?}-{style:?}"));
            let file = open(comm, &path, AccessMode::CreateNew);
            view(&file, access, rank);
            comm.idle_barrier().unwrap();
            let wrote = write_with(&file, access, style, rank);
            if !exists(access, style) {
                assert_eq!(wrote.unwrap_err().cause, MpiErrorCause::Unsupported, "{access:?} {style:?}");
                let read = read_with(&file, access, style, rank, &mut [0; 5]);
                assert_eq!(read.unwrap_err().cause, MpiErrorCause::Unsupported, "{access:?} {style:?}");
                file.close().unwrap();
                continue;
            }
            assert_eq!(wrote.unwrap(), part_bytes(rank) as u64, "{access:?} {style:?}");
            file.sync().unwrap();
            comm.idle_barrier().unwrap();
            file.sync().unwrap();
            if comm.is_root() {
                let content = std::fs::read(&path).unwrap();
                let mut right: Vec<u8> = (0..ranks).flat_map(bytes_of).collect();
                if access == DataAccess::Shared {
                    // In any order, so only the set of bytes is compared. The driver's tests compare records.
                    right.sort_unstable();
                    let mut content = content;
                    content.sort_unstable();
                    assert!(content == right, "{access:?} {style:?}");
                    std::fs::write(&path, (0..ranks).flat_map(bytes_of).collect::<Vec<_>>()).unwrap();
                } else {
                    assert!(content == right, "{access:?} {style:?}");
                }
            }
            comm.idle_barrier().unwrap();
            view(&file, access, rank);
            comm.idle_barrier().unwrap();
            let mut back = vec![0; part_bytes(rank)];
            assert_eq!(read_with(&file, access, style, rank, &mut back).unwrap(), part_bytes(rank) as u64);
            assert!(access == DataAccess::Shared || back == bytes_of(rank), "{access:?} {style:?}");
            file.close().unwrap();
        }
    }
}

/// Byte counts beyond the maximum count, and a tile of bytes.
fn large_counts(directory: &Path) {
    let (own, none) = (Comm::comm_self(), Info::new(&[]).unwrap());
    let data: Vec<u8> = (0..5003_u32).map(|n| (n % 251) as u8).collect();
    for (bytes, max_count) in [(0, 1000), (1, 1000), (1000, 1000), (1001, 1000), (5003, 1000), (5003, 71)] {
        let path = directory.join(format!("bytes-{bytes}-{max_count}"));
        let what = TransferType::new(Element::Byte, bytes, Some(max_count)).unwrap();
        let file = open(&own, &path, AccessMode::CreateNew);
        file.set_view(3, &FileType::strided(Element::Byte, 7, 11).unwrap(), &none).unwrap();
        assert_eq!(file.write(DataAccess::Pointer, 0, &data, &what).unwrap(), bytes);
        file.set_view(3, &FileType::strided(Element::Byte, 7, 11).unwrap(), &none).unwrap();
        let mut back = vec![0; bytes as usize];
        assert_eq!(file.read(DataAccess::Pointer, 0, &mut back, &what).unwrap(), bytes);
        assert_eq!(back, data[..bytes as usize]);
        file.close().unwrap();
        let content = std::fs::read(&path).unwrap();
        for (n, byte) in data[..bytes as usize].iter().enumerate() {
            assert_eq!(content[3 + n / 7 * 11 + n % 7], *byte);
        }
    }
}

/// Offsets count doubles; each request is reported separately, a failed one too.
fn multiple_requests(directory: &Path) {
    let (own, none, path) = (Comm::comm_self(), Info::new(&[]).unwrap(), directory.join("several"));
    let file = open(&own, &path, AccessMode::CreateNew);
    file.set_view(0, &FileType::plain(Element::Double), &none).unwrap();
    let what = TransferType::new(Element::Double, 8, None).unwrap();
    let (mut transfers, mut reported, mut ran) = (TransferRequests::with_capacity(3), Vec::new(), 0);
    let memory = [[1_u8; 8], [2; 8], [3; 8]];
    let all = [16, 0, 8].iter().zip(&memory);
    transfers.write(
        &file,
        DataAccess::Offset,
        all.map(|(&offset_bytes, m)| Transfer { what: &what, offset_bytes, memory: &m[..] }),
        &mut || ran += 1,
        |n, moved| {
            reported.push((n, moved.unwrap()));
            true
        },
    );
    assert_eq!((reported, ran), (vec![(0, 8), (1, 8), (2, 8)], 1));
    file.sync().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), [[2_u8; 8], [3; 8], [1; 8]].concat());

    // A call that cannot be posted is reported once; posted ones complete.
    let mut reported = Vec::new();
    let none_exists = memory.iter().map(|m| Transfer { what: &what, offset_bytes: 0, memory: &m[..] });
    transfers.write(&file, DataAccess::Ordered, none_exists, &mut || ran += 1, |n, moved| {
        reported.push((n, moved.is_ok()));
        false
    });
    assert_eq!((reported, ran), (vec![(0, false)], 2));
    file.close().unwrap();
}

/// After a panic between begin and end the memory belongs to the caller again, and the file is usable.
fn a_panic_waits(comm: &Comm, directory: &Path) {
    let path = directory.join("panic");
    let rank = comm.rank();
    let file = open(comm, &path, AccessMode::CreateNew);
    let what = TransferType::new(Element::Byte, 100, None).unwrap();
    file.set_view(0, &FileType::plain(Element::Byte), &Info::new(&[]).unwrap()).unwrap();
    let data = [rank as u8 + 1; 100];
    let stop = || resume_unwind(Box::new("on purpose"));
    let mut transfers = TransferRequests::with_capacity(2);
    for turn in 0..2 {
        let stopped = catch_unwind(AssertUnwindSafe(|| {
            let one = Transfer { what: &what, offset_bytes: rank * 100, memory: &data[..] };
            transfers.write(&file, DataAccess::OffsetAll, std::iter::once(one), &mut || stop(), |_, _| true);
        }));
        assert!(stopped.is_err(), "turn {turn}");
        let stopped = catch_unwind(AssertUnwindSafe(|| {
            let _ = file.write_split(DataAccess::OffsetAll, 1000 + rank * 100, &data, &what, &mut || stop());
        }));
        assert!(stopped.is_err(), "turn {turn}");
    }
    file.sync().unwrap();
    comm.idle_barrier().unwrap();
    let content = std::fs::read(&path).unwrap();
    for start in [0, 1000] {
        assert!((0..comm.size() as usize * 100).all(|n| content[start + n] == (n / 100) as u8 + 1));
    }
    file.close().unwrap();
}

/// MPI can be initialized once per process, so this is one test.
#[test]
fn every_call_moves_what_it_says() {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    ranks::on_1_2_and_3("every_call_moves_what_it_says", parent, |comm, directory| {
        round_trip(comm, directory);
        a_panic_waits(comm, directory);
        if comm.is_root() {
            large_counts(directory);
            multiple_requests(directory);
        }
        comm.idle_barrier().unwrap();
    });
}
