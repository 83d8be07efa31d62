//! What the tests of the calls share: parts of ranks, right files, and all ranks together.

#![allow(dead_code)] // each test uses its part

#[path = "../../../ffi/tests/ranks/mod.rs"]
mod ranks;

use std::path::{Path, PathBuf};

use beff_backends::{
    driver, AccessKind, Batch, CallForm, CallPlace, CallStyle, Direct, DriverOptions, FilePath, OpenFile, OpenMode,
    OpenRequest, Parts, Pattern, Ring, Unit,
};
use beff_ffi::Comm;

pub const CALLS: u64 = 5;
pub const ALL: Batch = Batch { first_call: 0, calls: CALLS };
/// Where the shared views begin.
pub const ORIGIN: u64 = 3;

/// Every combination that MPI has a call for.
pub fn table() -> Vec<(AccessKind, CallPlace, CallStyle)> {
    use AccessKind::{Collective, Independent, SharedArrival, SharedOrdered};
    use CallPlace::{Explicit, Pointer};
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

/// Bytes of each rank of `ranks` in a step of `bytes`, as IMB-IO divides it.
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

/// The part of `rank` in steps of `bytes`.
pub fn pattern_of(
    rank: u64,
    ranks: u64,
    bytes: u64,
    (kind, place, style): (AccessKind, CallPlace, CallStyle),
) -> Pattern {
    let parts = parts(bytes, ranks);
    let before: u64 = parts[..rank as usize].iter().sum();
    Pattern {
        kind,
        chunk_bytes: parts[rank as usize],
        chunks_per_call: 1,
        base_bytes: ORIGIN + before,
        stride_bytes: bytes,
        origin_bytes: ORIGIN,
        rank,
        ranks,
        rank_distance_bytes: 0,
        parts: Parts::Unequal,
        form: CallForm { place, style, unit: Unit::Byte },
        stream_bytes: 0,
        max_calls: CALLS,
    }
}

/// A ring whose windows are each one call's.
pub fn ring_for(pattern: &Pattern) -> Ring {
    let mut ring = Ring::new(1 << 16, 0).unwrap();
    ring.set_period_bytes((CALLS * pattern.call_bytes()).max(1));
    ring
}

/// The byte at `offset` of a right file. Neighbours differ, and steps of every length tested.
pub fn byte_at(offset: u64) -> u8 {
    (offset % 251) as u8 + 1
}

/// Lays out what the pattern writes.
pub fn lay_out(ring: &mut Ring, p: &Pattern) {
    for call in 0..CALLS {
        let window = ring.window_mut(p.stream_position(call), p.call_bytes() as usize);
        for (i, byte) in window.iter_mut().enumerate() {
            *byte = byte_at(p.chunk_offset(call) + i as u64);
        }
    }
}

/// True if every call has read its own bytes.
pub fn has_read(ring: &Ring, p: &Pattern) -> bool {
    (0..CALLS).all(|call| {
        let window = ring.window(p.stream_position(call), p.call_bytes() as usize);
        window.iter().enumerate().all(|(i, byte)| *byte == byte_at(p.chunk_offset(call) + i as u64))
    })
}

pub struct World<'a> {
    pub comm: &'a Comm,
    directory: &'a Path,
}

impl World<'_> {
    pub fn open(&self, driver_name: &str, name: &str, mode: OpenMode) -> Box<dyn OpenFile> {
        self.open_with(driver_name, name, mode, Direct::Off)
    }

    pub fn open_with(&self, driver_name: &str, name: &str, mode: OpenMode, direct: Direct) -> Box<dyn OpenFile> {
        let driver = (driver(driver_name).unwrap().make)(&DriverOptions { direct, ..DriverOptions::default() });
        let path = FilePath::of(&self.path(name)).unwrap();
        driver.open(&OpenRequest { path: &path, mode, comm: self.comm, hints: &[] }).unwrap()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Everything that was written is there for all.
    pub fn settle(&self, file: &mut dyn OpenFile) {
        file.sync().unwrap();
        self.comm.idle_barrier().unwrap();
        file.sync().unwrap();
    }

    /// Root alone looks or changes; the others wait.
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

    /// A right file, made without any of the calls.
    pub fn make_file(&self, name: &str, len: u64) {
        self.on_root(|| std::fs::write(self.path(name), (0..len).map(byte_at).collect::<Vec<_>>()).unwrap());
    }

    pub fn remove(&self, name: &str) {
        self.on_root(|| std::fs::remove_file(self.path(name)).unwrap());
    }
}

pub fn name_of(what: &str, bytes: u64, (kind, place, style): (AccessKind, CallPlace, CallStyle)) -> String {
    format!("{what}-{kind:?}-{place:?}-{style:?}-{bytes}")
}

pub type Form = (AccessKind, CallPlace, CallStyle);

/// MPI starts once in a process, so each test starts programs of its own.
pub fn on_all_ranks(name: &str, body: impl FnOnce(&World<'_>)) {
    ranks::on_1_2_and_3(name, Path::new(env!("CARGO_TARGET_TMPDIR")), |comm, directory| {
        body(&World { comm, directory });
    });
}
