//! For tests: how many runs those of intervals simulate, and by how much a share of few may miss what holds of many.

/// All of them in `make campaign`, a tenth otherwise.
#[must_use]
pub fn runs(all: u32) -> u32 {
    if is_campaign() {
        all
    } else {
        all.div_ceil(10)
    }
}

/// The bound `share` itself in `make campaign`; otherwise three standard errors of a share of `runs` runs below it: there are dozens of cases.
#[must_use]
pub fn least(share: f64, runs: u32) -> f64 {
    share - allowance(share, runs)
}

/// As [`least`], above it.
#[must_use]
pub fn most(share: f64, runs: u32) -> f64 {
    share + allowance(share, runs)
}

/// The bound `factor` on a width that is divided by the spread of the values of `runs` runs: as it is in `make campaign`, otherwise three
/// relative standard errors of such a spread above it.
#[must_use]
pub fn most_spreads(factor: f64, runs: u32) -> f64 {
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
