//! One look at all calls of a rank, before anything is made: is the profile sound, what is in it, what does it need.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use beff_trace::layout::Layouts;
use beff_trace::places::LIMITS;
use beff_trace::text::rank_reader;
use beff_trace::{After, Call, Direction, End, Form, Function, Head, Role};
use serde::{Deserialize, Serialize};

use super::places::{Finder, Places};
use super::source::Sources;
use crate::replay::plan::gaps::Gaps;
use crate::replay::plan::hot::{Hot, Reuse};
use crate::replay::plan::image::{Images, Stretches};
use crate::replay::plan::landing::{misaligned, Landing, ALIGN_BYTES};
use crate::replay::plan::left_out::{Fate, Filter, Leavings, LeftOut};
use crate::replay::plan::matching::{Digest, Steps};
use crate::replay::plan::meeting::{Counter, Meetings, Opening};
use crate::replay::plan::ready::{Preparation, Ready, Tending, Work};

/// How one backend refuses, by name.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    /// What it says of a call.
    pub unable: fn(&Call) -> Option<&'static str>,
    /// It must know where data lies in files.
    pub by_offsets: bool,
}

/// What the calls of one rank need and hold, as all ranks put it together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sums {
    /// Calls that are replayed, beginning and end of the program not counted.
    pub calls: u64,
    /// Calls that move data, second halves not counted.
    pub data_calls: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Begin of the first call and end of the last one.
    pub span_ns: Option<[u64; 2]>,
    /// Threads that made calls.
    pub threads: u64,
    /// How far the memory of writes reaches below its address.
    pub below_bytes: u64,
    /// And above.
    pub above_bytes: u64,
    /// Bytes where reads land.
    pub landing_bytes: u64,
    /// Bytes of the places that memory of the program has, in both areas.
    pub placed_bytes: u64,
    /// Bytes written from memory without such a place.
    pub strewn_bytes: u64,
    /// Largest size of each file by what sizes and calls say.
    pub file_ends: BTreeMap<u32, u64>,
    /// Left out, by backend.
    pub leavings: Vec<Vec<LeftOut>>,
    /// Collective calls.
    pub meetings: Meetings,
    /// Calls behind the cut.
    pub calls_cut: u64,
    /// Orderings that are kept.
    pub orderings: u64,
    /// Orderings that cannot be.
    pub orderings_lost: u64,
    /// Where an MPI library may have written into gaps, by file.
    pub gaps: BTreeMap<u32, Gaps>,
}

/// What one rank found in its calls.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// What all ranks put together.
    pub sums: Sums,
    /// Calls of other ranks that calls of this one wait for.
    pub awaits: Vec<After>,
    /// Those of them that never come.
    pub lost: HashSet<After>,
    /// Calls of this rank that others wait for, with those who do.
    pub awaited: Vec<(u64, u32)>,
    /// Lines of the profile (calls of this rank) up to which it is replayed.
    pub cut: u64,
    /// Places of memory that is used again, if data is compared.
    pub hot: Hot,
    /// Places of all memory, if not.
    pub images: Option<Images>,
    /// By backend: when the first write of this rank began that is not made, because it is left out or cut off; `u64::MAX`: none.
    pub unmade_ns: Vec<u64>,
    /// By backend: a number for the order of the calls that wait for other ranks.
    pub digests: Vec<u64>,
    /// Openings before which this rank makes files ready.
    pub preparations: Vec<Preparation>,
    /// Files that this rank uses.
    pub used: HashSet<u32>,
    /// What all ranks have to do with each other's preparations.
    pub ready: Ready,
}

impl Sums {
    /// What the ranks write. A rank that writes little there goes through little memory. None: more than can be counted.
    #[must_use]
    pub fn sources(&self, seed: u64, cold_bytes: u64) -> Option<Sources> {
        Sources::new(seed, self.below_bytes, self.above_bytes, cold_bytes.min(self.strewn_bytes))
    }
}

impl Scan {
    /// Where the places of memory of the program begin in the source, behind so many bytes, and how long it is with them.
    #[must_use]
    pub fn source_bytes(&self, words_bytes: u64) -> [u64; 2] {
        let begin = words_bytes.next_multiple_of(ALIGN_BYTES);
        [begin, begin + self.placed_bytes(Direction::Write)]
    }

    /// The same in the landing area.
    #[must_use]
    pub fn landing_bytes(&self) -> [u64; 2] {
        let begin = self.sums.landing_bytes.next_multiple_of(ALIGN_BYTES);
        [begin, begin + self.placed_bytes(Direction::Read)]
    }

    fn placed_bytes(&self, direction: Direction) -> u64 {
        self.hot.bytes(direction) + self.images.as_ref().map_or(0, |images| images.bytes(direction))
    }
}

/// Looks at the calls of `rank`, no further than each opening goes on all its ranks (`limits`): what memory do they need, so much of it cold,
/// and compared or not.
///
/// # Errors
/// What is wrong with the profile, in words, with line and next step.
pub fn scan(
    profile: &Path,
    rank: u32,
    layouts: &Layouts,
    refusals: &[Refusal],
    limits: &[(Opening, u64)],
    (cold_bytes, compares): (u64, bool),
) -> Result<Scan, String> {
    let limits: HashMap<Opening, u64> = limits.iter().copied().collect();
    let (head, calls) = rank_reader(profile, rank).map_err(|e| e.to_string())?;
    let mut scanner = Scanner::new(rank, (&head, layouts), refusals, (cold_bytes, compares));
    scanner.most_bytes = i64::MAX.unsigned_abs() / (head.processes.len() as u64).max(1);
    scanner.is_whole = head.processes.get(rank as usize).is_some_and(|process| process.end == End::Complete);
    let mut cut = None;
    let mut number = 0_u64;
    for call in calls {
        let call = call.map_err(|e| e.to_string())?;
        if cut.is_none() {
            let met = scanner.meetings.take(&call);
            if met.is_some_and(|(opening, count)| limits.get(&opening).is_some_and(|most| count > *most)) {
                cut = Some(number);
                scanner.scan.unmade_ns.iter_mut().for_each(|first| *first = call.begin_ns.min(*first));
            }
        }
        match cut {
            Some(_) => scanner.scan.sums.calls_cut += 1,
            None => scanner.take(&call).map_err(|what| {
                format!(
                    "{}: rank {rank}, call at {} ns, {}: {what}",
                    profile.display(),
                    call.begin_ns,
                    call.function.name()
                )
            })?,
        }
        number += 1;
    }
    let mut scan = scanner.finish();
    scan.cut = cut.unwrap_or(number);
    Ok(scan)
}

struct Scanner<'a> {
    rank: u32,
    layouts: &'a Layouts,
    places: Finder<'a>,
    filters: Vec<(Filter, bool)>,
    matching: Vec<(Steps<'a>, Digest)>,
    tending: Tending<'a>,
    comms: &'a [Vec<u32>],
    opened_with: HashMap<u32, u32>,
    openings: HashMap<u32, u64>,
    leavings: Vec<Leavings>,
    meetings: Counter,
    landing: Landing,
    cold_bytes: u64,
    /// Memory of writes and of reads, where nothing is compared.
    stretches: Option<[Stretches; 2]>,
    reuse: Reuse,
    pending: HashMap<u64, u64>,
    split: HashMap<u32, u64>,
    threads: HashSet<u32>,
    seen: HashSet<After>,
    files: HashMap<u32, u32>,
    directions: HashMap<u64, Direction>,
    /// Bytes of one rank and direction, so that the sum of all can be counted.
    most_bytes: u64,
    /// The recording of this rank ended well: nothing is missing.
    is_whole: bool,
    scan: Scan,
}

impl<'a> Scanner<'a> {
    fn new(
        rank: u32,
        (head, layouts): (&'a Head, &'a Layouts),
        refusals: &[Refusal],
        (cold_bytes, compares): (u64, bool),
    ) -> Self {
        let steps = |refusal: &Refusal| (Steps::new(&head.comms, refusal.by_offsets), Digest::default());
        Self {
            rank,
            layouts,
            places: Finder::new(layouts),
            filters: refusals.iter().map(|r| (Filter::new(r.unable), r.by_offsets)).collect(),
            matching: refusals.iter().map(steps).collect(),
            tending: Tending::new(head, rank),
            comms: &head.comms,
            opened_with: HashMap::new(),
            openings: HashMap::new(),
            leavings: vec![Leavings::default(); refusals.len()],
            meetings: Counter::default(),
            landing: Landing::new(cold_bytes),
            cold_bytes,
            stretches: (!compares).then(Default::default),
            reuse: Reuse::default(),
            pending: HashMap::new(),
            split: HashMap::new(),
            threads: HashSet::new(),
            seen: HashSet::new(),
            files: HashMap::new(),
            directions: HashMap::new(),
            most_bytes: i64::MAX.unsigned_abs(),
            is_whole: true,
            scan: Scan { unmade_ns: vec![u64::MAX; refusals.len()], ..Scan::default() },
        }
    }

    fn take(&mut self, call: &Call) -> Result<(), String> {
        let mut of_program = false;
        let types = [call.datatype, call.etype, call.filetype];
        if let Some(number) = types.into_iter().flatten().find(|number| *number as usize >= self.layouts.len()) {
            return Err(format!("there is no type {number}; correct the number or add the type"));
        }
        let places = self.places.take(call);
        let is_write = call.function.direction() == Some(Direction::Write);
        let backends = self.filters.iter_mut().zip(&mut self.leavings).zip(&mut self.scan.unmade_ns);
        for ((((filter, by_offsets), leavings), unmade_ns), (steps, digest)) in backends.zip(&mut self.matching) {
            let mut kept = call.clone();
            let fate = filter.take(&mut kept, places.unknown.filter(|_| *by_offsets));
            steps.take(&kept, fate == Fate::Replayed, |step| digest.take(&step));
            match fate {
                Fate::LeftOut(reason) => {
                    leavings.add(self.rank, call, reason);
                    if is_write {
                        *unmade_ns = call.begin_ns.min(*unmade_ns);
                    }
                }
                Fate::OfTheProgram => of_program = true,
                Fate::Replayed => {}
            }
        }
        let sums = &mut self.scan.sums;
        let [first, last] = sums.span_ns.unwrap_or([call.begin_ns, call.end_ns]);
        sums.span_ns = Some([first.min(call.begin_ns), last.max(call.end_ns)]);
        if of_program {
            return Ok(());
        }
        sums.calls += 1;
        self.threads.insert(call.thread);
        for after in &call.after {
            if self.seen.insert(*after) {
                self.scan.awaits.push(*after);
            }
        }
        if let (Some(handle), Some(file)) = (call.handle, call.file) {
            self.files.insert(handle, file);
        }
        self.scan.used.extend(call.file);
        self.prepares(call);
        self.opened(call)?;
        self.sizes(call);
        self.reach(call, places)?;
        self.data(call)?;
        self.completions(call)
    }

    /// Files that this rank makes ready before an opening.
    fn prepares(&mut self, call: &Call) {
        let Work { gone, grown } = self.tending.take(call);
        let Some(comm) = call.comm.filter(|_| call.function == Function::Open) else { return };
        if let Some(handle) = call.handle {
            self.opened_with.insert(handle, comm);
        }
        let number = self.openings.entry(comm).or_default();
        let opening = (comm, *number);
        *number += 1;
        let (begin_ns, rank) = (call.begin_ns, self.rank);
        let files = gone.into_iter().chain(grown.map(|(file, _)| file));
        self.scan.preparations.extend(files.map(|file| Preparation { begin_ns, rank, file, opening }));
    }

    /// A file must have been opened, unless the opening was lost with the end of the recording.
    fn opened(&self, call: &Call) -> Result<(), String> {
        match call.handle.filter(|handle| self.is_whole && !self.files.contains_key(handle)) {
            Some(handle) => Err(format!("handle {handle} was not opened before; correct the number")),
            None => Ok(()),
        }
    }

    /// What a call says of the size of its file.
    fn sizes(&mut self, call: &Call) {
        let Some(file) = self.file(call) else { return };
        let size = match call.function {
            Function::SetSize | Function::Preallocate if call.error.is_none() => call.offset,
            Function::GetSize | Function::Open => call.number,
            _ => None,
        };
        let Some(size) = size.and_then(|size| u64::try_from(size).ok()) else { return };
        let end = self.scan.sums.file_ends.entry(file).or_default();
        *end = (*end).max(size);
    }

    /// How far a write reaches in its file.
    ///
    /// # Errors
    /// A place that no file has, in words.
    fn reach(&mut self, call: &Call, places: Places) -> Result<(), String> {
        if let Some(reason) = places.unknown.filter(|reason| *reason == LIMITS) {
            return Err(format!("{reason}; correct its offset, its count or the view"));
        }
        let is_write = call.function.direction() == Some(Direction::Write) && call.error.is_none();
        let Some(file) = self.file(call).filter(|_| is_write) else { return Ok(()) };
        let comm = call
            .handle
            .and_then(|handle| self.opened_with.get(&handle))
            .and_then(|comm| self.comms.get(*comm as usize));
        let together = call.function.is_collective() && comm.is_none_or(|ranks| ranks.len() > 1);
        let gaps = self.scan.sums.gaps.entry(file).or_default();
        gaps.add(places.access.as_ref(), self.layouts, together);
        let Some(access) = places.access else { return Ok(()) };
        let end = u64::try_from(access.hull(self.layouts).end).unwrap_or(0);
        let known = self.scan.sums.file_ends.entry(file).or_default();
        *known = (*known).max(end);
        Ok(())
    }

    fn file(&self, call: &Call) -> Option<u32> {
        self.files.get(&call.handle?).copied()
    }

    fn data(&mut self, call: &Call) -> Result<(), String> {
        let Role::Data { direction, form, .. } = call.function.role() else { return Ok(()) };
        self.moved(direction, call.bytes.unwrap_or(0))?;
        if let Some(request) = call.request {
            self.directions.insert(request, direction);
        }
        if form == Form::End {
            if let Some(at) = call.handle.and_then(|handle| self.split.remove(&handle)) {
                self.landing.release(at);
            }
            return Ok(());
        }
        if call.error.is_none() && call.count.is_some_and(|count| count < 0) {
            return Err("a count below 0 in a call without an error; correct the count, or add error=".into());
        }
        let sums = &mut self.scan.sums;
        sums.data_calls += 1;
        let span = memory_span(self.layouts, call)?;
        let (below, above) = span;
        let bytes = below.checked_add(above);
        let far = "its memory is larger than can be counted; correct its count or type";
        let begin = begin_of(call, span);
        let placed = match (&mut self.stretches, begin, bytes) {
            (Some([writes, reads]), Some(begin), Some(bytes)) => {
                let stretches = if direction == Direction::Write { writes } else { reads };
                stretches.add(begin, bytes).ok_or(far)?;
                true
            }
            _ => false,
        };
        if self.stretches.is_none()
            && self.reuse.take(call.buffer, asked_bytes(self.layouts, call))
            && form == Form::Blocking
        {
            self.scan.hot.want(direction, call.buffer, span);
        }
        if direction == Direction::Write {
            let sums = &mut self.scan.sums;
            if !placed {
                // Of a nonblocking call not known before its end.
                sums.strewn_bytes = sums.strewn_bytes.saturating_add(asked_bytes(self.layouts, call));
            }
            sums.below_bytes = sums.below_bytes.max(below);
            sums.above_bytes = sums.above_bytes.max(above);
            return Ok(());
        }
        let holds = form != Form::Blocking;
        if placed && !holds {
            return Ok(());
        }
        let place = bytes.and_then(|bytes| self.landing.take(begin.map_or(0, misaligned), bytes, holds)).ok_or(far)?;
        if let Some(request) = call.request {
            self.pending.insert(request, place.at);
        } else if form == Form::Begin {
            self.split.extend(call.handle.map(|handle| (handle, place.at)));
        }
        Ok(())
    }

    fn moved(&mut self, direction: Direction, bytes: u64) -> Result<(), String> {
        let sum = match direction {
            Direction::Read => &mut self.scan.sums.read_bytes,
            Direction::Write => &mut self.scan.sums.written_bytes,
        };
        let new = sum.checked_add(bytes).filter(|new| *new <= self.most_bytes);
        *sum = new.ok_or("with its bytes the rank moves more than can be counted; correct them")?;
        Ok(())
    }

    fn completions(&mut self, call: &Call) -> Result<(), String> {
        for completion in &call.completions {
            if let Some(at) = self.pending.remove(&completion.request) {
                self.landing.release(at);
            }
            if let Some(direction) = self.directions.remove(&completion.request) {
                self.moved(direction, completion.bytes.unwrap_or(0))?;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Scan {
        let sums = &mut self.scan.sums;
        sums.threads = self.threads.len() as u64;
        sums.landing_bytes = self.landing.high_water_bytes();
        sums.leavings = self.leavings.into_iter().map(Leavings::list).collect();
        sums.meetings = self.meetings.finish();
        sums.gaps.retain(|_, gaps| !gaps.is_empty());
        self.scan.digests = self.matching.iter().map(|(_, digest)| digest.finish()).collect();
        let cold_bytes = self.cold_bytes;
        self.scan.images = self
            .stretches
            .map(|[writes, reads]| Images { writes: writes.image(cold_bytes), reads: reads.image(cold_bytes) });
        self.scan.sums.placed_bytes =
            self.scan.placed_bytes(Direction::Write) + self.scan.placed_bytes(Direction::Read);
        self.scan
    }
}

/// Where the memory of an access begins in the program, which reaches so far below its address.
pub(super) fn begin_of(call: &Call, (below, _): (u64, u64)) -> Option<i64> {
    call.buffer.map(|address| address.wrapping_sub_unsigned(below))
}

/// Bytes that a data access asks for.
pub(super) fn asked_bytes(layouts: &Layouts, call: &Call) -> u64 {
    let count = call.count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
    call.datatype.map_or(0, |datatype| layouts.size(datatype)).saturating_mul(count)
}

/// How far the memory of a data access reaches below and above its address.
///
/// # Errors
/// Beyond 63 bits, in words.
pub(super) fn memory_span(layouts: &Layouts, call: &Call) -> Result<(u64, u64), String> {
    let (Some(datatype), Some(count)) = (call.datatype, call.count) else { return Ok((0, 0)) };
    let count = u64::try_from(count).unwrap_or(0);
    let far = || "its memory reaches beyond 63 bits; correct its count or type".to_owned();
    let bytes = layouts.size(datatype).checked_mul(count).ok_or_else(far)?;
    if bytes == 0 {
        return Ok((0, 0));
    }
    let hull = layouts.hull(datatype, 0, bytes, 0).ok_or_else(far)?;
    Ok((hull.start.min(0).unsigned_abs(), hull.end.max(0).unsigned_abs()))
}

/// Calls that others wait for and that this rank will not make.
///
/// # Errors
/// A profile that has changed since it was looked at.
pub(super) fn missing(profile: &Path, rank: u32, scan: &Scan) -> Result<Vec<u64>, String> {
    let mut wanted: Vec<u64> = scan.awaited.iter().map(|(begin_ns, _)| *begin_ns).collect();
    wanted.dedup();
    if wanted.is_empty() {
        return Ok(wanted);
    }
    let (_, calls) = rank_reader(profile, rank).map_err(|e| e.to_string())?;
    let mut missing = Vec::new();
    let mut wanted = wanted.into_iter().peekable();
    for call in calls.take(usize::try_from(scan.cut).unwrap_or(usize::MAX)) {
        let begin_ns = call.map_err(|e| e.to_string())?.begin_ns;
        while let Some(earlier) = wanted.next_if(|wanted| *wanted < begin_ns) {
            missing.push(earlier);
        }
        wanted.next_if_eq(&begin_ns);
    }
    missing.extend(wanted);
    Ok(missing)
}
