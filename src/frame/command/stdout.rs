//! Width and colours of stdout.

use crate::frame::report::{DisplayContext, SaveStatus, TerminalOutput};
use crate::frame::system::terminal;

use super::publish_raw;

const DEFAULT_COLUMNS: usize = 80;

/// Renders a sheet for the terminal of this process and prints it; false if the pipe is closed.
///
/// # Errors
/// Stdout cannot be written.
pub fn publish_sheet(make: impl FnOnce(&DisplayContext) -> TerminalOutput, saved: SaveStatus) -> anyhow::Result<bool> {
    let env = |name: &str| std::env::var(name).ok();
    let terminal = terminal::stdout_columns(env);
    let columns = column_count(terminal, env);
    let sheet = make(&DisplayContext { columns, saved });
    publish_raw(sheet.render(terminal.is_some() && use_colours(env)).as_bytes())
}

/// Width of the terminal, else that in COLUMNS, else the default.
fn column_count(terminal: Option<usize>, env: impl Fn(&str) -> Option<String>) -> usize {
    let said = || env("COLUMNS").and_then(|text| text.trim().parse().ok());
    terminal.filter(|columns| *columns > 0).or_else(said).unwrap_or(DEFAULT_COLUMNS)
}

/// False if the user refuses colours (`NO_COLOR`, <https://no-color.org>) or the terminal cannot show them.
fn use_colours(env: impl Fn(&str) -> Option<String>) -> bool {
    env("NO_COLOR").is_none_or(|text| text.is_empty()) && env("TERM").is_some_and(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terminal_decides_then_columns_then_a_default() {
        let said = |name: &str| (name == "COLUMNS").then(|| "100".to_owned());
        assert_eq!(
            [column_count(Some(90), said), column_count(None, said), column_count(Some(0), said)],
            [90, 100, 100]
        );
        assert_eq!([column_count(None, |_| None), column_count(None, |_| Some("wide".into()))], [80, 80]);
    }

    #[test]
    fn colours_can_be_refused() {
        let with = |no: &'static str, term: &'static str| {
            use_colours(move |name| match name {
                "NO_COLOR" => (no != "unset").then(|| no.to_owned()),
                "TERM" => (term != "unset").then(|| term.to_owned()),
                _ => None,
            })
        };
        assert!(with("unset", "xterm") && with("", "xterm"));
        assert!(!with("1", "xterm") && !with("unset", "dumb") && !with("unset", "unset"));
    }
}
