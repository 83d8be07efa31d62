//! Translates command lines of the release, with one dash before each option, to the options of this program. For the
//! command `imb` alone; a pure function of the arguments.

use std::ffi::OsString;

use clap::{Arg, Args, Command};

use super::cli::ImbArgs;
use crate::frame::error::UsageError;
use crate::frame::options::parse_seconds;
use crate::imb_io::plan::names::nearest_of;
use crate::imb_io::plan::IterationPolicy;

/// The command that accepts them.
pub const COMMAND: &str = "imb";

/// Options as the release and this program spell them.
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

/// An option of IMB-IO that changes nothing here.
struct WithoutEffect {
    name: &'static str,
    is_value: fn(&str) -> bool,
    /// Continues "has no effect: ".
    reason: &'static str,
}

/// Accepted with their value, so that command lines work as they are. A note on stderr reports them.
const WITHOUT_EFFECT: [WithoutEffect; 6] = [
    WithoutEffect {
        name: "off_cache",
        is_value: is_numbers,
        reason: "the release ignores it in IMB-IO, too; --buffers cold gives each iteration cache-cold memory",
    },
    WithoutEffect {
        name: "mem",
        is_value: is_numbers,
        reason: "the memory is shown before the run, and refused if it is too much; --msglog limits it",
    },
    WithoutEffect {
        name: "imb_barrier",
        is_value: is_switch,
        reason: "the barrier is MPI_Barrier, and its cost is shown with the results",
    },
    WithoutEffect {
        name: "warm_up",
        is_value: is_switch,
        reason: "an untimed pilot measurement precedes each row and sets its iterations",
    },
    WithoutEffect { name: "msg_pause", is_value: is_switch, reason: "the rows follow each other without a pause" },
    WithoutEffect {
        name: "thread_level",
        is_value: |value| !value.starts_with('-'),
        reason: "each process does its I/O with one thread; start more processes",
    },
];

/// `-time` with `-iter_policy off`.
const TIME_WITHOUT_EFFECT: &str = "with -iter_policy off a row has no time limit";

/// The option that carries those without effect, each with its value in one word.
const NOT_APPLIED: &str = "--not-applied";

fn is_numbers(value: &str) -> bool {
    value.split(',').all(|number| number.parse::<f64>().is_ok_and(f64::is_finite))
}

fn is_switch(value: &str) -> bool {
    let words = ["on", "off", "yes", "no", "true", "false", "enable", "disable", "1", "0"];
    words.iter().any(|word| word.eq_ignore_ascii_case(value))
}

/// Unsupported options of the release, with the alternative.
const UNSUPPORTED: [(&str, &str); 11] = [
    ("map", "Number the processes with the launcher, e.g. mpirun --map-by or srun --distribution."),
    ("sync", "Leave it out: the processes are synchronized before each row, and at each sync of the mode."),
    ("root_shift", "Leave it out: no benchmark of IMB-IO has a root."),
    ("zero_size", "Leave it out: --msglog includes 0 bytes; --msglen FILE measures the sizes in the file."),
    ("data_type", "Leave it out: data are bytes, as by default in the release."),
    ("red_data_type", "Leave it out: no benchmark of IMB-IO reduces data."),
    ("contig_type", "Leave it out: the data of a transfer is contiguous in memory."),
    ("window_size", "Leave it out: no benchmark of IMB-IO has a window of messages."),
    ("output", "Give --out PREFIX, which writes a journal, a JSON document and a table."),
    ("dump", "Give --out PREFIX: the configuration is part of every result."),
    ("load", "Keep the command line in a script; it is also in every result of --out."),
];

/// Replaces the spellings of the release: `-name` and `-name=value`, for names of the table alone. All other arguments stay
/// unchanged; so do values (arguments directly after an option that takes one) and everything after `--`. Options of IMB-IO without
/// effect become values of `--not-applied` ([`not_applied_note`]).
///
/// # Errors
/// An option without effect that has no valid value; an unsupported option of the release; a word with one dash that is no
/// option; words after the list of `-include` and `-exclude`.
pub fn translate(args: Vec<OsString>) -> Result<Vec<OsString>, UsageError> {
    if args.get(1).is_none_or(|command| command != COMMAND) {
        return Ok(args);
    }
    let options = options();
    let with_value = options_with_value(&options);
    let mut translated = Vec::with_capacity(args.len());
    // Places of the options with one dash.
    let mut of_release = Vec::new();
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
        if let Some(words) = without_effect(text, &mut rest)? {
            translated.extend(words);
            continue;
        }
        refuse_unsupported(text)?;
        let ours = own_spelling(text);
        match ours {
            Some(_) => of_release.push(translated.len()),
            None => refuse_unknown(text, &options)?,
        }
        let is_option_with_value = with_value.iter().any(|o| o == ours.as_deref().unwrap_or(text));
        let is_list = ours.as_ref().is_some_and(|o| o.starts_with("--include") || o.starts_with("--exclude"));
        translated.push(ours.map_or(arg, OsString::from));
        translated.extend(if is_option_with_value { rest.next() } else { None });
        if let Some(word) = rest.peek().and_then(|next| next.to_str()).filter(|w| is_list && !w.starts_with('-')) {
            return Err(UsageError::new(
                format!("-include, -exclude: '{word}' after the list may be part of it, or a benchmark to run"),
                format!(
                    "Separate the names of a list by commas (-include A,B); write names to run directly after {COMMAND}."
                ),
            ));
        }
    }
    translated.extend(rest);
    mark_time_without_effect(&mut translated, &of_release);
    Ok(translated)
}

/// The words for an option without effect, with one dash or two; None if it is another one.
fn without_effect(text: &str, rest: &mut impl Iterator<Item = OsString>) -> Result<Option<Vec<OsString>>, UsageError> {
    let Some(typed) = text.strip_prefix('-') else { return Ok(None) };
    let (typed, inside) = split_value(typed.strip_prefix('-').unwrap_or(typed));
    let name = typed.replace('-', "_");
    let Some(option) = WITHOUT_EFFECT.iter().find(|option| option.name == name) else { return Ok(None) };
    let next = if inside.is_none() { rest.next() } else { None };
    let value = inside.or(next.as_deref().and_then(|word| word.to_str())).filter(|value| (option.is_value)(value));
    match (value, inside) {
        (Some(value), Some(_)) => Ok(Some(vec![format!("{NOT_APPLIED}=-{name}={value}").into()])),
        (Some(value), None) => Ok(Some(vec![NOT_APPLIED.into(), format!("-{name} {value}").into()])),
        (None, _) => {
            let given = inside.map(OsString::from).or(next).map_or_else(
                || "it needs a value".to_owned(),
                |value| format!("'{}' is no value of it", value.to_string_lossy()),
            );
            Err(UsageError::new(format!("-{name}: {given}"), format!("Leave it out: {}.", option.reason)))
        }
    }
}

/// Replaces `-time` of the release where `-iter_policy off` of the release leaves no time limit. The own spelling of either is refused by
/// the configuration.
fn mark_time_without_effect(translated: &mut [OsString], of_release: &[usize]) {
    let option = |words: &[OsString], at: usize| {
        let (name, inside) = split_value(words.get(at)?.to_str()?);
        let value = inside.or_else(|| words.get(at + 1)?.to_str())?.to_owned();
        Some((name.to_owned(), value, inside.is_some()))
    };
    let off = IterationPolicy::Off.name();
    let is_off = |at: &usize| {
        option(&*translated, *at)
            .is_some_and(|(name, value, _)| name == "--iter-policy" && value.eq_ignore_ascii_case(off))
    };
    if !of_release.iter().any(is_off) {
        return;
    }
    for at in of_release {
        match option(&*translated, *at) {
            Some((name, value, is_inside)) if name == "--time" && parse_seconds(&value).is_ok() => {
                if is_inside {
                    translated[*at] = format!("{NOT_APPLIED}=-time={value}").into();
                } else {
                    translated[*at] = NOT_APPLIED.into();
                    translated[*at + 1] = format!("-time {value}").into();
                }
            }
            _ => {}
        }
    }
}

/// What to tell the user about the values of `--not-applied`; None if there are none.
#[must_use]
pub fn not_applied_note(not_applied: &[String]) -> Option<String> {
    let note = |option: &String| {
        let name = option.trim_start_matches('-').split([' ', '=']).next().unwrap_or_default();
        let reason = WITHOUT_EFFECT.iter().find(|o| o.name == name).map_or(TIME_WITHOUT_EFFECT, |o| o.reason);
        format!("{option} has no effect: {reason}")
    };
    (!not_applied.is_empty()).then(|| not_applied.iter().map(note).collect::<Vec<_>>().join("\n"))
}

/// Spelling of this program for an option with one dash; None: not an option of the release.
fn own_spelling(text: &str) -> Option<String> {
    let (name, value) = split_value(text.strip_prefix('-')?);
    let (_, ours) = OPTIONS.iter().find(|(theirs, _)| *theirs == name)?;
    Some(value.map_or_else(|| format!("--{ours}"), |value| format!("--{ours}={value}")))
}

fn split_value(text: &str) -> (&str, Option<&str>) {
    text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)))
}

/// With one dash or two.
fn refuse_unsupported(text: &str) -> Result<(), UsageError> {
    let Some(name) = text.strip_prefix('-') else { return Ok(()) };
    let name = split_value(name.strip_prefix('-').unwrap_or(name)).0.replace('-', "_");
    let Some((_, next_step)) = UNSUPPORTED.iter().find(|(missing, _)| *missing == name) else { return Ok(()) };
    Err(UsageError::new(format!("-{name}: this option of the release is not supported"), *next_step))
}

/// Refuses a word with one dash that is neither an option of the release nor a group of short options. clap would split it:
/// it parses `-hint` as `-h` and shows the help.
fn refuse_unknown(text: &str, options: &[Arg]) -> Result<(), UsageError> {
    let Some(word) = text.strip_prefix('-') else { return Ok(()) };
    let name = split_value(word).0;
    let is_name = name.chars().nth(1).is_some() && name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    if !is_name || is_short_option(word, options) {
        return Ok(());
    }
    Err(UsageError::new(
        format!("-{name}: no such option, neither of the release nor of this program"),
        suggestion(name, options),
    ))
}

/// True for letters of options without a value; the last one may have a value that begins like a number.
fn is_short_option(word: &str, options: &[Arg]) -> bool {
    let rest = word.trim_start_matches(|letter| {
        let option = options.iter().find(|arg| arg.get_short() == Some(letter));
        // clap adds `-h` later.
        letter == 'h' || option.is_some_and(|arg| !arg.get_action().takes_values())
    });
    let mut letters = rest.chars();
    let Some(letter) = letters.next() else { return true };
    let takes_value = options.iter().any(|arg| arg.get_short() == Some(letter));
    takes_value && letters.next().is_none_or(|value| value.is_ascii_digit() || matches!(value, '=' | '.'))
}

fn suggestion(name: &str, options: &[Arg]) -> String {
    let long: Vec<String> =
        options.iter().filter(|arg| !arg.is_hide_set()).filter_map(Arg::get_long).map(|l| format!("--{l}")).collect();
    let with_dashes = format!("--{}", name.replace('_', "-"));
    if long.contains(&with_dashes) {
        return format!("Write {with_dashes}.");
    }
    let theirs = OPTIONS.iter().chain(&UNSUPPORTED).map(|(name, _)| *name).chain(WITHOUT_EFFECT.iter().map(|o| o.name));
    let known: Vec<String> = theirs.map(|name| format!("-{name}")).chain(long).collect();
    match nearest_of(name, known.iter().map(String::as_str)) {
        Some(near) => format!("Did you mean {near}? `beff-raw {COMMAND} --help` shows all options."),
        None => format!("`beff-raw {COMMAND} --help` shows all options."),
    }
}

fn options() -> Vec<Arg> {
    let command = ImbArgs::augment_args(Command::new(COMMAND));
    command.get_arguments().filter(|arg| !arg.is_positional()).cloned().collect()
}

/// All spellings of options that take a value.
fn options_with_value(options: &[Arg]) -> Vec<String> {
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
