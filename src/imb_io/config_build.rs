//! What `beff-raw imb` will run.

use std::path::Path;

use crate::frame::checks::{backends, check_direct, check_effect, check_out, check_run_dir, join, names, KnownBackend};
use crate::frame::config::{BindPolicy, Repeat};
use crate::frame::error::UsageError;
use crate::frame::hints;
use crate::frame::input;
use crate::imb_io::cli::{ImbAccessArgs, ImbArgs, ImbMeasureArgs};
use crate::imb_io::config::ImbConfig;
use crate::imb_io::plan::names::{find, in_text, select};
use crate::imb_io::plan::PlanError;
use crate::imb_io::plan::{Benchmark, Policy, Repetitions, Sizes};

/// Reach at which `--repeat auto` is content when nothing else is said.
const UNTIL_SHARE: f64 = 0.05;

/// Operations in flight at most when nothing else is said.
pub const DEFAULT_DEPTH: u32 = 32;

impl KnownBackend<'_> {
    /// Whether this backend can do what the benchmark measures: MPI-IO can do everything; the others know offsets and
    /// lengths, and need a queue to leave a transfer under way.
    #[must_use]
    pub fn runs(&self, benchmark: &Benchmark) -> bool {
        let transfers = self.grows_files && !benchmark.needs_mpi_file();
        self.mpi || (transfers && (self.queue || !benchmark.has_overlap()))
    }
}

impl ImbArgs {
    /// The configuration of this command line. Reads the files that it names, touches nothing else.
    ///
    /// # Errors
    /// The first thing that cannot be run.
    pub fn config(&self, known: &[KnownBackend<'_>]) -> Result<ImbConfig, UsageError> {
        let (measure, access) = (&self.measure, &self.access);
        let chosen = self.backends(known)?;
        check_access(access, &chosen, known)?;
        measure.run_dir.as_deref().map_or(Ok(()), check_run_dir)?;
        self.output.out.as_deref().map_or(Ok(()), check_out)?;
        let benchmarks = self.benchmarks()?;
        let repetitions = repetitions(measure)?;
        let until_share = until(measure, &repetitions)?;
        for backend in &chosen {
            check_runs_something(backend, &benchmarks)?;
        }
        Ok(ImbConfig {
            benchmarks: benchmarks.iter().map(|benchmark| benchmark.name.to_owned()).collect(),
            backends: measure.backend.clone(),
            path: measure.path.clone(),
            run_dir: measure.run_dir.clone(),
            keep_files: measure.keep_files,
            out: self.output.out.clone(),
            npmin: measure.npmin,
            multi: measure.multi,
            sizes: sizes(measure)?,
            repetitions,
            repeat: measure.repeat,
            until_share,
            modes: measure.aggregate_mode,
            file: Some(measure.file),
            buffers: Some(measure.buffers),
            hints: all_hints(access)?,
            unique_open: access.unique_open,
            cache: access.cache,
            direct: access.direct,
            queue_depth: access.depth.unwrap_or(DEFAULT_DEPTH),
            bind: access.ranks.policy(BindPolicy::Auto),
            seed: access.seed,
            bare: access.bare,
            inject: access.damage.is_asked(),
        })
    }

    fn backends<'a>(&self, known: &[KnownBackend<'a>]) -> Result<Vec<KnownBackend<'a>>, UsageError> {
        let usable: Vec<_> = known.iter().copied().filter(|backend| backend.grows_files).collect();
        let asked = &self.measure.backend;
        if let Some(backend) =
            known.iter().find(|backend| !backend.grows_files && asked.iter().any(|n| n == backend.name))
        {
            return Err(UsageError::new(
                format!("--backend {}: a mapping cannot write behind the end of a file, and the files of these benchmarks grow", backend.name),
                format!("Choose from: {}.", names(&usable, |_| true)),
            ));
        }
        if self.output.imb_format && asked.len() > 1 {
            return Err(UsageError::new(
                format!(
                    "--imb-format: the columns of the release have no place for several backends ({})",
                    join(asked)
                ),
                "Name one backend, or leave --imb-format out.",
            ));
        }
        backends(asked, &usable)
    }

    fn benchmarks(&self) -> Result<Vec<&'static Benchmark>, UsageError> {
        let measure = &self.measure;
        let mut names = self.names.clone();
        if let Some(path) = &measure.input {
            let of_file = in_text(&read("--input", path)?);
            if of_file.is_empty() {
                return Err(UsageError::new(
                    format!("--input {}: no benchmark is named there", path.display()),
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
                    "Leave it out; if names of one list are meant, join them by commas.",
                ));
            }
        }
        select(&names, &measure.include, &measure.exclude).map_err(refuse)
    }
}

fn refuse(place: &str, error: PlanError) -> UsageError {
    UsageError::new(
        format!("{place}{}", what(error)),
        "`beff-raw imb --list` shows all names; write several with commas or blanks.",
    )
}

fn check_access(
    access: &ImbAccessArgs,
    chosen: &[KnownBackend<'_>],
    known: &[KnownBackend<'_>],
) -> Result<(), UsageError> {
    check_direct(access.direct, chosen, known)?;
    let needs_mpi = [
        (!access.hint.is_empty(), "--hint"),
        (access.hints.is_some(), "--hints"),
        (access.unique_open, "--unique-open"),
        (access.bare, "--bare"),
    ];
    for (given, option) in needs_mpi {
        check_effect(given, option, chosen, known, |backend| backend.mpi)?;
    }
    check_effect(access.depth.is_some(), "--depth", chosen, known, |backend| backend.queue)
}

fn check_runs_something(backend: &KnownBackend<'_>, benchmarks: &[&'static Benchmark]) -> Result<(), UsageError> {
    if benchmarks.iter().any(|benchmark| backend.runs(benchmark)) {
        return Ok(());
    }
    let of_mpi = "collective calls, shared file pointers and opening are those of MPI";
    let why = if benchmarks.iter().all(|benchmark| benchmark.needs_mpi_file()) {
        of_mpi.to_owned()
    } else {
        format!("it leaves no transfer under way while the program computes; {of_mpi}")
    };
    Err(UsageError::new(
        format!("--backend: {} can run none of the benchmarks named: {why}", backend.name),
        "Leave this backend out, or name a benchmark that it can run (`beff-raw imb --list`).",
    ))
}

fn sizes(measure: &ImbMeasureArgs) -> Result<Sizes, UsageError> {
    match (&measure.msglen, &measure.msglog) {
        (Some(path), _) => Sizes::from_list(&read("--msglen", path)?).map_err(|error| {
            UsageError::new(
                format!("--msglen {}: {}", path.display(), what(error)),
                "Write sizes in bytes, or with K, M or G; # begins a comment.",
            )
        }),
        (None, Some(logs)) => Sizes::from_logs(logs).map_err(|error| {
            UsageError::new(format!("--msglog {logs}: {}", what(error)), "Write exponents of two, e.g. 12:22.")
        }),
        (None, None) => Ok(Sizes::default()),
    }
}

fn repetitions(measure: &ImbMeasureArgs) -> Result<Repetitions, UsageError> {
    let mut rule = Repetitions::default();
    rule.limit_seconds = measure.time.unwrap_or(rule.limit_seconds);
    let mut of_iter = None;
    if let Some(text) = &measure.iter {
        rule = rule.with_iter(text).map_err(|error| {
            UsageError::new(format!("--iter {text}: {}", what(error)), "Write e.g. --iter 100, or --iter 100,40,10.")
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
            format!("--time has no effect with the policy '{policy}', which knows no time limit"),
            format!("Leave --time out, or take --iter-policy {}.", Policy::Dynamic.name()),
        ));
    }
    rule.check().map(|()| rule).map_err(|error| UsageError::new(what(error), "Leave --iter and --time out."))
}

/// When a row is known well enough.
fn until(measure: &ImbMeasureArgs, rule: &Repetitions) -> Result<Option<f64>, UsageError> {
    match measure.repeat {
        Repeat::Off if measure.until.is_some() => Err(UsageError::new(
            "--until says when a row is measured no more, and without --repeat none is measured again",
            "Add --repeat auto, or leave --until out.",
        )),
        Repeat::Auto if !rule.policy.is_timed() => Err(UsageError::new(
            format!(
                "--repeat auto ends by the time limit of a row, and the policy '{}' knows none",
                rule.policy.name()
            ),
            format!("Say how often with --repeat N, or take --iter-policy {}.", Policy::Dynamic.name()),
        )),
        Repeat::Auto => Ok(Some(measure.until.unwrap_or(UNTIL_SHARE))),
        Repeat::Off | Repeat::Times(_) => Ok(measure.until),
    }
}

fn two_policies(a: Policy, b: Policy) -> UsageError {
    UsageError::new(
        format!("--iter asks for the policy '{}', --iter-policy for '{}'", a.name(), b.name()),
        "Leave one of the two out.",
    )
}

/// Those of the file first: later ones win.
fn all_hints(access: &ImbAccessArgs) -> Result<Vec<(String, String)>, UsageError> {
    let mut all = access.hints.as_deref().map_or_else(|| Ok(Vec::new()), read_hints)?;
    all.extend(access.hint.iter().cloned());
    let pairs = all.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    hints::check_amount(pairs).map_err(|cause| {
        UsageError::new(
            format!("--hint and --hints: {cause}"),
            "Give those that are to be tried, in one run or in several.",
        )
    })?;
    Ok(all)
}

fn read_hints(path: &Path) -> Result<Vec<(String, String)>, UsageError> {
    let text = read("--hints", path)?;
    let refuse = |line: usize, cause: &str| {
        UsageError::new(
            format!("--hints {}: line {line}: {cause}", path.display()),
            "Lines are: <key> <value>; # begins a line that is a comment.",
        )
    };
    let mut all = Vec::new();
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if hints::is_rule(line) {
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
            format!("--hints {}: no hint is there", path.display()),
            "Write lines with key and value, or leave the option out.",
        ));
    }
    Ok(all)
}

fn read(option: &str, path: &Path) -> Result<String, UsageError> {
    input::text(path).map_err(|error| {
        UsageError::new(
            format!("{option} {}: cannot be read: {error}", path.display()),
            "Name a text file that rank 0 can read.",
        )
    })
}

/// What cannot be planned, without the words that say so.
fn what(error: PlanError) -> String {
    match error {
        PlanError::Argument { what } => what,
        other => other.to_string(),
    }
}

#[cfg(test)]
#[path = "config_build_tests.rs"]
mod tests;
