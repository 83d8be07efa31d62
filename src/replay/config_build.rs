//! Configuration of `beff-raw replay` from the command line.

use crate::frame::checks::{
    backend_names, backends, check_dio_align, check_direct, check_option_effect, check_out, check_run_dir,
    storage_parameters, BackendCapabilities,
};
use crate::frame::config::BindPolicy;
use crate::frame::error::UsageError;
use crate::frame::hints;
use crate::frame::variants::{BackendVariant, DIRECT};
use crate::replay::cli::{ReplayAccessArgs, ReplayArgs};
use crate::replay::config::{Detail, Pace, ReplayConfig, WhatIf};

/// Timed repetitions, and those of a comparison (--what-if, --variant): enough for an interval.
const REPEAT: u64 = 1;
const COMPARISON_REPEAT: u64 = 7;

impl ReplayArgs {
    /// The configuration of this command line; `can` is true for a backend that replays programs. Accesses no file.
    ///
    /// # Errors
    /// The first invalid option.
    pub fn config(
        &self,
        known: &[BackendCapabilities<'_>],
        can: impl Fn(&str) -> bool,
    ) -> Result<ReplayConfig, UsageError> {
        let (measure, access, output) = (&self.measure, &self.access, &self.output);
        let chosen = backends(&measure.backend, known)?;
        if let Some(backend) = chosen.iter().find(|backend| !can(backend.name)) {
            return Err(UsageError::new(
                format!("--backend {}: it cannot replay programs", backend.name),
                format!("Choose from: {}.", backend_names(known, |backend| can(backend.name))),
            ));
        }
        check_direct(access.direct, &chosen, known)?;
        check_dio_align(access.alignment.dio_align, access.direct, &chosen, known)?;
        check_option_effect(!access.hint.is_empty(), "--hint", &chosen, known, |backend| backend.mpi)?;
        check_change(measure.what_if.as_ref(), &chosen, known)?;
        let variants = self.variants()?;
        let compares = measure.what_if.is_some() || !variants.is_empty();
        let repeat = measure.repeat.unwrap_or(if compares { COMPARISON_REPEAT } else { REPEAT });
        let changed = measure.what_if.as_ref().map_or(&[][..], WhatIf::hints);
        let pairs = access.hint.iter().chain(changed).map(|(key, value)| (key.as_str(), value.as_str()));
        hints::check_limits(pairs).map_err(|cause| {
            UsageError::new(format!("--hint: {cause}"), "Give only the hints to be tested, in one run or in several.")
        })?;
        measure.run_dir.as_deref().map_or(Ok(()), check_run_dir)?;
        output.out.as_deref().map_or(Ok(()), check_out)?;
        let detail = output.detail.unwrap_or(Detail::Function);
        self.check_output(detail)?;
        check_verify(repeat, access)?;
        let changed_name = measure.what_if.as_ref().map(|change| change.name().to_owned());
        let contestants = measure.backend.iter().chain(variants.iter().map(|variant| &variant.backend)).cloned();
        let backends = contestants.chain(changed_name).collect();
        Ok(ReplayConfig {
            profile: self.profile.clone(),
            backends,
            variants,
            what_if: measure.what_if.clone(),
            path: measure.path.clone(),
            run_dir: measure.run_dir.clone(),
            keep_files: measure.keep_files,
            out: output.out.clone(),
            pace: measure.pace,
            scale: measure.scale.unwrap_or(1.0),
            repeat,
            time_limit: measure.limit.time_limit,
            cache: access.cache,
            hints: access.hint.clone(),
            direct: access.direct,
            dio_align_bytes: access.alignment.dio_align,
            storage: storage_parameters(&self.measure.sheet)?,
            stripe: self.measure.sheet.stripe,
            verify: access.verify,
            detail,
            // The launcher determines the placement: a replay with better placement than the recording would be faster for another reason
            // than the storage.
            bind: access.ranks.policy(BindPolicy::None),
            seed: access.seed,
            inject: access.injection.is_requested(),
        })
    }
}

impl ReplayArgs {
    fn check_output(&self, detail: Detail) -> Result<(), UsageError> {
        let (measure, output) = (&self.measure, &self.output);
        if measure.scale.is_some() && measure.pace != Pace::Absolute {
            return Err(UsageError::new(
                "--scale has no effect without --pace absolute",
                "Omit it, or add --pace absolute.",
            ));
        }
        if detail == Detail::Request && output.out.is_none() && !output.plan {
            return Err(UsageError::new(
                "--detail request writes a line for each call and needs --out, but no --out is given",
                "Add --out PREFIX, or use --detail process.",
            ));
        }
        Ok(())
    }

    fn variants(&self) -> Result<Vec<BackendVariant>, UsageError> {
        let measure = &self.measure;
        if measure.what_if.is_some() && !measure.variant.is_empty() {
            return Err(UsageError::new(
                "--what-if and --variant: each compares with the calls as they are, so they cannot be told apart in one run",
                "Give the hints of --what-if hints=... as a further --variant, or start two runs.",
            ));
        }
        BackendVariant::all(&measure.variant, &measure.backend, &[DIRECT])
    }
}

fn check_verify(repeat: u64, access: &ReplayAccessArgs) -> Result<(), UsageError> {
    let cause = match (access.verify, repeat, access.injection.is_requested()) {
        (false, 0, _) => "--repeat 0 with --verify=off does nothing",
        (false, _, true) => "--inject has no effect with --verify=off",
        _ => return Ok(()),
    };
    Err(UsageError::new(cause, "Omit one of the two."))
}

fn check_change(
    change: Option<&WhatIf>,
    chosen: &[BackendCapabilities<'_>],
    known: &[BackendCapabilities<'_>],
) -> Result<(), UsageError> {
    let Some(change) = change else { return Ok(()) };
    let option = format!("--what-if {}", change.name());
    if chosen.len() > 1 {
        return Err(UsageError::new(
            format!("{option} compares two replays with one backend, but {} are given", chosen.len()),
            "Start it with each backend by itself.",
        ));
    }
    match change {
        WhatIf::Hints(_) | WhatIf::Collective => {
            check_option_effect(true, &option, chosen, known, |backend| backend.mpi)
        }
        WhatIf::FillNever => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::benchmark::options_from_words;
    use crate::frame::command::backend_capabilities;
    use crate::frame::config::DirectPolicy;

    fn config(options: &str) -> Result<ReplayConfig, UsageError> {
        options_from_words::<ReplayArgs>(options.split_whitespace())
            .config(&backend_capabilities(), |name| name != "mmap")
    }

    #[test]
    fn defaults_are_the_documented_ones() {
        let config = config("app.csv").unwrap();
        assert_eq!((config.pace, config.repeat, config.verify), (Pace::Fast, 1, true));
        assert_eq!((config.detail, config.backends), (Detail::Function, vec!["mpiio".to_owned()]));
    }

    #[test]
    fn a_change_is_a_second_contestant_with_the_backend_of_the_first() {
        let config = config("app.csv --what-if hints=cb_nodes=2,a=b=c --hint x=y --hint a=1").unwrap();
        assert_eq!((config.repeat, &config.backends[..]), (7, &["mpiio".to_owned(), "hints".to_owned()][..]));
        assert_eq!(["mpiio", "hints", "posix"].map(|name| config.backend_of(name)), ["mpiio", "mpiio", "posix"]);
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(config.hints_of("mpiio"), [pair("x", "y"), pair("a", "1")]);
        assert_eq!(config.hints_of("hints"), [pair("x", "y"), pair("cb_nodes", "2"), pair("a", "b=c")]);
        assert_eq!(config.what_if.unwrap().text(), "hints=cb_nodes=2,a=b=c");
        for (text, cause) in [
            ("align=1M", "H5Pset_alignment"),
            ("align", "striping_unit"),
            ("hints", "the known changes are"),
            ("hints=", "write a key and its value"),
            ("hints=a=1,,b=2", "write a key and its value"),
            ("nothing", "the known changes are"),
        ] {
            let error = text.parse::<WhatIf>().unwrap_err();
            assert!(error.contains(cause), "{text}: {error}");
        }
    }

    #[test]
    fn variants_are_contestants_with_options_of_their_own() {
        let given =
            "app.csv --backend mpiio,posix --hint a=1 --variant two:a=2,b=3 --variant raw:backend=posix,direct=auto";
        let config = config(given).unwrap();
        assert_eq!(
            (config.repeat, &config.backends[..]),
            (7, &["mpiio", "posix", "mpiio+two", "posix+raw"].map(str::to_owned)[..])
        );
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(config.hints_of("mpiio+two"), [pair("a", "2"), pair("b", "3")]);
        assert_eq!(config.hints_of("mpiio"), [pair("a", "1")]);
        assert_eq!((config.backend_of("posix+raw"), config.first_direct()), ("posix", Some("posix+raw")));
        assert_eq!(["posix", "posix+raw"].map(|name| config.direct_of(name)), [DirectPolicy::Off, DirectPolicy::Auto]);
    }

    #[test]
    fn ineffective_options_are_rejected_with_a_next_step() {
        for (options, cause, next_step) in [
            ("app.csv --backend mmap", "mmap: it cannot replay", "Choose from: mpiio, posix"),
            ("app.csv --scale 2", "--scale has no effect", "--pace absolute"),
            ("app.csv --detail request", "no --out", "--out PREFIX"),
            ("app.csv --inject --verify=off", "--inject has no effect", "Omit one"),
            ("app.csv --run-dir ../x", "not a plain name", "without '/'"),
            ("app.csv --backend mpiio,mpiio", "listed twice", "once"),
            ("app.csv --backend posix --hint cb_nodes=2", "--hint has no effect", "mpiio"),
            ("app.csv --direct required", "cannot do direct", "posix, uring"),
            ("app.csv --what-if hints=cb_nodes=2 --backend posix", "--what-if hints has no effect", "mpiio"),
            ("app.csv --what-if collective --backend posix", "--what-if collective has no effect", "mpiio"),
            ("app.csv --what-if hints=cb_nodes=2 --backend mpiio,posix", "with one backend, but 2", "by itself"),
            ("app.csv --variant a:direct=auto", "direct has no effect: mpiio", "backend=NAME"),
            ("app.csv --backend posix --variant a:depth=4", "depth is no option", "Options are backend, direct;"),
            ("app.csv --variant a: --what-if hints=cb_nodes=2", "--what-if and --variant", "two runs"),
        ] {
            let error = config(options).unwrap_err();
            assert!(error.cause.contains(cause) && error.next_step.contains(next_step), "{options}: {error}");
        }
        assert!(!config("app.csv --verify=off").unwrap().verify);
        assert!(config("--verify app.csv").unwrap().verify);
        assert_eq!(config("app.csv --pace absolute --scale 0.5").unwrap().scale, 0.5);
    }
}
