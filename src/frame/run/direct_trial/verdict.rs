//! What a trial of direct I/O proves. Arithmetic on observations alone.

use beff_host::backing_store::{backing_store, has_complete_read_count, is_fuse, BackingStore};

use crate::frame::system::residency;

/// Pages of the range of an access, after it. Unknown unless pages of the same range were seen to come and to go before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pages {
    Absent,
    Resident { bytes: u64 },
    Unknown,
}

/// Repeated reads of one range, by the counters of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fetches {
    /// Each fetched its bytes from storage.
    Each,
    /// None fetched anything.
    None,
    Unknown,
}

/// One access with O_DIRECT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// The kernel or the file system refused it for its alignment.
    Refused,
    /// Another error, or data that is not the data written.
    Failed(String),
    Done(Pages),
}

/// A read and a write with one alignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Observation {
    pub(super) read: Access,
    pub(super) write: Access,
    pub(super) fetches: Fetches,
}

/// Meaning of an observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// Accepted, correct, and past the page cache.
    Proven,
    /// Accepted and correct; whether past the page cache is unknown.
    Accepted,
    /// Accepted, but through the page cache or in memory.
    Buffered(String),
    Refused,
    Failed(String),
}

/// Why missing pages do not prove a bypass on this type of file system; None if they do.
pub(super) fn unprovable_reason(fs_type: &str) -> Option<String> {
    match backing_store(fs_type) {
        _ if is_fuse(fs_type) => Some(format!("a process serves {fs_type}, and its caches are not visible")),
        BackingStore::Unknown => {
            let known = residency::unavailable_reason(fs_type);
            Some(known.unwrap_or_else(|| format!("the caches of {fs_type} are unknown")))
        }
        BackingStore::Memory | BackingStore::Devices | BackingStore::Server => residency::unavailable_reason(fs_type),
    }
}

/// Judges the accesses with one alignment. Resident pages always prove the page cache; missing ones prove a bypass only where
/// nothing but the page cache of this host could have served them.
pub(super) fn judge(observation: &Observation, fs_type: &str) -> Judgement {
    let Observation { read, write, fetches } = observation;
    let accesses = [("read", read), ("write", write)];
    let mut all_absent = true;
    for (name, access) in accesses {
        match access {
            Access::Refused => return Judgement::Refused,
            Access::Failed(reason) => return Judgement::Failed(format!("{name}: {reason}")),
            Access::Done(_) if backing_store(fs_type) == BackingStore::Memory => {
                return Judgement::Buffered(format!("files of {fs_type} are in memory"))
            }
            Access::Done(pages) => all_absent &= *pages == Pages::Absent,
        }
    }
    for (name, access) in accesses {
        if let Access::Done(Pages::Resident { bytes }) = access {
            return Judgement::Buffered(format!("{bytes} bytes were in the page cache after the {name}"));
        }
    }
    if *fetches == Fetches::None && has_complete_read_count(fs_type) {
        return Judgement::Buffered("repeated reads fetched nothing from storage (/proc/self/io)".into());
    }
    if all_absent && unprovable_reason(fs_type).is_none() {
        Judgement::Proven
    } else {
        Judgement::Accepted
    }
}

/// The smallest usable alignment of ascending `candidates` and whether the bypass is proven, or why there is none. A larger alignment may
/// be direct where a smaller one was accepted and buffered.
///
/// # Errors
/// The reason that applies to the largest candidate that was not merely refused.
pub(super) fn smallest_usable(
    candidates: &[u64],
    mut observe: impl FnMut(u64) -> Judgement,
) -> Result<(u64, bool), String> {
    let mut reason = None;
    for &bytes in candidates {
        match observe(bytes) {
            Judgement::Proven => return Ok((bytes, true)),
            Judgement::Accepted => return Ok((bytes, false)),
            Judgement::Refused => {}
            Judgement::Buffered(why) => {
                reason = Some(format!("the file system accepts O_DIRECT, but uses the page cache or memory: {why}"));
            }
            Judgement::Failed(why) => reason = Some(format!("direct I/O fails with multiples of {bytes} bytes: {why}")),
        }
    }
    let all = match candidates {
        [only] => format!("multiples of {only} bytes"),
        _ => format!("every alignment up to {} bytes", candidates.last().unwrap_or(&0)),
    };
    Err(reason.unwrap_or_else(|| format!("the file system refuses direct I/O with {all}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOT_DIRECT: [&str; 2] = ["tmpfs", "ramfs"];

    fn done(pages: Pages) -> Access {
        Access::Done(pages)
    }

    /// The complete table: pages after the read x pages after the write x counters x types of file systems.
    #[test]
    fn a_bypass_is_proven_only_by_missing_pages_where_they_count() {
        let pages = [Pages::Absent, Pages::Resident { bytes: 4096 }, Pages::Unknown];
        let provable = ["ext4", "xfs", "btrfs", "nfs4", "lustre", "cifs", "ceph"];
        let unprovable = ["overlay", "fuse", "fuse.mergerfs", "fuseblk", "fuse.glusterfs", "zfs", "gpfs", "newfs"];
        for read in pages {
            for write in pages {
                for fetches in [Fetches::Each, Fetches::None, Fetches::Unknown] {
                    let observation = Observation { read: done(read), write: done(write), fetches };
                    for fs_type in provable.into_iter().chain(unprovable).chain(NOT_DIRECT) {
                        let judged = judge(&observation, fs_type);
                        let what = format!("{fs_type} {observation:?}: {judged:?}");
                        let is_resident = [read, write].iter().any(|p| matches!(p, Pages::Resident { .. }));
                        let not_fetched =
                            fetches == Fetches::None && ["ext4", "xfs", "btrfs", "nfs4"].contains(&fs_type);
                        let is_absent = [read, write] == [Pages::Absent; 2];
                        if NOT_DIRECT.contains(&fs_type) || is_resident || not_fetched {
                            assert!(matches!(judged, Judgement::Buffered(_)), "{what}");
                        } else if is_absent && provable.contains(&fs_type) {
                            assert_eq!(judged, Judgement::Proven, "{what}");
                        } else {
                            assert_eq!(judged, Judgement::Accepted, "{what}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn refusals_and_wrong_data_outweigh_all_evidence() {
        let absent = || done(Pages::Absent);
        let judged = |read, write| judge(&Observation { read, write, fetches: Fetches::Each }, "ext4");
        assert_eq!(judged(Access::Refused, absent()), Judgement::Refused);
        assert_eq!(judged(absent(), Access::Refused), Judgement::Refused);
        let wrong = || Access::Failed("other data".into());
        assert_eq!(judged(absent(), wrong()), Judgement::Failed("write: other data".into()));
        assert_eq!(judged(wrong(), absent()), Judgement::Failed("read: other data".into()));
        for fs_type in ["overlay", "fuse.bindfs", "zfs", "gpfs", "tmpfs"] {
            assert!(unprovable_reason(fs_type).unwrap().contains(fs_type));
        }
        assert_eq!(unprovable_reason("xfs"), None);
    }

    /// Accepted alignments x what they prove.
    #[test]
    fn the_smallest_alignment_that_is_not_buffered_counts() {
        let buffered = || Judgement::Buffered("pages".into());
        let find = |of: &dyn Fn(u64) -> Judgement| smallest_usable(&[1, 512, 1024, 4096], of);
        let from =
            |least: u64, then: Judgement| move |bytes| if bytes < least { Judgement::Refused } else { then.clone() };
        assert_eq!(find(&from(512, Judgement::Proven)), Ok((512, true)));
        assert_eq!(find(&from(4096, Judgement::Proven)), Ok((4096, true)));
        assert_eq!(find(&from(1, Judgement::Accepted)), Ok((1, false)));
        assert_eq!(find(&from(1024, Judgement::Accepted)), Ok((1024, false)));
        // Btrfs: unaligned transfers are accepted and buffered, aligned ones may be direct.
        assert_eq!(find(&|bytes| if bytes < 4096 { buffered() } else { Judgement::Proven }), Ok((4096, true)));
        assert_eq!(find(&|bytes| if bytes < 512 { buffered() } else { Judgement::Accepted }), Ok((512, false)));
        let why = find(&|_| buffered()).unwrap_err();
        assert!(why.contains("page cache or memory: pages"), "{why}");
        let why = find(&from(9000, Judgement::Proven)).unwrap_err();
        assert!(why.contains("refuses") && why.contains("up to 4096"), "{why}");
        let why = find(&from(512, Judgement::Failed("write: EIO".into()))).unwrap_err();
        assert!(why.contains("4096 bytes: write: EIO"), "{why}");
        assert_eq!(
            find(&|bytes| if bytes < 1024 { Judgement::Failed("x".into()) } else { Judgement::Proven }),
            Ok((1024, true))
        );
        let why = smallest_usable(&[64], |_| Judgement::Refused).unwrap_err();
        assert!(why.contains("multiples of 64 bytes"), "{why}");
    }
}
