//! Trials of b_eff_io: patterns with different settings, which are those of `--variant`.

use anyhow::anyhow;
use beff_ffi::{Comm, MpiError};

use super::cli::IoArgs;
use super::command::build_plan;
use super::config::{RepeatPolicy, SpaceLimit};
use super::pattern_type::PatternType;
use super::plan::patterns::patterns;
use super::plan::trials::select;
use super::plan::PatternSpec;
use super::report::layout::{access_label, chunk_label, PATTERN_OUTSIDE_TABLE};
use super::run::drivers::driver_options;
use super::run::trials::work::{NamedPattern, TrialWork};
use super::run::trials::{PatternTrials, TrialContestant, TrialPlace};
use crate::frame::backends::{self, VARIANT_MARK};
use crate::frame::benchmark::default_options;
use crate::frame::checks::join;
use crate::frame::command::start::{self, CommandError};
use crate::frame::command::{backend_capabilities, directory};
use crate::frame::error::UsageError;
use crate::frame::rank_directories::RankDirectories;
use crate::frame::records::{RunOutcome, StorageRecord, Warning};
use crate::frame::run::interrupt::Interrupt;
use crate::frame::run::trials::{TrialOutcome, TrialRequest, TrialRunner};
use crate::frame::system::survey::Survey;
use crate::frame::trials::{Setting, TrialConfig, TrialGoal};
use crate::frame::variants::VariantOption;

/// Name of the variant that has the options of a setting.
const VARIANT: &str = "t";

/// Prepares trials: checks the configuration, creates the run directory. Collective.
///
/// # Errors
/// Everywhere: a configuration that cannot be measured here, a directory that cannot be created. MPI errors.
pub(crate) fn open_trials<'a>(
    world: &'a Comm,
    interrupt: &'a Interrupt,
    survey: &'a Survey,
    config: &TrialConfig,
) -> Result<Box<dyn TrialRunner + 'a>, CommandError> {
    let mut storage = start::survey_storage(world, &config.path)?;
    let args = start::collective_step(world, "configuration", || Ok(arguments(config)?))?;
    let options = SettingOptions { args, survey, storage: storage.clone(), ranks: world.size() };
    let default = start::collective_step(world, "plan", || options.contestant(&[]))?;
    let work = start::collective_step(world, "patterns", || Ok(choose_patterns(config, &default)?))?;
    let row = start::collective_step(world, "backend", || {
        backends::row(&config.backend).ok_or_else(|| anyhow!("this build has no backend {}", config.backend))
    })?;

    let names = [config.backend.clone(), format!("{}{VARIANT_MARK}{VARIANT}", config.backend)];
    let directories = RankDirectories::new(world.size(), default.config.files_per_directory);
    let run_name = config.run_dir.as_deref();
    let stripe = (storage.fs_type.as_str(), None);
    let (mut run_dir, _) =
        directory::create_run_directory(world, &config.path, run_name, (&names, directories), stripe, None)?;
    // A setting may be direct where the default is not.
    let direct = backends::supports(&config.backend, |row| row.can_direct).then_some(config.backend.as_str());
    directory::try_direct_io(world, &mut run_dir, &mut storage, direct, None)?;
    let of = |name: &str| driver_options(&default.config, &run_dir, name);
    if let Err(error) = start::skip_unavailable_backends(world, &run_dir, &names[..1], of) {
        if matches!(error, CommandError::Collective(_)) {
            let _ = directory::clean_up(world, &run_dir, false, RunOutcome::Failed);
        }
        return Err(error);
    }
    let name = work_name(config, &work);
    let trials = PatternTrials::new(TrialPlace { world, interrupt, run_dir, storage, row }, work, default)?;
    Ok(Box::new(IoTrials { world, name, options, trials }))
}

/// The options of `io` that measure the default.
fn arguments(config: &TrialConfig) -> Result<IoArgs, UsageError> {
    let mut args: IoArgs = default_options()?;
    args.measure.backend = vec![config.backend.clone()];
    args.measure.types.clone_from(&config.types);
    args.measure.path.clone_from(&config.path);
    args.measure.memory_per_process = config.memory_per_process_bytes;
    args.measure.space = config.space_bytes.map(SpaceLimit::Bytes);
    args.transfer.direct = config.direct;
    args.run.run_dir.clone_from(&config.run_dir);
    args.run.cache = config.cache;
    args.run.hint.clone_from(&config.hints);
    args.measure.rounds = Some(1);
    args.measure.repeat = Some(RepeatPolicy::Off);
    args.run.seed = config.seed;
    Ok(args)
}

/// Interprets settings on this machine.
struct SettingOptions<'a> {
    args: IoArgs,
    survey: &'a Survey,
    storage: StorageRecord,
    ranks: u64,
}

impl SettingOptions<'_> {
    /// The contestant of a setting; with an empty one the backend itself. Equal on all ranks.
    fn contestant(&self, setting: &[(String, String)]) -> anyhow::Result<TrialContestant> {
        let mut args = self.args.clone();
        if !setting.is_empty() {
            args.transfer.variant = vec![VariantOption::new(VARIANT, setting)];
        }
        let mut config = args.config_of_trials(&backend_capabilities())?;
        // A variant is measured alone, not beside its backend.
        config.backends.drain(..config.backends.len() - 1);
        let memory_bytes = self.survey.memory_per_rank_bytes;
        let plan = build_plan(&config, memory_bytes, self.survey, &self.storage, self.ranks)?;
        Ok(TrialContestant { config, plan })
    }

    /// The contestant of a setting, or why it cannot be measured.
    fn try_contestant(&self, setting: &[(String, String)]) -> Result<TrialContestant, String> {
        if let Some((key, value)) = setting.iter().find(|(key, value)| key.is_empty() || value.is_empty()) {
            return Err(format!("'{key}={value}' lacks a key or a value"));
        }
        let prefix = format!("--variant {VARIANT}: ");
        self.contestant(setting).map_err(|error| {
            let cause = error.downcast_ref::<UsageError>().map_or_else(|| format!("{error:#}"), |e| e.cause.clone());
            cause.strip_prefix(&prefix).map_or_else(|| cause.clone(), str::to_owned)
        })
    }
}

/// The patterns of the goal, and the others of the same types.
fn choose_patterns(config: &TrialConfig, default: &TrialContestant) -> Result<TrialWork, UsageError> {
    let table = patterns(default.plan.partitions[0].m_part_bytes);
    let all = select(&table, &default.config.types, &[]);
    for chunk in &config.chunks_bytes {
        if !all.iter().any(|spec| spec.chunk_bytes == *chunk) {
            let mut sizes: Vec<u64> = all.iter().map(|spec| spec.chunk_bytes).collect();
            sizes.sort_unstable();
            sizes.dedup();
            return Err(UsageError::new(
                format!("no pattern of {} has chunks of {chunk} bytes", types_label(&config.types)),
                format!("Choose from {} bytes.", join(sizes)),
            ));
        }
    }
    let mut chosen = select(&table, &default.config.types, &config.chunks_bytes);
    if let TrialGoal::Pattern(number) = config.goal {
        chosen.retain(|spec| spec.number == number);
        if chosen.is_empty() {
            return Err(UsageError::new(
                format!("pattern {number} is not among the types and chunk sizes that are measured, or has no time"),
                "Name its type and its chunk size, or choose another pattern; `beff-raw plan` lists them.",
            ));
        }
    }
    // One call of M_PART bytes may take longer than the rest of the search.
    let m_part_bytes = default.plan.partitions[0].m_part_bytes;
    let others = all.into_iter().filter(|spec| !chosen.contains(spec) && spec.chunk_bytes < m_part_bytes);
    let named = |spec: PatternSpec| NamedPattern { spec, name: pattern_name(&spec) };
    Ok(TrialWork {
        access: config.access,
        goal: config.goal,
        others: others.map(named).collect(),
        of_goal: chosen.into_iter().map(named).collect(),
    })
}

fn pattern_name(spec: &PatternSpec) -> String {
    let name = format!("type {}, {}", spec.pattern_type, chunk_label(spec.chunk_bytes));
    // Another pattern of type 0 has the same chunk size.
    if spec.number == PATTERN_OUTSIDE_TABLE {
        format!("{name} (calls of {})", chunk_label(spec.call_bytes))
    } else {
        name
    }
}

/// `type 0`, `types 0 and 2`.
fn types_label(types: &[u8]) -> String {
    let noun = if types.len() == 1 { "type" } else { "types" };
    format!("{noun} {}", listed(types.iter().map(u8::to_string)))
}

/// `a`, `a and b`, `a, b and c`.
fn listed(items: impl Iterator<Item = String>) -> String {
    let mut items: Vec<String> = items.collect();
    match items.pop() {
        Some(last) if !items.is_empty() => format!("{} and {last}", items.join(", ")),
        last => last.unwrap_or_default(),
    }
}

/// Name of the work: `type 0 (scatter), 32 kB and 32 kB+8, first write`.
fn work_name(config: &TrialConfig, work: &TrialWork) -> String {
    let types = match config.types.as_slice() {
        [one] => {
            PatternType::try_from(*one).map_or_else(|_| types_label(&[*one]), |t| format!("type {t} ({})", t.name()))
        }
        several => types_label(several),
    };
    let mut sizes: Vec<u64> = work.of_goal.iter().map(|pattern| pattern.spec.chunk_bytes).collect();
    sizes.dedup();
    let sizes = match (config.goal, config.chunks_bytes.is_empty()) {
        (TrialGoal::Pattern(number), _) => format!("pattern {number}: {}", listed(sizes.into_iter().map(chunk_label))),
        (_, true) => "all chunk sizes".to_owned(),
        (_, false) => listed(config.chunks_bytes.iter().copied().map(chunk_label)),
    };
    format!("{types}, {sizes}, {}", access_label(config.access))
}

/// Trials of the patterns of a configuration.
struct IoTrials<'a> {
    world: &'a Comm,
    name: String,
    options: SettingOptions<'a>,
    trials: PatternTrials<'a>,
}

impl TrialRunner for IoTrials<'_> {
    fn work(&self) -> String {
        self.name.clone()
    }

    fn granted_hints(&mut self, hints: &[(String, String)]) -> Result<Option<Setting>, MpiError> {
        self.trials.granted_hints(hints)
    }

    fn measure(&mut self, trial: &TrialRequest<'_>) -> Result<Result<TrialOutcome, RunOutcome>, MpiError> {
        match self.options.try_contestant(trial.setting) {
            Ok(contestant) => self.trials.measure(&contestant, trial),
            Err(refusal) => Ok(Ok(TrialOutcome { refusal: Some(refusal), ..TrialOutcome::default() })),
        }
    }

    fn clean_up(&mut self, outcome: RunOutcome) -> Option<Warning> {
        directory::clean_up(self.world, self.trials.run_dir(), false, outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::command::binding::bind_and_survey;
    use crate::frame::config::{BindPolicy, CachePolicy, DirectPolicy};
    use crate::frame::records::AccessMethod;
    use crate::frame::run::trials::TrialScope;

    fn config(path: &std::path::Path) -> TrialConfig {
        TrialConfig {
            profile: None,
            backend: "posix".into(),
            path: path.to_owned(),
            run_dir: None,
            access: AccessMethod::Write,
            types: vec![3],
            chunks_bytes: vec![32768, 32776],
            goal: TrialGoal::Value,
            hints: Vec::new(),
            cache: CachePolicy::Drop,
            direct: DirectPolicy::ByBackend,
            memory_per_process_bytes: Some(256 << 20),
            space_bytes: Some(64 << 20),
            bind: BindPolicy::None,
            seed: 7,
        }
    }

    fn refused(change: impl Fn(&mut TrialConfig)) -> String {
        let scratch = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let world = Comm::comm_self();
        let survey = bind_and_survey(&world, BindPolicy::None).unwrap();
        let mut config = config(scratch.path());
        change(&mut config);
        let refused = open_trials(&world, &Interrupt::default(), &survey, &config).map(|_| ());
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "nothing is created");
        let Err(CommandError::Collective(error)) = refused else { panic!("{refused:?}") };
        assert!(error.is::<UsageError>(), "{error:?}");
        error.to_string()
    }

    /// A setting is interpreted as the options of a variant are.
    #[test]
    fn settings_are_the_options_of_variants() {
        let scratch = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let (world, interrupt) = (Comm::comm_self(), Interrupt::default());
        let survey = bind_and_survey(&world, BindPolicy::None).unwrap();
        let mut runner = open_trials(&world, &interrupt, &survey, &config(scratch.path())).unwrap();
        assert_eq!(runner.work(), "type 3 (segmented), 32 kB and 32 kB+8, first write");
        assert_eq!(runner.granted_hints(&[]).unwrap(), None, "no hints without MPI-IO");
        let mut measure = |text: &str| {
            let pair = |word: &str| word.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
            let setting: Setting = text.split_whitespace().filter_map(pair).collect();
            let trial = TrialRequest { setting: &setting, number: 0, seconds: 0.05, scope: TrialScope::Goal };
            runner.measure(&trial).unwrap().unwrap()
        };
        let default = measure("");
        let names: Vec<&str> = default.parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["type 3, 32 kB", "type 3, 32 kB+8"]);
        assert!(default.refusal.is_none() && default.words_wrong == 0 && default.words_checked > 0, "{default:?}");
        let direct = measure("direct=auto preallocate=off");
        let bytes = |outcome: &TrialOutcome| outcome.parts.iter().map(|part| part.bytes).collect::<Vec<_>>();
        // On a busy machine the guard may cut it.
        let is_cut = bytes(&direct).iter().zip(bytes(&default)).any(|(direct, default)| *direct < default);
        assert!(direct.refusal.is_none() && (is_cut || bytes(&direct) == bytes(&default)), "{direct:?} {default:?}");
        for (setting, reason) in [
            ("depth=4", "--depth has no effect"),
            ("direct=perhaps", "direct=perhaps: must be one of"),
            ("cb_nodes=2", "cb_nodes is no option of a variant, and posix has no hints"),
            ("collective=two-phase", "--collective has no effect with --types 3"),
            ("backend=uring", "its backend uring is not measured"),
            ("direct=", "'direct=' lacks a key or a value"),
        ] {
            let outcome = measure(setting);
            let refusal = outcome.refusal.as_deref().unwrap_or_default();
            assert!(refusal.starts_with(reason), "{setting}: {refusal}");
            assert!(outcome.parts.is_empty() && outcome.bytes_per_second == 0.0);
        }
        assert_eq!(runner.clean_up(RunOutcome::Complete).map(|warning| warning.kind), None);
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
    }

    #[test]
    fn work_that_does_not_exist_is_refused() {
        let error = refused(|config| config.chunks_bytes.push(4711));
        assert!(error.contains("no pattern of type 3 has chunks of 4711 bytes") && error.contains("32768"), "{error}");
        let error = refused(|config| config.goal = TrialGoal::Pattern(4));
        assert!(error.contains("pattern 4 is not among the types"), "{error}");
        let error = refused(|config| config.types = vec![7]);
        assert!(error.contains("--types"), "{error}");
        let error = refused(|config| config.backend = "nfs".into());
        assert!(error.contains("nfs"), "{error}");
        let error = refused(|config| config.hints = vec![("cb_nodes".into(), "1".into())]);
        assert!(error.contains("--hint has no effect"), "{error}");
        let error = refused(|config| config.space_bytes = Some(1 << 20));
        assert!(error.contains("space"), "{error}");
    }

    #[test]
    fn works_have_names() {
        let default = |types: &[u8]| {
            let mut args = arguments(&config(std::path::Path::new("."))).unwrap();
            args.measure.types = types.to_vec();
            let config = args.config_of_trials(&backend_capabilities()).unwrap();
            let facts = super::super::plan::run::Facts {
                ranks: 2,
                ranks_of_first_host: 2,
                memory_per_rank_bytes: 256 << 20,
                cache_share_bytes: 1 << 20,
                limit_bytes: None,
                writing_backends: 1,
            };
            let plan = super::super::plan::run::RunPlan::new(&config, &facts).unwrap();
            TrialContestant { config, plan }
        };
        let name = |types: &[u8], chunks: &[u64], goal, access| {
            let config = TrialConfig {
                types: types.to_vec(),
                chunks_bytes: chunks.to_vec(),
                goal,
                access,
                ..config(std::path::Path::new("."))
            };
            let work = choose_patterns(&config, &default(types)).unwrap();
            (work_name(&config, &work), work.of_goal.len(), work.others.len())
        };
        let (read, rewrite) = (AccessMethod::Read, AccessMethod::Rewrite);
        assert_eq!(
            name(&[0, 2, 4], &[], TrialGoal::Seconds, read),
            ("types 0, 2 and 4, all chunk sizes, read".to_owned(), 22, 0)
        );
        assert_eq!(
            name(&[0], &[1 << 20], TrialGoal::Value, rewrite),
            ("type 0 (scatter), 1 MB, rewrite".to_owned(), 2, 5)
        );
        assert_eq!(
            name(&[0], &[], TrialGoal::Pattern(6), rewrite),
            ("type 0 (scatter), pattern 6: 32 kB+8, rewrite".to_owned(), 1, 6)
        );
        let work = choose_patterns(&config(std::path::Path::new(".")), &default(&[3])).unwrap();
        assert_eq!((work.of_goal.len(), work.others.len()), (2, 4));
        let table = patterns(2 << 20);
        assert_eq!(pattern_name(&table[2]), "type 0, 1 MB (calls of 2 MB)");
        assert_eq!((pattern_name(&table[3]), pattern_name(&table[5])), ("type 0, 1 MB".into(), "type 0, 1 kB".into()));
    }
}
