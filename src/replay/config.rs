//! Configuration of `beff-raw replay`: validated, immutable, part of every result.

use std::path::PathBuf;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::frame::backends;
use crate::frame::config::{BindPolicy, CachePolicy, DirectPolicy, Stripe, TimeLimit};
use crate::frame::options::parse_key_value;
use crate::frame::records::StorageKey;
use crate::frame::variants::{override_hints, BackendVariant};

/// When a call begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// As soon as the previous one has ended.
    Fast,
    /// After the recorded time since the end of the previous one.
    Think,
    /// At its recorded time, times the scale.
    Absolute,
}

/// Level of detail; each includes the previous ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Detail {
    /// All calls together.
    Run,
    /// By file.
    File,
    /// By class of function.
    Function,
    /// By process.
    Process,
    /// Every call, in separate files.
    Request,
}

/// A change of the recorded calls, whose effect is measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WhatIf {
    /// These MPI-IO hints for all files.
    Hints(Vec<(String, String)>),
    /// Without the writes whose bytes are all overwritten before anything reads them.
    FillNever,
    /// Blocking independent accesses are collective.
    Collective,
}

const NO_ALIGNMENT: &str = "align is not available, because other offsets would need other views and datatypes than the recorded ones; \
    align the data in the program (HDF5: H5Pset_alignment, PnetCDF: hint nc_var_align_size), record it again and compare the profiles, \
    or measure other stripes by hints=striping_unit=BYTES";

impl FromStr for WhatIf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        match (name, value) {
            ("hints", Some(hints)) => hints.split(',').map(parse_key_value).collect::<Result<_, _>>().map(Self::Hints),
            ("fill-never", None) => Ok(Self::FillNever),
            ("collective", None) => Ok(Self::Collective),
            ("align", _) => Err(NO_ALIGNMENT.to_owned()),
            _ => Err("the known changes are fill-never, collective and hints=KEY=VALUE[,KEY=VALUE...]".to_owned()),
        }
    }
}

impl WhatIf {
    /// The name, which identifies its repetitions in results.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Hints(_) => "hints",
            Self::FillNever => "fill-never",
            Self::Collective => "collective",
        }
    }

    /// The change as on the command line.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Hints(hints) => {
                let hints: Vec<String> = hints.iter().map(|(key, value)| format!("{key}={value}")).collect();
                format!("hints={}", hints.join(","))
            }
            Self::FillNever | Self::Collective => self.name().to_owned(),
        }
    }

    /// The hints that it sets.
    #[must_use]
    pub fn hints(&self) -> &[(String, String)] {
        match self {
            Self::Hints(hints) => hints,
            Self::FillNever | Self::Collective => &[],
        }
    }
}

/// Everything that determines what is replayed and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayConfig {
    /// The profile.
    #[serde(with = "crate::frame::paths")]
    #[schemars(with = "String")]
    pub profile: PathBuf,
    /// Names of the contestants, backends before variants; never empty. Each repetition runs with each of them, one after the other. With
    /// `what_if` the name of the change follows that of the single backend, which replays the changed calls, too.
    pub backends: Vec<String>,
    /// The contestants with options of their own; absent in older results.
    #[serde(default)]
    pub variants: Vec<BackendVariant>,
    /// The change whose effect is measured.
    #[serde(default)]
    pub what_if: Option<WhatIf>,
    /// Directory in which the run directory is created.
    #[serde(with = "crate::frame::paths")]
    #[schemars(with = "String")]
    pub path: PathBuf,
    /// Name of the run directory; None: derived from time and process id.
    pub run_dir: Option<String>,
    /// Keep the files of the last repetition.
    pub keep_files: bool,
    /// Prefix of the output files; None: only stdout.
    #[serde(default, with = "crate::frame::paths::optional")]
    #[schemars(with = "Option<String>")]
    pub out: Option<PathBuf>,
    /// When calls begin.
    pub pace: Pace,
    /// Factor for recorded times (absolute).
    pub scale: f64,
    /// Timed repetitions with each backend.
    pub repeat: u64,
    /// Time limit of the run; None: no limit.
    #[serde(default)]
    pub time_limit: Option<TimeLimit>,
    /// Page cache before a repetition; `drop` or `keep`.
    pub cache: CachePolicy,
    /// Direct I/O of the backends that support it.
    pub direct: DirectPolicy,
    /// Alignment of offsets and lengths of direct transfers (--dio-align); None: that of the file system, or of a trial.
    #[serde(default)]
    pub dio_align_bytes: Option<u64>,
    /// Parameters of the storage given by `--storage`; those in force are in `sheet` of the storage.
    #[serde(default)]
    pub storage: Vec<(StorageKey, String)>,
    /// Stripes of new files (--stripe); None: as the directory --path.
    #[serde(default)]
    pub stripe: Option<Stripe>,
    /// Hints for all files; they override the recorded ones.
    #[serde(default)]
    pub hints: Vec<(String, String)>,
    /// Compare the data of reads, in a repetition of its own.
    pub verify: bool,
    /// Level of detail.
    pub detail: Detail,
    /// Binding of ranks that may run on several CPUs.
    #[serde(default)]
    pub bind: BindPolicy,
    /// Seed of the data.
    pub seed: u64,
    /// Fault injection: one bit of the data read is inverted.
    pub inject: bool,
}

impl ReplayConfig {
    /// The change that repetitions of this name measure.
    #[must_use]
    pub fn change_of(&self, name: &str) -> Option<&WhatIf> {
        self.what_if.as_ref().filter(|change| change.name() == name)
    }

    fn variant(&self, name: &str) -> Option<&BackendVariant> {
        self.variants.iter().find(|variant| variant.backend == name)
    }

    /// The backend of the repetitions of this name.
    #[must_use]
    pub fn backend_of<'a>(&'a self, name: &'a str) -> &'a str {
        self.change_of(name).and(self.backends.first()).map_or(backends::backend_of(name), String::as_str)
    }

    /// The contestants, without the name of the change, whose backend is checked in any case.
    #[must_use]
    pub fn contestants_to_check(&self) -> Vec<String> {
        self.backends.iter().filter(|name| self.change_of(name).is_none()).cloned().collect()
    }

    /// The contestant whose availability is that of the repetitions of this name.
    #[must_use]
    pub fn checked_as<'a>(&'a self, name: &'a str) -> &'a str {
        self.change_of(name).and(self.backends.first()).map_or(name, String::as_str)
    }

    /// Direct I/O of the repetitions of this name.
    #[must_use]
    pub fn direct_of(&self, name: &str) -> DirectPolicy {
        self.variant(name).and_then(|variant| variant.direct).unwrap_or(self.direct).of(self.backend_of(name))
    }

    /// The first contestant whose transfers may be direct.
    #[must_use]
    pub fn first_direct(&self) -> Option<&str> {
        DirectPolicy::first_direct(&self.backends, |name| self.direct_of(name))
    }

    /// The hints of the repetitions of this name, those of the change or of the variant last.
    #[must_use]
    pub fn hints_of(&self, name: &str) -> Vec<(String, String)> {
        override_hints(&self.hints, self.own_hints(name))
    }

    /// The hints that the repetitions of this name have in addition to those of the run.
    #[must_use]
    pub fn own_hints(&self, name: &str) -> &[(String, String)] {
        let changed = self.change_of(name).map(WhatIf::hints);
        changed.or_else(|| Some(self.variant(name)?.hints.as_slice())).unwrap_or_default()
    }
}
