//! Memory of the node and of this process, and bytes that the process has moved.

pub use beff_host::memory::*;

/// Counters of /proc/self/io; in tests those of the script.
#[must_use]
pub fn process_io() -> Option<ProcessIo> {
    #[cfg(test)]
    if let Some(scripted) = crate::frame::run::testing::io() {
        return scripted;
    }
    beff_host::memory::process_io()
}

/// Bytes moved since `before`; None if unknown.
#[must_use]
pub fn process_io_since(before: Option<ProcessIo>) -> Option<ProcessIo> {
    let (before, now) = (before?, process_io()?);
    Some(ProcessIo {
        read_bytes: now.read_bytes.saturating_sub(before.read_bytes),
        written_bytes: now.written_bytes.saturating_sub(before.written_bytes),
        call_read_bytes: now.call_read_bytes.saturating_sub(before.call_read_bytes),
        call_written_bytes: now.call_written_bytes.saturating_sub(before.call_written_bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All of it, unless the kernel has refused.
    #[test]
    fn huge_pages_of_shared_memory_are_counted_too() {
        let buffer = beff_backends::TransferBuffer::new_shareable(4 << 20, 0).unwrap();
        let all = buffer.mapped().len() as u64;
        match buffer.huge_page_refusal() {
            None => assert_eq!(huge_page_bytes(&[buffer.mapped()]), Some(all)),
            Some(why) => {
                println!("SKIPPED: {why}");
                assert!(huge_page_bytes(&[buffer.mapped()]).is_some_and(|bytes| bytes < all));
            }
        }
    }
}
