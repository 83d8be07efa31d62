//! Taking memory out of the processor's caches, so that what is slow is known to come from memory.

/// Bytes that caches move at once on the processors for which [`flush`] has an instruction.
pub const LINE_BYTES: usize = 64;

/// Writes the cache lines of `memory` back and drops them from every cache of the machine. False where this program has no
/// instruction for it (all processors but x86-64); nothing has been done then.
#[must_use]
pub fn flush(memory: &[u8]) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_clflush, _mm_mfence};
        let begins = memory.iter().step_by(LINE_BYTES);
        // Memory that begins inside of a line ends in one that no step comes to.
        for byte in begins.chain(memory.last()) {
            // SAFETY: CLFLUSH is part of SSE2, which every x86-64 has; the address is one of `memory`, whose content it does not change.
            unsafe { _mm_clflush(std::ptr::from_ref(byte)) };
        }
        // SAFETY: MFENCE is part of SSE2. It orders the flushes before what is read next.
        unsafe { _mm_mfence() };
        true
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = memory;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_flushed_keeps_its_content() {
        let memory: Vec<u8> = (0..1000_u32).map(|n| n as u8).collect();
        let same = memory.clone();
        assert_eq!(flush(&memory), cfg!(target_arch = "x86_64"));
        assert_eq!(memory, same);
    }
}
