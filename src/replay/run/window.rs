//! Calls made ready: read from the profile, filtered for the backend, given their memory, with all that has to be done before and
//! after them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;

use beff_backends::Step;
use beff_trace::layout::Layouts;
use beff_trace::text::{rank_reader, RankCalls};
use beff_trace::{After, Call, Content, Direction, Form, Function, Origin, Role};

use super::files::Grown;
use super::order::Awaited;
use super::places::{Finder, Places};
use super::scan::{asked_bytes, begin_of, memory_span, Refusal, Scan};
use crate::replay::config::Pace;
use crate::replay::plan::hot::Reuse;
use crate::replay::plan::image::aligned;
use crate::replay::plan::landing::{misaligned, Landing, ALIGN_BYTES};
use crate::replay::plan::left_out::{Fate, Filter};
use crate::replay::plan::matching::Waits;
use crate::replay::plan::ready::{Tending, READY};
use crate::replay::run::source::Sources;

/// Calls of a window.
const CALLS: usize = 64 * 1024;

/// A read whose data is to be compared.
#[derive(Clone, Debug)]
pub(super) struct Read {
    /// Function, for messages.
    pub function: Function,
    /// Its begin in the profile.
    pub begin_ns: u64,
    /// Number of its file.
    pub file: Option<u32>,
    /// Address in the landing area.
    pub memory_at: u64,
    /// How far its memory reaches below and above that.
    pub span: (u64, u64),
    /// Type in memory.
    pub datatype: Option<u32>,
    /// Where the bytes come from.
    pub from: Vec<Origin>,
    /// Its request, if it left one.
    pub request: Option<u64>,
    /// Places of its data in the file; empty: not known.
    pub places: Places,
}

/// Memory that was just used, in a fixed place, and that the next step uses again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reused {
    /// In the source: to be filled with the words from a position on, which are the contents of this call.
    Source { memory: Range<u64>, position: u64 },
    /// In the landing area: to be poisoned.
    Landing { memory: Range<u64> },
}

/// Ranks that had met before a collective call, as behind a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meeting {
    /// Communicator of the profile.
    pub comm: u32,
    /// Begin of the call in the profile, and its distance from when the last rank was ready.
    pub begin_ns: u64,
    pub met_ns: u64,
}

/// What happens around a step.
#[derive(Debug, Default)]
pub(super) struct Stop {
    /// Before it: calls of other ranks that must have ended.
    pub after: Vec<After>,
    /// Before it: ranks that meet.
    pub meets: Vec<Meeting>,
    /// Before it: what was read is compared, its memory is used again.
    pub wrapped: bool,
    /// Before it: files that were removed by other means.
    pub gone: Vec<u32>,
    /// Before it: a file that is opened is made as long as it was.
    pub grown: Option<Grown>,
    /// Before those two, where there is something to do: calls of other ranks that must have ended.
    pub quiet: Vec<After>,
    /// Behind those two: who waits for the files.
    pub ready: Vec<Awaited>,
    /// Before it, behind that: its memory, if it was just used.
    pub reused: Option<Reused>,
    /// After it: who waits for the end of which call.
    pub tells: Vec<Awaited>,
    /// After it: reads that are complete.
    pub landed: Vec<Read>,
}

/// Some calls, ready.
#[derive(Debug, Default)]
pub(super) struct Window {
    pub steps: Vec<Step>,
    /// In the order of the steps.
    pub stops: VecDeque<(usize, Stop)>,
    /// Of each step: it waits for other ranks.
    pub alone: Vec<bool>,
}

impl Window {
    fn stop(&mut self, step: usize) -> &mut Stop {
        if self.stops.back().is_none_or(|(last, _)| *last != step) {
            self.stops.push_back((step, Stop::default()));
        }
        // One was pushed if there was none.
        &mut self.stops.make_contiguous().last_mut().unwrap_or_else(|| unreachable!()).1
    }
}

/// What is pending of a call that only began.
#[derive(Debug, Default)]
struct Pending {
    tells: Vec<Awaited>,
    read: Option<Read>,
    landing_at: Option<u64>,
}

/// Makes windows of the calls of a rank.
pub(super) struct Windows<'a> {
    layouts: &'a Layouts,
    sources: Sources,
    rank: u32,
    calls: RankCalls,
    left: u64,
    scan: &'a Scan,
    next_awaited: usize,
    filter: Filter,
    waits: Waits<'a>,
    by_offsets: bool,
    landing: Landing,
    reuse: Reuse,
    places: Finder<'a>,
    files: HashMap<u32, u32>,
    tending: Tending<'a>,
    /// Of calls that are left out: what they would have waited for.
    early_waits: Vec<After>,
    /// Communicator of each handle.
    opened_with: HashMap<u32, u32>,
    /// Calls begin after their think time: ranks meet where they had met.
    meets: bool,
    /// Of calls that are left out: others come.
    early_meets: Vec<Meeting>,
    requests: HashMap<u64, Pending>,
    split: HashMap<u32, Pending>,
    compares: bool,
    stores: bool,
    /// Memory begins where pages do, wherever the program had it: direct transfers ask for it.
    aligns: bool,
    /// For each rank, from when on its writes may not be made.
    unmade_ns: Vec<u64>,
    waited_for: HashSet<After>,
}

/// What windows are made with.
pub(super) struct Making<'a> {
    pub bench: &'a super::Bench<'a>,
    pub rank: u32,
    pub refusal: Refusal,
    pub landing: Landing,
    pub compares: bool,
    /// The backend really stores data.
    pub stores: bool,
    /// Transfers may be direct.
    pub aligns: bool,
    pub unmade_ns: Vec<u64>,
}

impl<'a> Windows<'a> {
    /// From the first call on.
    ///
    /// # Errors
    /// A profile that has changed since it was looked at.
    pub fn new(making: Making<'a>) -> Result<Self, String> {
        let Making { bench, rank, refusal, landing, compares, stores, aligns, unmade_ns } = making;
        let (_, calls) = rank_reader(bench.profile, rank).map_err(|e| e.to_string())?;
        Ok(Self {
            layouts: bench.layouts,
            sources: bench.sources,
            rank,
            calls,
            left: bench.scan.cut,
            scan: bench.scan,
            next_awaited: 0,
            filter: Filter::new(refusal.unable),
            waits: Waits::new(&bench.head.comms, refusal.by_offsets),
            by_offsets: refusal.by_offsets,
            landing,
            reuse: Reuse::default(),
            places: Finder::new(bench.layouts),
            files: HashMap::new(),
            tending: Tending::new(bench.head, rank),
            early_waits: Vec::new(),
            opened_with: HashMap::new(),
            meets: bench.config.pace == Pace::Think,
            early_meets: Vec::new(),
            requests: HashMap::new(),
            split: HashMap::new(),
            compares,
            stores,
            aligns,
            unmade_ns,
            waited_for: HashSet::new(),
        })
    }

    /// The next calls; without any behind the last one.
    ///
    /// # Errors
    /// A profile that has changed since it was looked at.
    pub fn next(&mut self) -> Result<Window, String> {
        let mut window = Window::default();
        let mut early = Vec::new();
        while window.steps.len() < CALLS && self.left > 0 {
            let Some(call) = self.calls.next() else { break };
            self.left -= 1;
            let mut call = call.map_err(|e| e.to_string())?;
            let begin_ns = call.begin_ns;
            let tells = self.tells(begin_ns);
            self.early_waits.extend(self.scan.ready.waits.get(&begin_ns).into_iter().flatten());
            let places = self.places.take(&call);
            let meeting = self.meeting(&call);
            self.early_meets.extend(meeting);
            let unknown = places.unknown.filter(|_| self.by_offsets);
            if self.filter.take(&mut call, unknown) == Fate::Replayed {
                let step = window.steps.len();
                window.stop_early(step, &mut early);
                if !self.early_meets.is_empty() {
                    window.stop(step).meets.append(&mut self.early_meets);
                }
                self.push(&mut window, call, tells, places)?;
            } else {
                // Who waits for it need not wait any longer than for the call before it.
                early.extend(tells);
                early.extend(self.readies(begin_ns));
            }
        }
        if !early.is_empty() {
            match window.steps.len() {
                0 => window.stop(0).tells.append(&mut early),
                steps => window.stop(steps - 1).tells.append(&mut early),
            }
        }
        if self.left == 0 && !self.early_meets.is_empty() {
            window.stop(window.steps.len()).meets.append(&mut self.early_meets);
        }
        Ok(window)
    }

    /// Where the ranks of a call meet before it.
    fn meeting(&mut self, call: &Call) -> Option<Meeting> {
        if let (Some(handle), Some(comm)) = (call.handle, call.comm) {
            self.opened_with.insert(handle, comm);
        }
        let met_ns = call.met_ns.filter(|_| self.meets)?;
        let of_handle = call.handle.and_then(|handle| self.opened_with.get(&handle).copied());
        Some(Meeting { comm: call.comm.or(of_handle)?, begin_ns: call.begin_ns, met_ns })
    }

    /// Who waits for the call that began then.
    fn tells(&mut self, begin_ns: u64) -> Vec<Awaited> {
        let awaited = &self.scan.awaited;
        while awaited.get(self.next_awaited).is_some_and(|(begin, _)| *begin < begin_ns) {
            self.next_awaited += 1;
        }
        awaited[self.next_awaited..].iter().take_while(|(begin, _)| *begin == begin_ns).copied().collect()
    }

    fn push(&mut self, window: &mut Window, mut call: Call, tells: Vec<Awaited>, places: Places) -> Result<(), String> {
        let step = window.steps.len();
        window.alone.push(self.waits.take(&call));
        let after = std::mem::take(&mut call.after).into_iter().filter(|a| !self.scan.lost.contains(a));
        let after = after.chain(std::mem::take(&mut self.early_waits));
        let after: Vec<After> = after.filter(|a| self.waited_for.insert(*a)).collect();
        if !after.is_empty() {
            window.stop(step).after = after;
        }
        if let (Some(handle), Some(file)) = (call.handle, call.file) {
            self.files.insert(handle, file);
        }
        self.prepare(window, &call);
        let mut begun = Pending { tells, ..Pending::default() };
        let mut memory_at = 0;
        if let Role::Data { direction, form, .. } = call.function.role() {
            if form != Form::End {
                memory_at = self.memory(window, &mut call, direction, form, places, &mut begun)?;
            }
        }
        self.finish_or_keep(window, step, &call, begun);
        window.steps.push(Step { call, memory_at });
        Ok(())
    }

    /// Files that this rank makes ready before an opening.
    fn prepare(&mut self, window: &mut Window, call: &Call) {
        let (step, begin_ns) = (window.steps.len(), call.begin_ns);
        let work = self.tending.take(call);
        let known = &self.scan.ready;
        let under_way_bytes = known.under_way_bytes.get(&begin_ns).copied().unwrap_or(0);
        let grown = work.grown.map(|(file, size_bytes)| Grown { file, size_bytes, under_way_bytes });
        if self.stores && (grown.is_some() || !work.gone.is_empty()) {
            let stop = window.stop(step);
            (stop.gone, stop.grown) = (work.gone, grown);
            stop.quiet = known.quiet.get(&begin_ns).cloned().unwrap_or_default();
        }
        let ready: Vec<Awaited> = self.readies(begin_ns).collect();
        if !ready.is_empty() {
            window.stop(step).ready = ready;
        }
    }

    /// Who waits until the files of an opening are ready.
    fn readies(&self, begin_ns: u64) -> impl Iterator<Item = Awaited> + 'a {
        let ranks = self.scan.ready.tells.get(&begin_ns).into_iter().flatten();
        ranks.map(move |rank| (READY | begin_ns, *rank))
    }

    /// Gives a data access its memory.
    fn memory(
        &mut self,
        window: &mut Window,
        call: &mut Call,
        direction: Direction,
        form: Form,
        places: Places,
        begun: &mut Pending,
    ) -> Result<u64, String> {
        let span = memory_span(self.layouts, call)?;
        let holds = form != Form::Blocking;
        let image = self.image(call, direction, span, holds);
        let is_near = self.scan.images.is_none() && self.reuse.take(call.buffer, asked_bytes(self.layouts, call));
        // Only where nothing can be under way in the place when it is made ready for its next use.
        let hot = self.scan.hot.find(direction, call.buffer, span).filter(|_| is_near && self.stores && !holds);
        let hot = hot.map(|at| if self.aligns { at - at % ALIGN_BYTES } else { at });
        if direction == Direction::Write {
            let kept = self.scan.source_bytes(self.sources.bytes())[0];
            if let Some(at) = image {
                return Ok(kept + at);
            }
            let address = self.sources.address(self.rank, call.begin_ns);
            let Some(hot) = hot else { return Ok(address) };
            let memory_at = kept + hot;
            if self.compares {
                let memory = memory_at - span.0..memory_at + span.1;
                let reused = Reused::Source { memory, position: address - span.0 };
                window.stop(window.steps.len()).reused = Some(reused);
            }
            return Ok(memory_at);
        }
        let mut from = std::mem::take(&mut call.from);
        let kept = self.scan.landing_bytes()[0];
        let image = image.map(|at| kept + at);
        if let Some(at) = image.filter(|_| !holds) {
            return Ok(at);
        }
        let misaligned = if self.aligns { 0 } else { begin_of(call, span).map_or(0, misaligned) };
        let place = self.landing.take(misaligned, span.0 + span.1, holds);
        let place = place.ok_or("its memory is larger than can be counted")?;
        if place.wrapped {
            window.stop(window.steps.len()).wrapped = true;
        }
        if holds {
            begun.landing_at = Some(place.at);
        }
        // The round goes on behind a read that lands elsewhere: so it is as long as the survey saw it.
        let memory_at = image.or(hot.map(|at| kept + at)).unwrap_or(place.at + span.0);
        if hot.is_some() && self.compares {
            let stop = window.stop(window.steps.len());
            stop.wrapped = true;
            stop.reused = Some(Reused::Landing { memory: memory_at - span.0..memory_at + span.1 });
        }
        from.iter_mut().for_each(|origin| self.forget_unmade(origin));
        if self.compares && !from.is_empty() {
            let (function, begin_ns, datatype, request) = (call.function, call.begin_ns, call.datatype, call.request);
            let file = call.handle.and_then(|handle| self.files.get(&handle).copied());
            begun.read = Some(Read { function, begin_ns, file, memory_at, span, datatype, from, request, places });
        }
        Ok(memory_at)
    }

    /// The address of an access from the begin of the image of its direction, if there is one. Reads that may be under way at once share
    /// no memory, unless the program let them.
    fn image(&self, call: &Call, direction: Direction, span: (u64, u64), holds: bool) -> Option<u64> {
        let image = self.scan.images.as_ref()?.of(direction);
        let bytes = span.0 + span.1;
        let at = image.find(begin_of(call, span)?, bytes)?;
        let at = if self.aligns { aligned(at, bytes) } else { at };
        (image.is_whole() || !holds || direction == Direction::Write).then_some(at + span.0)
    }

    /// Nobody knows what is where a write is missing that the profile names.
    fn forget_unmade(&self, origin: &mut Origin) {
        if let Content::Call { rank, begin_ns, .. } = origin.content {
            if self.unmade_ns.get(rank as usize).is_some_and(|first| begin_ns >= *first) {
                origin.content = Content::Unknown;
            }
        }
    }

    /// What a call began ends with it, or with the call that completes it.
    fn finish_or_keep(&mut self, window: &mut Window, step: usize, call: &Call, begun: Pending) {
        let form = match call.function.role() {
            Role::Data { form, .. } => Some(form),
            _ => None,
        };
        match (form, call.request, call.handle) {
            (Some(Form::Nonblocking), Some(request), _) => drop(self.requests.insert(request, begun)),
            (Some(Form::Begin), _, Some(handle)) => drop(self.split.insert(handle, begun)),
            (Some(Form::End), _, Some(handle)) => {
                self.finish(window, step, begun);
                if let Some(first) = self.split.remove(&handle) {
                    self.finish(window, step, first);
                }
            }
            _ => self.finish(window, step, begun),
        }
        for completion in &call.completions {
            if let Some(first) = self.requests.remove(&completion.request) {
                self.finish(window, step, first);
            }
        }
    }

    fn finish(&mut self, window: &mut Window, step: usize, begun: Pending) {
        if let Some(at) = begun.landing_at {
            self.landing.release(at);
        }
        if !begun.tells.is_empty() {
            window.stop(step).tells.extend(begun.tells);
        }
        if let Some(read) = begun.read {
            window.stop(step).landed.push(read);
        }
    }
}

impl Window {
    /// Calls that are left out before a step have ended when the step before has.
    fn stop_early(&mut self, step: usize, early: &mut Vec<Awaited>) {
        if !early.is_empty() {
            // Told after the first step that is replayed would be too late for a step that waits in turn.
            match step {
                0 => self.stop(0).tells.append(early),
                _ => self.stop(step - 1).tells.append(early),
            }
        }
    }
}
