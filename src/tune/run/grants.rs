//! What the library grants of the hints to try.

use beff_ffi::MpiError;
use beff_tuning::trial::Factor;

use crate::frame::run::trials::TrialRunner;
use crate::frame::trials::Setting;
use crate::tune::records::OmittedKey;

/// Keys and values to try.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchSpace {
    /// Keys and values.
    pub factors: Vec<Factor>,
    /// Those that are not tried.
    pub omitted: Vec<OmittedKey>,
    /// Hints that the library lists without any of them.
    pub default_hints: Setting,
}

/// Without the values for which the library lists the same hints as for the default: they would be the default. A library that lists no
/// hints, or every hint that is requested, excludes nothing: then only the effect counts. Collective.
///
/// # Errors
/// MPI between the ranks.
pub fn without_ungranted(
    runner: &mut dyn TrialRunner,
    common: &[(String, String)],
    space: SearchSpace,
) -> Result<SearchSpace, MpiError> {
    let SearchSpace { factors, mut omitted, default_hints } = space;
    let mut kept = Vec::new();
    for Factor { key, values } in factors {
        let mut granted_values = Vec::new();
        for value in values {
            let mut hints: Setting = common.iter().filter(|(other, _)| *other != key).cloned().collect();
            hints.push((key.clone(), value.clone()));
            let granted = runner.granted_hints(&hints)?;
            if granted.is_some_and(|granted| granted == default_hints && !default_hints.is_empty()) {
                let of_default = default_hints.iter().find(|(other, _)| *other == key);
                let reason = match of_default {
                    Some((_, default)) if *default == value => "this is the default".to_owned(),
                    Some((_, default)) => format!("the library grants {default}, as without it"),
                    None => "the library does not grant it".to_owned(),
                };
                omitted.push(OmittedKey { key: format!("{key}={value}"), reason });
            } else {
                granted_values.push(value);
            }
        }
        if !granted_values.is_empty() {
            kept.push(Factor { key, values: granted_values });
        }
    }
    Ok(SearchSpace { factors: kept, omitted, default_hints })
}
