//! Builds the configuration of `beff-raw imb` from its options.

use std::path::Path;

use crate::frame::checks::{
    backend_names, backends, check_dio_align, check_direct, check_option_effect, check_out, check_run_dir, join,
    storage_parameters, BackendCapabilities,
};
use crate::frame::config::{BindPolicy, RepetitionPolicy};
use crate::frame::error::UsageError;
use crate::frame::hints;
use crate::frame::input;
use crate::frame::variants::{BackendVariant, DEPTH, DIRECT};
use crate::imb_io::cli::{ImbAccessArgs, ImbArgs, ImbMeasureArgs};
use crate::imb_io::config::ImbConfig;
use crate::imb_io::plan::names::{find, names_in_text, select};
use crate::imb_io::plan::PlanningError;
use crate::imb_io::plan::{ImbBenchmark, IterationPolicy, IterationRule, SampleSizes};

const DEFAULT_UNTIL_SHARE: f64 = 0.05;

/// Default of `--depth`.
pub const DEFAULT_DEPTH: u32 = 32;

impl BackendCapabilities<'_> {
    /// True if this backend supports the benchmark: MPI-IO supports all; the others know offsets and lengths only, and
    /// need a queue to keep a transfer in flight.
    #[must_use]
    pub fn runs(&self, benchmark: &ImbBenchmark) -> bool {
        let transfers = self.grows_files && !benchmark.needs_mpi_file();
        self.mpi || (transfers && (self.queue || !benchmark.has_overlap()))
    }
}

impl ImbArgs {
    /// The configuration of this command line. Reads the files that it names.
    ///
    /// # Errors
    /// The first option that is not valid.
    pub fn config(&self, known: &[BackendCapabilities<'_>]) -> Result<ImbConfig, UsageError> {
        let (measure, access) = (&self.measure, &self.access);
        let chosen = self.backends(known)?;
        check_access(access, &chosen, known)?;
        measure.run_dir.as_deref().map_or(Ok(()), check_run_dir)?;
        self.output.out.as_deref().map_or(Ok(()), check_out)?;
        let benchmarks = self.benchmarks()?;
        let repetitions = iteration_rule(measure)?;
        let repeat = repeat_policy(measure, &repetitions);
        let until_share = until_share(measure, repeat, &repetitions)?;
        let variants = BackendVariant::all(&measure.variant, &measure.backend, &[DIRECT, DEPTH])?;
        for backend in &chosen {
            check_runs_something(backend, &benchmarks)?;
        }
        if access.bare && !benchmarks.iter().any(|benchmark| benchmark.has_bare_loop()) {
            return Err(UsageError::new(
                "--bare has no effect: none of the named benchmarks makes blocking calls at known offsets, the only ones with bare loops",
                "Leave it out, or name one of *_Indv and *_Expl with blocking calls, e.g. S_Read_Expl.",
            ));
        }
        Ok(ImbConfig {
            benchmarks: benchmarks.iter().map(|benchmark| benchmark.name.to_owned()).collect(),
            backends: measure.backend.iter().chain(variants.iter().map(|variant| &variant.backend)).cloned().collect(),
            variants,
            path: measure.path.clone(),
            run_dir: measure.run_dir.clone(),
            keep_files: measure.keep_files,
            out: self.output.out.clone(),
            npmin: measure.npmin,
            multi: measure.multi,
            sizes: sizes(measure)?,
            iterations: repetitions,
            repeat,
            until_share,
            time_limit: measure.limit.time_limit,
            modes: measure.aggregate_mode,
            file: Some(measure.file),
            buffers: Some(measure.buffers),
            hints: all_hints(access)?,
            unique_open: access.unique_open,
            cache: access.cache,
            direct: access.direct,
            dio_align_bytes: access.alignment.dio_align,
            storage: storage_parameters(&measure.sheet)?,
            stripe: measure.sheet.stripe,
            queue_depth: access.depth.unwrap_or(DEFAULT_DEPTH),
            bind: access.ranks.policy(BindPolicy::Auto),
            seed: access.seed,
            bare: access.bare,
            inject: access.inject.is_requested(),
        })
    }

    fn backends<'a>(&self, known: &[BackendCapabilities<'a>]) -> Result<Vec<BackendCapabilities<'a>>, UsageError> {
        let usable: Vec<_> = known.iter().copied().filter(|backend| backend.grows_files).collect();
        let asked = &self.measure.backend;
        if let Some(backend) =
            known.iter().find(|backend| !backend.grows_files && asked.iter().any(|n| n == backend.name))
        {
            return Err(UsageError::new(
                format!(
                    "--backend {}: a mapping cannot write beyond the end of a file, and the files of these benchmarks grow",
                    backend.name
                ),
                format!("Choose from: {}.", backend_names(&usable, |_| true)),
            ));
        }
        let variants = &self.measure.variant;
        if self.output.imb_format && asked.len() + variants.len() > 1 {
            let what = if variants.is_empty() { join(asked) } else { "--variant".to_owned() };
            return Err(UsageError::new(
                format!("--imb-format: the columns of the release cannot show several backends ({what})"),
                "Name one backend, or leave --imb-format out.",
            ));
        }
        backends(asked, &usable)
    }

    fn benchmarks(&self) -> Result<Vec<&'static ImbBenchmark>, UsageError> {
        let measure = &self.measure;
        let mut names = self.names.clone();
        if let Some(path) = &measure.input {
            let of_file = names_in_text(&read("--input", path)?);
            if of_file.is_empty() {
                return Err(UsageError::new(
                    format!("--input {}: no benchmark is named in it", path.display()),
                    "Write names separated by blanks or line ends, or leave the option out to run the default list.",
                ));
            }
            let named = |error| refuse(&format!("--input {}: ", path.display()), error);
            of_file.iter().try_for_each(|name| find(name).map(drop).map_err(named))?;
            names.extend(of_file);
        }
        let refuse = |error| refuse("", error);
        let chosen = select(&names, &measure.include, &[]).map_err(refuse)?;
        for name in &measure.exclude {
            if !chosen.contains(&find(name).map_err(refuse)?) {
                return Err(UsageError::new(
                    format!("--exclude {name}: it would not run anyway"),
                    "Leave it out; separate the names of one list by commas.",
                ));
            }
        }
        select(&names, &measure.include, &measure.exclude).map_err(refuse)
    }
}

fn refuse(place: &str, error: PlanningError) -> UsageError {
    UsageError::new(
        format!("{place}{}", cause_text(error)),
        "`beff-raw imb --list` shows all names; write several with commas or blanks.",
    )
}

fn check_access(
    access: &ImbAccessArgs,
    chosen: &[BackendCapabilities<'_>],
    known: &[BackendCapabilities<'_>],
) -> Result<(), UsageError> {
    check_direct(access.direct, chosen, known)?;
    check_dio_align(access.alignment.dio_align, access.direct, chosen, known)?;
    let needs_mpi = [
        (!access.hint.is_empty(), "--hint"),
        (access.hints.is_some(), "--hints"),
        (access.unique_open, "--unique-open"),
        (access.bare, "--bare"),
    ];
    for (given, option) in needs_mpi {
        check_option_effect(given, option, chosen, known, |backend| backend.mpi)?;
    }
    check_option_effect(access.depth.is_some(), "--depth", chosen, known, |backend| backend.queue)
}

fn check_runs_something(
    backend: &BackendCapabilities<'_>,
    benchmarks: &[&'static ImbBenchmark],
) -> Result<(), UsageError> {
    if benchmarks.iter().any(|benchmark| backend.runs(benchmark)) {
        return Ok(());
    }
    let of_mpi = "collective calls, shared file pointers and opening exist in MPI-IO only";
    let why = if benchmarks.iter().all(|benchmark| benchmark.needs_mpi_file()) {
        of_mpi.to_owned()
    } else {
        format!("it keeps no transfer in flight while the program computes; {of_mpi}")
    };
    Err(UsageError::new(
        format!("--backend: {} supports none of the named benchmarks: {why}", backend.name),
        "Leave this backend out, or name a benchmark that it supports (`beff-raw imb --list`).",
    ))
}

fn sizes(measure: &ImbMeasureArgs) -> Result<SampleSizes, UsageError> {
    match (&measure.msglen, &measure.msglog) {
        (Some(path), _) => SampleSizes::from_list(&read("--msglen", path)?).map_err(|error| {
            UsageError::new(
                format!("--msglen {}: {}", path.display(), cause_text(error)),
                "Write sizes in bytes, or with K, M or G; # begins a comment.",
            )
        }),
        (None, Some(logs)) => SampleSizes::from_logs(logs).map_err(|error| {
            UsageError::new(format!("--msglog {logs}: {}", cause_text(error)), "Write exponents of two, e.g. 12:22.")
        }),
        (None, None) => Ok(SampleSizes::default()),
    }
}

fn iteration_rule(measure: &ImbMeasureArgs) -> Result<IterationRule, UsageError> {
    let mut rule = IterationRule::default();
    rule.limit_seconds = measure.time.unwrap_or(rule.limit_seconds);
    let mut of_iter = None;
    if let Some(text) = &measure.iter {
        rule = rule.with_iter(text).map_err(|error| {
            UsageError::new(
                format!("--iter {text}: {}", cause_text(error)),
                "Write e.g. --iter 100, or --iter 100,40,10.",
            )
        })?;
        of_iter = text.split(',').nth(3).map(|_| rule.policy);
    }
    rule.policy = match (of_iter, measure.iter_policy) {
        (Some(a), Some(b)) if a != b => return Err(two_policies(a, b)),
        (_, typed) => typed.unwrap_or(rule.policy),
    };
    if measure.time.is_some() && !rule.policy.is_timed() {
        let policy = rule.policy.name();
        return Err(UsageError::new(
            format!("--time has no effect with the policy '{policy}', which has no time limit"),
            format!("Leave --time out, or use --iter-policy {}.", IterationPolicy::Dynamic.name()),
        ));
    }
    rule.check().map(|()| rule).map_err(|error| UsageError::new(cause_text(error), "Leave --iter and --time out."))
}

/// Rounds of repetitions with variants whose rows have no time limit.
const VARIANT_ROUNDS: u64 = 6;

/// Variants are repeated by default: a comparison needs an interval.
fn repeat_policy(measure: &ImbMeasureArgs, rule: &IterationRule) -> RepetitionPolicy {
    let default = match (measure.variant.is_empty(), rule.policy.is_timed()) {
        (true, _) => RepetitionPolicy::Off,
        (false, true) => RepetitionPolicy::Auto,
        (false, false) => RepetitionPolicy::Times(VARIANT_ROUNDS),
    };
    measure.repeat.unwrap_or(default)
}

fn until_share(
    measure: &ImbMeasureArgs,
    repeat: RepetitionPolicy,
    rule: &IterationRule,
) -> Result<Option<f64>, UsageError> {
    match repeat {
        RepetitionPolicy::Off if measure.until.is_some() => Err(UsageError::new(
            "--until ends the repetitions of a row, and without --repeat there are none",
            "Add --repeat auto, or leave --until out.",
        )),
        RepetitionPolicy::Auto if !rule.policy.is_timed() => Err(UsageError::new(
            format!("--repeat auto ends by the time limit of a row, and the policy '{}' has none", rule.policy.name()),
            format!("Give a number with --repeat N, or use --iter-policy {}.", IterationPolicy::Dynamic.name()),
        )),
        RepetitionPolicy::Auto => Ok(Some(measure.until.unwrap_or(DEFAULT_UNTIL_SHARE))),
        RepetitionPolicy::Off | RepetitionPolicy::Times(_) => Ok(measure.until),
    }
}

fn two_policies(a: IterationPolicy, b: IterationPolicy) -> UsageError {
    UsageError::new(
        format!("--iter requests the policy '{}', --iter-policy '{}'", a.name(), b.name()),
        "Leave one of the two out.",
    )
}

/// Hints of the file first: later ones override.
fn all_hints(access: &ImbAccessArgs) -> Result<Vec<(String, String)>, UsageError> {
    let mut all = access.hints.as_deref().map_or_else(|| Ok(Vec::new()), read_hints)?;
    all.extend(access.hint.iter().cloned());
    let pairs = all.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    hints::check_limits(pairs).map_err(|cause| {
        UsageError::new(
            format!("--hint and --hints: {cause}"),
            "Give only the hints to test, in one run or in several.",
        )
    })?;
    Ok(all)
}

fn read_hints(path: &Path) -> Result<Vec<(String, String)>, UsageError> {
    let text = read("--hints", path)?;
    let refuse = |line: usize, cause: &str| {
        UsageError::new(
            format!("--hints {}: line {line}: {cause}", path.display()),
            "Write lines of the form: <key> <value>; # begins a comment line.",
        )
    };
    let mut all = Vec::new();
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if hints::is_rule_line(line) {
            return Err(refuse(
                number,
                "written for the hints file of `io`, with partition, access, type and chunk size",
            ));
        }
        let (key, value) =
            line.split_once(char::is_whitespace).ok_or_else(|| refuse(number, "a key without a value"))?;
        all.push((key.to_owned(), value.trim_start().to_owned()));
    }
    if all.is_empty() {
        return Err(UsageError::new(
            format!("--hints {}: no hint in it", path.display()),
            "Write lines with key and value, or leave the option out.",
        ));
    }
    Ok(all)
}

fn read(option: &str, path: &Path) -> Result<String, UsageError> {
    input::read_text(path).map_err(|error| {
        UsageError::new(
            format!("{option} {}: cannot be read: {error}", path.display()),
            "Name a text file that rank 0 can read.",
        )
    })
}

/// Cause of an error without its prefix.
fn cause_text(error: PlanningError) -> String {
    match error {
        PlanningError::Argument { what } => what,
        other => other.to_string(),
    }
}

#[cfg(test)]
#[path = "config_build_tests.rs"]
mod tests;
