//! Launchers, and how each sets a variable for the ranks alone: the launcher itself and its daemons need no preload.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::preload::{take_preloads, CommandPreloads, PRELOAD};
use super::words::{file_name, is_launcher};

/// How a launcher passes variables to its ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EnvironmentPassing {
    /// `-x NAME=VALUE` (Open MPI), repeated for each program of `a : b`.
    X,
    /// `-genv NAME VALUE` (hydra of MPICH, Intel MPI and MVAPICH).
    Genv,
    /// `--export=ALL,NAME=VALUE` (Slurm).
    Export,
    /// By its own environment: no launcher, or an unknown one.
    Environment,
}

/// A command that starts ranks, with variables for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchCommand {
    /// Words of the command.
    pub words: Vec<OsString>,
    /// Variables of the command itself.
    pub environment: Vec<(String, OsString)>,
    /// MPI family of the launcher, if its name or version identifies it.
    pub family: Option<&'static str>,
}

/// Adds variables for its ranks to a command. `version` is the output of `LAUNCHER --version`.
pub fn with_variables(words: &[OsString], variables: &[(&str, OsString)], version: &str) -> LaunchCommand {
    let (way, family) = environment_passing(words.first().map_or(OsStr::new(""), OsString::as_os_str), version);
    let mut all = Vec::with_capacity(words.len() + 2 * variables.len());
    let mut environment = Vec::new();
    let CommandPreloads { words, preloads } = command_preloads(words, variables);
    let of_program = |program: usize| {
        let preload = preloads.get(program).cloned().flatten();
        variables.iter().map(move |(name, value)| {
            (*name, preload.clone().filter(|_| *name == PRELOAD).unwrap_or_else(|| value.clone()))
        })
    };
    let Some((first, rest)) = words.split_first() else { return LaunchCommand { words: all, environment, family } };
    all.push(first.clone());
    match way {
        EnvironmentPassing::X => {
            let options = |program| {
                of_program(program).flat_map(|(name, value)| {
                    let mut set = OsString::from(format!("{name}="));
                    set.push(value);
                    [OsString::from("-x"), set]
                })
            };
            all.extend(options(0));
            let mut program = 0;
            for word in rest {
                all.push(word.clone());
                if word == ":" {
                    program += 1;
                    all.extend(options(program));
                }
            }
        }
        EnvironmentPassing::Genv => {
            for (name, value) in of_program(0) {
                all.extend([OsString::from("-genv"), OsString::from(name), value]);
            }
            all.extend_from_slice(rest);
        }
        EnvironmentPassing::Export => {
            // A value with a comma would be cut; srun takes the values of bare names from its environment.
            let mut export = OsString::from("--export=ALL");
            for (name, value) in of_program(0) {
                export.push(format!(",{name}"));
                environment.push((name.to_owned(), value));
            }
            all.push(export);
            all.extend_from_slice(rest);
        }
        EnvironmentPassing::Environment => {
            environment.extend(of_program(0).map(|(name, value)| (name.to_owned(), value)));
            all.extend_from_slice(rest);
        }
    }
    LaunchCommand { words: all, environment, family }
}

fn command_preloads(words: &[OsString], variables: &[(&str, OsString)]) -> CommandPreloads {
    let Some((_, preload)) = variables.iter().find(|(name, _)| *name == PRELOAD) else {
        return CommandPreloads { words: words.to_vec(), preloads: Vec::new() };
    };
    // Others were inherited, and the command replaces them.
    let profiler = preload.as_bytes().split(|byte| *byte == b':').next().unwrap_or_default();
    take_preloads(words, OsStr::from_bytes(profiler))
}

fn environment_passing(first: &OsStr, version: &str) -> (EnvironmentPassing, Option<&'static str>) {
    if !is_launcher(first) {
        return (EnvironmentPassing::Environment, None);
    }
    let version = version.to_ascii_lowercase();
    let has = |part: &str| version.contains(part);
    if file_name(first).starts_with("srun") {
        (EnvironmentPassing::Export, None)
    } else if has("open mpi") || has("openrte") || has("open-mpi") || has("prrte") {
        (EnvironmentPassing::X, Some("Open MPI"))
    } else if has("hydra") || has("mpich") || has("intel") || has("mvapich") {
        (EnvironmentPassing::Genv, Some("MPICH"))
    } else {
        (EnvironmentPassing::Environment, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(line: &str, version: &str) -> LaunchCommand {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        with_variables(&words, &[("LD_PRELOAD", "/a,b.so".into()), ("DIR", "/d e".into())], version)
    }

    fn line(launch: &LaunchCommand) -> String {
        launch.words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn each_launcher_sets_variables_for_its_ranks() {
        let open = launch("mpirun -n 2 ./a : -n 1 ./b", "mpirun (Open MPI) 4.1.4\n");
        assert_eq!(
            line(&open),
            "mpirun|-x|LD_PRELOAD=/a,b.so|-x|DIR=/d e|-n|2|./a|:|-x|LD_PRELOAD=/a,b.so|-x|DIR=/d e|-n|1|./b"
        );
        assert!(open.environment.is_empty());
        let hydra = launch("/usr/bin/mpiexec.hydra -n 2 ./a", "HYDRA build details:\n Version: 4.0.2");
        assert_eq!(line(&hydra), "/usr/bin/mpiexec.hydra|-genv|LD_PRELOAD|/a,b.so|-genv|DIR|/d e|-n|2|./a");
        assert!(hydra.environment.is_empty());
        let slurm = launch("srun -n 2 ./a", "slurm 23");
        assert_eq!(line(&slurm), "srun|--export=ALL,LD_PRELOAD,DIR|-n|2|./a");
        assert_eq!(slurm.environment.len(), 2);
        let own = launch("mpirun -genv LD_PRELOAD ./x.so -n 2 ./a", "HYDRA build details:");
        assert_eq!(line(&own), "mpirun|-genv|LD_PRELOAD|/a,b.so:./x.so|-genv|DIR|/d e|-n|2|./a");
        let own = launch("mpirun ./a : -x LD_PRELOAD=x.so ./b", "mpirun (Open MPI) 4.1.4\n");
        assert_eq!(
            line(&own),
            "mpirun|-x|LD_PRELOAD=/a,b.so|-x|DIR=/d e|./a|:|-x|LD_PRELOAD=/a,b.so:x.so|-x|DIR=/d e|./b"
        );
        let none = launch("./a -n 2", "");
        assert_eq!((line(&none).as_str(), none.environment.len()), ("./a|-n|2", 2));
    }
}
