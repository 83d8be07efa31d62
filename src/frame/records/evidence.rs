//! What follows from the evidence of one pattern alone.

use super::Evidence;

impl Evidence {
    /// Bytes that were read from the devices: of the levels of each host the least, because what one level answers from a
    /// cache of its own does not reach the next; summed over the hosts. None: not known.
    #[must_use]
    pub fn device_read_bytes(&self) -> Option<u64> {
        let mut hosts: Vec<(&str, u64)> = Vec::new();
        for traffic in &self.devices {
            let host = traffic.device.rsplit_once(':').map_or("", |(host, _)| host);
            match hosts.iter_mut().find(|(name, _)| *name == host) {
                Some((_, least)) => *least = traffic.read_bytes.min(*least),
                None => hosts.push((host, traffic.read_bytes)),
            }
        }
        (!hosts.is_empty()).then(|| hosts.iter().map(|(_, bytes)| bytes).sum())
    }

    /// Share of the range that was in the page cache before the pattern, 0 to 1; None: not known, or nothing there.
    #[must_use]
    pub fn resident_before_share(&self) -> Option<f64> {
        let resident = self.resident_before_bytes?;
        (self.range_bytes > 0).then(|| (resident as f64 / self.range_bytes as f64).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use crate::frame::records::{DeviceTraffic, Evidence};

    #[test]
    fn the_least_of_the_levels_of_each_host_counts() {
        let device = |(device, read_bytes): (&str, u64)| DeviceTraffic {
            device: device.into(),
            read_bytes,
            written_bytes: 0,
            read_requests: 1,
            write_requests: 0,
        };
        let read = |list: &[(&str, u64)]| {
            let devices = list.iter().copied().map(device).collect();
            Evidence { devices, ..Evidence::default() }.device_read_bytes()
        };
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[("loop0", 100), ("sda1+sdb", 7)]), Some(7));
        assert_eq!(read(&[("a:loop0", 100), ("a:sda", 7), ("b:sda", 30)]), Some(37));
    }
}
