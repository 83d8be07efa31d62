//! Kinds of warnings of IMB-IO, in addition to those of every benchmark.

use crate::frame::records::kinds;

kinds! {
    /// The program allocated memory inside the timed loop.
    ALLOCATIONS_IN_CLOCK = "allocations_in_clock", 31,
    "Please report this; the times of these rows include work of the program." {
        /// Number of allocations.
        allocations: u64,
        /// Number of rows.
        rows: u64,
        /// Benchmark of the first row.
        benchmark: String,
    }

    /// Complete rows of which not every byte was compared.
    NOT_VERIFIED = "not_verified", 30,
    "Please report this, with the file of --out: every byte of a complete row should be compared." {
        /// Number of rows.
        rows: u64,
        /// Benchmark of the first row.
        benchmark: String,
    }

    /// Rows were not run.
    NOT_RUN = "not_run", 10,
    "Choose a backend that supports them, or leave these benchmarks out." {
        /// Backend name.
        backend: String,
        /// Number of rows.
        rows: u64,
        /// First reason.
        reason: String,
    }

    /// Part of the bytes read did not come from storage.
    READ_FROM_CACHE = "read_from_cache", 20,
    "The rows marked c measure memory. Use larger sizes and more iterations, or direct I/O if the backend supports it, \
     to read from storage." {
        /// Backend name.
        backend: String,
        /// Number of rows that are cache figures.
        rows: u64,
        /// Number of reads with known source.
        of: u64,
        /// Bytes that these rows read.
        requested_bytes: u64,
        /// Bytes of that from storage.
        storage_bytes: u64,
    }

    /// The source of the bytes of reads is unknown.
    SOURCE_UNKNOWN = "source_unknown", 21,
    "Take the rows marked ? as an upper limit for the storage; a single group gives more evidence than several." {
        /// Backend name.
        backend: String,
        /// Number of rows.
        rows: u64,
    }

    /// The measured CPU load differs from the requested one by more than 0.1 of it.
    LOAD_NOT_CALIBRATED = "load_not_calibrated", 50,
    "Repeat on an idle machine with each rank bound to its own core." {
        /// Largest relative difference; None: NaN.
        calibration_error: Option<f64>,
    }

    /// The time stamp of an iteration costs more than 5 % of t_max of rows (without those of 0 bytes).
    CLOCK_COST = "clock_cost", 51,
    "Take these times as upper limits; compare larger sizes. The processor may have no invariant cycle counter, or the \
     kernel a slow clock source (available_clocksource)." {
        /// Number of rows.
        rows: u64,
        /// Number of complete rows.
        of: u64,
        /// Benchmark of the shortest time.
        benchmark: String,
        /// Its size; None: Open_Close.
        sample_bytes: Option<u64>,
        /// Its t_max, of the fastest group.
        seconds: f64,
        /// Cost of a time stamp.
        timestamp_ns: f64,
    }

    /// Rows with a wider confidence interval than `--until` requests.
    NOT_NARROW = "not_narrow", 52,
    "Give each row more time (--time) or more repetitions (--repeat), or a wider --until." {
        /// Number of rows.
        rows: u64,
        /// Number of complete rows with a time above 0.
        of: u64,
        /// Requested half-width, as a share.
        until_share: f64,
        /// Benchmark of the row with the widest interval.
        benchmark: String,
        /// Its size; None: Open_Close.
        sample_bytes: Option<u64>,
        /// Its number of measurements, including the first; at least five are required.
        measurements: u64,
        /// Half-width of its interval, as a share; None: no interval.
        half_width_share: Option<f64>,
    }

    /// The rows took more than 1.1 times their limit.
    OVERRUN = "overrun", 60,
    "The pilot measurement of a row may be faster than its iterations: one sync after all of them writes more, and memory \
     is used for the first time. Or the storage became slower, or is shared: repeat on an idle machine." {
        /// Announced limit.
        limit_seconds: f64,
        /// Announced time.
        expected_seconds: f64,
        /// Real time.
        real_seconds: f64,
    }
}
