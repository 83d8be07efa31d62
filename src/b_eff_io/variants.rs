//! Options of the variants of `io` and `plan`.

use super::cli::{RunArgs, TransferArgs};
use super::config::{PreallocatePolicy, Variant};
use crate::frame::backends::{self, nearest_name};
use crate::frame::error::UsageError;
use crate::frame::hints;
use crate::frame::options;
use crate::frame::variants::{word, NamedVariant};

/// Depths as of `--depth`.
const DEPTHS: std::ops::RangeInclusive<u32> = 1..=4096;

/// Keys of the options of its backend; others are hints.
const KEYS: [&str; 6] = ["direct", "depth", "collective", "aggregators", "domain", "preallocate"];

/// Interprets the options of a variant; keys that are no options are hints.
///
/// # Errors
/// A value that its option does not have.
pub(super) fn variant(named: &NamedVariant) -> Result<Variant, UsageError> {
    let mut found = Variant { backend: named.contestant(), ..Variant::default() };
    for (key, value) in &named.options {
        let set = match key.as_str() {
            "direct" => word(value).map(|policy| found.direct = Some(policy)),
            "collective" => word(value).map(|policy| found.collective = Some(policy)),
            "preallocate" => word(value).map(|policy: PreallocatePolicy| found.preallocate = Some(policy)),
            "depth" => number(value, |depth| u32::try_from(depth).is_ok_and(|depth| DEPTHS.contains(&depth)))
                .map(|depth| found.queue_depth = Some(depth as u32)),
            "aggregators" => number(value, |ranks| ranks > 0).map(|ranks| found.aggregators = Some(ranks)),
            "domain" => options::parse_size(value).map(|bytes| found.domain_bytes = Some(bytes)),
            _ if backends::supports(&named.backend, |row| row.has_hints) => {
                found.hints.push((key.clone(), value.clone()));
                Ok(())
            }
            _ => return Err(unknown_key(named, key)),
        };
        set.map_err(|cause| {
            named.refused(&format!("{key}={value}: {cause}"), format!("Values are those of --{key}."))
        })?;
    }
    hints::check_limits(found.hints.iter().map(|(key, value)| (key.as_str(), value.as_str())))
        .map_err(|cause| named.refused(&cause, "Omit some of them."))?;
    Ok(found)
}

fn unknown_key(named: &NamedVariant, key: &str) -> UsageError {
    let near = nearest_name(key, KEYS).map_or(String::new(), |near| format!("Did you mean {near}? "));
    let cause = format!("{key} is no option of a variant, and {} has no hints", named.backend);
    named.refused(&cause, format!("{near}Options are backend, {}; hints need backend=mpiio.", KEYS.join(", ")))
}

fn number(value: &str, is_allowed: impl Fn(u64) -> bool) -> Result<u64, String> {
    value
        .parse()
        .ok()
        .filter(|number| is_allowed(*number))
        .ok_or_else(|| "not a number that is possible here".to_owned())
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
