//! What stands out in a run of b_eff: factors between things that should be alike.

use super::value::MethodValue;
use super::{CommValue, SizeAverage};
use crate::b_eff::records::Method;

/// Smaller factors do not stand out.
const FACTOR: f64 = 1.5;

/// Something that stands out; `factor` is how many times slower.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Finding {
    /// One method against the best one.
    Method {
        /// The slow one.
        slow: Method,
        /// The best one.
        fast: Method,
        /// b_eff of the best by b_eff of the slow one.
        factor: f64,
    },
    /// Random neighbours against neighbours in rings.
    Random {
        /// b_eff of the rings by that of the random rings.
        factor: f64,
    },
    /// Larger messages against smaller ones, though bandwidth should grow with the size.
    Drop {
        /// The size from which on it falls.
        from_bytes: u64,
        /// The larger size where it is lowest.
        to_bytes: u64,
        /// The bandwidth of the first by that of the second.
        factor: f64,
    },
}

impl Finding {
    /// How many times slower.
    #[must_use]
    pub fn factor(&self) -> f64 {
        match self {
            Self::Method { factor, .. } | Self::Random { factor } | Self::Drop { factor, .. } => *factor,
        }
    }
}

/// At most one of a kind, the largest factors first.
#[must_use]
pub fn findings(value: &CommValue, methods: &[MethodValue], sizes: &[SizeAverage]) -> Vec<Finding> {
    let kinds = [of_methods(methods), of_random(value), of_sizes(sizes)];
    let stands_out = |f: &Finding| f.factor().is_finite() && f.factor() >= FACTOR;
    let mut found: Vec<Finding> = kinds.into_iter().flatten().filter(stands_out).collect();
    found.sort_by(|a, b| b.factor().total_cmp(&a.factor()));
    found
}

fn of_methods(methods: &[MethodValue]) -> Option<Finding> {
    let rated = || methods.iter().filter_map(|m| Some((m.method, m.b_eff?.bytes_per_second)));
    let (slow, low) = rated().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let (fast, high) = rated().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(Finding::Method { slow, fast, factor: high / low })
}

fn of_random(value: &CommValue) -> Option<Finding> {
    let (rings, random) = value.rings.zip(value.random)?;
    Some(Finding::Random { factor: rings.bytes_per_second / random.bytes_per_second })
}

/// The largest fall from one size to any larger one.
fn of_sizes(sizes: &[SizeAverage]) -> Option<Finding> {
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
    use crate::b_eff::plan::Family;
    use crate::b_eff::values::derive;
    use crate::b_eff::values::fixture::run;

    fn of(speed: &dyn Fn(&str, Family, u64, Method, u32) -> f64) -> Vec<Finding> {
        let derived = derive(&run(1, speed));
        findings(&derived.value, &derived.methods, &derived.sizes)
    }

    /// Bandwidth that grows with the size.
    fn smooth(bytes: u64) -> f64 {
        bytes as f64 / (1e-6 + bytes as f64 / 1e9)
    }

    #[test]
    fn a_smooth_machine_has_no_findings() {
        assert_eq!(of(&|_, _, bytes, _, _| smooth(bytes)), []);
    }

    #[test]
    fn a_slow_method_is_named() {
        let found = of(&|_, _, bytes, method, _| smooth(bytes) / if method == Method::Alltoallv { 4.0 } else { 1.0 });
        assert!(
            matches!(found[..], [Finding::Method { slow: Method::Alltoallv, factor, .. }] if (factor - 4.0).abs() < 0.01),
            "{found:?}"
        );
    }

    #[test]
    fn random_neighbours_and_a_drop_are_found() {
        let found = of(&|_, family, bytes, _, _| {
            let place = if family == Family::Random { 2.0 } else { 1.0 };
            let size = if bytes > 1 << 20 { 6.0 } else { 1.0 };
            smooth(bytes) / place / size
        });
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(matches!(found[0], Finding::Drop { to_bytes, .. } if to_bytes > 1 << 20), "{found:?}");
        assert!(matches!(found[1], Finding::Random { factor } if (factor - 2.0).abs() < 0.1), "{found:?}");
    }
}
