//! Size of a file during the sweep.

use crate::call::Call;
use crate::function::Function;

/// Size that follows from the calls that have ended; None if unknown.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileSize(Option<u64>);

impl FileSize {
    /// Before the first opening.
    pub(super) fn new(bytes: Option<u64>) -> Self {
        Self(bytes)
    }

    pub(super) fn bytes(self) -> Option<u64> {
        self.0
    }

    /// A write up to `end` has ended.
    pub(super) fn extend(&mut self, end: i64) {
        self.0 = self.0.map(|bytes| bytes.max(u64::try_from(end).unwrap_or(0)));
    }

    /// A write to an unknown position has ended, or there may be writes of which no recording exists.
    pub(super) fn forget(&mut self) {
        self.0 = None;
    }

    /// A successful call without data begins; `is_closed` if no rank has the file open.
    pub(super) fn apply(&mut self, call: &Call, is_closed: bool) {
        let given = |number: Option<i64>| number.map(|number| u64::try_from(number).unwrap_or(0));
        match call.function {
            Function::SetSize => self.0 = given(call.offset),
            Function::Preallocate => self.0 = self.0.zip(given(call.offset)).map(|(now, least)| now.max(least)),
            Function::Open if is_closed && call.number.is_some() => self.0 = given(call.number),
            Function::GetSize if call.number.is_some() => self.0 = given(call.number),
            Function::Delete if is_closed => self.0 = Some(0),
            Function::Delete => self.0 = None,
            _ => {}
        }
    }
}
