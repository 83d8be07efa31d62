//! Calls of HDF5 that enclose MPI calls, by the markers of the recording.

use std::collections::HashMap;

use crate::Call;

/// Maximum number of distinct names; further ones are unknown.
const MAX_NAMES: usize = 1 << 14;

/// Markers of all ranks.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    /// Calls in progress by thread of the current rank, the innermost last.
    current: HashMap<u32, Vec<Option<u32>>>,
}

impl Marks {
    /// Adds a marker.
    pub fn add(&mut self, call: &Call) {
        let calls = self.current.entry(call.thread).or_default();
        if call.flag == Some(false) {
            calls.pop();
            return;
        }
        let name = call.name.as_deref().unwrap_or_default();
        let number = match self.numbers.get(name) {
            Some(number) => Some(*number),
            None if self.names.len() < MAX_NAMES => {
                let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
                self.names.push(name.to_owned());
                self.numbers.insert(name.to_owned(), number);
                Some(number)
            }
            None => None,
        };
        calls.push(number);
    }

    /// The innermost call in progress: None outside, Some(None) if its name is unknown.
    pub fn current(&self, thread: u32) -> Option<Option<u32>> {
        self.current.get(&thread)?.last().copied()
    }

    pub fn end_rank(&mut self) {
        self.current.clear();
    }

    pub fn into_names(self) -> Vec<String> {
        self.names
    }
}
