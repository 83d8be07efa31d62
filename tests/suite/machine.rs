//! Other programs on the CPUs of the ranks: seen, marked, warned of.

use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::{document, is_command, items, skip, Launch, Scratch};

const SHORT_TYPES: [&str; 6] = ["-T", "2s", "--memory-per-process", "64M", "--types", "0,2"];

/// A program that uses one CPU. Ended when dropped.
struct Neighbour(Child);

impl Neighbour {
    fn on(cpu: &str) -> Self {
        let mut command = Command::new("taskset");
        command.args(["-c", cpu, "sh", "-c", "while :; do :; done"]).stdin(Stdio::null());
        Self(command.spawn().expect("a program that uses a CPU"))
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The first CPU this process may use.
fn first_cpu() -> String {
    let status = procfs::process::Process::myself().and_then(|p| p.status()).expect("/proc/self/status");
    status.cpus_allowed_list.expect("allowed CPUs")[0].0.to_string()
}

/// The result and the report of a run whose rank shares the only CPU it may use.
fn beside_a_neighbour(ranks: u64, args: &[&str]) -> Option<(Value, String)> {
    if !is_command("taskset") {
        skip("there is no taskset (util-linux) to bind programs to a CPU");
        return None;
    }
    let cpu = first_cpu();
    let (scratch, _neighbour) = (Scratch::new(), Neighbour::on(&cpu));
    let launch = Launch::through(&["taskset", "-c", &cpu], ranks).args(args).arg("--full");
    // b_eff has no files.
    let launch = if args[0] == "comm" { launch.arg("--out").arg(scratch.join("out")) } else { launch.into(&scratch) };
    let run = launch.run();
    run.expect(0);
    Some((document(&scratch), run.stdout.split_whitespace().collect::<Vec<_>>().join(" ")))
}

/// Half of the CPU went to the neighbour, about: the record says so, whatever else ran.
fn assert_shared<'a>(records: impl Iterator<Item = &'a Value>, what: &str) {
    let known: Vec<&Value> =
        records.filter(|r| r["interference"]["cpu_seconds"].as_f64().unwrap_or(0.0) > 0.0).collect();
    let sum = |field: &str| known.iter().map(|r| r["interference"][field].as_f64().unwrap()).sum::<f64>();
    let (all, others, waited) = (sum("cpu_seconds"), sum("other_process_seconds"), sum("run_queue_wait_seconds"));
    assert!(all > 0.3, "{what}: {all} s watched");
    assert!(others > 0.2 * all && others < all, "{what}: others had {others} s of {all} s");
    assert!(waited > 0.1 * sum("observed_seconds"), "{what}: waited {waited} s of {} s", sum("observed_seconds"));
    assert!(known.iter().all(|r| r["interference"]["cpus"] == 1), "{what}: bound to one CPU");
    assert!(sum("involuntary_switches") > 0.0, "{what}");
}

fn assert_warned(result: &Value, report: &str) {
    let warnings = items(&result["derived"]["warnings"]);
    let warning = warnings.iter().find(|w| w["kind"] == "interference").expect("a warning");
    assert!(warning["worst_share"].as_f64().unwrap() > 0.05 && warning["marked"].as_u64().unwrap() > 0, "{warning}");
    assert!(report.contains("More than 5 % of the CPU time was lost to interference"), "{report}");
}

#[test]
fn patterns_say_what_others_had() {
    // Always at work, unlike one that waits for storage.
    let Some((result, report)) = beside_a_neighbour(1, &[&["--backend", "null"], &SHORT_TYPES[..]].concat()) else {
        return;
    };
    assert_shared(items(&result["patterns"]).iter(), "patterns");
    assert_warned(&result, &report);
    // The other one has cells.
    let Some((_, report)) = beside_a_neighbour(1, &[&["--backend", "posix"], &SHORT_TYPES[..]].concat()) else {
        return;
    };
    assert!(report.contains("b busy: interference above 5 % of CPU time"), "{report}");
}

#[test]
fn rows_of_imb_say_what_others_had() {
    // A rank that only writes may leave the CPU of its own accord each time, for its storage; one that reads from the page cache does not.
    let args = ["imb", "P_Write_Indv,P_Read_Indv", "--msglog", "20:20", "--iter", "400,400", "--time", "3"];
    let Some((result, report)) = beside_a_neighbour(1, &args) else { return };
    assert_shared(items(&result["rows"]).iter(), "rows");
    assert_warned(&result, &report);
    assert!(report.contains("b busy: interference above 5 % of CPU time"), "{report}");
}

#[test]
fn patterns_of_b_eff_say_what_others_had() {
    let args = ["comm", "--quick", "--time", "3s", "--families", "ping-pong,ring", "--memory-per-process", "64M"];
    let Some((result, report)) = beside_a_neighbour(2, &args) else { return };
    assert_shared(items(&result["patterns"]).iter(), "patterns");
    assert_warned(&result, &report);
    assert!(report.contains("b busy: interference above 5 % of CPU time"), "{report}");
}
