//! `beff-raw schema`: the JSON Schema of PREFIX.json, as this build writes it.

use clap::builder::PossibleValuesParser;
use clap::Args;

use crate::benchmarks::BENCHMARKS;
use crate::frame::benchmark::{keep_arguments, parse_options, BenchmarkModule, Command};
use crate::frame::command::publish;
use crate::frame::error::Exit;
use crate::frame::options::common_help;

/// The command.
pub const COMMAND: Command = Command {
    name: "schema",
    about: "Print the JSON Schema of the results of a command",
    after_help: AFTER_HELP,
    options: SchemaArgs::augment_args,
    translate: keep_arguments,
    run: |options| run(&parse_options(options)?),
    measures: false,
    is_host_specific: false,
};

const AFTER_HELP: &str = concat!(
    "Examples:
  All fields of a file of b_eff_io:
      beff-raw schema
  Check the results of IMB-IO with any validator:
      beff-raw schema imb > imb-schema.json
  The fields of a replay:
      beff-raw schema replay | jq '.\"$defs\".PassRecord.properties'

",
    common_help!()
);

/// Options of `schema`.
#[derive(Clone, Debug, Args)]
pub struct SchemaArgs {
    /// Command that wrote the results
    #[arg(value_name = "COMMAND", default_value = measuring_command(BENCHMARKS[0]),
        value_parser = PossibleValuesParser::new(BENCHMARKS.map(measuring_command)))]
    pub of: String,
}

fn measuring_command(benchmark: &BenchmarkModule) -> &'static str {
    benchmark.commands.first().map_or(benchmark.name, |command| command.name)
}

/// Runs the command.
///
/// # Errors
/// Stdout cannot be written.
pub fn run(args: &SchemaArgs) -> anyhow::Result<Exit> {
    for benchmark in BENCHMARKS.iter().filter(|benchmark| measuring_command(benchmark) == args.of) {
        publish((benchmark.schema)().as_bytes())?;
    }
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::benchmark::options_from_words;

    #[test]
    fn every_benchmark_has_a_schema_of_its_own() {
        for benchmark in BENCHMARKS {
            let schema: serde_json::Value = serde_json::from_str(&(benchmark.schema)()).unwrap();
            assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{}", benchmark.name);
            assert_eq!(
                options_from_words::<SchemaArgs>([measuring_command(benchmark)]).of,
                measuring_command(benchmark)
            );
        }
        let mut texts: Vec<String> = BENCHMARKS.iter().map(|benchmark| (benchmark.schema)()).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), BENCHMARKS.len());
    }

    #[test]
    fn without_a_word_it_is_that_of_the_first_command() {
        assert_eq!(options_from_words::<SchemaArgs>(Vec::<&str>::new()).of, "io");
    }
}
