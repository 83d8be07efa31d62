//! `--script`: launches for settings that a running program cannot change.

use std::ffi::OsStr;

use super::space::Interpreter;
use crate::frame::paths::quoted_word;
use crate::tune::config::TuneConfig;

/// Shortest run of a launch.
const MIN_RUN_SECONDS: f64 = 10.0;

/// A launch: its name, what it sets in the environment, and when that has an effect.
struct Launch {
    name: &'static str,
    environment: &'static str,
    remark: &'static str,
}

const OMPIO: [Launch; 7] = [
    Launch {
        name: "romio",
        environment: "OMPI_MCA_io=${ROMIO:-romio321}",
        remark: "ROMIO instead of OMPIO; set ROMIO=romio341 for Open MPI 5",
    },
    Launch { name: "fcoll-vulcan", environment: "OMPI_MCA_fcoll=vulcan", remark: "collective component" },
    Launch { name: "fcoll-dynamic", environment: "OMPI_MCA_fcoll=dynamic_gen2", remark: "collective component" },
    Launch { name: "fcoll-two-phase", environment: "OMPI_MCA_fcoll=two_phase", remark: "collective component" },
    Launch { name: "fcoll-individual", environment: "OMPI_MCA_fcoll=individual", remark: "no collective buffering" },
    Launch { name: "one-aggregator", environment: "OMPI_MCA_io_ompio_num_aggregators=1", remark: "one aggregator" },
    Launch { name: "cycle-64m", environment: "OMPI_MCA_io_ompio_cycle_buffer_size=67108864", remark: "long cycles" },
];

const ROMIO: [Launch; 2] = [
    Launch { name: "ufs", environment: "ROMIO_FSTYPE_FORCE=ufs:", remark: "generic driver" },
    Launch {
        name: "intel-fs",
        environment: "I_MPI_EXTRA_FILESYSTEM=1",
        remark: "Intel MPI: drivers of parallel file systems",
    },
];

/// A shell script that measures the default and each launch three times in turn, and compares them; None if the backend or the library has
/// no such settings.
#[must_use]
pub fn launches(config: &TuneConfig, interpreter: Interpreter) -> Option<String> {
    let launches: &[Launch] = match interpreter {
        Interpreter::Ompio => &OMPIO,
        Interpreter::Romio => &ROMIO,
        Interpreter::Uring | Interpreter::Posix | Interpreter::Other => return None,
    };
    let work = measured_work(config, launches.len() + 1);
    let mut text = format!(
        "#!/bin/sh\n# Settings that need a launch of their own: each measured three times, in turn with the default.\n\
         # Set LAUNCH to the launcher with its options, and PREFIX to the place of the results.\n\
         LAUNCH=${{LAUNCH:-mpirun -n 4}}\nPREFIX=${{PREFIX:-launch}}\n\n\
         measure() {{\n    name=$1 round=$2\n    shift 2\n    \
         env \"$@\" $LAUNCH beff-raw {work} --quiet --out \"$PREFIX-$name-$round\" ||\n        \
         echo \"$name: not measured in round $round\" >&2\n}}\n\n",
    );
    for launch in launches {
        text += &format!("# {}: {}\n", launch.name, launch.remark);
    }
    for round in 1..=3 {
        let mut order: Vec<(&str, &str)> = vec![("default", "BEFF_LAUNCH=default")];
        order.extend(launches.iter().map(|launch| (launch.name, launch.environment)));
        if round == 2 {
            order.reverse();
        }
        text += "\n";
        for (name, environment) in order {
            text += &format!("measure {name} {round} {environment}\n");
        }
    }
    text += "\n";
    for launch in launches {
        text += &format!("beff-raw compare \"$PREFIX\"-default-[123].json -- \"$PREFIX\"-{}-[123].json\n", launch.name);
    }
    Some(text)
}

/// Command and options of the work, without output.
fn measured_work(config: &TuneConfig, launches: usize) -> String {
    let trials = &config.trials;
    let path = quoted_word(trials.path.as_os_str());
    let hints: String = trials.hints.iter().map(|(key, value)| format!(" --hint {}", quoted(key, value))).collect();
    if let Some(profile) = &trials.profile {
        return format!(
            "replay {} --backend {} --path {path}{hints}",
            quoted_word(profile.as_os_str()),
            trials.backend
        );
    }
    let seconds = (config.budget_seconds / (3 * launches) as f64).max(MIN_RUN_SECONDS);
    let mut types: Vec<String> = trials.types.iter().map(u8::to_string).collect();
    if trials.types.iter().all(|number| *number > 2) {
        // Types 3 and 4 take their counts from one of the others.
        types.insert(0, "2".to_owned());
    }
    let memory = trials.memory_per_process_bytes.map(|bytes| format!(" --memory-per-process {bytes}"));
    let space = trials.space_bytes.map(|bytes| format!(" --space {bytes}"));
    format!(
        "io --backend {} --path {path} --types {} -T {seconds:.0}s{}{}{hints}",
        trials.backend,
        types.join(","),
        memory.unwrap_or_default(),
        space.unwrap_or_default()
    )
}

fn quoted(key: &str, value: &str) -> String {
    quoted_word(OsStr::new(&format!("{key}={value}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::benchmark::options_from_words;
    use crate::tune::cli::TuneArgs;

    fn config(words: &[&str]) -> TuneConfig {
        options_from_words::<TuneArgs>(words).config().unwrap()
    }

    /// A shell runs it; instead of a launch, it prints the words of one.
    fn run(text: &str) -> String {
        let calls = text.replace("env \"$@\" $LAUNCH ", "printf '<%s>' \"$@\" ");
        let calls = calls.replace("\nbeff-raw compare", "\nprintf '<%s>' compare");
        let run = std::process::Command::new("sh").arg("-c").arg(calls).output().unwrap();
        assert!(run.status.success() && run.stderr.is_empty(), "{}", String::from_utf8_lossy(&run.stderr));
        String::from_utf8(run.stdout).unwrap()
    }

    #[test]
    fn each_launch_takes_turns_with_the_default_and_is_compared() {
        let text =
            launches(&config(&["--types", "4", "--path", "/a b'$x", "--hint", "a=b c"]), Interpreter::Ompio).unwrap();
        let found = run(&text);
        let work =
            "<beff-raw><io><--backend><mpiio><--path></a b'$x><--types><2,4><-T><25s><--hint><a=b c><--quiet><--out>";
        for launch in &OMPIO {
            assert!(text.contains(&format!("measure {} 1 {}\n", launch.name, launch.environment)), "{text}");
            for round in 1..=3 {
                assert!(found.contains(&format!("{work}<launch-{}-{round}>", launch.name)), "{found}");
            }
            assert!(
                found.contains(&format!("<compare><launch-default-[123].json><--><launch-{}-[123].json>", launch.name)),
                "{found}"
            );
        }
        assert!(
            found.contains("<OMPI_MCA_io=romio321>") && found.matches("<launch-default-").count() == 3 + OMPIO.len(),
            "{found}"
        );
    }

    #[test]
    fn a_recording_is_replayed_and_what_has_no_launches_has_no_script() {
        let found = run(&launches(&config(&["my app.csv"]), Interpreter::Romio).unwrap());
        assert!(
            found.contains("<beff-raw><replay><my app.csv><--backend><mpiio><--path><.><--quiet><--out><launch-ufs-1>"),
            "{found}"
        );
        assert_eq!(launches(&config(&[]), Interpreter::Uring), None);
    }
}
