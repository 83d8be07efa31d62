use super::*;

fn env<'a>(list: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
    |name| list.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
}

fn message(world_size: u64, mpi: &str, env: impl Fn(&str) -> Option<String>) -> Option<String> {
    launcher_mismatch(world_size, mpi, env).map(|mismatch| mismatch.message)
}

#[test]
fn mpich_under_open_mpi() {
    let started = [("OMPI_COMM_WORLD_SIZE", "2"), ("OMPI_COMM_WORLD_RANK", "1"), ("PMIX_RANK", "1")];
    let text = message(1, "MPICH 4.0.2", env(&started)).unwrap();
    for part in ["2 processes", "OMPI_COMM_WORLD_SIZE=2", "MPICH 4.0.2", "`mpirun -n 2", "mpirun.mpich"] {
        assert!(text.contains(part), "{part} not in: {text}");
    }
    assert!(!is_reporting_process(env(&started)));
}

#[test]
fn open_mpi_under_mpich() {
    // After MPI_Init each copy has the variables of its own singleton daemon.
    let started = [("PMI_SIZE", "2"), ("PMI_RANK", "1"), ("MPI_LOCALNRANKS", "2"), ("PMIX_RANK", "0")];
    let text = message(1, "Open MPI 4.1.4", env(&started)).unwrap();
    assert!(text.contains("PMI_SIZE=2") && text.contains("mpirun.openmpi"), "{text}");
    assert!(!is_reporting_process(env(&started)));
    let port = [("MPI_LOCALNRANKS", "3"), ("PMI_ID", "0"), ("PMI_PORT", "h:1")];
    assert!(message(1, "Open MPI 4.1.4", env(&port)).unwrap().contains("MPI_LOCALNRANKS=3"));
    assert!(is_reporting_process(env(&port)));
}

#[test]
fn right_launches_pass() {
    assert_eq!(message(2, "MPICH 4.0.2", env(&[("PMI_SIZE", "2")])), None);
    assert_eq!(message(1, "MPICH 4.0.2", env(&[("PMI_SIZE", "1")])), None);
    assert_eq!(message(1, "MPICH 4.0.2", env(&[])), None);
    assert_eq!(message(1, "MPICH 4.0.2", env(&[("OMPI_COMM_WORLD_SIZE", "1")])), None);
    // Two hosts with one rank each, seen from one of them.
    assert_eq!(message(2, "MPICH 4.0.2", env(&[("PMI_SIZE", "2"), ("MPI_LOCALNRANKS", "1")])), None);
}

#[test]
fn native_launcher_wins_inside_another() {
    let nested = [("OMPI_COMM_WORLD_SIZE", "4"), ("PMI_SIZE", "1"), ("MPI_LOCALNRANKS", "1")];
    assert_eq!(message(1, "MPICH 4.0.2", env(&nested)), None);
    let reverse = [("OMPI_COMM_WORLD_SIZE", "1"), ("PMI_SIZE", "4")];
    assert_eq!(message(1, "Open MPI 5.0.1", env(&reverse)), None);
}

#[test]
fn the_same_family_from_elsewhere() {
    let text = message(1, "Open MPI 4.1.4", env(&[("OMPI_COMM_WORLD_SIZE", "2")])).unwrap();
    assert!(text.contains("another installation"), "{text}");
}

#[test]
fn slurm_steps_but_not_batch_scripts() {
    let text = message(1, "Open MPI 4.1.4", env(&[("SLURM_STEP_NUM_TASKS", "8"), ("SLURM_NTASKS", "8")])).unwrap();
    assert!(text.contains("srun --mpi=pmix -n 8"), "{text}");
    assert!(message(1, "MPICH 4.0.2", env(&[("SLURM_STEP_NUM_TASKS", "8")])).unwrap().contains("--mpi=pmi2"));
    assert_eq!(message(1, "MPICH 4.0.2", env(&[("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0")])), None);
    // mpirun -n 1 inside a job: its daemons are a step of two tasks.
    assert_eq!(message(1, "MPICH 4.0.2", env(&[("SLURM_STEP_NUM_TASKS", "2"), ("PMI_SIZE", "1")])), None);
    assert_eq!(
        message(1, "Open MPI 4.1.4", env(&[("SLURM_STEP_NUM_TASKS", "2"), ("OMPI_COMM_WORLD_SIZE", "1")])),
        None
    );
}

const MPIS: [&str; 4] = ["MPICH 4.0.2", "Open MPI 4.1.4", "Intel MPI 2021.19", "another MPI"];

/// Variables with their values in process 0 and in process 1 of two.
type Variables = &'static [(&'static str, [&'static str; 2])];

/// Launchers that no MPI of these tests knows: their variables, whether process 0 can know, and the name.
const UNKNOWN: [(Variables, bool, &str); 12] = [
    (&[("FLUX_JOB_SIZE", ["2", "2"]), ("FLUX_TASK_RANK", ["0", "1"])], true, "flux run"),
    (&[("FLUX_TASK_RANK", ["0", "1"])], false, "flux run"),
    (&[("JSM_NAMESPACE_SIZE", ["2", "2"]), ("JSM_NAMESPACE_RANK", ["0", "1"])], true, "jsrun"),
    (&[("JSM_NAMESPACE_RANK", ["0", "1"])], false, "jsrun"),
    (&[("SLURM_STEP_NUM_TASKS", ["2", "2"]), ("SLURM_PROCID", ["0", "1"])], true, "srun"),
    (&[("PALS_SIZE", ["2", "2"]), ("PALS_RANKID", ["0", "1"])], true, "PALS"),
    // One process on each of two hosts, and two on one.
    (&[("PALS_LOCAL_SIZE", ["1", "1"]), ("PALS_RANKID", ["0", "1"])], false, "PALS"),
    (&[("PALS_LOCAL_SIZE", ["2", "2"]), ("PALS_RANKID", ["0", "1"])], true, "PALS"),
    (&[("PALS_RANKID", ["0", "1"])], false, "PALS"),
    (&[("ALPS_APP_PE", ["0", "1"])], false, "ALPS"),
    (&[("PMIX_RANK", ["0", "1"])], false, "PMIx"),
    (&[("PMI_ID", ["0", "1"]), (HYDRA_SIZE, ["1", "1"])], false, "MPICH or Intel MPI"),
];

fn process(variables: Variables, process: usize) -> Vec<(&'static str, &'static str)> {
    variables.iter().map(|(name, values)| (*name, values[process])).collect()
}

#[test]
fn copies_under_unknown_launchers_are_refused_with_one_message() {
    for (variables, knows, name) in UNKNOWN {
        for mpi in MPIS {
            let copies = [0, 1].map(|copy| launcher_mismatch(1, mpi, env(&process(variables, copy))));
            assert_eq!(copies[0].is_some(), knows, "{variables:?}");
            let refused = copies[1].as_ref().unwrap();
            let started = variables.iter().any(|(name, _)| refused.message.contains(&format!("{name}=")));
            assert!(started && refused.message.contains(name) && refused.message.contains(mpi), "{}", refused.message);
            assert!(refused.message.contains("beff-raw ...`"), "no command in {}", refused.message);
            let reporting = copies.iter().flatten().filter(|mismatch| mismatch.is_reporting).count();
            assert_eq!(reporting, 1, "{variables:?} {mpi}");
        }
        // Ranks of one world, as many as there are processes.
        assert_eq!(message(2, MPIS[0], env(&process(variables, 1))), None);
        assert!(is_launched(env(&process(variables, 0))), "{variables:?}");
    }
    for larger in [2, 7] {
        let rank = larger.to_string();
        let alone = launcher_mismatch(1, MPIS[0], env(&[("PMIX_RANK", &rank)])).unwrap();
        assert!(!alone.is_reporting && alone.message.contains(&format!("PMIX_RANK={larger} here")), "{alone:?}");
    }
}

#[test]
fn the_command_is_that_of_the_launcher_for_this_mpi() {
    let flux = [("FLUX_JOB_SIZE", "16"), ("FLUX_TASK_RANK", "3"), ("PMI_SIZE", "16"), ("PMI_RANK", "3")];
    // Flux sets the variables of PMI, but it is not hydra, which would.
    assert!(message(1, "Open MPI 5.0.1", env(&flux)).unwrap().contains("`flux run -n 16 -o pmi=pmix beff-raw ...`"));
    assert!(message(1, "MPICH 4.0.2", env(&flux)).unwrap().contains("`flux run -n 16 -o pmi=simple beff-raw ...`"));
    let pals = [("PALS_RANKID", "0"), ("PALS_LOCAL_SIZE", "1"), ("PMI_SIZE", "4"), ("PMI_RANK", "0")];
    let text = message(1, "MPICH 4.0.2", env(&pals)).unwrap();
    for part in ["mpiexec of Cray PALS started 4 processes (PMI_SIZE=4)", "`mpiexec -n 4 beff-raw ...`", "MPICC=cc"] {
        assert!(text.contains(part), "{part} not in: {text}");
    }
    // hydra inside one process of Flux.
    let hydra = [("FLUX_JOB_SIZE", "2"), ("PMI_SIZE", "4"), (HYDRA_SIZE, "4")];
    assert!(message(1, "Open MPI 4.1.4", env(&hydra)).unwrap().contains("PMI_SIZE=4, set by the mpirun of MPICH"));
    let jsrun = [("JSM_NAMESPACE_SIZE", "2"), ("OMPI_COMM_WORLD_SIZE", "2"), ("PMIX_RANK", "0")];
    assert!(message(1, "MPICH 4.0.2", env(&jsrun)).unwrap().contains("set by jsrun"));
    assert!(message(1, "Open MPI 4.1.4", env(&jsrun)).unwrap().contains("another installation"));
    // Slurm and Flux may set the variables of PALS.
    let shasta = [("SLURM_STEP_NUM_TASKS", "2"), ("PALS_RANKID", "1"), ("PMI_SIZE", "2"), ("PMI_RANK", "1")];
    assert!(message(1, "Open MPI 4.1.4", env(&shasta)).unwrap().contains("srun --mpi=pmix -n 2"));
}

#[test]
fn genuine_launches_inside_unknown_launchers_start() {
    let mpirun: [&[(&str, &str)]; 3] = [
        &[("PMI_SIZE", "1"), ("PMI_RANK", "0"), (HYDRA_SIZE, "1")],
        &[("OMPI_COMM_WORLD_SIZE", "1"), ("OMPI_COMM_WORLD_RANK", "0"), ("PMIX_RANK", "0")],
        // Inside one of several processes of a hydra that connects through a port.
        &[("PMI_SIZE", "1"), ("PMI_RANK", "0"), ("PMI_ID", "1"), (HYDRA_SIZE, "1")],
    ];
    for (outer, _, _) in UNKNOWN {
        for (inner, mpi) in mpirun.iter().flat_map(|inner| MPIS.map(|mpi| (inner, mpi))) {
            let mut both = inner.to_vec();
            both.extend(process(outer, 1).into_iter().filter(|(name, _)| inner.iter().all(|(own, _)| own != name)));
            // Only the launcher of another MPI inside jsrun or hydra is ambiguous: each of several processes may have started one.
            let native = MpiFamily::of(mpi)
                == MpiFamily::of(if both[0].0 == "PMI_SIZE" { "MPICH" } else { "Open MPI" })
                || (both[0].0 == "PMI_SIZE" && mpi.contains("Intel"));
            let is_mpirun = outer.iter().any(|(name, _)| name.starts_with("JSM") || *name == "PMI_ID");
            assert!(message(1, mpi, env(&both)).is_none() || (is_mpirun && !native), "{mpi}: {both:?}");
        }
    }
    for single in [
        &[("FLUX_JOB_SIZE", "1"), ("FLUX_TASK_RANK", "0"), ("PMI_SIZE", "1"), ("PMI_RANK", "0")][..],
        &[("FLUX_JOB_SIZE", "1"), ("FLUX_TASK_RANK", "0")],
        // A job of Flux inside one of Slurm.
        &[("FLUX_JOB_SIZE", "1"), ("FLUX_TASK_RANK", "0"), ("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_PROCID", "0")],
        &[("JSM_NAMESPACE_SIZE", "1"), ("JSM_NAMESPACE_RANK", "0"), ("PMIX_RANK", "0")],
        &[("PALS_RANKID", "0"), ("PALS_LOCAL_SIZE", "1"), ("PMI_SIZE", "1"), ("PMI_RANK", "0")],
        &[("ALPS_APP_PE", "0")],
        &[("PMIX_RANK", "0"), ("PMIX_NAMESPACE", "prterun-host-1@1")],
        &[("SLURM_STEP_NUM_TASKS", "1"), ("SLURM_PROCID", "0"), ("PMIX_RANK", "0")],
        // Shells of a job.
        &[("SLURM_JOB_ID", "1"), ("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0"), ("SLURM_NNODES", "2")],
        &[("FLUX_URI", "local:///x"), ("FLUX_ENCLOSING_ID", "f1")],
        &[("PBS_JOBID", "1"), ("PBS_NP", "8"), ("PBS_TASKNUM", "1"), ("PBS_VNODENUM", "0")],
        &[("LSB_JOBID", "1"), ("LSB_DJOB_NUMPROC", "8"), ("LSB_MCPU_HOSTS", "a 4 b 4"), ("LS_JOBPID", "77")],
    ] {
        for mpi in MPIS {
            assert_eq!(message(1, mpi, env(single)), None, "{single:?}");
        }
    }
    for number in ["", "-1", "one", "1.0"] {
        assert_eq!(message(1, MPIS[0], env(&[("FLUX_JOB_SIZE", number), ("FLUX_TASK_RANK", number)])), None);
    }
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
        &[("PMIX_RANK", "0"), ("PMIX_NAMESPACE", "slurm.pmix.1.0"), ("SLURM_STEP_NUM_TASKS", "4")],
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
    for manager in ["FLUX_TASK_RANK", "PALS_RANKID", "ALPS_APP_PE", "PMIX_RANK", "JSM_NAMESPACE_RANK"] {
        assert!(
            is_reporting_process(env(&[(manager, "0")])) && !is_reporting_process(env(&[(manager, "1")])),
            "{manager}"
        );
    }
    // A singleton of Open MPI in each process of Flux.
    assert!(!is_reporting_process(env(&[("FLUX_TASK_RANK", "1"), ("PMIX_RANK", "0")])));
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
