//! Numbers of distinct values.

use std::collections::HashMap;
use std::hash::Hash;

#[derive(Debug)]
pub(super) struct Interner<T> {
    pub(super) list: Vec<T>,
    pub(super) numbers: HashMap<T, u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { list: Vec::new(), numbers: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    pub(super) fn intern(&mut self, value: T) -> u32 {
        if let Some(number) = self.numbers.get(&value) {
            return *number;
        }
        let number = self.list.len() as u32;
        self.list.push(value.clone());
        self.numbers.insert(value, number);
        number
    }
}
