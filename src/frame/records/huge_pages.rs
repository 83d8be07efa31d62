//! Page sizes of the transfer memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Huge pages in the ranks' transfer memory, before the first pattern. The page size limits the length of direct requests: a device
/// accepts a few hundred segments per request, and a small page is one segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HugePagesRecord {
    /// Transfer memory of a rank.
    pub memory_bytes: u64,
    /// Other ranks of the host can map the memory (two-phase transfers): huge pages are obtained by MADV_COLLAPSE (Linux 6.1), otherwise
    /// by MADV_HUGEPAGE.
    pub is_shared: bool,
    /// Part in huge pages (AnonHugePages and ShmemPmdMapped of /proc/self/smaps), minimum over the ranks; None if unknown.
    pub huge_page_bytes: Option<u64>,
    /// Rank with this minimum.
    pub rank: u64,
    /// Ranks with less than nine tenths of their memory in huge pages.
    pub ranks_with_small: u64,
    /// Known reasons why that rank has too few: error and setting of the kernel; None if it has enough.
    pub reason: Option<String>,
    /// Why the result is unknown; None if it is known.
    pub unknown_reason: Option<String>,
}

impl HugePagesRecord {
    /// True if less than nine tenths of the memory are in huge pages.
    #[must_use]
    pub fn uses_small_pages(memory_bytes: u64, huge_page_bytes: u64) -> bool {
        huge_page_bytes < memory_bytes / 10 * 9
    }
}
