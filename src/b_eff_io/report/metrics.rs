//! Values, intervals and validity for monitoring systems.

use crate::b_eff_io::config::Release;
use crate::b_eff_io::records::RunResult;
use crate::b_eff_io::values::{Derived, ReleaseValues, ValueInterval};
use crate::frame::report::metrics::ResultMetric;

/// Bytes per second of 1 MB/s.
const MEGA: f64 = 1e6;

/// b_eff_io by the release of the run, its validity, and the totals of the types.
pub(super) fn metrics(result: &RunResult, derived: &Derived) -> Vec<ResultMetric> {
    let release = result.config.release;
    let mut all = Vec::new();
    for system in &derived.systems {
        let labels = [("backend", system.backend.clone()), ("release", release.name().to_owned())];
        let (value, ranks) = (value_of(&system.values, release), system.ranks[place(release)]);
        let interval = ranks.and_then(|ranks| derived.intervals.value(&system.backend, ranks));
        if let Some(value) = value {
            let rate = (value * MEGA, bounds(interval));
            all.extend(ResultMetric::rate("b_eff_io", "Effective I/O bandwidth b_eff_io.", &labels, rate));
        }
        let own = derived.validity.iter().find(|v| v.backend == system.backend && v.release == release);
        all.extend(own.map(|own| ResultMetric::valid(&labels, own.valid && value.is_some())));
    }
    for of_type in derived.types.iter().filter(|t| t.complete) {
        let Some(value) = of_type.mb_per_second else { continue };
        let labels = [
            ("backend", of_type.backend.clone()),
            ("ranks", of_type.ranks.to_string()),
            ("access", of_type.access.name().to_owned()),
            ("type", of_type.pattern_type.to_string()),
        ];
        let interval = derived.intervals.of_type(&of_type.backend, of_type.ranks, of_type.access, of_type.pattern_type);
        all.extend(ResultMetric::rate(
            "type",
            "All bytes of a pattern type with one access method by their time.",
            &labels,
            (value * MEGA, bounds(interval)),
        ));
    }
    all
}

/// An interval too wide to be shown bounds nothing.
fn bounds(interval: Option<&ValueInterval>) -> Option<[f64; 2]> {
    let interval = interval?.resolved()?;
    Some([interval.low * MEGA, interval.high * MEGA])
}

/// Place of a release in the order 0.5, 1, 2.1.
fn place(release: Release) -> usize {
    match release {
        Release::R0_5 => 0,
        Release::R1 => 1,
        Release::R2_1 => 2,
    }
}

fn value_of(values: &ReleaseValues, release: Release) -> Option<f64> {
    [values.release_0_5, values.release_1, values.release_2_1][place(release)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::report::fixtures;
    use crate::b_eff_io::values::derive;

    #[test]
    fn values_intervals_and_validity_are_there() {
        let result = fixtures::repeated();
        let derived = derive(&result);
        let all = metrics(&result, &derived);
        let of = |name: &str| all.iter().filter(|m| m.name == name).count();
        let complete = derived.types.iter().filter(|t| t.complete && t.mb_per_second.is_some()).count();
        assert_eq!(of("type_bytes_per_second"), complete);
        assert!(
            of("type_low_bytes_per_second") > 0 && of("type_low_bytes_per_second") == of("type_high_bytes_per_second")
        );
        assert_eq!(of("valid"), derived.systems.len());
        let value = all.iter().find(|m| m.name == "b_eff_io_bytes_per_second").unwrap();
        assert_eq!(Some(value.value / 1e6), value_of(&derived.systems[0].values, result.config.release));
        let none = fixtures::interrupted();
        let all = metrics(&none, &derive(&none));
        assert!(all.iter().all(|m| m.name != "b_eff_io_bytes_per_second"));
        assert!(all.iter().filter(|m| m.name == "valid").all(|m| m.value == 0.0));
    }
}
