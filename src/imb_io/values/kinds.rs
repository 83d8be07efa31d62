//! The kinds of warnings of IMB-IO, besides those that every benchmark knows.

use crate::frame::records::kinds;

kinds! {
    /// The program allocated memory inside the clock.
    ALLOCATIONS_IN_CLOCK = "allocations_in_clock", 31,
    "Please report this; the times of these rows hold work of the program." {
        /// How many times.
        allocations: u64,
        /// In how many rows.
        rows: u64,
        /// Benchmark of the first of them.
        benchmark: String,
    }

    /// Complete rows of which not every byte was compared.
    NOT_VERIFIED = "not_verified", 30,
    "Please report this, with the file of --out: every byte of a complete row should have been." {
        /// How many.
        rows: u64,
        /// Benchmark of the first.
        benchmark: String,
    }

    /// Rows were not run.
    NOT_RUN = "not_run", 10,
    "Choose a backend that can do it, or leave these benchmarks out." {
        /// Backend name.
        backend: String,
        /// How many.
        rows: u64,
        /// First reason.
        reason: String,
    }

    /// Part of the bytes read did not come from storage.
    READ_FROM_CACHE = "read_from_cache", 20,
    "Take the rows marked c as speed of memory. Larger sizes and more repetitions, or direct I/O where the backend \
     can choose, read from storage." {
        /// Backend name.
        backend: String,
        /// Rows that are cache figures.
        rows: u64,
        /// Of how many reads whose source is known.
        of: u64,
        /// Bytes these rows read.
        asked_bytes: u64,
        /// Bytes of that from storage.
        storage_bytes: u64,
    }

    /// Nobody knows where the bytes of reads came from.
    SOURCE_UNKNOWN = "source_unknown", 21,
    "Take the rows marked ? as an upper limit of what the storage can do; one group alone tells more than several." {
        /// Backend name.
        backend: String,
        /// Rows.
        rows: u64,
    }

    /// The CPU load takes another time than asked for, by more than 0.1 of it.
    LOAD_NOT_CALIBRATED = "load_not_calibrated", 50,
    "Repeat on an idle machine with each rank bound to a core of its own." {
        /// Largest relative difference; None: no number.
        calibration_error: Option<f64>,
    }

    /// Keeping the end of a repetition is more than 5 % of t_max of rows (without those of 0 bytes).
    CLOCK_COST = "clock_cost", 51,
    "Take these times as upper limits; compare by larger sizes. The processor may have no cycle counter that \
     never stops, or the kernel a slow clock source (available_clocksource)." {
        /// In how many rows.
        rows: u64,
        /// Of how many complete ones.
        of: u64,
        /// Benchmark of the shortest time.
        benchmark: String,
        /// Its size; None: Open_Close.
        sample_bytes: Option<u64>,
        /// Its t_min.
        seconds: f64,
        /// One reading.
        lap_ns: f64,
    }

    /// Rows that are not known as well as `--until` asks.
    NOT_NARROW = "not_narrow", 52,
    "Give each row more time (--time) or more repeats (--repeat), or be content with a wider --until." {
        /// How many.
        rows: u64,
        /// Of how many complete ones that took any time.
        of: u64,
        /// What was asked for, as a share.
        until_share: f64,
        /// Benchmark of the one that is known least.
        benchmark: String,
        /// Its size; None: Open_Close.
        sample_bytes: Option<u64>,
        /// How often it was measured, the first time included; a row is known by five measurements at least.
        measured: u64,
        /// How far its interval reaches; None: there is none.
        reach_share: Option<f64>,
    }

    /// The rows took more than 1.1 times as long as they may.
    OVERRUN = "overrun", 60,
    "The trial of a row may be faster than its repetitions: one sync behind all of them has more to write, and memory \
     is used for the first time. Or the storage became slower, or others use it: repeat on an idle machine." {
        /// Longest time announced.
        limit_seconds: f64,
        /// Time announced.
        expected_seconds: f64,
        /// Time taken.
        real_seconds: f64,
    }
}
