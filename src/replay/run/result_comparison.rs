//! Comparison of the result of a call with the recorded one.

use std::collections::BTreeMap;

use beff_backends::StepOutcome;
use beff_trace::{AccessForm, Call, Completion, DataOrigin, ErrorClass, Function, Role};
use serde::{Deserialize, Serialize};

use crate::replay::records::ResultDifference;

/// Differences of one rank by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ResultComparison {
    pub calls: u64,
    pub as_recorded: u64,
    pub differences: Vec<ResultDifference>,
    /// Of pending reads by request, and of split ones by handle: bytes of unknown content at the end, which may be missing now.
    #[serde(skip)]
    tail_of_request: BTreeMap<u64, u64>,
    #[serde(skip)]
    tail_of_handle: BTreeMap<u32, u64>,
}

impl ResultComparison {
    /// Compares a call; true if as recorded.
    pub fn compare_call(&mut self, rank: u32, call: &Call, outcome: &StepOutcome) -> bool {
        self.calls += 1;
        let Some((kind, recorded, replayed)) = failure(call, outcome).or_else(|| self.difference(call, outcome)) else {
            self.as_recorded += 1;
            return true;
        };
        if let Some(known) = self.differences.iter_mut().find(|d| d.kind == kind) {
            known.calls += 1;
            return false;
        }
        self.differences.push(ResultDifference {
            kind: kind.to_owned(),
            calls: 1,
            rank,
            begin_ns: call.begin_ns,
            function: call.function.name().to_owned(),
            recorded,
            replayed,
        });
        false
    }

    /// Kind, recorded and replayed result; None if equal.
    fn difference(&mut self, call: &Call, outcome: &StepOutcome) -> Option<(&'static str, String, String)> {
        if call.error != outcome.error {
            return Some(("error", error_text(call.error), error_text(outcome.error)));
        }
        let tail_bytes = self.tail_of_call(call);
        if !is_expected(call.bytes, outcome.bytes, tail_bytes) {
            return Some(("bytes", bytes_text(call.bytes), bytes_text(outcome.bytes)));
        }
        if !self.same_completions(&call.completions, &outcome.completions) {
            return Some(("completions", completions_text(&call.completions), completions_text(&outcome.completions)));
        }
        let asked = matches!(
            call.function,
            Function::GetSize
                | Function::GetPosition
                | Function::GetPositionShared
                | Function::GetByteOffset
                | Function::GetTypeExtent
                | Function::GetAtomicity
        );
        let recorded = call.number.or(call.flag.map(i64::from));
        let known = asked && recorded.is_some() && outcome.number.is_some();
        (known && recorded != outcome.number).then(|| ("answer", number_text(recorded), number_text(outcome.number)))
    }

    fn same_completions(&mut self, recorded: &[Completion], replayed: &[Completion]) -> bool {
        let same = |a: &Completion, b: &Completion, tail_bytes: u64| {
            a.request == b.request && a.error == b.error && is_expected(a.bytes, b.bytes, tail_bytes)
        };
        let mut is_same = |a: &Completion| {
            let tail_bytes = self.tail_of_request.remove(&a.request).unwrap_or(0);
            replayed.iter().any(|b| same(a, b, tail_bytes))
        };
        recorded.len() == replayed.len() && recorded.iter().all(&mut is_same)
    }

    /// Bytes of unknown content at the end of the read that this call makes or ends; stored for the end of the call or the request.
    fn tail_of_call(&mut self, call: &Call) -> u64 {
        let tail = call.from.last().filter(|last| last.origin == DataOrigin::Unknown).map(|last| last.bytes);
        match (call.function.role(), call.handle) {
            (Role::Data { form: AccessForm::Begin, .. }, Some(handle)) => {
                self.tail_of_handle.extend(tail.map(|bytes| (handle, bytes)));
                0
            }
            (Role::Data { form: AccessForm::End, .. }, Some(handle)) => {
                self.tail_of_handle.remove(&handle).unwrap_or(0)
            }
            _ => {
                self.tail_of_request.extend(call.request.zip(tail));
                tail.unwrap_or(0)
            }
        }
    }

    /// Calls that succeeded when recorded and failed now; None if there are none.
    pub fn failed_calls(&self) -> Option<&ResultDifference> {
        self.differences.iter().find(|difference| difference.kind == FAILURE)
    }

    /// Merges the comparisons of ranks, in rank order.
    pub fn merge(all: impl IntoIterator<Item = Self>) -> Self {
        let mut sum = Self::default();
        let mut kinds: BTreeMap<String, ResultDifference> = BTreeMap::new();
        for one in all {
            sum.calls += one.calls;
            sum.as_recorded += one.as_recorded;
            for difference in one.differences {
                let calls = difference.calls;
                kinds.entry(difference.kind.clone()).and_modify(|d| d.calls += calls).or_insert(difference);
            }
        }
        sum.differences = kinds.into_values().collect();
        sum
    }
}

/// Kind of the calls that succeeded when recorded and failed now.
const FAILURE: &str = "failure";

/// As [`difference`], for a call, or a request that it completes, that succeeded when recorded and failed now.
fn failure(call: &Call, outcome: &StepOutcome) -> Option<(&'static str, String, String)> {
    let failed = |now: &&Completion| {
        let succeeded = |then: &Completion| then.request == now.request && then.error.is_none();
        now.error.is_some() && call.completions.iter().any(succeeded)
    };
    let of_request = || outcome.completions.iter().find(failed).and_then(|completion| completion.error);
    let error = outcome.error.or_else(of_request).filter(|_| call.error.is_none())?;
    Some((FAILURE, error_text(None), error.name().to_owned()))
}

/// True if a transfer has the recorded bytes, or lacks some whose content is unknown: a read at the end of the file for which a library
/// reported more than it delivered, or whose order relative to the writes of other ranks is unknown.
fn is_expected(recorded: Option<u64>, replayed: Option<u64>, tail_bytes: u64) -> bool {
    let (Some(recorded), Some(replayed)) = (recorded, replayed) else { return recorded.is_none() };
    replayed <= recorded && replayed >= recorded.saturating_sub(tail_bytes)
}

fn error_text(error: Option<ErrorClass>) -> String {
    error.map_or_else(|| "no error".to_owned(), |error| error.name().to_owned())
}

fn bytes_text(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "not known".to_owned(), |bytes| format!("{bytes} bytes"))
}

fn number_text(number: Option<i64>) -> String {
    number.map_or_else(|| "nothing".to_owned(), |number| number.to_string())
}

fn completions_text(list: &[Completion]) -> String {
    let one = |c: &Completion| format!("request {}: {}, {}", c.request, bytes_text(c.bytes), error_text(c.error));
    match list {
        [] => "nothing completed".to_owned(),
        [first] => one(first),
        [first, rest @ ..] => format!("{} and {} more", one(first), rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expected_error_is_as_recorded() {
        let io = ErrorClass::from_name("MPI_ERR_IO");
        let call = Call { error: io, bytes: Some(0), ..Call::new(Function::ReadAt, 5, 6) };
        let outcome = |error, bytes| StepOutcome { error, bytes: Some(bytes), ..StepOutcome::default() };
        let mut compared = ResultComparison::default();
        assert!(compared.compare_call(1, &call, &outcome(io, 0)));
        assert!(!compared.compare_call(1, &call, &outcome(None, 0)));
        assert!(!compared.compare_call(1, &call, &outcome(None, 0)));
        assert!(!compared.compare_call(1, &call, &outcome(io, 7)));
        let sum = ResultComparison::merge(vec![compared.clone(), compared]);
        assert_eq!((sum.calls, sum.as_recorded), (8, 2));
        let kinds: Vec<_> = sum.differences.iter().map(|d| (d.kind.as_str(), d.calls)).collect();
        assert_eq!(kinds, [("bytes", 2), ("error", 4)]);
        assert_eq!(
            (sum.differences[1].recorded.as_str(), sum.differences[1].replayed.as_str()),
            ("MPI_ERR_IO", "no error")
        );
    }

    #[test]
    fn an_error_that_was_not_recorded_is_a_failure() {
        let io = ErrorClass::from_name("MPI_ERR_IO");
        let done = |error| vec![Completion { request: 1, bytes: Some(10), error }];
        let call = |error, completions| Call { error, completions, ..Call::new(Function::Wait, 5, 6) };
        let failed = |call: &Call, error, completions| {
            let mut compared = ResultComparison::default();
            compared.compare_call(1, call, &StepOutcome { error, completions, ..StepOutcome::default() });
            compared.failed_calls().map(|d| (d.calls, d.begin_ns, d.replayed.clone()))
        };
        let found = Some((1, 5, "MPI_ERR_IO".to_owned()));
        assert_eq!(failed(&call(None, done(None)), io, Vec::new()), found, "the call");
        assert_eq!(failed(&call(None, done(None)), None, done(io)), found, "the request alone");
        assert_eq!(failed(&call(None, done(None)), None, done(None)), None);
        assert_eq!(failed(&call(None, done(io)), None, done(io)), None, "as recorded");
        assert_eq!(failed(&call(io, Vec::new()), ErrorClass::from_name("MPI_ERR_OTHER"), Vec::new()), None);
        assert_eq!(failed(&call(io, Vec::new()), None, Vec::new()), None, "a recorded error that does not occur");
    }

    #[test]
    fn unknown_bytes_at_the_end_of_a_read_may_be_missing() {
        use beff_trace::OriginRange;
        let tail = vec![OriginRange { bytes: 6, origin: DataOrigin::Unknown }];
        let mut compared = ResultComparison::default();
        let mut same = |call: &Call, outcome: StepOutcome| compared.compare_call(0, call, &outcome);
        let moved = |bytes| StepOutcome { bytes: Some(bytes), ..StepOutcome::default() };
        let read = Call { bytes: Some(10), from: tail.clone(), ..Call::new(Function::ReadAt, 5, 6) };
        assert_eq!([10, 7, 4, 3, 11].map(|bytes| same(&read, moved(bytes))), [true, true, true, false, false]);

        let begin = Call { handle: Some(1), from: tail.clone(), ..Call::new(Function::ReadAllBegin, 7, 8) };
        let end = Call { handle: Some(1), bytes: Some(10), ..Call::new(Function::ReadAllEnd, 9, 10) };
        assert!(same(&begin, StepOutcome::default()) && same(&end, moved(4)) && !same(&end, moved(4)), "split");

        let begin = Call { request: Some(3), from: tail, ..Call::new(Function::IreadAt, 11, 12) };
        let done = |bytes| vec![Completion { request: 3, bytes: Some(bytes), error: None }];
        let wait = Call { completions: done(10), ..Call::new(Function::Wait, 13, 14) };
        let completed = |bytes| StepOutcome { completions: done(bytes), ..StepOutcome::default() };
        assert!(same(&begin, StepOutcome::default()) && same(&wait, completed(5)) && !same(&wait, completed(5)));
    }

    #[test]
    fn fewer_bytes_than_recorded_are_a_difference_as_more_are() {
        let call = Call { bytes: Some(10), ..Call::new(Function::WriteAt, 5, 6) };
        let with = |bytes| {
            ResultComparison::default()
                .difference(&call, &StepOutcome { bytes: Some(bytes), ..StepOutcome::default() })
                .map(|d| d.0)
        };
        assert_eq!([with(10), with(4), with(11)], [None, Some("bytes"), Some("bytes")]);
    }

    #[test]
    fn completions_may_come_in_any_order() {
        let done = |list: &[(u64, u64)]| -> Vec<Completion> {
            list.iter()
                .map(|(request, bytes)| Completion { request: *request, bytes: Some(*bytes), error: None })
                .collect()
        };
        let call = Call { completions: done(&[(1, 10), (2, 20)]), ..Call::new(Function::Waitall, 0, 1) };
        let with = |list| {
            ResultComparison::default()
                .difference(&call, &StepOutcome { completions: done(list), ..StepOutcome::default() })
        };
        assert_eq!(with(&[(2, 20), (1, 10)]), None);
        assert_eq!(with(&[(1, 10)]).unwrap().0, "completions");
        assert_eq!(with(&[(1, 10), (2, 21)]).unwrap().1, "request 1: 10 bytes, no error and 1 more");
    }
}
