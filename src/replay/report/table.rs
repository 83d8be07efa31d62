//! What a user of a replay reads with `--full`. First: how fast, can it be trusted, what stands out, what next; then the levels
//! asked for, then how it was set up, and the verdict in one line at the end.

pub(super) mod closing;
pub(super) mod header;
pub(super) mod levels;
mod setup;
pub(super) mod trust;

use crate::frame::report::ending;
use crate::frame::report::text::Page;
use crate::replay::config::Detail;
use crate::replay::records::ReplayResult;
use crate::replay::values::{LevelKind, ReplayDerived};

/// The report of one replay. With `details` all levels, whatever was asked for when it ran.
#[must_use]
pub fn table(result: &ReplayResult, derived: &ReplayDerived, details: bool) -> String {
    let mut page = Page::default();
    let detail = if details { Detail::Process } else { result.config.detail };
    ending::banner(
        &mut page,
        result,
        "WRONG DATA: bytes read were not what the profile says must be there; see below.",
    );
    header::write(&mut page, result);
    levels::write(&mut page, result, derived, LevelKind::Run);
    trust::write(&mut page, result, derived);
    for (kind, least) in [
        (LevelKind::File, Detail::File),
        (LevelKind::Function, Detail::Function),
        (LevelKind::Process, Detail::Process),
    ] {
        if detail >= least {
            levels::write(&mut page, result, derived, kind);
        }
    }
    ending::troubles(&mut page, result, derived, &trust::corruption(result, derived));
    setup::write(&mut page, result);
    closing::end(&mut page, result, derived);
    page.finish()
}

#[cfg(test)]
mod tests;
