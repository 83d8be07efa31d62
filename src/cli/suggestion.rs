//! Suggestions for a command line that clap refuses: one that works, or none.

use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::frame::benchmark::Command;
use crate::frame::paths::quoted_word;

/// Start of clap's suggestion to pass an unknown option as a value, such as the name of a file: nobody means that.
const AS_VALUE: &str = "to pass '";

/// Likeness of a command that may have been meant: `run` is not `tune`.
const MIN_LIKENESS: f64 = 0.8;

/// Options of launchers, for the number of ranks.
const RANK_OPTIONS: [&str; 4] = ["--ranks", "-n", "-np", "--np"];

/// The command line and its commands.
#[derive(Clone, Copy)]
pub(super) struct KnownLine<'a> {
    pub line: &'a clap::Command,
    pub commands: &'a [&'static Command],
    /// Commands that are not listed.
    pub hidden: &'a [&'a str],
}

/// Adds a suggestion, in place of those of clap that do not work.
pub(super) fn add_suggestion(mut error: clap::Error, args: &[OsString], known: KnownLine<'_>) -> clap::Error {
    if error.get(ContextKind::Suggested).is_some_and(|tips| shown(tips).starts_with(AS_VALUE)) {
        error.remove(ContextKind::Suggested);
    }
    if !error.use_stderr() {
        return error;
    }
    if let Some(next) = known.corrected_line(args) {
        error.remove(ContextKind::SuggestedArg);
        return with_tip(error, next);
    }
    if error.kind() == ErrorKind::InvalidSubcommand && !known.is_near_command(args) {
        error.remove(ContextKind::SuggestedSubcommand);
        error.remove(ContextKind::Suggested);
    }
    let is_reported = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::Suggested]
        .iter()
        .any(|kind| error.get(*kind).is_some());
    let next = match error.kind() {
        _ if is_reported => None,
        ErrorKind::InvalidSubcommand => {
            let names = known.commands.iter().map(|command| command.name);
            let names: Vec<&str> = names.filter(|name| !known.hidden.contains(name)).collect();
            Some(format!("the commands are {}", names.join(", ")))
        }
        ErrorKind::MissingRequiredArgument => {
            let typed = args.get(1).and_then(|word| word.to_str());
            let named = known.commands.iter().copied().find(|command| Some(command.name) == typed);
            named.and_then(first_example).map(|line| format!("type {line}"))
        }
        ErrorKind::UnknownArgument => match error.get(ContextKind::InvalidArg).map(ToString::to_string).as_deref() {
            Some("-v") => Some("beff-raw -V prints the version, --full all tables of a result".to_owned()),
            arg => arg.and_then(|arg| known.commands_with_option(arg)),
        },
        _ => None,
    };
    match next {
        Some(next) => with_tip(error, next),
        None => error,
    }
}

fn shown(tips: &ContextValue) -> String {
    match tips {
        ContextValue::StyledStrs(tips) => tips.first().map(ToString::to_string).unwrap_or_default(),
        other => other.to_string(),
    }
}

fn with_tip(mut error: clap::Error, tip: String) -> clap::Error {
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    error
}

fn first_example(command: &'static Command) -> Option<&'static str> {
    command.after_help.lines().find_map(|line| line.strip_prefix("      ").map(str::trim))
}

/// `--backend mpiio, posix`: a blank after a comma begins another argument.
fn join_lists(words: Vec<String>) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    for word in words {
        match joined.last_mut() {
            Some(list) if list.ends_with(',') && !word.starts_with('-') => list.push_str(&word),
            _ => joined.push(word),
        }
    }
    joined
}

/// `-T -5`: no number is negative.
fn drop_sign(words: Vec<String>) -> Vec<String> {
    let unsigned = |word: String| match word.strip_prefix('-') {
        Some(number) if number.starts_with(|c: char| c.is_ascii_digit()) => number.to_owned(),
        _ => word,
    };
    words.into_iter().map(unsigned).collect()
}

impl KnownLine<'_> {
    /// True if the command that was typed resembles one of the commands; clap suggests more distant ones.
    fn is_near_command(&self, args: &[OsString]) -> bool {
        let typed = args.get(1).and_then(|word| word.to_str()).unwrap_or_default();
        self.commands.iter().any(|command| strsim::jaro_winkler(typed, command.name) > MIN_LIKENESS)
    }

    fn commands_with_option(self, option: &str) -> Option<String> {
        let long = option.strip_prefix("--")?;
        let has = |command: &clap::Command| command.get_arguments().any(|arg| arg.get_long() == Some(long));
        let names: Vec<&str> =
            self.line.get_subcommands().filter(|command| has(command)).map(clap::Command::get_name).collect();
        (!names.is_empty()).then(|| format!("--{long} is an option of beff-raw {}", names.join(", ")))
    }

    /// The line with the usual mistakes corrected, if that is accepted.
    fn corrected_line(self, args: &[OsString]) -> Option<String> {
        let words: Option<Vec<&str>> = args.iter().skip(1).map(|word| word.to_str()).collect();
        let words: Vec<String> = words?.into_iter().map(str::to_owned).collect();
        let mut line = words.clone();
        let mut ranks = None;
        for step in 0..4 {
            line = match step {
                0 => join_lists(line),
                1 => self.put_command_first(line),
                2 => self.name_format(line),
                _ => drop_sign(line),
            };
            if self.is_accepted(&line) {
                break;
            }
        }
        if !self.is_accepted(&line) {
            (line, ranks) = self.take_ranks(line);
            ranks?;
        }
        if line == words || !self.is_accepted(&line) {
            return None;
        }
        let launcher = ranks.map_or_else(String::new, |ranks| format!("mpirun -n {ranks} "));
        let typed: String = line.iter().map(|word| format!(" {}", quoted_word(OsStr::new(word)))).collect();
        Some(format!("type {launcher}beff-raw{typed}"))
    }

    fn is_accepted(self, words: &[String]) -> bool {
        self.line.clone().try_get_matches_from([&["beff-raw".to_owned()], words].concat()).is_ok()
    }

    /// `--path DIR io`: a command precedes its options.
    fn put_command_first(self, mut words: Vec<String>) -> Vec<String> {
        let is_command = |word: &String| self.commands.iter().any(|command| command.name == word);
        let before = |at: usize, words: &[String]| words[..at].iter().any(|word| word.starts_with('-'));
        if let Some(at) = words.iter().position(is_command).filter(|at| before(*at, &words)) {
            let command = words.remove(at);
            words.insert(0, command);
        }
        words
    }

    /// `report --csv RESULT`: the name of a format is a value.
    fn name_format(self, words: Vec<String>) -> Vec<String> {
        let command =
            self.line.get_subcommands().find(|command| words.first().is_some_and(|word| word == command.get_name()));
        let Some(command) = command else { return words };
        let options: Vec<&str> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
        let format = command.get_arguments().find(|arg| arg.get_long() == Some("format"));
        let formats = format.map(clap::Arg::get_possible_values).unwrap_or_default();
        let replaced = words.into_iter().map(|word| match word.strip_prefix("--") {
            Some(name) if !options.contains(&name) && formats.iter().any(|format| format.get_name() == name) => {
                format!("--format={name}")
            }
            _ => word,
        });
        replaced.collect()
    }

    /// `io --ranks 4`: the launcher has the number of ranks.
    fn take_ranks(self, mut words: Vec<String>) -> (Vec<String>, Option<u64>) {
        let measures = words.first().is_none_or(|first| {
            first.starts_with('-') || self.commands.iter().any(|command| command.measures && command.name == first)
        });
        let found = words.iter().position(|word| {
            let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
            RANK_OPTIONS.contains(&name)
        });
        let Some(at) = found.filter(|_| measures) else { return (words, None) };
        let option = words.remove(at);
        let value = match option.split_once('=') {
            Some((_, value)) => value.to_owned(),
            None if at < words.len() => words.remove(at),
            None => return (words, None),
        };
        let ranks = value.parse().ok();
        (words, ranks)
    }
}
