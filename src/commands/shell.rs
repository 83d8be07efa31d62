//! `beff-raw completions`, generated from the definition of the command line.

use clap::Args;
use clap_complete::Shell;

use crate::frame::command::publish;
use crate::frame::error::Exit;
use crate::frame::options::common_help;

/// Text below the options of `completions`.
pub const COMPLETIONS_HELP: &str = concat!(
    "Examples:
  For this shell, now:
      source <(beff-raw completions bash)
  For all bash shells of a user:
      beff-raw completions bash > ~/.local/share/bash-completion/completions/beff-raw
  For zsh, in a directory of its fpath:
      beff-raw completions zsh > ~/.zfunc/_beff-raw

",
    common_help!()
);

/// Options of `completions`.
#[derive(Clone, Debug, Args)]
pub struct CompletionsArgs {
    /// Target shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: Shell,
}

/// Prints the completions of a command line.
///
/// # Errors
/// stdout cannot be written.
pub fn completions(args: &CompletionsArgs, line: &clap::Command) -> anyhow::Result<Exit> {
    publish(completion_script(args.shell, line).as_bytes())?;
    Ok(Exit::Ok)
}

const PROGRAM: &str = "beff-raw";

/// The script of clap_complete, with visible options only. Its bash functions search options of commands under one name and define them
/// under another if the name of the program has a hyphen: they are generated for another name, and bound to the program's.
fn completion_script(shell: Shell, line: &clap::Command) -> String {
    const WITHOUT_HYPHEN: &str = "beff_raw";
    let name = if shell == Shell::Bash { WITHOUT_HYPHEN } else { PROGRAM };
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut visible_part(line, name), name, &mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    if shell == Shell::Bash {
        text.replace(&format!(" {WITHOUT_HYPHEN}\n"), &format!(" {PROGRAM}\n"))
    } else {
        text
    }
}

/// The command without hidden options and commands. Names of a script are those of the program, for its whole life.
fn visible_part(command: &clap::Command, name: &'static str) -> clap::Command {
    let arguments = command.get_arguments().filter(|arg| !arg.is_hide_set()).cloned();
    let inner = command.get_subcommands().filter(|inner| !inner.is_hide_set());
    let inner = inner.map(|inner| visible_part(inner, String::leak(inner.get_name().to_owned())));
    let visible = clap::Command::new(name).disable_help_subcommand(true).args(arguments).subcommands(inner);
    // A command without its subcommand has arguments that are required.
    let visible = if command.has_subcommands() { visible.subcommand_negates_reqs(true) } else { visible };
    let visible = match command.get_about() {
        Some(about) => visible.about(about.clone()),
        None => visible,
    };
    match command.get_version() {
        Some(_) => visible.version(env!("CARGO_PKG_VERSION")),
        None => visible,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{command_line, commands};

    #[test]
    fn every_shell_has_completions_of_all_commands() {
        use clap::ValueEnum;
        for shell in Shell::value_variants() {
            let text = completion_script(*shell, &command_line());
            assert!(commands().all(|command| text.contains(command.name)), "{shell}");
            assert!(text.contains("two-phase"), "{shell}: values too");
            assert!(!text.contains("not-applied"), "{shell}: hidden options");
        }
    }

    /// What bash offers after these words, a line for each of `lines`; the last word is the one that is completed.
    fn offered_by_bash(lines: &[Vec<&str>]) -> Vec<String> {
        let mut script = completion_script(Shell::Bash, &command_line());
        script += "complete -p beff-raw >/dev/null || exit 1\n";
        for words in lines {
            let at = words.len();
            let (last, previous) = (words[at - 1], if at > 1 { words[at - 2] } else { "beff-raw" });
            script += &format!(
                "COMP_WORDS=(beff-raw {}); COMP_CWORD={at}; _beff_raw beff-raw '{last}' '{previous}'; echo \"${{COMPREPLY[*]}}\"\n",
                words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ")
            );
        }
        let output = std::process::Command::new("bash").args(["--norc", "-c", &script]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn bash_offers_the_visible_options_of_every_command() {
        let line = command_line();
        let all: Vec<&clap::Command> = line.get_subcommands().collect();
        let words: Vec<Vec<&str>> = all.iter().map(|command| vec![command.get_name(), "--"]).collect();
        for (command, offered) in all.iter().zip(offered_by_bash(&words)) {
            let offered: Vec<&str> = offered.split(' ').collect();
            for arg in command.get_arguments() {
                let Some(long) = arg.get_long() else { continue };
                let is_offered = offered.contains(&format!("--{long}").as_str());
                assert_eq!(is_offered, !arg.is_hide_set(), "{} --{long}: {offered:?}", command.get_name());
            }
        }
        let values = offered_by_bash(&[
            vec!["io", "--direct", "r"],
            vec!["workload", "ior-hard", "--se"],
            vec!["--ba"],
            vec!["comp"],
            vec!["comm", "--inj"],
        ]);
        assert_eq!(values, ["required", "--segments", "--backend", "compare completions", ""]);
    }
}
