//! docs/jobs/slurm.sh on a Slurm of its own: up to three nodes on this host.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::jobs::{check_outputs, commands, script};
use crate::support::{is_command, launcher, skip, Scratch};

/// A start on a busy machine, and three minutes of a job.
const PATIENCE: Duration = Duration::from_secs(240);

/// The daemons; killed when dropped.
struct Slurm {
    scratch: Scratch,
    daemons: Vec<Child>,
}

impl Slurm {
    fn start(scratch: Scratch, nodes: usize) -> Self {
        let mut this = Self { scratch, daemons: Vec::new() };
        let key = this.scratch.join("key");
        fs::write(&key, [7; 1024]).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(this.scratch.join("slurm.conf"), this.configuration(nodes)).unwrap();
        let at = |name: &str| format!("={}", this.scratch.join(name).display());
        let mut munged = Command::new("munged");
        munged.args(["--foreground", "--force"]).arg(format!("--key-file{}", at("key")));
        munged.arg(format!("--socket{}", at("munge"))).arg(format!("--pid-file{}", at("munged.pid")));
        munged.arg(format!("--seed-file{}", at("seed"))).arg(format!("--log-file{}", at("munged.log")));
        this.daemon(munged);
        let socket = this.scratch.join("munge");
        this.until("munged", || socket.exists());
        let mut controller = this.command("slurmctld");
        controller.arg("-D");
        this.daemon(controller);
        for node in 1..=nodes {
            fs::create_dir(this.scratch.join(&format!("n{node}"))).unwrap();
            let mut daemon = this.command("slurmd");
            daemon.args(["-D", "-N", &format!("n{node}")]);
            this.daemon(daemon);
        }
        this.until("idle nodes", || this.said("sinfo", &["-h", "-o", "%D %t"]) == format!("{nodes} idle"));
        this
    }

    fn configuration(&self, nodes: usize) -> String {
        let ports: Vec<_> = (0..nodes + 2).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let ports: Vec<u16> = ports.iter().map(|port| port.local_addr().unwrap().port()).collect();
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let host = host.trim().split('.').next().unwrap();
        let at = self.scratch.path().display();
        let mut text = format!(
            "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\nSlurmctldPort={}\nSlurmdPort={}\n\
             AuthType=auth/munge\nAuthInfo=socket={at}/munge\nStateSaveLocation={at}/state\nSlurmdSpoolDir={at}/%n\n\
             SlurmctldPidFile={at}/slurmctld.pid\nSlurmdPidFile={at}/%n.pid\nProctrackType=proctrack/linuxproc\n\
             TaskPlugin=task/none\nSwitchType=switch/none\nSlurmdParameters=config_overrides\n\
             PartitionName=all Nodes=ALL Default=YES\n",
            ports[0], ports[1]
        );
        for (node, port) in (1..=nodes).zip(&ports[2..]) {
            text += &format!("NodeName=n{node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2\n");
        }
        text
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command.env("SLURM_CONF", self.scratch.join("slurm.conf"));
        command
    }

    fn daemon(&mut self, mut command: Command) {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.daemons.push(command.spawn().unwrap());
    }

    fn said(&self, name: &str, args: &[&str]) -> String {
        let Output { stdout, stderr, .. } = self.command(name).args(args).output().unwrap();
        (String::from_utf8_lossy(&stdout) + String::from_utf8_lossy(&stderr)).trim().to_owned()
    }

    #[track_caller]
    fn until(&self, what: &str, mut condition: impl FnMut() -> bool) {
        let begin = Instant::now();
        while !condition() {
            assert!(begin.elapsed() < PATIENCE, "{what} did not come: {}", self.said("sinfo", &[]));
            sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        let _ = self.command("scancel").args(["--quiet", "--user=root"]).status();
        for daemon in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// Two minutes before its limit of three the job gets the signal of the script, by Slurm itself.
#[test]
#[ignore = "a minute of real time: make campaign"]
fn the_script_keeps_the_result_at_its_limit() {
    if let Some(missing) =
        ["slurmctld", "slurmd", "munged", "sbatch", "srun"].into_iter().find(|name| !is_command(name))
    {
        return skip(&format!("{missing} is not installed"));
    }
    if procfs::process::Process::myself().and_then(|own| own.uid()).unwrap() != 0 {
        return skip("slurmd needs root");
    }
    // PMIx of several nodes on one host is not possible: they would share its sockets.
    let (mpi, nodes) = if launcher().mpi == "openmpi" { ("pmix", 1) } else { ("pmi2", 3) };
    let scratch = Scratch::new();
    let path = commands(&scratch);
    fs::remove_file(scratch.join("bin/srun")).unwrap();
    fs::create_dir(scratch.join("state")).unwrap();
    let slurm = Slurm::start(scratch, nodes);
    let mut submit = slurm.command("sbatch");
    submit.args(["--parsable", "--time=3", "--ntasks-per-node=2", &format!("--nodes={nodes}")]);
    submit.arg("--output").arg(slurm.scratch.join("log")).arg(script("slurm.sh")).current_dir(slurm.scratch.path());
    submit.env("PATH", path).env("SRUN_MPI", mpi).env("OUT", slurm.scratch.join("results"));
    let submitted = submit.env("SCRATCH", slurm.scratch.join("disk")).output().unwrap();
    let id = String::from_utf8_lossy(&submitted.stdout).trim().to_owned();
    assert!(submitted.status.success(), "{submitted:?}");
    let log = || fs::read_to_string(slurm.scratch.join("log")).unwrap_or_default();
    slurm.until("the end of the job", || slurm.said("squeue", &["-h", "-j", &id]).is_empty());
    let job = slurm.said("scontrol", &["show", "job", &id]);
    assert!(job.contains("ExitCode=130:0"), "{job}\n{}", log());
    check_outputs(&slurm.scratch, "interrupted", &log());
}
