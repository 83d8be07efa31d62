//! Less common settings: `--set KEY=VALUE`. This table determines the help, the accepted values, and the suggestions.

use super::config::{ExchangePolicy, PreallocatePolicy};
use crate::frame::backends::nearest_name;
use crate::frame::options;

struct SettingKey {
    name: &'static str,
    values: SettingValues,
    /// Default on the command line; None: not set.
    default: Option<&'static str>,
    commands: &'static [&'static str],
    /// True if fixed by the definition of b_eff_io.
    is_defined: bool,
    meaning: &'static str,
}

enum SettingValues {
    Size(fn(u64) -> SettingOverride),
    Words(&'static [(&'static str, SettingOverride)]),
}

const KEYS: [SettingKey; 6] = [
    SettingKey {
        name: "segment-multiple",
        values: SettingValues::Size(SettingOverride::SegmentMultiple),
        default: Some("1M"),
        commands: &["io", "plan"],
        is_defined: true,
        meaning: "segments of types 3 and 4 are rounded up to a multiple of SIZE, itself a multiple of 8; use the stripe size of the \
            file system if that is larger",
    },
    SettingKey {
        name: "shared-pointer",
        values: SettingValues::Words(&[("on", SettingOverride::SharedPointer(true)), ("off", SettingOverride::SharedPointer(false))]),
        default: Some("on"),
        commands: &["io", "plan"],
        is_defined: true,
        meaning: "off: type 1 uses a strided view instead of the shared file pointer, one chunk per collective call",
    },
    SettingKey {
        name: "unique-open",
        values: SettingValues::Words(&[("on", SettingOverride::UniqueOpen(true)), ("off", SettingOverride::UniqueOpen(false))]),
        default: Some("off"),
        commands: &["io"],
        is_defined: true,
        meaning: "on: open with MPI_MODE_UNIQUE_OPEN (mpiio), which may delay every sync to the close",
    },
    SettingKey {
        name: "connection-setup",
        values: SettingValues::Words(&[
            ("on", SettingOverride::ConnectionSetup(true)),
            ("off", SettingOverride::ConnectionSetup(false)),
        ]),
        default: None,
        commands: &["io"],
        is_defined: false,
        meaning: "on: one collective write and read of a small file before the first pattern establish the connections of mpiio, outside the timed \
            region (connection_setup_seconds); off: they are part of the first pattern [default: on; with --strict and --release 2.1 off]",
    },
    SettingKey {
        name: "exchange",
        values: SettingValues::Words(&[
            ("auto", SettingOverride::Exchange(ExchangePolicy::Auto)),
            ("shared-memory", SettingOverride::Exchange(ExchangePolicy::SharedMemory)),
            ("messages", SettingOverride::Exchange(ExchangePolicy::Messages)),
        ]),
        default: Some("auto"),
        commands: &["io", "plan"],
        is_defined: false,
        meaning: "data exchange of two-phase transfers. shared-memory: aggregators copy from the memory of other ranks; \
            messages: MPI messages; auto: shared memory where possible",
    },
    SettingKey {
        name: "preallocate",
        values: SettingValues::Words(&[
            ("zeros", SettingOverride::Preallocate(PreallocatePolicy::Zeros)),
            ("size", SettingOverride::Preallocate(PreallocatePolicy::Size)),
        ]),
        default: None,
        commands: &["io"],
        is_defined: false,
        meaning: "a policy in place of --preallocate. zeros: as native, and zeros are written before chunks smaller than a block; size: length only, \
            by ftruncate",
    },
];

/// A key with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingOverride {
    /// Segments in multiples of so many bytes.
    SegmentMultiple(u64),
    /// Type 1 uses the shared file pointer.
    SharedPointer(bool),
    /// MPI_MODE_UNIQUE_OPEN.
    UniqueOpen(bool),
    /// Collective calls before the first pattern.
    ConnectionSetup(bool),
    /// Exchange of two-phase transfers.
    Exchange(ExchangePolicy),
    /// Preallocation before direct first writes.
    Preallocate(PreallocatePolicy),
}

/// Settings in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EffectiveSettings {
    /// Segments are rounded up to a multiple of so many bytes.
    pub segment_multiple_bytes: u64,
    /// Type 1 uses the shared file pointer.
    pub shared_pointer: bool,
    /// MPI_MODE_UNIQUE_OPEN.
    pub unique_open: bool,
    /// Collective calls before the first pattern; None: by the definition.
    pub connection_setup: Option<bool>,
    /// Exchange of two-phase transfers.
    pub exchange: ExchangePolicy,
    /// Preallocation before direct first writes; None: as `--preallocate`.
    pub preallocate: Option<PreallocatePolicy>,
}

impl Default for EffectiveSettings {
    fn default() -> Self {
        Self {
            segment_multiple_bytes: 1 << 20,
            shared_pointer: true,
            unique_open: false,
            connection_setup: None,
            exchange: ExchangePolicy::Auto,
            preallocate: None,
        }
    }
}

impl EffectiveSettings {
    /// Defaults overridden by these; the last one of a key counts.
    #[must_use]
    pub fn of(set: &[SettingOverride]) -> Self {
        let mut settings = Self::default();
        for setting in set {
            match *setting {
                SettingOverride::SegmentMultiple(bytes) => settings.segment_multiple_bytes = bytes,
                SettingOverride::SharedPointer(is_used) => settings.shared_pointer = is_used,
                SettingOverride::UniqueOpen(is_unique) => settings.unique_open = is_unique,
                SettingOverride::ConnectionSetup(is_done) => settings.connection_setup = Some(is_done),
                SettingOverride::Exchange(policy) => settings.exchange = policy,
                SettingOverride::Preallocate(policy) => settings.preallocate = Some(policy),
            }
        }
        settings
    }
}

impl SettingValues {
    fn list(&self) -> String {
        match self {
            Self::Size(_) => "SIZE".into(),
            Self::Words(words) => words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join("|"),
        }
    }
}

fn keys_of(command: &str) -> impl Iterator<Item = &'static SettingKey> + Clone + '_ {
    KEYS.iter().filter(move |key| key.commands.contains(&command))
}

/// Parses a setting of `io`.
///
/// # Errors
/// Unknown key or value.
pub(crate) fn parse_for_io(text: &str) -> Result<SettingOverride, String> {
    parse("io", text)
}

/// Parses a setting of `plan`.
///
/// # Errors
/// As [`parse_for_io`], or a key that applies to runs only.
pub(crate) fn parse_for_plan(text: &str) -> Result<SettingOverride, String> {
    parse("plan", text)
}

fn parse(command: &str, text: &str) -> Result<SettingOverride, String> {
    let names = keys_of(command).map(|key| key.name);
    let listed = names.clone().collect::<Vec<_>>().join(", ");
    let Some((name, value)) = text.split_once('=') else {
        return Err(format!("write KEY=VALUE; the keys are {listed}"));
    };
    let Some(key) = KEYS.iter().find(|key| key.name == name) else {
        return Err(format!("there is no key '{name}'; the keys are {listed}{}", suggestion(name, names)));
    };
    if !key.commands.contains(&command) {
        return Err(format!("{name} does not apply to `{command}`; its keys are {listed}"));
    }
    match &key.values {
        SettingValues::Size(make) => options::parse_size(value).map(make),
        SettingValues::Words(words) => {
            let found = words.iter().find(|(word, _)| *word == value).map(|(_, setting)| *setting);
            found.ok_or_else(|| {
                let near = suggestion(value, words.iter().map(|(word, _)| *word));
                format!("{name} has no value '{value}'; its values are {}{near}", key.values.list())
            })
        }
    }
}

fn suggestion<'a>(wrong: &str, words: impl IntoIterator<Item = &'a str>) -> String {
    nearest_name(wrong, words).map_or_else(String::new, |near| format!(". Did you mean {near}?"))
}

/// Help text of the option: a line for each key.
pub(crate) fn help(command: &str) -> String {
    let line = |key: &SettingKey| {
        let default = key.default.map_or_else(String::new, |default| format!(" [default: {default}]"));
        let defined = if key.is_defined { " (a valid value requires the default)" } else { "" };
        format!("\n  {}={}: {}{defined}{default}", key.name, key.values.list(), key.meaning)
    };
    let begin = "Less common settings; repeat the option for several keys. Keys and values:";
    keys_of(command).fold(begin.to_owned(), |text, key| text + &line(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_of_the_table_are_those_in_force() {
        let typed = KEYS.iter().filter_map(|key| key.default.map(|default| format!("{}={default}", key.name)));
        let set: Vec<SettingOverride> = typed.map(|text| parse_for_io(&text).unwrap()).collect();
        assert_eq!((set.len(), EffectiveSettings::of(&set)), (4, EffectiveSettings::default()));
    }

    #[test]
    fn every_value_is_read_and_the_last_one_counts() {
        let read =
            "segment-multiple=4M shared-pointer=off connection-setup=off exchange=auto exchange=messages preallocate=size";
        let set: Vec<SettingOverride> = read.split(' ').map(|text| parse_for_io(text).unwrap()).collect();
        let expected = EffectiveSettings {
            segment_multiple_bytes: 4 << 20,
            shared_pointer: false,
            unique_open: false,
            connection_setup: Some(false),
            exchange: ExchangePolicy::Messages,
            preallocate: Some(PreallocatePolicy::Size),
        };
        assert_eq!(EffectiveSettings::of(&set), expected);
    }

    #[test]
    fn what_there_is_not_is_answered_with_what_there_is() {
        let all = "segment-multiple, shared-pointer, unique-open, connection-setup, exchange, preallocate";
        for (text, parts) in [
            ("exchange", &["KEY=VALUE", all][..]),
            ("exchnage=auto", &["no key 'exchnage'", all, "Did you mean exchange?"]),
            ("sqpoll=on", &["no key 'sqpoll'", all]),
            ("exchange=mesages", &["no value 'mesages'", "auto|shared-memory|messages", "Did you mean messages?"]),
            ("preallocate=native", &["no value 'native'", "zeros|size"]),
            ("shared-pointer=", &["no value ''", "on|off"]),
            ("segment-multiple=1Q", &["1Q"]),
        ] {
            let error = parse_for_io(text).unwrap_err();
            assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
        }
        let error = parse_for_plan("unique-open=on").unwrap_err();
        assert!(error.contains("not apply to `plan`") && !error.contains("preallocate"), "{error}");
        assert!(parse_for_plan("unique-opn=on").unwrap_err().ends_with("segment-multiple, shared-pointer, exchange"));
    }

    #[test]
    fn the_help_of_a_command_has_its_keys() {
        for (command, keys) in [("io", 6), ("plan", 3)] {
            let text = help(command);
            assert_eq!(text.lines().count(), 1 + keys, "{text}");
            assert!(text.contains("exchange=auto|shared-memory|messages: "), "{text}");
        }
    }
}
