//! Settings of trials: options of a replay instead of those of its configuration.

use super::config::ReplayConfig;
use crate::frame::backends::{self, nearest_name};
use crate::frame::config::DirectPolicy;
use crate::frame::hints;
use crate::frame::trials::Setting;
use crate::frame::variants::{override_hints, word};

/// Keys that are options; others are hints.
const KEYS: [&str; 1] = ["direct"];

/// The configuration with a setting, interpreted for its backend; or why the setting is refused.
pub(super) fn apply(base: &ReplayConfig, setting: &[(String, String)]) -> Result<ReplayConfig, String> {
    let backend = base.backends.first().map_or("", String::as_str);
    let mut config = base.clone();
    let mut hints = Setting::new();
    for (key, value) in setting {
        match key.as_str() {
            "direct" if !backends::supports(backend, |row| row.can_direct) => {
                return Err(format!("direct={value} has no effect: {backend} cannot do direct I/O"));
            }
            "direct" => {
                config.direct = word::<DirectPolicy>(value).map_err(|cause| format!("direct={value}: {cause}"))?
            }
            _ if backends::supports(backend, |row| row.has_hints) => hints.push((key.clone(), value.clone())),
            _ => {
                let near = nearest_name(key, KEYS).map_or(String::new(), |near| format!("; did you mean {near}?"));
                return Err(format!("{key} is no option of a replay, and {backend} has no hints{near}"));
            }
        }
    }
    config.hints = override_hints(&base.hints, &hints);
    hints::check_limits(config.hints.iter().map(|(key, value)| (key.as_str(), value.as_str())))?;
    Ok(config)
}
