//! Slow ranks, and the transfers of each host.

use std::collections::BTreeMap;

use beff_statistics::run_rules::median;

use crate::b_eff_io::values::{Derived, HostValue, SlowRank};
use crate::frame::records::AccessMethod;
use crate::frame::report::model::{ReportBlock, ReportSection};
use crate::frame::report::table::Table;
use crate::frame::report::text::{count, figure, list, percent};
use crate::frame::units::{format_size, mb_per_second};
use crate::frame::words::{or_hyphen, rate};

/// Sentences about slow ranks.
const MAX_FINDINGS: usize = 2;
/// Patterns and hosts that are listed.
const MAX_ROWS: usize = 40;

/// Sentences about the ranks of a partition that are slow in most patterns.
pub(super) fn findings(derived: &Derived, ranks: u64, has_several_backends: bool) -> Vec<String> {
    let mut by_rank: BTreeMap<(&str, u64), Vec<&SlowRank>> = BTreeMap::new();
    for s in derived.slow_ranks.iter().filter(|s| s.ranks == ranks) {
        by_rank.entry((&s.backend, s.rank)).or_default().push(s);
    }
    let mut all: Vec<((&str, u64), Vec<&SlowRank>)> = by_rank.into_iter().collect();
    all.sort_by_key(|(_, own)| std::cmp::Reverse(own.len()));
    all.truncate(MAX_FINDINGS);
    let sentence = |((backend, rank), own): ((&str, u64), Vec<&SlowRank>)| {
        let of = |access: AccessMethod| own.iter().filter(|s| s.access == access).count() as u64;
        let accesses: Vec<String> = AccessMethod::ALL
            .into_iter()
            .filter(|access| of(*access) > 0)
            .map(|access| format!("{} of {}", count(of(access), "pattern"), access.name()))
            .collect();
        let factor = median(&own.iter().map(|s| s.factor).collect::<Vec<_>>());
        let share = own.iter().map(|s| s.share).fold(0.0, f64::max);
        let backend = if has_several_backends { format!("{backend}: ") } else { String::new() };
        let host = own.first().map_or("", |s| s.host.as_str());
        format!(
            "{backend}rank {rank} on {host} is slower than the others in {}: {} times their mean time (median), which is up to {} of a \
             pattern's time",
            list(&accesses),
            figure(factor),
            percent(share)
        )
    };
    all.into_iter().map(sentence).collect()
}

/// Slow ranks by pattern, and hosts; None if no rank stands out and one host takes part.
pub(super) fn section(derived: &Derived, ranks: u64) -> Option<ReportSection> {
    let slow: Vec<&SlowRank> = derived.slow_ranks.iter().filter(|s| s.ranks == ranks).collect();
    let hosts: Vec<&HostValue> = derived.hosts.iter().filter(|h| h.ranks == ranks).collect();
    let tables = [slow_ranks(&slow), by_host(&hosts)];
    let blocks = tables.into_iter().flatten().map(ReportBlock::Table).collect();
    let note = "Own times of the ranks, without agreements; waiting inside collective calls belongs to them. A rank is slow if it needs 1.2 \
                times the mean of the others or more, and is the slowest so often that this has a probability of 1 % with equal ranks.";
    ReportSection::of("slow-ranks", format!("Ranks and hosts, {}", count(ranks, "rank")), note, blocks)
}

fn slow_ranks(slow: &[&SlowRank]) -> Option<Table> {
    let mut largest: Vec<&SlowRank> = slow.to_vec();
    largest.sort_by(|a, b| b.share.total_cmp(&a.share));
    let head = ["access", "type", "no", "backend", "rank", "times", "share", "slowest", "host"];
    let row = |s: &&SlowRank| {
        [
            s.access.name().to_owned(),
            s.pattern_type.descriptor().short_name.to_owned(),
            s.pattern.to_string(),
            s.backend.clone(),
            s.rank.to_string(),
            figure(s.factor),
            percent(s.share),
            format!("{} of {}", s.slowest_in, s.unequal_rounds),
            s.host.clone(),
        ]
    };
    let table = Table::new("Slow ranks", 4, head).with_words().with_rows(largest.iter().take(MAX_ROWS).map(row));
    let note = "times: own time divided by the mean of the other ranks; share: what it needs beyond them, of the pattern's time; slowest: \
                unequal rounds of this backend and access method, and those in which it was the slowest";
    let more = largest.len().saturating_sub(MAX_ROWS);
    let table = table.with_note(note);
    let table = if more > 0 {
        table.with_note(format!("{} more are in the JSON document", count(more as u64, "pattern")))
    } else {
        table
    };
    (!slow.is_empty()).then_some(table)
}

/// All types together, the slowest hosts of each backend and access method first.
fn by_host(hosts: &[&HostValue]) -> Option<Table> {
    let mut sums: BTreeMap<(&str, AccessMethod, &str), (u64, u64, f64)> = BTreeMap::new();
    for h in hosts {
        let (ranks, bytes, seconds) = sums.entry((&h.backend, h.access, &h.host)).or_default();
        (*ranks, *bytes, *seconds) = (h.host_ranks, bytes.saturating_add(h.bytes), *seconds + h.seconds);
    }
    let speed = |(_, bytes, seconds): &(u64, u64, f64)| mb_per_second(*bytes, *seconds);
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_by(|((b1, a1, _), v1), ((b2, a2, _), v2)| {
        (b1, a1).cmp(&(b2, a2)).then(speed(v1).unwrap_or(0.0).total_cmp(&speed(v2).unwrap_or(0.0)))
    });
    let more = rows.len().saturating_sub(MAX_ROWS);
    let row = |((backend, access, host), sum): ((&str, AccessMethod, &str), (u64, u64, f64))| {
        let rate = or_hyphen(speed(&sum).map(|value| rate(value, None)));
        let numbers = [sum.0.to_string(), format_size(sum.1), figure(sum.2), rate];
        [backend.to_owned(), access.name().to_owned()]
            .into_iter()
            .chain(numbers)
            .chain([host.to_owned()])
            .collect::<Vec<_>>()
    };
    let head = ["backend", "access", "ranks", "bytes", "s", "MB/s", "host"];
    let is_known = !rows.is_empty();
    let table = Table::new("Transfers by host, all types", 2, head).with_words();
    let table = table
        .with_rows(rows.into_iter().take(MAX_ROWS).map(row))
        .with_note("s: own time of the slowest rank of the host");
    let table = if more > 0 {
        table.with_note(format!("{} more are in the JSON document", count(more as u64, "row")))
    } else {
        table
    };
    is_known.then_some(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::records::{HostTransfer, RunResult, SlowestRank};
    use crate::b_eff_io::report::fixtures;
    use crate::b_eff_io::values::derive;
    use crate::frame::report::render;
    use crate::frame::report::text::TextPage;

    /// Rank 1 of two, on another host, needs twice the time of rank 0 in all writes.
    fn slow_result() -> RunResult {
        let mut result = fixtures::complete();
        let mut other = result.manifest.machine.hosts[0].clone();
        other.name = "slow-host".into();
        result.manifest.machine.hosts.push(other);
        for p in result.patterns.iter_mut().filter(|p| p.access == AccessMethod::Write) {
            let seconds = p.seconds() * 0.8;
            let slowest = SlowestRank {
                rank: 1,
                host: 1,
                seconds,
                all_ranks_seconds: seconds * (1.0 + 0.5 * (p.ranks - 1) as f64),
            };
            p.slowest_ranks = vec![slowest];
        }
        for of in &mut result.types {
            let transfer = |host, seconds| HostTransfer { host, ranks: 1, bytes: 100_000_000, seconds };
            of.hosts = vec![transfer(0, 1.0), transfer(1, 2.0)];
        }
        result
    }

    #[test]
    fn golden_section() {
        let result = slow_result();
        let derived = derive(&result);
        let ranks = result.partitions[0].ranks;
        let mut page = TextPage::with_width(100);
        findings(&derived, ranks, true).iter().for_each(|finding| page.line(finding));
        let section = section(&derived, ranks).unwrap();
        page.heading(&section.title);
        page.hanging("", &section.note);
        render::blocks(&mut page, &section.blocks);
        insta::assert_snapshot!("slow_ranks", page.finish());
        let none = derive(&fixtures::complete());
        assert!(super::section(&none, ranks).is_none() && findings(&none, ranks, true).is_empty());
    }
}
