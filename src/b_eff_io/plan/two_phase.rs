//! Which transfers of a run may be two-phase, by the configuration.

use crate::b_eff_io::config::{CollectivePolicy, Config};
use crate::b_eff_io::pattern_type::PatternType;
use crate::frame::backends;
use crate::frame::config::DirectPolicy;

/// Maximum sector size of a device.
const SECTOR_BYTES: u64 = 4096;

/// True if transfers of this backend may be two-phase.
#[must_use]
pub fn is_possible(config: &Config, backend: &str) -> bool {
    let config = config.of(backend);
    match config.collective {
        _ if !backends::supports(backend, |row| row.has_two_phase) => false,
        CollectivePolicy::Auto => config.direct.of(backend) != DirectPolicy::Off,
        CollectivePolicy::TwoPhase => true,
        CollectivePolicy::Independent | CollectivePolicy::UnsafeReadModifyWrite => false,
    }
}

/// True if a backend may need memory for domains on `ranks` ranks.
#[must_use]
pub fn has_domains(config: &Config, backend: &str, ranks: u64) -> bool {
    ranks > 1 && config.types.iter().any(|t| t.is_collective()) && is_possible(config, backend)
}

/// True if there are two-phase first writes on `ranks` ranks that may be direct or buffered, whichever is faster: the policy in force
/// permits both. Segments of whole sectors share none, and are two-phase only if requested by name.
#[must_use]
pub fn has_choice(config: &Config, backend: &str, ranks: u64) -> bool {
    let config = config.of(backend);
    let by_name = config.collective == CollectivePolicy::TwoPhase;
    let shares_sectors =
        |t: PatternType| !t.has_segments() || !config.segment_multiple_bytes.is_multiple_of(SECTOR_BYTES);
    let is_one = |t: &PatternType| t.is_collective() && (by_name || shares_sectors(*t));
    let is_open = config.direct.of(backend) == DirectPolicy::Auto;
    ranks > 1 && is_open && is_possible(&config, backend) && config.types.iter().any(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::cli::IoArgs;
    use crate::frame::benchmark::options_from_words;
    use crate::frame::command::backend_capabilities;

    fn config(options: &str) -> Config {
        options_from_words::<IoArgs>(options.split_whitespace()).config(&backend_capabilities()).unwrap()
    }

    #[test]
    fn a_choice_needs_auto_and_first_writes_in_two_phases() {
        for (options, ranks, expected) in [
            ("--backend uring", 2, true),
            ("--backend uring", 1, false),
            ("--backend uring --direct required", 2, false),
            ("--backend uring --direct off", 2, false),
            ("--backend uring --direct off --collective two-phase", 2, false),
            ("--backend uring --collective independent", 2, false),
            ("--backend uring --types 2,3", 2, false),
            ("--backend uring --types 1", 2, true),
            ("--backend uring --types 2,4", 2, false),
            ("--backend uring --types 2,4 --set segment-multiple=1000", 2, true),
            ("--backend uring --types 2,4 --collective two-phase", 2, true),
        ] {
            assert_eq!(has_choice(&config(options), "uring", ranks), expected, "{options} on {ranks}");
        }
        let posix = |options: &str| has_choice(&config(options), "posix", 4);
        assert!(!posix("--backend posix") && posix("--backend posix --direct auto"));
        assert!(!has_choice(&config("--backend mpiio,mmap"), "mpiio", 4));
    }
}
