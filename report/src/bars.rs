//! Bars of one character on a logarithmic scale.

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Common scale of several bars.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BarScale {
    /// The smallest value.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

impl BarScale {
    /// From the smallest to the largest value above zero; None without such values.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let sound = values.into_iter().filter(|v| v.is_finite() && *v > 0.0);
        sound.fold(None, |scale: Option<Self>, v| {
            let Self { low, high } = scale.unwrap_or(Self { low: v, high: v });
            Some(Self { low: low.min(v), high: high.max(v) })
        })
    }

    /// The bar of one value: equal factors are equal steps. A blank for invalid values.
    #[must_use]
    pub fn bar(self, value: f64) -> char {
        if !(value.is_finite() && value > 0.0) {
            return ' ';
        }
        let range = (self.high / self.low).ln();
        let share = if range > 0.0 { (value / self.low).ln() / range } else { 1.0 };
        let step = (share * (BARS.len() - 1) as f64).round();
        BARS[(step.max(0.0) as usize).min(BARS.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_factors_are_equal_steps() {
        let scale = BarScale::of([1.0, 128.0, f64::NAN, 0.0, 16.0]).unwrap();
        let bars: String = (0..8).map(|n| scale.bar(f64::from(1 << n))).collect();
        assert_eq!(bars, BARS.iter().collect::<String>());
        assert_eq!([scale.bar(0.0), scale.bar(f64::INFINITY), scale.bar(1e9), scale.bar(1e-9)], [' ', ' ', '█', '▁']);
        assert_eq!(BarScale::of([3.0, 3.0]).unwrap().bar(3.0), '█');
        assert_eq!(BarScale::of([]), None);
    }
}
