//! Settings that few runs need: `--set KEY=VALUE`. From this table follow the help, the values that are taken, and what is suggested.

use super::config::{ExchangePolicy, PreallocatePolicy};
use crate::frame::backends::nearest;
use crate::frame::options;

/// One key.
struct Key {
    name: &'static str,
    values: Values,
    /// As it would be typed; None: nothing is set.
    default: Option<&'static str>,
    commands: &'static [&'static str],
    /// True if the definition of b_eff_io fixes it.
    is_defined: bool,
    meaning: &'static str,
}

enum Values {
    Size(fn(u64) -> Setting),
    Words(&'static [(&'static str, Setting)]),
}

const KEYS: [Key; 5] = [
    Key {
        name: "segment-multiple",
        values: Values::Size(Setting::SegmentMultiple),
        default: Some("1M"),
        commands: &["io", "plan"],
        is_defined: true,
        meaning: "segments of types 3 and 4 are rounded up to a multiple of it, itself a multiple of 8; give the striping unit of the \
            file system if it is larger",
    },
    Key {
        name: "shared-pointer",
        values: Values::Words(&[("on", Setting::SharedPointer(true)), ("off", Setting::SharedPointer(false))]),
        default: Some("on"),
        commands: &["io", "plan"],
        is_defined: true,
        meaning: "off: type 1 without the shared file pointer, by a strided view, one chunk per collective call",
    },
    Key {
        name: "unique-open",
        values: Values::Words(&[("on", Setting::UniqueOpen(true)), ("off", Setting::UniqueOpen(false))]),
        default: Some("off"),
        commands: &["io"],
        is_defined: true,
        meaning: "on: open with MPI_MODE_UNIQUE_OPEN (mpiio), which may delay every sync to the close",
    },
    Key {
        name: "exchange",
        values: Values::Words(&[
            ("auto", Setting::Exchange(ExchangePolicy::Auto)),
            ("shared-memory", Setting::Exchange(ExchangePolicy::SharedMemory)),
            ("messages", Setting::Exchange(ExchangePolicy::Messages)),
        ]),
        default: Some("auto"),
        commands: &["io", "plan"],
        is_defined: false,
        meaning: "data between the ranks of a two-phase transfer. shared-memory: aggregators copy out of their neighbours' memory; \
            messages: MPI messages; auto: shared memory where it can be",
    },
    Key {
        name: "preallocate",
        values: Values::Words(&[
            ("zeros", Setting::Preallocate(PreallocatePolicy::Zeros)),
            ("size", Setting::Preallocate(PreallocatePolicy::Size)),
        ]),
        default: None,
        commands: &["io"],
        is_defined: false,
        meaning: "a policy in place of --preallocate. zeros: as native, and zeros before chunks below a block; size: the length alone, \
            by ftruncate",
    },
];

/// A key with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Segments in multiples of so many bytes.
    SegmentMultiple(u64),
    /// Type 1 by the shared file pointer.
    SharedPointer(bool),
    /// MPI_MODE_UNIQUE_OPEN.
    UniqueOpen(bool),
    /// Exchange of two-phase transfers.
    Exchange(ExchangePolicy),
    /// Room before direct first writes.
    Preallocate(PreallocatePolicy),
}

/// What holds in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Segments are rounded up to a multiple of so many bytes.
    pub segment_multiple_bytes: u64,
    /// Type 1 by the shared file pointer.
    pub shared_pointer: bool,
    /// MPI_MODE_UNIQUE_OPEN.
    pub unique_open: bool,
    /// Exchange of two-phase transfers.
    pub exchange: ExchangePolicy,
    /// Room before direct first writes; None: as `--preallocate` says.
    pub preallocate: Option<PreallocatePolicy>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            segment_multiple_bytes: 1 << 20,
            shared_pointer: true,
            unique_open: false,
            exchange: ExchangePolicy::Auto,
            preallocate: None,
        }
    }
}

impl Settings {
    /// The defaults with these; the last one of a key counts.
    #[must_use]
    pub fn of(set: &[Setting]) -> Self {
        let mut settings = Self::default();
        for setting in set {
            match *setting {
                Setting::SegmentMultiple(bytes) => settings.segment_multiple_bytes = bytes,
                Setting::SharedPointer(is_used) => settings.shared_pointer = is_used,
                Setting::UniqueOpen(is_unique) => settings.unique_open = is_unique,
                Setting::Exchange(policy) => settings.exchange = policy,
                Setting::Preallocate(policy) => settings.preallocate = Some(policy),
            }
        }
        settings
    }
}

impl Values {
    fn listed(&self) -> String {
        match self {
            Self::Size(_) => "SIZE".into(),
            Self::Words(words) => words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join("|"),
        }
    }
}

fn keys_of(command: &str) -> impl Iterator<Item = &'static Key> + Clone + '_ {
    KEYS.iter().filter(move |key| key.commands.contains(&command))
}

/// A setting of `io` as it is typed.
///
/// # Errors
/// No such key, or no such value of it.
pub(crate) fn of_io(text: &str) -> Result<Setting, String> {
    read("io", text)
}

/// A setting of `plan` as it is typed.
///
/// # Errors
/// As [`of_io`], and a key that only a run heeds.
pub(crate) fn of_plan(text: &str) -> Result<Setting, String> {
    read("plan", text)
}

fn read(command: &str, text: &str) -> Result<Setting, String> {
    let names = keys_of(command).map(|key| key.name);
    let listed = names.clone().collect::<Vec<_>>().join(", ");
    let Some((name, value)) = text.split_once('=') else {
        return Err(format!("write KEY=VALUE; the keys are {listed}"));
    };
    let Some(key) = KEYS.iter().find(|key| key.name == name) else {
        return Err(format!("there is no key '{name}'; the keys are {listed}{}", did_you_mean(name, names)));
    };
    if !key.commands.contains(&command) {
        return Err(format!("{name} decides nothing of `{command}`; the keys here are {listed}"));
    }
    match &key.values {
        Values::Size(make) => options::size(value).map(make),
        Values::Words(words) => {
            let found = words.iter().find(|(word, _)| *word == value).map(|(_, setting)| *setting);
            found.ok_or_else(|| {
                let near = did_you_mean(value, words.iter().map(|(word, _)| *word));
                format!("{name} has no value '{value}'; its values are {}{near}", key.values.listed())
            })
        }
    }
}

fn did_you_mean<'a>(wrong: &str, words: impl IntoIterator<Item = &'a str>) -> String {
    nearest(wrong, words).map_or_else(String::new, |near| format!(". Did you mean {near}?"))
}

/// What the help of a command says of the option: a line for each key.
pub(crate) fn help(command: &str) -> String {
    let line = |key: &Key| {
        let default = key.default.map_or_else(String::new, |default| format!(" [default: {default}]"));
        let defined = if key.is_defined { " (the definition fixes the default)" } else { "" };
        format!("\n  {}={}: {}{defined}{default}", key.name, key.values.listed(), key.meaning)
    };
    let begin = "Settings that few runs need; repeat the option for several keys. Keys and values:";
    keys_of(command).fold(begin.to_owned(), |text, key| text + &line(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_of_the_table_are_those_in_force() {
        let typed = KEYS.iter().filter_map(|key| key.default.map(|default| format!("{}={default}", key.name)));
        let set: Vec<Setting> = typed.map(|text| of_io(&text).unwrap()).collect();
        assert_eq!((set.len(), Settings::of(&set)), (4, Settings::default()));
    }

    #[test]
    fn every_value_is_read_and_the_last_one_counts() {
        let read =
            ["segment-multiple=4M", "shared-pointer=off", "exchange=auto", "exchange=messages", "preallocate=size"];
        let set: Vec<Setting> = read.iter().map(|text| of_io(text).unwrap()).collect();
        let expected = Settings {
            segment_multiple_bytes: 4 << 20,
            shared_pointer: false,
            unique_open: false,
            exchange: ExchangePolicy::Messages,
            preallocate: Some(PreallocatePolicy::Size),
        };
        assert_eq!(Settings::of(&set), expected);
    }

    #[test]
    fn what_there_is_not_is_answered_with_what_there_is() {
        let all = "segment-multiple, shared-pointer, unique-open, exchange, preallocate";
        for (text, parts) in [
            ("exchange", &["KEY=VALUE", all][..]),
            ("exchnage=auto", &["no key 'exchnage'", all, "Did you mean exchange?"]),
            ("sqpoll=on", &["no key 'sqpoll'", all]),
            ("exchange=mesages", &["no value 'mesages'", "auto|shared-memory|messages", "Did you mean messages?"]),
            ("preallocate=native", &["no value 'native'", "zeros|size"]),
            ("shared-pointer=", &["no value ''", "on|off"]),
            ("segment-multiple=1Q", &["1Q"]),
        ] {
            let error = of_io(text).unwrap_err();
            assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
        }
        let error = of_plan("unique-open=on").unwrap_err();
        assert!(error.contains("nothing of `plan`") && !error.contains("preallocate"), "{error}");
        assert!(of_plan("unique-opn=on").unwrap_err().ends_with("segment-multiple, shared-pointer, exchange"));
    }

    #[test]
    fn the_help_of_a_command_has_its_keys() {
        for (command, keys) in [("io", 5), ("plan", 3)] {
            let text = help(command);
            assert_eq!(text.lines().count(), 1 + keys, "{text}");
            assert!(text.contains("exchange=auto|shared-memory|messages: "), "{text}");
        }
    }
}
