//! Preloads that a command sets itself. Each would replace the profiler, so they come after it, as inherited ones do.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::program::executable;
use super::words::{file_name, is_launcher, setting_values};

/// The variable.
pub const PRELOAD: &str = "LD_PRELOAD";

/// A command without the preloads in the options of its launcher, and these, by program of `a : b`: library of the profiler first.
pub struct CommandPreloads {
    /// Words of the command.
    pub words: Vec<OsString>,
    /// Value of the variable for each program, if the command sets one.
    pub preloads: Vec<Option<OsString>>,
}

/// Part of a command to which a word belongs.
#[derive(Clone, Copy)]
enum CommandPart {
    LauncherOptions,
    EnvOptions,
    Program,
}

impl CommandPart {
    fn of_program(program: &OsStr) -> Self {
        if file_name(program) == "env" {
            Self::EnvOptions
        } else {
            Self::Program
        }
    }
}

/// Takes the preloads from the options of a launcher (`-genv LD_PRELOAD X`, `-x LD_PRELOAD=X`). Those of one program alone
/// (`-env LD_PRELOAD X`, `env LD_PRELOAD=X`) take precedence over other settings: the profiler is added to them.
pub fn take_preloads(words: &[OsString], profiler: &OsStr) -> CommandPreloads {
    let after_profiler = |value: &OsStr| {
        let mut both = profiler.to_owned();
        both.push(":");
        both.push(value);
        both
    };
    let assigned = |word: &OsStr| {
        let value = word.as_bytes().strip_prefix(b"LD_PRELOAD=")?;
        Some(after_profiler(OsStr::from_bytes(value)))
    };
    let mut taken = CommandPreloads { words: Vec::with_capacity(words.len()), preloads: vec![None] };
    let mut part = match words.first() {
        Some(first) if !is_launcher(first) => CommandPart::of_program(first),
        _ => CommandPart::LauncherOptions,
    };
    let mut at = 1.min(words.len());
    taken.words.extend_from_slice(&words[..at]);
    while let Some(word) = words.get(at) {
        let is_option = matches!(part, CommandPart::LauncherOptions);
        let end = if is_option { (at + 1 + setting_values(word)).min(words.len()) } else { at + 1 };
        let values = &words[at + 1..end];
        at = end;
        match (part, word.to_string_lossy().trim_start_matches('-'), values) {
            (_, ":", _) => {
                part = CommandPart::LauncherOptions;
                taken.preloads.push(None);
                taken.words.push(word.clone());
            }
            (CommandPart::LauncherOptions, "genv", [name, value]) if name == PRELOAD => {
                taken.preloads[0] = Some(after_profiler(value));
            }
            (CommandPart::LauncherOptions, "env", [name, value]) if name == PRELOAD => {
                taken.words.extend([word.clone(), name.clone(), after_profiler(value)]);
            }
            // The value in the environment of the launcher is known.
            (CommandPart::LauncherOptions, "x", [name]) if name == PRELOAD => {}
            (CommandPart::LauncherOptions, "x", [setting]) if assigned(setting).is_some() => {
                if let Some(preload) = taken.preloads.last_mut() {
                    *preload = assigned(setting);
                }
            }
            (CommandPart::EnvOptions, ..) => {
                let setting = assigned(word).map(|value| {
                    let mut setting = OsString::from("LD_PRELOAD=");
                    setting.push(value);
                    setting
                });
                if setting.is_none() && !is_env_option(word) {
                    part = CommandPart::Program;
                }
                taken.words.push(setting.unwrap_or_else(|| word.clone()));
            }
            _ => {
                if is_option && values.is_empty() && executable(word).is_some() {
                    part = CommandPart::of_program(word);
                }
                taken.words.push(word.clone());
                taken.words.extend_from_slice(values);
            }
        }
    }
    taken
}

/// True for options and assignments of `env`.
fn is_env_option(word: &OsStr) -> bool {
    let bytes = word.as_bytes();
    bytes.starts_with(b"-") || bytes.contains(&b'=')
}

/// The part of a command that removes the variables of the profiler, if there is one.
pub fn environment_removal(words: &[OsString]) -> Option<&'static str> {
    let begin = words.iter().position(|word| file_name(word) == "env")?;
    let mut rest = words[begin + 1..].iter();
    while let Some(word) = rest.next() {
        match word.to_string_lossy().as_ref() {
            "-" | "-i" | "--ignore-environment" => return Some("env -i"),
            "-uLD_PRELOAD" | "--unset=LD_PRELOAD" => return Some("env -u LD_PRELOAD"),
            "-u" | "--unset" => {
                if rest.next().is_some_and(|name| name == PRELOAD) {
                    return Some("env -u LD_PRELOAD");
                }
            }
            _ if is_env_option(word) => {}
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    fn taken(line: &str) -> (String, Vec<String>) {
        let taken = take_preloads(&words(line), OsStr::new("/p.so"));
        let text = |word: &OsString| word.to_string_lossy().into_owned();
        let preloads = taken.preloads.iter().map(|one| one.as_ref().map(text).unwrap_or_default());
        (taken.words.iter().map(text).collect::<Vec<_>>().join(" "), preloads.collect())
    }

    #[test]
    fn preloads_of_a_command_come_after_the_profiler() {
        for (line, left, preloads) in [
            ("mpirun -genv LD_PRELOAD ./x.so -n 2 sh a", "mpirun -n 2 sh a", &["/p.so:./x.so"][..]),
            ("mpirun -n 2 -env LD_PRELOAD ./x.so sh", "mpirun -n 2 -env LD_PRELOAD /p.so:./x.so sh", &[""]),
            ("mpirun -x LD_PRELOAD=x.so sh : -x LD_PRELOAD sh", "mpirun sh : sh", &["/p.so:x.so", ""]),
            ("mpirun sh : -x LD_PRELOAD=y sh", "mpirun sh : sh", &["", "/p.so:y"]),
            ("srun env A=1 LD_PRELOAD=x sh", "srun env A=1 LD_PRELOAD=/p.so:x sh", &[""]),
            ("env LD_PRELOAD=x mpirun sh", "env LD_PRELOAD=/p.so:x mpirun sh", &[""]),
            // Arguments of the program.
            ("mpirun sh -genv LD_PRELOAD x", "mpirun sh -genv LD_PRELOAD x", &[""]),
            ("mpirun env sh LD_PRELOAD=x", "mpirun env sh LD_PRELOAD=x", &[""]),
            ("sh -x LD_PRELOAD=x", "sh -x LD_PRELOAD=x", &[""]),
            // Values of options.
            ("mpirun -genv A sh -genv LD_PRELOAD x sh", "mpirun -genv A sh sh", &["/p.so:x"]),
            ("mpirun -genv LD_PRELOAD", "mpirun -genv LD_PRELOAD", &[""]),
        ] {
            assert_eq!(
                taken(line),
                (left.to_owned(), preloads.iter().map(|one| (*one).to_owned()).collect()),
                "{line}"
            );
        }
    }

    #[test]
    fn commands_that_remove_the_profiler_are_known() {
        for (line, part) in [
            ("mpirun -n 2 env -i ./a", Some("env -i")),
            ("/usr/bin/env A=1 - ./a", Some("env -i")),
            ("env -u A --unset LD_PRELOAD ./a", Some("env -u LD_PRELOAD")),
            ("env --unset=LD_PRELOAD ./a", Some("env -u LD_PRELOAD")),
            ("env A=1 ./a -i", None),
            ("./a env", None),
            ("mpirun ./a -i", None),
        ] {
            assert_eq!(environment_removal(&words(line)), part, "{line}");
        }
    }
}
