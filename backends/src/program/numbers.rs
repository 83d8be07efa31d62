//! Places for open files and pending requests, given out before the clock in the order of the steps.

use std::collections::HashMap;
use std::hash::Hash;

/// The number that no key has.
pub(crate) const NOBODY: u32 = 0;

/// Small numbers for keys that come and go.
#[derive(Debug)]
pub(crate) struct Numbers<K> {
    of: HashMap<K, u32>,
    free: Vec<u32>,
    given: u32,
}

impl<K> Default for Numbers<K> {
    fn default() -> Self {
        Self { of: HashMap::new(), free: Vec::new(), given: NOBODY + 1 }
    }
}

impl<K: Eq + Hash> Numbers<K> {
    /// A number of its own without a key.
    pub(crate) fn unnamed(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.given += 1;
            self.given - 1
        })
    }

    /// A number for a key. One that it had before is lost.
    pub(crate) fn give(&mut self, key: K) -> u32 {
        let number = self.unnamed();
        self.of.insert(key, number);
        number
    }

    /// The number of a key.
    pub(crate) fn get(&self, key: &K) -> Option<u32> {
        self.of.get(key).copied()
    }

    /// Ends a key. Its number is given out again after [`Numbers::release`].
    pub(crate) fn take(&mut self, key: &K) -> Option<u32> {
        self.of.remove(key)
    }

    /// Ends a key, and its number can be given out again.
    pub(crate) fn end(&mut self, key: &K) -> Option<u32> {
        let number = self.take(key)?;
        self.release(number);
        Some(number)
    }

    /// A number can be given out again.
    pub(crate) fn release(&mut self, number: u32) {
        self.free.push(number);
    }

    /// One more than the largest number there was.
    pub(crate) fn len(&self) -> usize {
        self.given as usize
    }
}
