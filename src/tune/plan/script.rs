//! `--script`: launches for settings that a running program cannot change.

use super::space::Interpreter;
use crate::frame::records::AccessMethod;
use crate::tune::config::TuneConfig;

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

/// A shell script that measures the default and each launch three times in turn, and compares them.
#[must_use]
pub fn launches(config: &TuneConfig, interpreter: Interpreter) -> String {
    let launches: &[Launch] = match interpreter {
        Interpreter::Ompio => &OMPIO,
        Interpreter::Romio => &ROMIO,
        Interpreter::Uring | Interpreter::Posix | Interpreter::Other => &[],
    };
    let trials = &config.trials;
    let seconds = (config.budget_seconds / (3.0 * (launches.len() + 1) as f64)).max(10.0);
    let mut types: Vec<String> = trials.types.iter().map(u8::to_string).collect();
    if trials.types.iter().all(|number| *number > 2) {
        // Types 3 and 4 take their counts from one of the others.
        types.insert(0, "2".to_owned());
    }
    let mut text = format!(
        "#!/bin/sh\n# Settings that need a launch of their own: each measured three times, in turn with the default.\n\
         # Set LAUNCH to the launcher with its options, and PREFIX to the place of the results.\n\
         LAUNCH=${{LAUNCH:-mpirun -n 4}}\nPREFIX=${{PREFIX:-launch}}\n\
         IO='beff-raw io --backend {} --path {} --types {} -T {:.0}s --quiet'\n\n\
         measure() {{\n    name=$1 round=$2\n    shift 2\n    env \"$@\" $LAUNCH $IO --out \"$PREFIX-$name-$round\" ||\n        \
         echo \"$name: not measured in round $round\" >&2\n}}\n\n",
        trials.backend,
        shell_word(&trials.path.display().to_string()),
        types.join(","),
        seconds
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
    if trials.access == AccessMethod::Read {
        text += "# The reads are the rows `read` of these comparisons.\n";
    }
    text
}

fn shell_word(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$").replace('`', "\\`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::benchmark::options_from_words;
    use crate::tune::cli::TuneArgs;

    #[test]
    fn each_launch_takes_turns_with_the_default_and_is_compared() {
        let config = options_from_words::<TuneArgs>(["--types", "4", "--path", "/a b"]).config().unwrap();
        let text = launches(&config, Interpreter::Ompio);
        assert!(text.contains("--path \"/a b\" --types 2,4 -T 25s"), "{text}");
        for launch in &OMPIO {
            assert_eq!(text.matches(&format!("measure {} ", launch.name)).count(), 3, "{}", launch.name);
            let compared = format!("\"$PREFIX\"-default-[123].json -- \"$PREFIX\"-{}-[123].json", launch.name);
            assert!(text.contains(&compared), "{text}");
        }
        assert_eq!(text.matches("measure default ").count(), 3);
    }
}
