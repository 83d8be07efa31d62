//! Stdout as the user sees it: how wide, with colours or without.

use crate::frame::report::{Place, Saved, Sheet};
use crate::frame::system::terminal;

use super::publish_raw;

/// Columns where no terminal tells them.
const COLUMNS: usize = 80;

/// Makes a sheet for the terminal of this process and prints it; false if nobody reads it.
///
/// # Errors
/// Stdout cannot be written.
pub fn publish_sheet(make: impl FnOnce(&Place) -> Sheet, saved: Saved) -> anyhow::Result<bool> {
    let env = |name: &str| std::env::var(name).ok();
    let terminal = terminal::columns_of_stdout(env);
    let columns = columns(terminal, env);
    let sheet = make(&Place { columns, saved });
    publish_raw(sheet.render(terminal.is_some() && colours(env)).as_bytes())
}

/// What the terminal has, else what COLUMNS says.
fn columns(terminal: Option<usize>, env: impl Fn(&str) -> Option<String>) -> usize {
    let said = || env("COLUMNS").and_then(|text| text.trim().parse().ok());
    terminal.filter(|columns| *columns > 0).or_else(said).unwrap_or(COLUMNS)
}

/// Not where the user does not want them (`NO_COLOR`, <https://no-color.org>) or the terminal cannot.
fn colours(env: impl Fn(&str) -> Option<String>) -> bool {
    env("NO_COLOR").is_none_or(|text| text.is_empty()) && env("TERM").is_some_and(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terminal_decides_then_columns_then_a_default() {
        let said = |name: &str| (name == "COLUMNS").then(|| "100".to_owned());
        assert_eq!([columns(Some(90), said), columns(None, said), columns(Some(0), said)], [90, 100, 100]);
        assert_eq!([columns(None, |_| None), columns(None, |_| Some("wide".into()))], [80, 80]);
    }

    #[test]
    fn colours_can_be_refused() {
        let with = |no: &'static str, term: &'static str| {
            colours(move |name| match name {
                "NO_COLOR" => (no != "unset").then(|| no.to_owned()),
                "TERM" => (term != "unset").then(|| term.to_owned()),
                _ => None,
            })
        };
        assert!(with("unset", "xterm") && with("", "xterm"));
        assert!(!with("1", "xterm") && !with("unset", "dumb") && !with("unset", "unset"));
    }
}
