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
