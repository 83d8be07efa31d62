//! Several hosts: network namespaces of this one (scripts/cluster.sh).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{
    document, is_command, items, launcher, list, number, signal, skip, succeed, Launch, Scratch, PROGRAM,
};

/// From the result to the end of all ranks.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why there can be no such hosts here.
fn unable() -> Option<String> {
    if let Some(missing) = ["ip", "nsenter", "unshare", "setpriv"].into_iter().find(|name| !is_command(name)) {
        return Some(format!("{missing} is not installed: no hosts made of namespaces"));
    }
    let probe = "set -e; ip link add beffprobe type bridge; ip link set lo up";
    let namespaces = succeed(Command::new("unshare").args(["-n", "-u", "-i", "-m", "sh", "-c", probe]));
    namespaces.err().map(|e| format!("no namespaces can be made here: {e}"))
}

fn cluster(options: &[&str], program: &[&str]) -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/cluster.sh");
    let mut command = Command::new(script);
    command.args(["-t", "45"]).args(options).arg("--").args(program);
    command.env("BEFF_MPIRUN", launcher().words.join(" ")).env("BEFF_MPI_NAME", &launcher().mpi);
    command
}

/// A benchmark with 6 ranks on 3 hosts; its result.
fn three_hosts(scratch: &Scratch, options: &[&str], words: &str) -> Value {
    let options: Vec<&str> = ["-n", "6", "-x", PROGRAM].iter().chain(options).copied().collect();
    let mut command = cluster(&options, &words.split_whitespace().collect::<Vec<_>>());
    command.arg("--out").arg(scratch.join("out")).env("TMPDIR", scratch.path());
    let mut running = Launch::of(command).start();
    let mut there_since = None;
    // MPICH 4.0 over TCP now and then does not come out of MPI_Finalize: the result is complete then, and we end it.
    while launcher().mpi == "mpich" && !running.is_over() {
        if there_since.is_none() && running.log("stderr").contains("wrote ") {
            there_since = Some(Instant::now());
        }
        if there_since.is_some_and(|since| since.elapsed() > PATIENCE) {
            println!("ended by the test, after the result");
            running.ranks().into_iter().for_each(|pid| signal(pid, "KILL"));
            break;
        }
        sleep(Duration::from_millis(20));
    }
    let run = running.wait();
    assert!(run.status.success() || (launcher().mpi == "mpich" && run.stderr.contains("wrote ")), "{run}");
    assert_eq!(left_of(scratch), [] as [String; 0], "{run}");
    document(scratch)
}

/// Processes, and the directory, of clusters whose files are in `scratch`.
fn left_of(scratch: &Scratch) -> Vec<String> {
    let mark = scratch.join("beff-cluster.").display().to_string();
    let is_ours = |process: &PathBuf| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(&mark)
    };
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()).filter(is_ours);
    let commands = processes.map(|p| fs::read_to_string(p.join("cmdline")).unwrap_or_default().replace('\0', " "));
    let directories = list(scratch.path()).into_iter().filter(|name| name.starts_with("beff-cluster."));
    commands.chain(directories).collect()
}

#[test]
fn hosts_and_numbering_are_reported_and_messages_arrive() {
    if let Some(reason) = unable() {
        return skip(&reason);
    }
    for (more, numbering) in [(&[][..], "sequential"), (&["-r"][..], "round_robin")] {
        let scratch = Scratch::new();
        let result = three_hosts(&scratch, more, "comm --quick --time 5s --memory-per-process 16M");
        let setup = &result["setup"];
        assert_eq!(setup["numbering"], numbering);
        let hosts = items(&setup["machine"]["hosts"]);
        assert_eq!(hosts.iter().map(|h| number(&h["ranks"])).collect::<Vec<_>>(), [2, 2, 2]);
        // An entry stands for consecutive ranks with equal values.
        let of_entry = |p: &Value| vec![number(&p["host"]); number(&p["ranks"]) as usize];
        let of_ranks: Vec<u64> = items(&setup["placement"]).iter().flat_map(of_entry).collect();
        let expected = if more.is_empty() { [0, 0, 1, 1, 2, 2] } else { [0, 1, 2, 0, 1, 2] };
        assert_eq!(of_ranks, expected);
        assert!(!items(&setup["transport"]["interfaces"]).is_empty(), "{}", setup["transport"]);
        assert_eq!(result["ending"]["outcome"], "complete");
        assert!(result["derived"]["value"]["b_eff"]["bytes_per_second"].as_f64().unwrap() > 0.0);
        for p in items(&result["patterns"]) {
            assert!(number(&p["bytes_checked"]) > 0 && number(&p["bytes_wrong"]) == 0, "{}", p["pattern"]);
        }
    }
}

/// The hosts are one kernel, but each shows its own processes: nothing goes from one to the other through shared memory.
#[test]
fn two_phase_transfers_exchange_messages_between_hosts() {
    if let Some(reason) = unable() {
        return skip(&reason);
    }
    let scratch = Scratch::new();
    let words = "io -T 1s --backend posix --types 0,4 --collective two-phase --verify full --memory-per-process 16M --space 300M";
    let result = three_hosts(&scratch, &[], words);
    let hosts: Vec<u64> = items(&result["manifest"]["hosts"]).iter().map(|host| number(&host["ranks"])).collect();
    assert_eq!(hosts, [2, 2, 2]);
    let mut exchanged = 0;
    for pattern in items(&result["patterns"]) {
        let strategy = pattern["strategy"].as_str().unwrap();
        if strategy.starts_with("two-phase") && !strategy.contains("no exchange") {
            assert!(strategy.contains("exchanged by messages, no shared memory"), "{strategy}");
            exchanged += 1;
        }
        assert_eq!(items(&pattern["evidence"]["devices"]).len() % 3, 0, "{}", pattern["evidence"]);
        assert_eq!(number(&pattern["verification"]["words_wrong"]), 0);
    }
    assert!(exchanged > 0 && items(&result["corruptions"]).is_empty());
}

/// A signal at any time, also in set-up and teardown, ends all of it; the namespaces end with their processes.
#[test]
fn a_signal_leaves_nothing() {
    if let Some(reason) = unable() {
        return skip(&reason);
    }
    let when = [0, 5, 10, 15, 20, 30, 50, 80, 120, 200, 400].map(Duration::from_millis);
    for (delay, (program, name)) in
        when.into_iter().zip([("sleep", "TERM"), ("true", "TERM"), ("sleep", "HUP")].into_iter().cycle())
    {
        let scratch = Scratch::new();
        let path = format!("/bin/{program}");
        let mut command = cluster(&["-n", "3", "-x", &path], if program == "sleep" { &["30"] } else { &[] });
        let running = Launch::of({
            command.env("TMPDIR", scratch.path());
            command
        })
        .start();
        sleep(delay);
        signal(running.pid(), name);
        let run = running.wait();
        assert!(run.seconds < 10.0, "{name} after {delay:?}: {run}");
        assert_eq!(left_of(&scratch), [] as [String; 0], "{name} after {delay:?}: {run}");
    }
}
