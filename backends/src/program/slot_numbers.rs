//! Slots of open files and pending requests, assigned before the clock in the order of the steps.

use std::collections::HashMap;
use std::hash::Hash;

/// Number of no key.
pub(crate) const NO_SLOT: u32 = 0;

/// Small numbers for keys with limited lifetimes.
#[derive(Debug)]
pub(crate) struct SlotNumbers<K> {
    by_key: HashMap<K, u32>,
    free: Vec<u32>,
    next: u32,
}

impl<K> Default for SlotNumbers<K> {
    fn default() -> Self {
        Self { by_key: HashMap::new(), free: Vec::new(), next: NO_SLOT + 1 }
    }
}

impl<K: Eq + Hash> SlotNumbers<K> {
    /// Allocates a number without a key.
    pub(crate) fn allocate(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    /// Assigns a number to a key; a previous one of the key is lost.
    pub(crate) fn assign(&mut self, key: K) -> u32 {
        let number = self.allocate();
        self.by_key.insert(key, number);
        number
    }

    /// The number of a key.
    pub(crate) fn get(&self, key: &K) -> Option<u32> {
        self.by_key.get(key).copied()
    }

    /// Removes a key. Its number is reused after [`SlotNumbers::release`].
    pub(crate) fn detach(&mut self, key: &K) -> Option<u32> {
        self.by_key.remove(key)
    }

    /// Removes a key and releases its number.
    pub(crate) fn remove(&mut self, key: &K) -> Option<u32> {
        let number = self.detach(key)?;
        self.release(number);
        Some(number)
    }

    /// Releases a number for reuse.
    pub(crate) fn release(&mut self, number: u32) {
        self.free.push(number);
    }

    /// One more than the largest number so far.
    pub(crate) fn bound(&self) -> usize {
        self.next as usize
    }
}
