//! Independent accesses as collective ones (`--what-if collective`): which calls change, and whether all ranks can make them together.

use std::collections::{BTreeMap, HashMap};

use beff_trace::{AccessForm, Call, CallId, Function, OpenedFile, Role};

use super::collective_counts::{CollectiveCounter, OpeningId};
use super::printable::printable;

/// The collective form of a blocking independent access.
#[must_use]
pub fn collective_form(function: Function) -> Option<Function> {
    match function {
        Function::ReadAt => Some(Function::ReadAtAll),
        Function::WriteAt => Some(Function::WriteAtAll),
        Function::Read => Some(Function::ReadAll),
        Function::Write => Some(Function::WriteAll),
        _ => None,
    }
}

/// Changes the accesses of one rank to files that it opened with other ranks.
#[derive(Clone, Debug, Default)]
pub struct CollectiveForms {
    /// Openings, and whether they are those of several ranks.
    is_shared: BTreeMap<u32, bool>,
}

impl CollectiveForms {
    /// The next call; `shared` has for each communicator whether it has several ranks. True if the call changes.
    pub fn change(&mut self, call: &mut Call, shared: &[bool]) -> bool {
        if let (Function::Open, Some(handle), Some(comm)) = (call.function, call.handle, call.comm) {
            self.is_shared.insert(handle, shared.get(comm as usize).copied().unwrap_or(false));
        }
        let is_shared = call.handle.and_then(|handle| self.is_shared.get(&handle).copied()).unwrap_or(false);
        let Some(function) = collective_form(call.function).filter(|_| is_shared) else { return false };
        call.function = function;
        true
    }
}

/// Number of equal calls in succession.
type Run = (Function, u64);

/// Independent calls of one rank between collective calls, for one opening.
#[derive(Default)]
struct RankCalls {
    file: Option<u32>,
    /// Before the first collective call after the opening, and so on.
    sections: Vec<Vec<Run>>,
}

struct SynchronizedCall {
    begin_ns: u64,
    function: Function,
    meeting: Option<(OpeningId, u64)>,
    after: Vec<CallId>,
}

/// Checks the calls of all ranks, one rank after the other.
pub struct CollectiveFormCheck<'a> {
    comms: &'a [Vec<u32>],
    files: &'a [OpenedFile],
    shared: Vec<bool>,
    rank: u32,
    forms: CollectiveForms,
    /// Openings, counted with and without the changed calls.
    recorded: CollectiveCounter,
    changed: CollectiveCounter,
    opening_of_handle: HashMap<u32, OpeningId>,
    openings: BTreeMap<OpeningId, BTreeMap<u32, RankCalls>>,
    calls: Vec<Vec<SynchronizedCall>>,
    changed_calls: u64,
    failed: Option<String>,
}

impl<'a> CollectiveFormCheck<'a> {
    /// Before the first call of this number of ranks.
    #[must_use]
    pub fn new(comms: &'a [Vec<u32>], files: &'a [OpenedFile], ranks: usize) -> Self {
        Self {
            comms,
            files,
            shared: comms.iter().map(|ranks| ranks.len() > 1).collect(),
            rank: 0,
            forms: CollectiveForms::default(),
            recorded: CollectiveCounter::default(),
            changed: CollectiveCounter::default(),
            opening_of_handle: HashMap::new(),
            openings: BTreeMap::new(),
            calls: (0..ranks).map(|_| Vec::new()).collect(),
            changed_calls: 0,
            failed: None,
        }
    }

    /// Adds the next call of a rank.
    pub fn add(&mut self, rank: u32, call: &Call) {
        if rank != self.rank {
            self.rank = rank;
            self.forms = CollectiveForms::default();
            (self.recorded, self.changed) = (CollectiveCounter::default(), CollectiveCounter::default());
            self.opening_of_handle.clear();
        }
        let mut changed = call.clone();
        let is_changed = self.forms.change(&mut changed, &self.shared);
        if let Some((opening, _)) = self.recorded.count_call(call) {
            if let (Function::Open, Some(handle)) = (call.function, call.handle) {
                self.opening_of_handle.insert(handle, opening);
            }
            let calls = self.openings.entry(opening).or_default().entry(rank).or_default();
            calls.file = calls.file.or(call.file);
            calls.sections.push(Vec::new());
        }
        if is_changed {
            self.add_changed(rank, call);
        }
        let meeting = self.changed.count_call(&changed).filter(|_| is_synchronizing(changed.function));
        if meeting.is_some() || !changed.after.is_empty() {
            let Call { begin_ns, function, after, .. } = changed;
            self.calls[rank as usize].push(SynchronizedCall { begin_ns, function, meeting, after });
        }
    }

    fn add_changed(&mut self, rank: u32, call: &Call) {
        self.changed_calls += 1;
        if let Some(error) = &call.error {
            let name = call.function.name();
            let what = format!("MPI_{name} of rank {rank} at {} ns failed with {}", call.begin_ns, error.name());
            self.failed.get_or_insert(what);
        }
        let opening = call.handle.and_then(|handle| self.opening_of_handle.get(&handle));
        let calls = opening.and_then(|opening| self.openings.get_mut(opening)?.get_mut(&rank));
        let Some(section) = calls.and_then(|calls| calls.sections.last_mut()) else { return };
        match section.last_mut() {
            Some((function, number)) if *function == call.function => *number += 1,
            _ => section.push((call.function, 1)),
        }
    }

    /// The number of changed calls, and for each communicator whether its files change.
    ///
    /// # Errors
    /// Why the ranks cannot make the calls together.
    pub fn finish(self) -> Result<(u64, Vec<bool>), String> {
        if self.changed_calls == 0 {
            return Err("no blocking independent access to a file that several ranks opened together".to_owned());
        }
        if let Some(failed) = &self.failed {
            return Err(format!("{failed}, and a collective call can fail on all ranks or none"));
        }
        for (opening, ranks) in &self.openings {
            self.check_opening(*opening, ranks)?;
        }
        self.check_order()?;
        Ok((self.changed_calls, self.shared))
    }

    fn check_opening(&self, opening: OpeningId, ranks: &BTreeMap<u32, RankCalls>) -> Result<(), String> {
        let members = self.comms.get(opening.0 as usize).map_or(&[][..], Vec::as_slice);
        let Some(first) = members.first().filter(|_| members.len() > 1) else { return Ok(()) };
        let nothing = RankCalls::default();
        let of = |rank: &u32| ranks.get(rank).unwrap_or(&nothing);
        for other in &members[1..] {
            let [mine, theirs] = [of(first), of(other)];
            let sections = mine.sections.len().max(theirs.sections.len());
            let section = |calls: &'_ RankCalls, n: usize| calls.sections.get(n).cloned().unwrap_or_default();
            let Some(n) = (0..sections).find(|n| section(mine, *n) != section(theirs, *n)) else { continue };
            let file = mine.file.or(theirs.file).and_then(|file| self.files.get(file as usize));
            let path = file.map_or("a file".to_owned(), |file| printable(&file.path, 300));
            return Err(format!(
                "the ranks do not make equal independent accesses to {path} after their collective call number {} on it: rank {first} \
                 makes {}, rank {other} {}",
                n + 1,
                runs_text(&section(mine, n)),
                runs_text(&section(theirs, n))
            ));
        }
        Ok(())
    }

    /// Executes the calls in an order that all ranks allow.
    fn check_order(&self) -> Result<(), String> {
        let mut next = vec![0; self.calls.len()];
        let mut has_arrived = vec![false; self.calls.len()];
        let mut arrived: HashMap<(OpeningId, u64), usize> = HashMap::new();
        loop {
            let mut goes_on = false;
            for rank in 0..self.calls.len() {
                while let Some(call) = self.calls[rank].get(next[rank]) {
                    if call.after.iter().any(|after| !self.is_done(*after, &next)) {
                        break;
                    }
                    if let Some(meeting) = call.meeting {
                        let ranks = arrived.entry(meeting).or_default();
                        if !std::mem::replace(&mut has_arrived[rank], true) {
                            *ranks += 1;
                            goes_on = true;
                        }
                        if *ranks < self.comms.get(meeting.0 .0 as usize).map_or(0, Vec::len) {
                            break;
                        }
                    }
                    has_arrived[rank] = false;
                    next[rank] += 1;
                    goes_on = true;
                }
            }
            if !goes_on {
                break;
            }
        }
        if next.iter().zip(&self.calls).any(|(next, calls)| *next < calls.len()) {
            return Err(self.deadlock_text(&next));
        }
        Ok(())
    }

    /// True if a rank is beyond a call. Calls between those of the list do not wait.
    fn is_done(&self, call: CallId, next: &[usize]) -> bool {
        let Some(calls) = self.calls.get(call.rank as usize) else { return true };
        calls.get(next[call.rank as usize]).is_none_or(|waiting| waiting.begin_ns > call.begin_ns)
    }

    fn deadlock_text(&self, next: &[usize]) -> String {
        let waiting = |rank: usize| {
            let call = self.calls[rank].get(next[rank])?;
            Some((rank, call, call.after.iter().find(|after| !self.is_done(**after, next))))
        };
        let name = |call: &SynchronizedCall| format!("MPI_{} at {} ns", call.function.name(), call.begin_ns);
        let all = || (0..self.calls.len()).filter_map(waiting);
        match all().find_map(|(rank, call, after)| Some((rank, call, after?))) {
            Some((rank, call, after)) => format!(
                "the ranks would wait for each other: rank {rank} in {} waits for the call of rank {} at {} ns, which accesses the same \
                 bytes and cannot end before",
                name(call),
                after.rank,
                after.begin_ns
            ),
            None => {
                let each: Vec<String> =
                    all().take(2).map(|(rank, call, _)| format!("rank {rank} in {}", name(call))).collect();
                format!("the ranks would wait for each other in collective calls: {}", each.join(", "))
            }
        }
    }
}

/// True for calls in which the ranks may wait for each other.
fn is_synchronizing(function: Function) -> bool {
    !matches!(function.role(), Role::Data { form: AccessForm::Nonblocking | AccessForm::Begin, .. })
}

fn runs_text(runs: &[Run]) -> String {
    let all: Vec<String> =
        runs.iter().take(3).map(|(function, number)| format!("{number} MPI_{}", function.name())).collect();
    match (all.is_empty(), runs.len() > 3) {
        (true, _) => "none".to_owned(),
        (false, more) => format!("{}{}", all.join(", "), if more { ", ..." } else { "" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(handle: u32, comm: u32, begin_ns: u64) -> Call {
        let file = Some(handle - 1);
        Call { handle: Some(handle), comm: Some(comm), file, ..Call::new(Function::Open, begin_ns, begin_ns + 1) }
    }

    fn call(function: Function, handle: u32, begin_ns: u64) -> Call {
        Call { handle: Some(handle), ..Call::new(function, begin_ns, begin_ns + 1) }
    }

    fn check(ranks: &[Vec<Call>]) -> Result<u64, String> {
        let file = |path: &str| OpenedFile {
            path: path.to_owned(),
            size_bytes: None,
            fs_type: String::new(),
            created_ns: None,
            removed_ns: None,
        };
        let (comms, files) = ([vec![0, 1], vec![0]], [file("a.dat"), file("b.dat")]);
        let mut check = CollectiveFormCheck::new(&comms, &files, ranks.len());
        for (rank, calls) in (0..).zip(ranks) {
            calls.iter().for_each(|call| check.add(rank, call));
        }
        check.finish().map(|(calls, shared)| {
            assert_eq!(shared, [true, false]);
            calls
        })
    }

    fn assert_refused(ranks: &[Vec<Call>], parts: &[&str]) {
        let error = check(ranks).unwrap_err();
        parts.iter().for_each(|part| assert!(error.contains(part), "no {part}: {error}"));
    }

    #[test]
    fn equal_calls_of_all_ranks_change() {
        use Function::{Close, Read, Sync, WriteAt};
        let rank = |shift: u64| {
            let calls = [(WriteAt, 10), (WriteAt, 20), (Sync, 30), (Read, 40), (Close, 50)];
            let calls = calls.map(|(function, begin_ns)| call(function, 1, begin_ns + shift));
            [open(1, 0, 1)].into_iter().chain(calls).collect::<Vec<_>>()
        };
        assert_eq!(check(&[rank(0), rank(3)]), Ok(6));
        let mut forms = CollectiveForms::default();
        let mut changed = rank(0);
        let number = changed.iter_mut().map(|call| u64::from(forms.change(call, &[true]))).sum::<u64>();
        assert_eq!(number, 3);
        use Function::{Open, ReadAll, WriteAtAll};
        let functions: Vec<Function> = changed.iter().map(|call| call.function).collect();
        assert_eq!(functions, [Open, WriteAtAll, WriteAtAll, Sync, ReadAll, Close]);
    }

    #[test]
    fn unequal_calls_are_refused_with_file_ranks_and_numbers() {
        use Function::{Close, ReadAt, Sync, WriteAt};
        let rank = |calls: &[Function]| {
            let begins = (2..).map(|n| n * 10);
            let calls = calls.iter().zip(begins).map(|(function, begin_ns)| call(*function, 1, begin_ns));
            [open(1, 0, 1)].into_iter().chain(calls).collect::<Vec<_>>()
        };
        let two = rank(&[WriteAt, WriteAt, Close]);
        let parts = ["a.dat", "number 1", "rank 0 makes 2 MPI_File_write_at", "rank 1 1 MPI_File_write_at"];
        assert_refused(&[two.clone(), rank(&[WriteAt, Close])], &parts);
        assert_refused(&[two.clone(), rank(&[Close])], &["rank 1 none"]);
        assert_refused(
            &[two.clone(), rank(&[ReadAt, WriteAt, Close])],
            &["rank 1 1 MPI_File_read_at, 1 MPI_File_write_at"],
        );
        assert_refused(
            &[rank(&[WriteAt, Sync, WriteAt, Close]), rank(&[WriteAt, WriteAt, Sync, Close])],
            &["number 1", "rank 1 2 MPI_File_write_at"],
        );
        assert_refused(&[two.clone(), Vec::new()], &["rank 1 none"]);
        let mut failed = two.clone();
        failed[1].error = beff_trace::ErrorClass::from_name("MPI_ERR_IO");
        assert_refused(&[two, failed], &["rank 1 at 20 ns failed"]);
        let alone = vec![open(1, 1, 1), call(WriteAt, 1, 10), call(Close, 1, 20)];
        assert_refused(&[alone, Vec::new()], &["no blocking independent access"]);
    }

    #[test]
    fn calls_that_would_wait_for_each_other_are_refused() {
        use Function::{Close, WriteAt};
        let rank = |after: &[CallId]| {
            let second = Call { after: after.to_vec(), ..call(WriteAt, 1, 20) };
            vec![open(1, 0, 1), call(WriteAt, 1, 10), second, call(Close, 1, 30)]
        };
        let id = |rank, begin_ns| CallId { rank, begin_ns };
        assert_eq!(check(&[rank(&[]), rank(&[id(0, 10)])]), Ok(4), "the earlier call ends before");
        assert_refused(
            &[rank(&[]), rank(&[id(0, 20)])],
            &["rank 1 in MPI_File_write_at_all at 20 ns", "rank 0 at 20 ns"],
        );
        let opens = || [open(1, 0, 1), open(2, 0, 3)];
        let files = |first: u32, second: u32| {
            let calls = [call(WriteAt, first, 10), call(WriteAt, second, 20), call(Close, 1, 30), call(Close, 2, 40)];
            opens().into_iter().chain(calls).collect::<Vec<_>>()
        };
        assert_eq!(check(&[files(1, 2), files(1, 2)]), Ok(4));
        assert_refused(&[files(1, 2), files(2, 1)], &["wait for each other in collective calls: rank 0 in"]);
    }
}
