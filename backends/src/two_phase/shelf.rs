//! Memory of domains and messages between files: pages appear once, not in every file that is opened.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use crate::Ring;

/// What the closed files of one driver have left, for the next ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shelf(Rc<RefCell<Vec<Ring>>>);

impl Shelf {
    /// At least `bytes` of memory, every page of it there: the shortest that lies here and is long enough, or new. What is too short is given
    /// up then: the files of a driver need the same.
    ///
    /// # Errors
    /// The kernel's answer if there is no memory.
    pub(super) fn take(&self, bytes: u64) -> io::Result<Ring> {
        let mut all = self.0.borrow_mut();
        let len = |ring: &Ring| ring.bytes().len() as u64;
        let long_enough = all.iter().enumerate().filter(|(_, ring)| len(ring) >= bytes);
        let mut ring = match long_enough.min_by_key(|(_, ring)| len(ring)).map(|(index, _)| index) {
            Some(index) => all.swap_remove(index),
            None => {
                all.clear();
                Ring::new(bytes, 0)?
            }
        };
        // New pages appear here, not in the first batch. And no page holds what an earlier file had: a read that moves nothing is seen.
        ring.bytes_mut().iter_mut().step_by(4096).for_each(|byte| *byte = !*byte);
        Ok(ring)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Which memory lies here.
    #[cfg(test)]
    pub(super) fn ids(&self) -> Vec<u64> {
        let mut ids: Vec<u64> = self.0.borrow().iter().map(Ring::id).collect();
        ids.sort_unstable();
        ids
    }

    /// For the next one: nothing is under way in `memory`.
    pub(super) fn put(&self, memory: Ring) {
        self.0.borrow_mut().push(memory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_by_the_next_that_needs_as_much() {
        let shelf = Shelf::default();
        let mut memory = shelf.take(16 << 10).unwrap();
        let id = memory.id();
        memory.bytes_mut().fill(7);
        shelf.put(memory);
        // A copy of the driver has the same shelf.
        let memory = shelf.clone().take(8 << 10).unwrap();
        assert_eq!(memory.id(), id);
        assert!(memory.bytes().chunks(4096).all(|page| page[0] != 7), "no page as it was");
        let other = shelf.take(8 << 10).unwrap();
        assert_ne!(other.id(), id, "what is in use is nobody else's");
        shelf.put(memory);
        shelf.put(other);
        let memory = shelf.take(10 << 10).unwrap();
        assert_eq!(memory.id(), id, "the other is too short");
        shelf.put(memory);
        let other = shelf.take(8 << 10).unwrap();
        assert_ne!(other.id(), id, "the shortest that will do");
        shelf.put(other);
        assert!(shelf.take(32 << 10).unwrap().bytes().len() >= 32 << 10);
        assert!(shelf.is_empty(), "what is too short is given up");
    }
}
