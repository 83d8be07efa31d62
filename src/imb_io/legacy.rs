//! Command lines of the release, with one dash before each option, as ours. For the command `imb` alone; a pure function
//! of the arguments.

use std::ffi::OsString;

use clap::{Arg, Args, Command};

use super::cli::ImbArgs;
use crate::frame::error::UsageError;
use crate::imb_io::plan::names::nearest_of;

/// The command that understands them.
pub const COMMAND: &str = "imb";

/// Options as the release spells them, and ours.
const OPTIONS: [(&str, &str); 13] = [
    ("npmin", "npmin"),
    ("multi", "multi"),
    ("iter", "iter"),
    ("iter_policy", "iter-policy"),
    ("time", "time"),
    ("aggregate_mode", "aggregate-mode"),
    ("msglen", "msglen"),
    ("msglog", "msglog"),
    ("include", "include"),
    ("exclude", "exclude"),
    ("input", "input"),
    ("list", "list"),
    ("help", "help"),
];

/// Options of the release that we do not have, and what to do instead.
const MISSING: [(&str, &str); 17] = [
    ("off_cache", "Give --buffers cold: each repetition then has memory that was not used just before."),
    (
        "mem",
        "Leave it out: memory is planned, shown before the run, and refused if it is too much; --msglog limits it.",
    ),
    ("map", "Number the processes with the launcher, e.g. mpirun --map-by or srun --distribution."),
    ("sync", "Leave it out: the processes are synchronized before each row, and where the mode says so."),
    ("imb_barrier", "Leave it out: the barrier is MPI_Barrier, and its cost is shown with the results."),
    ("root_shift", "Leave it out: no benchmark of IMB-IO has a root."),
    ("warm_up", "Leave it out: a trial outside the clock precedes each row and decides its repetitions."),
    ("zero_size", "Leave it out: 0 bytes are measured with --msglog; --msglen FILE measures what is in the file."),
    ("data_type", "Leave it out: data are bytes, as by default in the release."),
    ("red_data_type", "Leave it out: no benchmark of IMB-IO reduces data."),
    ("contig_type", "Leave it out: the data of a transfer is contiguous in memory."),
    ("msg_pause", "Leave it out: the repetitions of a row follow each other without a pause."),
    ("window_size", "Leave it out: no benchmark of IMB-IO has a window of messages."),
    ("thread_level", "Leave it out: each process does its I/O with one thread; start more processes."),
    ("output", "Give --out PREFIX, which writes a journal, a JSON document and a table."),
    ("dump", "Give --out PREFIX: the configuration is part of every result."),
    ("load", "Keep the command line in a script; it is also in every result of --out."),
];

/// The arguments with the spellings of the release replaced by ours: `-name`, `-name=value`, names of the table alone. Every
/// other argument stays as it is; so do values, that is arguments directly behind an option that takes one, and all
/// behind `--`.
///
/// # Errors
/// An option of the release that we do not have; a word with one dash that is no option at all; words behind the list of
/// `-include` and `-exclude`.
pub fn translate(args: Vec<OsString>) -> Result<Vec<OsString>, UsageError> {
    if args.get(1).is_none_or(|command| command != COMMAND) {
        return Ok(args);
    }
    let options = options();
    let with_value = with_value(&options);
    let mut translated = Vec::with_capacity(args.len());
    let mut rest = args.into_iter();
    translated.extend(rest.by_ref().take(2));
    let mut rest = rest.peekable();
    while let Some(arg) = rest.next() {
        if arg == "--" {
            translated.push(arg);
            break;
        }
        let Some(text) = arg.to_str() else {
            translated.push(arg);
            continue;
        };
        refuse_missing(text)?;
        let ours = ours(text);
        if ours.is_none() {
            refuse_unknown(text, &options)?;
        }
        let is_option_with_value = with_value.iter().any(|o| o == ours.as_deref().unwrap_or(text));
        let is_list = ours.as_ref().is_some_and(|o| o.starts_with("--include") || o.starts_with("--exclude"));
        translated.push(ours.map_or(arg, OsString::from));
        translated.extend(if is_option_with_value { rest.next() } else { None });
        if let Some(word) = rest.peek().and_then(|next| next.to_str()).filter(|w| is_list && !w.starts_with('-')) {
            return Err(UsageError::new(
                format!("-include, -exclude: '{word}' behind the list may be part of it, or a benchmark to run"),
                format!(
                    "Join the names of a list by commas (-include A,B); write names to run directly behind {COMMAND}."
                ),
            ));
        }
    }
    translated.extend(rest);
    Ok(translated)
}

/// Our spelling of an option with one dash; None: none of the release's.
fn ours(text: &str) -> Option<String> {
    let (name, value) = split(text.strip_prefix('-')?);
    let (_, ours) = OPTIONS.iter().find(|(theirs, _)| *theirs == name)?;
    Some(value.map_or_else(|| format!("--{ours}"), |value| format!("--{ours}={value}")))
}

fn split(text: &str) -> (&str, Option<&str>) {
    text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)))
}

/// With one dash or two.
fn refuse_missing(text: &str) -> Result<(), UsageError> {
    let Some(name) = text.strip_prefix('-') else { return Ok(()) };
    let name = split(name.strip_prefix('-').unwrap_or(name)).0.replace('-', "_");
    let Some((_, next_step)) = MISSING.iter().find(|(missing, _)| *missing == name) else { return Ok(()) };
    Err(UsageError::new(format!("-{name}: this option of the release is not supported"), *next_step))
}

/// A word with one dash that is neither of the release nor short options of ours. clap would take it apart: in `-hint` it
/// sees `-h` and shows the help.
fn refuse_unknown(text: &str, options: &[Arg]) -> Result<(), UsageError> {
    let Some(word) = text.strip_prefix('-') else { return Ok(()) };
    let name = split(word).0;
    let is_name = name.chars().nth(1).is_some() && name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    if !is_name || is_short(word, options) {
        return Ok(());
    }
    Err(UsageError::new(
        format!("-{name}: there is no such option, neither of the release nor of ours"),
        hint(name, options),
    ))
}

/// Letters of options without a value; the last one may have one, which begins like a number.
fn is_short(word: &str, options: &[Arg]) -> bool {
    let rest = word.trim_start_matches(|letter| {
        let option = options.iter().find(|arg| arg.get_short() == Some(letter));
        // clap adds the help later.
        letter == 'h' || option.is_some_and(|arg| !arg.get_action().takes_values())
    });
    let mut letters = rest.chars();
    let Some(letter) = letters.next() else { return true };
    let takes_value = options.iter().any(|arg| arg.get_short() == Some(letter));
    takes_value && letters.next().is_none_or(|value| value.is_ascii_digit() || matches!(value, '=' | '.'))
}

/// What to write instead of `-name`.
fn hint(name: &str, options: &[Arg]) -> String {
    let long: Vec<String> =
        options.iter().filter(|arg| !arg.is_hide_set()).filter_map(Arg::get_long).map(|l| format!("--{l}")).collect();
    let with_dashes = format!("--{}", name.replace('_', "-"));
    if long.contains(&with_dashes) {
        return format!("Write {with_dashes}.");
    }
    let theirs = OPTIONS.iter().map(|(name, _)| name).chain(MISSING.iter().map(|(name, _)| name));
    let known: Vec<String> = theirs.map(|name| format!("-{name}")).chain(long).collect();
    match nearest_of(name, known.iter().map(String::as_str)) {
        Some(near) => format!("Did you mean {near}? `beff-raw {COMMAND} --help` shows all options."),
        None => format!("`beff-raw {COMMAND} --help` shows all options."),
    }
}

/// Our options.
fn options() -> Vec<Arg> {
    let command = ImbArgs::augment_args(Command::new(COMMAND));
    command.get_arguments().filter(|arg| !arg.is_positional()).cloned().collect()
}

/// Those that are followed by a value, as they are typed.
fn with_value(options: &[Arg]) -> Vec<String> {
    options.iter().filter(|arg| arg.get_action().takes_values()).flat_map(spellings).collect()
}

fn spellings(arg: &Arg) -> Vec<String> {
    let short = arg.get_short().map(|letter| format!("-{letter}"));
    let aliases = arg.get_all_aliases().unwrap_or_default();
    let long = arg.get_long().into_iter().chain(aliases).map(|name| format!("--{name}"));
    short.into_iter().chain(long).collect()
}

#[cfg(test)]
#[path = "legacy_tests.rs"]
mod tests;
