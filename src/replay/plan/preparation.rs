//! Preparation of files before an opening or a deletion: one rank brings a file into its recorded state, as other means than MPI-IO had
//! done: it removes, creates, truncates or extends it. It must not collide with accesses in flight. So the rank first waits for all earlier
//! calls on that file, fills nothing that calls in flight write, and later calls of others wait for it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use beff_trace::{AccessForm, Call, CallId, Direction, Function, ProfileHead, Role};
use serde::{Deserialize, Serialize};

/// Sent instead of the begin of a call: the files of the opening that began then are prepared.
pub const PREPARED_TAG: u64 = 1 << 62;

/// A file that another communicator opened or extended so shortly before an opening may not be in the state that the opening found: the
/// profiler examines the file before the begin of the call.
const STATE_AGE_NS: u64 = 1_000_000;

/// State of a file before a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// It did not exist.
    Absent,
    /// It existed, with unknown size.
    Present,
    /// It had this size.
    Size(u64),
}

/// Preparation by a rank before an opening or a deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreparationWork {
    /// Files that other means had removed.
    pub removed: Vec<u32>,
    /// The file of the call and its state then.
    pub required: Option<(u32, FileState)>,
    /// The file may have been longer, because its file system reports sizes late.
    pub only_grows: bool,
}

/// Derives the preparations of one rank from its calls.
#[derive(Clone, Debug)]
pub struct PreparationPlanner<'a> {
    head: &'a ProfileHead,
    rank: u32,
    /// Removals of files that this rank prepares: time and file.
    removals: BTreeSet<(u64, u32)>,
}

impl<'a> PreparationPlanner<'a> {
    /// State of a rank before its first call.
    #[must_use]
    pub fn new(head: &'a ProfileHead, rank: u32) -> Self {
        Self { head, rank, removals: BTreeSet::new() }
    }

    /// Preparation before this call.
    pub fn work_before(&mut self, call: &Call) -> PreparationWork {
        let Some(file) = call.file else { return PreparationWork::default() };
        if call.function == Function::Delete {
            let required = state_of_deletion(call).map(|state| (file, state));
            return PreparationWork { required, ..PreparationWork::default() };
        }
        if call.function != Function::Open || call.handle.is_none() {
            return PreparationWork::default();
        }
        let opens_first = self.is_preparing_rank(call);
        let opened = self.head.files.get(file as usize);
        if opens_first && call.error.is_none() {
            let gone_ns = opened.and_then(|file| file.removed_ns);
            self.removals.extend(gone_ns.map(|gone_ns| (gone_ns, file)));
        }
        let later = self.removals.split_off(&(call.begin_ns.saturating_add(1), 0));
        let gone = std::mem::replace(&mut self.removals, later).into_iter().map(|(_, file)| file).collect();
        let state = call.number.map(|number| u64::try_from(number).map_or(FileState::Absent, FileState::Size));
        let required = state.filter(|_| opens_first).map(|state| (file, state));
        let only_grows = state != Some(FileState::Absent) && opened.is_some_and(|file| !file.has_current_size());
        PreparationWork { removed: gone, required, only_grows }
    }

    /// True for the rank that prepares the file of an opening; the others cannot complete the opening before it.
    pub fn is_preparing_rank(&self, call: &Call) -> bool {
        let ranks = call.comm.and_then(|comm| self.head.comms.get(comm as usize));
        ranks.and_then(|ranks| ranks.first()) == Some(&self.rank)
    }
}

fn state_of_deletion(call: &Call) -> Option<FileState> {
    match call.error {
        None => Some(FileState::Present),
        Some(error) if error.name() == "MPI_ERR_NO_SUCH_FILE" => Some(FileState::Absent),
        Some(_) => None,
    }
}

/// A call before which a rank prepares a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FilePreparation {
    /// Begin of the call.
    pub begin_ns: u64,
    /// The preparing rank.
    pub rank: u32,
    /// The file.
    pub file: u32,
    /// Communicator of the opening, and number of earlier openings with it; None for a deletion.
    pub opening: Option<(u32, u64)>,
}

/// Constraints of a preparation by another rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparationConstraints {
    /// Begin of its last call on the file that ends before.
    pub last_ns: Option<u64>,
    /// End of its writes in flight at that time.
    pub under_way_bytes: u64,
    /// It was changing the file at that time: the state that was found may be that of before or after.
    pub is_changing: bool,
    /// It has later calls on the file.
    pub waits: bool,
}

/// Constraints between the calls of this rank and preparations.
#[derive(Clone, Debug, Default)]
pub struct PreparationSchedule {
    /// By begin of an opening of this rank: calls of others that must end before the preparation.
    pub prior_calls: HashMap<u64, Vec<CallId>>,
    /// By the same: end of the writes in flight in its file.
    pub in_flight_end_bytes: HashMap<u64, u64>,
    /// Those of them during which other calls changed the file.
    pub unclear_states: HashSet<u64>,
    /// By the same: ranks to notify when the files are prepared.
    pub notified_ranks: HashMap<u64, BTreeSet<u32>>,
    /// By begin of a call of this rank: openings of others to wait for.
    pub awaited_preparations: BTreeMap<u64, Vec<CallId>>,
    /// Calls of others that several calls of this rank may wait for.
    pub shared_waits: HashSet<CallId>,
}

#[derive(Clone, Copy, Debug)]
struct TrackedPreparation {
    preparation: FilePreparation,
    constraints: PreparationConstraints,
    /// Number of the call in which `last_ns` ended.
    ended_at_call: u64,
    /// A rank of the opening reaches it by its own call, which separates earlier from later calls whatever the clocks are.
    is_member: bool,
}

#[derive(Clone, Copy, Debug)]
struct PendingAccess {
    file: u32,
    begin_ns: u64,
    /// End of its write in the file.
    end_bytes: u64,
    /// It changes the size or existence of the file.
    changes: bool,
}

/// Ends of the calls of this rank that changed a file.
#[derive(Clone, Debug, Default)]
struct FileChanges {
    /// The latest by handles that are closed.
    closed_ns: u64,
    by_handle: HashMap<Option<u32>, u64>,
}

impl FileChanges {
    fn is_recent(&self, now_ns: u64) -> bool {
        self.closed_ns > now_ns || self.by_handle.values().any(|end_ns| end_ns.saturating_add(STATE_AGE_NS) > now_ns)
    }
}

/// Derives the constraints between the calls of one rank and the preparations of its files.
#[derive(Debug)]
pub struct ConstraintTracker {
    rank: u32,
    /// By file, in the order of their begins.
    by_file: HashMap<u32, Vec<TrackedPreparation>>,
    /// By file: the first preparation that no call has passed.
    next_by_file: HashMap<u32, usize>,
    /// Number of preparations that later calls may concern.
    remaining: usize,
    openings: HashMap<u32, u64>,
    file_of_handle: HashMap<u32, u32>,
    last_ns: HashMap<u32, u64>,
    changes: HashMap<u32, FileChanges>,
    requests: HashMap<u64, PendingAccess>,
    split: HashMap<u32, PendingAccess>,
    call_number: u64,
    /// Calls of this rank that wait for preparations of others.
    pub awaited_preparations: BTreeMap<u64, Vec<CallId>>,
}

impl ConstraintTracker {
    /// State of a rank before its first call. `comms` has the world ranks of each communicator.
    #[must_use]
    pub fn new(comms: &[Vec<u32>], rank: u32, preparations: &[FilePreparation]) -> Self {
        let mut by_file: HashMap<u32, Vec<TrackedPreparation>> = HashMap::new();
        for one in preparations {
            let ranks = one.opening.and_then(|(comm, _)| comms.get(comm as usize));
            let is_member = one.rank == rank || ranks.is_some_and(|ranks| ranks.contains(&rank));
            let found = TrackedPreparation {
                preparation: *one,
                constraints: PreparationConstraints::default(),
                ended_at_call: 0,
                is_member,
            };
            by_file.entry(one.file).or_default().push(found);
        }
        by_file.values_mut().for_each(|list| list.sort_unstable_by_key(|found| found.preparation));
        Self {
            rank,
            by_file,
            next_by_file: HashMap::new(),
            remaining: preparations.len(),
            openings: HashMap::new(),
            file_of_handle: HashMap::new(),
            last_ns: HashMap::new(),
            changes: HashMap::new(),
            requests: HashMap::new(),
            split: HashMap::new(),
            call_number: 0,
            awaited_preparations: BTreeMap::new(),
        }
    }

    /// Processes the next call, which writes up to `reach_bytes` in its file. False if later calls concern no preparation.
    pub fn observe(&mut self, call: &Call, reach_bytes: u64) -> bool {
        self.call_number += 1;
        match (call.function, call.comm) {
            (Function::Open, Some(comm)) => {
                let number = self.openings.entry(comm).or_default();
                let opening = (comm, *number);
                *number += 1;
                self.reach(|one| one.opening == Some(opening));
            }
            (Function::Delete, _) => {
                let rank = self.rank;
                self.reach(|one| one.opening.is_none() && (one.rank, one.begin_ns) == (rank, call.begin_ns));
            }
            _ => {}
        }
        for completion in &call.completions {
            if let Some(begun) = self.requests.remove(&completion.request) {
                self.access_ended(begun, call.end_ns);
            }
        }
        if let (Some(handle), Some(file)) = (call.handle, call.file) {
            self.file_of_handle.insert(handle, file);
        }
        let of_handle = call.handle.and_then(|handle| self.file_of_handle.get(&handle).copied());
        if let Some(file) = call.file.or(of_handle) {
            self.await_preparations(call, file);
            let changes = changes_file(call);
            self.track_access(call, PendingAccess { file, begin_ns: call.begin_ns, end_bytes: reach_bytes, changes });
            if changes {
                let end_ns = self.changes.entry(file).or_default().by_handle.entry(call.handle).or_default();
                *end_ns = call.end_ns.max(*end_ns);
            } else if call.function == Function::Close {
                let known = self.changes.entry(file).or_default();
                known.closed_ns = known.by_handle.remove(&call.handle).unwrap_or(0).max(known.closed_ns);
            }
        }
        self.remaining > 0 || !self.requests.is_empty() || !self.split.is_empty()
    }

    fn track_access(&mut self, call: &Call, begun: PendingAccess) {
        let form = match call.function.role() {
            Role::Data { form, .. } => Some(form),
            _ => None,
        };
        match (form, call.request, call.handle) {
            (Some(AccessForm::Nonblocking), Some(request), _) => drop(self.requests.insert(request, begun)),
            (Some(AccessForm::Nonblocking), ..) => self.access_unfinished(begun),
            (Some(AccessForm::Begin), _, Some(handle)) => drop(self.split.insert(handle, begun)),
            (Some(AccessForm::End), _, Some(handle)) => {
                let first = self.split.remove(&handle).unwrap_or(begun);
                self.access_ended(first, call.end_ns);
            }
            _ => self.access_ended(begun, call.end_ns),
        }
    }

    /// The constraints other than the default. Accesses still in flight remain so.
    pub fn finish(mut self) -> Vec<(FilePreparation, PreparationConstraints)> {
        let requests: Vec<PendingAccess> = self.requests.drain().map(|(_, begun)| begun).collect();
        let halves: Vec<PendingAccess> = self.split.drain().map(|(_, begun)| begun).collect();
        requests.into_iter().chain(halves).for_each(|begun| self.access_unfinished(begun));
        let mut answers = Vec::new();
        for list in self.by_file.into_values() {
            let mut last = (0, None);
            for TrackedPreparation { preparation: one, constraints: mut answer, ended_at_call: ended_at, is_member } in
                list
            {
                if !is_member {
                    // A call that ended before an earlier preparation ended before this one, too.
                    last = last.max((ended_at, answer.last_ns));
                    answer.last_ns = last.1;
                }
                answers.extend((answer != PreparationConstraints::default()).then_some((one, answer)));
            }
        }
        answers
    }

    /// This rank reaches a call before which a file is prepared.
    fn reach(&mut self, is_reached: impl Fn(&FilePreparation) -> bool) {
        let pending: Vec<PendingAccess> = self.requests.values().chain(self.split.values()).copied().collect();
        for (file, list) in &mut self.by_file {
            let of_file = || pending.iter().filter(|begun| begun.file == *file);
            let under_way_bytes = of_file().map(|begun| begun.end_bytes).max().unwrap_or(0);
            let is_pending = of_file().any(|begun| begun.changes);
            let changes = self.changes.get(file);
            for TrackedPreparation { preparation: one, constraints: answer, .. } in
                list.iter_mut().filter(|found| found.is_member && is_reached(&found.preparation))
            {
                answer.last_ns = self.last_ns.get(file).copied().filter(|_| one.rank != self.rank);
                answer.under_way_bytes = under_way_bytes;
                // Of calls of this rank itself the order is known.
                let is_recent = || one.rank != self.rank && changes.is_some_and(|found| found.is_recent(one.begin_ns));
                answer.is_changing = is_pending || is_recent();
                self.remaining -= 1;
            }
        }
    }

    /// A call has ended: preparations after its end wait for it; those during it avoid the range that it writes.
    fn access_ended(&mut self, begun: PendingAccess, end_ns: u64) {
        self.last_ns.insert(begun.file, begun.begin_ns);
        let rank = self.rank;
        let Some(list) = self.by_file.get_mut(&begun.file) else { return };
        let first =
            list.partition_point(|found| (found.preparation.begin_ns, found.preparation.rank) < (begun.begin_ns, rank));
        for found in list[first..].iter_mut().filter(|found| !found.is_member) {
            found.constraints.is_changing |=
                begun.changes && found.preparation.begin_ns < end_ns.saturating_add(STATE_AGE_NS);
            if found.preparation.begin_ns >= end_ns {
                (found.constraints.last_ns, found.ended_at_call) = (Some(begun.begin_ns), self.call_number);
                return;
            }
            found.constraints.under_way_bytes = found.constraints.under_way_bytes.max(begun.end_bytes);
        }
    }

    /// An access without a recorded end.
    fn access_unfinished(&mut self, begun: PendingAccess) {
        self.access_ended(begun, u64::MAX);
    }

    /// The first call after a preparation waits for it.
    fn await_preparations(&mut self, call: &Call, file: u32) {
        let rank = self.rank;
        let Some(list) = self.by_file.get_mut(&file) else { return };
        let next = self.next_by_file.entry(file).or_default();
        let is_behind = |found: &&mut TrackedPreparation| {
            (found.preparation.begin_ns, found.preparation.rank) < (call.begin_ns, rank)
        };
        while let Some(found) = list.get_mut(*next).filter(is_behind) {
            *next += 1;
            if !found.is_member {
                found.constraints.waits = true;
                self.remaining -= 1;
                let ready =
                    CallId { rank: found.preparation.rank, begin_ns: PREPARED_TAG | found.preparation.begin_ns };
                self.awaited_preparations.entry(call.begin_ns).or_default().push(ready);
            }
        }
    }
}

/// True for calls that may change the size or existence of a file.
fn changes_file(call: &Call) -> bool {
    use Function::{Delete, Open, Preallocate, SetSize};
    call.function.direction() == Some(Direction::Write)
        || matches!(call.function, Open | Delete | SetSize | Preallocate)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: u32 = 1;

    fn tracker(preparations: &[(u64, u32)]) -> ConstraintTracker {
        let comms = [vec![0, 1], vec![0]];
        let all = preparations.iter().map(|(begin_ns, comm)| FilePreparation {
            begin_ns: *begin_ns,
            rank: 0,
            file: 5,
            opening: Some((*comm, 0)),
        });
        ConstraintTracker::new(&comms, OWN, &all.collect::<Vec<_>>())
    }

    fn call(function: Function, begin_ns: u64, end_ns: u64) -> Call {
        Call { handle: Some(1), ..Call::new(function, begin_ns, end_ns) }
    }

    fn open(begin_ns: u64, comm: u32) -> Call {
        Call { file: Some(5), comm: Some(comm), ..call(Function::Open, begin_ns, begin_ns + 1) }
    }

    #[test]
    fn other_ranks_wait_by_time_and_members_by_their_own_call() {
        let mut by_time = tracker(&[(100, 1)]);
        by_time.observe(&open(0, 2), 0);
        by_time.observe(&call(Function::WriteAt, 10, 50), 70);
        by_time.observe(&call(Function::WriteAt, 60, 150), 90);
        assert!(!by_time.observe(&call(Function::ReadAt, 200, 250), 0), "no preparation remains");
        assert_eq!(by_time.awaited_preparations[&200], [CallId { rank: 0, begin_ns: PREPARED_TAG | 100 }]);
        let answer = PreparationConstraints { last_ns: Some(10), under_way_bytes: 90, is_changing: true, waits: true };
        assert_eq!(by_time.finish().first().map(|(_, answer)| *answer), Some(answer));

        // Clocks of hosts differ: its own opening began before the preparation did there.
        let mut member = tracker(&[(100, 0)]);
        member.file_of_handle.insert(1, 5);
        member.observe(&call(Function::WriteAt, 10, 150), 70);
        member.observe(&Call { request: Some(1), ..call(Function::IwriteAt, 160, 170) }, 80);
        member.observe(&open(180, 0), 0);
        let answer = PreparationConstraints { last_ns: Some(10), under_way_bytes: 80, is_changing: true, waits: false };
        assert_eq!(member.finish().first().map(|(_, answer)| *answer), Some(answer));
    }

    /// Otherwise a file would be removed or truncated although a call that the opening did not see has made it.
    #[test]
    fn the_state_found_beside_changes_of_another_rank_is_unclear() {
        let later = 200 + STATE_AGE_NS;
        let is_changing = |calls: &[Call]| {
            let mut member = tracker(&[(100, 0), (later, 0)]);
            member.by_file.get_mut(&5).unwrap()[1].preparation.opening = Some((0, 1));
            for call in calls {
                member.observe(call, 0);
            }
            let answers = member.finish();
            let of =
                |begin_ns| answers.iter().find(|(one, _)| one.begin_ns == begin_ns).is_some_and(|a| a.1.is_changing);
            [of(100), of(later)]
        };
        let write = |begin_ns, end_ns| call(Function::WriteAt, begin_ns, end_ns);
        let close = |begin_ns| call(Function::Close, begin_ns, begin_ns + 5);
        let alone = Call { comm: Some(1), ..open(1, 0) };
        let [first, second] = [open(110, 0), open(later + 10, 0)];
        let of = |before: &[Call], between: &[Call]| {
            is_changing(&[before, std::slice::from_ref(&first), between, std::slice::from_ref(&second)].concat())
        };
        assert_eq!(of(&[alone.clone(), write(10, 50), close(60)], &[close(150)]), [false, false]);
        assert_eq!(of(&[alone.clone(), write(10, 50)], &[close(150)]), [true, false], "still open, and just written");
        assert_eq!(of(&[alone.clone(), write(10, 105), close(106)], &[close(150)]), [true, false], "at that time");
        assert_eq!(of(&[], &[write(150, later + 5), close(later + 6)]), [false, true]);
        assert_eq!(of(&[alone, call(Function::ReadAt, 10, 105), close(106)], &[]), [false, false], "opened long ago");
    }

    #[test]
    fn deletions_have_the_recorded_result() {
        let head = ProfileHead { comms: vec![vec![1]], ..ProfileHead::default() };
        let state = |error: Option<&str>| {
            let error = error.and_then(beff_trace::ErrorClass::from_name);
            let call = Call { file: Some(3), error, ..Call::new(Function::Delete, 5, 6) };
            PreparationPlanner::new(&head, OWN).work_before(&call).required
        };
        assert_eq!(state(None), Some((3, FileState::Present)));
        assert_eq!(state(Some("MPI_ERR_NO_SUCH_FILE")), Some((3, FileState::Absent)));
        assert_eq!(state(Some("MPI_ERR_ACCESS")), None);
    }

    #[test]
    fn calls_that_ended_before_a_preparation_ended_before_the_next() {
        let mut uses = tracker(&[(100, 1), (300, 1)]);
        uses.observe(&open(0, 2), 0);
        uses.observe(&call(Function::WriteAt, 10, 50), 70);
        let answers: Vec<_> = uses.finish().into_iter().map(|(one, answer)| (one.begin_ns, answer.last_ns)).collect();
        assert_eq!(answers, [(100, Some(10)), (300, Some(10))]);
    }
}
