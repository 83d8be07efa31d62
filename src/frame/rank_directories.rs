//! Subdirectories for files of which each rank has one. Arithmetic, with the same result on every rank.

use std::ffi::OsStr;

/// Files of ranks in one directory by default. Servers of metadata slow down beyond some ten thousand.
pub const DEFAULT_FILES_PER_DIRECTORY: u64 = 10_000;

/// Which subdirectory contains the file of a rank: consecutive ranks share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankDirectories {
    ranks: u64,
    files_per_directory: u64,
}

impl RankDirectories {
    /// All files of ranks in one directory.
    pub const NONE: Self = Self { ranks: 0, files_per_directory: u64::MAX };

    /// For `ranks` ranks.
    #[must_use]
    pub fn new(ranks: u64, files_per_directory: u64) -> Self {
        Self { ranks, files_per_directory: files_per_directory.max(1) }
    }

    /// Number of subdirectories; 0 if one directory suffices, which then is that of all other files.
    #[must_use]
    pub fn count(&self) -> u64 {
        if self.ranks > self.files_per_directory {
            self.ranks.div_ceil(self.files_per_directory)
        } else {
            0
        }
    }

    /// Their names, in the order of the ranks.
    pub fn names(self) -> impl Iterator<Item = String> {
        (0..self.count()).map(move |number| Self::name(number * self.files_per_directory))
    }

    /// Subdirectory of the files of this rank; None: the directory of all other files.
    #[must_use]
    pub fn of_rank(&self, rank: u64) -> Option<String> {
        let is_used = self.count() > 0 && rank < self.ranks;
        is_used.then(|| Self::name(rank / self.files_per_directory * self.files_per_directory))
    }

    fn name(first_rank: u64) -> String {
        format!("from-rank{first_rank:07}")
    }
}

/// Name of the file of a rank.
#[must_use]
pub fn rank_file_name(stem: &str, rank: u64) -> String {
    format!("{stem}{RANK_MARK}{rank:07}.dat")
}

/// The rank of whom this is a file, by its name; None for other files.
#[must_use]
pub fn rank_of_file(name: &OsStr) -> Option<u64> {
    let (_, number) = name.to_str()?.strip_suffix(".dat")?.rsplit_once(RANK_MARK)?;
    if number.bytes().all(|byte| byte.is_ascii_digit()) {
        number.parse().ok()
    } else {
        None
    }
}

/// Precedes the rank in the name of its file.
const RANK_MARK: &str = "-rank";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_ranks_share_a_directory() {
        let one = RankDirectories::new(10_000, DEFAULT_FILES_PER_DIRECTORY);
        assert_eq!((one.count(), one.of_rank(9_999), one.names().count()), (0, None, 0));
        let ten = RankDirectories::new(100_000, DEFAULT_FILES_PER_DIRECTORY);
        assert_eq!((ten.count(), ten.names().count()), (10, 10));
        assert_eq!(ten.of_rank(0).as_deref(), Some("from-rank0000000"));
        assert_eq!(ten.of_rank(19_999).as_deref(), Some("from-rank0010000"));
        assert_eq!(ten.names().last().as_deref(), Some("from-rank0090000"));
        let three = RankDirectories::new(5, 2);
        let names: Vec<String> = three.names().collect();
        let of_ranks: Vec<String> = (0..5).filter_map(|rank| three.of_rank(rank)).collect();
        assert_eq!([0, 0, 1, 1, 2].map(|number| &names[number]), [0, 1, 2, 3, 4].map(|rank| &of_ranks[rank]));
        assert_eq!((three.of_rank(5), RankDirectories::NONE.of_rank(0)), (None, None));
        // Each file has a directory, and none has more files than permitted.
        assert_eq!(RankDirectories::new(5, 0).count(), 5);
    }

    #[test]
    fn a_rank_is_found_in_the_name_of_its_file() {
        let of = |name: &str| rank_of_file(OsStr::new(name));
        assert_eq!(of(&rank_file_name("n4-type2-separate", 3)), Some(3));
        assert_eq!(of(&rank_file_name("calibration", 123_456_789)), Some(123_456_789));
        for other in ["n4-type0-scatter.dat", "x-rank.dat", "x-rank12", "x-rank1x.dat", "rank0000001.dat", ""] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
