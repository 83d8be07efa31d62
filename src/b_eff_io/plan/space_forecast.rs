//! Forecast of the space and of the T with which the space ends no first write.

use serde::{Deserialize, Serialize};

use super::outlook::EndedBy;
use super::preview::{preview, Preview, PreviewInput};
use super::{PlanError, Role};

/// Resolution of the search for the space.
const SPACE_STEP: f64 = 1.01;
/// Resolution of the search for T, and the shortest one.
const STEP_SECONDS: f64 = 1.0;

/// What a run needs that is short of space.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpaceForecast {
    /// Patterns whose first write the space ends, ascending.
    pub patterns: Vec<u8>,
    /// Bytes of all files without a limit.
    pub unlimited_bytes: u64,
    /// Smallest `--space` that ends no pattern, within 1 %; more than the bytes, because each pattern has a share.
    pub required_bytes: Option<u64>,
    /// Largest T that the space does not end, in whole seconds; None: none from one second on.
    pub fitting_time_seconds: Option<f64>,
}

/// Forecast for a `plan` of this input; None: time and counts end its patterns before the space does.
///
/// # Errors
/// Those of [`preview`] without a limit.
pub fn forecast(input: &PreviewInput, plan: &Preview) -> Result<Option<SpaceForecast>, PlanError> {
    let Some(limit_bytes) = input.limit_bytes.filter(|_| is_short(plan)) else { return Ok(None) };
    let of = |limit_bytes, time_seconds| preview(&PreviewInput { limit_bytes, time_seconds, ..input.clone() });
    let fits = |limit_bytes, time_seconds| of(Some(limit_bytes), time_seconds).is_ok_and(|plan| !is_short(&plan));
    Ok(Some(SpaceForecast {
        patterns: ended_by_space(plan),
        unlimited_bytes: of(None, input.time_seconds)?.total_bytes,
        required_bytes: required_bytes(limit_bytes, |limit| fits(limit, input.time_seconds)),
        fitting_time_seconds: fitting_time(input.time_seconds, |seconds| fits(limit_bytes, seconds)),
    }))
}

/// The space ends a pattern, or reduces M_PART.
fn is_short(plan: &Preview) -> bool {
    !ended_by_space(plan).is_empty() || plan.partitions.iter().any(|p| p.m_part_bytes < p.m_part_defined_bytes)
}

fn ended_by_space(plan: &Preview) -> Vec<u8> {
    let patterns = plan.partitions.iter().flat_map(|p| &p.patterns);
    let ended =
        patterns.filter(|p| p.role == Role::Timed && p.outlook[0].is_some_and(|o| o.ended_by == EndedBy::Space));
    let mut numbers: Vec<u8> = ended.map(|p| p.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

fn required_bytes(limit_bytes: u64, fits: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut low, mut high) = (limit_bytes, limit_bytes.checked_mul(2)?);
    while !fits(high) {
        (low, high) = (high, high.checked_mul(2)?);
    }
    while high as f64 > low as f64 * SPACE_STEP {
        let middle = low + (high - low) / 2;
        if fits(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

fn fitting_time(time_seconds: f64, fits: impl Fn(f64) -> bool) -> Option<f64> {
    let (mut low, mut high) = (STEP_SECONDS, time_seconds);
    if low >= high || !fits(low) {
        return None;
    }
    while high - low > STEP_SECONDS {
        let middle = f64::midpoint(low, high).floor();
        if middle <= low {
            break;
        }
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::config::{Partitions, Release};
    use crate::b_eff_io::pattern_type::PatternType;

    fn input(limit_bytes: Option<u64>) -> PreviewInput {
        PreviewInput {
            ranks: 64,
            release: Release::R1,
            strict: false,
            partitions: Partitions::All,
            time_seconds: 900.0,
            limit_seconds: None,
            types: PatternType::ALL.to_vec(),
            full_rewrite: true,
            orders: Vec::new(),
            mix: None,
            shared_pointer: true,
            memory_per_rank_bytes: 2 << 30,
            limit_bytes,
            backends: 1,
            contestants: Vec::new(),
            variants: Vec::new(),
            segment_multiple_bytes: 1 << 20,
            files_per_directory: 10_000,
            ranks_of_host: 64,
            cache_share_bytes: 32 << 20,
            domain_bytes: 24 << 20,
            shares_memory: true,
            maps_files: false,
            reused_reads: None,
            rate_bytes_per_second: 5e9,
        }
    }

    fn of(input: &PreviewInput) -> Option<SpaceForecast> {
        forecast(input, &preview(input).unwrap()).unwrap()
    }

    #[test]
    fn the_space_that_ends_no_pattern_is_found() {
        assert_eq!(of(&input(None)), None);
        assert_eq!(of(&input(Some(100 << 40))), None);
        let short = input(Some(60 << 30));
        let found = of(&short).unwrap();
        assert!(found.unlimited_bytes > 1 << 40 && found.patterns.contains(&3), "{found:?}");
        let enough = found.required_bytes.unwrap();
        assert!(enough >= found.unlimited_bytes && of(&input(Some(enough))).is_none(), "{found:?}");
        assert!(of(&input(Some((enough as f64 / 1.02) as u64))).is_some(), "{found:?}");
        let time_seconds = found.fitting_time_seconds.unwrap();
        assert!((1.0..900.0).contains(&time_seconds), "{found:?}");
        let with = |time_seconds| of(&PreviewInput { time_seconds, ..short.clone() });
        assert!(with(time_seconds).is_none() && with(time_seconds + 1.0).is_some(), "{found:?}");
    }

    #[test]
    fn no_time_fits_where_m_part_does_not() {
        // One call of everything needs more than the limit, whatever T is.
        let found = of(&input(Some(8 << 30))).unwrap();
        assert_eq!(found.fitting_time_seconds, None);
    }
}
