//! Parameters of the storage: names, values and their sources.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::backing_store::{backing_store, BackingStore};
use beff_report::units::{format_size, parse_size};

/// Longest value that is recorded.
const MAX_VALUE_CHARS: usize = 200;

/// A parameter of the storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StorageKey {
    /// Block size.
    Block,
    /// Stripe size (stripe unit, chunk): contiguous bytes of a file on one device or server.
    Stripe,
    /// Stripe count: devices or servers over which a file is distributed.
    Stripes,
    /// Servers.
    Servers,
    /// Cache of the file system.
    Cache,
    /// Redundancy: RAID level, replicas, erasure code.
    Redundancy,
    /// Storage targets (OST, bricks), of all servers.
    Targets,
    /// Devices.
    Devices,
    /// Network to the servers.
    Network,
    /// Version of the file system.
    Version,
    /// Anything else.
    Note,
}

impl StorageKey {
    /// All, in the order of the sheet.
    pub const ALL: [Self; 11] = [
        Self::Block,
        Self::Stripe,
        Self::Stripes,
        Self::Servers,
        Self::Cache,
        Self::Redundancy,
        Self::Targets,
        Self::Devices,
        Self::Network,
        Self::Version,
        Self::Note,
    ];

    /// Name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Stripe => "stripe",
            Self::Stripes => "stripes",
            Self::Servers => "servers",
            Self::Cache => "cache",
            Self::Redundancy => "redundancy",
            Self::Targets => "targets",
            Self::Devices => "devices",
            Self::Network => "network",
            Self::Version => "version",
            Self::Note => "note",
        }
    }

    /// Name in reports.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Block => "block size",
            Self::Stripe => "stripe size",
            Self::Stripes => "stripe count",
            other => other.name(),
        }
    }

    /// True if a sheet states it even if it is unknown.
    #[must_use]
    pub fn is_required(self) -> bool {
        self <= Self::Redundancy
    }

    /// Parses the value of the command line: its text, and its number if it has one.
    ///
    /// # Errors
    /// A value that is no size or no number, where one is required.
    pub fn parse_value(self, text: &str) -> Result<(String, Option<u64>), String> {
        match self {
            Self::Block | Self::Stripe | Self::Cache => {
                let bytes = parse_size(text)?;
                if bytes == 0 && self != Self::Cache {
                    return Err(format!("a {} of 0 bytes is impossible", self.label()));
                }
                Ok((format_size(bytes), Some(bytes)))
            }
            Self::Stripes => match text.parse::<u64>() {
                Ok(count) if count > 0 => Ok((count.to_string(), Some(count))),
                _ => Err(format!("'{text}' is not a stripe count: a whole number, 1 if files are not striped")),
            },
            _ => Ok((text.to_owned(), text.parse().ok())),
        }
    }
}

/// A parameter of the storage, its value, and the source of the value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StorageParameter {
    /// Parameter.
    pub key: StorageKey,
    /// Value in words; None: unknown.
    pub value: Option<String>,
    /// The value as a number, in bytes for `block`, `stripe` and `cache`; None: unknown, or not a number.
    pub number: Option<u64>,
    /// Source of the value: `given` (`--storage`), or how it was queried. If the value is unknown: what was tried.
    pub source: String,
}

impl StorageParameter {
    /// Value, or `unknown`.
    #[must_use]
    pub fn text(&self) -> &str {
        self.value.as_deref().unwrap_or("unknown")
    }
}

/// Parameters that were found, and why others were not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundParameters {
    pub(super) known: Vec<StorageParameter>,
    pub(super) problems: Vec<String>,
}

impl FoundParameters {
    pub(super) fn add(&mut self, key: StorageKey, value: impl Into<String>, number: Option<u64>, source: &str) {
        let value = shorten(&value.into());
        if !value.is_empty() && !self.has(key) {
            self.known.push(StorageParameter { key, value: Some(value), number, source: source.to_owned() });
        }
    }

    pub(super) fn add_size(&mut self, key: StorageKey, bytes: Option<u64>, source: &str) {
        if let Some(bytes) = bytes.filter(|bytes| *bytes > 0) {
            self.add(key, format_size(bytes), Some(bytes), source);
        }
    }

    pub(super) fn add_count(&mut self, key: StorageKey, count: Option<u64>, source: &str) {
        if let Some(count) = count.filter(|count| *count > 0) {
            self.add(key, count.to_string(), Some(count), source);
        }
    }

    /// Adds the cache of the file system: at most `page_cache_bytes` of the hosts, if its files are in a page cache at all.
    pub fn add_page_cache(&mut self, fs_type: &str, page_cache_bytes: u64) {
        let size = format_size(page_cache_bytes);
        let source = "memory of the hosts, as far as their control groups permit";
        match backing_store(fs_type) {
            BackingStore::Memory => {
                for (key, value, number) in [
                    (StorageKey::Stripe, "none", None),
                    (StorageKey::Stripes, "1", Some(1)),
                    (StorageKey::Servers, "none (local)", Some(0)),
                    (StorageKey::Cache, "none (files in memory)", None),
                    (StorageKey::Redundancy, "none", None),
                ] {
                    self.add(key, value, number, "type of the file system");
                }
            }
            BackingStore::Devices => {
                self.add(StorageKey::Cache, format!("up to {size} (page cache)"), Some(page_cache_bytes), source);
            }
            BackingStore::Server | BackingStore::Unknown => {
                let value = format!("up to {size} (page cache of the hosts), servers unknown");
                self.add(StorageKey::Cache, value, Some(page_cache_bytes), source);
            }
        }
    }

    pub(super) fn has(&self, key: StorageKey) -> bool {
        self.known.iter().any(|parameter| parameter.key == key)
    }
}

/// One line of printable characters.
pub(super) fn shorten(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ").chars().take(MAX_VALUE_CHARS).collect()
}

/// The sheet: given values before queried ones, and everything that a sheet must state.
#[must_use]
pub fn sheet(found: FoundParameters, given: &[(StorageKey, String)], fs_type: &str) -> Vec<StorageParameter> {
    let FoundParameters { known, problems } = found;
    let why = match problems.is_empty() {
        true => format!("{fs_type} does not report it"),
        false => problems.join("; "),
    };
    let entry = |key: StorageKey| {
        let queried = known.iter().find(|parameter| parameter.key == key);
        let given = given.iter().find(|(own, _)| *own == key);
        match (given, queried) {
            (Some((_, text)), queried) => {
                let (value, number) = key.parse_value(text).unwrap_or_else(|_| (text.clone(), None));
                let differs = queried.filter(|q| q.value.as_ref() != Some(&value));
                let other = differs.map_or_else(String::new, |q| format!("; queried: {}, {}", q.text(), q.source));
                Some(StorageParameter { key, value: Some(shorten(&value)), number, source: format!("given{other}") })
            }
            (None, Some(queried)) => Some(queried.clone()),
            (None, None) => {
                key.is_required().then(|| StorageParameter { key, value: None, number: None, source: why.clone() })
            }
        }
    };
    StorageKey::ALL.into_iter().filter_map(entry).collect()
}
