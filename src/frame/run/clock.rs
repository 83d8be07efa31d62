//! Clock and allocation counter of all timed code: no other code of the runs reads either.
//!
//! In the program these are [`std::time::Instant`] and [`beff_ffi::alloc::allocations`] under other names. In unit tests time advances
//! only as a script defines for each call (`frame/run/testing`); without a script it is real.

#[cfg(not(test))]
pub use beff_ffi::alloc::allocations;
#[cfg(not(test))]
pub use std::time::Instant;

#[cfg(test)]
pub use scripted::{allocations, Instant};

#[cfg(test)]
mod scripted {
    use std::ops::{Add, Sub};
    use std::sync::OnceLock;
    use std::time::Duration;

    use crate::frame::run::testing;

    /// Time since the begin of the script, or else of the tests.
    #[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
    pub struct Instant(Duration);

    impl Instant {
        /// As [`std::time::Instant::now`].
        #[must_use]
        pub fn now() -> Self {
            static BEGIN: OnceLock<std::time::Instant> = OnceLock::new();
            let real = || BEGIN.get_or_init(std::time::Instant::now).elapsed();
            Self(testing::now().unwrap_or_else(real))
        }

        /// As [`std::time::Instant::elapsed`].
        #[must_use]
        pub fn elapsed(&self) -> Duration {
            Self::now().duration_since(*self)
        }

        /// As [`std::time::Instant::duration_since`].
        #[must_use]
        pub fn duration_since(&self, earlier: Self) -> Duration {
            self.0.saturating_sub(earlier.0)
        }
    }

    impl Add<Duration> for Instant {
        type Output = Self;

        fn add(self, time: Duration) -> Self {
            Self(self.0 + time)
        }
    }

    impl Sub for Instant {
        type Output = Duration;

        fn sub(self, earlier: Self) -> Duration {
            self.duration_since(earlier)
        }
    }

    /// As [`beff_ffi::alloc::allocations`].
    #[must_use]
    pub fn allocations() -> u64 {
        testing::allocations().unwrap_or_else(beff_ffi::alloc::allocations)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    fn sources(directory: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
    }

    #[test]
    fn the_runs_read_no_other_clock() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let runs = ["frame/run", "b_eff_io/run", "b_eff/run", "imb_io/run"];
        let files: Vec<PathBuf> = runs.iter().flat_map(|run| sources(&root.join(run))).collect();
        let may = |path: &Path| path.ends_with("frame/run/clock.rs") || path.to_string_lossy().contains("/testing/");
        for path in files.iter().filter(|path| !may(path)) {
            let text = fs::read_to_string(path).unwrap();
            // Split, so that this file does not match.
            for other in
                [concat!("time::", "Instant"), concat!("Duration, ", "Instant"), concat!("alloc::", "allocations")]
            {
                assert!(!text.contains(other), "{}: {other} and not frame::run::clock", path.display());
            }
        }
        assert!(files.len() > 60, "{}", files.len());
    }
}
