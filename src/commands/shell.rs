//! `beff-raw completions` and `beff-raw man`, generated from the definition of the command line.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use clap_complete::Shell;

use crate::frame::command::publish;
use crate::frame::error::{Exit, UsageError};
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

/// Text below the options of `man`.
pub const MAN_HELP: &str = concat!(
    "Examples:
  Where man looks for pages of a user:
      mkdir -p ~/.local/share/man/man1 && beff-raw man ~/.local/share/man/man1
  Read one without installing it:
      beff-raw man . && man ./beff-raw-io.1
  `make install` does both for everybody:
      make install PREFIX=/usr/local

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

/// Options of `man`.
#[derive(Clone, Debug, Args)]
pub struct ManArgs {
    /// Output directory; pages of these names are replaced
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// Prints the completions of a command line.
///
/// # Errors
/// stdout cannot be written.
pub fn completions(args: &CompletionsArgs, mut line: clap::Command) -> anyhow::Result<Exit> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut line, "beff-raw", &mut text);
    publish(&text)?;
    Ok(Exit::Ok)
}

/// Writes the manual pages of a command line.
///
/// # Errors
/// [`UsageError`] if there is no such directory; a page that cannot be written.
pub fn man(args: &ManArgs, line: clap::Command) -> anyhow::Result<Exit> {
    let directory = args.directory.display();
    if !args.directory.is_dir() {
        return Err(UsageError::new(
            format!("{directory}: not a directory"),
            format!("Create it first: mkdir -p {directory}"),
        )
        .into());
    }
    clap_mangen::generate_to(line, &args.directory)
        .map_err(|e| anyhow!("the manual pages cannot be written into {directory}: {e}; check its permissions"))?;
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{command_line, commands};

    #[test]
    fn every_command_has_a_page() {
        let directory = tempfile::tempdir().unwrap();
        man(&ManArgs { directory: directory.path().to_owned() }, command_line()).unwrap();
        for command in commands() {
            let page = std::fs::read_to_string(directory.path().join(format!("beff-raw-{}.1", command.name))).unwrap();
            assert!(page.contains("Examples:"), "{}", command.name);
        }
        assert!(std::fs::read_to_string(directory.path().join("beff-raw.1")).unwrap().contains("beff\\-raw"));
        let error = man(&ManArgs { directory: directory.path().join("none") }, command_line()).unwrap_err();
        assert!(error.is::<UsageError>(), "{error}");
    }

    #[test]
    fn every_shell_has_completions_of_all_commands() {
        use clap::ValueEnum;
        for shell in Shell::value_variants() {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut command_line(), "beff-raw", &mut text);
            let text = String::from_utf8(text).unwrap();
            assert!(commands().all(|command| text.contains(command.name)), "{shell}");
            assert!(text.contains("two-phase"), "{shell}: values too");
        }
    }
}
