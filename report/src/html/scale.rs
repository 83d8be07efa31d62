//! Scales and their labels.

/// A logarithmic scale from `low` to `high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogScale {
    low: f64,
    high: f64,
}

const MAX_LABELS: usize = 7;

/// True if a value can be drawn on a logarithmic scale.
pub fn is_plottable(value: f64) -> bool {
    value.is_finite() && (1e-12..1e15).contains(&value)
}

impl LogScale {
    /// Scale around all values above zero that ends at round numbers; None without such values.
    #[must_use]
    pub fn around(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let [low, high] = value_range(values)?;
        let [mut low, mut high] = [floor(low), ceil(high)];
        if low >= high {
            [low, high] = [floor(low * 0.99), ceil(high * 1.01)];
        }
        Some(Self { low, high })
    }

    /// Scale from the smallest to the largest value above zero; None without such values.
    #[must_use]
    pub fn between(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let [low, high] = value_range(values)?;
        Some(if low < high { Self { low, high } } else { Self { low: low / 2.0, high: high * 2.0 } })
    }

    /// Position of a value, 0 to 1.
    #[must_use]
    pub fn position(self, value: f64) -> f64 {
        ((value / self.low).ln() / (self.high / self.low).ln()).clamp(0.0, 1.0)
    }

    /// Round numbers on the scale: powers of ten, with intermediate values if they are few.
    #[must_use]
    pub fn ticks(self) -> Vec<f64> {
        let decades = (self.high / self.low).log10();
        let factors: &[f64] = if decades <= 2.2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let [first, last] = [self.low, self.high].map(|v| v.log10().floor() as i32);
        let all = (first..=last).flat_map(|e| factors.iter().map(move |f| f * 10_f64.powi(e)));
        let ticks: Vec<f64> = all.filter(|v| (self.low * 0.999..=self.high * 1.001).contains(v)).collect();
        let step = ticks.len().div_ceil(MAX_LABELS).max(1);
        ticks.into_iter().step_by(step).collect()
    }
}

fn value_range(values: impl IntoIterator<Item = f64>) -> Option<[f64; 2]> {
    let sound = values.into_iter().filter(|v| is_plottable(*v));
    sound.fold(None, |ends: Option<[f64; 2]>, v| {
        let [low, high] = ends.unwrap_or([v, v]);
        Some([low.min(v), high.max(v)])
    })
}

/// The largest of 1, 2, 5, 10 ... that does not exceed the value.
fn floor(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    let factor = [5.0, 2.0].into_iter().find(|f| decade * f <= value * (1.0 + 1e-9)).unwrap_or(1.0);
    decade * factor
}

/// The smallest of 1, 2, 5, 10 ... that is not less than the value.
fn ceil(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|f| decade * f >= value * (1.0 - 1e-9)).unwrap_or(10.0);
    decade * factor
}

/// A round number as a label: `0.01`, `500`, `20k`, `5M`.
#[must_use]
pub fn label(value: f64) -> String {
    for (unit, name) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if value >= unit * 0.999 && (value >= 1e4 || unit > 1e3) {
            return format!("{}{name}", format_short(value / unit));
        }
    }
    format_short(value)
}

fn format_short(value: f64) -> String {
    if value >= 1.0 {
        format!("{value:.0}")
    } else {
        let decimals = (-value.log10()).ceil().clamp(0.0, 12.0) as usize;
        format!("{value:.decimals$}")
    }
}

/// A size as a label, in powers of two: `256`, `4K`, `1.5M`.
#[must_use]
pub fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(1 << 40, "T"), (1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
    let Some((unit, name)) = UNITS.into_iter().find(|(unit, _)| bytes >= *unit) else { return bytes.to_string() };
    let value = bytes as f64 / unit as f64;
    if bytes.is_multiple_of(unit) || value >= 9.95 {
        format!("{value:.0}{name}")
    } else {
        format!("{value:.1}{name}")
    }
}

/// End (a round number) and label step of a linear scale from 0.
#[must_use]
pub fn linear(largest: f64) -> (f64, f64) {
    let largest = if is_plottable(largest) { largest } else { 1.0 };
    let step = ceil(largest / 5.0);
    ((largest / step).ceil().max(1.0) * step, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_round_and_hold_all_values() {
        for (values, ends) in [
            (vec![0.03, 9_000.0], [0.02, 10_000.0]),
            (vec![5.0, 5.0], [2.0, 10.0]),
            (vec![1.0, f64::NAN, 0.0, -3.0, f64::INFINITY], [0.5, 2.0]),
            (vec![1000.0], [500.0, 2000.0]),
        ] {
            let scale = LogScale::around(values).unwrap();
            assert!((scale.low / ends[0] - 1.0).abs() < 1e-9 && (scale.high / ends[1] - 1.0).abs() < 1e-9, "{scale:?}");
        }
        assert_eq!(LogScale::around([0.0, f64::NAN]), None);
    }

    #[test]
    fn there_are_some_ticks_and_not_too_many() {
        for (low, high) in [(1.0, 2.0), (3.0, 40.0), (0.01, 10_000.0), (1e-9, 1e12), (1.0, 1.0)] {
            let ticks = LogScale::around([low, high]).unwrap().ticks();
            assert!((2..=MAX_LABELS).contains(&ticks.len()), "{low} {high}: {ticks:?}");
        }
    }

    #[test]
    fn labels_are_short() {
        let labels = [0.01, 0.5, 1.0, 5000.0, 20_000.0, 1e6, 2e9].map(label);
        assert_eq!(labels, ["0.01", "0.5", "1", "5000", "20k", "1M", "2G"]);
        assert_eq!([size(256), size(4096), size(510_376), size(1_572_864)], ["256", "4K", "498K", "1.5M"]);
        assert_eq!(linear(7.3), (8.0, 2.0));
        assert_eq!(linear(f64::NAN).0, 1.0);
    }
}
