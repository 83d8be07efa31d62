//! Communication of simulated runs beside their data transfers.

use crate::b_eff_io::plan::communication::CommunicationCounts;
use crate::b_eff_io::run::execute::execute;
use crate::b_eff_io::run::run_tests::{config, in_run};
use crate::frame::run::testing::{traffic, Script};

/// Collective calls and bytes of a whole run do not grow with the number of ranks, but for what a tree adds on rank 0, and are those of the
/// plan.
#[test]
fn a_run_costs_a_rank_the_same_among_2_8_and_64() {
    let scripts = |_| Script::default().cost("write", 1.0).cost("read", 1.0);
    for options in ["null --rounds 2", "posix --rounds 1 --cache keep"] {
        let config = config(&format!("--release 1 -T 960s --types 2 --backend {options} --repeat off --bind none"));
        let of = |ranks: u64| {
            let seen = in_run(ranks, &config, scripts, config.backends[0] == "posix", |run, _| {
                let before = traffic();
                execute(run).unwrap();
                traffic().since(before)
            });
            let patterns = seen[0].1.patterns();
            assert_eq!(patterns.len(), 24);
            let counts = CommunicationCounts {
                ranks,
                hosts: 1,
                type_records: 3,
                pattern_records: 24,
                evidence_records: if config.backends[0] == "posix" { 24 } else { 0 },
                further_rounds: patterns.iter().map(|p| p.rounds.len().saturating_sub(1) as u64).sum(),
                agreements: patterns.iter().map(|p| p.decisions).sum(),
            };
            let (root, last) = (seen[0].0, seen[seen.len() - 1].0);
            assert_eq!(root.collective_calls, last.collective_calls);
            let [_, _, agreements, records] = counts.phases();
            let is_near = |found: u64, planned: u64, what: &str| {
                let share = found as f64 / planned as f64;
                assert!(
                    (0.75..1.05).contains(&share),
                    "{what} among {ranks} ranks, {options}: {found}, planned {planned}"
                );
            };
            is_near(root.collective_calls, agreements.collective_calls + records.collective_calls, "calls");
            is_near(root.contributed_bytes, agreements.rank_bytes + records.rank_bytes, "bytes of a rank");
            is_near(root.received_bytes, agreements.root_bytes + records.root_bytes, "bytes on rank 0");
            root
        };
        let few = of(2);
        for ranks in [8, 64] {
            let all = of(ranks);
            assert_eq!(all.collective_calls, few.collective_calls, "{ranks} ranks");
            let most = few.contributed_bytes * 11 / 10;
            assert!(all.contributed_bytes < most, "{all:?} among {ranks} ranks, {few:?} among 2");
        }
    }
}
