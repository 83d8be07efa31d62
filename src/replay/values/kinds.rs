//! Kinds of warnings of replays, in addition to the common ones.

use crate::frame::records::kinds;
use crate::replay::records::ResultDifference;

kinds! {
    /// The profile does not contain the whole program.
    PROFILE_INCOMPLETE = "profile_incomplete", 10,
    "The numbers cover a part of the program. Record again to the end, with enough space for the profile." {
        /// Processes whose recording ended early.
        processes: u64,
        /// All processes.
        of: u64,
        /// Calls discarded because others never made a collective call.
        calls_discarded: u64,
    }

    /// A backend omits calls.
    OMITTED = "omitted", 12,
    "Compare only what both backends replayed: the table by class shows it." {
        /// Backend name.
        backend: String,
        /// Number of calls.
        calls: u64,
        /// Bytes that they transferred.
        bytes: u64,
        /// Function with most of them.
        function: String,
        /// Reason.
        reason: String,
    }

    /// A backend is unavailable.
    NOT_RUN = "not_run", 11,
    "Use another backend, or enable this one; `beff-raw info` lists available ones." {
        /// Backend name.
        backend: String,
        /// Planned repetitions.
        repetitions: u64,
        /// Reason.
        reason: String,
    }

    /// Calls had another result than recorded.
    NOT_AS_RECORDED = "not_as_recorded", 13,
    "Times of such calls are not comparable. Other MPI libraries or file systems may return other results; --detail request \
     shows every call." {
        /// Backend name.
        backend: String,
        /// Number of calls in all repetitions.
        calls: u64,
        /// All calls.
        of: u64,
        /// The first of them.
        first: ResultDifference,
    }

    /// Calls of several threads are serialized.
    THREADS = "threads", 31,
    "Times of calls that overlapped in the program are upper limits." {
        /// Maximum number of threads of a process.
        threads: u64,
    }

    /// Orderings between ranks are lost.
    ORDER_LOST = "order_lost", 21,
    "Use a complete profile, or a backend that replays all calls." {
        /// Number of orderings.
        orderings: u64,
    }

    /// One of the runs fetched a larger part of the data from storage than the other.
    CACHE_DIFFERS = "cache_differs", 20,
    "Choose --cache keep or drop, whichever resembles the recorded run, or compare writes only." {
        /// Backend name.
        backend: String,
        /// Recorded share of the bytes read that came from storage, 0 to 1.
        recorded_share: f64,
        /// The same when replayed, over all repetitions.
        replayed_share: f64,
    }

    /// Calls began late.
    LATE = "late", 30,
    "Calls take longer here than their recorded time: use a larger --scale, or --pace think." {
        /// Backend name.
        backend: String,
        /// Maximum delay.
        late_seconds: f64,
    }

    /// Some of the data read was not compared.
    UNCHECKED = "unchecked", 32,
    "Bytes written at the same time by several ranks, or by other programs, are unknown." {
        /// Share not compared, 0 to 1.
        share: f64,
    }

    /// The program allocated memory in the timed region.
    ALLOCATIONS_IN_CLOCK = "allocations_in_clock", 33,
    "Please report this; the times include work of this program." {
        /// Backend of the first repetition with allocations.
        backend: String,
        /// Number of allocations, all repetitions.
        allocations: u64,
    }
}
