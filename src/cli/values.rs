//! How single words of the command line become values. Errors are sentences: clap puts the option's name before them.

use clap::builder::PossibleValue;
use clap::ValueEnum;

use crate::config::imb::Multi;
use crate::config::{
    CachePolicy, CollectivePolicy, DirectPolicy, ExchangePolicy, Inject, Partitions, Release, SpaceLimit, Termination,
    Verify,
};
use crate::plan::comm::Family;
use crate::plan::imb::{ModeChoice, Policy};
use crate::units;

/// Types that are rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// Every type.
    All,
    /// Type 0 alone.
    Scatter,
}

/// View of `report`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportFormat {
    /// For people.
    Table,
    /// Everything, with derived values.
    Json,
    /// One line per pattern.
    Csv,
    /// The summary file of release 2.1.
    Sum,
    /// The columns of the release of IMB-IO.
    Imb,
}

/// Words of an option and what they mean. The configuration stays free of the command line's library.
macro_rules! words {
    ($type:ident: $($variant:ident = $word:literal $(or $alias:literal)?, $help:literal;)+) => {
        impl ValueEnum for $type {
            fn value_variants<'a>() -> &'a [Self] {
                &[$(Self::$variant),+]
            }

            fn to_possible_value(&self) -> Option<PossibleValue> {
                Some(match self {
                    $(Self::$variant => PossibleValue::new($word).help($help)$(.alias($alias))?,)+
                })
            }
        }
    };
}

words! { Release:
    R0_5 = "0.5", "Euro-Par 2000 paper: all bytes / all time";
    R1 = "1", "paper on balanced architectures: weighted means, T for each partition";
    R2_1 = "2.1", "program of December 2001: sqrt(write * read), T for all partitions";
}
words! { Rewrite:
    All = "all", "every type";
    Scatter = "scatter", "type 0 alone";
}
words! { Termination:
    Geometric = "geometric", "growing batches, one common decision each";
    PerCall = "per-call", "a decision after each call";
}
words! { Verify:
    Ring = "ring", "what the last reads of each pattern left in memory";
    Full = "full", "also every byte of every file";
}
words! { DirectPolicy:
    ByBackend = "by-backend", "auto for uring, off for posix";
    Required = "required", "what cannot be direct is not run";
    Auto = "auto", "direct where the alignment allows it";
    Off = "off", "always through the page cache";
}
words! { CachePolicy:
    Drop = "drop", "cached pages are dropped before every rewrite and read, outside the clock";
    Dontcache = "dontcache", "buffered transfers drop their pages themselves (RWF_DONTCACHE; posix, uring)";
    RankShift = "rank-shift", "ranks read what a rank of another host has written";
    Keep = "keep", "nothing: reads may come from memory";
}
/// Written out because one word is for tests alone.
impl ValueEnum for CollectivePolicy {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Auto, Self::Independent, Self::TwoPhase, Self::UnsafeReadModifyWrite]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::Auto => PossibleValue::new("auto").help("two-phase where sectors are shared, else independent"),
            Self::Independent => PossibleValue::new("independent").help("every rank at its own offsets"),
            Self::TwoPhase => PossibleValue::new("two-phase").help("exchange, then aligned domains"),
            Self::UnsafeReadModifyWrite => PossibleValue::new("unsafe-read-modify-write").hide(true),
        })
    }
}
words! { ExchangePolicy:
    Auto = "auto", "shared memory where it can be, else messages";
    SharedMemory = "shared-memory", "aggregators copy out of their neighbours' memory";
    Messages = "messages", "MPI messages";
}
words! { Family:
    PingPong = "ping-pong", "the first two ranks, there and back";
    Ring = "ring", "the six rings of the average";
    Random = "random", "30 rings in random order, the other half of the average";
    WorstCycle = "worst-cycle", "a ring whose neighbours are far apart; only reported";
    Bisection = "bisection", "best and worst pairs; only reported";
    Cartesian = "cartesian", "neighbours in two and three dimensions; only reported";
}
words! { Multi:
    Slowest = "0", "one line for all groups, of the slowest one";
    Each = "1", "one line for each group";
}
words! { Policy:
    Dynamic = "dynamic", "the time limit";
    MultipleNp = "multiple_np" or "multiple-np", "the time limit, and no more than the size before had";
    Auto = "auto", "as dynamic";
    Off = "off", "nothing";
    Set = "set", "nothing, and the volume does not count: exactly the number given";
}
words! { ModeChoice:
    Both = "multi" or "multiple", "both, one after the other";
    Aggregate = "aggregate", "one sync behind all repetitions";
    NonAggregate = "non_aggregate" or "non-aggregate", "a sync behind each repetition";
}
words! { Inject:
    Flip = "flip", "one bit of one word is turned over";
    OtherRank = "other-rank", "a chunk holds another rank's data";
    Stale = "stale", "a chunk holds the first write after the rewrite";
    Hole = "hole", "a chunk becomes zeros";
}
words! { ReportFormat:
    Table = "table", "for people";
    Json = "json", "everything, with derived values";
    Csv = "csv", "one line per pattern and access method";
    Sum = "sum", "summary file of release 2.1 (b_eff_io)";
    Imb = "imb", "columns of the release, for programs that read them (IMB-IO)";
}

/// A size in bytes.
pub(super) fn size(text: &str) -> Result<u64, String> {
    units::parse_size(text).map_err(|error| error.to_string())
}

/// A time in seconds.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    units::parse_seconds(text).map_err(|error| error.to_string())
}

/// A number above zero.
pub(super) fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        Ok(_) => Err("the number must be above zero".into()),
        Err(_) => Err(format!("'{text}' is not a number")),
    }
}

/// A hint.
pub(super) fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write a key and its value, e.g. romio_cb_write=enable".into()),
    }
}

/// Bytes per second; `/s` may be written.
pub(super) fn rate(text: &str) -> Result<u64, String> {
    let rate = size(text.strip_suffix("/s").unwrap_or(text))?;
    if rate == 0 {
        return Err("at 0 bytes per second nothing would ever be written; give the speed you expect, e.g. 1G".into());
    }
    Ok(rate)
}

/// A size, or a percentage of the free space.
pub(super) fn space_limit(text: &str) -> Result<SpaceLimit, String> {
    let Some(number) = text.strip_suffix('%') else {
        return match size(text)? {
            0 => {
                Err("without any space nothing can be written; give a size such as 200G or a percentage such as 80%"
                    .into())
            }
            bytes => Ok(SpaceLimit::Bytes(bytes)),
        };
    };
    match number.trim().parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(SpaceLimit::Percent(percent)),
        Ok(_) => Err("a percentage of the free space is above 0% and at most 100%".into()),
        Err(_) => Err(format!("'{number}' is not a number; write a percentage such as 80% or a size such as 200G")),
    }
}

/// `all`, `small,medium,all`, or a list of sizes.
pub(super) fn partitions(text: &str) -> Result<Partitions, String> {
    match text {
        "all" => return Ok(Partitions::All),
        "small,medium,all" => return Ok(Partitions::SmallMediumAll),
        _ => {}
    }
    let mut sizes = Vec::new();
    for word in text.split(',') {
        let size = word.trim().parse::<u64>().map_err(|_| {
            format!("'{word}' is not a number of ranks; write `all`, `small,medium,all`, or a list such as 1,4,16")
        })?;
        if size == 0 {
            return Err("a partition of 0 ranks measures nothing; sizes begin at 1".into());
        }
        if sizes.contains(&size) {
            return Err(format!("the partition of {size} ranks is listed twice; name each size once"));
        }
        sizes.push(size);
    }
    Ok(Partitions::List(sizes))
}
