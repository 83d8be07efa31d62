//! Findings of a b_eff run: factors between quantities that should be similar.

use super::value::MethodValue;
use super::{CommValue, SizeAverage};
use crate::b_eff::records::MessageMethod;

/// Smaller factors do not stand out.
const MIN_FACTOR: f64 = 1.5;

/// A finding; `factor` is the ratio by which one quantity is slower.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Finding {
    /// One method against the best one.
    Method {
        /// Slow method.
        slow: MessageMethod,
        /// Best method.
        fast: MessageMethod,
        /// b_eff of the best divided by b_eff of the slow method.
        factor: f64,
    },
    /// Random neighbours against neighbours in rings.
    Random {
        /// Value of the rings divided by that of the random rings.
        factor: f64,
    },
    /// Larger messages against smaller ones; bandwidth should increase with the size.
    Drop {
        /// Size of the highest bandwidth before the drop.
        from_bytes: u64,
        /// Larger size with the lowest bandwidth.
        to_bytes: u64,
        /// Bandwidth of the first divided by that of the second.
        factor: f64,
    },
}

impl Finding {
    /// Ratio by which it is slower.
    #[must_use]
    pub fn factor(&self) -> f64 {
        match self {
            Self::Method { factor, .. } | Self::Random { factor } | Self::Drop { factor, .. } => *factor,
        }
    }
}

/// Findings, at most one of each kind, in descending order of the factor.
#[must_use]
pub fn findings(value: &CommValue, methods: &[MethodValue], sizes: &[SizeAverage]) -> Vec<Finding> {
    let kinds = [slow_method(methods), slow_random_rings(value), bandwidth_drop(sizes)];
    let stands_out = |f: &Finding| f.factor().is_finite() && f.factor() >= MIN_FACTOR;
    let mut found: Vec<Finding> = kinds.into_iter().flatten().filter(stands_out).collect();
    found.sort_by(|a, b| b.factor().total_cmp(&a.factor()));
    found
}

fn slow_method(methods: &[MethodValue]) -> Option<Finding> {
    let rated = || methods.iter().filter_map(|m| Some((m.method, m.b_eff?.bytes_per_second)));
    let (slow, low) = rated().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let (fast, high) = rated().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(Finding::Method { slow, fast, factor: high / low })
}

fn slow_random_rings(value: &CommValue) -> Option<Finding> {
    let (rings, random) = value.rings.zip(value.random)?;
    Some(Finding::Random { factor: rings.bytes_per_second / random.bytes_per_second })
}

/// Largest drop from one size to any larger one.
fn bandwidth_drop(sizes: &[SizeAverage]) -> Option<Finding> {
    let rated = sizes.iter().filter_map(|s| Some((s.message_bytes, s.average_bytes_per_second?)));
    let mut best: Option<(u64, f64)> = None;
    let mut found: Option<Finding> = None;
    for (bytes, rate) in rated {
        match best {
            Some((from_bytes, high)) if rate < high => {
                let factor = high / rate;
                if found.is_none_or(|f| f.factor() < factor) {
                    found = Some(Finding::Drop { from_bytes, to_bytes: bytes, factor });
                }
            }
            _ => best = Some((bytes, rate)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff::plan::PatternFamily;
    use crate::b_eff::values::derive;
    use crate::b_eff::values::fixture::run;

    fn of(speed: &dyn Fn(&str, PatternFamily, u64, MessageMethod, u32) -> f64) -> Vec<Finding> {
        let derived = derive(&run(1, speed));
        findings(&derived.value, &derived.methods, &derived.sizes)
    }

    fn smooth(bytes: u64) -> f64 {
        bytes as f64 / (1e-6 + bytes as f64 / 1e9)
    }

    #[test]
    fn a_smooth_machine_has_no_findings() {
        assert_eq!(of(&|_, _, bytes, _, _| smooth(bytes)), []);
    }

    #[test]
    fn a_slow_method_is_named() {
        let found =
            of(&|_, _, bytes, method, _| smooth(bytes) / if method == MessageMethod::Alltoallv { 4.0 } else { 1.0 });
        assert!(
            matches!(found[..], [Finding::Method { slow: MessageMethod::Alltoallv, factor, .. }] if (factor - 4.0).abs() < 0.01),
            "{found:?}"
        );
    }

    #[test]
    fn random_neighbours_and_a_drop_are_found() {
        let found = of(&|_, family, bytes, _, _| {
            let place = if family == PatternFamily::Random { 2.0 } else { 1.0 };
            let size = if bytes > 1 << 20 { 6.0 } else { 1.0 };
            smooth(bytes) / place / size
        });
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(matches!(found[0], Finding::Drop { to_bytes, .. } if to_bytes > 1 << 20), "{found:?}");
        assert!(matches!(found[1], Finding::Random { factor } if (factor - 2.0).abs() < 0.1), "{found:?}");
    }
}
