//! Flushes memory from the processor's caches, so that a slow access is known to come from memory.

/// Cache line size of the processors for which [`flush_cache_lines`] has an instruction.
pub const CACHE_LINE_BYTES: usize = 64;

/// Writes the cache lines of `memory` back and drops them from every cache of the machine. False, without any effect, where no
/// instruction is implemented (all processors but x86-64).
#[must_use]
pub fn flush_cache_lines(memory: &[u8]) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_clflush, _mm_mfence};
        let begins = memory.iter().step_by(CACHE_LINE_BYTES);
        // Memory that begins inside a line may end in one that no step visits.
        for byte in begins.chain(memory.last()) {
            // SAFETY: CLFLUSH is part of SSE2, which every x86-64 has; the address is in `memory`, whose content it does not
            // change.
            unsafe { _mm_clflush(std::ptr::from_ref(byte)) };
        }
        // SAFETY: MFENCE is part of SSE2. It orders the flushes before subsequent reads.
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
        assert_eq!(flush_cache_lines(&memory), cfg!(target_arch = "x86_64"));
        assert_eq!(memory, same);
    }
}
