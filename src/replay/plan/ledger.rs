//! Calls, bytes and times of one process, by file and class, recorded and replayed.

use std::collections::{BTreeMap, HashMap};

use beff_trace::{Call, Completion, Role};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::class::CallClass;

/// Totals of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallTally {
    /// Number of calls.
    pub calls: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Time in the calls, summed over the processes.
    pub seconds: f64,
}

impl CallTally {
    /// Adds another tally.
    pub fn add(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.seconds += other.seconds;
    }
}

/// Recorded and replayed totals of the same calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TallyPair {
    /// Recorded.
    pub recorded: CallTally,
    /// Replayed.
    pub replayed: CallTally,
}

impl TallyPair {
    /// Adds another pair.
    pub fn add(&mut self, other: &Self) {
        self.recorded.add(&other.recorded);
        self.replayed.add(&other.replayed);
    }
}

/// Result of a call.
#[derive(Clone, Copy, Debug)]
pub struct CallResult<'a> {
    /// Duration.
    pub ns: u64,
    /// Bytes of a data access that ended in it.
    pub bytes: Option<u64>,
    /// Completed requests.
    pub completions: &'a [Completion],
}

impl<'a> CallResult<'a> {
    /// The recorded result.
    #[must_use]
    pub fn recorded(call: &'a Call) -> Self {
        Self { ns: call.end_ns.saturating_sub(call.begin_ns), bytes: call.bytes, completions: &call.completions }
    }
}

/// File (None without one) and class.
pub type LedgerKey = (Option<u32>, CallClass);

/// Totals of one process, and the state that assigns calls to files and classes.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    files: HashMap<u32, u32>,
    pending: HashMap<u64, LedgerKey>,
    /// Totals by file and class.
    pub sums: BTreeMap<LedgerKey, TallyPair>,
}

impl Ledger {
    /// Adds a call; with `replayed` None only its recorded result.
    pub fn record(&mut self, call: &Call, replayed: Option<CallResult<'_>>) {
        let account = self.key(call);
        let recorded = CallResult::recorded(call);
        self.add_to_side(call, account, recorded, |both| &mut both.recorded);
        if let Some(replayed) = replayed {
            self.add_to_side(call, account, replayed, |both| &mut both.replayed);
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

    fn key(&mut self, call: &Call) -> LedgerKey {
        if let (Some(handle), Some(file)) = (call.handle, call.file) {
            self.files.insert(handle, file);
        }
        let account = (self.file(call), CallClass::of(call.function));
        if let Some(request) = call.request {
            self.pending.insert(request, account);
        }
        account
    }

    fn add_to_side(
        &mut self,
        call: &Call,
        account: LedgerKey,
        took: CallResult<'_>,
        side: fn(&mut TallyPair) -> &mut CallTally,
    ) {
        let seconds = took.ns as f64 * 1e-9;
        // The time of a completing call is divided equally among the requests that it completes.
        let known = |pending: &HashMap<u64, LedgerKey>, c: &Completion| pending.get(&c.request).copied();
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
    fn the_time_of_a_wait_counts_for_completed_requests() {
        let mut ledger = Ledger::default();
        ledger.record(&Call { handle: Some(1), file: Some(7), ..Call::new(Function::Open, 0, 10) }, None);
        for (request, function) in [(1, Function::IwriteAt), (2, Function::IreadAt)] {
            let call = Call { handle: Some(1), request: Some(request), ..Call::new(function, 10, 11) };
            ledger.record(&call, Some(CallResult { ns: 2, bytes: None, completions: &[] }));
        }
        let done = |bytes| [1, 2].map(|request| Completion { request, bytes: Some(bytes), error: None });
        let wait =
            Call { requests: vec![1, 2], completions: done(100).to_vec(), ..Call::new(Function::Waitall, 20, 40) };
        ledger.record(&wait, Some(CallResult { ns: 60, bytes: None, completions: &done(90) }));
        let both = ledger.sums[&(Some(7), CallClass::WriteNonblocking)];
        assert_eq!((both.recorded.calls, both.recorded.bytes, both.replayed.bytes), (1, 100, 90));
        assert!((both.recorded.seconds - 11e-9).abs() < 1e-15 && (both.replayed.seconds - 32e-9).abs() < 1e-15);
        assert!(!ledger.sums.contains_key(&(None, CallClass::Other)), "the wait has no separate row");
        let again = Call { requests: vec![1], ..Call::new(Function::Test, 50, 51) };
        ledger.record(&again, None);
        assert_eq!(ledger.sums[&(None, CallClass::Other)].recorded.calls, 1);
    }
}
