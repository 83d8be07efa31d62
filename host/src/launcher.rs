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

/// A variable by which a launcher publishes the number of processes.
struct SizeVariable {
    name: &'static str,
    /// Launchers that set it, for messages.
    launcher: &'static str,
    native_families: &'static [MpiFamily],
}

const OPEN_MPI_SIZE: SizeVariable = SizeVariable {
    name: "OMPI_COMM_WORLD_SIZE",
    launcher: "the mpirun of Open MPI",
    native_families: &[MpiFamily::OpenMpi],
};

/// In order of precedence. SLURM_NTASKS is missing because batch scripts have it too.
const SIZE_VARIABLES: [SizeVariable; 4] = [
    OPEN_MPI_SIZE,
    SizeVariable {
        name: "MV2_COMM_WORLD_SIZE",
        launcher: "the launcher of MVAPICH",
        native_families: &[MpiFamily::Mvapich],
    },
    SizeVariable {
        name: "PMI_SIZE",
        launcher: "the mpirun of MPICH or Intel MPI, or another PMI launcher",
        native_families: &[MpiFamily::Mpich, MpiFamily::Intel, MpiFamily::Mvapich],
    },
    // Of one host only, but the only one if hydra connects through a port (-pmi-port).
    SizeVariable {
        name: "MPI_LOCALNRANKS",
        launcher: "the mpirun of MPICH or Intel MPI",
        native_families: &[MpiFamily::Mpich, MpiFamily::Intel, MpiFamily::Mvapich],
    },
];

/// Size of a Slurm step. Used only without a variable of an MPI launcher: mpirun inside a job starts its daemons as a step.
const SLURM_STEP_SIZE: &str = "SLURM_STEP_NUM_TASKS";

const RANK_VARIABLES: [&str; 9] = [
    "PMI_RANK",
    "PMIX_RANK",
    "OMPI_COMM_WORLD_RANK",
    "MV2_COMM_WORLD_RANK",
    "MPI_LOCALRANKID",
    "PALS_RANKID",
    "ALPS_APP_PE",
    "JSM_NAMESPACE_RANK",
    "FLUX_TASK_RANK",
];

/// True if a launcher has started this process, even as the only one.
#[must_use]
pub fn is_launched(env: impl Fn(&str) -> Option<String>) -> bool {
    let sizes = SIZE_VARIABLES.iter().map(|says| says.name);
    RANK_VARIABLES.into_iter().chain(sizes).chain([SLURM_STEP_SIZE]).any(|variable| env(variable).is_some())
}

fn env_number(env: &impl Fn(&str) -> Option<String>, name: &str) -> Option<u64> {
    env(name)?.trim().parse().ok()
}

/// Number of processes that the launcher has started, if it publishes one above 1.
#[must_use]
pub fn launched_process_count(env: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let variables = SIZE_VARIABLES.iter().map(|says| says.name).chain([SLURM_STEP_SIZE]);
    variables.filter_map(|variable| env_number(&env, variable)).next().filter(|processes| *processes > 1)
}

/// Message for a world of one rank although the launcher started several processes; None if they agree.
///
/// `world_size` is the size of MPI_COMM_WORLD, `mpi_built_with` the name and version of the MPI of this binary. A size of 1 from a
/// launcher of that MPI overrides variables of an outer launcher.
#[must_use]
pub fn launcher_mismatch(
    world_size: u64,
    mpi_built_with: &str,
    env: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    if world_size != 1 {
        return None;
    }
    let family = MpiFamily::of(mpi_built_with);
    let said: Vec<_> = SIZE_VARIABLES.iter().filter_map(|says| Some((says, env_number(&env, says.name)?))).collect();
    // The first native variable is the number of all ranks; a native 1 means that one rank was requested.
    if said.iter().find(|(says, _)| says.native_families.contains(&family)).is_some_and(|(_, size)| *size == 1) {
        return None;
    }
    if let Some((says, size)) = said.iter().find(|(_, size)| *size > 1) {
        let found = "MPI_COMM_WORLD has 1 rank: this program";
        return Some(mismatch_message(says, *size, found, family, mpi_built_with));
    }
    let tasks = env_number(&env, SLURM_STEP_SIZE).filter(|tasks| *tasks > 1 && said.is_empty())?;
    let plugin = match family {
        MpiFamily::OpenMpi => "pmix",
        _ => "pmi2",
    };
    Some(format!(
        "srun started {tasks} processes ({SLURM_STEP_SIZE}={tasks}), but MPI_COMM_WORLD has 1 rank: the MPI of this program \
         ({mpi_built_with}) did not connect to the others, and each process would measure alone.\n  Start it with \
         `srun --mpi={plugin} -n {tasks} beff-raw ...` (`srun --mpi=list` shows what this Slurm has), or with {}.",
        matching_command(family, tasks)
    ))
}

fn mismatch_message(says: &SizeVariable, size: u64, found: &str, family: MpiFamily, mpi_built_with: &str) -> String {
    let (variable, launcher) = (says.name, says.launcher);
    let same = says.native_families.contains(&family);
    let why = if same {
        "comes from another installation of it, or does not reach into this container"
    } else {
        "is not of that MPI"
    };
    format!(
        "{size} processes were started ({variable}={size}, set by {launcher}), but {found} is \
         built with {mpi_built_with}, and the launcher {why}. Each process would measure alone.\n  Start it with {}.",
        matching_command(family, size)
    )
}

/// Command that starts the program with its own MPI.
fn matching_command(family: MpiFamily, size: u64) -> String {
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
    let size = env_number(&env, OPEN_MPI_SIZE.name).filter(|size| *size > 1)?;
    let own = ["PMI_SIZE", "PMI_RANK", "PMI_FD", "PMI_PORT", "MPI_LOCALNRANKS"].iter().any(|name| env(name).is_some());
    let requests_pmix = env("MPIR_CVAR_PMI_VERSION").is_some_and(|version| version.eq_ignore_ascii_case("pmix"));
    let pmix = mpi_built_with.to_ascii_lowercase().contains("pmix");
    if MpiFamily::of(mpi_built_with) != MpiFamily::Mpich || own || requests_pmix || pmix {
        return None;
    }
    Some(mismatch_message(&OPEN_MPI_SIZE, size, "this program", MpiFamily::Mpich, name))
}

/// True if this process should print a message that all processes of a launch have: exactly one prints if the launcher numbers them,
/// otherwise all.
#[must_use]
pub fn is_reporting_process(env: impl Fn(&str) -> Option<String>) -> bool {
    let of = |names: &[&str]| names.iter().filter_map(|name| env_number(&env, name)).collect::<Vec<_>>();
    // Not PMIX_RANK: Open MPI sets it to 0 in each of the copies.
    let ranks = of(&["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMI_ID", "MV2_COMM_WORLD_RANK"]);
    // Batch scripts have SLURM_PROCID=0 too, so it counts only without other variables.
    let ranks = if ranks.is_empty() { of(&["SLURM_PROCID"]) } else { ranks };
    ranks.is_empty() || ranks.contains(&0)
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
