//! What a backend cannot replay, and what goes with it.

use std::collections::{BTreeMap, HashSet};

use beff_trace::{Call, Form, Function, Role};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Calls of one function that are left out for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Name of the function, without `MPI_`.
    pub function: String,
    /// Why.
    pub reason: String,
    /// How many, all ranks.
    pub calls: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// The first of them.
    pub rank: u32,
    /// Its begin.
    pub begin_ns: u64,
}

impl LeftOut {
    /// Takes the same of another rank in.
    pub fn add(&mut self, other: &Self) {
        if (other.begin_ns, other.rank) < (self.begin_ns, self.rank) {
            (self.rank, self.begin_ns) = (other.rank, other.begin_ns);
        }
        self.calls += other.calls;
        self.bytes += other.bytes;
    }
}

/// Lets the calls of one rank through that can be replayed.
#[derive(Clone, Debug)]
pub struct Filter {
    unable: fn(&Call) -> Option<&'static str>,
    handles: HashSet<u32>,
    requests: HashSet<u64>,
    /// Handles with a split access that was left out.
    split: HashSet<u32>,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is replayed, perhaps with fewer requests.
    Replayed,
    /// It is no call of files: beginning and end of the program, marks.
    OfTheProgram,
    /// It cannot be replayed.
    LeftOut(&'static str),
}

const NOT_OPEN: &str = "its file was opened by a call that is left out";
const NO_REQUEST: &str = "its requests are those of calls that are left out";
const NO_BEGIN: &str = "its first half is left out";

impl Filter {
    /// Of a backend that says why it is unable.
    #[must_use]
    pub fn new(unable: fn(&Call) -> Option<&'static str>) -> Self {
        Self { unable, handles: HashSet::new(), requests: HashSet::new(), split: HashSet::new() }
    }

    /// What becomes of this call, the next one of its rank. `unknown`: why nobody knows where its data lies, for a backend that must.
    pub fn take(&mut self, call: &mut Call, unknown: Option<&'static str>) -> Fate {
        let is_program = matches!(call.function.role(), Role::Program)
            && !matches!(call.function, Function::RegisterDatarep | Function::CreateErrhandler);
        if is_program {
            return Fate::OfTheProgram;
        }
        let had_requests = !call.requests.is_empty();
        call.requests.retain(|request| !self.requests.contains(request));
        call.completions.retain(|c| !self.requests.contains(&c.request));
        let form = match call.function.role() {
            Role::Data { form, .. } => Some(form),
            _ => None,
        };
        let reason = if call.handle.is_some_and(|handle| self.handles.contains(&handle)) {
            Some(NOT_OPEN)
        } else if had_requests && call.requests.is_empty() {
            Some(NO_REQUEST)
        } else if form == Some(Form::End) && call.handle.is_some_and(|handle| self.split.remove(&handle)) {
            Some(NO_BEGIN)
        } else {
            (self.unable)(call).or(unknown)
        };
        let Some(reason) = reason else { return Fate::Replayed };
        self.requests.extend(call.request);
        match call.function {
            Function::Open => self.handles.extend(call.handle),
            _ if form == Some(Form::Begin) => self.split.extend(call.handle),
            _ => {}
        }
        Fate::LeftOut(reason)
    }
}

/// What was left out on one rank, by function and reason.
#[derive(Clone, Debug, Default)]
pub struct Leavings(BTreeMap<(Function, &'static str), LeftOut>);

impl Leavings {
    /// Takes a call in.
    pub fn add(&mut self, rank: u32, call: &Call, reason: &'static str) {
        let one = LeftOut {
            function: call.function.name().to_owned(),
            reason: reason.to_owned(),
            calls: 1,
            bytes: call.bytes.unwrap_or(0),
            rank,
            begin_ns: call.begin_ns,
        };
        self.0.entry((call.function, reason)).and_modify(|all| all.add(&one)).or_insert(one);
    }

    /// All of them.
    #[must_use]
    pub fn list(self) -> Vec<LeftOut> {
        self.0.into_values().collect()
    }
}

/// The lists of all ranks in one.
#[must_use]
pub fn together(lists: impl IntoIterator<Item = LeftOut>) -> Vec<LeftOut> {
    let mut all: BTreeMap<(String, String), LeftOut> = BTreeMap::new();
    for one in lists {
        let key = (one.function.clone(), one.reason.clone());
        all.entry(key).and_modify(|all| all.add(&one)).or_insert(one);
    }
    all.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unable(call: &Call) -> Option<&'static str> {
        let cannot = matches!(call.function, Function::IreadShared | Function::ReadAtAllBegin)
            || call.function == Function::Open && call.file == Some(9);
        cannot.then_some("cannot")
    }

    #[test]
    fn what_follows_from_a_call_goes_with_it() {
        let mut filter = Filter::new(unable);
        let mut fate = |call: Call| {
            let mut call = call;
            (filter.take(&mut call, None), call)
        };
        let with = |function, handle| Call { handle: Some(handle), ..Call::new(function, 0, 1) };
        assert_eq!(fate(Call::new(Function::Pcontrol, 0, 1)).0, Fate::OfTheProgram);
        assert_eq!(fate(Call { file: Some(9), ..with(Function::Open, 1) }).0, Fate::LeftOut("cannot"));
        assert_eq!(fate(with(Function::Close, 1)).0, Fate::LeftOut(NOT_OPEN));
        assert_eq!(fate(with(Function::Close, 2)).0, Fate::Replayed);
        assert_eq!(fate(Call { request: Some(5), ..with(Function::IreadShared, 2) }).0, Fate::LeftOut("cannot"));
        let wait = |requests: &[u64]| Call { requests: requests.to_vec(), ..Call::new(Function::Waitall, 0, 1) };
        let (kept, call) = fate(wait(&[5, 6]));
        assert_eq!((kept, call.requests), (Fate::Replayed, vec![6]));
        assert_eq!(fate(wait(&[5])).0, Fate::LeftOut(NO_REQUEST));
        assert_eq!(fate(with(Function::ReadAtAllBegin, 2)).0, Fate::LeftOut("cannot"));
        assert_eq!(fate(with(Function::ReadAtAllEnd, 2)).0, Fate::LeftOut(NO_BEGIN));
        assert_eq!(fate(with(Function::ReadAtAllEnd, 2)).0, Fate::Replayed, "of another access");
    }
}
