//! Ranges of files, split into pieces of a fixed size.

use std::ops::Range;

/// Start and length of each piece of a file range. All but the last have `piece_bytes`.
pub fn split_range(range: Range<u64>, piece_bytes: u64) -> impl Iterator<Item = (u64, usize)> {
    let end = range.end;
    range.step_by(piece_bytes as usize).map(move |at| (at, piece_bytes.min(end - at) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_all_of_a_range() {
        let of = |range| split_range(range, 4).collect::<Vec<_>>();
        assert_eq!(of(3..12), [(3, 4), (7, 4), (11, 1)]);
        assert_eq!(of(8..12), [(8, 4)]);
        assert_eq!(of(5..5), []);
    }
}
