//! Calls, bytes and times of one process, summed by file and class, as recorded and as replayed side by side.

use std::collections::{BTreeMap, HashMap};

use beff_trace::{Call, Completion, Role};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::class::CallClass;

/// Calls, and what they took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// How many.
    pub calls: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Time in them, summed over the processes.
    pub seconds: f64,
}

impl Tally {
    /// Adds another one.
    pub fn add(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.seconds += other.seconds;
    }
}

/// The same calls when they were recorded and when they were replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Both {
    /// As the profile says.
    pub recorded: Tally,
    /// As it was now.
    pub replayed: Tally,
}

impl Both {
    /// Adds another one.
    pub fn add(&mut self, other: &Self) {
        self.recorded.add(&other.recorded);
        self.replayed.add(&other.replayed);
    }
}

/// What came of a call.
#[derive(Clone, Copy, Debug)]
pub struct Took<'a> {
    /// How long.
    pub ns: u64,
    /// Bytes moved by a data access that ended in it.
    pub bytes: Option<u64>,
    /// Requests it completed.
    pub completions: &'a [Completion],
}

impl<'a> Took<'a> {
    /// As it was recorded.
    #[must_use]
    pub fn recorded(call: &'a Call) -> Self {
        Self { ns: call.end_ns.saturating_sub(call.begin_ns), bytes: call.bytes, completions: &call.completions }
    }
}

/// File (None: of none) and class.
pub type Account = (Option<u32>, CallClass);

/// The sums of one process, and what it takes to know where a call belongs.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Files of the handles that are open.
    files: HashMap<u32, u32>,
    /// Accounts of the requests that are pending.
    pending: HashMap<u64, Account>,
    /// By file and class.
    pub sums: BTreeMap<Account, Both>,
}

impl Ledger {
    /// Takes a call in; `replayed` None: it only counts as recorded.
    pub fn take(&mut self, call: &Call, replayed: Option<Took<'_>>) {
        let account = self.account(call);
        let recorded = Took::recorded(call);
        self.enter(call, account, recorded, |both| &mut both.recorded);
        if let Some(replayed) = replayed {
            self.enter(call, account, replayed, |both| &mut both.replayed);
        }
        for completion in &call.completions {
            self.pending.remove(&completion.request);
        }
        if call.function == beff_trace::Function::RequestFree {
            self.pending.retain(|request, _| !call.requests.contains(request));
        }
    }

    /// The file of a call.
    #[must_use]
    pub fn file(&self, call: &Call) -> Option<u32> {
        call.file.or_else(|| self.files.get(&call.handle?).copied())
    }

    fn account(&mut self, call: &Call) -> Account {
        if let (Some(handle), Some(file)) = (call.handle, call.file) {
            self.files.insert(handle, file);
        }
        let account = (self.file(call), CallClass::of(call.function));
        if let Some(request) = call.request {
            self.pending.insert(request, account);
        }
        account
    }

    fn enter(&mut self, call: &Call, account: Account, took: Took<'_>, side: fn(&mut Both) -> &mut Tally) {
        let seconds = took.ns as f64 * 1e-9;
        // The time of a completing call belongs to what it completes, in equal parts.
        let known = |pending: &HashMap<u64, Account>, c: &Completion| pending.get(&c.request).copied();
        let completed = call.completions.iter().filter(|c| self.pending.contains_key(&c.request)).count();
        let is_request = matches!(call.function.role(), Role::Request);
        if !is_request || completed == 0 {
            let own = side(self.sums.entry(account).or_default());
            own.calls += 1;
            own.bytes += took.bytes.unwrap_or(0);
            own.seconds += seconds;
            return;
        }
        for completion in &call.completions {
            if let Some(account) = known(&self.pending, completion) {
                let own = side(self.sums.entry(account).or_default());
                own.seconds += seconds / completed as f64;
                let same = took.completions.iter().find(|c| c.request == completion.request);
                own.bytes += same.and_then(|c| c.bytes).unwrap_or(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use beff_trace::Function;

    use super::*;

    #[test]
    fn a_wait_counts_with_what_it_completes() {
        let mut ledger = Ledger::default();
        ledger.take(&Call { handle: Some(1), file: Some(7), ..Call::new(Function::Open, 0, 10) }, None);
        for (request, function) in [(1, Function::IwriteAt), (2, Function::IreadAt)] {
            let call = Call { handle: Some(1), request: Some(request), ..Call::new(function, 10, 11) };
            ledger.take(&call, Some(Took { ns: 2, bytes: None, completions: &[] }));
        }
        let done = |bytes| [1, 2].map(|request| Completion { request, bytes: Some(bytes), error: None });
        let wait =
            Call { requests: vec![1, 2], completions: done(100).to_vec(), ..Call::new(Function::Waitall, 20, 40) };
        ledger.take(&wait, Some(Took { ns: 60, bytes: None, completions: &done(90) }));
        let both = ledger.sums[&(Some(7), CallClass::WriteNonblocking)];
        assert_eq!((both.recorded.calls, both.recorded.bytes, both.replayed.bytes), (1, 100, 90));
        assert!((both.recorded.seconds - 11e-9).abs() < 1e-15 && (both.replayed.seconds - 32e-9).abs() < 1e-15);
        assert!(!ledger.sums.contains_key(&(None, CallClass::Other)), "the wait has no row of its own");
        let again = Call { requests: vec![1], ..Call::new(Function::Test, 50, 51) };
        ledger.take(&again, None);
        assert_eq!(ledger.sums[&(None, CallClass::Other)].recorded.calls, 1);
    }
}
