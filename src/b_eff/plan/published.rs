//! Published results: Table 1 of P0, for comparison. Bandwidths in MB/s as printed. The measurements are of 1999 and 2000, by
//! releases before 3.6; the paper specifies neither the releases nor the placement of the messages in memory.

/// Releases of the published measurements, as text.
pub const PUBLISHED_RELEASES: &str = "releases of 1999 and 2000, before 3.6; buffers as those releases placed them";

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedSystem {
    /// System, with the numbering of ranks over its nodes where the table has both.
    pub system: &'static str,
    /// Processes.
    pub processes: u64,
    /// b_eff, MB/s.
    pub b_eff_mb_per_second: f64,
    /// b_eff per process, MB/s, as printed.
    pub per_process_mb_per_second: f64,
    /// Lmax; None if not printed in this row.
    pub lmax_bytes: Option<u64>,
    /// Ping-pong bandwidth, MB/s; None if not printed.
    pub ping_pong_mb_per_second: Option<f64>,
    /// b_eff at Lmax, MB/s.
    pub at_lmax_mb_per_second: f64,
    /// b_eff at Lmax per process, MB/s.
    pub at_lmax_per_process_mb_per_second: f64,
    /// b_eff at Lmax per process over the ring patterns only, MB/s.
    pub at_lmax_rings_per_process_mb_per_second: f64,
}

impl PublishedSystem {
    /// b_eff per process, MB/s; None if the printed value is not b_eff divided by the number of processes, as defined.
    #[must_use]
    pub fn defined_per_process_mb_per_second(&self) -> Option<f64> {
        let printed = self.per_process_mb_per_second;
        let fits = (self.b_eff_mb_per_second / self.processes as f64 - printed).abs() <= 1.0;
        fits.then_some(printed)
    }
}

/// `values`: b_eff, per process, at Lmax, at Lmax per process, at Lmax per process with rings only.
const fn published_system(
    system: &'static str,
    processes: u64,
    lmax_mib: Option<u64>,
    ping_pong: Option<f64>,
    values: [f64; 5],
) -> PublishedSystem {
    PublishedSystem {
        system,
        processes,
        b_eff_mb_per_second: values[0],
        per_process_mb_per_second: values[1],
        lmax_bytes: match lmax_mib {
            Some(mib) => Some(mib << 20),
            None => None,
        },
        ping_pong_mb_per_second: ping_pong,
        at_lmax_mb_per_second: values[2],
        at_lmax_per_process_mb_per_second: values[3],
        at_lmax_rings_per_process_mb_per_second: values[4],
    }
}

/// Rows in the order of the table. Values per process are as printed, not quotients: for 8 processes of the SX-4/32, 641 is
/// printed with 5766, whose quotient is 721.
pub const PUBLISHED_SYSTEMS: [PublishedSystem; 16] = [
    published_system("Cray T3E/900", 512, Some(1), Some(330.0), [19919.0, 39.0, 50018.0, 98.0, 193.0]),
    published_system("Cray T3E/900", 256, Some(1), Some(330.0), [10056.0, 39.0, 22738.0, 89.0, 190.0]),
    published_system("Cray T3E/900", 128, None, Some(330.0), [5620.0, 44.0, 12664.0, 99.0, 195.0]),
    published_system("Cray T3E/900", 64, None, Some(330.0), [3159.0, 49.0, 7044.0, 110.0, 192.0]),
    published_system("Cray T3E/900", 24, None, Some(330.0), [1522.0, 63.0, 3407.0, 142.0, 205.0]),
    published_system("Cray T3E/900", 2, None, Some(330.0), [183.0, 91.0, 421.0, 210.0, 210.0]),
    published_system("Hitachi SR 8000 round-robin", 128, Some(8), Some(776.0), [3695.0, 29.0, 11609.0, 90.0, 105.0]),
    published_system("Hitachi SR 8000 round-robin", 24, Some(8), Some(741.0), [915.0, 38.0, 2764.0, 115.0, 110.0]),
    published_system("Hitachi SR 8000 sequential", 24, Some(8), Some(954.0), [1806.0, 75.0, 5415.0, 226.0, 400.0]),
    published_system("Hitachi SR 2201", 16, Some(2), None, [528.0, 33.0, 1451.0, 91.0, 96.0]),
    published_system("NEC SX-5/8B", 4, Some(2), None, [5439.0, 1360.0, 35047.0, 8762.0, 8758.0]),
    published_system("NEC SX-4/32", 16, Some(2), None, [9670.0, 604.0, 50250.0, 3141.0, 3242.0]),
    published_system("NEC SX-4/32", 8, None, None, [5766.0, 641.0, 28439.0, 3555.0, 3552.0]),
    published_system("NEC SX-4/32", 4, None, None, [2622.0, 656.0, 14254.0, 3564.0, 3552.0]),
    published_system("HP-V 9000", 7, Some(8), None, [435.0, 62.0, 1135.0, 162.0, 162.0]),
    published_system("SGI Cray SV1-B", 15, Some(4), Some(994.0), [1445.0, 96.0, 5591.0, 373.0, 375.0]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_per_process_are_the_quotients_they_are_printed_for() {
        for s in PUBLISHED_SYSTEMS {
            let near = |whole: f64, each: f64| (whole / s.processes as f64 - each).abs() <= 1.0;
            let odd = (s.system, s.processes) == ("NEC SX-4/32", 8);
            let defined = s.defined_per_process_mb_per_second();
            assert_eq!(defined, (!odd).then_some(s.per_process_mb_per_second), "{s:?}");
            assert!(near(s.at_lmax_mb_per_second, s.at_lmax_per_process_mb_per_second), "{s:?}");
        }
    }
}
