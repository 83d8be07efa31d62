//! Share of the transfer buffer in huge pages: [`HugePagesRecord`].

use std::fs;

use beff_backends::TransferBuffer;
use beff_ffi::{Comm, MpiError};
use serde::{Deserialize, Serialize};

use crate::frame::records::HugePagesRecord;
use crate::frame::run::agree::reduce;
use crate::frame::system::memory::huge_page_bytes;

/// Of several ranks: the one with the fewest bytes in huge pages, and how many use small pages. Ranks without a number do not count.
#[derive(Debug, Default, Serialize, Deserialize)]
struct FewestHugePages {
    /// Bytes in huge pages, rank, and why they are not all.
    fewest: Option<(u64, u64, Option<String>)>,
    ranks_with_small: u64,
}

impl FewestHugePages {
    fn with(self, higher: Self) -> Self {
        let ranks_with_small = self.ranks_with_small + higher.ranks_with_small;
        let fewest = [self.fewest, higher.fewest].into_iter().flatten().min_by_key(|(bytes, ..)| *bytes);
        Self { fewest, ranks_with_small }
    }
}

/// Examines the transfer buffer, all of which has been touched. Collective.
///
/// # Errors
/// MPI errors.
pub fn measure(comm: &Comm, buffer: &TransferBuffer) -> Result<HugePagesRecord, MpiError> {
    // Not the whole mapping: its last huge page may contain memory that is never touched.
    let memory_bytes = buffer.bytes().len() as u64;
    let huge = huge_page_bytes(&[buffer.bytes()]);
    let is_small = huge.is_some_and(|bytes| HugePagesRecord::uses_small_pages(memory_bytes, bytes));
    let reason = is_small.then(|| small_page_reason(buffer));
    let mine =
        FewestHugePages { fewest: huge.map(|bytes| (bytes, comm.rank(), reason)), ranks_with_small: is_small.into() };
    let all = reduce(comm, mine, FewestHugePages::with)?.unwrap_or_default();
    Ok(huge_pages_record(memory_bytes, buffer.is_shareable(), all))
}

fn huge_pages_record(memory_bytes: u64, is_shared: bool, all: FewestHugePages) -> HugePagesRecord {
    let ranks_with_small = all.ranks_with_small;
    let record = HugePagesRecord { memory_bytes, is_shared, ranks_with_small, ..HugePagesRecord::default() };
    match all.fewest {
        Some((huge, rank, reason)) => HugePagesRecord { huge_page_bytes: Some(huge), rank, reason, ..record },
        None => HugePagesRecord {
            unknown_reason: Some("the kernel does not report them (/proc/self/smaps)".to_owned()),
            ..record
        },
    }
}

fn small_page_reason(buffer: &TransferBuffer) -> String {
    let setting = |name: &str| {
        let text = fs::read_to_string(format!("/sys/kernel/mm/transparent_hugepage/{name}")).ok()?;
        let word = text.split_once('[')?.1.split_once(']')?.0;
        Some(format!("transparent_hugepage/{name} is {word}"))
    };
    let name = if buffer.is_shareable() { "shmem_enabled" } else { "enabled" };
    let setting = setting(name).unwrap_or_else(|| "this kernel has no transparent huge pages".to_owned());
    match buffer.huge_page_refusal() {
        Some(error) if buffer.is_shareable() => format!("the kernel refused MADV_COLLAPSE: {error}; {setting}"),
        Some(error) => format!("the kernel refused MADV_HUGEPAGE: {error}; {setting}"),
        None => setting,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_with_fewest_huge_pages_is_recorded() {
        let why = || Some("it said no".to_owned());
        let fewest_huge_pages = |is_shared, all: &[Option<(u64, Option<String>)>]| {
            let of = |(rank, one): (u64, &Option<(u64, Option<String>)>)| FewestHugePages {
                ranks_with_small: one
                    .as_ref()
                    .is_some_and(|(huge, _)| HugePagesRecord::uses_small_pages(100, *huge))
                    .into(),
                fewest: one.clone().map(|(huge, reason)| (huge, rank, reason)),
            };
            let all = (0..).zip(all).map(of).reduce(FewestHugePages::with).unwrap();
            huge_pages_record(100, is_shared, all)
        };
        let all = [Some((100, None)), None, Some((20, why())), Some((89, why())), Some((20, None)), Some((90, None))];
        let record = fewest_huge_pages(true, &all);
        assert_eq!((record.huge_page_bytes, record.rank, record.ranks_with_small), (Some(20), 2, 3));
        assert_eq!((record.reason, record.unknown_reason, record.is_shared), (why(), None, true));
        let whole = fewest_huge_pages(false, &[Some((100, None)), Some((100, None))]);
        assert_eq!((whole.ranks_with_small, whole.reason), (0, None));
        assert!(fewest_huge_pages(false, &[None]).unknown_reason.is_some());
    }

    /// The memory ends just before a huge page, and memory beyond it belongs to the next one.
    #[test]
    fn what_nobody_touches_is_not_missed() {
        let mut buffer = TransferBuffer::new((2 << 20) - 4096, 0).unwrap();
        assert_eq!(buffer.mapped().len(), 4 << 20);
        buffer.bytes_mut().fill(1);
        let record = measure(&Comm::comm_self(), &buffer).unwrap();
        if record.huge_page_bytes == Some(0) {
            println!("SKIPPED: no huge page here: {record:?}");
            return;
        }
        assert_eq!((record.ranks_with_small, record.huge_page_bytes), (0, Some((2 << 20) - 4096)), "{record:?}");
    }

    #[test]
    fn a_reason_names_the_setting() {
        let shared = TransferBuffer::new_shareable(4096, 0).unwrap();
        let private = TransferBuffer::new(4096, 0).unwrap();
        for (buffer, name) in [(shared, "shmem_enabled is"), (private, "/enabled is")] {
            let reason = small_page_reason(&buffer);
            assert!(reason.contains(name) || reason.contains("no transparent huge pages"), "{reason}");
        }
    }
}
