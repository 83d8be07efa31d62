//! How much of the transfer memory is in huge pages: [`PagesRecord`].

use std::fs;

use beff_backends::Ring;
use beff_ffi::{Comm, MpiError};

use crate::frame::records::PagesRecord;
use crate::frame::run::agree::gather;
use crate::frame::system::memory::huge_page_bytes;

/// What one rank has seen: bytes in huge pages, and why they are not all.
type Seen = (Option<u64>, Option<String>);

/// Looks at the ring, which has been touched everywhere. Collective.
///
/// # Errors
/// MPI between the ranks.
pub fn look(comm: &Comm, ring: &Ring) -> Result<PagesRecord, MpiError> {
    // Not the whole mapping: its last huge page may hold what nobody ever touches.
    let memory_bytes = ring.bytes().len() as u64;
    let huge = huge_page_bytes(&[ring.bytes()]);
    let is_small = huge.is_some_and(|bytes| PagesRecord::is_small(memory_bytes, bytes));
    let mine: Seen = (huge, is_small.then(|| reason(ring)));
    let all: Vec<Seen> = gather(comm, &mine)?;
    Ok(fewest(memory_bytes, ring.is_shareable(), all))
}

/// The rank with the fewest; one that does not know says nothing.
fn fewest(memory_bytes: u64, is_shared: bool, all: Vec<Seen>) -> PagesRecord {
    let known = || all.iter().zip(0_u64..).filter_map(|((huge, reason), rank)| Some((huge.as_ref()?, rank, reason)));
    let ranks_with_small = known().filter(|(huge, ..)| PagesRecord::is_small(memory_bytes, **huge)).count() as u64;
    let record = PagesRecord { memory_bytes, is_shared, ranks_with_small, ..PagesRecord::default() };
    match known().min_by_key(|(huge, ..)| **huge) {
        Some((huge, rank, reason)) => {
            PagesRecord { huge_page_bytes: Some(*huge), rank, reason: reason.clone(), ..record }
        }
        None => PagesRecord { not_known: Some("the kernel does not tell (/proc/self/smaps)".to_owned()), ..record },
    }
}

fn reason(ring: &Ring) -> String {
    let setting = |name: &str| {
        let text = fs::read_to_string(format!("/sys/kernel/mm/transparent_hugepage/{name}")).ok()?;
        let word = text.split_once('[')?.1.split_once(']')?.0;
        Some(format!("transparent_hugepage/{name} is {word}"))
    };
    let name = if ring.is_shareable() { "shmem_enabled" } else { "enabled" };
    let setting = setting(name).unwrap_or_else(|| "this kernel has no transparent huge pages".to_owned());
    match ring.huge_page_refusal() {
        Some(error) if ring.is_shareable() => format!("the kernel refused MADV_COLLAPSE: {error}; {setting}"),
        Some(error) => format!("the kernel refused MADV_HUGEPAGE: {error}; {setting}"),
        None => setting,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_with_fewest_huge_pages_is_told() {
        let why = || Some("it said no".to_owned());
        let all = vec![(Some(100), None), (None, None), (Some(20), why()), (Some(89), why()), (Some(90), None)];
        let told = fewest(100, true, all);
        assert_eq!((told.huge_page_bytes, told.rank, told.ranks_with_small), (Some(20), 2, 2));
        assert_eq!((told.reason, told.not_known, told.is_shared), (why(), None, true));
        let whole = fewest(100, false, vec![(Some(100), None); 3]);
        assert_eq!((whole.ranks_with_small, whole.reason), (0, None));
        assert!(fewest(100, false, vec![(None, None)]).not_known.is_some());
    }

    /// The memory ends just before a huge page, and what may be touched behind it lies in the next one.
    #[test]
    fn what_nobody_touches_is_not_missed() {
        let mut ring = Ring::new((2 << 20) - 4096, 0).unwrap();
        assert_eq!(ring.mapped().len(), 4 << 20);
        ring.bytes_mut().fill(1);
        let told = look(&Comm::own(), &ring).unwrap();
        if told.huge_page_bytes == Some(0) {
            println!("SKIPPED: no huge page here: {told:?}");
            return;
        }
        assert_eq!((told.ranks_with_small, told.huge_page_bytes), (0, Some((2 << 20) - 4096)), "{told:?}");
    }

    #[test]
    fn a_reason_names_the_setting() {
        let shared = Ring::new_shareable(4096, 0).unwrap();
        let private = Ring::new(4096, 0).unwrap();
        for (ring, name) in [(shared, "shmem_enabled is"), (private, "/enabled is")] {
            let told = reason(&ring);
            assert!(told.contains(name) || told.contains("no transparent huge pages"), "{told}");
        }
    }
}
