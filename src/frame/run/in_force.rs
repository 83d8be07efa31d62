//! How the calls of all ranks were made.

use beff_backends::InForce;

/// This rank's, where so many ranks bypassed the page cache and so many did not: private files and segments can have parts of
/// different lengths. What is partly cached is not direct.
#[must_use]
pub fn of_all(mine: InForce, direct: u64, buffered: u64) -> InForce {
    if direct == 0 || buffered == 0 {
        return mine;
    }
    let strategy = format!("direct on {direct} ranks, buffered on {buffered}; rank 0: {}", mine.strategy);
    InForce { strategy, direct: Some(false), ..mine }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_partly_cached_is_not_direct() {
        let mine = || InForce { strategy: "pwrite".into(), direct: Some(true), ..InForce::default() };
        let of = |direct, buffered| of_all(mine(), direct, buffered);
        assert_eq!((of(3, 0).strategy, of(3, 0).direct), ("pwrite".into(), Some(true)));
        assert_eq!((of(0, 3).strategy, of(0, 3).direct), ("pwrite".into(), Some(true)), "as it was said");
        let mixed = of(1, 2);
        assert_eq!(mixed.strategy, "direct on 1 ranks, buffered on 2; rank 0: pwrite");
        assert_eq!(mixed.direct, Some(false));
    }
}
