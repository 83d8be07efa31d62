//! Kinds of accesses whose bytes are told apart: function on a file, and marker.

use std::collections::HashMap;

/// Maximum number of kinds of accesses that are told apart by their marker.
const MAX_GROUPS: usize = 1 << 18;

/// Kinds of accesses: row and marker.
#[derive(Default)]
pub(super) struct Groups {
    numbers: HashMap<(u32, Option<u32>), u32>,
    list: Vec<(u32, Option<u32>)>,
    /// The latest one.
    last: Option<((u32, Option<u32>), u32)>,
}

impl Groups {
    /// Number of a kind.
    pub fn number(&mut self, row: u32, mark: Option<u32>) -> u32 {
        let mark = mark.filter(|_| self.list.len() < MAX_GROUPS);
        if let Some((_, number)) = self.last.filter(|(known, _)| *known == (row, mark)) {
            return number;
        }
        let new = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry((row, mark)).or_insert(new);
        if number == new {
            self.list.push((row, mark));
        }
        self.last = Some(((row, mark), number));
        number
    }

    /// Row and marker of a number.
    pub fn get(&self, number: u32) -> Option<(u32, Option<u32>)> {
        self.list.get(number as usize).copied()
    }
}
