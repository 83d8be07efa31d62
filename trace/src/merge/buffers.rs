//! From addresses of memory to small numbers.

use std::collections::HashMap;

/// Addresses that are remembered at once. A program that uses more of them reuses none soon.
const MOST: usize = 1 << 16;

/// The addresses of one rank, numbered in the order in which they appear.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    known: HashMap<u64, u64>,
    next: u64,
}

impl Buffers {
    /// The number of an address. Too many: all are forgotten, and have new numbers when they come again.
    pub(super) fn number(&mut self, address: u64) -> u64 {
        if let Some(number) = self.known.get(&address) {
            return *number;
        }
        if self.known.len() == MOST {
            self.known.clear();
        }
        let number = self.next;
        self.next += 1;
        self.known.insert(address, number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_never_stands_for_two_addresses() {
        let mut buffers = Buffers::default();
        assert_eq!([7, 9, 7, 0, 9].map(|address| buffers.number(address)), [0, 1, 0, 2, 1]);
        for address in 0..MOST as u64 + 10 {
            buffers.number(1000 + address);
        }
        assert!(buffers.known.len() <= MOST);
        let again = buffers.number(7);
        assert_eq!(again, MOST as u64 + 13, "forgotten, and numbered anew");
        assert_eq!(buffers.number(7), again);
    }
}
