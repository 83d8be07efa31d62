//! What a screen says of warnings: a few words for each kind, the most important first.

use crate::frame::records::{kinds, Kind, Warning};

/// One text for each kind, the most important first; those of which there are more name what else they are about. Kinds that nobody
/// knows come last.
#[must_use]
pub fn by_kind<'w>(warnings: impl IntoIterator<Item = &'w Warning>, own: &[Kind], has_several: bool) -> Vec<String> {
    let rank = |w: &Warning| w.rank.or_else(|| Some(kinds::find(own, &w.kind)?.rank)).unwrap_or(u8::MAX);
    let mut all: Vec<&Warning> = warnings.into_iter().collect();
    all.sort_by_key(|warning| (rank(warning), warning.kind.as_ref()));
    let of_kind = all.chunk_by(|a, b| a.kind == b.kind);
    of_kind.filter_map(|all| all.split_first()).map(|(first, others)| text(first, others, has_several)).collect()
}

fn text(first: &Warning, others: &[&Warning], has_several: bool) -> String {
    let about = first.backend.as_ref().filter(|_| has_several).map(|about| format!("{about}: ")).unwrap_or_default();
    let mut more: Vec<&str> = Vec::new();
    for other in others.iter().filter_map(|other| other.backend.as_deref()) {
        if first.backend.as_deref() != Some(other) && !more.contains(&other) {
            more.push(other);
        }
    }
    let more = match (more.as_slice(), others.len()) {
        (_, 0) => String::new(),
        ([], number) => format!(" (and {number} more of this kind)"),
        (names, _) => format!(" ({} too)", names.join(", ")),
    };
    format!("{about}{}{more}", first.summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_told_once() {
        let hint = |text: &str| kinds::HINT_NOT_GRANTED.warning().told(text, "");
        let dropped = |text: &str| kinds::ALL_CACHES_DROPPED.warning().told(text, "");
        let warnings = [
            dropped("caches").of("mpiio"),
            kinds::MEMORY_FILE_SYSTEM.warning().told("in memory", "").of("posix"),
            dropped("caches too").of("posix"),
            dropped("caches too").of("uring"),
            hint("hints"),
            hint("other hints"),
            Warning { kind: "later".into(), ..hint("news") },
            Warning { rank: Some(2), ..kinds::NOT_BOUND.warning().told("loose", "") },
        ];
        let expected = [
            "posix: in memory",
            "loose",
            "hints (and 1 more of this kind)",
            "mpiio: caches (posix, uring too)",
            "news",
        ];
        assert_eq!(by_kind(&warnings, &[], true), expected);
        assert_eq!(by_kind(&warnings[..1], &[], false), ["caches"]);
    }
}
