//! Places for open files and pending requests, given out before the clock in the order of the steps.

use std::collections::HashMap;
use std::hash::Hash;

/// Small numbers for keys that come and go.
#[derive(Debug)]
pub(super) struct Numbers<K> {
    of: HashMap<K, u32>,
    free: Vec<u32>,
    given: u32,
}

impl<K: Eq + Hash> Numbers<K> {
    /// Numbers from `first` on.
    pub(super) fn from(first: u32) -> Self {
        Self { of: HashMap::new(), free: Vec::new(), given: first }
    }

    /// A number that no key has.
    pub(super) fn unnamed(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.given += 1;
            self.given - 1
        })
    }

    /// A number for a key. One that it had before is lost.
    pub(super) fn give(&mut self, key: K) -> u32 {
        let number = self.unnamed();
        self.of.insert(key, number);
        number
    }

    /// The number of a key.
    pub(super) fn get(&self, key: &K) -> Option<u32> {
        self.of.get(key).copied()
    }

    /// Ends a key. Its number is given out again after [`Numbers::release`].
    pub(super) fn take(&mut self, key: &K) -> Option<u32> {
        self.of.remove(key)
    }

    /// A number can be given out again.
    pub(super) fn release(&mut self, number: u32) {
        self.free.push(number);
    }

    /// One more than the largest number there was.
    pub(super) fn len(&self) -> usize {
        self.given as usize
    }
}
