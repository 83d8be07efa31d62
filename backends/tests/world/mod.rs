//! Shared by the tests of the calls: parts of ranks, correct files, and all ranks.

#![allow(dead_code)] // each test uses its part

#[path = "../../../ffi/tests/ranks/mod.rs"]
mod ranks;

use std::path::{Path, PathBuf};

use beff_backends::{
    driver, AccessKind, AccessPattern, Batch, CallAddressing, CallForm, CallStyle, Direct, DriverOptions, ElementUnit,
    FilePath, OpenFile, OpenMode, OpenRequest, RankPartition, TransferBuffer,
};
use beff_ffi::Comm;

pub const CALLS: u64 = 5;
pub const ALL: Batch = Batch { first_call: 0, calls: CALLS };
/// Displacement of the shared views.
pub const ORIGIN: u64 = 3;

/// Every combination with a call in MPI.
pub fn call_variants() -> Vec<(AccessKind, CallAddressing, CallStyle)> {
    use AccessKind::{Collective, Independent, SharedArrival, SharedOrdered};
    use CallAddressing::{Explicit, Pointer};
    use CallStyle::{Blocking, Request, Split};
    let mut all = Vec::new();
    for place in [Pointer, Explicit] {
        all.extend([(Independent, place, Blocking), (Independent, place, Request)]);
        all.extend([(Collective, place, Blocking), (Collective, place, Request), (Collective, place, Split)]);
    }
    all.extend([(SharedArrival, Pointer, Blocking), (SharedArrival, Pointer, Request)]);
    all.extend([(SharedOrdered, Pointer, Blocking), (SharedOrdered, Pointer, Split)]);
    all
}

/// Bytes of each rank of `ranks` in a step of `bytes`, divided as in IMB-IO.
pub fn parts(bytes: u64, ranks: u64) -> Vec<u64> {
    let words = bytes.div_ceil(4);
    let mut left = bytes;
    let each = (0..ranks).map(|rank| {
        let part = ((words / ranks + u64::from(rank < words % ranks)) * 4).min(left);
        left -= part;
        part
    });
    each.collect()
}

pub fn pattern_of(
    rank: u64,
    ranks: u64,
    bytes: u64,
    (kind, place, style): (AccessKind, CallAddressing, CallStyle),
) -> AccessPattern {
    let parts = parts(bytes, ranks);
    let before: u64 = parts[..rank as usize].iter().sum();
    AccessPattern {
        kind,
        chunk_bytes: parts[rank as usize],
        chunks_per_call: 1,
        base_bytes: ORIGIN + before,
        stride_bytes: bytes,
        origin_bytes: ORIGIN,
        rank,
        ranks,
        rank_distance_bytes: 0,
        partition: RankPartition::Unequal,
        form: CallForm { addressing: place, style, unit: ElementUnit::Byte },
        stream_bytes: 0,
        max_calls: CALLS,
        order: None,
        mix: None,
    }
}

/// A transfer buffer with a separate window for each call.
pub fn buffer_for(pattern: &AccessPattern) -> TransferBuffer {
    let mut buffer = TransferBuffer::new(1 << 16, 0).unwrap();
    buffer.set_period_bytes((CALLS * pattern.call_bytes()).max(1));
    buffer
}

/// The byte at `offset` of a correct file. It differs from its neighbours, and between steps of every tested length.
pub fn byte_at(offset: u64) -> u8 {
    (offset % 251) as u8 + 1
}

/// Fills the buffer with the bytes that the pattern writes.
pub fn fill_expected(buffer: &mut TransferBuffer, p: &AccessPattern) {
    for call in 0..CALLS {
        let window = buffer.window_mut(p.stream_position(call), p.call_bytes() as usize);
        for (i, byte) in window.iter_mut().enumerate() {
            *byte = byte_at(p.chunk_offset(call) + i as u64);
        }
    }
}

/// True if every call has read its own bytes.
pub fn is_read_back(buffer: &TransferBuffer, p: &AccessPattern) -> bool {
    (0..CALLS).all(|call| {
        let window = buffer.window(p.stream_position(call), p.call_bytes() as usize);
        window.iter().enumerate().all(|(i, byte)| *byte == byte_at(p.chunk_offset(call) + i as u64))
    })
}

pub struct RankFixture<'a> {
    pub comm: &'a Comm,
    directory: &'a Path,
}

impl RankFixture<'_> {
    pub fn open(&self, driver_name: &str, name: &str, mode: OpenMode) -> Box<dyn OpenFile> {
        self.open_with(driver_name, name, mode, Direct::Off)
    }

    pub fn open_with(&self, driver_name: &str, name: &str, mode: OpenMode, direct: Direct) -> Box<dyn OpenFile> {
        let driver = (driver(driver_name).unwrap().create)(&DriverOptions { direct, ..DriverOptions::default() });
        let path = FilePath::of(&self.path(name)).unwrap();
        driver.open(&OpenRequest { path: &path, mode, comm: self.comm, hints: &[] }).unwrap()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Makes written data visible to all ranks.
    pub fn sync_all(&self, file: &mut dyn OpenFile) {
        file.sync().unwrap();
        self.comm.idle_barrier().unwrap();
        file.sync().unwrap();
    }

    pub fn on_root(&self, work: impl FnOnce()) {
        self.comm.idle_barrier().unwrap();
        if self.comm.is_root() {
            work();
        }
        self.comm.idle_barrier().unwrap();
    }

    pub fn expect_file(&self, name: &str, bytes: u64, what: &str) {
        self.on_root(|| {
            let content = std::fs::read(self.path(name)).unwrap();
            let end = ORIGIN + CALLS * bytes;
            assert_eq!(content.len() as u64, if bytes == 0 { 0 } else { end }, "{what}");
            for (offset, byte) in content.iter().enumerate().skip(ORIGIN as usize) {
                assert_eq!(*byte, byte_at(offset as u64), "{what} at {offset}");
            }
        });
    }

    /// A correct file, created without any of the calls.
    pub fn make_file(&self, name: &str, len: u64) {
        self.on_root(|| std::fs::write(self.path(name), (0..len).map(byte_at).collect::<Vec<_>>()).unwrap());
    }

    pub fn remove(&self, name: &str) {
        self.on_root(|| std::fs::remove_file(self.path(name)).unwrap());
    }
}

pub fn name_of(what: &str, bytes: u64, (kind, place, style): (AccessKind, CallAddressing, CallStyle)) -> String {
    format!("{what}-{kind:?}-{place:?}-{style:?}-{bytes}")
}

pub type CallVariant = (AccessKind, CallAddressing, CallStyle);

/// MPI can be initialized once per process, so that each test starts its own processes.
pub fn on_all_ranks(name: &str, body: impl FnOnce(&RankFixture<'_>)) {
    ranks::on_1_2_and_3(name, Path::new(env!("CARGO_TARGET_TMPDIR")), |comm, directory| {
        body(&RankFixture { comm, directory });
    });
}
