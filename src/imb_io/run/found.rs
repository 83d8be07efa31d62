//! What one rank found when it looked at the bytes of a row.

/// Bytes looked at, and what was wrong of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Bytes looked at.
    pub bytes_checked: u64,
    /// Of these, and of those that are missing, wrong ones.
    pub bytes_wrong: u64,
    /// The first of them.
    pub finding: Option<Finding>,
}

/// The first wrong byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// Repetition it belongs to; None: not known, as the order of arrival decides.
    pub repetition: Option<u64>,
    /// Where in the file; None: not known, as in memory, and where records are too short to be recognised.
    pub offset_bytes: Option<u64>,
    /// Byte expected; None: not known, as any record may be here.
    pub expected: Option<u8>,
    /// Byte found; None: not known, or the file ends there.
    pub found: Option<u8>,
    /// In words.
    pub looks_like: String,
}

impl Finding {
    /// Of which nothing is known but what it looks like.
    pub fn in_words(looks_like: impl Into<String>) -> Self {
        Self { looks_like: looks_like.into(), ..Self::default() }
    }
}

impl Checked {
    /// Takes in what was found behind it.
    pub fn add(&mut self, next: Self) {
        self.bytes_checked += next.bytes_checked;
        self.bytes_wrong += next.bytes_wrong;
        self.finding = self.finding.take().or(next.finding);
    }

    /// So many of the bytes looked at are wrong, the first of them as `finding` says.
    pub fn wrong(&mut self, bytes: u64, finding: impl FnOnce() -> Finding) {
        self.bytes_wrong += bytes;
        self.finding.get_or_insert_with(finding);
    }

    /// Bytes that cannot be looked at are wrong.
    pub fn missing(&mut self, bytes: u64, offset_bytes: Option<u64>, why: String) {
        self.bytes_checked += bytes;
        self.wrong(bytes, || Finding { offset_bytes, ..Finding::in_words(why) });
    }
}
