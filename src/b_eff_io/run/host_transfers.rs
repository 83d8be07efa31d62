//! Bytes and times by host: reductions whose size is the number of hosts, outside every clock.

use beff_ffi::{Comm, MpiError};

use crate::b_eff_io::records::HostTransfer;
use crate::b_eff_io::run::measurement::OwnTransfer;

/// What the ranks of each of `hosts` hosts moved; `own` is this rank's part, on host `host`. Empty if the ranks are on one host. Collective.
///
/// # Errors
/// MPI between the ranks.
pub(super) fn host_transfers(
    comm: &Comm,
    (host, hosts): (u64, usize),
    own: OwnTransfer,
) -> Result<Vec<HostTransfer>, MpiError> {
    if hosts < 2 || comm.size() < 2 {
        return Ok(Vec::new());
    }
    let (mut sums, mut longest) = (vec![0; 2 * hosts], vec![0.0; hosts]);
    let place = (host as usize).min(hosts - 1);
    (sums[place], sums[hosts + place], longest[place]) = (1, own.bytes, own.seconds);
    comm.sum_u64(&mut sums)?;
    comm.max_f64(&mut longest)?;
    let (ranks, bytes) = sums.split_at(hosts);
    let numbers = ranks.iter().zip(bytes).zip(&longest).enumerate();
    let all: Vec<HostTransfer> = numbers
        .filter(|(_, ((ranks, _), _))| **ranks > 0)
        .map(|(host, ((ranks, bytes), seconds))| HostTransfer {
            host: host as u64,
            ranks: *ranks,
            bytes: *bytes,
            seconds: *seconds,
        })
        .collect();
    // A partition may have ranks of one of the hosts only.
    Ok(if all.len() > 1 { all } else { Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::run::testing::{run_ranks, Script};

    #[test]
    fn hosts_have_the_bytes_of_their_ranks_and_the_time_of_the_slowest() {
        // Ranks 0 and 2 are on host 1, rank 1 on host 2; host 0 has none.
        let own = |rank: u64| OwnTransfer { bytes: 10 * (rank + 1), seconds: [3.0, 7.0, 5.0][rank as usize] };
        let seen = run_ranks(
            3,
            |_| Script::default(),
            |comm| host_transfers(comm, (1 + comm.rank() % 2, 3), own(comm.rank())).unwrap(),
        );
        let expected = [
            HostTransfer { host: 1, ranks: 2, bytes: 40, seconds: 5.0 },
            HostTransfer { host: 2, ranks: 1, bytes: 20, seconds: 7.0 },
        ];
        assert!(seen.iter().all(|found| found == &expected), "{seen:?}");
        for hosts in [1, 3] {
            let seen = run_ranks(2, |_| Script::default(), |comm| host_transfers(comm, (0, hosts), own(0)).unwrap());
            assert!(seen.iter().all(Vec::is_empty), "one host takes part: {seen:?}");
        }
    }
}
