//! Calls that a backend cannot replay, and calls that depend on them.

use std::collections::{BTreeMap, HashSet};

use beff_trace::{AccessForm, Call, Function, Role};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Calls of one function omitted for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OmittedCalls {
    /// Name of the function, without `MPI_`.
    pub function: String,
    /// Reason.
    pub reason: String,
    /// Number of calls, all ranks.
    pub calls: u64,
    /// Bytes that they transferred.
    pub bytes: u64,
    /// Rank of the first of them.
    pub rank: u32,
    /// Begin of the first of them.
    pub begin_ns: u64,
}

impl OmittedCalls {
    /// Adds the same omission of another rank.
    pub fn merge(&mut self, other: &Self) {
        if (other.begin_ns, other.rank) < (self.begin_ns, self.rank) {
            (self.rank, self.begin_ns) = (other.rank, other.begin_ns);
        }
        self.calls += other.calls;
        self.bytes += other.bytes;
    }
}

/// Selects the calls of one rank that can be replayed.
#[derive(Clone, Debug)]
pub struct CallFilter {
    unsupported: fn(&Call) -> Option<&'static str>,
    omitted_handles: HashSet<u32>,
    omitted_requests: HashSet<u64>,
    omitted_splits: HashSet<u32>,
}

/// Treatment of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallDisposition {
    /// Replayed, perhaps with fewer requests.
    Replayed,
    /// Not a call on a file of MPI: begin and end of the program, marks, POSIX.
    NonFileCall,
    /// Omitted, because it cannot be replayed.
    Omitted(&'static str),
}

const OPEN_OMITTED: &str = "its file was opened by an omitted call";
const REQUESTS_OMITTED: &str = "its requests are those of omitted calls";
const BEGIN_OMITTED: &str = "its first half is omitted";

impl CallFilter {
    /// Creates the filter of a backend from its test for unsupported calls.
    #[must_use]
    pub fn new(unsupported: fn(&Call) -> Option<&'static str>) -> Self {
        Self {
            unsupported,
            omitted_handles: HashSet::new(),
            omitted_requests: HashSet::new(),
            omitted_splits: HashSet::new(),
        }
    }

    /// Treatment of the next call of the rank. `unknown`: why the location of its data is unknown, for a backend that needs it.
    pub fn classify(&mut self, call: &mut Call, unknown: Option<&'static str>) -> CallDisposition {
        // Openings reproduce the effects of POSIX calls: the state of each file is that of the recording.
        let is_program = matches!(call.function.role(), Role::Program | Role::Posix)
            && !matches!(call.function, Function::RegisterDatarep | Function::CreateErrhandler);
        if is_program {
            return CallDisposition::NonFileCall;
        }
        let had_requests = !call.requests.is_empty();
        call.requests.retain(|request| !self.omitted_requests.contains(request));
        call.completions.retain(|c| !self.omitted_requests.contains(&c.request));
        let form = match call.function.role() {
            Role::Data { form, .. } => Some(form),
            _ => None,
        };
        let reason = if call.handle.is_some_and(|handle| self.omitted_handles.contains(&handle)) {
            Some(OPEN_OMITTED)
        } else if had_requests && call.requests.is_empty() {
            Some(REQUESTS_OMITTED)
        } else if form == Some(AccessForm::End) && call.handle.is_some_and(|handle| self.omitted_splits.remove(&handle))
        {
            Some(BEGIN_OMITTED)
        } else {
            (self.unsupported)(call).or(unknown)
        };
        let Some(reason) = reason else { return CallDisposition::Replayed };
        self.omitted_requests.extend(call.request);
        match call.function {
            Function::Open => self.omitted_handles.extend(call.handle),
            _ if form == Some(AccessForm::Begin) => self.omitted_splits.extend(call.handle),
            _ => {}
        }
        CallDisposition::Omitted(reason)
    }
}

/// Omitted calls of one rank, by function and reason.
#[derive(Clone, Debug, Default)]
pub struct OmissionsByFunction(BTreeMap<(Function, &'static str), OmittedCalls>);

impl OmissionsByFunction {
    /// Adds a call.
    pub fn record(&mut self, rank: u32, call: &Call, reason: &'static str) {
        let one = OmittedCalls {
            function: call.function.name().to_owned(),
            reason: reason.to_owned(),
            calls: 1,
            bytes: call.bytes.unwrap_or(0),
            rank,
            begin_ns: call.begin_ns,
        };
        self.0.entry((call.function, reason)).and_modify(|all| all.merge(&one)).or_insert(one);
    }

    /// All omissions.
    #[must_use]
    pub fn into_list(self) -> Vec<OmittedCalls> {
        self.0.into_values().collect()
    }
}

/// Merges the lists of all ranks.
#[must_use]
pub fn merge_by_function(lists: impl IntoIterator<Item = OmittedCalls>) -> Vec<OmittedCalls> {
    let mut all: BTreeMap<(String, String), OmittedCalls> = BTreeMap::new();
    for one in lists {
        let key = (one.function.clone(), one.reason.clone());
        all.entry(key).and_modify(|all| all.merge(&one)).or_insert(one);
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
    fn dependent_calls_are_omitted_too() {
        let mut filter = CallFilter::new(unable);
        let mut fate = |call: Call| {
            let mut call = call;
            (filter.classify(&mut call, None), call)
        };
        let with = |function, handle| Call { handle: Some(handle), ..Call::new(function, 0, 1) };
        assert_eq!(fate(Call::new(Function::Pcontrol, 0, 1)).0, CallDisposition::NonFileCall);
        assert_eq!(fate(Call { file: Some(9), ..with(Function::Open, 1) }).0, CallDisposition::Omitted("cannot"));
        assert_eq!(fate(with(Function::Close, 1)).0, CallDisposition::Omitted(OPEN_OMITTED));
        assert_eq!(fate(with(Function::Close, 2)).0, CallDisposition::Replayed);
        assert_eq!(
            fate(Call { request: Some(5), ..with(Function::IreadShared, 2) }).0,
            CallDisposition::Omitted("cannot")
        );
        let wait = |requests: &[u64]| Call { requests: requests.to_vec(), ..Call::new(Function::Waitall, 0, 1) };
        let (kept, call) = fate(wait(&[5, 6]));
        assert_eq!((kept, call.requests), (CallDisposition::Replayed, vec![6]));
        assert_eq!(fate(wait(&[5])).0, CallDisposition::Omitted(REQUESTS_OMITTED));
        assert_eq!(fate(with(Function::ReadAtAllBegin, 2)).0, CallDisposition::Omitted("cannot"));
        assert_eq!(fate(with(Function::ReadAtAllEnd, 2)).0, CallDisposition::Omitted(BEGIN_OMITTED));
        assert_eq!(fate(with(Function::ReadAtAllEnd, 2)).0, CallDisposition::Replayed, "of another access");
    }
}
