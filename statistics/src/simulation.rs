//! For tests: number of simulated runs of the interval tests, and tolerances of shares of few runs.

/// Number of simulated runs: `all` in `make campaign`, a tenth otherwise.
#[must_use]
pub fn run_count(all: u32) -> u32 {
    if is_campaign() {
        all
    } else {
        all.div_ceil(10)
    }
}

/// Lower bound of a share: `share` in `make campaign`; otherwise three standard errors of a share of `runs` runs less, for dozens of cases.
#[must_use]
pub fn lower_bound(share: f64, runs: u32) -> f64 {
    share - allowance(share, runs)
}

/// Upper bound of a share, as [`lower_bound`].
#[must_use]
pub fn upper_bound(share: f64, runs: u32) -> f64 {
    share + allowance(share, runs)
}

/// Upper bound of a width divided by the standard deviation of the values of `runs` runs: `factor` in `make campaign`, otherwise three
/// relative standard errors of such a standard deviation more.
#[must_use]
pub fn upper_width_bound(factor: f64, runs: u32) -> f64 {
    if is_campaign() {
        factor
    } else {
        factor * (1.0 + 3.0 / (2.0 * f64::from(runs)).sqrt())
    }
}

fn allowance(share: f64, runs: u32) -> f64 {
    if is_campaign() {
        0.0
    } else {
        3.0 * (share * (1.0 - share) / f64::from(runs)).sqrt()
    }
}

fn is_campaign() -> bool {
    std::env::var_os("BEFF_CAMPAIGN").is_some_and(|value| !value.is_empty())
}
