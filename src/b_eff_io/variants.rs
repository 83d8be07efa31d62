//! Options of the variants of `io` and `plan`.

use super::cli::{RunArgs, TransferArgs};
use super::config::{PreallocatePolicy, Variant};
use crate::frame::error::UsageError;
use crate::frame::options;
use crate::frame::variants::{number, word, BackendVariant, NamedVariant, DEPTH, DIRECT};

/// Keys of the options of its backend; others are hints.
const KEYS: [&str; 6] = [DIRECT, DEPTH, "collective", "aggregators", "domain", "preallocate"];

/// Interprets the options of a variant; keys that are no options are hints.
///
/// # Errors
/// A value that its option does not have.
pub(super) fn variant(named: &NamedVariant) -> Result<Variant, UsageError> {
    let mut own = Variant::default();
    let BackendVariant { backend, direct, queue_depth, hints } = BackendVariant::of(named, &KEYS, |key, value| {
        match key {
            "collective" => own.collective = Some(word(value)?),
            "preallocate" => own.preallocate = Some(word(value)?),
            "aggregators" => own.aggregators = Some(number(value, |ranks| ranks > 0)?),
            _ => own.domain_bytes = Some(options::parse_size(value)?),
        }
        Ok(())
    })?;
    Ok(Variant { backend, direct, queue_depth, hints, ..own })
}

/// The options of the command line as if they were those of the variant alone, to check them as such: what it does not set is not given,
/// except the policies on which the effect of others depends.
pub(super) fn own_arguments(
    variant: &Variant,
    way: &TransferArgs,
    run: &RunArgs,
    has_two_phase: bool,
) -> (TransferArgs, RunArgs) {
    let collective = variant.collective.unwrap_or(if has_two_phase { way.collective } else { Default::default() });
    let transfer = TransferArgs {
        direct: variant.direct.unwrap_or(way.direct),
        depth: variant.queue_depth,
        collective,
        aggregators: variant.aggregators,
        domain: variant.domain_bytes,
        ..way.clone()
    };
    let run = RunArgs {
        hint: variant.hints.clone(),
        hints: None,
        preallocate: variant.preallocate.unwrap_or(PreallocatePolicy::Auto),
        ..run.clone()
    };
    (transfer, run)
}
