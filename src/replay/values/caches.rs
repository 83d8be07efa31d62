//! What was fetched past the page cache, then and now, as far as the kernel's count proves it.

use crate::frame::system::keeper::counts_all;
use crate::replay::records::{PassRecord, ReplayResult};

/// Bytes that the processes have fetched for their reads, by the count of the kernel; or why that is not known.
pub type Fetched = Result<u64, String>;

/// When it was recorded. Where the kind of a file system was not recorded the count is known to be whole only if it is all that was read:
/// on many nothing is counted.
pub fn recorded(result: &ReplayResult) -> Fetched {
    let profile = &result.setup.profile;
    let counted = profile.storage_read_bytes.ok_or("not recorded of all processes")?;
    let mut kinds = profile.files.iter().map(|file| file.fs_type.as_str());
    if let Some(other) = kinds.clone().find(|kind| !kind.is_empty() && !counts_all(kind)) {
        return Err(uncounted(other));
    }
    if counted < profile.read_bytes && kinds.any(str::is_empty) {
        return Err("the kind of its file system was not recorded".to_owned());
    }
    Ok(counted)
}

/// In a pass.
pub fn replayed(result: &ReplayResult, pass: &PassRecord) -> Fetched {
    let fs_type = &result.setup.storage.fs_type;
    let counted = pass.storage_read_bytes.ok_or("the kernel did not tell of all processes")?;
    if counts_all(fs_type) {
        Ok(counted)
    } else {
        Err(uncounted(fs_type))
    }
}

fn uncounted(fs_type: &str) -> String {
    format!("the kernel does not count all that comes from {fs_type}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::values::fixture::run;

    #[test]
    fn a_count_of_nothing_proves_nothing_where_nothing_is_counted() {
        let mut result = run(&["mpiio"], 1);
        assert_eq!(recorded(&result), Ok(10 << 20));
        assert_eq!(replayed(&result, &result.passes[0]), Ok(10 << 20));
        result.setup.storage.fs_type = "fuse.mergerfs".into();
        result.setup.profile.files[1].fs_type = "lustre".into();
        assert!(replayed(&result, &result.passes[0]).unwrap_err().contains("fuse.mergerfs"));
        assert!(recorded(&result).unwrap_err().contains("lustre"));
        result.setup.profile.files.iter_mut().for_each(|file| file.fs_type.clear());
        for counted in [0, 10 << 20] {
            result.setup.profile.storage_read_bytes = Some(counted);
            assert!(recorded(&result).unwrap_err().contains("was not recorded"), "{counted}: perhaps more");
        }
        result.setup.profile.storage_read_bytes = Some(11 << 20);
        assert_eq!(recorded(&result), Ok(11 << 20), "all of it");
    }

    /// Nobody is told of other caches when one side is not known.
    #[test]
    fn what_is_not_known_is_not_compared() {
        let differs = |result: &ReplayResult| {
            let found = crate::replay::values::derive(result).warnings;
            found.iter().any(|w| w.is(&crate::replay::values::kinds::CACHE_DIFFERS))
        };
        let mut result = run(&["mpiio"], 1);
        result.passes.iter_mut().for_each(|pass| pass.storage_read_bytes = Some(0));
        assert!(differs(&result));
        result.setup.storage.fs_type = "fuse.mergerfs".into();
        assert!(!differs(&result));
    }
}
