//! Bytes fetched from storage, recorded and replayed, as far as the counters of the kernel prove them.

use crate::frame::system::backing_store::has_complete_read_count;
use crate::replay::records::{ProfileRepetition, ReplayResult};

/// Bytes that the processes fetched for their reads, by the counters of the kernel; or why they are unknown.
pub type FetchedBytes = Result<u64, String>;

/// Recorded bytes. If the type of a file system was not recorded, the count is known to be complete only if it covers all bytes read:
/// many types are not counted.
pub fn recorded(result: &ReplayResult) -> FetchedBytes {
    let profile = &result.setup.profile;
    let counted = profile.storage_read_bytes.ok_or("not recorded of all processes")?;
    let mut kinds = profile.files.iter().map(|file| file.fs_type.as_str());
    if let Some(other) = kinds.clone().find(|kind| !kind.is_empty() && !has_complete_read_count(kind)) {
        return Err(uncounted_reason(other));
    }
    if counted < profile.read_bytes && kinds.any(str::is_empty) {
        return Err("the type of its file system was not recorded".to_owned());
    }
    Ok(counted)
}

/// Replayed bytes of a repetition with files on a file system of this type.
pub fn replayed(fs_type: &str, repetition: &ProfileRepetition) -> FetchedBytes {
    let counted = repetition.storage_read_bytes.ok_or("not available for all processes")?;
    if has_complete_read_count(fs_type) {
        Ok(counted)
    } else {
        Err(uncounted_reason(fs_type))
    }
}

fn uncounted_reason(fs_type: &str) -> String {
    format!("the kernel does not count all reads of {fs_type}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::values::fixture::run;

    #[test]
    fn a_zero_count_proves_nothing_without_complete_accounting() {
        let mut result = run(&["mpiio"], 1);
        assert_eq!(recorded(&result), Ok(10 << 20));
        assert_eq!(replayed(&result.setup.storage.fs_type, &result.repetitions[0]), Ok(10 << 20));
        result.setup.storage.fs_type = "fuse.mergerfs".into();
        result.setup.profile.files[1].fs_type = "lustre".into();
        assert!(replayed(&result.setup.storage.fs_type, &result.repetitions[0]).unwrap_err().contains("fuse.mergerfs"));
        assert!(recorded(&result).unwrap_err().contains("lustre"));
        result.setup.profile.files.iter_mut().for_each(|file| file.fs_type.clear());
        for counted in [0, 10 << 20] {
            result.setup.profile.storage_read_bytes = Some(counted);
            assert!(recorded(&result).unwrap_err().contains("was not recorded"), "{counted}: perhaps incomplete");
        }
        result.setup.profile.storage_read_bytes = Some(11 << 20);
        assert_eq!(recorded(&result), Ok(11 << 20), "all of it");
    }

    /// No warning about caches if one side is unknown.
    #[test]
    fn unknown_counts_are_not_compared() {
        let differs = |result: &ReplayResult| {
            let found = crate::replay::values::derive(result).warnings;
            found.iter().any(|w| w.is_kind(&crate::replay::values::kinds::CACHE_DIFFERS))
        };
        let mut result = run(&["mpiio"], 1);
        result.repetitions.iter_mut().for_each(|repetition| repetition.storage_read_bytes = Some(0));
        assert!(differs(&result));
        result.setup.storage.fs_type = "fuse.mergerfs".into();
        assert!(!differs(&result));
    }
}
