//! Effective access of all ranks.

use beff_backends::TransferStrategy;

/// Access of this rank, corrected if `direct` ranks bypassed the page cache and `buffered` ranks did not: parts of private files and
/// segments can differ in length. A partly cached pattern is not direct.
#[must_use]
pub fn combine_ranks(mine: TransferStrategy, direct: u64, buffered: u64) -> TransferStrategy {
    if direct == 0 || buffered == 0 {
        return mine;
    }
    let strategy = format!("direct on {direct} ranks, buffered on {buffered}; rank 0: {}", mine.strategy);
    TransferStrategy { strategy, direct: Some(false), ..mine }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_partly_cached_is_not_direct() {
        let mine = || TransferStrategy { strategy: "pwrite".into(), direct: Some(true), ..TransferStrategy::default() };
        let of = |direct, buffered| combine_ranks(mine(), direct, buffered);
        assert_eq!((of(3, 0).strategy, of(3, 0).direct), ("pwrite".into(), Some(true)));
        assert_eq!((of(0, 3).strategy, of(0, 3).direct), ("pwrite".into(), Some(true)), "unchanged");
        let mixed = of(1, 2);
        assert_eq!(mixed.strategy, "direct on 1 ranks, buffered on 2; rank 0: pwrite");
        assert_eq!(mixed.direct, Some(false));
    }
}
