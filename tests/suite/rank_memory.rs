//! Memory of a rank against what was planned, and whether the memory of the transfers is cold.

use serde_json::Value;

use crate::patient;
use crate::support::{document, items, number, skip, Launch, Scratch};

fn run(ranks: u64, args: &[&str]) -> Value {
    let scratch = Scratch::new();
    let short = ["-T", "1s", "--types", "0,2", "--space", "1G"];
    Launch::new(ranks).args(short).args(args).into(&scratch).run().expect(0);
    document(&scratch)
}

fn has_two_phases(result: &Value) -> bool {
    items(&result["patterns"]).iter().any(|p| p["strategy"].as_str().unwrap().starts_with("two-phase"))
}

#[test]
fn planned_memory_is_the_memory_used() {
    const ALL: &str = "mpiio,posix,uring,mmap";
    for (ranks, of_ranks) in [(1, &[ALL][..]), (2, &[ALL]), (3, &["uring"]), (4, &[ALL])] {
        for &backends in of_ranks {
            let result = run(ranks, &["--backend", backends, "--memory-per-process", "1G"]);
            let (ending, memory) = (&result["ending"], &result["ending"]["rank_memory"]);
            let what = format!("{backends} on {ranks} ranks: {ending}");
            let of = |name: &str| number(&memory[name]);
            let (high, planned) =
                (number(&ending["rank_memory_high_water_bytes"]), number(&ending["rank_memory_planned_bytes"]));
            assert_eq!(planned, of("planned_own_bytes") + of("planned_neighbours_bytes"), "{what}");
            assert!(high <= 2 * planned + of("planned_file_bytes"), "{what}");
            assert!(of("private_bytes") <= 2 * of("planned_own_bytes"), "{what}");
            assert!(of("private_bytes") + of("shared_bytes") <= 2 * planned, "{what}");
            // Programs and libraries are some tens of MiB.
            assert!(of("file_bytes") <= of("planned_file_bytes") + (128 << 20), "{what}");
            // What neighbours map is planned for transfers that may have two phases; without direct I/O none has.
            if ranks == 1 || has_two_phases(&result) {
                assert!(planned <= 2 * high, "{what}");
            }
            // Shared pages are there once.
            if let Some(proportional) = memory["proportional_bytes"].as_u64() {
                assert!(proportional <= 2 * of("planned_own_bytes") + of("planned_file_bytes"), "{what}");
            }
            assert_eq!(of("planned_neighbours_bytes") > 0, ranks > 1, "{what}");
            assert_eq!(of("planned_file_bytes") > 0, backends.contains("mmap"), "{what}");
        }
    }
}

#[test]
fn without_two_phases_nothing_of_neighbours_is_planned_or_mapped() {
    let result = run(4, &["--backend", "uring", "--collective", "independent", "--memory-per-process", "1G"]);
    let memory = &result["ending"]["rank_memory"];
    assert_eq!(number(&memory["planned_neighbours_bytes"]), 0, "{memory}");
    let planned = number(&memory["planned_own_bytes"]);
    assert!(number(&result["ending"]["rank_memory_high_water_bytes"]) <= 2 * planned, "{memory}");
}

/// 16 GiB for a process make calls of 128 MiB, and memory for them.
#[test]
fn memory_is_left_alone_where_nothing_is_moved() {
    let result = run(2, &["--backend", "null", "--memory-per-process", "16G"]);
    let ending = &result["ending"];
    assert!(number(&ending["rank_memory_planned_bytes"]) > 128 << 20, "{ending}");
    assert!(number(&ending["rank_memory_high_water_bytes"]) < 128 << 20, "{ending}");
    assert_eq!(result["cache_cold"][0]["unknown_reason"], "no backend of the run moves data");
}

/// Takes huge pages away from the program, as a host that has them switched off.
const NO_HUGE_PAGES: &str = "#include <sys/prctl.h>\n__attribute__((constructor)) static void off(void) { prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); }\n";

fn small_pages(result: &Value) -> Option<&Value> {
    items(&result["derived"]["warnings"]).iter().find(|w| w["kind"] == "small_pages")
}

/// Of private and of shared memory. Where the kernel gives them there is no warning, and where not there is one, with the figures.
#[test]
fn small_pages_are_reported() {
    for (ranks, backend) in [(1, "uring"), (2, "uring"), (2, "posix")] {
        let scratch = Scratch::new();
        let both = format!(
            "{}:{}",
            patient::library().display(),
            patient::library_of("no_huge_pages", NO_HUGE_PAGES).display()
        );
        let args = ["-T", "1s", "--types", "0,2", "--space", "1G", "--memory-per-process", "1G", "--backend", backend];
        let run = Launch::new(ranks).args(args).env("LD_PRELOAD", both).into(&scratch).run();
        run.expect(0);
        let result = document(&scratch);
        let [pages] = items(&result["pages"]) else { panic!("{}", result["pages"]) };
        assert_eq!(
            (&pages["huge_page_bytes"], number(&pages["ranks_with_small"])),
            (&Value::from(0), ranks),
            "{pages}"
        );
        assert_eq!(pages["is_shared"], ranks > 1 && backend == "uring", "{pages}");
        let reason = pages["reason"].as_str().unwrap();
        assert!(!reason.is_empty() && (pages["is_shared"] == false || reason.contains("MADV_COLLAPSE")), "{pages}");
        let is_direct = items(&result["patterns"]).iter().any(|p| p["direct"] == true && number(&p["calls"]) > 0);
        assert_eq!(small_pages(&result).is_some(), is_direct, "{pages}");
        assert!(
            small_pages(&result).is_none_or(|w| w["cause"].as_str().unwrap().contains("are in small pages: 0 ")),
            "{run}"
        );
        let with = self::run(ranks, &["--memory-per-process", "1G", "--backend", backend]);
        let [pages] = items(&with["pages"]) else { panic!("{}", with["pages"]) };
        if !pages["reason"].is_null() {
            skip(&format!("no huge pages here: {pages}"));
            continue;
        }
        assert_eq!(small_pages(&with), None, "{pages}");
        assert!(number(&pages["huge_page_bytes"]) * 10 >= number(&pages["memory_bytes"]) * 9, "{pages}");
    }
}

fn is_warm(result: &Value) -> bool {
    items(&result["derived"]["warnings"]).iter().any(|w| w["kind"] == "warm_memory")
}

/// What the loads say, by the formula of the docs; None: not known.
fn from_memory(cold: &Value) -> Option<f64> {
    let [found, flushed, cached] = ["load_ns", "flushed_ns", "cached_ns"].map(|name| cold[name].as_f64().unwrap());
    cold["unknown_reason"].is_null().then(|| ((found - cached) / (flushed - cached)).clamp(0.0, 1.0))
}

/// A ring of more than all caches is cold. One that fits the shared cache stays there only where no other machine of the same processor
/// fills it: what is said follows from the loads each time. That memory of a private cache is found warm: `frame::run::cold`.
#[test]
fn warm_memory_is_reported_by_the_loads() {
    let seen = |ranks: u64, memory_bytes: u64| {
        let result = run(ranks, &["--backend", "posix", "--memory-per-process", &memory_bytes.to_string()]);
        let [cold] = items(&result["cache_cold"]) else { panic!("{}", result["cache_cold"]) };
        assert!(number(&cold["cache_share_bytes"]) > 0, "{cold}");
        let share = from_memory(cold);
        assert_eq!(is_warm(&result), share.is_some_and(|share| share < 0.5), "{cold}");
        if share.is_some() {
            assert!(number(&cold["rank"]) < ranks && number(&cold["lines"]) > 0, "{cold}");
        }
        (share, number(&result["manifest"]["period_bytes"]), number(&cold["cache_share_bytes"]))
    };
    for ranks in 1..=3 {
        let (_, period, of_caches) = seen(ranks, 16 << 20);
        assert!(period < of_caches, "{period} {of_caches}");
        // The ring is 1/16 of the memory at most, and there are processors with much more cache than this machine has memory for.
        let (share, period, of_caches) = seen(ranks, (30 * of_caches).max(2 << 30));
        assert!(10 * period > 17 * of_caches, "{period} {of_caches}");
        assert!(share.is_none_or(|share| share >= 0.5), "{ranks} ranks: {share:?}");
    }
}
