//! Quantities derived from the evidence of one pattern alone.

use super::{DeviceTraffic, Evidence};

impl Evidence {
    /// Bytes read from the devices: minimum over the levels of each host, because reads served by the cache of one level do not reach the
    /// next; summed over the hosts. None if unknown.
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

    /// Devices at the bottom level of each host, without the host name.
    pub fn bottom_devices(&self) -> impl Iterator<Item = &str> {
        let split = |level: &'_ DeviceTraffic| level.device.rsplit_once(':').map_or(0, |(host, _)| host.len() + 1);
        let host = move |level: &DeviceTraffic| level.device[..split(level)].to_owned();
        let last = move |at: usize| self.devices.get(at + 1).is_none_or(|next| host(next) != host(&self.devices[at]));
        let levels = (0..self.devices.len()).filter(move |at| last(*at)).map(|at| &self.devices[at]);
        levels.flat_map(move |level| level.device[split(level)..].split('+'))
    }

    /// Share of the range in the page cache before the pattern, 0 to 1; None if unknown or if the range is empty.
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
    fn device_reads_are_the_minimum_over_the_levels_of_a_host() {
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
        let bottoms = |list: &[(&str, u64)]| {
            let devices = list.iter().copied().map(device).collect();
            Evidence { devices, ..Evidence::default() }.bottom_devices().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(bottoms(&[]), [""; 0]);
        assert_eq!(bottoms(&[("loop0", 1), ("sda1+sdb", 1)]), ["sda1", "sdb"]);
        assert_eq!(bottoms(&[("a:dm-0", 1), ("a:sda", 1), ("b:loop0", 1)]), ["sda", "loop0"]);
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[("loop0", 100), ("sda1+sdb", 7)]), Some(7));
        assert_eq!(read(&[("a:loop0", 100), ("a:sda", 7), ("b:sda", 30)]), Some(37));
    }
}
