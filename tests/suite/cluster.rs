//! Several hosts: network namespaces of this one (scripts/cluster.sh).

use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{document, is_command, items, launcher, number, signal, skip, succeed, Launch, Scratch, PROGRAM};

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

/// b_eff with 6 ranks on 3 hosts; its result.
fn three_hosts(scratch: &Scratch, more: &[&str]) -> serde_json::Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/cluster.sh");
    let mut command = Command::new(script);
    command.args(["-n", "6", "-t", "45", "-x", PROGRAM]).args(more).args(["--", "comm", "--quick", "--time", "10s"]);
    command.args(["--memory-per-process", "16M", "--out"]).arg(scratch.join("out"));
    command.env("BEFF_MPIRUN", launcher().words.join(" ")).env("BEFF_MPI_NAME", &launcher().mpi);
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
    document(scratch)
}

#[test]
fn hosts_and_numbering_are_reported_and_messages_arrive() {
    if let Some(reason) = unable() {
        return skip(&reason);
    }
    for (more, numbering) in [(&[][..], "sequential"), (&["-r"][..], "round_robin")] {
        let scratch = Scratch::new();
        let result = three_hosts(&scratch, more);
        let setup = &result["setup"];
        assert_eq!(setup["numbering"], numbering);
        let hosts = items(&setup["machine"]["hosts"]);
        assert_eq!(hosts.iter().map(|h| number(&h["ranks"])).collect::<Vec<_>>(), [2, 2, 2]);
        let of_ranks: Vec<u64> = items(&setup["placement"]).iter().map(|p| number(&p["host"])).collect();
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
