//! Several hosts: network namespaces of this one (scripts/cluster.sh).

use std::path::Path;
use std::process::Command;

use crate::patient::patient;
use crate::support::{document, is_command, items, launcher, number, skip, succeed, Scratch, PROGRAM};

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
    command.args(["-n", "6", "-t", "45", "-x", PROGRAM]).args(more).args(["--", "comm", "--quick", "--time", "20s"]);
    command.args(["--memory-per-process", "16M", "--out"]).arg(scratch.join("out"));
    command.env("BEFF_MPIRUN", launcher().words.join(" ")).env("BEFF_MPI_NAME", &launcher().mpi);
    for name in ["OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"] {
        command.env(name, "1").env(format!("{name}_CONFIRM"), "1");
    }
    patient(&mut command);
    let output = command.output().expect("the script starts");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // MPICH 4.0 over TCP now and then does not come out of MPI_Finalize: the result is complete then, and the limit ends it.
    let ended = output.status.success() || (launcher().mpi == "mpich" && text.contains("wrote "));
    assert!(ended, "{}: {text}", output.status);
    if !output.status.success() {
        println!("ended by the limit, after the result: {}", output.status);
    }
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
