//! What a screen says of itself: warnings in a few words, the most important first.

/// Something to know, in a few words.
#[derive(Clone, Debug, PartialEq)]
pub struct Brief {
    /// The smaller, the more important. All of a kind have the same.
    pub rank: u8,
    /// What it is about, if there are several of its kind, such as a backend.
    pub about: Option<String>,
    /// In words, without a full stop.
    pub text: String,
}

impl Brief {
    /// Of a kind that there is only one of.
    #[must_use]
    pub fn new(rank: u8, text: impl Into<String>) -> Self {
        Self { rank, about: None, text: text.into() }
    }

    /// About one of several.
    #[must_use]
    pub fn about(self, about: impl Into<String>) -> Self {
        Self { about: Some(about.into()), ..self }
    }
}

/// One text for each kind, the most important first; those of which there are more name what else they are about.
#[must_use]
pub fn by_kind(mut briefs: Vec<Brief>, has_several: bool) -> Vec<String> {
    briefs.sort_by_key(|brief| brief.rank);
    let of_kind = briefs.chunk_by(|a, b| a.rank == b.rank);
    of_kind.filter_map(|all| all.split_first()).map(|(first, others)| text(first, others, has_several)).collect()
}

fn text(first: &Brief, others: &[Brief], has_several: bool) -> String {
    let about = first.about.as_ref().filter(|_| has_several).map(|about| format!("{about}: ")).unwrap_or_default();
    let mut more: Vec<&str> = Vec::new();
    for other in others.iter().filter_map(|other| other.about.as_deref()) {
        if first.about.as_deref() != Some(other) && !more.contains(&other) {
            more.push(other);
        }
    }
    let more = match (more.as_slice(), others.len()) {
        (_, 0) => String::new(),
        ([], number) => format!(" (and {number} more of this kind)"),
        (names, _) => format!(" ({} too)", names.join(", ")),
    };
    format!("{about}{}{more}", first.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_told_once() {
        let briefs = vec![
            Brief::new(5, "few calls").about("mpiio"),
            Brief::new(2, "from cache").about("posix"),
            Brief::new(5, "few too").about("posix"),
            Brief::new(5, "few too").about("uring"),
            Brief::new(1, "hints"),
            Brief::new(1, "other hints"),
        ];
        let expected = ["hints (and 1 more of this kind)", "posix: from cache", "mpiio: few calls (posix, uring too)"];
        assert_eq!(by_kind(briefs.clone(), true), expected);
        assert_eq!(by_kind(briefs[..1].to_vec(), false), ["few calls"]);
    }
}
