//! A program built with one MPI and started by the mpirun of another: N copies of "rank 0 of 1".
//!
//! What was seen with 2 processes (launcher, binary):
//!
//! | launcher | binary | result |
//! |---|---|---|
//! | Open MPI 4.1, 5.0 | MPICH 4.0 | both start as rank 0 of 1; OMPI_COMM_WORLD_SIZE=2 |
//! | Open MPI 4.1, 5.0 | MPICH 5.0 | MPI_Init aborts: "unsupported PMI version PMIx" |
//! | MPICH 4.0, 5.0 | Open MPI 4.1, 5.0 | both start as rank 0 of 1; PMI_SIZE=2, MPI_LOCALNRANKS=2 |
//! | MPICH 4.0 -pmi-port | Open MPI 4.1 | both start as rank 0 of 1; MPI_LOCALNRANKS=2, no PMI_SIZE |
//! | same family, other version | | 2 ranks |
//!
//! Nothing hangs, so the size of the world after MPI_Init is the main test ([`wrong_launcher`]); only the abort must be
//! caught before ([`before_init`]). All functions are pure: the environment is passed in.

/// Families of MPI that start their processes in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    OpenMpi,
    Mpich,
    Intel,
    Mvapich,
    Other,
}

impl Family {
    /// From a name such as `MPICH 4.0.2`, `Open MPI 5.0.1`, or what MPI_Get_library_version says.
    fn of(mpi: &str) -> Self {
        // Only the first line names the library; others may name compilers, also Intel's.
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

/// What one launcher says through one variable.
struct Says {
    /// Name of the variable.
    variable: &'static str,
    /// Who sets it.
    launcher: &'static str,
    /// Families whose own launchers set it.
    native: &'static [Family],
}

const OPEN_MPI: Says =
    Says { variable: "OMPI_COMM_WORLD_SIZE", launcher: "the mpirun of Open MPI", native: &[Family::OpenMpi] };

/// In the order in which they are believed. SLURM_NTASKS is not among them: batch scripts have it too.
const SIZES: [Says; 4] = [
    OPEN_MPI,
    Says { variable: "MV2_COMM_WORLD_SIZE", launcher: "the launcher of MVAPICH", native: &[Family::Mvapich] },
    Says {
        variable: "PMI_SIZE",
        launcher: "the mpirun of MPICH or Intel MPI, or another PMI launcher",
        native: &[Family::Mpich, Family::Intel, Family::Mvapich],
    },
    // Of one host only, but all there is when hydra connects through a port (-pmi-port).
    Says {
        variable: "MPI_LOCALNRANKS",
        launcher: "the mpirun of MPICH or Intel MPI",
        native: &[Family::Mpich, Family::Intel, Family::Mvapich],
    },
];

/// A step of Slurm. Believed only if no launcher of an MPI speaks: mpirun inside a job starts its daemons as a step.
const SLURM: &str = "SLURM_STEP_NUM_TASKS";

/// Variables that tell a process of its rank, whoever launched it.
const RANKS: [&str; 9] = [
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

/// True if a launcher has started this process, also as the only one.
#[must_use]
pub fn is_launched(env: impl Fn(&str) -> Option<String>) -> bool {
    let sizes = SIZES.iter().map(|says| says.variable);
    RANKS.into_iter().chain(sizes).chain([SLURM]).any(|variable| env(variable).is_some())
}

fn number(env: &impl Fn(&str) -> Option<String>, name: &str) -> Option<u64> {
    env(name)?.trim().parse().ok()
}

/// How many processes the launcher of this one says it has started, if it says so and they are several.
#[must_use]
pub fn started_with_others(env: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let variables = SIZES.iter().map(|says| says.variable).chain([SLURM]);
    variables.filter_map(|variable| number(&env, variable)).next().filter(|processes| *processes > 1)
}

/// The message for a world of one rank although the launcher started several processes; None if all is well.
///
/// `world_size` is the size of MPI_COMM_WORLD, `mpi_built_with` the name and version of the MPI of this binary. A
/// launcher of the own MPI that says 1 is believed whatever an outer launcher left in the environment.
#[must_use]
pub fn wrong_launcher(world_size: u64, mpi_built_with: &str, env: impl Fn(&str) -> Option<String>) -> Option<String> {
    if world_size != 1 {
        return None;
    }
    let family = Family::of(mpi_built_with);
    let said: Vec<_> = SIZES.iter().filter_map(|says| Some((says, number(&env, says.variable)?))).collect();
    // The first native variable is the number of all ranks; a native 1 means that one rank was asked for.
    if said.iter().find(|(says, _)| says.native.contains(&family)).is_some_and(|(_, size)| *size == 1) {
        return None;
    }
    if let Some((says, size)) = said.iter().find(|(_, size)| *size > 1) {
        let found = "MPI_COMM_WORLD has 1 rank: this program";
        return Some(message(says, *size, found, family, mpi_built_with));
    }
    let tasks = number(&env, SLURM).filter(|tasks| *tasks > 1 && said.is_empty())?;
    let plugin = match family {
        Family::OpenMpi => "pmix",
        _ => "pmi2",
    };
    Some(format!(
        "srun started {tasks} processes ({SLURM}={tasks}), but MPI_COMM_WORLD has 1 rank: the MPI of this program \
         ({mpi_built_with}) did not find the others, and each process would measure alone.\n  Start it with \
         `srun --mpi={plugin} -n {tasks} beff-raw ...` (`srun --mpi=list` shows what this Slurm has), or with {}.",
        own_command(family, tasks)
    ))
}

fn message(says: &Says, size: u64, found: &str, family: Family, mpi_built_with: &str) -> String {
    let (variable, launcher) = (says.variable, says.launcher);
    let same = says.native.contains(&family);
    let why = if same {
        "comes from another installation of it, or does not reach into this container"
    } else {
        "is not of that MPI"
    };
    format!(
        "{size} processes were started ({variable}={size}, set by {launcher}), but {found} is \
         built with {mpi_built_with}, and the launcher {why}. Each process would measure alone.\n  Start it with {}.",
        own_command(family, size)
    )
}

/// The command that starts the program with its own MPI.
fn own_command(family: Family, size: u64) -> String {
    let (command, which) = match family {
        // Debian and its descendants keep both under these names.
        Family::OpenMpi => ("mpirun", "the mpirun of Open MPI, on Debian `mpirun.openmpi`"),
        Family::Mpich => ("mpirun", "the mpirun of MPICH, on Debian `mpirun.mpich`"),
        Family::Intel => ("mpirun", "the mpirun of Intel MPI, in $I_MPI_ROOT/bin"),
        Family::Mvapich => ("mpirun", "the mpirun of MVAPICH"),
        Family::Other => ("mpiexec", "the one in the directory of the mpicc that built this program"),
    };
    format!(
        "`{command} -n {size} beff-raw ...` ({which}), or build it for the MPI of your launcher with MPICC=<its mpicc>"
    )
}

/// The message that must come before MPI_Init, because Init itself would abort with a text nobody understands: seen with
/// MPICH 5.0 under the mpirun of Open MPI. Earlier releases of MPICH would start as copies and are refused here as well.
/// None: call MPI_Init.
///
/// `mpi_built_with` may be what MPI_Get_library_version says, `name` is that in a few words. It may be asked before MPI_Init: an MPICH configured with
/// PMIx can be started by Open MPI's mpirun and is let through, as is one told so by MPIR_CVAR_PMI_VERSION=pmix. srun and
/// MPICH's own mpirun give PMI variables or no Open MPI ones and are let through as well.
#[must_use]
pub fn before_init(mpi_built_with: &str, name: &str, env: impl Fn(&str) -> Option<String>) -> Option<String> {
    let size = number(&env, OPEN_MPI.variable).filter(|size| *size > 1)?;
    let own = ["PMI_SIZE", "PMI_RANK", "PMI_FD", "PMI_PORT", "MPI_LOCALNRANKS"].iter().any(|name| env(name).is_some());
    let told = env("MPIR_CVAR_PMI_VERSION").is_some_and(|version| version.eq_ignore_ascii_case("pmix"));
    let pmix = mpi_built_with.to_ascii_lowercase().contains("pmix");
    if Family::of(mpi_built_with) != Family::Mpich || own || told || pmix {
        return None;
    }
    Some(message(&OPEN_MPI, size, "this program", Family::Mpich, name))
}

/// True if this process should print a message that every process of a launch has: exactly one of them prints where the
/// launcher numbers them, all of them where it does not.
#[must_use]
pub fn speaks_for_all(env: impl Fn(&str) -> Option<String>) -> bool {
    let of = |names: &[&str]| names.iter().filter_map(|name| number(&env, name)).collect::<Vec<_>>();
    // Not PMIX_RANK: Open MPI sets it to 0 in each of the copies itself.
    let ranks = of(&["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMI_ID", "MV2_COMM_WORLD_RANK"]);
    // Batch scripts have SLURM_PROCID=0 too, so it counts only where nobody else speaks.
    let ranks = if ranks.is_empty() { of(&["SLURM_PROCID"]) } else { ranks };
    ranks.is_empty() || ranks.contains(&0)
}

/// Where Open MPI 4 and 5 leave the value of --bind-to.
const OPEN_MPI_BINDING: [&str; 2] = ["OMPI_MCA_hwloc_base_binding_policy", "PRTE_MCA_hwloc_default_binding_policy"];

/// What binds the ranks, in words, as far as the launcher leaves it in the environment; None: it does not tell. Where ranks
/// may run in the end is seen by their allowed CPUs alone.
#[must_use]
pub fn binding(env: impl Fn(&str) -> Option<String>) -> Option<String> {
    let set = |name: &str| env(name).filter(|value| !value.trim().is_empty());
    let of_open_mpi =
        OPEN_MPI_BINDING.iter().find_map(|name| Some(format!("--bind-to {} of Open MPI's mpirun", set(name)?)));
    let of_slurm = || Some(format!("srun --cpu-bind={}", set("SLURM_CPU_BIND")?));
    let of_intel = || Some(format!("I_MPI_PIN_DOMAIN={}", set("I_MPI_PIN_DOMAIN")?));
    let of_hydra = || set("HYDRA_USER_PROVIDED_BINDING").map(|_| "-bind-to of MPICH's mpirun".to_owned());
    of_open_mpi.or_else(of_slurm).or_else(of_intel).or_else(of_hydra)
}

/// True if the launcher was told by a word to bind ranks to something: CPUs that all ranks of a host share are then meant so. `none` is not
/// such a word. Of Slurm only where srun started the ranks themselves: below an mpirun it speaks of that program's daemons.
#[must_use]
pub fn was_told_to_bind(env: impl Fn(&str) -> Option<String>) -> bool {
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
