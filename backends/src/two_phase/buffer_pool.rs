//! Buffers for domains and messages, reused between files: page faults occur once, not for every file.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use crate::TransferBuffer;

/// Buffers that closed files of one driver have released.
#[derive(Clone, Debug, Default)]
pub(crate) struct BufferPool(Rc<RefCell<Vec<TransferBuffer>>>);

impl BufferPool {
    /// Returns at least `bytes` of memory with all pages allocated: the shortest sufficient buffer of the pool, or a new one. Buffers
    /// that are
    /// too short are freed then: all files of a driver need the same length.
    pub(super) fn acquire(&self, bytes: u64) -> io::Result<TransferBuffer> {
        let mut all = self.0.borrow_mut();
        let len = |buffer: &TransferBuffer| buffer.bytes().len() as u64;
        let long_enough = all.iter().enumerate().filter(|(_, buffer)| len(buffer) >= bytes);
        let mut buffer = match long_enough.min_by_key(|(_, buffer)| len(buffer)).map(|(index, _)| index) {
            Some(index) => all.swap_remove(index),
            None => {
                all.clear();
                TransferBuffer::new(bytes, 0)?
            }
        };
        // New pages are allocated here, not in the first batch. No page keeps its contents, so that a read that transfers nothing is
        // detected.
        buffer.bytes_mut().iter_mut().step_by(4096).for_each(|byte| *byte = !*byte);
        Ok(buffer)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    #[cfg(test)]
    pub(super) fn ids(&self) -> Vec<u64> {
        let mut ids: Vec<u64> = self.0.borrow().iter().map(TransferBuffer::id).collect();
        ids.sort_unstable();
        ids
    }

    /// Returns a buffer to the pool. No transfer may use `memory`.
    pub(super) fn release(&self, memory: TransferBuffer) {
        self.0.borrow_mut().push(memory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_reused_if_long_enough() {
        let shelf = BufferPool::default();
        let mut memory = shelf.acquire(16 << 10).unwrap();
        let id = memory.id();
        memory.bytes_mut().fill(7);
        shelf.release(memory);
        // A copy of the driver shares the pool.
        let memory = shelf.clone().acquire(8 << 10).unwrap();
        assert_eq!(memory.id(), id);
        assert!(memory.bytes().chunks(4096).all(|page| page[0] != 7), "no page keeps its contents");
        let other = shelf.acquire(8 << 10).unwrap();
        assert_ne!(other.id(), id, "buffers in use are not shared");
        shelf.release(memory);
        shelf.release(other);
        let memory = shelf.acquire(10 << 10).unwrap();
        assert_eq!(memory.id(), id, "the other is too short");
        shelf.release(memory);
        let other = shelf.acquire(8 << 10).unwrap();
        assert_ne!(other.id(), id, "the shortest sufficient buffer");
        shelf.release(other);
        assert!(shelf.acquire(32 << 10).unwrap().bytes().len() >= 32 << 10);
        assert!(shelf.is_empty(), "buffers that are too short are freed");
    }
}
