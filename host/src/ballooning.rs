//! Memory ballooning: whether the hypervisor reclaims free memory of its guest, and the cost of touching such a page again.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use super::{names_in, read_trimmed};

/// Devices of the virtio balloon, each with a file `features`.
const BALLOON_DEVICES: &str = "/sys/bus/virtio/drivers/virtio_balloon";

/// VIRTIO_BALLOON_F_REPORTING: the guest reports free pages to the host, which may use them (virtio 1.2, section 5.5.3).
const REPORTING_FEATURE_BIT: usize = 5;

/// A kernel reports blocks of some MiB; less than this may be satisfied from memory freed a moment ago. Not more, because it is the peak
/// memory of a rank that transfers little, which must remain near the plan of the smallest run.
const MAX_TOUCHED_BYTES: u64 = 48 << 20;

/// Divisor of a rank's memory that limits the touched bytes.
const MEMORY_DIVISOR: u64 = 16;

/// Mechanism by which the host reclaims free memory; None if none is visible here.
#[must_use]
pub fn ballooning_mechanism() -> Option<String> {
    has_free_page_reporting(Path::new(BALLOON_DEVICES)).then(|| "virtio balloon with free page reporting".into())
}

fn has_free_page_reporting(balloons: &Path) -> bool {
    let features = |name: String| read_trimmed(balloons.join(name).join("features"));
    names_in(balloons)
        .into_iter()
        .filter_map(features)
        .any(|bits| bits.as_bytes().get(REPORTING_FEATURE_BIT) == Some(&b'1'))
}

/// Cost of the first touch of new memory, and once more after the same amount was freed and allocated again: the touched bytes, and
/// `[first, again]` in ns per page. For a rank that may use `memory_bytes`.
#[must_use]
pub fn first_touch_ns(memory_bytes: u64) -> (u64, [f64; 2]) {
    let page_bytes = usize::try_from(procfs::page_size()).unwrap_or(4096);
    let bytes = MAX_TOUCHED_BYTES.min(memory_bytes / MEMORY_DIVISOR);
    let pages = usize::try_from(bytes).unwrap_or(0) / page_bytes;
    (bytes, [touch_pages(pages, page_bytes), touch_pages(pages, page_bytes)])
}

/// Allocates memory, touches each page and frees it; ns per page.
fn touch_pages(pages: usize, page_bytes: usize) -> f64 {
    // Zeroed memory of this size is mapped, not touched.
    let mut memory = vec![0_u8; pages * page_bytes];
    let start = Instant::now();
    for page in memory.chunks_exact_mut(page_bytes) {
        page[0] = 1;
        black_box(page);
    }
    start.elapsed().as_nanos() as f64 / pages.max(1) as f64
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn free_page_reporting_is_detected() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!has_free_page_reporting(dir.path()), "no balloon");
        assert!(!has_free_page_reporting(&dir.path().join("absent")));
        fs::write(dir.path().join("uevent"), "").unwrap();
        let device = dir.path().join("virtio0");
        fs::create_dir(&device).unwrap();
        for (features, expected) in [("0110000\n", false), ("0000010\n", true), ("00000\n", false), ("", false)] {
            fs::write(device.join("features"), features).unwrap();
            assert_eq!(has_free_page_reporting(dir.path()), expected, "{features:?}");
        }
    }

    #[test]
    fn touched_bytes_are_a_fraction_of_the_memory() {
        let (bytes, [first, again]) = first_touch_ns(64 << 20);
        assert_eq!(bytes, 4 << 20);
        assert!(first > 0.0 && again > 0.0);
        assert_eq!(first_touch_ns(0).0, 0);
    }
}
