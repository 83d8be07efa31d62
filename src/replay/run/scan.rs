//! Scan of all calls of a rank before any file is created: validity, content and needs.

use std::collections::{BTreeMap, HashMap, HashSet};

use beff_trace::access::OUT_OF_RANGE;
use beff_trace::layout::TypeLayouts;
use beff_trace::{AccessForm, Call, CallId, Direction, Function, ProfileHead, RecordingStatus, Role};
use serde::{Deserialize, Serialize};

use super::call_location::{CallLocation, LocationTracker};
use super::call_source::CallSource;
use super::write_source::WriteSources;
use crate::replay::plan::collective_counts::{CollectiveCounter, CollectiveCounts, OpeningId};
use crate::replay::plan::file_extents::FileExtents;
use crate::replay::plan::landing::{page_misalignment, LandingAllocator, ALIGN_BYTES};
use crate::replay::plan::matching::{StepSummary, SynchronizationStepTracker};
use crate::replay::plan::memory_image::{MemoryImages, SegmentSet};
use crate::replay::plan::memory_relocation::MemoryRelocation;
use crate::replay::plan::omission::{CallDisposition, CallFilter, OmissionsByFunction, OmittedCalls};
use crate::replay::plan::preparation::{FilePreparation, PreparationPlanner, PreparationSchedule, PreparationWork};
use crate::replay::plan::sieving_gaps::SievingGaps;

/// Support of programs by one backend.
#[derive(Clone, Copy, Debug)]
pub struct ReplaySupport {
    /// Why a call is unsupported.
    pub unsupported: fn(&Call) -> Option<&'static str>,
    /// The backend needs the location of data in files.
    pub by_offsets: bool,
}

/// Content and needs of the calls of one rank, combined over all ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScanTotals {
    /// Replayed calls, without begin and end of the program.
    pub calls: u64,
    /// Calls that transfer data, without second halves.
    pub data_calls: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Begin of the first call and end of the last one.
    pub span_ns: Option<[u64; 2]>,
    /// Number of threads that made calls.
    pub threads: u64,
    /// Extent of the memory of writes below its address.
    pub below_bytes: u64,
    /// Extent above it.
    pub above_bytes: u64,
    /// Size of the landing area.
    pub landing_bytes: u64,
    /// Size of the memory images, in both areas.
    pub placed_bytes: u64,
    /// Bytes written from memory outside of them.
    pub strewn_bytes: u64,
    /// Written ranges of each file.
    pub extents: BTreeMap<u32, FileExtents>,
    /// Omitted calls, by backend.
    pub omissions: Vec<Vec<OmittedCalls>>,
    /// Collective calls.
    pub meetings: CollectiveCounts,
    /// Discarded calls.
    pub calls_discarded: u64,
    /// Preserved orderings.
    pub orderings: u64,
    /// Lost orderings.
    pub orderings_lost: u64,
    /// Gaps that an MPI library may have overwritten, by file.
    pub gaps: BTreeMap<u32, SievingGaps>,
}

/// Scan of the calls of one rank.
#[derive(Clone, Debug, Default)]
pub struct RankScan {
    /// Totals to be combined over all ranks.
    pub totals: ScanTotals,
    /// Calls of other ranks that calls of this one wait for.
    pub awaited_calls: Vec<CallId>,
    /// Those of them that are never issued, or for which a wait would deadlock.
    pub lost_calls: HashSet<CallId>,
    /// A wait of some rank is given up, because it would deadlock: the content of the files is unknown.
    pub has_lost_waits: bool,
    /// Calls of this rank that others wait for, with the waiting ranks.
    pub calls_awaited_by_others: Vec<(u64, u32)>,
    /// Number of calls of this rank that are replayed.
    pub replayed_lines: u64,
    /// Memory of the timed repetitions.
    pub images: MemoryImages,
    /// By backend: begin of the first write of this rank that is omitted or discarded; `u64::MAX` if none.
    pub first_omitted_write_ns: Vec<u64>,
    /// By backend: synchronizing calls.
    pub steps: Vec<StepSummary>,
    /// Openings before which this rank prepares files.
    pub preparations: Vec<FilePreparation>,
    /// Files that this rank uses.
    pub used_files: HashSet<u32>,
    /// Constraints between the preparations of all ranks and their calls.
    pub preparation_schedule: PreparationSchedule,
}

impl ScanTotals {
    /// Data written by the ranks. A rank that writes little uses little memory. None on overflow.
    #[must_use]
    pub fn sources(&self, seed: u64, cold_bytes: u64) -> Option<WriteSources> {
        WriteSources::new(seed, self.below_bytes, self.above_bytes, cold_bytes.min(self.strewn_bytes))
    }
}

impl RankScan {
    /// Begin of the image in the source, after this number of bytes, and total size of the source.
    #[must_use]
    pub fn source_bytes(&self, words_bytes: u64) -> [u64; 2] {
        let begin = words_bytes.next_multiple_of(ALIGN_BYTES);
        [begin, begin + self.images.bytes(Direction::Write)]
    }

    /// Gives up waits for calls of other ranks.
    pub fn give_up(&mut self, calls: HashSet<CallId>) {
        self.awaited_calls.retain(|call| !calls.contains(call));
        self.lost_calls.extend(calls);
    }

    /// The same for the landing area.
    #[must_use]
    pub fn landing_bytes(&self) -> [u64; 2] {
        let begin = self.totals.landing_bytes.next_multiple_of(ALIGN_BYTES);
        [begin, begin + self.images.bytes(Direction::Read)]
    }
}

/// Scans the calls of `rank` up to the `limits` of each opening, for this amount of cache-cold memory; `verifies`: a repetition compares
/// data.
///
/// # Errors
/// An error in the profile, in words, with line and next step.
pub fn scan_rank(
    source: CallSource<'_>,
    rank: u32,
    (layouts, relocation): (&TypeLayouts, &MemoryRelocation),
    refusals: &[ReplaySupport],
    limits: &[(OpeningId, u64)],
    (cold_bytes, verifies): (u64, bool),
) -> Result<RankScan, String> {
    let limits: HashMap<OpeningId, u64> = limits.iter().copied().collect();
    let (head, calls) = source.read_rank(rank)?;
    let mut scanner = ProfileScanner::new(rank, (&head, layouts), refusals, (cold_bytes, verifies));
    scanner.max_bytes = i64::MAX.unsigned_abs() / (head.processes.len() as u64).max(1);
    scanner.is_complete =
        head.processes.get(rank as usize).is_some_and(|process| process.end == RecordingStatus::Complete);
    let mut cut = None;
    let mut number = 0_u64;
    for call in calls {
        let mut call = call.map_err(|e| e.to_string())?;
        relocation.relocate(&mut call);
        if cut.is_none() {
            let met = scanner.collectives.count_call(&call);
            if met.is_some_and(|(opening, count)| limits.get(&opening).is_some_and(|most| count > *most)) {
                cut = Some(number);
                scanner.scan.first_omitted_write_ns.iter_mut().for_each(|first| *first = call.begin_ns.min(*first));
            }
        }
        match cut {
            Some(_) => scanner.scan.totals.calls_discarded += 1,
            None => scanner.scan_call(&call).map_err(|what| {
                format!(
                    "{}: rank {rank}, call at {} ns, {}: {what}",
                    source.path.display(),
                    call.begin_ns,
                    call.function.name()
                )
            })?,
        }
        number += 1;
    }
    let mut scan = scanner.finish();
    scan.replayed_lines = cut.unwrap_or(number);
    Ok(scan)
}

struct ProfileScanner<'a> {
    rank: u32,
    layouts: &'a TypeLayouts,
    locations: LocationTracker<'a>,
    filters: Vec<(CallFilter, bool)>,
    matching: Vec<(SynchronizationStepTracker<'a>, StepSummary)>,
    preparations: PreparationPlanner<'a>,
    comms: &'a [Vec<u32>],
    comm_of_handle: HashMap<u32, u32>,
    openings: HashMap<u32, u64>,
    omissions: Vec<OmissionsByFunction>,
    collectives: CollectiveCounter,
    /// Reads of timed repetitions outside the images, and those of a repetition that compares data.
    landing: LandingScan,
    verified_landing: Option<LandingScan>,
    cold_bytes: u64,
    /// Memory of writes and of reads, for timed repetitions.
    segments: [SegmentSet; 2],
    threads: HashSet<u32>,
    seen_waits: HashSet<CallId>,
    file_of_handle: HashMap<u32, u32>,
    directions: HashMap<u64, Direction>,
    /// Upper limit of the bytes of one rank and direction, so that the sum over ranks does not overflow.
    max_bytes: u64,
    /// The recording of this rank is complete.
    is_complete: bool,
    scan: RankScan,
}

impl<'a> ProfileScanner<'a> {
    fn new(
        rank: u32,
        (head, layouts): (&'a ProfileHead, &'a TypeLayouts),
        refusals: &[ReplaySupport],
        (cold_bytes, verifies): (u64, bool),
    ) -> Self {
        let steps = |refusal: &ReplaySupport| {
            (SynchronizationStepTracker::new(&head.comms, refusal.by_offsets), StepSummary::default())
        };
        Self {
            rank,
            layouts,
            locations: LocationTracker::new(layouts),
            filters: refusals.iter().map(|r| (CallFilter::new(r.unsupported), r.by_offsets)).collect(),
            matching: refusals.iter().map(steps).collect(),
            preparations: PreparationPlanner::new(head, rank),
            comms: &head.comms,
            comm_of_handle: HashMap::new(),
            openings: HashMap::new(),
            omissions: vec![OmissionsByFunction::default(); refusals.len()],
            collectives: CollectiveCounter::default(),
            landing: LandingScan::new(cold_bytes),
            verified_landing: verifies.then(|| LandingScan::new(cold_bytes)),
            cold_bytes,
            segments: Default::default(),
            threads: HashSet::new(),
            seen_waits: HashSet::new(),
            file_of_handle: HashMap::new(),
            directions: HashMap::new(),
            max_bytes: i64::MAX.unsigned_abs(),
            is_complete: true,
            scan: RankScan { first_omitted_write_ns: vec![u64::MAX; refusals.len()], ..RankScan::default() },
        }
    }

    fn scan_call(&mut self, call: &Call) -> Result<(), String> {
        let mut of_program = false;
        let types = [call.datatype, call.etype, call.filetype];
        if let Some(number) = types.into_iter().flatten().find(|number| *number as usize >= self.layouts.len()) {
            return Err(format!("there is no type {number}; correct the number or add the type"));
        }
        let places = self.locations.locate(call);
        let is_write = call.function.direction() == Some(Direction::Write);
        let backends = self.filters.iter_mut().zip(&mut self.omissions).zip(&mut self.scan.first_omitted_write_ns);
        for ((((filter, by_offsets), leavings), unmade_ns), (steps, summary)) in backends.zip(&mut self.matching) {
            let mut kept = call.clone();
            let fate = filter.classify(&mut kept, places.unknown_reason.filter(|_| *by_offsets));
            steps.observe(&kept, fate == CallDisposition::Replayed, |step| summary.add(&step, call));
            match fate {
                CallDisposition::Omitted(reason) => {
                    leavings.record(self.rank, call, reason);
                    if is_write {
                        *unmade_ns = call.begin_ns.min(*unmade_ns);
                    }
                }
                CallDisposition::NonFileCall => of_program = true,
                CallDisposition::Replayed => {}
            }
        }
        let sums = &mut self.scan.totals;
        let [first, last] = sums.span_ns.unwrap_or([call.begin_ns, call.end_ns]);
        sums.span_ns = Some([first.min(call.begin_ns), last.max(call.end_ns)]);
        if of_program {
            return Ok(());
        }
        sums.calls += 1;
        self.threads.insert(call.thread);
        for after in &call.after {
            if self.seen_waits.insert(*after) {
                self.scan.awaited_calls.push(*after);
            }
        }
        if let (Some(handle), Some(file)) = (call.handle, call.file) {
            self.file_of_handle.insert(handle, file);
        }
        self.scan.used_files.extend(call.file);
        self.collect_preparations(call);
        self.check_opened(call)?;
        self.update_file_size(call);
        self.update_write_range(call, places)?;
        self.scan_data_access(call)?;
        self.complete_requests(call)
    }

    fn collect_preparations(&mut self, call: &Call) {
        let PreparationWork { removed: gone, required, .. } = self.preparations.work_before(call);
        let opening = call.comm.filter(|_| call.function == Function::Open).map(|comm| {
            if let Some(handle) = call.handle {
                self.comm_of_handle.insert(handle, comm);
            }
            let number = self.openings.entry(comm).or_default();
            *number += 1;
            (comm, *number - 1)
        });
        let (begin_ns, rank) = (call.begin_ns, self.rank);
        let files = gone.into_iter().chain(required.map(|(file, _)| file));
        self.scan.preparations.extend(files.map(|file| FilePreparation { begin_ns, rank, file, opening }));
    }

    /// Requires that the file was opened, unless the recording is incomplete.
    fn check_opened(&self, call: &Call) -> Result<(), String> {
        match call.handle.filter(|handle| self.is_complete && !self.file_of_handle.contains_key(handle)) {
            Some(handle) => Err(format!("handle {handle} was not opened before; correct the number")),
            None => Ok(()),
        }
    }

    fn update_file_size(&mut self, call: &Call) {
        let Some(file) = self.file_of(call).filter(|_| call.error.is_none()) else { return };
        let add: fn(&mut FileExtents, u64, u64) = match call.function {
            Function::SetSize => FileExtents::add_length,
            Function::Preallocate => FileExtents::add_preallocation,
            Function::Open if self.preparations.is_preparing_rank(call) => FileExtents::add_opening,
            _ => return,
        };
        let bytes = if call.function == Function::Open { call.number } else { call.offset };
        if let Some(bytes) = bytes.and_then(|bytes| u64::try_from(bytes).ok()) {
            add(self.scan.totals.extents.entry(file).or_default(), call.begin_ns, bytes);
        }
    }

    /// Range of a write in its file.
    ///
    /// # Errors
    /// An invalid location, in words.
    fn update_write_range(&mut self, call: &Call, places: CallLocation) -> Result<(), String> {
        if let Some(reason) = places.unknown_reason.filter(|reason| *reason == OUT_OF_RANGE) {
            return Err(format!("{reason}; correct its offset, its count or the view"));
        }
        let is_write = call.function.direction() == Some(Direction::Write) && call.error.is_none();
        let Some(file) = self.file_of(call).filter(|_| is_write) else { return Ok(()) };
        let comm = call
            .handle
            .and_then(|handle| self.comm_of_handle.get(&handle))
            .and_then(|comm| self.comms.get(*comm as usize));
        let together = call.function.is_collective() && comm.is_none_or(|ranks| ranks.len() > 1);
        let gaps = self.scan.totals.gaps.entry(file).or_default();
        gaps.add_write(places.access.as_ref(), self.layouts, together);
        let extents = self.scan.totals.extents.entry(file).or_default();
        match &places.access {
            Some(access) => extents.add_write(call.begin_ns, access, self.layouts, together),
            None => extents.add_unlocated_write(requested_bytes(self.layouts, call)),
        }
        Ok(())
    }

    fn file_of(&self, call: &Call) -> Option<u32> {
        self.file_of_handle.get(&call.handle?).copied()
    }

    fn scan_data_access(&mut self, call: &Call) -> Result<(), String> {
        let Role::Data { direction, form, .. } = call.function.role() else { return Ok(()) };
        self.add_bytes(direction, call.bytes.unwrap_or(0))?;
        if let Some(request) = call.request {
            self.directions.insert(request, direction);
        }
        if form == AccessForm::End {
            self.landings().for_each(|landing| landing.end_split(call));
            return Ok(());
        }
        if call.error.is_none() && call.count.is_some_and(|count| count < 0) {
            return Err("a count below 0 in a call without an error; correct the count, or add error=".into());
        }
        let sums = &mut self.scan.totals;
        sums.data_calls += 1;
        let span = memory_span(self.layouts, call)?;
        let (below, above) = span;
        let bytes = below.checked_add(above);
        let far = "the size of its memory overflows; correct its count or type";
        let begin = memory_begin(call, span);
        let placed = match (begin, bytes) {
            (Some(begin), Some(bytes)) => {
                let [writes, reads] = &mut self.segments;
                let segments = if direction == Direction::Write { writes } else { reads };
                segments.add_access(begin, bytes).ok_or(far)?;
                true
            }
            _ => false,
        };
        if direction == Direction::Write {
            let sums = &mut self.scan.totals;
            if !placed || self.verified_landing.is_some() {
                // The bytes of a nonblocking call are known only at its end.
                sums.strewn_bytes = sums.strewn_bytes.saturating_add(requested_bytes(self.layouts, call));
            }
            sums.below_bytes = sums.below_bytes.max(below);
            sums.above_bytes = sums.above_bytes.max(above);
            return Ok(());
        }
        let bytes = bytes.ok_or(far)?;
        let misaligned = begin.map_or(0, page_misalignment);
        let is_timed_in_landing = !placed || form != AccessForm::Blocking;
        let timed = Some(&mut self.landing).filter(|_| is_timed_in_landing);
        for landing in timed.into_iter().chain(&mut self.verified_landing) {
            landing.allocate(call, form, misaligned, bytes).ok_or(far)?;
        }
        Ok(())
    }

    fn landings(&mut self) -> impl Iterator<Item = &mut LandingScan> {
        [&mut self.landing].into_iter().chain(&mut self.verified_landing)
    }

    fn add_bytes(&mut self, direction: Direction, bytes: u64) -> Result<(), String> {
        let sum = match direction {
            Direction::Read => &mut self.scan.totals.read_bytes,
            Direction::Write => &mut self.scan.totals.written_bytes,
        };
        let new = sum.checked_add(bytes).filter(|new| *new <= self.max_bytes);
        *sum = new.ok_or("with this call the bytes of the rank overflow; correct them")?;
        Ok(())
    }

    fn complete_requests(&mut self, call: &Call) -> Result<(), String> {
        for completion in &call.completions {
            self.landings().for_each(|landing| landing.complete(completion.request));
            if let Some(direction) = self.directions.remove(&completion.request) {
                self.add_bytes(direction, completion.bytes.unwrap_or(0))?;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> RankScan {
        let landing_bytes = self.landings().map(|landing| landing.allocator.high_water_bytes()).max().unwrap_or(0);
        let sums = &mut self.scan.totals;
        sums.threads = self.threads.len() as u64;
        sums.landing_bytes = landing_bytes;
        sums.omissions = self.omissions.into_iter().map(OmissionsByFunction::into_list).collect();
        sums.meetings = self.collectives.finish();
        sums.gaps.retain(|_, gaps| !gaps.is_empty());
        self.scan.steps = self.matching.into_iter().map(|(_, summary)| summary).collect();
        let cold_bytes = self.cold_bytes;
        let [writes, reads] = self.segments;
        self.scan.images = MemoryImages { writes: writes.image(cold_bytes), reads: reads.image(cold_bytes) };
        self.scan.totals.placed_bytes =
            self.scan.images.bytes(Direction::Write) + self.scan.images.bytes(Direction::Read);
        self.scan
    }
}

/// Memory of reads, as the run will allocate it.
struct LandingScan {
    allocator: LandingAllocator,
    pending: HashMap<u64, u64>,
    split: HashMap<u32, u64>,
}

impl LandingScan {
    fn new(cycle_bytes: u64) -> Self {
        Self { allocator: LandingAllocator::new(cycle_bytes), pending: HashMap::new(), split: HashMap::new() }
    }

    /// None on overflow.
    fn allocate(&mut self, call: &Call, form: AccessForm, misaligned: u64, bytes: u64) -> Option<()> {
        let slot = self.allocator.allocate(misaligned, bytes, form != AccessForm::Blocking)?;
        if let Some(request) = call.request {
            self.pending.insert(request, slot.at);
        } else if form == AccessForm::Begin {
            self.split.extend(call.handle.map(|handle| (handle, slot.at)));
        }
        Some(())
    }

    fn end_split(&mut self, call: &Call) {
        let ended = call.handle.and_then(|handle| self.split.remove(&handle));
        ended.into_iter().for_each(|at| self.allocator.release(at));
    }

    fn complete(&mut self, request: u64) {
        self.pending.remove(&request).into_iter().for_each(|at| self.allocator.release(at));
    }
}

/// Begin of the memory of an access in the program; it starts below its address by the extent.
pub(super) fn memory_begin(call: &Call, (below, _): (u64, u64)) -> Option<i64> {
    call.buffer.map(|address| address.wrapping_sub_unsigned(below))
}

pub(super) fn requested_bytes(layouts: &TypeLayouts, call: &Call) -> u64 {
    let count = call.count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
    call.datatype.map_or(0, |datatype| layouts.size(datatype)).saturating_mul(count)
}

/// Extent of the memory of a data access below and above its address.
///
/// # Errors
/// More than 63 bits, in words.
pub(super) fn memory_span(layouts: &TypeLayouts, call: &Call) -> Result<(u64, u64), String> {
    let (Some(datatype), Some(count)) = (call.datatype, call.count) else { return Ok((0, 0)) };
    let count = u64::try_from(count).unwrap_or(0);
    let far = || "its memory extends beyond 63 bits; correct its count or type".to_owned();
    let bytes = layouts.size(datatype).checked_mul(count).ok_or_else(far)?;
    if bytes == 0 {
        return Ok((0, 0));
    }
    let hull = layouts.hull(datatype, 0, bytes, 0).ok_or_else(far)?;
    let margin_bytes = layouts.moved_bytes(datatype);
    let span = [hull.start.min(0), hull.end.max(0)].map(|bound| bound.unsigned_abs().checked_add(margin_bytes));
    let [Some(below), Some(above)] = span else { return Err(far()) };
    Ok((below, above))
}

/// Calls that others wait for and that this rank will not issue.
///
/// # Errors
/// A profile that has changed since the scan.
pub(super) fn unissued_calls(source: CallSource<'_>, rank: u32, scan: &RankScan) -> Result<Vec<u64>, String> {
    let mut wanted: Vec<u64> = scan.calls_awaited_by_others.iter().map(|(begin_ns, _)| *begin_ns).collect();
    wanted.dedup();
    if wanted.is_empty() {
        return Ok(wanted);
    }
    let (_, calls) = source.read_rank(rank)?;
    let mut missing = Vec::new();
    let mut wanted = wanted.into_iter().peekable();
    for call in calls.take(usize::try_from(scan.replayed_lines).unwrap_or(usize::MAX)) {
        let begin_ns = call.map_err(|e| e.to_string())?.begin_ns;
        while let Some(earlier) = wanted.next_if(|wanted| *wanted < begin_ns) {
            missing.push(earlier);
        }
        wanted.next_if_eq(&begin_ns);
    }
    missing.extend(wanted);
    Ok(missing)
}
