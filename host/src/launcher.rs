//! A program built with one MPI and started by the mpirun of another: N copies of "rank 0 of 1".
//!
//! Observed with 2 processes (launcher, binary):
//!
//! | launcher | binary | result |
//! |---|---|---|
//! | Open MPI 4.1, 5.0 | MPICH 4.0 | both start as rank 0 of 1; OMPI_COMM_WORLD_SIZE=2 |
//! | Open MPI 4.1, 5.0 | MPICH 5.0 | MPI_Init aborts: "unsupported PMI version PMIx" |
//! | MPICH 4.0, 5.0 | Open MPI 4.1, 5.0 | both start as rank 0 of 1; PMI_SIZE=2, MPI_LOCALNRANKS=2 |
//! | MPICH 4.0 -pmi-port | Open MPI 4.1 | both start as rank 0 of 1; MPI_LOCALNRANKS=2, no PMI_SIZE |
//! | same family, other version | | 2 ranks |
//!
//! The variables of Flux, jsrun, PALS, ALPS and PMIx are those of their documentation and sources; such launches were simulated only.
//!
//! Nothing hangs, so the size of the world after MPI_Init is the main test ([`launcher_mismatch`]); only the abort must be prevented before
//! ([`pre_init_mismatch`]). All functions are pure: the environment is passed in.

/// Families of MPI with the same way of starting processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MpiFamily {
    OpenMpi,
    Mpich,
    Intel,
    Mvapich,
    Other,
}

impl MpiFamily {
    /// Parses a name such as `MPICH 4.0.2`, `Open MPI 5.0.1`, or the text of MPI_Get_library_version.
    fn of(mpi: &str) -> Self {
        // Only the first line names the library; others may name compilers, including Intel's.
        let name = mpi.lines().next().unwrap_or_default().to_ascii_lowercase();
        let has = |part: &str| name.contains(part);
        if has("mvapich") {
            Self::Mvapich
        } else if has("open mpi") || has("open-mpi") || has("openmpi") {
            Self::OpenMpi
        } else if has("intel") {
            Self::Intel
        } else if has("mpich") {
            Self::Mpich
        } else {
            Self::Other
        }
    }
}

/// What starts the processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layer {
    /// The launcher of an MPI, for programs of these families.
    Mpirun(&'static [MpiFamily]),
    /// A launcher for programs of several MPIs, with the commands for those of Open MPI and of other MPIs; `N` is the number of processes.
    /// Its variables count only without those of an mpirun, which may run inside one of its processes, or its daemons may.
    Manager([&'static str; 2]),
}
use Layer::{Manager, Mpirun};

/// A launcher, and the environment variables in which it numbers the processes.
#[derive(Debug)]
struct Launcher {
    /// For messages.
    name: &'static str,
    layer: Layer,
    /// Number of processes; the first that is set counts. Some are those of one host only.
    sizes: &'static [&'static str],
    /// Number of this process; the first that is set counts.
    ranks: &'static [&'static str],
}

const OPEN_MPI: Layer = Mpirun(&[MpiFamily::OpenMpi]);
const MVAPICH: Layer = Mpirun(&[MpiFamily::Mvapich]);
const PMI: Layer = Mpirun(&[MpiFamily::Mpich, MpiFamily::Intel, MpiFamily::Mvapich]);
const FLUX: Layer = Manager([
    "`flux run -n N -o pmi=pmix beff-raw ...` (with the plugin flux-pmix)",
    "`flux run -n N -o pmi=simple beff-raw ...`",
]);
const SLURM: Layer = Manager([
    "`srun --mpi=pmix -n N beff-raw ...` (`srun --mpi=list` shows what this Slurm has)",
    "`srun --mpi=pmi2 -n N beff-raw ...` (`srun --mpi=list` shows what this Slurm has)",
]);
const PALS: Layer = Manager([
    "`mpiexec -n N --pmi=pmix beff-raw ...` of PALS",
    "`mpiexec -n N beff-raw ...` of PALS after building it with MPICC=cc (Cray MPICH)",
]);
const ALPS: Layer = Manager(["`aprun -n N beff-raw ...` after building it with MPICC=cc (Cray MPICH)"; 2]);
const PMIX: Layer = Manager([
    "`prterun -n N beff-raw ...` of the same PMIx",
    "the same launcher after building it for an MPI that uses PMIx",
]);
/// Set by hydra for each process, unlike PMI_SIZE if it connects through a port (-pmi-port).
const HYDRA_SIZE: &str = "MPI_LOCALNRANKS";

/// In order of precedence. Variables that batch scripts have too are missing (SLURM_NTASKS, SLURM_PROCID, LSB_*, PBS_*). ALPS and PMIx
/// publish no number of processes: process 0 cannot know of the others. Flux and Slurm may also set the variables of PALS, and every
/// manager those of PMI or PMIx.
#[rustfmt::skip]
const LAUNCHERS: [Launcher; 9] = [
    // First, because it also sets variables of Open MPI.
    Launcher { name: "jsrun, for IBM Spectrum MPI", layer: OPEN_MPI, sizes: &["JSM_NAMESPACE_SIZE"], ranks: &["JSM_NAMESPACE_RANK"] },
    Launcher { name: "the mpirun of Open MPI", layer: OPEN_MPI, sizes: &[OPEN_MPI_SIZE], ranks: &["OMPI_COMM_WORLD_RANK"] },
    Launcher { name: "the launcher of MVAPICH", layer: MVAPICH, sizes: &["MV2_COMM_WORLD_SIZE"], ranks: &["MV2_COMM_WORLD_RANK"] },
    Launcher { name: "the mpirun of MPICH or Intel MPI, or another PMI launcher", layer: PMI, sizes: &["PMI_SIZE", HYDRA_SIZE], ranks: &["PMI_RANK", "PMI_ID"] },
    Launcher { name: "flux run", layer: FLUX, sizes: &["FLUX_JOB_SIZE"], ranks: &["FLUX_TASK_RANK"] },
    Launcher { name: "srun", layer: SLURM, sizes: &["SLURM_STEP_NUM_TASKS"], ranks: &[] },
    Launcher { name: "mpiexec of Cray PALS", layer: PALS, sizes: &["PALS_SIZE", "PALS_LOCAL_SIZE"], ranks: &["PALS_RANKID"] },
    Launcher { name: "aprun of Cray ALPS", layer: ALPS, sizes: &[], ranks: &["ALPS_APP_PE"] },
    Launcher { name: "a PMIx launcher", layer: PMIX, sizes: &[], ranks: &["PMIX_RANK"] },
];
const OPEN_MPI_SIZE: &str = "OMPI_COMM_WORLD_SIZE";

/// What the variables of a launcher say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Launched {
    /// One process, or process 0 of an unknown number.
    One,
    /// This variable has the number of processes.
    Several(&'static str, u64),
    /// This variable has the number of this process, above 0.
    Number(&'static str, u64),
}

fn env_number(env: &impl Fn(&str) -> Option<String>, name: &str) -> Option<u64> {
    env(name)?.trim().parse().ok()
}

impl Launcher {
    fn launched(&self, env: &impl Fn(&str) -> Option<String>) -> Option<Launched> {
        let first = |names: &[&'static str]| names.iter().find_map(|name| Some((*name, env_number(env, name)?)));
        match (first(self.sizes), first(self.ranks)) {
            (None, None) => None,
            (Some((variable, size)), _) if size > 1 => Some(Launched::Several(variable, size)),
            (_, Some((variable, rank))) if rank > 0 => Some(Launched::Number(variable, rank)),
            _ => Some(Launched::One),
        }
    }
}

/// Launchers whose variables are set, with what they say.
fn launchers(env: &impl Fn(&str) -> Option<String>) -> Vec<(&'static Launcher, Launched)> {
    LAUNCHERS.iter().filter_map(|launcher| Some((launcher, launcher.launched(env)?))).collect()
}

/// True if a launcher has started this process, even as the only one.
#[must_use]
pub fn is_launched(env: impl Fn(&str) -> Option<String>) -> bool {
    !launchers(&env).is_empty()
}

/// Number of processes that the launcher has started, if it publishes one above 1.
#[must_use]
pub fn launched_process_count(env: impl Fn(&str) -> Option<String>) -> Option<u64> {
    match launchers(&env).first()?.1 {
        Launched::Several(_, processes) => Some(processes),
        Launched::One | Launched::Number(..) => None,
    }
}

/// A launch whose processes would each measure alone.
#[derive(Debug, PartialEq, Eq)]
pub struct LauncherMismatch {
    /// What happened, and what to do.
    pub message: String,
    /// True in the one process that prints the message, where processes are numbered.
    pub is_reporting: bool,
}

/// A world of one rank although the launcher started several processes; None if they agree.
///
/// `world_size` is the size of MPI_COMM_WORLD, `mpi_built_with` the name and version of the MPI of this binary, `env` the environment
/// before MPI_Init, which may overwrite PMIX_RANK. A size of 1 from a launcher of that MPI overrides variables of an outer launcher.
#[must_use]
pub fn launcher_mismatch(
    world_size: u64,
    mpi_built_with: &str,
    env: impl Fn(&str) -> Option<String>,
) -> Option<LauncherMismatch> {
    if world_size != 1 {
        return None;
    }
    let family = MpiFamily::of(mpi_built_with);
    let (mpiruns, managers): (Vec<_>, Vec<_>) =
        launchers(&env).into_iter().partition(|(launcher, _)| matches!(launcher.layer, Mpirun(_)));
    let is_native = |launcher: &Launcher| matches!(launcher.layer, Mpirun(families) if families.contains(&family));
    // One rank was requested.
    if mpiruns.iter().any(|(launcher, launched)| is_native(launcher) && *launched == Launched::One) {
        return None;
    }
    let found =
        if mpiruns.is_empty() { managers.first() } else { mpiruns.iter().find(|found| found.1 != Launched::One) };
    let (mut launcher, launched) = *found.filter(|found| found.1 != Launched::One)?;
    if let (true, None, Some((manager, _))) = (launcher.layer == PMI, env(HYDRA_SIZE), managers.first()) {
        launcher = manager;
    }
    let is_reporting = match launched {
        // Process 0 does not know that there are others, and measures.
        Launched::Number(_, rank) => rank == 1,
        _ => is_reporting_process(&env),
    };
    let message = match launcher.layer {
        Mpirun(_) => {
            mpirun_message(launcher, launched, "MPI_COMM_WORLD has 1 rank: this program", family, mpi_built_with)
        }
        Manager(commands) => manager_message(launcher.name, launched, commands, family, mpi_built_with),
    };
    Some(LauncherMismatch { message, is_reporting })
}

/// Number of processes for a command, number of processes for a sentence, and the variable that has it.
fn describe(launched: Launched) -> (String, String, String) {
    match launched {
        Launched::Several(variable, size) => {
            (size.to_string(), format!("{size} processes"), format!("{variable}={size}"))
        }
        Launched::Number(variable, rank) => ("N".into(), "several processes".into(), format!("{variable}={rank} here")),
        Launched::One => ("1".into(), "1 process".into(), String::new()),
    }
}

fn manager_message(
    launcher: &str,
    launched: Launched,
    commands: [&str; 2],
    family: MpiFamily,
    mpi_built_with: &str,
) -> String {
    let (size, processes, variable) = describe(launched);
    let command = commands[usize::from(family != MpiFamily::OpenMpi)].replace(" N ", &format!(" {size} "));
    format!(
        "{launcher} started {processes} ({variable}), but MPI_COMM_WORLD has 1 rank: the MPI of this program \
         ({mpi_built_with}) did not connect to the others, and each process would measure alone.\n  Start it with {command}, \
         or with {}.",
        matching_command(family, &size)
    )
}

fn mpirun_message(
    launcher: &Launcher,
    launched: Launched,
    found: &str,
    family: MpiFamily,
    mpi_built_with: &str,
) -> String {
    let (size, processes, variable) = describe(launched);
    let why = match launcher.layer {
        Mpirun(families) if families.contains(&family) => {
            "comes from another installation of it, or does not reach into this container"
        }
        _ => "is not of that MPI",
    };
    format!(
        "{processes} were started ({variable}, set by {}), but {found} is built with {mpi_built_with}, and the launcher \
         {why}. Each process would measure alone.\n  Start it with {}.",
        launcher.name,
        matching_command(family, &size)
    )
}

/// Command that starts the program with its own MPI.
fn matching_command(family: MpiFamily, size: &str) -> String {
    let (command, which) = match family {
        // Debian and its derivatives install both under these names.
        MpiFamily::OpenMpi => ("mpirun", "the mpirun of Open MPI, on Debian `mpirun.openmpi`"),
        MpiFamily::Mpich => ("mpirun", "the mpirun of MPICH, on Debian `mpirun.mpich`"),
        MpiFamily::Intel => ("mpirun", "the mpirun of Intel MPI, in $I_MPI_ROOT/bin"),
        MpiFamily::Mvapich => ("mpirun", "the mpirun of MVAPICH"),
        MpiFamily::Other => ("mpiexec", "the one in the directory of the mpicc that built this program"),
    };
    format!(
        "`{command} -n {size} beff-raw ...` ({which}), or build it for the MPI of your launcher with MPICC=<its mpicc>"
    )
}

/// Message to print instead of calling MPI_Init, which would abort with an obscure text: observed with MPICH 5.0 under the mpirun of Open
/// MPI. Earlier releases of MPICH, which would start as copies, are refused too. None: call MPI_Init.
///
/// `mpi_built_with` may be the text of MPI_Get_library_version, which can be called before MPI_Init; `name` is its short form. An MPICH
/// configured with PMIx can be started by Open MPI's mpirun and is accepted, as is one with MPIR_CVAR_PMI_VERSION=pmix. srun and MPICH's
/// own mpirun set PMI variables, or none of Open MPI, and are accepted as well.
#[must_use]
pub fn pre_init_mismatch(mpi_built_with: &str, name: &str, env: impl Fn(&str) -> Option<String>) -> Option<String> {
    let size = env_number(&env, OPEN_MPI_SIZE).filter(|size| *size > 1)?;
    let own = ["PMI_SIZE", "PMI_RANK", "PMI_FD", "PMI_PORT", HYDRA_SIZE].iter().any(|name| env(name).is_some());
    let requests_pmix = env("MPIR_CVAR_PMI_VERSION").is_some_and(|version| version.eq_ignore_ascii_case("pmix"));
    let pmix = mpi_built_with.to_ascii_lowercase().contains("pmix");
    if MpiFamily::of(mpi_built_with) != MpiFamily::Mpich || own || requests_pmix || pmix {
        return None;
    }
    let launched = Launched::Several(OPEN_MPI_SIZE, size);
    let launcher = LAUNCHERS.iter().find(|launcher| launcher.launched(&env) == Some(launched))?;
    Some(mpirun_message(launcher, launched, "this program", MpiFamily::Mpich, name))
}

/// Process numbers of managers; SLURM_PROCID is 0 in batch scripts too. PMIX_RANK is the last, because a singleton of Open MPI sets it to 0.
const MANAGER_RANKS: [&str; 5] = ["FLUX_TASK_RANK", "SLURM_PROCID", "PALS_RANKID", "ALPS_APP_PE", "PMIX_RANK"];

/// True if this process should print a message that all processes of a launch have: exactly one prints if the launcher numbers them,
/// otherwise all.
#[must_use]
pub fn is_reporting_process(env: impl Fn(&str) -> Option<String>) -> bool {
    let of_mpirun = LAUNCHERS.iter().filter(|launcher| matches!(launcher.layer, Mpirun(_)));
    let ranks: Vec<u64> = of_mpirun.flat_map(|l| l.ranks).filter_map(|name| env_number(&env, name)).collect();
    let of_manager = || MANAGER_RANKS.iter().find_map(|name| env_number(&env, name));
    ranks.contains(&0) || (ranks.is_empty() && of_manager().is_none_or(|rank| rank == 0))
}

/// Variables with the value of --bind-to of Open MPI 4 and 5.
const OPEN_MPI_BINDING: [&str; 2] = ["OMPI_MCA_hwloc_base_binding_policy", "PRTE_MCA_hwloc_default_binding_policy"];

/// Source of the binding of ranks, in words, as far as the environment contains it; None if unknown. The CPUs of ranks follow from their
/// affinity masks alone.
#[must_use]
pub fn binding_source(env: impl Fn(&str) -> Option<String>) -> Option<String> {
    let set = |name: &str| env(name).filter(|value| !value.trim().is_empty());
    let of_open_mpi =
        OPEN_MPI_BINDING.iter().find_map(|name| Some(format!("--bind-to {} of Open MPI's mpirun", set(name)?)));
    let of_slurm = || Some(format!("srun --cpu-bind={}", set("SLURM_CPU_BIND")?));
    let of_intel = || Some(format!("I_MPI_PIN_DOMAIN={}", set("I_MPI_PIN_DOMAIN")?));
    let of_hydra = || set("HYDRA_USER_PROVIDED_BINDING").map(|_| "-bind-to of MPICH's mpirun".to_owned());
    of_open_mpi.or_else(of_slurm).or_else(of_intel).or_else(of_hydra)
}

/// True if the launcher was explicitly requested to bind ranks: a CPU set shared by all ranks of a host is then intended. `none` is no
/// such request. Slurm's variable counts only if srun started the ranks themselves: below an mpirun it concerns the daemons.
#[must_use]
pub fn is_binding_requested(env: impl Fn(&str) -> Option<String>) -> bool {
    let says_something = |name: &str| env(name).is_some_and(|v| !v.trim().is_empty() && !v.contains("none"));
    let by_mpirun = [
        "MPI_LOCALRANKID",
        "HYDI_CONTROL_FD",
        "OMPI_MCA_ess",
        "OMPI_MCA_orte_ess_num_procs",
        "PRTE_MCA_ess_base_nspace",
    ]
    .iter()
    .any(|name| env(name).is_some());
    OPEN_MPI_BINDING.into_iter().chain(["I_MPI_PIN_DOMAIN"]).any(says_something)
        || (!by_mpirun && says_something("SLURM_CPU_BIND"))
}

#[cfg(test)]
#[path = "launcher_tests.rs"]
mod tests;
