//! Collects for each file what [`super::findings`] judges: reuse of bytes, metadata, alignment, distribution over ranks, waiting time.

use std::collections::{BTreeMap, HashMap};

use super::extents::{Extent, ExtentStore};
use super::groups::Groups;
use super::marks::Marks;
use super::reuse::{reuse, Amount, Reuse};
use super::waits::{CollectiveWaits, WaitTotals};
use crate::access::{CallEffect, ResolvedAccess};
use crate::function::{AccessForm, Function, Role};
use crate::layout::TypeLayouts;
use crate::{Call, Direction, ProfileHead};

/// Accesses up to this size at the begin of a file are taken for metadata.
pub(super) const METADATA_BYTES: u64 = 4 << 10;
/// Length of the begin of a file.
pub(super) const FILE_BEGIN_BYTES: u64 = 64 << 10;
/// Stripe size of Lustre if no hint reports it.
const LUSTRE_STRIPE_BYTES: u64 = 1 << 20;
/// Maximum number of ranges of one access whose reuse is followed.
const MAX_RANGES: usize = 1 << 14;

/// Accesses of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AccessTotals {
    pub calls: u64,
    pub bytes: u64,
    pub ns: u64,
}

impl AccessTotals {
    fn add(&mut self, bytes: u64, ns: u64) {
        self.calls += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.ns = self.ns.saturating_add(ns);
    }
}

/// A file, for the findings.
#[derive(Clone, Debug, Default)]
pub(super) struct FileUse {
    /// Small accesses at the begin.
    pub at_begin: AccessTotals,
    /// Accesses to stripes that would fit into fewer.
    pub crossing: AccessTotals,
    pub stripe_bytes: Option<u64>,
    /// True if a hint reports the stripe size.
    pub is_stripe_known: bool,
    /// Independent accesses of files that several ranks opened together.
    pub independent: AccessTotals,
    pub independent_ranks: u64,
    /// Largest number of them by one rank.
    pub most_independent_calls: u64,
    pub all: AccessTotals,
    /// Largest number of ranks that opened it together.
    pub opened_by: usize,
    /// The rank that moved most bytes.
    pub busiest: (u32, AccessTotals),
    /// Bytes whose position or ranges are unknown.
    pub unknown_bytes: u64,
    /// Accessed inside calls of HDF5.
    pub is_hdf5: bool,
    current: AccessTotals,
    current_independent_calls: u64,
}

/// An opening by the current rank.
#[derive(Clone, Debug)]
struct Opening {
    file: u32,
    comm: u32,
    ranks: usize,
    /// Number of this opening among those of the same file and communicator.
    number: u32,
    collective_calls: u64,
    deletes_on_close: bool,
    /// Time to set the view for the next access.
    view_ns: u64,
    /// The latest access; the view that is reset after it belongs to it.
    held: Option<HeldAccess>,
}

#[derive(Clone, Copy, Debug)]
struct HeldAccess {
    access: ResolvedAccess,
    begin_ns: u64,
    end_ns: u64,
    ns: u64,
    group: u32,
}

pub(super) struct Analysis<'a> {
    head: &'a ProfileHead,
    layouts: &'a TypeLayouts,
    pub files: BTreeMap<u32, FileUse>,
    extents: ExtentStore,
    waits: CollectiveWaits,
    rank: u32,
    openings: HashMap<u32, Opening>,
    opening_counts: HashMap<(u32, u32), u32>,
    touched: Vec<u32>,
    marks: Marks,
    groups: Groups,
    bytes: u64,
    /// The rank that moved most bytes of all files.
    pub busiest: (u32, u64),
}

/// Reuse of the bytes of a kind of accesses.
pub(super) struct GroupReuse {
    /// Row of [`super::collect`].
    pub row: u32,
    /// Index of its marker in [`AnalysisTotals::marks`].
    pub mark: Option<u32>,
    /// Scaled if sampled.
    pub reuse: Reuse,
}

/// Results for all files.
pub(super) struct AnalysisTotals {
    pub files: BTreeMap<u32, FileUse>,
    pub reuse: Vec<GroupReuse>,
    /// Names of markers.
    pub marks: Vec<String>,
    pub is_sampled: bool,
    pub waits: WaitTotals,
    pub busiest: (u32, u64),
}

impl<'a> Analysis<'a> {
    pub fn new(head: &'a ProfileHead, layouts: &'a TypeLayouts) -> Self {
        Self {
            head,
            layouts,
            files: BTreeMap::new(),
            extents: ExtentStore::default(),
            waits: CollectiveWaits::default(),
            rank: 0,
            openings: HashMap::new(),
            opening_counts: HashMap::new(),
            touched: Vec::new(),
            marks: Marks::default(),
            groups: Groups::default(),
            bytes: 0,
            busiest: (0, 0),
        }
    }

    /// Adds a call on `file`, counted in `row`.
    pub fn call(&mut self, rank: u32, call: &Call, file: Option<u32>, row: u32, effect: CallEffect) {
        self.rank = rank;
        if call.function == Function::Marker {
            self.marks.add(call);
        }
        if call.error.is_some() {
            return;
        }
        if call.function == Function::Open {
            self.open(call);
        }
        let Some(file) = file else { return };
        if call.function.is_collective() {
            self.collective(call);
        }
        match (call.function, call.function.role()) {
            (_, Role::Data { form, collective, .. }) => self.data(call, (form, collective), (file, row), effect),
            (Function::SetView, _) => self.set_view(call),
            (Function::SetSize | Function::Truncate, _) => {
                if let Some(bytes) = call.offset.and_then(|offset| u64::try_from(offset).ok()) {
                    self.extents.truncate(file, call.begin_ns, bytes, true);
                }
            }
            (Function::Delete | Function::Unlink | Function::OpenTruncate, _) => {
                self.extents.truncate(file, call.begin_ns, 0, true);
            }
            (Function::Rename, _) => {
                self.extents.truncate(file, call.begin_ns, 0, false);
                if let Some(replaced) = call.target {
                    self.extents.truncate(replaced, call.begin_ns, 0, true);
                }
            }
            (Function::Close, _) => {
                if let Some(mut opening) = call.handle.and_then(|handle| self.openings.remove(&handle)) {
                    self.flush(opening.held.take());
                    if opening.deletes_on_close {
                        self.extents.truncate(file, call.begin_ns, 0, true);
                    }
                }
            }
            _ => {}
        }
    }

    fn open(&mut self, call: &Call) {
        let (Some(handle), Some(file)) = (call.handle, call.file) else { return };
        let comm = call.comm.unwrap_or(u32::MAX);
        let ranks = self.head.comms.get(comm as usize).map_or(1, Vec::len);
        let count = self.opening_counts.entry((file, comm)).or_default();
        *count += 1;
        let opening = Opening {
            file,
            comm,
            ranks,
            number: *count,
            collective_calls: 0,
            deletes_on_close: call.amode.is_some_and(|mode| mode.has("delete_on_close")),
            view_ns: 0,
            held: None,
        };
        self.openings.insert(handle, opening);
        // A file that is gone or empty was removed, truncated or renamed, possibly by another process.
        if call.number.is_some_and(|size| size <= 0) {
            self.extents.truncate(file, call.begin_ns, 0, false);
        }
        let hint = |info: Option<u32>| {
            let info = self.head.infos.get(info? as usize)?;
            let value = &info.iter().find(|(key, _)| key == "striping_unit")?.1;
            value.trim().parse::<u64>().ok().filter(|bytes| *bytes > 0)
        };
        let is_lustre = || self.head.files.get(file as usize).is_some_and(|file| file.fs_type == "lustre");
        let known = hint(call.granted);
        let state = self.files.entry(file).or_default();
        state.opened_by = state.opened_by.max(ranks);
        state.is_stripe_known |= known.is_some();
        state.stripe_bytes = state.stripe_bytes.or(known).or_else(|| is_lustre().then_some(LUSTRE_STRIPE_BYTES));
    }

    fn collective(&mut self, call: &Call) {
        let Some(opening) = call.handle.and_then(|handle| self.openings.get_mut(&handle)) else { return };
        if opening.ranks > 1 {
            let key = (opening.file, opening.comm, opening.number, opening.collective_calls);
            opening.collective_calls += 1;
            self.waits.add(key, self.rank, call.begin_ns, call.end_ns - call.begin_ns);
        }
    }

    /// A view that is set for the next access, or reset after the latest one.
    fn set_view(&mut self, call: &Call) {
        let Some(opening) = call.handle.and_then(|handle| self.openings.get_mut(&handle)) else { return };
        let ns = call.end_ns - call.begin_ns;
        let is_reset = call.offset == Some(0) && call.etype == call.filetype && opening.view_ns == 0;
        match &mut opening.held {
            Some(held) if is_reset => held.ns = held.ns.saturating_add(ns),
            _ => opening.view_ns = opening.view_ns.saturating_add(ns),
        }
    }

    fn data(
        &mut self,
        call: &Call,
        (form, collective): (AccessForm, bool),
        (file, row): (u32, u32),
        effect: CallEffect,
    ) {
        let ns = call.end_ns - call.begin_ns;
        let state = self.files.entry(file).or_default();
        let mark = self.marks.current(call.thread);
        state.is_hdf5 |= mark.is_some();
        let group = self.groups.number(row, mark.flatten());
        if form == AccessForm::End {
            state.all.ns = state.all.ns.saturating_add(ns);
            state.current.ns = state.current.ns.saturating_add(ns);
            return;
        }
        let access = match effect {
            CallEffect::Access(access) => Some(access),
            _ => None,
        };
        let bytes = access.map(|access| access.bytes).or(call.bytes).unwrap_or(0);
        if state.current == AccessTotals::default() {
            self.touched.push(file);
        }
        state.all.add(bytes, ns);
        state.current.add(bytes, ns);
        self.bytes = self.bytes.saturating_add(bytes);
        let mut opening = call.handle.and_then(|handle| self.openings.get_mut(&handle));
        if !collective && opening.as_ref().is_some_and(|opening| opening.ranks > 1) {
            state.independent.add(bytes, ns);
            state.current_independent_calls += 1;
        }
        let Some(access) = access else {
            state.unknown_bytes = state.unknown_bytes.saturating_add(bytes);
            return;
        };
        let hull = access.hull(self.layouts);
        let (begin, end) = (u64::try_from(hull.start).unwrap_or(0), u64::try_from(hull.end).unwrap_or(0));
        if bytes > 0 && bytes <= METADATA_BYTES && end <= FILE_BEGIN_BYTES && !collective {
            state.at_begin.add(bytes, ns);
        }
        if let Some(stripe) =
            state.stripe_bytes.filter(|stripe| bytes > 0 && end - begin == bytes && is_crossing(begin, end, *stripe))
        {
            debug_assert!(stripe > 0);
            state.crossing.add(bytes, ns);
        }
        let view_ns = opening.as_mut().map_or(0, |opening| std::mem::take(&mut opening.view_ns));
        let held =
            HeldAccess { access, begin_ns: call.begin_ns, end_ns: call.end_ns, ns: ns.saturating_add(view_ns), group };
        let before = match opening {
            Some(opening) => opening.held.replace(held),
            None => Some(held),
        };
        self.flush(before);
    }

    /// Follows the ranges of an access.
    fn flush(&mut self, held: Option<HeldAccess>) {
        let Some(HeldAccess { access, begin_ns, end_ns, ns, group }) = held else { return };
        let (Some(file), true) = (access.file, access.bytes > 0) else { return };
        let is_write = access.direction == Direction::Write;
        for (number, range) in access.file_ranges(self.layouts).enumerate() {
            if number == MAX_RANGES {
                self.files.entry(file).or_default().unknown_bytes += access.bytes;
                break;
            }
            let at = u64::try_from(range.at).unwrap_or(0);
            let share = u128::from(ns) * u128::from(range.bytes) / u128::from(access.bytes);
            let ns = u64::try_from(share).unwrap_or(0);
            let end = at.saturating_add(range.bytes);
            self.extents.add(file, Extent { at, end, begin_ns, end_ns, ns, rank: self.rank, group, is_write });
        }
    }

    /// All calls of a rank have been added.
    pub fn end_rank(&mut self) {
        for opening in std::mem::take(&mut self.openings).into_values() {
            self.flush(opening.held);
        }
        self.opening_counts.clear();
        self.marks.end_rank();
        if self.bytes > self.busiest.1 {
            self.busiest = (self.rank, self.bytes);
        }
        self.bytes = 0;
        for file in &self.touched {
            let state = self.files.entry(*file).or_default();
            let current = std::mem::take(&mut state.current);
            if current.bytes > state.busiest.1.bytes {
                state.busiest = (self.rank, current);
            }
            let independent_calls = std::mem::take(&mut state.current_independent_calls);
            state.independent_ranks += u64::from(independent_calls > 0);
            state.most_independent_calls = state.most_independent_calls.max(independent_calls);
        }
        self.extents.end_rank(self.touched.drain(..));
    }

    pub fn finish(mut self) -> AnalysisTotals {
        self.end_rank();
        let (mut found, mut is_sampled) = (Vec::new(), false);
        for mut extents in self.extents.files.into_values() {
            if extents.has_lost_truncations {
                continue;
            }
            let scale = extents.scale();
            is_sampled |= scale > 1;
            found.extend(reuse(&mut extents).into_iter().filter_map(|(group, reuse)| {
                let (row, mark) = self.groups.get(group)?;
                Some(GroupReuse { row, mark, reuse: scaled(reuse, scale) })
            }));
        }
        AnalysisTotals {
            files: self.files,
            reuse: found,
            marks: self.marks.into_names(),
            is_sampled,
            waits: self.waits.totals(),
            busiest: self.busiest,
        }
    }
}

fn scaled(reuse: Reuse, scale: u64) -> Reuse {
    #[allow(clippy::cast_precision_loss)] // a power of two
    let of = |amount: Amount| Amount { bytes: amount.bytes.saturating_mul(scale), ns: amount.ns * scale as f64 };
    Reuse {
        overwritten_first: of(reuse.overwritten_first),
        overwritten_again: of(reuse.overwritten_again),
        discarded: of(reuse.discarded),
        read_then_written: of(reuse.read_then_written),
        read_again: of(reuse.read_again),
    }
}

/// True if a range is in more stripes than its length needs.
fn is_crossing(begin: u64, end: u64, stripe_bytes: u64) -> bool {
    let used = (end - 1) / stripe_bytes - begin / stripe_bytes + 1;
    used > (end - begin).div_ceil(stripe_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_crosses_if_another_place_needs_fewer_stripes() {
        for (begin, end, crosses) in [
            (0, 100, false),
            (0, 101, false),
            (50, 150, true),
            (99, 101, true),
            (100, 200, false),
            (50, 350, true),
            (1, 2, false),
        ] {
            assert_eq!(is_crossing(begin, end, 100), crosses, "{begin} {end}");
        }
    }
}
