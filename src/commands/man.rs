//! `beff-raw man`: the manual pages, generated from the definition of the command line, in the sections of man-pages(7).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::{Args, Command};
use clap_mangen::roff::{bold, roman, Inline, Roff};
use clap_mangen::Man;

use crate::frame::error::{Exit, UsageError};
use crate::frame::options::common_help;

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

/// Options of `man`.
#[derive(Clone, Debug, Args)]
pub struct ManArgs {
    /// Output directory; pages of these names are replaced
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// Headings of the help, and the sections of a page that have their texts, in their order there. Other texts are notes.
const SECTIONS: [(&str, &str); 5] = [
    ("Exit codes", "EXIT STATUS"),
    ("Environment", "ENVIRONMENT"),
    (NOTES, NOTES),
    ("Units", "UNITS"),
    ("Examples", "EXAMPLES"),
];
const NOTES: &str = "NOTES";

/// Writes the manual pages of a command line.
///
/// # Errors
/// [`UsageError`] if there is no such directory; a page that cannot be written.
pub fn man(args: &ManArgs, line: Command) -> anyhow::Result<Exit> {
    let directory = args.directory.display();
    if !args.directory.is_dir() {
        return Err(UsageError::new(
            format!("{directory}: not a directory"),
            format!("Create it first: mkdir -p {directory}"),
        )
        .into());
    }
    write_pages(line, &args.directory)
        .map_err(|e| anyhow!("the manual pages cannot be written into {directory}: {e}; check its permissions"))?;
    Ok(Exit::Ok)
}

fn write_pages(line: Command, directory: &Path) -> io::Result<()> {
    let mut line = line.disable_help_subcommand(true);
    line.build();
    let mut pages = Vec::new();
    collect_pages(&line, &mut pages);
    let names: Vec<String> = pages.iter().map(page_name).collect();
    for (command, name) in pages.iter().zip(&names) {
        let related = names.iter().filter(|other| *other != name && is_related(name, other));
        let page = page(command, related.map(String::as_str))?;
        fs::write(directory.join(format!("{name}.1")), page)?;
    }
    Ok(())
}

fn collect_pages(command: &Command, pages: &mut Vec<Command>) {
    pages.push(command.clone());
    command.get_subcommands().filter(|inner| !inner.is_hide_set()).for_each(|inner| collect_pages(inner, pages));
}

fn page_name(command: &Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

/// Pages of the commands refer to each other, those of commands of a command to that command.
fn is_related(name: &str, other: &str) -> bool {
    let level = |name: &str| name.trim_start_matches("beff-raw").matches('-').count();
    level(other) <= 1 || other.starts_with(&format!("{name}-"))
}

fn page<'a>(command: &Command, related: impl Iterator<Item = &'a str>) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.get_subcommands().any(|inner| !inner.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let parts = help_parts(&help);
    let mut roff = Roff::new();
    for (heading, title) in SECTIONS {
        let own: Vec<&str> = parts.iter().filter(|(of, _)| *of == heading).map(|(_, text)| *text).collect();
        if !own.is_empty() {
            // Lines stay as they are: columns and command lines.
            roff.control("SH", [title]).control("nf", []);
            roff.text([roman(own.join("\n\n"))]);
            roff.control("fi", []);
        }
    }
    roff.control("SH", ["SEE ALSO"]);
    let page_of = |name: &str| [bold(name), roman("(1), ")];
    let mut references: Vec<Inline> = related.flat_map(page_of).collect();
    references.extend([bold("mpirun"), roman("(1)")]);
    roff.text(references);
    roff.to_writer(&mut page)?;
    Ok(page)
}

/// Texts below the options with their headings, as far as those have a section: `Units:` and what follows.
fn help_parts(help: &str) -> Vec<(&'static str, &str)> {
    let part = |text| {
        let (first, rest) = str::split_once(text, '\n').unwrap_or((text, ""));
        let known = SECTIONS
            .iter()
            .find(|(heading, _)| *heading != NOTES && first.starts_with(heading) && first.ends_with(':'));
        known.map_or((NOTES, text), |(heading, _)| (*heading, rest))
    };
    help.split("\n\n").map(|text| text.trim_matches('\n')).filter(|text| !text.is_empty()).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{command_line, commands};

    #[test]
    fn every_command_has_a_page_with_the_usual_sections() {
        let directory = tempfile::tempdir().unwrap();
        man(&ManArgs { directory: directory.path().to_owned() }, command_line()).unwrap();
        let read = |name: &str| fs::read_to_string(directory.path().join(format!("{name}.1"))).unwrap();
        for name in commands().map(|command| format!("beff-raw-{}", command.name)).chain(["beff-raw".to_owned()]) {
            let page = read(&name);
            let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix(".SH ")).collect();
            let end = [r#""EXIT STATUS""#, "ENVIRONMENT", "UNITS", "EXAMPLES", r#""SEE ALSO""#];
            let found: Vec<&str> = sections.iter().copied().filter(|section| end.contains(section)).collect();
            assert_eq!(found, end, "{name}: {sections:?}");
            assert!(sections.starts_with(&["NAME", "SYNOPSIS", "DESCRIPTION"]), "{name}: {sections:?}");
            assert!(!page.contains(&format!("\\fB{}\\fR(1)", name.replace('-', "\\-"))), "{name} refers to itself");
        }
        let page = read("beff-raw-gate");
        assert!(page.contains("\\fBbeff\\-raw\\-compare\\fR(1)") && page.contains("Verdicts:"), "{page}");
        assert!(page.contains("  130  interrupted"), "columns: {page}");
        // Pages of the commands of a command are reached from that one.
        assert!(!page.contains("ior\\-easy") && read("beff-raw-workload").contains("workload\\-btio\\fR(1)"));
        let error = man(&ManArgs { directory: directory.path().join("none") }, command_line()).unwrap_err();
        assert!(error.is::<UsageError>(), "{error}");
    }
}
