//! Driver options from the configuration.

use beff_backends::{Collective, DriverOptions, ExchangeMethod, Preallocate, DEFAULT_DOMAIN_BYTES};

use crate::b_eff_io::config::{CollectivePolicy, Config, ExchangePolicy, PreallocatePolicy};
use crate::frame::config::CachePolicy;
use crate::frame::run::run_dir::RunDir;

/// Options for the driver of a contestant, for files in the run directory.
#[must_use]
pub fn driver_options(config: &Config, run_dir: &RunDir, backend: &str) -> DriverOptions {
    let config = config.of(backend);
    DriverOptions {
        direct_trial: run_dir.direct_trial(),
        direct: config.direct.of(backend).into(),
        queue_depth: config.queue_depth.unwrap_or(DriverOptions::default().queue_depth),
        calibrated: Vec::new(),
        dont_cache: config.cache == CachePolicy::Dontcache,
        collective: match config.collective {
            CollectivePolicy::Auto => Collective::Auto,
            CollectivePolicy::Independent => Collective::Independent,
            // Only in stored results; the command line cannot request it.
            #[cfg(not(feature = "test-hooks"))]
            CollectivePolicy::UnsafeReadModifyWrite => Collective::Independent,
            CollectivePolicy::TwoPhase => Collective::TwoPhase,
            #[cfg(feature = "test-hooks")]
            CollectivePolicy::UnsafeReadModifyWrite => Collective::UnsafeReadModifyWrite,
        },
        aggregators: config.aggregators,
        domain_bytes: config.domain_bytes.unwrap_or(DEFAULT_DOMAIN_BYTES),
        exchange: match config.exchange {
            ExchangePolicy::Auto => ExchangeMethod::Auto,
            ExchangePolicy::SharedMemory => ExchangeMethod::SharedMemory,
            ExchangePolicy::Messages => ExchangeMethod::Messages,
        },
        preallocate: match config.preallocate {
            PreallocatePolicy::Auto => Preallocate::Auto,
            PreallocatePolicy::Native => Preallocate::Native,
            PreallocatePolicy::Zeros => Preallocate::Zeros,
            PreallocatePolicy::Size => Preallocate::Size,
            PreallocatePolicy::Off => Preallocate::Off,
        },
        buffered_first_writes: None,
        unique_open: config.unique_open,
    }
}
