//! Whether the host of a virtual machine takes its free memory back, and what a page then costs when it is touched again.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use super::{names_in, read_trimmed};

/// Devices of the virtio balloon, each with a file `features`.
const BALLOONS: &str = "/sys/bus/virtio/drivers/virtio_balloon";

/// VIRTIO_BALLOON_F_REPORTING: the guest tells the host which pages are free, and the host may use them (virtio 1.2, section 5.5.3).
const REPORTING: usize = 5;

/// A kernel reports blocks of some MiB; less than this may come from what was freed a moment ago. No more, because it is the peak of a rank
/// that moves little: with the program and MPI it has to stay near what the plan of the smallest run says.
const MOST_TOUCHED_BYTES: u64 = 48 << 20;

/// Part of the memory of a rank that is touched at most.
const LEAST_PART: u64 = 16;

/// By what the host takes free memory back; None: by nothing that can be seen here.
#[must_use]
pub fn by_what() -> Option<String> {
    reports(Path::new(BALLOONS)).then(|| "virtio balloon with free page reporting".into())
}

fn reports(balloons: &Path) -> bool {
    let features = |name: String| read_trimmed(balloons.join(name).join("features"));
    names_in(balloons).into_iter().filter_map(features).any(|bits| bits.as_bytes().get(REPORTING) == Some(&b'1'))
}

/// What a page of new memory costs at its first touch, and once more when the same amount is taken again at once: `[first, again]` in ns for
/// a page, and the bytes touched. Of a rank that may use `memory_bytes`.
#[must_use]
pub fn first_touch(memory_bytes: u64) -> (u64, [f64; 2]) {
    let page_bytes = usize::try_from(procfs::page_size()).unwrap_or(4096);
    let bytes = MOST_TOUCHED_BYTES.min(memory_bytes / LEAST_PART);
    let pages = usize::try_from(bytes).unwrap_or(0) / page_bytes;
    (bytes, [touch(pages, page_bytes), touch(pages, page_bytes)])
}

/// Takes memory, touches each page, gives it back; ns for a page.
fn touch(pages: usize, page_bytes: usize) -> f64 {
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
    fn a_balloon_that_reports_free_pages_takes_them() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!reports(dir.path()), "no balloon");
        assert!(!reports(&dir.path().join("absent")));
        fs::write(dir.path().join("uevent"), "").unwrap();
        let device = dir.path().join("virtio0");
        fs::create_dir(&device).unwrap();
        for (features, expected) in [("0110000\n", false), ("0000010\n", true), ("00000\n", false), ("", false)] {
            fs::write(device.join("features"), features).unwrap();
            assert_eq!(reports(dir.path()), expected, "{features:?}");
        }
    }

    #[test]
    fn little_memory_is_touched_where_there_is_little() {
        let (bytes, [first, again]) = first_touch(64 << 20);
        assert_eq!(bytes, 4 << 20);
        assert!(first > 0.0 && again > 0.0);
        assert_eq!(first_touch(0).0, 0);
    }
}
