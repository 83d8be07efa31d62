//! Warning kinds of b_eff, in addition to the common ones.

use schemars::JsonSchema;

use crate::b_eff::records::MessageMethod;
use crate::frame::records::{kinds, RankNumbering};

/// Number of patterns to compare: at least two.
#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "a type for its schema")]
struct TwoOrMore(#[schemars(range(min = 2))] u64);

kinds! {
    /// Ranks are not numbered host by host.
    NUMBERING = "numbering", 31,
    "Measure with the other numbering too and report both results: with Open MPI --map-by core, with MPICH a host list of name:ranks." {
        /// Numbering: round-robin or mixed.
        numbering: RankNumbering,
        /// Number of hosts.
        hosts: u64,
    }

    /// The effort was reduced to keep the time limit. Each field is the least over the run.
    EFFORT_REDUCED = "effort_reduced", 50,
    "Increase --time." {
        /// Planned time of a loop.
        loop_seconds: f64,
        /// Smallest size measured by the best method alone; None if all sizes are measured by all methods.
        best_method_from_bytes: Option<u64>,
        /// Smallest size measured without repetitions; None if all are repeated.
        unrepeated_from_bytes: Option<u64>,
        /// Planned random rings; None if not requested.
        random_rings: Option<u64>,
        /// True if requested patterns outside the average were omitted.
        without_extras: bool,
        /// Number of reductions after the announcement.
        reductions: u64,
    }

    /// The repetitions of more than 10 % of the loops differ widely.
    DISTURBED = "disturbed", 20,
    "Repeat on an idle machine, with each rank bound to a core; the best repetition counts, but may be disturbed too." {
        /// Number of (pattern, size, method) whose worst repetition is more than twice as slow as the best.
        loops: u64,
        /// Number of (pattern, size, method) with repetitions.
        of: u64,
        /// Pattern of the largest ratio.
        pattern: String,
        /// Message size of the largest ratio.
        message_bytes: u64,
        /// Method of the largest ratio.
        method: MessageMethod,
        /// Largest ratio of the best to the worst bandwidth.
        ratio: f64,
    }

    /// Rings that are the same exchange differ by more than 10 % in S.
    IDENTICAL_DIFFER = "identical_differ", 10,
    "Repeat on an idle machine, with each rank bound to a core; the value is not valid until they agree within 10 %." {
        /// Number of patterns that are the same exchange.
        patterns: TwoOrMore,
        /// Pattern with the largest S.
        fastest: String,
        /// Pattern with the smallest S.
        slowest: String,
        /// Largest S divided by the smallest.
        ratio: f64,
    }

    /// Loops shorter than 100 steps of the clock.
    SHORT_LOOPS = "short_loops", 51,
    "Increase --time; if the clock is coarse, check the clock source of the kernel (available_clocksource)." {
        /// Number of short loops.
        loops: u64,
        /// Number of loops.
        of: u64,
        /// Shortest loop.
        shortest_seconds: f64,
        /// Smallest step of the clock.
        clock_resolution_ns: f64,
    }

    /// The run ended before the interval of b_eff had the requested half-width.
    UNTIL_NOT_REACHED = "until_not_reached", 55,
    "Increase --time; if single repetitions vary widely, first look for other load on the machine." {
        /// Requested half-width, as a share.
        until_share: f64,
        /// Half-width; None if unknown.
        half_width_share: Option<f64>,
        /// Number of repetitions.
        repetitions: u64,
    }

    /// The measurement took more than 1.1 times the time limit.
    OVERRUN = "overrun", 60,
    "Increase --time; the machine became slower than in the pilot measurement." {
        /// Time limit.
        limit_seconds: f64,
        /// Announced time.
        expected_seconds: f64,
        /// Elapsed time.
        real_seconds: f64,
    }
}
