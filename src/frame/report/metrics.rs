//! Values of a result for monitoring systems (`--metrics`).

/// A sample of a gauge.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultMetric {
    /// Name without the prefix of the program, with its unit.
    pub name: String,
    /// One line about the metric.
    pub help: &'static str,
    /// Labels besides the run.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: f64,
}

impl ResultMetric {
    /// `NAME_bytes_per_second`, and the bounds of its 95 % interval as `NAME_low_bytes_per_second` and `NAME_high_bytes_per_second`.
    #[must_use]
    pub fn rate(
        name: &str,
        help: &'static str,
        labels: &[(&'static str, String)],
        (value, bounds): (f64, Option<[f64; 2]>),
    ) -> Vec<Self> {
        let of = |end: &str, help, value| Self {
            name: format!("{name}{end}_bytes_per_second"),
            help,
            labels: labels.to_vec(),
            value,
        };
        let [low, high] = ["Lower bound of the 95 % interval.", "Upper bound of the 95 % interval."];
        let bounds = bounds.map(|[from, to]| [of("_low", low, from), of("_high", high, to)]);
        [of("", help, value)].into_iter().chain(bounds.into_iter().flatten()).collect()
    }

    /// `valid`: 1 if the value of these labels is valid by its definition.
    #[must_use]
    pub fn valid(labels: &[(&'static str, String)], is_valid: bool) -> Self {
        Self {
            name: "valid".into(),
            help: "1 if the value is valid by its definition.",
            labels: labels.to_vec(),
            value: f64::from(u8::from(is_valid)),
        }
    }
}
