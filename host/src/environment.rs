//! Environment variables that influence MPI and its I/O, for the manifest.
//!
//! Results are passed on, so this is an allow-list: unknown variables are hidden, and so is every name that could hold a credential or an
//! address to attach to. Variables that launchers set in every run for their own use are hidden too: only user settings explain a result.

const RELEVANT_PREFIXES: [&str; 12] = [
    "MPICH_",
    "MPIR_CVAR_",
    "ROMIO_",
    "OMPI_MCA_",
    "PRTE_MCA_",
    "I_MPI_",
    "MV2_",
    "FI_",
    "UCX_",
    "DARSHAN_",
    "LUSTRE_",
    "SLURM_NTASKS_PER_",
];

/// Full names of relevant variables. Of SLURM_ only the shape of the job: no user, account or address.
const RELEVANT_NAMES: [&str; 17] = [
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "OMPI_MPI_THREAD_LEVEL",
    "OMP_NUM_THREADS",
    "SLURM_CPUS_PER_TASK",
    "SLURM_CPU_BIND",
    "SLURM_JOB_CPUS_PER_NODE",
    "SLURM_JOB_ID",
    "SLURM_JOB_NODELIST",
    "SLURM_JOB_NUM_NODES",
    "SLURM_JOB_PARTITION",
    "SLURM_MEM_PER_CPU",
    "SLURM_MEM_PER_NODE",
    "SLURM_MPI_TYPE",
    "SLURM_NNODES",
    "SLURM_NTASKS",
    "SLURM_STEP_NUM_TASKS",
];

/// Prefixes of variables that launchers (mpirun of Open MPI 4 and 5, hydra, mpirun_rsh) set for every process of every run. Those of Open
/// MPI's run-time environment (orte, ess, pmix) describe the job to its own daemons.
const BOOKKEEPING_PREFIXES: [&str; 7] = [
    "MV2_COMM_WORLD_",
    "OMPI_MCA_ess",
    "OMPI_MCA_orte_",
    "OMPI_MCA_pmix",
    "PRTE_MCA_ess",
    "PRTE_MCA_pmix",
    "PRTE_MCA_prte_",
];

/// Full names of such variables.
const BOOKKEEPING_NAMES: [&str; 6] = [
    "MPICH_INTERFACE_HOSTNAME",
    "MPIR_CVAR_CH3_INTERFACE_HOSTNAME",
    "OMPI_MCA_initial_wdir",
    "OMPI_MCA_mpi_oversubscribe",
    "OMPI_MCA_rmaps_base_oversubscribe",
    "OMPI_MCA_shmem_RUNTIME_QUERY_hint",
];

/// A name that contains one of these is never shown. Open MPI keeps the key of its transports in a name with TRANSPORTS.
const SECRET_WORDS: [&str; 11] =
    ["TOKEN", "KEY", "SECRET", "PASS", "URI", "COOKIE", "CONTROL", "CREDENTIAL", "AUTH", "CERT", "TRANSPORTS"];

/// True if the variable of this name is relevant and may be shown.
#[must_use]
pub fn is_relevant(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let wanted = RELEVANT_NAMES.contains(&name) || RELEVANT_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    wanted && !is_bookkeeping(name) && !SECRET_WORDS.iter().any(|word| upper.contains(word))
}

fn is_bookkeeping(name: &str) -> bool {
    BOOKKEEPING_NAMES.contains(&name) || BOOKKEEPING_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The relevant ones of `variables`, sorted by name.
pub fn relevant_of(variables: impl IntoIterator<Item = (String, String)>) -> Vec<(String, String)> {
    let mut shown: Vec<_> = variables.into_iter().filter(|(name, _)| is_relevant(name)).collect();
    shown.sort();
    shown
}

/// The relevant variables of this process, sorted by name; invalid UTF-8 is replaced.
#[must_use]
pub fn relevant_environment() -> Vec<(String, String)> {
    let text = |part: std::ffi::OsString| part.to_string_lossy().into_owned();
    relevant_of(std::env::vars_os().map(|(name, value)| (text(name), text(value))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relevant_variables_are_sorted() {
        let all = ["UCX_TLS", "HOME", "OMPI_MCA_io", "FI_PROVIDER", "SLURM_JOB_USER", "SLURM_NTASKS", "ROMIO_HINTS"];
        let shown = relevant_of(all.map(|name| (name.to_owned(), "v".to_owned())));
        let names: Vec<_> = shown.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["FI_PROVIDER", "OMPI_MCA_io", "ROMIO_HINTS", "SLURM_NTASKS", "UCX_TLS"]);
    }

    /// Names that mpirun of Open MPI 4.1 and of MPICH 4.0 set for each process.
    #[test]
    fn launcher_bookkeeping_is_hidden() {
        for name in [
            "OMPI_APP_CTX_NUM_PROCS",
            "OMPI_COMMAND",
            "OMPI_COMM_WORLD_LOCAL_RANK",
            "OMPI_COMM_WORLD_SIZE",
            "OMPI_FILE_LOCATION",
            "OMPI_FIRST_RANKS",
            "OMPI_MCA_ess",
            "OMPI_MCA_ess_base_jobid",
            "OMPI_MCA_initial_wdir",
            "OMPI_MCA_mpi_oversubscribe",
            "OMPI_MCA_orte_app_num",
            "OMPI_MCA_orte_num_nodes",
            "OMPI_MCA_pmix",
            "OMPI_MCA_rmaps_base_oversubscribe",
            "OMPI_MCA_shmem_RUNTIME_QUERY_hint",
            "OMPI_NUM_APP_CTX",
            "OMPI_UNIVERSE_SIZE",
            "PMIX_HOSTNAME",
            "PMIX_MCA_mca_base_component_show_load_errors",
            "PRTE_MCA_ess_base_nspace",
            "PRTE_MCA_prte_ess_num_procs",
            "MV2_COMM_WORLD_RANK",
            "HYDI_CONTROL_FD",
            "PMI_FD",
            "PMI_RANK",
            "MPI_LOCALNRANKS",
            "MPIR_CVAR_CH3_INTERFACE_HOSTNAME",
            "GFORTRAN_UNBUFFERED_PRECONNECTED",
        ] {
            assert!(!is_relevant(name), "{name}");
        }
    }

    #[test]
    fn user_settings_are_shown() {
        for name in [
            "OMPI_MCA_io",
            "OMPI_MCA_io_romio321_version",
            "OMPI_MCA_btl",
            "OMPI_MCA_pml",
            "OMPI_MCA_mpi_yield_when_idle",
            "PRTE_MCA_rmaps_default_mapping_policy",
            "MPIR_CVAR_ROMIO_HINTS",
            "MPICH_MPIIO_HINTS",
            "I_MPI_EXTRA_FILESYSTEM",
            "MV2_ENABLE_AFFINITY",
        ] {
            assert!(is_relevant(name), "{name}");
        }
    }

    #[test]
    fn credentials_are_hidden() {
        for name in [
            "OMPI_MCA_orte_hnp_uri",
            "OMPI_MCA_orte_local_daemon_uri",
            "OMPI_MCA_orte_precondition_transports",
            "I_MPI_HYDRA_COOKIE",
            "FI_AUTH_KEY",
            "UCX_secret",
            "MPICH_CONTROL_PORT",
            "OMPI_PASSWORD",
            "OMPI_MCA_token",
            "HYDI_CONTROL_FD",
            "SLURM_JOB_ACCOUNT",
            "AWS_SECRET_ACCESS_KEY",
        ] {
            assert!(!is_relevant(name), "{name}");
        }
    }
}
