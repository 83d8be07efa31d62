//! What `beff-raw replay` will run, from what was typed.

use crate::frame::checks::{backends, check_direct, check_effect, check_out, check_run_dir, names, KnownBackend};
use crate::frame::config::BindPolicy;
use crate::frame::error::UsageError;
use crate::frame::hints;
use crate::replay::cli::ReplayArgs;
use crate::replay::config::{Detail, Pace, ReplayConfig};

impl ReplayArgs {
    /// The configuration of this command line; `can` says whether the backend of a name replays programs. Touches no file.
    ///
    /// # Errors
    /// The first thing that cannot be run.
    pub fn config(&self, known: &[KnownBackend<'_>], can: impl Fn(&str) -> bool) -> Result<ReplayConfig, UsageError> {
        let (measure, access, output) = (&self.measure, &self.access, &self.output);
        let chosen = backends(&measure.backend, known)?;
        if let Some(backend) = chosen.iter().find(|backend| !can(backend.name)) {
            return Err(UsageError::new(
                format!("--backend {}: it cannot replay programs", backend.name),
                format!("Choose from: {}.", names(known, |backend| can(backend.name))),
            ));
        }
        check_direct(access.direct, &chosen, known)?;
        check_effect(!access.hint.is_empty(), "--hint", &chosen, known, |backend| backend.mpi)?;
        let pairs = access.hint.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        hints::check_amount(pairs).map_err(|cause| {
            UsageError::new(format!("--hint: {cause}"), "Give those that are to be tried, in one run or in several.")
        })?;
        measure.run_dir.as_deref().map_or(Ok(()), check_run_dir)?;
        output.out.as_deref().map_or(Ok(()), check_out)?;
        if measure.scale.is_some() && measure.pace != Pace::Absolute {
            return Err(UsageError::new(
                "--scale has no effect without --pace absolute",
                "Leave it out, or add --pace absolute.",
            ));
        }
        let detail = output.detail.unwrap_or(Detail::Function);
        if detail == Detail::Request && output.out.is_none() && !output.plan {
            return Err(UsageError::new(
                "--detail request writes a line for each call, and there is no --out to write to",
                "Add --out PREFIX, or take --detail process.",
            ));
        }
        if access.damage.is_asked() && !access.verify {
            return Err(UsageError::new("--inject has no effect with --verify=off", "Leave one of the two out."));
        }
        Ok(ReplayConfig {
            profile: self.profile.clone(),
            backends: measure.backend.clone(),
            path: measure.path.clone(),
            run_dir: measure.run_dir.clone(),
            keep_files: measure.keep_files,
            out: output.out.clone(),
            pace: measure.pace,
            scale: measure.scale.unwrap_or(1.0),
            repeat: measure.repeat,
            cache: access.cache,
            hints: access.hint.clone(),
            direct: access.direct,
            verify: access.verify,
            detail,
            // A program is replayed where its launcher has put it: a replay that is placed better than what was recorded is faster
            // than it for another reason than the storage.
            bind: access.ranks.policy(BindPolicy::None),
            seed: access.seed,
            inject: access.damage.is_asked(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::benchmark::of_words;
    use crate::frame::command::known_backends;

    fn config(options: &str) -> Result<ReplayConfig, UsageError> {
        of_words::<ReplayArgs>(options.split_whitespace()).config(&known_backends(), |name| name != "mmap")
    }

    #[test]
    fn defaults_are_the_documented_ones() {
        let config = config("app.csv").unwrap();
        assert_eq!((config.pace, config.repeat, config.verify), (Pace::Fast, 1, true));
        assert_eq!((config.detail, config.backends), (Detail::Function, vec!["mpiio".to_owned()]));
    }

    #[test]
    fn what_has_no_effect_is_refused_with_a_next_step() {
        for (options, cause, next_step) in [
            ("app.csv --backend mmap", "mmap: it cannot replay", "Choose from: mpiio, posix"),
            ("app.csv --scale 2", "--scale has no effect", "--pace absolute"),
            ("app.csv --detail request", "no --out", "--out PREFIX"),
            ("app.csv --inject --verify=off", "--inject has no effect", "Leave one"),
            ("app.csv --run-dir ../x", "not a plain name", "without '/'"),
            ("app.csv --backend mpiio,mpiio", "listed twice", "once"),
            ("app.csv --backend posix --hint cb_nodes=2", "--hint has no effect", "mpiio"),
            ("app.csv --direct required", "cannot be asked for direct", "posix, uring"),
        ] {
            let error = config(options).unwrap_err();
            assert!(error.cause.contains(cause) && error.next_step.contains(next_step), "{options}: {error}");
        }
        assert!(!config("app.csv --verify=off").unwrap().verify);
        assert!(config("--verify app.csv").unwrap().verify);
        assert_eq!(config("app.csv --pace absolute --scale 0.5").unwrap().scale, 0.5);
    }
}
