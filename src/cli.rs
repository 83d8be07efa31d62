//! Parses the command line. The commands are those of the benchmarks and a few that belong to none; each defines its own options.

mod from_result;
mod suggestion;

use std::ffi::OsString;
use std::sync::LazyLock;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args};

use self::suggestion::{add_suggestion, KnownLine};
use crate::benchmarks::BENCHMARKS;
use crate::commands::{man, shell, COMMANDS};
use crate::frame::benchmark::{keep_arguments, parse_options, Command};
use crate::frame::error::UsageError;
use crate::frame::options::{common_help, HEADING_MEASUREMENT};
use crate::frame::paths::shell_word;

const ABOUT: &str = "Effective parallel-I/O bandwidth (b_eff_io): MPI-IO, POSIX, io_uring, mmap";

const LONG_ABOUT: &str = "\
Effective parallel-I/O bandwidth (b_eff_io) through MPI-IO, POSIX, io_uring and mmap.

Measures how fast the ranks of a parallel program write, rewrite and read files in 43 access patterns, and condenses that \
to one number. Several backends in one run show how much of the storage's bandwidth MPI-IO delivers. Without a command, \
`io` runs.";

/// Text below the options in `--help` of the program.
const AFTER_HELP: &str = concat!(
    "Examples:
  One minute through MPI-IO, files in /scratch:
      mpirun -n 4 beff-raw --path /scratch
  All layers from the device to MPI-IO, results kept in ladder.json:
      mpirun -n 4 beff-raw --backend mpiio,posix,uring,mmap -T 15m --path /scratch --out ladder
  Plan of a run on 1024 ranks, without running it:
      beff-raw plan --ranks 1024 --rate 20G -T 15m

  `beff-raw COMMAND --help` has more for each command.

",
    common_help!()
);

/// Options that `-h` of a benchmark shows, for a first run. Positional arguments are always shown.
const SHORT_HELP_OPTIONS: [&str; 13] =
    ["backend", "time", "path", "out", "verify", "hints", "hint", "full", "quiet", "msglog", "npmin", "iter", "pace"];

/// Commands that `-h` omits: they are used once on a machine.
const HIDDEN_COMMANDS: [&str; 2] = ["completions", "man"];

const SHORT_HELP_FOOTER: &str = "`--help` has all options, units and exit codes.";

/// One line: the program, its source, and the MPI it was built with, without a call of MPI.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let (version, revision) = (env!("CARGO_PKG_VERSION"), env!("BEFF_GIT_REVISION"));
    format!("{version} (source {revision}, built with {})", beff_ffi::built_with())
});

/// Completions, generated from the definition of the command line.
const COMPLETIONS: Command = Command {
    name: "completions",
    about: "Print shell completions of options and values",
    after_help: shell::COMPLETIONS_HELP,
    options: shell::CompletionsArgs::augment_args,
    translate: keep_arguments,
    run: |options| shell::completions(&parse_options(options)?, &command_line()),
    measures: false,
    is_host_specific: false,
};

/// Man pages, likewise.
const MAN: Command = Command {
    name: "man",
    about: "Write the manual pages of all commands into a directory",
    after_help: man::MAN_HELP,
    options: man::ManArgs::augment_args,
    translate: keep_arguments,
    run: |options| man::man(&parse_options(options)?, command_line()),
    measures: false,
    is_host_specific: true,
};

/// All commands: those that measure, then others of the benchmarks, then those of no benchmark. The first is the default.
pub fn commands() -> impl Iterator<Item = &'static Command> {
    let of_benchmarks =
        |measures: bool| BENCHMARKS.iter().flat_map(|b| b.commands).filter(move |c| c.measures == measures);
    of_benchmarks(true).chain(of_benchmarks(false)).chain(&COMMANDS).chain(&[COMPLETIONS, MAN])
}

/// The command line for clap: options of the first command, and all commands.
#[must_use]
pub fn command_line() -> clap::Command {
    let line = clap::Command::new("beff-raw");
    let line = BENCHMARKS[0].commands.first().map_or(line.clone(), |first| with_options(first, line));
    let line = line
        .version(VERSION.as_str())
        .about(ABOUT)
        .long_about(LONG_ABOUT)
        .args_conflicts_with_subcommands(true)
        .disable_help_subcommand(true)
        .after_help(AFTER_HELP)
        .max_term_width(110);
    line.subcommands(commands().map(|command| {
        let options = with_options(command, clap::Command::new(command.name));
        options.about(command.about).long_about(None).after_help(command.after_help)
    }))
}

/// Adds the options of a command, and those of every command that measures.
fn with_options(command: &Command, line: clap::Command) -> clap::Command {
    let line = (command.options)(line);
    if command.measures {
        line.arg(from_result::from_option(HEADING_MEASUREMENT))
    } else {
        line
    }
}

/// The command line for `-h`: options of a first run, each in a line or two, and the examples.
fn short_command_line() -> clap::Command {
    let line = shorten_help(command_line());
    line.mut_subcommands(|command| {
        let measures = commands().any(|c| c.name == command.get_name() && c.measures);
        let about = command.get_about().map(|about| first_phrase(&about.to_string()).to_owned());
        let command = if measures { shorten_help(command) } else { command };
        let is_rare = HIDDEN_COMMANDS.contains(&command.get_name());
        command.about(about.unwrap_or_default()).hide(is_rare)
    })
}

fn shorten_help(command: clap::Command) -> clap::Command {
    let after_help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let examples = after_help.split("\n\n").find(|part| part.starts_with("Examples:")).unwrap_or_default();
    let command = command.mut_args(|arg| {
        let is_first = arg.is_positional() || SHORT_HELP_OPTIONS.contains(&arg.get_id().as_str());
        let help = match arg.get_id().as_str() {
            "out" => "Keep the results in PREFIX.json, PREFIX.jsonl and more".to_owned(),
            _ => arg.get_help().map(|whole| first_phrase(&whole.to_string()).to_owned()).unwrap_or_default(),
        };
        let hides = arg.is_hide_set() || !is_first;
        arg.help(help).hide(hides).help_heading(None::<&str>)
    });
    command.after_help(format!("{examples}\n\n{SHORT_HELP_FOOTER}"))
}

/// Text up to the first full stop, semicolon or bracket; if that is long, up to the first colon.
fn first_phrase(text: &str) -> &str {
    let until = |text: &'_ str, ends: &[&str]| ends.iter().filter_map(|end| text.find(end)).min();
    let sentence = until(text, &[". ", "; ", " (", " ["]).map_or(text, |end| &text[..end]);
    let is_long = sentence.len() > 62;
    until(sentence, &[": "]).filter(|_| is_long).map_or(sentence, |end| &sentence[..end])
}

/// Help for a call without arguments and without a launcher.
#[must_use]
pub fn short_help() -> String {
    short_command_line().render_help().to_string()
}

/// Result of a command line that is not a command.
#[derive(Debug)]
pub enum CommandLineError {
    /// Spellings that a command refuses.
    Usage(UsageError),
    /// Help, version or an error, with their own streams and exit codes.
    Clap(clap::Error),
}

/// Parses arguments into a command and its options.
///
/// # Errors
/// Help, version, or an invalid command line.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<(&'static Command, ArgMatches), CommandLineError> {
    let all: Vec<&Command> = commands().collect();
    let translate = |args, command: &Command| (command.translate)(args);
    let translated = |args: Vec<OsString>| commands().try_fold(args, translate);
    let args = translated(args.into_iter().collect()).and_then(|args| from_result::expand(args, &all, translated));
    let args: Vec<OsString> = normalize_help_words(args.map_err(CommandLineError::Usage)?);
    let line = if args.iter().any(|arg| arg == "-h") { short_command_line() } else { command_line() };
    let known = KnownLine { line: &line, commands: &all, hidden: &HIDDEN_COMMANDS };
    let mut matches = line.clone().try_get_matches_from(&args).map_err(|error| match error.kind() {
        ErrorKind::InvalidUtf8 => CommandLineError::Usage(not_utf8_error(&args)),
        _ => CommandLineError::Clap(add_suggestion(error, &args, known)),
    })?;
    let typed = matches.remove_subcommand();
    let of_name = |name: &str| commands().find(|command| command.name == name);
    match typed {
        Some((name, options)) => of_name(&name).map(|command| (command, options)),
        None => commands().next().map(|first| (first, matches)),
    }
    .ok_or_else(|| CommandLineError::Clap(command_line().error(ErrorKind::InvalidSubcommand, "no such command")))
}

/// Accepts the words `help`, `help COMMAND` and `version` for options.
fn normalize_help_words(mut args: Vec<OsString>) -> Vec<OsString> {
    match args.get(1).and_then(|word| word.to_str()) {
        Some("help") => {
            args.remove(1);
            args.push("--help".into());
        }
        Some("version") if args.len() == 2 => args[1] = "--version".into(),
        _ => {}
    }
    args
}

/// Error for arguments that are not UTF-8, which clap does not name. Names of files may be any bytes.
fn not_utf8_error(args: &[OsString]) -> UsageError {
    let at = |n: usize, arg: &OsString| {
        let before = args[..n].last().and_then(|arg| arg.to_str()).filter(|arg| arg.starts_with('-'));
        before.map_or_else(|| shell_word(arg), |option| format!("{option} {}", shell_word(arg)))
    };
    let odd = args.iter().enumerate().filter(|(_, arg)| arg.to_str().is_none());
    let odd: Vec<String> = odd.map(|(n, arg)| at(n, arg)).collect();
    UsageError::new(
        format!("not UTF-8: {}", odd.join(", ")),
        "Only names of files, --path and --out may be any bytes; give UTF-8 text elsewhere, also for --run-dir.",
    )
}

#[cfg(test)]
#[path = "cli/tests.rs"]
mod tests;
