//! Twenty times the cache: what each access method moved, and the T that would do.

use crate::b_eff_io::values::{CacheBasis, CacheVerdict, CacheYardstick, Derived};
use crate::frame::records::AccessMethod;
use crate::frame::report::model::{LabelledText, ReportBlock, ReportSection};
use crate::frame::report::table::Table;
use crate::frame::report::text::list;
use crate::frame::units::{format_seconds, format_size};
use crate::frame::values::MPI_IO;
use crate::frame::words::NO_VALUE;

const LABEL: &str = "20 x cache";

/// Line of the screen: a partition through MPI-IO, or else through the first backend; None if nothing was moved.
pub(super) fn screen_line(derived: &Derived, ranks: u64) -> Option<LabelledText> {
    let all: Vec<&CacheYardstick> = derived.cache_yardsticks.iter().filter(|y| y.ranks == ranks).collect();
    let backend = all.iter().find(|y| y.backend == MPI_IO).or(all.first())?.backend.as_str();
    let own: Vec<&CacheYardstick> = all.iter().copied().filter(|y| y.backend == backend).collect();
    let of = |verdict: CacheVerdict| own.iter().copied().filter(move |y| y.verdict == verdict).collect::<Vec<_>>();
    let names = |all: &[&CacheYardstick]| list(&all.iter().map(|y| y.access.name().to_owned()).collect::<Vec<_>>());
    let mut parts = Vec::new();
    let unmet = of(CacheVerdict::NotMet);
    if let Some(first) = unmet.first() {
        let bytes = list(&unmet.iter().map(|y| format_size(y.cached_bytes)).collect::<Vec<_>>());
        let needed = needed(&unmet).map_or_else(String::new, |text| format!(", {text}"));
        parts.push(format!("not met by {}{needed}: {bytes} of {}", names(&unmet), format_size(first.required_bytes)));
    }
    for (verdict, text) in
        [(CacheVerdict::Met, "met by"), (CacheVerdict::Direct, "direct:"), (CacheVerdict::InMemory, "files in memory:")]
    {
        let own = of(verdict);
        if !own.is_empty() {
            parts.push(format!("{text} {}", names(&own)));
        }
    }
    let several = all.iter().any(|y| y.backend != backend);
    let backend = if several { format!("{backend}: ") } else { String::new() };
    Some((LABEL.to_owned(), format!("{backend}{}", parts.join("; "))))
}

/// What would be needed for the slowest of these access methods.
fn needed(unmet: &[&CacheYardstick]) -> Option<String> {
    let seconds = unmet.iter().map(|y| y.required_time_seconds).reduce(|a, b| Some(a?.max(b?)))??;
    let space = if unmet.iter().any(|y| y.limited_by_space) { " and more space" } else { "" };
    Some(format!("needs T of {}{space}", format_seconds(seconds)))
}

/// One line for an access method.
pub(super) fn sentence(y: &CacheYardstick) -> String {
    let cache = match y.cache_basis {
        CacheBasis::Given => format!("20 x the given cache of {}", format_size(y.cache_bytes)),
        CacheBasis::PageCache => format!("20 x the page cache of up to {}", format_size(y.cache_bytes)),
    };
    let [moved, required] = [y.cached_bytes, y.required_bytes].map(format_size);
    match y.verdict {
        CacheVerdict::Met => format!("met, {moved} of {required} ({cache})"),
        CacheVerdict::NotMet => {
            let needed = needed(&[y]).map_or_else(String::new, |text| format!("; {text}"));
            format!("not met, {moved} of {required} ({cache}){needed}")
        }
        CacheVerdict::Direct => "not applicable, direct I/O".to_owned(),
        CacheVerdict::InMemory => "not applicable, the files are in memory".to_owned(),
    }
}

/// Lines of a partition through one backend, by access method.
pub(super) fn lines(derived: &Derived, backend: &str, ranks: u64) -> Vec<(AccessMethod, String)> {
    let own = derived.cache_yardsticks.iter().filter(|y| y.backend == backend && y.ranks == ranks);
    own.map(|y| (y.access, sentence(y))).collect()
}

/// All partitions, backends and access methods.
pub(super) fn section(derived: &Derived) -> Option<ReportSection> {
    let all = &derived.cache_yardsticks;
    let head = ["backend", "ranks", "access", "moved", "20 x cache", "T needed", ""];
    let row = |y: &CacheYardstick| {
        let is_judged = matches!(y.verdict, CacheVerdict::Met | CacheVerdict::NotMet);
        let size = |bytes: u64| if is_judged { format_size(bytes) } else { NO_VALUE.to_owned() };
        let verdict = match (y.verdict, y.limited_by_space) {
            (CacheVerdict::Met, _) => "met",
            (CacheVerdict::NotMet, false) => "not met",
            (CacheVerdict::NotMet, true) => "not met, more space needed too",
            (CacheVerdict::Direct, _) => "not applicable, direct I/O",
            (CacheVerdict::InMemory, _) => "not applicable, files in memory",
        };
        let time = y.required_time_seconds.map_or_else(|| NO_VALUE.to_owned(), format_seconds);
        [
            y.backend.clone(),
            y.ranks.to_string(),
            y.access.name().to_owned(),
            size(y.cached_bytes),
            size(y.required_bytes),
            time,
            verdict.to_owned(),
        ]
    };
    let basis = match all.first()?.cache_basis {
        CacheBasis::Given => "The cache is that of --storage cache.",
        CacheBasis::PageCache => {
            "The cache is the page cache of the hosts, at most their memory; caches of servers and controllers are not known (--storage cache)."
        }
    };
    let note = format!(
        "\"If all of the data is to be on disk, write 20 times the cache of the file system\" (paper, section 5.4): a yardstick, not a \
         criterion of validity. {basis}"
    );
    let table = Table::new("", 3, head).with_words().with_rows(all.iter().map(row));
    ReportSection::of("cache", "Twenty times the cache", note, vec![ReportBlock::Table(table)])
}
