//! Initial state of the files, the page cache and the buffers, in words.

use crate::frame::config::CachePolicy;
use crate::imb_io::config::{ImbConfig, InitialFileState, IterationBuffers};

pub(super) fn writes(config: &ImbConfig) -> &'static str {
    match config.file {
        Some(InitialFileState::Existing) => "overwrite existing files of full length, in the page cache unless direct",
        Some(InitialFileState::New) => "to new files, which grow",
        None => "unknown whether their files existed",
    }
}

pub(super) fn reads(config: &ImbConfig) -> String {
    format!("of files filled before, their cached pages {}", cache(config.cache))
}

pub(super) fn memory(config: &ImbConfig) -> &'static str {
    match config.buffers {
        Some(IterationBuffers::Reused) => "one buffer for all iterations, pending reads one each",
        Some(IterationBuffers::Cold) => "cache-cold for each iteration",
        None => "unknown whether iterations shared it",
    }
}

pub(super) fn compared(config: &ImbConfig) -> &'static str {
    match config.buffers {
        Some(IterationBuffers::Reused) => {
            "all bytes of written files; of reads into one buffer the last one, then all of them repeated outside the timed loop; all \
             other reads"
        }
        _ => "all bytes of written files and of reads",
    }
}

pub(super) fn cache(cache: CachePolicy) -> &'static str {
    match cache {
        CachePolicy::Drop => "dropped before reads, outside the timed loop",
        CachePolicy::Keep => "kept after the preparation, as in the release",
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
        assert!(of(Some(InitialFileState::Existing)).starts_with("overwrite"));
        assert!(of(Some(InitialFileState::New)).contains("grow"));
        assert!(of(None).contains("unknown"));
        assert!(memory(&ImbConfig { buffers: None, ..run().config }).contains("unknown"));
    }
}
