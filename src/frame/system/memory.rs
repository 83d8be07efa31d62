//! Memory of the node and of this process, and what the process moved.

pub use beff_host::memory::*;

/// The counters of /proc/self/io; in tests those of their script.
#[must_use]
pub fn process_io() -> Option<ProcessIo> {
    #[cfg(test)]
    if let Some(scripted) = crate::frame::run::testing::io() {
        return scripted;
    }
    beff_host::memory::process_io()
}

/// What it moved since the counters were `before`; None if they are not known.
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

    /// Where the kernel has not refused: all of it.
    #[test]
    fn huge_pages_of_shared_memory_are_counted_too() {
        let ring = beff_backends::Ring::new_shareable(4 << 20, 0).unwrap();
        let all = ring.mapped().len() as u64;
        match ring.huge_page_refusal() {
            None => assert_eq!(huge_page_bytes(&[ring.mapped()]), Some(all)),
            Some(why) => {
                println!("SKIPPED: {why}");
                assert!(huge_page_bytes(&[ring.mapped()]).is_some_and(|bytes| bytes < all));
            }
        }
    }
}
