//! In words, what decides which storage and which memory the calls met: the state of the files and of the page cache.

use crate::frame::config::CachePolicy;
use crate::imb_io::config::{Buffers, FileState, ImbConfig};

/// What writes found.
pub(super) fn writes(config: &ImbConfig) -> &'static str {
    match config.file {
        Some(FileState::Existing) => {
            "overwrite files that are there with all their bytes, in the page cache unless direct"
        }
        Some(FileState::New) => "go into new files, which grow",
        None => "not known whether their files existed",
    }
}

/// What reads found.
pub(super) fn reads(config: &ImbConfig) -> String {
    format!("of files filled before, their cached pages {}", cache(config.cache))
}

/// Which memory the repetitions had, and with it what of the data could be compared.
pub(super) fn memory(config: &ImbConfig) -> &'static str {
    match config.buffers {
        Some(Buffers::Reused) => "one buffer for all repetitions, pending reads one each",
        Some(Buffers::Cold) => "of its own for each repetition",
        None => "not known whether repetitions shared it",
    }
}

/// What was compared.
pub(super) fn compared(config: &ImbConfig) -> &'static str {
    match config.buffers {
        Some(Buffers::Reused) => {
            "all bytes of the files that were written; of reads into one buffer what the last one left, and all of them once more, \
             outside the clock; other reads as they came"
        }
        _ => "all bytes of the files that were written, and all that was read",
    }
}

/// What is done about the page cache.
pub(super) fn cache(cache: CachePolicy) -> &'static str {
    match cache {
        CachePolicy::Drop => "dropped before reads, outside the clock",
        CachePolicy::Keep => "kept as the preparation left them, as in the release",
        CachePolicy::Dontcache => "dropped by the transfers themselves",
        CachePolicy::RankShift => "read by other ranks than wrote",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imb_io::values::fixture::run;

    #[test]
    fn what_is_not_known_is_not_called_existing() {
        let of = |file| writes(&ImbConfig { file, ..run().config });
        assert!(of(Some(FileState::Existing)).starts_with("overwrite"));
        assert!(of(Some(FileState::New)).contains("grow"));
        assert!(of(None).contains("not known"));
        assert!(memory(&ImbConfig { buffers: None, ..run().config }).contains("not known"));
    }
}
