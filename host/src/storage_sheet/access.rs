//! Access to a file system: attributes of a file, and tools.

use super::parameter::FoundParameters;

/// Access to the file system, replaced in tests.
pub(super) struct Access<'a> {
    /// Extended attribute of the file.
    pub(super) attribute: &'a dyn Fn(&str) -> Option<Vec<u8>>,
    /// Output of a tool, or why there is none.
    pub(super) tool: &'a dyn Fn(&[&str]) -> Result<String, String>,
}

impl Access<'_> {
    /// Output of a tool; a failure is a problem.
    pub(super) fn ask(&self, words: &[&str], found: &mut FoundParameters) -> Option<String> {
        (self.tool)(words)
            .map_err(|reason| {
                found
                    .problems
                    .push(format!("`{}` {reason}", words.iter().take(2).copied().collect::<Vec<_>>().join(" ")))
            })
            .ok()
    }

    pub(super) fn text_attribute(&self, name: &str) -> Option<String> {
        let bytes = (self.attribute)(name)?;
        Some(String::from_utf8_lossy(&bytes).trim_end_matches('\0').trim().to_owned()).filter(|text| !text.is_empty())
    }
}
