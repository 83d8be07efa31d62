//! Sizes of predefined types as they are on every 64-bit Linux of today, for workloads written by hand.

/// Name, size and extent in bytes.
const TYPES: &[(&str, u64, i64)] = &[
    ("BYTE", 1, 1),
    ("PACKED", 1, 1),
    ("CHAR", 1, 1),
    ("SIGNED_CHAR", 1, 1),
    ("UNSIGNED_CHAR", 1, 1),
    ("WCHAR", 4, 4),
    ("SHORT", 2, 2),
    ("UNSIGNED_SHORT", 2, 2),
    ("INT", 4, 4),
    ("UNSIGNED", 4, 4),
    ("LONG", 8, 8),
    ("UNSIGNED_LONG", 8, 8),
    ("LONG_LONG", 8, 8),
    ("LONG_LONG_INT", 8, 8),
    ("UNSIGNED_LONG_LONG", 8, 8),
    ("FLOAT", 4, 4),
    ("DOUBLE", 8, 8),
    ("LONG_DOUBLE", 16, 16),
    ("INT8_T", 1, 1),
    ("INT16_T", 2, 2),
    ("INT32_T", 4, 4),
    ("INT64_T", 8, 8),
    ("UINT8_T", 1, 1),
    ("UINT16_T", 2, 2),
    ("UINT32_T", 4, 4),
    ("UINT64_T", 8, 8),
    ("C_BOOL", 1, 1),
    ("C_COMPLEX", 8, 8),
    ("C_FLOAT_COMPLEX", 8, 8),
    ("C_DOUBLE_COMPLEX", 16, 16),
    ("C_LONG_DOUBLE_COMPLEX", 32, 32),
    ("CXX_BOOL", 1, 1),
    ("CXX_FLOAT_COMPLEX", 8, 8),
    ("CXX_DOUBLE_COMPLEX", 16, 16),
    ("CXX_LONG_DOUBLE_COMPLEX", 32, 32),
    ("AINT", 8, 8),
    ("OFFSET", 8, 8),
    ("COUNT", 8, 8),
    ("CHARACTER", 1, 1),
    ("LOGICAL", 4, 4),
    ("INTEGER", 4, 4),
    ("INTEGER1", 1, 1),
    ("INTEGER2", 2, 2),
    ("INTEGER4", 4, 4),
    ("INTEGER8", 8, 8),
    ("REAL", 4, 4),
    ("REAL4", 4, 4),
    ("REAL8", 8, 8),
    ("REAL16", 16, 16),
    ("DOUBLE_PRECISION", 8, 8),
    ("COMPLEX", 8, 8),
    ("DOUBLE_COMPLEX", 16, 16),
    ("COMPLEX8", 8, 8),
    ("COMPLEX16", 16, 16),
    ("COMPLEX32", 32, 32),
    ("FLOAT_INT", 8, 8),
    ("DOUBLE_INT", 12, 16),
    ("LONG_INT", 12, 16),
    ("2INT", 8, 8),
    ("SHORT_INT", 6, 8),
    ("LONG_DOUBLE_INT", 20, 32),
    ("2REAL", 8, 8),
    ("2DOUBLE_PRECISION", 16, 16),
    ("2INTEGER", 8, 8),
];

/// Size and extent of a predefined type.
pub(super) fn lookup(name: &str) -> Option<(u64, i64)> {
    TYPES.iter().find(|row| row.0 == name).map(|row| (row.1, row.2))
}

/// True if a word in the place of a constructor is the name of a predefined type.
pub(super) fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_uppercase() || c == '2') && !word.contains('=')
}
