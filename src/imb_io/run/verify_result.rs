//! Result of the verification of a row by one rank.

/// Bytes checked, and wrong bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyResult {
    /// Bytes checked.
    pub bytes_checked: u64,
    /// Wrong and missing bytes.
    pub bytes_wrong: u64,
    /// The first wrong byte.
    pub first_wrong: Option<CorruptByte>,
}

/// The first wrong byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CorruptByte {
    /// Iteration it belongs to; None if unknown (order of arrival).
    pub iteration: Option<u64>,
    /// Offset in the file; None if unknown: in memory, and for records too short to be identified.
    pub offset_bytes: Option<u64>,
    /// Expected byte; None if unknown, because any record may be here.
    pub expected: Option<u8>,
    /// Actual byte; None if unknown, or if the file ends there.
    pub actual: Option<u8>,
    /// Diagnosis.
    pub diagnosis: String,
}

impl CorruptByte {
    /// A finding with a diagnosis alone.
    pub fn of_diagnosis(looks_like: impl Into<String>) -> Self {
        Self { diagnosis: looks_like.into(), ..Self::default() }
    }
}

impl VerifyResult {
    /// Adds a later result.
    pub fn add(&mut self, next: Self) {
        self.bytes_checked += next.bytes_checked;
        self.bytes_wrong += next.bytes_wrong;
        self.first_wrong = self.first_wrong.take().or(next.first_wrong);
    }

    /// Counts `bytes` of the checked bytes as wrong, the first of them as in `finding`.
    pub fn add_wrong(&mut self, bytes: u64, finding: impl FnOnce() -> CorruptByte) {
        self.bytes_wrong += bytes;
        self.first_wrong.get_or_insert_with(finding);
    }

    /// Counts `bytes` that cannot be read as checked and wrong.
    pub fn add_missing(&mut self, bytes: u64, offset_bytes: Option<u64>, why: String) {
        self.bytes_checked += bytes;
        self.add_wrong(bytes, || CorruptByte { offset_bytes, ..CorruptByte::of_diagnosis(why) });
    }
}
