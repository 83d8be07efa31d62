//! Accessed byte ranges of each file, in bounded memory: of a file with too many ranges only a sample of its regions is kept.

use std::collections::BTreeMap;

/// Maximum number of ranges kept for all files together (56 bytes each).
const MAX_EXTENTS: usize = 1 << 20;
/// A sampled file has at least this many regions, if they are not smaller than [`MIN_REGION_BITS`].
const REGION_COUNT_BITS: u32 = 12;
const MIN_REGION_BITS: u32 = 12;

/// Maximum pause inside a range. During a longer one other ranks may access its second part, and the order would be lost.
const MAX_PAUSE_NS: u64 = 1_000_000;

/// A range of bytes accessed by one rank. Adjacent successive accesses of a kind are one range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub at: u64,
    pub end: u64,
    /// Begin of its first call.
    pub begin_ns: u64,
    /// End of its last call.
    pub end_ns: u64,
    /// Duration of its calls.
    pub ns: u64,
    pub rank: u32,
    /// Kind of access, see [`super::analysis`].
    pub group: u32,
    pub is_write: bool,
}

/// What happened to a file, in no order.
#[derive(Clone, Debug, Default)]
pub(super) struct FileExtents {
    pub extents: Vec<Extent>,
    /// Times at which the file no longer had its content from an offset on, and whether that was lost.
    pub truncations: Vec<(u64, u64, bool)>,
    /// Some of them are not known.
    pub has_lost_truncations: bool,
    /// One of 2^n regions is kept.
    sampling_bits: u32,
    region_bits: u32,
    /// Latest range of the current rank.
    last: Option<usize>,
}

impl FileExtents {
    /// Number of regions for which one is kept.
    pub fn scale(&self) -> u64 {
        1 << self.sampling_bits
    }

    fn keeps(&self, region: u64) -> bool {
        // Fibonacci hashing: neighbouring regions are independent of each other.
        let hash = region.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash >> (64 - self.sampling_bits).min(63) == 0 || self.sampling_bits == 0
    }

    /// Adds a range; returns how many ranges there are more.
    fn push(&mut self, new: Extent) -> usize {
        if let Some(known) = self.last.and_then(|index| self.extents.get_mut(index)) {
            let is_same = (known.rank, known.group, known.is_write) == (new.rank, new.group, new.is_write);
            if is_same && known.end == new.at && new.begin_ns.saturating_sub(known.end_ns) <= MAX_PAUSE_NS {
                (known.end, known.end_ns) = (new.end, new.end_ns);
                known.ns = known.ns.saturating_add(new.ns);
                return 0;
            }
        }
        self.last = Some(self.extents.len());
        self.extents.push(new);
        1
    }

    fn add(&mut self, new: Extent) -> usize {
        if self.sampling_bits == 0 {
            return self.push(new);
        }
        let (mut at, mut added) = (new.at, 0);
        while at < new.end {
            let region = at >> self.region_bits;
            let end = ((region + 1) << self.region_bits).min(new.end);
            if self.keeps(region) {
                let share = u128::from(new.ns) * u128::from(end - at) / u128::from(new.end - new.at);
                added += self.push(Extent { at, end, ns: u64::try_from(share).unwrap_or(0), ..new });
            }
            at = end;
        }
        added
    }

    /// Halves the sample.
    fn thin(&mut self) {
        if self.sampling_bits == 0 {
            let end = self.extents.iter().map(|extent| extent.end).max().unwrap_or(1);
            self.region_bits = (u64::BITS - end.leading_zeros()).saturating_sub(REGION_COUNT_BITS).max(MIN_REGION_BITS);
        }
        self.sampling_bits += 1;
        self.last = None;
        for extent in std::mem::take(&mut self.extents) {
            self.add(extent);
        }
        self.last = None;
    }
}

/// Ranges of all files.
#[derive(Clone, Debug)]
pub(super) struct ExtentStore {
    pub files: BTreeMap<u32, FileExtents>,
    count: usize,
    truncation_count: usize,
    limit: usize,
}

impl Default for ExtentStore {
    fn default() -> Self {
        Self::with_limit(MAX_EXTENTS)
    }
}

impl ExtentStore {
    pub fn with_limit(limit: usize) -> Self {
        Self { files: BTreeMap::new(), count: 0, truncation_count: 0, limit }
    }

    pub fn add(&mut self, file: u32, extent: Extent) {
        if extent.at >= extent.end {
            return;
        }
        self.count += self.files.entry(file).or_default().add(extent);
        while self.count > self.limit {
            let Some(largest) = self.files.values_mut().max_by_key(|file| file.extents.len()) else { return };
            // Regions of the minimum size may all be in the sample: then there is nothing to gain.
            if largest.sampling_bits >= 40 {
                return;
            }
            let before = largest.extents.len();
            largest.thin();
            self.count = self.count + largest.extents.len() - before;
        }
    }

    /// The file no longer has its content from an offset on. It may exist under another name, unless it is lost.
    pub fn truncate(&mut self, file: u32, ns: u64, bytes: u64, is_lost: bool) {
        let state = self.files.entry(file).or_default();
        state.last = None;
        if self.truncation_count < self.limit {
            self.truncation_count += 1;
            state.truncations.push((ns, bytes, is_lost));
        } else {
            state.has_lost_truncations = true;
        }
    }

    /// The next calls are of another rank.
    pub fn end_rank(&mut self, files: impl Iterator<Item = u32>) {
        for file in files {
            if let Some(state) = self.files.get_mut(&file) {
                state.last = None;
            }
        }
    }
}
