//! The kinds of warnings of replays, besides those that every benchmark knows.

use crate::frame::records::kinds;
use crate::replay::records::Difference;

kinds! {
    /// The profile does not hold the whole program.
    PROFILE_CUT = "profile_cut", 10,
    "Take the numbers as those of a part of the program. Record again with room for the profile, to the end." {
        /// Processes whose recording ended early.
        processes: u64,
        /// Of how many.
        of: u64,
        /// Calls not replayed because others never came to a collective call.
        calls_cut: u64,
    }

    /// A backend leaves calls out.
    LEFT_OUT = "left_out", 12,
    "Compare only what both backends replayed: the table by class shows it." {
        /// Backend name.
        backend: String,
        /// How many.
        calls: u64,
        /// Bytes they moved.
        bytes: u64,
        /// Function with the most.
        function: String,
        /// Why.
        reason: String,
    }

    /// A backend cannot work here.
    NOT_RUN = "not_run", 11,
    "Take another backend, or let this one work here; `beff-raw info` lists what does." {
        /// Backend name.
        backend: String,
        /// Passes that were to be made with it.
        passes: u64,
        /// Why.
        reason: String,
    }

    /// Calls had another result than the recorded one.
    NOT_AS_RECORDED = "not_as_recorded", 13,
    "Times of such calls do not compare. Another MPI library or file system may answer otherwise; --detail request \
     shows every call." {
        /// Backend name.
        backend: String,
        /// How many in all passes.
        calls: u64,
        /// Of how many.
        of: u64,
        /// The first.
        first: Difference,
    }

    /// Calls of threads are made one behind the other.
    THREADS = "threads", 31,
    "Take times of calls that overlapped in the program as upper limits." {
        /// Most threads of a process.
        threads: u64,
    }

    /// Orderings between ranks that could not be kept.
    ORDER_LOST = "order_lost", 21,
    "Use a profile that is whole, or one backend that replays everything." {
        /// How many.
        orderings: u64,
    }

    /// Of what was read, one run has fetched more past the page cache than the other.
    CACHE_DIFFERS = "cache_differs", 20,
    "Choose --cache keep or drop, whichever resembles the recorded run, or compare writes only." {
        /// Backend name.
        backend: String,
        /// Share of the bytes read that was fetched past the page cache when it was recorded, 0 to 1.
        recorded_share: f64,
        /// And now, of all passes.
        replayed_share: f64,
    }

    /// Calls began late.
    LATE = "late", 30,
    "Calls take longer here than the time they had: take a larger --scale, or --pace think." {
        /// Backend name.
        backend: String,
        /// Most.
        late_seconds: f64,
    }

    /// Less than all that was read was compared.
    UNCHECKED = "unchecked", 32,
    "Bytes written at the same time by several ranks, or by other programs, cannot be known." {
        /// Share that was not, 0 to 1.
        share: f64,
    }

    /// The program allocated memory inside the clock.
    ALLOCATIONS_IN_CLOCK = "allocations_in_clock", 33,
    "Please report this; the times hold work of the program." {
        /// Backend name of the first pass with some.
        backend: String,
        /// How many times, all passes.
        allocations: u64,
    }
}
