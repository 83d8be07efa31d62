use super::*;
use crate::b_eff_io::plan::cache_yardstick::{forecast, PlannedCache};
use crate::b_eff_io::plan::preview::{preview, PreviewInput};
use crate::b_eff_io::requirements::{self, FORMS};
use crate::b_eff_io::values::fixture::default_config;

/// A run of 15 minutes through MPI-IO, with repetitions.
fn config() -> Config {
    let repeat = RepeatPolicy::Auto;
    Config { time_seconds: 900.0, repeat, ..default_config(Release::R1, &[4]) }
}

fn planned(config: &Config, line: &str, limit_seconds: Option<f64>) -> PlannedRequirement {
    let config = Config { requirements: requirements::parse(line).unwrap(), ..config.clone() };
    let input = PreviewInput {
        ranks: 4,
        release: config.release,
        strict: false,
        partitions: config.partitions.clone(),
        time_seconds: config.time_seconds,
        limit_seconds,
        types: config.types.clone(),
        full_rewrite: config.full_rewrite,
        orders: Vec::new(),
        mix: None,
        shared_pointer: true,
        memory_per_rank_bytes: 4 << 30,
        limit_bytes: None,
        backends: config.backends.len() as u64,
        contestants: Vec::new(),
        variants: Vec::new(),
        segment_multiple_bytes: 1 << 20,
        ranks_of_host: 4,
        cache_share_bytes: 32 << 20,
        files_per_directory: 10_000,
        domain_bytes: 24 << 20,
        shares_memory: true,
        maps_files: false,
        reused_reads: None,
        rate_bytes_per_second: 1e9,
    };
    let cache = PlannedCache { given_bytes: None, host_bytes_per_rank: 4 << 30, may_be_direct: false };
    let caches = forecast(&input, cache, [1e9; 3]).unwrap();
    planned_requirements(&config, &preview(&input).unwrap(), &caches).remove(0)
}

fn is_open(config: &Config, line: &str, obstacle: &str, remedy: &str) {
    let found = planned(config, line, None);
    let (cause, next) = (found.obstacle.clone().unwrap_or_default(), found.remedy.clone().unwrap_or_default());
    assert!(cause.contains(obstacle) && next.contains(remedy) && !obstacle.is_empty(), "{line}: {found:?}");
}

fn can_be_decided(config: &Config, line: &str) {
    assert_eq!(planned(config, line, None).obstacle, None, "{line}");
}

#[test]
fn a_run_of_15_minutes_with_repetitions_decides_all_but_the_ratio_and_the_cache() {
    for form in FORMS.iter().filter(|form| !form.contains(" / ") && !form.starts_with("cache")) {
        can_be_decided(&config(), form);
    }
    is_open(&config(), "mpiio / posix >= 0.9", "posix is not among the backends", "--backend mpiio,posix");
    // 344 GB of each access method, of which a third of 900 s at 1 GB/s moves 300.
    is_open(&config(), "cache 20x", "it will FAIL at this rate: write", "-T 1");
    assert_eq!(planned(&config(), "\nvalid", None).line, 2);
}

#[test]
fn the_t_that_would_do_is_named() {
    let minute = Config { time_seconds: 60.0, ..config() };
    is_open(&minute, "T >= 15 min", "it will FAIL: a partition has 1.0 min", "-T 15m");
    is_open(&minute, "T >= 100 s", "it will FAIL", "-T 100s");
    is_open(
        &minute,
        "value >= 5 GB/s",
        "not valid: a partition has 1.0 min, a valid value of release 1 needs 15 min",
        "-T 15m",
    );
    is_open(&minute, "valid", "it will FAIL: a partition has 1.0 min", "-T 15m");
    can_be_decided(&minute, "type 0 write >= 1 GB/s");
    can_be_decided(&minute, "T >= 1 min");
    // T of release 2.1 is that of all partitions.
    let three =
        Config { time_seconds: 90.0 * 60.0, release: Release::R2_1, ..default_config(Release::R2_1, &[2, 3, 4]) };
    let three = Config { repeat: RepeatPolicy::Auto, full_rewrite: false, ..three };
    can_be_decided(&three, "T >= 30 min");
    is_open(&three, "T >= 40 min", "a partition has 30.0 min", "-T 120m");
    can_be_decided(&three, "value >= 1 GB/s");
}

#[test]
fn what_gives_no_interval_is_named() {
    let off = Config { repeat: RepeatPolicy::Off, ..config() };
    for line in [
        "value >= 5 GB/s",
        "spread <= 5 %",
        "mean write >= 5 GB/s",
        "type 1 >= 5 GB/s",
        "coffee cup",
        "smallest chunk >= 1 MB/s",
    ] {
        is_open(&off, line, "no interval", "--repeat auto");
    }
    is_open(
        &Config { time_seconds: 5.0, ..off.clone() },
        "type 1 >= 5 GB/s",
        "T is too short for repetitions",
        "-T 10s",
    );
    let two =
        Config { backends: vec!["mpiio".into(), "posix".into()], rounds: 8, repeat: RepeatPolicy::Rounds, ..config() };
    can_be_decided(&two, "mpiio / posix write >= 0.9");
    is_open(&two, "type 1 >= 5 GB/s", "only long calls are repeated", "--repeat auto");
    is_open(&two, "value >= 5 GB/s", "not valid: each pattern is measured in 8 rounds", "--rounds 1");
    is_open(&two, "valid", "it will FAIL: each pattern is measured in 8 rounds", "--rounds 1");
    let all = Config { rounds: 1, repeat: RepeatPolicy::Auto, ..two.clone() };
    for line in ["mpiio / posix write >= 0.9", "value >= 5 GB/s", "valid", "spread <= 5 %"] {
        can_be_decided(&all, line);
    }
    let none = Config { rounds: 1, repeat: RepeatPolicy::Off, ..two.clone() };
    is_open(&none, "mpiio / posix >= 0.9", "fewer than three rounds", "--rounds 8");
    is_open(
        &Config { rounds: 8, time_seconds: 5.0, ..none },
        "mpiio / posix >= 0.9",
        "T is too short for repetitions of long calls",
        "-T 10s",
    );
}

#[test]
fn what_is_not_measured_is_named() {
    let some = Config { types: vec![PatternType::Scatter, PatternType::Shared], ..config() };
    for line in
        ["value >= 5 GB/s", "valid", "mean write >= 1 GB/s", "type all write >= 1 GB/s", "coffee cup", "spread <= 5 %"]
    {
        is_open(&some, line, "all pattern types", "omit --types");
    }
    is_open(&some, "type 3 write >= 1 GB/s", "type 3 is not among the types", "--types with 3");
    can_be_decided(&some, "type 1 write >= 1 GB/s");
    let scatter = Config { full_rewrite: false, ..config() };
    is_open(&scatter, "value >= 5 GB/s", "needs the rewrites of all types", "omit --rewrite scatter");
    is_open(&scatter, "type 1 rewrite >= 1 GB/s", "type 1 is not rewritten", "--rewrite all");
    is_open(&scatter, "mean rewrite >= 1 GB/s", "needs the rewrites of all types", "omit --rewrite scatter");
    can_be_decided(&scatter, "mean write >= 1 GB/s");
    can_be_decided(&scatter, "type 0 rewrite >= 1 GB/s");
    is_open(&config(), "value posix >= 5 GB/s", "posix is not among the backends", "--backend mpiio,posix");
}

#[test]
fn a_run_that_is_cut_decides_nothing() {
    let cut = planned(&config(), "wrong words = 0", Some(300.0));
    assert!(cut.obstacle.unwrap().contains("does not fit into its time limit"));
    assert!(cut.remedy.unwrap().contains("-T "));
    assert_eq!(planned(&config(), "wrong words = 0", Some(1e6)).obstacle, None);
}
