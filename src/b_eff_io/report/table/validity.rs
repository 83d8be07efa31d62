//! Whether the values may be compared with those of other systems: the criteria that the releases share once, then those
//! of each release.

use crate::b_eff_io::config::Release;
use crate::b_eff_io::records::RunResult;
use crate::b_eff_io::values::{Derived, Validity};
use crate::frame::report::criteria;
use crate::frame::report::text::Page;
use crate::frame::values::Criterion;

use crate::b_eff_io::report::layout::measuring;

pub(super) fn write(page: &mut Page, result: &RunResult, derived: &Derived) {
    for backend in measuring(result) {
        let mut judgements: Vec<&Validity> = derived.validity.iter().filter(|v| &v.backend == backend).collect();
        let own = result.config.release;
        judgements.sort_by_key(|v| v.release != own);
        if judgements.is_empty() {
            continue;
        }
        page.heading(&format!("Validity of {backend} for comparison with other systems"));
        let shared = shared(&judgements);
        page.line("  for all releases");
        criteria::missing_first(page, shared.iter().copied());
        for v in judgements {
            page.line(format!(
                "  release {}: {}{}",
                v.release.name(),
                criteria::verdict(&v.criteria),
                mark(v.release, own)
            ));
            criteria::lines(page, v.criteria.iter().filter(|c| !shared.contains(c)));
        }
    }
}

/// The criteria that every release has, with the same text and outcome.
fn shared<'a>(judgements: &[&'a Validity]) -> Vec<&'a Criterion> {
    let Some((first, others)) = judgements.split_first() else {
        return Vec::new();
    };
    first.criteria.iter().filter(|c| others.iter().all(|v| v.criteria.contains(c))).collect()
}

fn mark(release: Release, own: Release) -> &'static str {
    if release == own {
        "  <- definition of this run"
    } else {
        ""
    }
}

/// The judgement of one backend by one release.
pub(in crate::b_eff_io::report) fn find<'a>(
    derived: &'a Derived,
    backend: &str,
    release: Release,
) -> Option<&'a Validity> {
    derived.validity.iter().find(|v| v.backend == backend && v.release == release)
}
