//! Measurements in other orders, beside the definition.

use crate::b_eff_io::config::{CallOrder, ReadShare};
use crate::b_eff_io::values::OrderValue;
use crate::frame::records::AccessMethod;
use crate::frame::report::model::{ReportBlock, ReportSection};
use crate::frame::report::table::{Table, TableCell};
use crate::frame::report::text::count;
use crate::frame::words::NO_VALUE;

use super::cells::{full_cell, narrow_rate, ordered_cell};
use super::ladder::percent_of_best;
use super::layout::chunk_label;
use super::partition_view::PartitionView;

/// Backends of a table.
const BACKENDS_AT_ONCE: usize = 3;

/// None without such measurements.
pub(super) fn section(shown: &PartitionView) -> Option<ReportSection> {
    let all: Vec<usize> = (0..shown.backends.len()).collect();
    let tables = all.chunks(BACKENDS_AT_ONCE).map(|columns| table(shown, columns)).filter(|table| !table.is_empty());
    let rows = shown.result.config.call_orders();
    let orders: Vec<String> = rows.iter().map(|order| order.name()).collect();
    let mixed = if shown.result.config.mix.is_some() {
        " Rows with a ratio have reads and writes in these percentages: their bytes count together, and each read expects the data that its chunk had before."
    } else {
        ""
    };
    ReportSection::of(
        "orders",
        format!("Other orders of access ({}), {}", orders.join(", "), count(shown.ranks, "rank")),
        format!(
            "MB/s of rewrites and reads of the same data, one chunk per call, each chunk at most once, in rounds with a sync after each round of rewrites. \
             These rows are not part of b_eff_io; compare them with the order `sequential`. In brackets: 95 % intervals from the rounds.{mixed}"
        ),
        tables.map(ReportBlock::Table).collect(),
    )
}

/// Name of what is measured in a row: the access method, or reads and writes in percent.
pub(super) fn access_name(access: AccessMethod, order: CallOrder) -> String {
    order.mix.map_or_else(|| access.name().to_owned(), ReadShare::name)
}

fn table(shown: &PartitionView, columns: &[usize]) -> Table {
    let backends: Vec<&String> = columns.iter().map(|column| &shown.backends[*column]).collect();
    let has_several = shown.backends.len() > 1;
    let of_backend = |backend: &&String| {
        let percent = has_several.then(|| "%".to_owned());
        [(*backend).clone(), "95 %".to_owned()].into_iter().chain(percent).collect::<Vec<_>>()
    };
    let names = ["access", "no", "type", "chunk", "order"].map(str::to_owned);
    let mut table = Table::new("", 5, names.into_iter().chain(backends.iter().flat_map(of_backend)));
    for (access, is_mixed) in
        [(AccessMethod::Rewrite, false), (AccessMethod::Read, false), (AccessMethod::Rewrite, true)]
    {
        let is_own = |v: &&OrderValue| v.access == access && v.mix.is_some() == is_mixed;
        let mut patterns: Vec<u8> = shown.derived.orders.iter().filter(is_own).map(|v| v.pattern).collect();
        patterns.sort_unstable();
        patterns.dedup();
        for pattern in patterns {
            for order in shown.result.config.call_orders() {
                let is_row = |v: &&OrderValue| is_own(v) && v.pattern == pattern && v.call_order() == order;
                let own: Vec<&OrderValue> = shown.derived.orders.iter().filter(is_row).collect();
                let record = shown.result.ordered.iter().map(|o| &o.measurement).find(|p| p.pattern == pattern);
                let (Some(first), Some(record)) = (own.first(), record) else { continue };
                let names = [
                    access_name(access, order),
                    format!("{pattern:>2}"),
                    first.pattern_type.label(),
                    chunk_label(record.chunk_bytes),
                    order.order.name().to_owned(),
                ];
                let cells = backends.iter().flat_map(|backend| {
                    let value = own.iter().find(|v| v.backend == **backend).copied();
                    cells(shown, value, has_several)
                });
                table.row(names.into_iter().map(TableCell::from).chain(cells.collect::<Vec<_>>()));
            }
        }
        table.end_group();
    }
    table
}

fn cells(shown: &PartitionView, value: Option<&OrderValue>, has_several: bool) -> Vec<TableCell> {
    let rate = value.map_or_else(|| NO_VALUE.into(), |v| full_cell(&ordered_cell(&shown.result, v)));
    let interval = value.and_then(|v| v.low.zip(v.high));
    let interval = interval.map(|(low, high)| format!("[{}, {}]", narrow_rate(low, None), narrow_rate(high, None)));
    let percent = has_several.then(|| percent_of_best(value.and_then(|v| v.ratio.as_ref())));
    [rate, interval.unwrap_or_default().into()].into_iter().chain(percent).collect()
}
