use super::*;

fn env<'a>(list: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
    |name| list.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
}

#[test]
fn mpich_under_open_mpi() {
    let started = [("OMPI_COMM_WORLD_SIZE", "2"), ("OMPI_COMM_WORLD_RANK", "1"), ("PMIX_RANK", "1")];
    let text = launcher_mismatch(1, "MPICH 4.0.2", env(&started)).unwrap();
    for part in ["2 processes", "OMPI_COMM_WORLD_SIZE=2", "MPICH 4.0.2", "`mpirun -n 2", "mpirun.mpich"] {
        assert!(text.contains(part), "{part} not in: {text}");
    }
    assert!(!is_reporting_process(env(&started)));
}

#[test]
fn open_mpi_under_mpich() {
    // After MPI_Init each copy has the variables of its own singleton daemon.
    let started = [("PMI_SIZE", "2"), ("PMI_RANK", "1"), ("MPI_LOCALNRANKS", "2"), ("PMIX_RANK", "0")];
    let text = launcher_mismatch(1, "Open MPI 4.1.4", env(&started)).unwrap();
    assert!(text.contains("PMI_SIZE=2") && text.contains("mpirun.openmpi"), "{text}");
    assert!(!is_reporting_process(env(&started)));
    let port = [("MPI_LOCALNRANKS", "3"), ("PMI_ID", "0"), ("PMI_PORT", "h:1")];
    assert!(launcher_mismatch(1, "Open MPI 4.1.4", env(&port)).unwrap().contains("MPI_LOCALNRANKS=3"));
    assert!(is_reporting_process(env(&port)));
}

#[test]
fn right_launches_pass() {
    assert_eq!(launcher_mismatch(2, "MPICH 4.0.2", env(&[("PMI_SIZE", "2")])), None);
    assert_eq!(launcher_mismatch(1, "MPICH 4.0.2", env(&[("PMI_SIZE", "1")])), None);
    assert_eq!(launcher_mismatch(1, "MPICH 4.0.2", env(&[])), None);
    assert_eq!(launcher_mismatch(1, "MPICH 4.0.2", env(&[("OMPI_COMM_WORLD_SIZE", "1")])), None);
    // Two hosts with one rank each, seen from one of them.
    assert_eq!(launcher_mismatch(2, "MPICH 4.0.2", env(&[("PMI_SIZE", "2"), ("MPI_LOCALNRANKS", "1")])), None);
}

#[test]
fn native_launcher_wins_inside_another() {
    let nested = [("OMPI_COMM_WORLD_SIZE", "4"), ("PMI_SIZE", "1"), ("MPI_LOCALNRANKS", "1")];
    assert_eq!(launcher_mismatch(1, "MPICH 4.0.2", env(&nested)), None);
    let reverse = [("OMPI_COMM_WORLD_SIZE", "1"), ("PMI_SIZE", "4")];
    assert_eq!(launcher_mismatch(1, "Open MPI 5.0.1", env(&reverse)), None);
}

#[test]
fn the_same_family_from_elsewhere() {
    let text = launcher_mismatch(1, "Open MPI 4.1.4", env(&[("OMPI_COMM_WORLD_SIZE", "2")])).unwrap();
    assert!(text.contains("another installation"), "{text}");
}

#[test]
fn slurm_steps_but_not_batch_scripts() {
    let text = launcher_mismatch(1, "Open MPI 4.1.4", env(&[(SLURM_STEP_SIZE, "8"), ("SLURM_NTASKS", "8")])).unwrap();
    assert!(text.contains("srun --mpi=pmix -n 8"), "{text}");
    assert!(launcher_mismatch(1, "MPICH 4.0.2", env(&[(SLURM_STEP_SIZE, "8")])).unwrap().contains("--mpi=pmi2"));
    assert_eq!(launcher_mismatch(1, "MPICH 4.0.2", env(&[("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0")])), None);
    // mpirun -n 1 inside a job: its daemons are a step of two tasks.
    assert_eq!(launcher_mismatch(1, "MPICH 4.0.2", env(&[(SLURM_STEP_SIZE, "2"), ("PMI_SIZE", "1")])), None);
    assert_eq!(
        launcher_mismatch(1, "Open MPI 4.1.4", env(&[(SLURM_STEP_SIZE, "2"), ("OMPI_COMM_WORLD_SIZE", "1")])),
        None
    );
}

#[test]
fn pre_init_mismatch_is_limited_to_aborting_launches() {
    let open_mpi = [("OMPI_COMM_WORLD_SIZE", "2"), ("PMIX_RANK", "0")];
    let library = "MPICH Version:      5.0.2\nMPICH configure:    --with-device=ch4:ofi\n";
    let text = pre_init_mismatch(library, "MPICH 5.0.2", env(&open_mpi)).unwrap();
    assert!(text.contains("built with MPICH 5.0.2,"), "{text}");
    assert!(text.contains("but this program is built"), "{text}");
    assert_eq!(pre_init_mismatch("MPICH 5.0.2 --with-pmix=/usr", "MPICH 5.0.2 --with-pmix=/usr", env(&open_mpi)), None);
    assert_eq!(pre_init_mismatch("Open MPI 5.0.1", "Open MPI 5.0.1", env(&open_mpi)), None);
    assert_eq!(pre_init_mismatch("Intel MPI 2021.19", "Intel MPI 2021.19", env(&open_mpi)), None);
    let pmix_env = [open_mpi[0], ("MPIR_CVAR_PMI_VERSION", "pmix")];
    assert_eq!(pre_init_mismatch("MPICH 5.0.2", "MPICH 5.0.2", env(&pmix_env)), None);
}

#[test]
fn pre_init_mismatch_accepts_slurm_and_hydra() {
    for launch in [
        &[("PMI_SIZE", "4"), ("PMI_RANK", "0"), ("PMI_FD", "6")][..],
        &[("PMIX_RANK", "0"), ("PMIX_NAMESPACE", "slurm.pmix.1.0"), (SLURM_STEP_SIZE, "4")],
        &[("OMPI_COMM_WORLD_SIZE", "2"), ("PMI_PORT", "h:1"), ("PMI_ID", "0")],
        &[("OMPI_COMM_WORLD_SIZE", "1")],
        &[],
    ] {
        assert_eq!(pre_init_mismatch("MPICH 5.0.2", "MPICH 5.0.2", env(launch)), None, "{launch:?}");
    }
}

#[test]
fn one_process_reports() {
    assert!(is_reporting_process(env(&[])));
    assert!(is_reporting_process(env(&[("OMPI_COMM_WORLD_RANK", "0")])));
    assert!(!is_reporting_process(env(&[("SLURM_PROCID", "3")])));
    assert!(!is_reporting_process(env(&[("SLURM_PROCID", "0"), ("PMI_RANK", "3")])));
}

#[test]
fn binding_source_is_the_binding_launcher() {
    let with = |set: &[(&str, &str)]| {
        let set: Vec<(String, String)> = set.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        binding_source(|name| set.iter().find(|(k, _)| k == name).map(|(_, v)| v.clone()))
    };
    // As observed with Open MPI 4.1 --bind-to core and MPICH 4.0 -bind-to core.
    let open_mpi = with(&[("OMPI_MCA_hwloc_base_binding_policy", "core")]);
    assert_eq!(open_mpi.as_deref(), Some("--bind-to core of Open MPI's mpirun"));
    assert_eq!(with(&[("HYDRA_USER_PROVIDED_BINDING", "1")]).as_deref(), Some("-bind-to of MPICH's mpirun"));
    assert_eq!(
        with(&[("SLURM_CPU_BIND", "quiet,mask_cpu:0x1")]).as_deref(),
        Some("srun --cpu-bind=quiet,mask_cpu:0x1")
    );
    assert_eq!(with(&[]), None);
}

#[test]
fn binding_request_must_come_from_the_launcher_of_the_ranks() {
    let is_requested = |set: &[(&str, &str)]| {
        let set: Vec<(String, String)> = set.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        is_binding_requested(|name| set.iter().find(|(k, _)| k == name).map(|(_, v)| v.clone()))
    };
    assert!(is_requested(&[("OMPI_MCA_hwloc_base_binding_policy", "socket")]));
    assert!(is_requested(&[("PRTE_MCA_hwloc_default_binding_policy", "numa:overload-allowed")]));
    assert!(is_requested(&[("I_MPI_PIN_DOMAIN", "socket")]));
    assert!(is_requested(&[("SLURM_CPU_BIND", "quiet,mask_cpu:0x3")]));
    assert!(
        !is_requested(&[])
            && !is_requested(&[("OMPI_MCA_hwloc_base_binding_policy", "none")])
            && !is_requested(&[("SLURM_CPU_BIND", "quiet,none")])
    );
    // Of the daemons below mpirun, one on each node; MPICH does not publish the target of its binding.
    assert!(!is_requested(&[("SLURM_CPU_BIND", "quiet,mask_cpu:0xF"), ("MPI_LOCALRANKID", "0")]));
    assert!(!is_requested(&[("SLURM_CPU_BIND", "quiet,mask_cpu:0xF"), ("PRTE_MCA_ess_base_nspace", "prterun")]));
    assert!(!is_requested(&[("HYDRA_USER_PROVIDED_BINDING", "1"), ("MPI_LOCALRANKID", "0")]));
}
