//! The kinds of warnings of b_eff, besides those that every benchmark knows.

use schemars::JsonSchema;

use crate::b_eff::records::Method;
use crate::frame::records::{kinds, Numbering};

/// One alone differs from nothing.
#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "a type for its schema")]
struct TwoOrMore(#[schemars(range(min = 2))] u64);

kinds! {
    /// Ranks are not numbered host by host.
    NUMBERING = "numbering", 31,
    "Measure the other numbering too and report both: with Open MPI --map-by core, with MPICH a host list of name:ranks." {
        /// How they are: round-robin or mixed.
        numbering: Numbering,
        /// Over how many hosts.
        hosts: u64,
    }

    /// The time did not allow the whole definition. Each field is the least over the run.
    EFFORT_REDUCED = "effort_reduced", 50,
    "Give a longer --time." {
        /// Time one loop was to take.
        loop_seconds: f64,
        /// Smallest size measured by the best method alone; None: all sizes by all methods.
        single_from_bytes: Option<u64>,
        /// Smallest size measured without repetitions; None: all are repeated.
        once_from_bytes: Option<u64>,
        /// Random rings that were to be measured; None: not asked for.
        random_rings: Option<u64>,
        /// Patterns outside the average were asked for and left out.
        without_extras: bool,
        /// How often the effort was reduced after the announcement.
        reductions: u64,
    }

    /// Of more than 10 % of the loops the repetitions differ a lot.
    DISTURBED = "disturbed", 20,
    "Repeat on an idle machine, with each rank bound to a core; the best repetition counts, but it may be disturbed too." {
        /// (Pattern, size, method) with a worst repetition more than twice as slow as the best one.
        loops: u64,
        /// Of how many with repetitions.
        of: u64,
        /// Pattern of the largest ratio.
        pattern: String,
        /// Its size.
        message_bytes: u64,
        /// Its method.
        method: Method,
        /// Best bandwidth divided by the worst there.
        ratio: f64,
    }

    /// Rings that are the same exchange differ by more than 10 % in S.
    IDENTICAL_DIFFER = "identical_differ", 10,
    "Repeat on an idle machine, with each rank bound to a core; the value is not valid until they agree within 10 %." {
        /// How many patterns are the same exchange as these two.
        patterns: TwoOrMore,
        /// The one with the largest S.
        fastest: String,
        /// The one with the smallest.
        slowest: String,
        /// S of the one divided by S of the other.
        ratio: f64,
    }

    /// Loops shorter than 100 steps of the clock.
    SHORT_LOOPS = "short_loops", 51,
    "Give a longer --time; if the clock is coarse, look at the clock source of the kernel (available_clocksource)." {
        /// How many.
        loops: u64,
        /// Of how many.
        of: u64,
        /// The shortest.
        shortest_seconds: f64,
        /// Smallest step of the clock.
        clock_resolution_ns: f64,
    }

    /// The time ended before the interval of b_eff was as narrow as asked.
    UNTIL_NOT_REACHED = "until_not_reached", 55,
    "Give a longer --time; where single repetitions scatter widely, look for what else uses the machine first." {
        /// Reach that was asked for, as a share.
        until_share: f64,
        /// What it is; None: not known.
        reach_share: Option<f64>,
        /// Repetitions that it rests on.
        repetitions: u64,
    }

    /// The measurement took more than 1.1 times as long as it may.
    OVERRUN = "overrun", 60,
    "Give a longer --time; the machine became slower than the pilot saw it." {
        /// Longest time allowed.
        limit_seconds: f64,
        /// Time announced.
        expected_seconds: f64,
        /// Time taken.
        real_seconds: f64,
    }
}
