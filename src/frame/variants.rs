//! `--variant NAME:KEY=VALUE,...`: a backend with options of its own, measured in turn with the backends of the run.

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::frame::backends::{self, canonical_name, nearest_name, VARIANT_MARK};
use crate::frame::checks::join;
use crate::frame::config::DirectPolicy;
use crate::frame::error::UsageError;
use crate::frame::hints;
use crate::frame::values::NULL_BACKEND;

/// Maximum number of variants: each takes the time of a backend and its share of the space.
const MAX_VARIANTS: usize = 16;
/// Longer names would not fit into tables.
const MAX_NAME_CHARS: usize = 12;
/// The key that selects the backend of a variant.
const BACKEND: &str = "backend";
/// Options that variants of several benchmarks have.
pub(crate) const DIRECT: &str = "direct";
pub(crate) const DEPTH: &str = "depth";
/// Depths as of `--depth`.
const DEPTHS: std::ops::RangeInclusive<u32> = 1..=4096;

impl VariantOption {
    /// A variant that was not given on the command line.
    pub(crate) fn new(name: &str, options: &[(String, String)]) -> Self {
        Self { name: name.to_owned(), options: options.to_vec() }
    }
}

/// Help of the option; `options` are the keys, with their meaning.
pub(crate) fn help(options: &str) -> String {
    format!(
        "A backend with other options (up to {MAX_VARIANTS} variants), which takes turns with the backends: a name, and after a colon its \
         options, separated by commas (\\, is a comma in a value): backend=NAME, one of --backend [default: the first]; {options}. Any \
         other key is a hint of mpiio. Results name it BACKEND{VARIANT_MARK}NAME, and compare it with its backend"
    )
}

/// A variant as given on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariantOption {
    name: String,
    options: Vec<(String, String)>,
}

/// Parses `NAME:KEY=VALUE,...`; without options, the variant is measured as its backend is.
///
/// # Errors
/// What is wrong, and how to write it.
pub(crate) fn parse(text: &str) -> Result<VariantOption, String> {
    let (name, list) = text.split_once(':').unwrap_or((text, ""));
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.chars().all(is_allowed) {
        return Err(format!(
            "'{name}' is not a name of 1 to {MAX_NAME_CHARS} letters, digits, '-' or '_'; write e.g. deep:backend=uring,depth=64"
        ));
    }
    let mut options: Vec<(String, String)> = Vec::new();
    for part in split_at_commas(list) {
        let pair = part.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        let Some((key, value)) = pair.filter(|(key, value)| !key.is_empty() && !value.is_empty()) else {
            return Err(format!(
                "'{part}' is not KEY=VALUE; options are separated by commas, and a comma in a value is written \\,"
            ));
        };
        if options.iter().any(|(other, _)| other == key) {
            return Err(format!("{key} is given twice; give each key once"));
        }
        options.push((key.to_owned(), value.to_owned()));
    }
    Ok(VariantOption { name: name.to_owned(), options })
}

/// Splits at commas without a backslash, which is removed.
fn split_at_commas(list: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut chars = list.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ',' => parts.push(String::new()),
            c => {
                let literal = if c == '\\' { chars.next_if_eq(&',').unwrap_or(c) } else { c };
                parts.last_mut().into_iter().for_each(|part| part.push(literal));
            }
        }
    }
    parts.retain(|_| !list.is_empty());
    parts
}

/// A variant of a backend of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedVariant {
    /// Its own name.
    pub(crate) name: String,
    /// Its backend.
    pub(crate) backend: String,
    /// The options but the backend.
    pub(crate) options: Vec<(String, String)>,
}

impl NamedVariant {
    /// Its name in records.
    pub(crate) fn contestant(&self) -> String {
        format!("{}{VARIANT_MARK}{}", self.backend, self.name)
    }

    /// An error of its options.
    pub(crate) fn refused(&self, cause: &str, next_step: impl Into<String>) -> UsageError {
        UsageError::new(format!("--variant {}: {cause}", self.name), next_step)
    }
}

/// The variants with their backends, in the order of the command line.
///
/// # Errors
/// Too many variants, a name that is not unique, a backend that is not measured.
pub(crate) fn resolve(given: &[VariantOption], backends: &[String]) -> Result<Vec<NamedVariant>, UsageError> {
    if given.len() > MAX_VARIANTS {
        return Err(UsageError::new(
            format!("--variant: {} are given, at most {MAX_VARIANTS} are possible", given.len()),
            "Omit some of them, or distribute them over several runs.",
        ));
    }
    let mut all: Vec<NamedVariant> = Vec::new();
    for VariantOption { name, options } in given {
        let is_taken = all.iter().any(|other| other.name == *name);
        let Ok(canonical) = canonical_name(name);
        if is_taken || beff_backends::driver(&canonical).is_some() {
            let owner = if is_taken { "another variant" } else { "a backend" };
            return Err(UsageError::new(
                format!("--variant {name}: {owner} has this name"),
                "Give each variant a name of its own.",
            ));
        }
        let chosen = options.iter().find(|(key, _)| key == BACKEND).map(|(_, value)| canonical_name(value));
        let backend = match chosen {
            Some(Ok(backend)) => backend,
            None => backends.first().cloned().unwrap_or_default(),
        };
        let options = options.iter().filter(|(key, _)| key != BACKEND).cloned().collect();
        let variant = NamedVariant { name: name.clone(), backend, options };
        if !backends.contains(&variant.backend) {
            return Err(variant.refused(
                &format!("its backend {} is not measured, so there is nothing to compare it with", variant.backend),
                format!("Add {} to --backend, or choose another: {}.", variant.backend, join(backends)),
            ));
        }
        if variant.backend == NULL_BACKEND {
            let next_step = "Give it another backend of the run, with backend=NAME.";
            return Err(variant.refused("the null backend moves nothing, whatever its options", next_step));
        }
        all.push(variant);
    }
    Ok(all)
}

/// A backend with options of its own, measured beside the backends. What it does not set is as in the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackendVariant {
    /// Its name in all records: that of its backend, `+`, and its own.
    pub backend: String,
    /// Direct I/O.
    #[serde(default)]
    pub direct: Option<DirectPolicy>,
    /// Maximum number of operations in flight.
    #[serde(default)]
    pub queue_depth: Option<u32>,
    /// MPI-IO hints, key and value, for all files; they override those of the run.
    #[serde(default)]
    pub hints: Vec<(String, String)>,
}

impl BackendVariant {
    /// Interprets the options of a variant. `keys` are the options that the benchmark has; of those, `set_own` interprets what is not
    /// common to all benchmarks. Other keys are hints.
    ///
    /// # Errors
    /// A value that its option does not have; a key that is neither an option nor a hint.
    pub(crate) fn of(
        named: &NamedVariant,
        keys: &[&str],
        mut set_own: impl FnMut(&str, &str) -> Result<(), String>,
    ) -> Result<Self, UsageError> {
        let mut found = Self { backend: named.contestant(), ..Self::default() };
        for (key, value) in &named.options {
            let set = match key.as_str() {
                DIRECT if keys.contains(&DIRECT) => word(value).map(|policy| found.direct = Some(policy)),
                DEPTH if keys.contains(&DEPTH) => {
                    number(value, |depth| u32::try_from(depth).is_ok_and(|depth| DEPTHS.contains(&depth)))
                        .map(|depth| found.queue_depth = Some(depth as u32))
                }
                own if keys.contains(&own) => set_own(own, value),
                _ if backends::supports(&named.backend, |row| row.has_hints) => {
                    found.hints.push((key.clone(), value.clone()));
                    Ok(())
                }
                _ => return Err(unknown_key(named, key, keys)),
            };
            set.map_err(|cause| {
                named.refused(&format!("{key}={value}: {cause}"), format!("Values are those of --{key}."))
            })?;
        }
        hints::check_limits(found.hints.iter().map(|(key, value)| (key.as_str(), value.as_str())))
            .map_err(|cause| named.refused(&cause, "Omit some of them."))?;
        Ok(found)
    }

    /// The variants of a run on `backends`, in a benchmark with the common options `keys` alone.
    ///
    /// # Errors
    /// As of [`resolve`] and [`BackendVariant::of`]; an option that its backend does not use.
    pub(crate) fn all(given: &[VariantOption], backends: &[String], keys: &[&str]) -> Result<Vec<Self>, UsageError> {
        let build = |named: &NamedVariant| {
            let variant = Self::of(named, keys, |_, _| Ok(()))?;
            variant.check_effects(named).map(|()| variant)
        };
        resolve(given, backends)?.iter().map(build).collect()
    }

    fn check_effects(&self, named: &NamedVariant) -> Result<(), UsageError> {
        let unused = [
            (self.direct.is_some() && !backends::supports(&self.backend, |row| row.can_direct), DIRECT, "direct I/O"),
            (self.queue_depth.is_some() && !backends::supports(&self.backend, |row| row.has_queue), DEPTH, "queue"),
        ];
        match unused.iter().find(|(is_unused, ..)| *is_unused) {
            Some((_, key, what)) => Err(named.refused(
                &format!("{key} has no effect: {} has no {what}", named.backend),
                "Omit it, or choose a backend that uses it, with backend=NAME.",
            )),
            None => Ok(()),
        }
    }
}

/// Hints of a run with those of a variant, which replace the ones with the same key.
pub(crate) fn override_hints(hints: &[(String, String)], others: &[(String, String)]) -> Vec<(String, String)> {
    let kept = hints.iter().filter(|(key, _)| others.iter().all(|(other, _)| other != key));
    kept.chain(others).cloned().collect()
}

fn unknown_key(named: &NamedVariant, key: &str, keys: &[&str]) -> UsageError {
    let near = nearest_name(key, keys.iter().copied()).map_or(String::new(), |near| format!("Did you mean {near}? "));
    let cause = format!("{key} is no option of a variant, and {} has no hints", named.backend);
    named.refused(&cause, format!("{near}Options are backend, {}; hints need backend=mpiio.", keys.join(", ")))
}

/// Number of an option of a variant.
///
/// # Errors
/// The text is not an allowed number.
pub(crate) fn number(value: &str, is_allowed: impl Fn(u64) -> bool) -> Result<u64, String> {
    value
        .parse()
        .ok()
        .filter(|number| is_allowed(*number))
        .ok_or_else(|| "not a number that is possible here".to_owned())
}

/// A named value of an option.
///
/// # Errors
/// The names that are possible.
pub(crate) fn word<T: ValueEnum>(value: &str) -> Result<T, String> {
    T::from_str(value, false).map_err(|_| {
        let words: Vec<String> = T::value_variants()
            .iter()
            .filter_map(ValueEnum::to_possible_value)
            .map(|word| word.get_name().to_owned())
            .collect();
        format!("must be one of {}", words.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        parse(text).unwrap().options
    }

    #[test]
    fn options_are_separated_by_commas_that_values_may_contain() {
        assert_eq!(pairs("same"), []);
        assert_eq!(pairs("same:"), []);
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(pairs("a:depth=64, direct=off"), [pair("depth", "64"), pair("direct", "off")]);
        assert_eq!(
            pairs(r"a:cb_config_list=n1:2\,n2:1,x=a=b\c"),
            [pair("cb_config_list", "n1:2,n2:1"), pair("x", r"a=b\c")]
        );
    }

    #[test]
    fn what_is_no_variant_says_how_to_write_one() {
        for (text, cause) in [
            (":depth=4", "'' is not a name of 1 to 12 letters"),
            ("a/b:depth=4", "'a/b' is not a name"),
            ("posix+deep", "'posix+deep' is not a name"),
            ("1234567890123:", "is not a name"),
            ("a:depth", "'depth' is not KEY=VALUE"),
            ("a:depth=4,", "'' is not KEY=VALUE"),
            ("a:=4", "'=4' is not KEY=VALUE"),
            ("a:depth=4,depth=8", "depth is given twice"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(cause), "{text}: {error}");
        }
    }

    #[test]
    fn a_variant_belongs_to_a_backend_of_the_run() {
        let resolved = |texts: &[&str]| {
            let given: Vec<VariantOption> = texts.iter().map(|text| parse(text).unwrap()).collect();
            let found = resolve(&given, &["mpiio".into(), "uring".into(), "null".into()]);
            found.map(|all| all.iter().map(NamedVariant::contestant).collect::<Vec<_>>()).map_err(|e| e.to_string())
        };
        let expected = ["mpiio+two", "uring+deep"].map(str::to_owned).to_vec();
        assert_eq!(resolved(&["two:cb_nodes=2", "deep:backend=io_uring,depth=64"]), Ok(expected));
        for (texts, cause) in [
            (&["a:", "a:"][..], "another variant has this name"),
            (&["posix:depth=4"], "a backend has this name"),
            (&["MPI-IO:"], "a backend has this name"),
            (&["a:backend=posix"], "posix is not measured"),
            (&["a:backend=nothing"], "nothing is not measured"),
            (&["a:backend=null"], "null backend moves nothing"),
        ] {
            let error = resolved(texts).unwrap_err();
            assert!(error.contains(cause), "{texts:?}: {error}");
        }
        let many: Vec<String> = (0..17).map(|n| format!("v{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(resolved(&many[..16]).map(|all| all.len()), Ok(16));
        assert!(resolved(&many).unwrap_err().contains("17 are given, at most 16"));
    }
}
