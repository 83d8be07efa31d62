//! Long files, piece by piece.

use std::ops::Range;

/// Where each piece of a range of a file begins, and its length. All but the last one are of `piece_bytes`.
pub fn pieces(range: Range<u64>, piece_bytes: u64) -> impl Iterator<Item = (u64, usize)> {
    let end = range.end;
    range.step_by(piece_bytes as usize).map(move |at| (at, piece_bytes.min(end - at) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_all_of_a_range() {
        let of = |range| pieces(range, 4).collect::<Vec<_>>();
        assert_eq!(of(3..12), [(3, 4), (7, 4), (11, 1)]);
        assert_eq!(of(8..12), [(8, 4)]);
        assert_eq!(of(5..5), []);
    }
}
