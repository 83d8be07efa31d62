//! How large the pages of the transfer memory are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The transfer memory of the ranks and what of it is in huge pages, before the first pattern. Direct requests to a device are as long
/// as the pages allow: it takes a few hundred pieces each, and a small page is one piece.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PagesRecord {
    /// Transfer memory of a rank.
    pub memory_bytes: u64,
    /// Other ranks of the host can map it (two-phase transfers): huge pages come from MADV_COLLAPSE (Linux 6.1), else by advice
    /// (MADV_HUGEPAGE).
    pub is_shared: bool,
    /// Of it in huge pages (AnonHugePages and ShmemPmdMapped of /proc/self/smaps), on the rank that has least; None: not known.
    pub huge_page_bytes: Option<u64>,
    /// That rank.
    pub rank: u64,
    /// Ranks with less than nine tenths of it in huge pages.
    pub ranks_with_small: u64,
    /// What is known of why that rank has fewer than all: what the kernel said, and its setting; None: there is enough.
    pub reason: Option<String>,
    /// Why nothing is known; None: it is.
    pub not_known: Option<String>,
}

impl PagesRecord {
    /// True of memory of which less than nine tenths are in huge pages.
    #[must_use]
    pub fn is_small(memory_bytes: u64, huge_page_bytes: u64) -> bool {
        huge_page_bytes < memory_bytes / 10 * 9
    }
}
