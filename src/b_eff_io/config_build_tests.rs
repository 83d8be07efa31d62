use std::io::Write;
use std::sync::LazyLock;

use super::*;
use crate::b_eff_io::config::SpaceLimit;
use crate::frame::benchmark::options_from_words;
use crate::frame::command::backend_capabilities;

static KNOWN: LazyLock<Vec<BackendCapabilities<'static>>> = LazyLock::new(backend_capabilities);

fn config(options: &str) -> Result<Config, UsageError> {
    match options.strip_prefix("plan ") {
        Some(options) => options_from_words::<PlanArgs>(options.split_whitespace()).config(&KNOWN),
        None => options_from_words::<IoArgs>(options.split_whitespace()).config(&KNOWN),
    }
}

/// Asserts that the options are refused, with every part in the message.
fn assert_refused(options: &str, parts: &[&str]) {
    let error = config(options).unwrap_err();
    assert!(!error.cause.is_empty() && error.next_step.ends_with('.'), "{error}");
    for part in parts {
        assert!(error.to_string().contains(part), "{options}: {part} not in: {error}");
    }
}

#[test]
fn defaults_depend_on_the_release() {
    let one = config("").unwrap();
    assert_eq!((one.partitions, one.full_rewrite), (Partitions::All, true));
    assert_eq!((one.queue_depth, one.shared_pointer, one.space_limit), (None, true, SpaceLimit::Percent(80.0)));
    let old = config("--release 0.5").unwrap();
    assert_eq!((old.partitions, old.full_rewrite), (Partitions::All, true));
    let two = config("--release 2.1").unwrap();
    assert_eq!((two.partitions, two.full_rewrite), (Partitions::SmallMediumAll, false));
    let changed = config("--release 2.1 --partitions 2 --rewrite all --set shared-pointer=off").unwrap();
    assert_eq!((changed.partitions, changed.full_rewrite), (Partitions::List(vec![2]), true));
    assert!(!changed.shared_pointer);
}

#[test]
fn backends_are_known_and_named_once() {
    assert_refused("--backend mpio", &["'mpio'", "mpiio, posix, uring, mmap, null"]);
    assert_refused("--backend posix,", &["''", "Choose from"]);
    assert_refused("--backend posix,uring,posix", &["'posix'", "twice"]);
    assert_eq!(config("--backend uring,mpiio").unwrap().backends, ["uring", "mpiio"]);
}

#[test]
fn direct_cannot_be_required_of_all() {
    assert_refused("--direct required", &["mpiio cannot", "posix, uring", "--direct auto"]);
    assert_refused("--direct required --backend null", &["null cannot"]);
    assert_refused("--direct required --backend posix,mmap", &["mmap cannot", "posix, uring"]);
    assert_refused("--direct required --backend posix,null,mpiio", &["null, mpiio cannot"]);
    assert_eq!(config("--direct required --backend uring,posix").unwrap().direct, DirectPolicy::Required);
    assert_eq!(config("--direct auto").unwrap().direct, DirectPolicy::Auto);
}

#[test]
fn options_without_effect_are_refused() {
    assert_refused("--depth 8", &["--depth", "--backend mpiio", "uring"]);
    assert_refused("--set unique-open=on --backend posix,uring", &["--set unique-open", "posix,uring", "mpiio"]);
    assert_refused("--hints nowhere --backend posix", &["--hints", "no effect"]);
    assert_eq!(config("--depth 8 --backend mpiio,uring").unwrap().queue_depth, Some(8));
    assert!(config("--set unique-open=on").unwrap().unique_open);
}

#[test]
fn options_about_types_need_such_a_type() {
    assert_refused("--set shared-pointer=off --types 0,2", &["--set shared-pointer", "--types 0,2", "uses it: 1"]);
    assert_refused(
        "--set shared-pointer=off --backend posix,uring,mmap",
        &["--set shared-pointer", "posix,uring,mmap", "uses it: mpiio"],
    );
    assert_refused(
        "plan --ranks 2 --set shared-pointer=off --backend null",
        &["--set shared-pointer", "--backend null"],
    );
    assert!(!config("--set shared-pointer=off --backend posix,mpiio --types 1").unwrap().shared_pointer);
    assert_refused("--set segment-multiple=4M --types 0,2", &["--set segment-multiple", "--types 0,2", "3, 4"]);
    assert!(config("--set segment-multiple=4M --types 0,3").is_ok());
    assert!(config("--set segment-multiple=1M --types 0").is_ok());
}

#[test]
fn options_about_two_phases_need_such_transfers() {
    for option in ["--aggregators 2", "--domain 1M", "--set exchange=messages", "--collective two-phase"] {
        let name = option.split(if option.starts_with("--set") { '=' } else { ' ' }).next().unwrap();
        assert_refused(option, &[name, "--backend mpiio", "posix, uring"]);
        assert_refused(&format!("{option} --backend mmap,null"), &[name, "--backend mmap,null"]);
        assert_refused(&format!("{option} --backend posix --types 2,3"), &[name, "--types 2,3"]);
        let two_phase = if name == "--collective" { "" } else { " --collective two-phase" };
        assert!(config(&format!("{option}{two_phase} --backend mpiio,posix")).is_ok(), "{option}");
    }
    for option in ["--aggregators 2", "--set exchange=shared-memory"] {
        assert_refused(
            &format!("{option} --collective two-phase --backend posix --types 2,4"),
            &["--types 2,4", "0, 1"],
        );
    }
    assert!(config("--domain 1M --collective two-phase --backend posix --types 2,4").is_ok());
    for option in ["--aggregators 2", "--domain 1M", "--set exchange=messages"] {
        let name = option.split(if option.starts_with("--set") { '=' } else { ' ' }).next().unwrap();
        // Buffered transfers are independent by default.
        assert_refused(&format!("{option} --backend posix"), &[name, "--collective two-phase"]);
        assert_refused(&format!("{option} --backend uring --direct off"), &[name, "--direct auto"]);
        assert_refused(
            &format!("{option} --backend uring --collective independent"),
            &[name, "no transfer has two phases"],
        );
        assert!(config(&format!("{option} --backend uring")).is_ok(), "{option}");
        assert!(config(&format!("{option} --backend posix --direct auto")).is_ok(), "{option}");
    }
}

#[test]
fn preallocation_needs_writes_that_may_be_direct() {
    assert_eq!(config("").unwrap().preallocate, PreallocatePolicy::Auto);
    for (word, policy) in [
        ("native", PreallocatePolicy::Native),
        ("zeros", PreallocatePolicy::Zeros),
        ("size", PreallocatePolicy::Size),
        ("off", PreallocatePolicy::Off),
    ] {
        let (name, option) = match policy {
            PreallocatePolicy::Zeros | PreallocatePolicy::Size => {
                ("--set preallocate", format!("--set preallocate={word}"))
            }
            _ => ("--preallocate", format!("--preallocate {word}")),
        };
        for backends in ["mpiio", "mmap,null", "mpiio,mmap"] {
            assert_refused(&format!("{option} --backend {backends}"), &[name, backends, "posix, uring"]);
        }
        // Buffered by default.
        assert_refused(&format!("{option} --backend posix"), &[name, "no write is direct", "--direct auto"]);
        assert_refused(&format!("{option} --backend uring,posix --direct off"), &["no write is direct"]);
        for rest in ["uring", "posix,uring", "posix --direct auto", "mpiio,posix --direct auto"] {
            assert_eq!(config(&format!("{option} --backend {rest}")).unwrap().preallocate, policy, "{rest}");
        }
    }
    assert!(config("--preallocate auto --backend mpiio").is_ok());
    assert_refused(
        "--preallocate off --set preallocate=size --backend uring",
        &["only one preallocation policy", "Omit one"],
    );
}

#[test]
fn results_without_a_preallocation_policy_had_none() {
    let mut old = serde_json::to_value(config("--backend uring").unwrap()).unwrap();
    assert_eq!(old["preallocate"], "auto");
    old.as_object_mut().unwrap().remove("preallocate");
    let old: Config = serde_json::from_value(old).unwrap();
    assert_eq!(old.preallocate, PreallocatePolicy::Off);
    assert!(old.may_be_direct() && !config("").unwrap().may_be_direct());
}

#[test]
fn domains_are_what_one_step_can_move() {
    for size in ["0", "1", "4095", "1025M", "16383P"] {
        assert_refused(&format!("--domain {size} --backend uring"), &["--domain", "4096 to 1073741824"]);
    }
    for (size, bytes) in [("4096", 4096), ("12345", 12345), ("1G", 1 << 30)] {
        assert_eq!(config(&format!("--domain {size} --backend uring")).unwrap().domain_bytes, Some(bytes));
    }
}

#[test]
fn dontcache_needs_buffered_transfers_that_can_do_it() {
    assert_refused("--cache dontcache", &["mpiio cannot", "posix, uring", "--cache drop"]);
    assert_refused("--cache dontcache --backend posix,mpiio", &["transfers of mpiio cannot"]);
    assert_refused("--cache dontcache --backend null", &["no effect", "posix, uring"]);
    assert_refused("--cache dontcache --backend posix --direct required", &["--direct required", "--direct off"]);
    assert_eq!(config("--cache dontcache --backend posix,null").unwrap().cache, CachePolicy::Dontcache);
    assert_eq!(config("--cache dontcache --backend uring --direct auto").unwrap().cache, CachePolicy::Dontcache);
    assert_eq!(config("--cache keep --direct required --backend posix").unwrap().cache, CachePolicy::Keep);
    assert_eq!(config("").unwrap().cache, CachePolicy::Drop);
}

#[test]
fn short_times_are_refused() {
    assert_refused("-T 0.5", &["0.5", "no pattern gets its time", "at least 1s"]);
    assert_eq!(config("-T 1s").unwrap().time_seconds, 1.0);
}

#[test]
fn types_are_known_ordered_single_and_sized() {
    assert_refused("--types 5", &["type 5", "0 to 4"]);
    assert_refused("--types 0,1,0", &["twice", "--types 0,1."]);
    assert_refused("--types 3,0", &["ascending", "--types 0,3."]);
    assert_refused("--types 3,4", &["sizes of their segments", "--types 2,3,4"]);
    assert_refused("--types 4", &["--types 2,4"]);
    assert_eq!(config("--types 1,4").unwrap().types, [PatternType::Shared, PatternType::SegmentedCollective]);
}

#[test]
fn sizes_fit_the_element() {
    assert_refused("--set segment-multiple=12", &["12", "multiple of 8"]);
    assert_refused("--set segment-multiple=0", &["multiple of 8"]);
    assert_refused("--memory-per-process 0", &["at least 1M"]);
    assert_refused("--memory-per-process 64", &["in bytes", "4G"]);
    assert_eq!(config("--set segment-multiple=24").unwrap().segment_multiple_bytes, 24);
}

#[test]
fn names_stay_where_they_belong() {
    for name in ["../x", "a/b", "/tmp", ".", "..", "a/", "./a"] {
        assert_refused(&format!("--run-dir {name}"), &[name, "without '/'"]);
    }
    assert_eq!(config("--run-dir run.1").unwrap().run_dir.as_deref(), Some("run.1"));
    for prefix in ["results/", "/", "..", "results/."] {
        assert_refused(&format!("--out {prefix}"), &[prefix, "prefix"]);
    }
    assert!(config("--out results/a").is_ok());
}

#[test]
fn hints_come_with_file_line_and_cause() {
    assert_refused("--hints /dev/zero", &["--hints /dev/zero", "more than 1 MiB"]);
    assert_refused("--hints /no/such/file", &["/no/such/file", "No such file", "every rank"]);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "# comment\nall all all all striping_factor 4").unwrap();
    let option = format!("--hints {}", file.path().display());
    assert_eq!(config(&option).unwrap().hints.len(), 1);
    writeln!(file, "all write").unwrap();
    let name = file.path().display().to_string();
    assert_refused(&option, &[&name, "line 3", "Lines are"]);
    let mut many = tempfile::NamedTempFile::new().unwrap();
    (0..20_000).for_each(|n| writeln!(many, "all all all all key{n} v").unwrap());
    assert_refused(&format!("--hints {}", many.path().display()), &["20000 hints are given, at most 4096 are allowed"]);
}

#[test]
fn partitions_fit_the_ranks() {
    assert_refused("plan --ranks 4 --partitions 2,8", &["8 ranks", "into 4"]);
    assert!(config("plan --ranks 8 --partitions 2,8").is_ok());
    assert_eq!(config("plan --ranks 8").unwrap(), config("").unwrap());
    check_ranks(&config("--release 2.1").unwrap(), 1).unwrap();
}

#[test]
fn space_limits_in_bytes() {
    assert_eq!(SpaceLimit::Percent(80.0).bytes(1000), 800);
    assert_eq!(SpaceLimit::Percent(100.0).bytes(u64::MAX), u64::MAX);
    assert_eq!(SpaceLimit::Bytes(7).bytes(5), 7);
}

#[test]
fn variants_are_contestants_with_options_of_their_own() {
    let found = config(
        "--backend mpiio,uring --depth 16 --variant two:cb_nodes=2,romio_cb_write=enable --variant same --hint cb_nodes=1 \
         --variant deep:backend=uring,depth=64,direct=off,collective=two-phase,aggregators=1,domain=1M",
    );
    let found = found.unwrap();
    assert_eq!(found.backends, ["mpiio", "uring", "mpiio+two", "mpiio+same", "uring+deep"]);
    assert_eq!((found.rounds, found.repeat), (DEFAULT_ROUNDS, RepeatPolicy::Rounds));
    let deep = found.of("uring+deep");
    assert_eq!((deep.queue_depth, deep.aggregators, deep.domain_bytes), (Some(64), Some(1), Some(1 << 20)));
    assert_eq!((deep.direct, deep.collective), (DirectPolicy::Off, CollectivePolicy::TwoPhase));
    assert_eq!((found.direct_of("uring"), found.direct_of("uring+deep")), (DirectPolicy::Auto, DirectPolicy::Off));
    assert_eq!(*found.of("mpiio+same"), found, "as its backend");
    assert_eq!(*found.of("uring"), found);
    let keys: Vec<String> =
        found.of("mpiio+two").hints.iter().map(|rule| format!("{}={}", rule.key, rule.value)).collect();
    assert_eq!(keys, ["cb_nodes=1", "cb_nodes=2", "romio_cb_write=enable"], "the last one counts");
    let one = config("--variant same").unwrap();
    assert_eq!((one.rounds, one.repeat), (DEFAULT_ROUNDS, RepeatPolicy::Rounds));
    let plan = config("plan --ranks 2 --backend posix --variant d:direct=auto,preallocate=off").unwrap();
    assert_eq!(plan.variants[0].preallocate, Some(PreallocatePolicy::Off));
    assert_eq!(plan.first_direct(), Some("posix+d"));
}

#[test]
fn variants_without_meaning_are_refused() {
    assert_refused(
        "--variant a:backend=posix",
        &["--variant a: its backend posix is not measured", "Add posix to --backend"],
    );
    assert_refused("--variant a:depth=4", &["--variant a: --depth has no effect with --backend mpiio"]);
    assert_refused("--variant a:direct=required", &["--variant a: --direct required: mpiio cannot"]);
    assert_refused("--backend uring --variant a:depth=0", &["--variant a: depth=0", "not a number"]);
    assert_refused("--backend uring --variant a:direct=on", &["direct=on", "by-backend, required, auto, off"]);
    assert_refused(
        "--backend uring --variant a:dept=4",
        &["dept is no option", "uring has no hints", "Did you mean depth?"],
    );
    assert_refused("--backend posix --variant a:domain=8M", &["--domain has no effect", "two-phase"]);
    assert_refused("--backend posix --variant a:preallocate=native", &["--preallocate has no effect"]);
    assert_refused("--backend posix,null --variant a:backend=null", &["null backend moves nothing"]);
    assert_refused("--variant a: --variant a:x=1", &["another variant has this name"]);
    assert_refused("--backend posix --dio-align 512 --variant a:collective=two-phase", &["--dio-align has no effect"]);
    assert!(config("--backend posix --dio-align 512 --variant a:direct=auto").is_ok());
    assert!(config("--backend posix --collective two-phase --direct auto --variant a:domain=8M").is_ok());
    assert!(config("--backend posix,mpiio --collective two-phase --variant a:backend=mpiio,cb_nodes=2").is_ok());
}
