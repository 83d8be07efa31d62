//! `--from RUN`: the options that a result was measured with, except those that are given again.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::Arg;
use serde_json::Value;

use crate::frame::benchmark::Command;
use crate::frame::error::UsageError;
use crate::frame::input;
use crate::frame::result_directory::ResultDirectory;

const FROM: &str = "from";
const FROM_OPTION: &str = "--from";
/// Of `io`: implies `--from`.
const CONTINUE: &str = "--continue";
/// Options of one run alone: its output and its progress reports.
const RUN_SPECIFIC: [&str; 8] = ["from", "continued", "out", "metrics", "progress", "quiet", "run_dir", "json"];

/// The option, for every command that measures.
pub(super) fn from_option(heading: &'static str) -> Arg {
    Arg::new(FROM).long(FROM).value_name("FILE").help_heading(heading).help(
        "Use all options of this result (PREFIX.json or PREFIX.jsonl; of a directory the newest PREFIX.json) except output options; options on the command line override them",
    )
}

/// Inserts the options of the result before the arguments, if `--from` is among them. The first of `commands` is the default; `translate`
/// replaces other spellings.
///
/// # Errors
/// The file is not a result, or one of another command.
pub(super) fn expand(
    args: Vec<OsString>,
    commands: &[&Command],
    translate: impl Fn(Vec<OsString>) -> Result<Vec<OsString>, UsageError>,
) -> Result<Vec<OsString>, UsageError> {
    let Some((option, path, typed)) = extract_from_option(&args) else { return Ok(args) };
    let path = match Path::new(&path) {
        // Of a directory the newest result; --continue needs the journal of one run.
        directory if option == FROM_OPTION && directory.is_dir() => {
            ResultDirectory::newest_of(directory)?.into_os_string()
        }
        _ => path,
    };
    let file = format!("{option} {}", path.to_string_lossy());
    let recorded = recorded_command_line(&file, Path::new(&path))?;
    merge_arguments(commands, &translate(recorded)?, &typed, &file)
}

/// `--from` or `--continue`, its value, and all other arguments.
fn extract_from_option(args: &[OsString]) -> Option<(&'static str, OsString, Vec<OsString>)> {
    let end = args.iter().position(|arg| arg == "--").unwrap_or(args.len());
    for (at, arg) in args[..end].iter().enumerate() {
        let text = arg.to_str().unwrap_or_default();
        let (option, inside) = text.split_once('=').map_or((text, None), |(option, value)| (option, Some(value)));
        if option != FROM_OPTION && option != CONTINUE {
            continue;
        }
        let (value, words) = match inside {
            Some(value) => (OsString::from(value), 1),
            None => (args.get(at + 1)?.clone(), 2),
        };
        // The command itself reads what it continues.
        let own = if option == CONTINUE { &args[at..at + words] } else { &[] };
        let rest = args[..at].iter().chain(own).chain(&args[at + words..]).cloned().collect();
        return Some((if option == CONTINUE { CONTINUE } else { FROM_OPTION }, value, rest));
    }
    None
}

/// Command line of the run; `file` names option and file in messages.
fn recorded_command_line(file: &str, path: &Path) -> Result<Vec<OsString>, UsageError> {
    let refused = |cause: String| {
        UsageError::new(cause, "Name a file that a run with --out PREFIX wrote: PREFIX.json or PREFIX.jsonl.")
    };
    let bytes = input::read_result(path).map_err(|e| refused(format!("{file}: {e}")))?;
    // In a journal the first line contains it.
    let mut documents = serde_json::Deserializer::from_slice(&bytes).into_iter::<Value>();
    let first = documents.next().and_then(Result::ok).unwrap_or(Value::Null);
    let words = find_command_line(&first, 4).ok_or_else(|| refused(format!("{file}: not a result of a run")))?;
    let word = |word: &Value| word.as_str().map(OsString::from);
    words
        .iter()
        .map(word)
        .collect::<Option<Vec<_>>>()
        .filter(|words| !words.is_empty())
        .ok_or_else(|| refused(format!("{file}: its command line is not known")))
}

/// Finds the field `command_line` in any part of a result.
fn find_command_line(value: &Value, depth: usize) -> Option<&Vec<Value>> {
    let object = value.as_object()?;
    let here = object.get("command_line").and_then(Value::as_array);
    here.or_else(|| object.values().filter(|_| depth > 0).find_map(|inner| find_command_line(inner, depth - 1)))
}

/// Splits a command line without its program into the command and the rest.
fn split_command<'w>(commands: &[&Command], words: &'w [OsString]) -> (Option<&'static str>, &'w [OsString]) {
    let known = |word: &OsString| commands.iter().map(|command| command.name).find(|name| OsStr::new(name) == word);
    match words.first().and_then(known) {
        Some(name) => (Some(name), &words[1..]),
        None => (None, words),
    }
}

fn merge_arguments(
    commands: &[&Command],
    recorded: &[OsString],
    typed: &[OsString],
    file: &str,
) -> Result<Vec<OsString>, UsageError> {
    let program = typed.first().cloned().unwrap_or_default();
    let (of_recorded, old) = split_command(commands, recorded.get(1..).unwrap_or_default());
    let (of_typed, new) = split_command(commands, typed.get(1..).unwrap_or_default());
    let first = commands.first().map_or("", |command| command.name);
    let name = of_recorded.unwrap_or(first);
    if let Some(other) = of_typed.filter(|other| *other != name) {
        return Err(UsageError::new(
            format!("{file}: a result of `beff-raw {name}`, not of `beff-raw {other}`"),
            format!("Type {name} in place of {other}, or leave the command out."),
        ));
    }
    let Some(command) = commands.iter().find(|command| command.name == name && command.measures) else {
        return Err(UsageError::new(format!("{file}: {name} measures nothing"), "Name the result of a run."));
    };
    let line = (command.options)(clap::Command::new(name));
    let new_parts = split_arguments(&line, new);
    let again = |part: &CliArgument| new_parts.iter().any(|typed| typed.name == part.name);
    let is_its_own = |part: &CliArgument| part.name.as_deref().is_some_and(|name| RUN_SPECIFIC.contains(&name));
    let kept = split_arguments(&line, old).into_iter().filter(|part| !again(part) && !is_its_own(part));
    let kept: Vec<OsString> = kept.flat_map(|part| part.words).collect();
    Ok([program, name.into()].into_iter().chain(kept).chain(new.iter().cloned()).collect())
}

/// An option with its value, or a positional argument.
struct CliArgument {
    name: Option<String>,
    words: Vec<OsString>,
}

fn split_arguments(line: &clap::Command, words: &[OsString]) -> Vec<CliArgument> {
    let mut parts = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let arg = word.to_str().and_then(|text| find_option(line, text));
        let mut all = vec![word.clone()];
        if let Some((arg, false)) = arg.filter(|(arg, _)| arg.get_action().takes_values()) {
            let _ = arg;
            all.extend(rest.next().cloned());
        }
        parts.push(CliArgument { name: arg.map(|(arg, _)| arg.get_id().to_string()), words: all });
    }
    parts
}

/// The option of a word, and whether the word includes its value.
fn find_option<'a>(line: &'a clap::Command, text: &str) -> Option<(&'a Arg, bool)> {
    let args = || line.get_arguments();
    if let Some(long) = text.strip_prefix("--") {
        let (name, has_value) = long.split_once('=').map_or((long, false), |(name, _)| (name, true));
        let is_it =
            |arg: &&Arg| arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|all| all.contains(&name));
        return args().find(is_it).map(|arg| (arg, has_value));
    }
    let mut letters = text.strip_prefix('-')?.chars();
    let letter = letters.next()?;
    args().find(|arg| arg.get_short() == Some(letter)).map(|arg| (arg, letters.next().is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn all_commands() -> Vec<&'static Command> {
        crate::cli::commands().collect()
    }

    fn merged(recorded: &str, typed: &str) -> String {
        let all = merge_arguments(&all_commands(), &words(recorded), &words(typed), "run.json").unwrap();
        all.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_typed_wins_and_where_it_wrote_is_its_own() {
        for (recorded, typed, expected) in [
            ("./beff-raw", "beff-raw", "beff-raw io"),
            (
                "x --time 15m --backend posix,uring --out a --path=/scratch -q --keep-files",
                "beff-raw -T 60s --out b",
                "beff-raw io --backend posix,uring --path=/scratch --keep-files -T 60s --out b",
            ),
            ("x io -T15m --types 0,1", "beff-raw io", "beff-raw io -T15m --types 0,1"),
            ("x -T15m", "beff-raw --time=1m", "beff-raw io --time=1m"),
            (
                "x imb S_Write_Indv --npmin 2 --hint a=b --hint c=d",
                "beff-raw",
                "beff-raw imb S_Write_Indv --npmin 2 --hint a=b --hint c=d",
            ),
            ("x imb S_Write_Indv --npmin 2", "beff-raw imb P_Read_Expl", "beff-raw imb --npmin 2 P_Read_Expl"),
            ("x imb --hint a=b --hint c=d", "beff-raw imb --hint e=f", "beff-raw imb --hint e=f"),
        ] {
            assert_eq!(merged(recorded, typed), expected);
        }
    }

    #[test]
    fn another_command_is_refused() {
        let error = merge_arguments(&all_commands(), &words("x comm"), &words("beff-raw imb"), "--from run.json")
            .unwrap_err()
            .to_string();
        assert!(error.contains("run.json: a result of `beff-raw comm`, not of `beff-raw imb`"), "{error}");
        assert!(merge_arguments(&all_commands(), &words("x report a.json"), &words("beff-raw"), "run.json").is_err());
    }

    #[test]
    fn the_option_is_found_in_both_spellings() {
        for line in ["b --from r.json -q", "b --from=r.json -q", "b -q --from r.json"] {
            let (option, file, rest) = extract_from_option(&words(line)).unwrap();
            assert_eq!(option, "--from");
            assert_eq!((file, rest), ("r.json".into(), words("b -q")));
        }
        let (option, file, rest) = extract_from_option(&words("b --continue r.jsonl -q")).unwrap();
        assert_eq!((option, file.to_str()), ("--continue", Some("r.jsonl")));
        assert_eq!(rest, words("b --continue r.jsonl -q"), "the command reads what it continues");
        assert!(
            extract_from_option(&words("b -- --from r.json")).is_none()
                && extract_from_option(&words("b --from")).is_none()
        );
        let all = expand(words("b -q"), &all_commands(), Ok).unwrap();
        assert_eq!(all, words("b -q"));
    }

    #[test]
    fn a_directory_stands_for_its_newest_result() {
        let directory = tempfile::tempdir().unwrap();
        for (name, day, time) in [("old", 1, "1m"), ("new", 30, "2m"), ("middle", 15, "3m")] {
            let manifest = format!(
                "{{\"started_utc\": \"2026-11-{day:02}T03:00:00Z\", \"command_line\": [\"x\", \"-T\", \"{time}\"]}}"
            );
            let text = format!("{{\"program\": \"beff-raw\", \"schema_version\": 1, \"manifest\": {manifest}}}\n");
            std::fs::write(directory.path().join(format!("{name}.json")), text).unwrap();
        }
        let path = directory.path().to_str().unwrap();
        let all = expand(words(&format!("b --from {path} -q")), &all_commands(), Ok).unwrap();
        assert_eq!(all, words("b io -T 2m -q"));
        let refused = |line: String| expand(words(&line), &all_commands(), Ok).unwrap_err().to_string();
        assert!(refused(format!("b --continue {path}")).contains(path), "a cut run is one journal");
        let empty = tempfile::tempdir().unwrap();
        assert!(refused(format!("b --from={}", empty.path().display())).contains("without results"));
    }

    #[test]
    fn files_that_are_no_results_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.json");
        for text in [
            "",
            "{}",
            "[1]",
            "{\"command_line\": 3}",
            "{\"manifest\": {\"command_line\": [1]}}",
            "{\"command_line\": []}",
        ] {
            std::fs::write(&path, text).unwrap();
            let error = recorded_command_line("--continue run.json", &path).unwrap_err().to_string();
            assert!(error.contains("run.json") && error.contains("PREFIX.json"), "{text}: {error}");
        }
        std::fs::write(&path, "{\"manifest\": {\"command_line\": [\"b\", \"-q\"]}}\n{broken").unwrap();
        assert_eq!(recorded_command_line("--from run.json", &path).unwrap(), words("b -q"));
        assert!(recorded_command_line("--from none.json", &directory.path().join("none.json")).is_err());
    }
}
