//! Where ranks run: what the launcher bound is left, what it did not is bound, and the result says what the kernel has in force.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use serde_json::Value;

use crate::replay;
use crate::support::{
    document, is_command, items, launcher, number, read_json, skip, succeed, Launch, Run, Scratch, SHORT,
};

const REFUSING: &str = include_str!("../planted/refusing.c");

/// CPUs of this test, or why there are too few for it.
fn cpus(least: usize) -> Result<Vec<u32>, String> {
    let found = allowed(std::process::id());
    match found.len() >= least {
        true => Ok(found),
        false => Err(format!("{least} CPUs are needed, there are {}", found.len())),
    }
}

/// CPUs that the kernel allows the first thread of a process.
fn allowed(pid: u32) -> Vec<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).map(numbers).unwrap_or_default()
}

fn numbers(list: &str) -> Vec<u32> {
    let part = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        first.trim().parse::<u32>().unwrap()..=last.trim().parse::<u32>().unwrap()
    };
    list.trim().split(',').flat_map(part).collect()
}

/// A run of about a second that moves nothing.
fn short(launch: Launch) -> Launch {
    launch.args(["--backend", "null", "--types", "2", "--quiet"]).args(SHORT)
}

fn measured(launch: Launch) -> (Run, Value) {
    let scratch = Scratch::new();
    let run = short(launch).into(&scratch).run();
    run.expect(0);
    let result = document(&scratch);
    let schema = read_json(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/results-schema.json").as_ref());
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(&result).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert_eq!(errors, [] as [String; 0]);
    (run, result)
}

/// The only host.
fn host(result: &Value) -> &Value {
    let setup = if result["manifest"].is_object() { &result["manifest"] } else { &result["setup"]["machine"] };
    let hosts = items(&setup["binding"]["hosts"]);
    assert_eq!(hosts.len(), 1, "{setup}");
    &hosts[0]
}

fn kind(result: &Value) -> &str {
    host(result)["state"]["kind"].as_str().unwrap()
}

fn of_ranks(result: &Value, field: &str) -> Vec<Vec<u32>> {
    items(&host(result)["ranks"]).iter().map(|rank| numbers(rank[field].as_str().unwrap())).collect()
}

fn warnings(result: &Value) -> Vec<String> {
    items(&result["derived"]["warnings"]).iter().map(|w| w["kind"].as_str().unwrap().to_owned()).collect()
}

fn assert_each_has_a_cpu(result: &Value, found: &[u32]) {
    let ranks = of_ranks(result, "cpus");
    assert!(ranks.iter().all(|cpus| cpus.len() == 1 && found.contains(&cpus[0])), "{}", host(result));
    assert_eq!(ranks.iter().collect::<BTreeSet<_>>().len(), ranks.len(), "{}", host(result));
    assert!(of_ranks(result, "initial_cpus").iter().all(|cpus| cpus == found), "{}", host(result));
    assert!(!warnings(result).contains(&"not_bound".to_owned()), "{result}");
}

/// The program is told by word, so nobody else on the machine can change it.
#[test]
fn each_rank_has_the_cpu_that_the_result_names() {
    let found = match cpus(2) {
        Ok(found) => found,
        Err(reason) => return skip(&reason),
    };
    let scratch = Scratch::new();
    let mut running = short(Launch::new(2)).args(["--bind", "core"]).into(&scratch).start();
    // The last look counts: libraries of MPI go from CPU to CPU when they start, to see what each of them is.
    let mut seen: Vec<Vec<u32>> = Vec::new();
    while !running.is_over() {
        let now: Vec<Vec<u32>> = running.ranks().iter().map(|pid| allowed(u32::try_from(*pid).unwrap())).collect();
        if now.len() == 2 && now.iter().all(|cpus| cpus.len() == 1) {
            seen = now;
        }
    }
    running.wait().expect(0);
    let result = document(&scratch);
    assert_eq!((kind(&result), &result["config"]["bind"]), ("program", &Value::from("core")));
    assert_each_has_a_cpu(&result, &found);
    let in_force = of_ranks(&result, "cpus");
    assert_eq!(seen.iter().collect::<BTreeSet<_>>(), in_force.iter().collect(), "in /proc while it ran");
    assert_eq!(
        number(&result["manifest"]["hosts"][0]["cores"]),
        found.len() as u64,
        "what the host offers is not less"
    );
}

/// Who else is busy on this machine decides, too: then the result says so, and it is tried again.
#[test]
fn ranks_that_nobody_bound_are_bound() {
    let found = match cpus(2) {
        Ok(found) => found,
        Err(reason) => return skip(&reason),
    };
    let mut other = Value::Null;
    for _ in 0..5 {
        let (run, result) = measured(Launch::new(2).arg("--full"));
        if ["neighbours", "busy"].contains(&kind(&result)) {
            assert!(warnings(&result).contains(&"not_bound".to_owned()) && run.stdout.contains("NOT BOUND"), "{run}");
            other = host(&result)["state"].clone();
            continue;
        }
        assert_eq!((kind(&result), &result["config"]["bind"]), ("program", &Value::from("auto")));
        assert_each_has_a_cpu(&result, &found);
        assert!(run.stdout.contains("a CPU for each of 2 ranks by --bind auto"), "{run}");
        return;
    }
    skip(&format!("others use this machine all the time: {other}"));
}

#[test]
fn comm_and_imb_bind_too_and_replay_does_not() {
    let found = match cpus(2) {
        Ok(found) => found,
        Err(reason) => return skip(&reason),
    };
    let run = |words: &str| {
        let scratch = Scratch::new();
        let launch = Launch::new(2).args(words.split(' '));
        let is_comm = words.starts_with("comm");
        let launch = if is_comm { launch.arg("--out").arg(scratch.join("out")) } else { launch.into(&scratch) };
        launch.run().expect(0);
        document(&scratch)
    };
    for words in
        ["comm --quick --time 2s --memory-per-process 16M --quiet", "imb S_Read_Indv --msglog 4:4 --iter 2 --quiet"]
    {
        let bound = run(&format!("{words} --bind core"));
        assert_each_has_a_cpu(&bound, &found);
        let free = run(&format!("{words} --bind none"));
        assert_eq!(kind(&free), "not_asked");
        let warning = items(&free["derived"]["warnings"]).iter().find(|w| w["kind"] == "not_bound").unwrap();
        assert_eq!((number(&warning["ranks"]), &warning["state"]["kind"]), (2, &Value::from("not_asked")));
        assert!(warning["next_step"].as_str().unwrap().contains("--bind none"), "{warning}");
    }
    let scratch = Scratch::new();
    replay::launch(2, &scratch, &replay::program(), "--quiet").run().expect(0);
    let replayed = document(&scratch);
    assert_eq!((kind(&replayed), &replayed["config"]["bind"]), ("not_asked", &Value::from("none")));
    assert!(!warnings(&replayed).contains(&"not_bound".to_owned()), "as the application ran");
}

/// Each rank through taskset, and by the option of the launcher itself.
#[test]
fn what_was_bound_before_is_left() {
    let found = match cpus(2) {
        Ok(found) => found,
        Err(reason) => return skip(&reason),
    };
    if !is_command("taskset") {
        return skip("no taskset");
    }
    let each = format!(
        "if [ ${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}} = 0 ]; then c={}; else c={}; fi; exec taskset -c $c \"$@\"",
        found[1], found[0]
    );
    for policy in ["auto", "core", "none"] {
        let (_, result) = measured(Launch::through(&["sh", "-c", &each, "sh"], 2).args(["--bind", policy]));
        assert_eq!(kind(&result), "before", "{policy}");
        assert_eq!(of_ranks(&result, "cpus"), [[found[1]], [found[0]]], "{policy}");
        assert!(!warnings(&result).contains(&"not_bound".to_owned()), "{policy}");
    }
    let option = if launcher().mpi == "openmpi" { "--bind-to" } else { "-bind-to" };
    let words = [launcher().words[0].as_str(), option, "core"];
    let (_, result) = measured(Launch::under(&words, 2));
    assert_eq!(kind(&result), "before", "{}", result["manifest"]["binding"]);
    let said = result["manifest"]["binding"]["launcher"].as_str().unwrap();
    assert!(said.contains("bind-to"), "{said}");
    assert_eq!(of_ranks(&result, "cpus"), of_ranks(&result, "initial_cpus"));
}

/// A set for all ranks together binds none of them.
#[test]
fn one_set_for_all_is_what_ranks_are_bound_within() {
    let found = match cpus(2) {
        Ok(found) => found,
        Err(reason) => return skip(&reason),
    };
    if !is_command("taskset") {
        return skip("no taskset");
    }
    let one = found[1].to_string();
    let within =
        |ranks, policy: &str| measured(Launch::through(&["taskset", "-c", &one], ranks).args(["--bind", policy])).1;
    for policy in ["auto", "none"] {
        let crowded = within(2, policy);
        assert_eq!(kind(&crowded), if policy == "auto" { "too_few_cpus" } else { "not_asked" });
        assert!(warnings(&crowded).contains(&"oversubscribed".to_owned()));
    }
    assert_eq!(kind(&within(1, "core")), "before", "a rank on one CPU has it already");
    let two = format!("{},{}", found[0], found[1]);
    let (_, result) = measured(Launch::through(&["taskset", "-c", &two], 2).args(["--bind", "core"]));
    assert_each_has_a_cpu(&result, &found[..2]);
}

#[test]
fn more_ranks_than_cpus_are_not_bound() {
    let found = cpus(1).unwrap();
    if found.len() > 4 {
        return skip("more than 4 CPUs: too many ranks for a test");
    }
    let ranks = found.len() as u64 + 1;
    let (run, result) = measured(Launch::new(ranks).arg("--full"));
    let state = &host(&result)["state"];
    assert_eq!(state["kind"], "too_few_cpus");
    assert_eq!((number(&state["ranks"]), number(&state["cpus"])), (ranks, found.len() as u64));
    assert!(of_ranks(&result, "cpus").iter().all(|cpus| *cpus == found));
    let warned = warnings(&result);
    assert!(warned.contains(&"oversubscribed".to_owned()) && !warned.contains(&"not_bound".to_owned()), "{warned:?}");
    assert!(run.stdout.contains("NOT BOUND"), "{run}");
    // By word it is refused on all ranks, with what to do, and nothing is left.
    let scratch = Scratch::new();
    let refused =
        short(Launch::new(ranks)).args(["--bind", "core"]).into(&scratch).within(Duration::from_secs(60)).run();
    refused.expect(2).says(&["--bind core", &format!("{ranks} ranks of a host"), "Start at most as many ranks"]);
    assert_eq!(refused.stderr.matches("--bind core needs").count(), 1, "{refused}");
    assert_eq!(scratch.list("disk"), [] as [&str; 0]);
}

#[test]
fn a_rank_alone_is_bound_by_word_only() {
    let found = match cpus(2) {
        Ok(found) => found,
        Err(reason) => return skip(&reason),
    };
    let (_, free) = measured(Launch::new(1));
    assert_eq!((kind(&free), of_ranks(&free, "cpus")), ("alone", vec![found.clone()]));
    assert!(!warnings(&free).contains(&"not_bound".to_owned()));
    let (_, bound) = measured(Launch::new(1).args(["--bind", "core"]));
    assert_each_has_a_cpu(&bound, &found);
}

fn refusing(scratch: &Scratch) -> PathBuf {
    let (source, library) = (scratch.join("refusing.c"), scratch.join("refusing.so"));
    fs::write(&source, REFUSING).unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut command = Command::new(compiler);
    command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).arg("-ldl");
    succeed(&mut command).expect("a C compiler, as the build needs one");
    library
}

/// The kernel refuses it on one rank, as a filter of a container may: the host stays as it was found, or the run is refused.
#[test]
fn what_the_kernel_refuses_to_one_rank_is_undone_on_all() {
    let found = match cpus(2) {
        Ok(found) => found,
        Err(reason) => return skip(&reason),
    };
    let scratch = Scratch::new();
    let each = format!(
        "if [ ${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}} = 1 ]; then export REFUSED=sched_setaffinity LD_PRELOAD={}; fi; exec \"$@\"",
        refusing(&scratch).display()
    );
    let launch = || Launch::through(&["sh", "-c", &each, "sh"], 2);
    let refused = short(launch()).args(["--bind", "core"]).into(&scratch).within(Duration::from_secs(60)).run();
    refused.expect(2).says(&["--bind core: sched_setaffinity", "seccomp"]);
    for _ in 0..5 {
        let (_, result) = measured(launch());
        assert!(of_ranks(&result, "cpus").iter().all(|cpus| *cpus == found), "{}", host(&result));
        assert!(warnings(&result).contains(&"not_bound".to_owned()));
        if ["neighbours", "busy"].contains(&kind(&result)) {
            continue;
        }
        assert_eq!(kind(&result), "refused");
        assert!(host(&result)["state"]["message"].as_str().unwrap().contains("sched_setaffinity"));
        return;
    }
    skip("others use this machine all the time");
}

/// Programs that work all the time.
struct Busy(Vec<Child>);

impl Busy {
    /// One on each of these CPUs, as the ranks of another run are.
    fn on(cpus: &[u32]) -> Self {
        let spin = |cpu: &u32| {
            let mut command = Command::new("taskset");
            command.args(["-c", &cpu.to_string(), "sh", "-c", "while :; do :; done"]).spawn().expect("taskset")
        };
        Self(cpus.iter().map(spin).collect())
    }
}

impl Busy {
    /// So many that are bound to nothing.
    fn anywhere(number: usize) -> Self {
        let spin = |_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("a shell");
        Self((0..number).map(spin).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Two runs on one node: the second one does not sit down on the first one's cores.
#[test]
fn a_second_run_leaves_the_cores_of_the_first() {
    let found = match cpus(2) {
        Ok(found) => found,
        Err(reason) => return skip(&reason),
    };
    if !is_command("taskset") {
        return skip("no taskset");
    }
    let busy = Busy::on(&found);
    std::thread::sleep(Duration::from_secs(1));
    let (run, second) = measured(Launch::new(2).arg("--full"));
    let state = &host(&second)["state"];
    assert_eq!(state["kind"], "neighbours", "{state}");
    let process = number(&state["first"]["process"]);
    // Somebody else may be bound on this machine, too.
    assert!(
        busy.0.iter().any(|child| u64::from(child.id()) == process) || state["first"]["program"] != "sh",
        "{state}"
    );
    assert!(run.stdout.contains("NOT BOUND"), "{run}");
    assert!(of_ranks(&second, "cpus").iter().all(|cpus| *cpus == found));
    let (_, forced) = measured(Launch::new(2).args(["--bind", "core"]));
    assert_each_has_a_cpu(&forced, &found);
    assert!(host(&forced)["neighbour"]["process"].is_u64(), "{}", host(&forced));
}

/// Programs of others that are not bound: whoever is bound waits for them.
#[test]
fn on_a_busy_machine_ranks_stay_free() {
    let found = match cpus(2) {
        Ok(found) => found,
        Err(reason) => return skip(&reason),
    };
    let _busy = Busy::anywhere(found.len());
    std::thread::sleep(Duration::from_secs(1));
    let (run, result) = measured(Launch::new(found.len() as u64).arg("--full"));
    let state = &host(&result)["state"];
    if state["kind"] == "neighbours" {
        return skip(&format!("others are bound on this machine: {state}"));
    }
    assert_eq!(state["kind"], "busy");
    assert!(number(&state["other_process_percent"]) > 25, "{state}");
    assert!(
        warnings(&result).contains(&"not_bound".to_owned()) && run.stdout.contains("NOT BOUND, other processes used"),
        "{run}"
    );
    assert!(of_ranks(&result, "cpus").iter().all(|cpus| *cpus == found));
    let (_, forced) = measured(Launch::new(2).args(["--bind", "core"]));
    assert_each_has_a_cpu(&forced, &found);
}

/// Since Linux 6.2 the kernel's workers of io_uring are where the rank is that they work for, as docs/results.md has it.
#[test]
fn workers_are_on_the_cpu_of_their_rank() {
    if let Err(reason) = cpus(2) {
        return skip(&reason);
    }
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut version = release.split(['.', '-']).map_while(|part| part.trim().parse::<u32>().ok());
    if (version.next(), version.next()) < (Some(6), Some(2)) {
        return skip(&format!("Linux {release}: workers are not bound before 6.2"));
    }
    let scratch = Scratch::new();
    let words =
        ["--backend", "uring", "--direct", "off", "--types", "2", "--quiet", "--space", "300M", "--bind", "core"];
    let mut running =
        Launch::new(2).args(words).args(["-T", "3s", "--memory-per-process", "64M"]).into(&scratch).start();
    // Of each rank: its own CPUs when last seen, and those of its workers.
    let mut seen: BTreeMap<i32, (Vec<u32>, BTreeSet<Vec<u32>>)> = BTreeMap::new();
    while !running.is_over() {
        for pid in running.ranks() {
            let (own, workers) = seen.entry(pid).or_default();
            for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
                let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
                let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
                let Some((name, list)) = field("Name:").zip(field("Cpus_allowed_list:")) else { continue };
                if name.starts_with("iou-wrk") {
                    workers.insert(numbers(list));
                } else if task.file_name().to_string_lossy() == pid.to_string() {
                    *own = numbers(list);
                }
            }
        }
    }
    running.wait().expect(0);
    if seen.values().all(|(_, workers)| workers.is_empty()) {
        return skip("no worker of io_uring was seen");
    }
    for (own, workers) in seen.values() {
        assert_eq!(own.len(), 1, "{seen:?}");
        assert!(workers.iter().all(|list| list == own), "{seen:?}");
    }
}
