//! The ladder: every type through every backend, the darker the nearer to the best.

use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::report::cells::type_cell;
use crate::b_eff_io::report::layout::Spot;
use crate::b_eff_io::report::verdicts;
use crate::b_eff_io::values::ladder::TypeRung;
use crate::frame::records::Access;
use crate::frame::report::html::{Block, Cell, Section, Table};
use crate::frame::report::marks::Legend;
use crate::frame::report::text::{figure, percent};
use crate::frame::values::MPI_IO;

use super::bandwidth::text;
use super::shown::{access_label, Shown};

/// None with fewer than two backends.
pub(super) fn section(shown: &Shown) -> Option<Section> {
    if shown.backends.len() < 2 {
        return None;
    }
    let mut legend = Legend::default();
    let mut rows = Vec::new();
    for access in Access::ALL {
        for t in PatternType::ALL {
            rows.extend(row(shown, access, t, &mut legend));
        }
    }
    let marks = legend.text().map(|text| format!("; {text}")).unwrap_or_default();
    let head = ["access", "type"].into_iter().chain(shown.backends.iter().map(String::as_str)).chain(["best"]);
    let mut table = Table::new(format!("MB/s of each type, from open to close{marks}"), 2, head).with_words();
    rows.into_iter().for_each(|row| table.row(row));
    let verdicts = shown.derived.ladder.verdicts.iter().filter(|v| v.ranks == shown.ranks);
    let sentence = |v| {
        let about = verdicts::about(&shown.result, v);
        format!("{about}: {}", verdicts::sentence(&shown.result, &shown.derived, v))
    };
    let sentences: Vec<String> = verdicts.map(sentence).collect();
    let mut blocks = vec![Block::Table(table)];
    if !sentences.is_empty() {
        blocks.push(Block::Folded("What makes the differences".into(), vec![Block::List(sentences)]));
    }
    Some(Section {
        name: "ladder",
        title: "Ladder: what reaches MPI-IO".into(),
        note: "The darker, the closer to the best of the row, which is bold. Point at a number for its ratio to the best and the \
               95 % interval of that."
            .into(),
        blocks,
    })
}

fn row(shown: &Shown, access: Access, t: PatternType, legend: &mut Legend) -> Option<Vec<Cell>> {
    let rungs: Vec<Option<&TypeRung>> = shown
        .backends
        .iter()
        .map(|backend| Spot { backend, ranks: shown.ranks, access }.type_rung(&shown.derived, t))
        .collect();
    let best = rungs.iter().flatten().find_map(|rung| rung.best.clone())?;
    let mut cells: Vec<Cell> = vec![access_label(access).into(), t.label().into()];
    for (backend, rung) in shown.backends.iter().zip(&rungs) {
        let cell = type_cell(&shown.result, &shown.derived, Spot { backend, ranks: shown.ranks, access }, t);
        let mut out = Cell::from(text(&cell, legend)).strong(*backend == best);
        if let Some(ratio) = rung.and_then(|rung| rung.ratio) {
            let interval = ratio.interval.map(|i| format!(" ({} to {})", percent(i.low), percent(i.high)));
            let said = format!("{} of {best}{}", percent(ratio.value), interval.unwrap_or_default());
            out = out.shaded(ratio.value).said(said);
        }
        cells.push(out);
    }
    let of_mpi_io = shown.backends.iter().zip(&rungs).find(|(backend, _)| *backend == MPI_IO);
    let ratio = of_mpi_io.and_then(|(_, rung)| rung.and_then(|r| r.ratio));
    cells.push(match ratio {
        _ if best == MPI_IO => format!("{best} is best").into(),
        Some(ratio) if ratio.equal == Some(true) => format!("{best}, not told apart").into(),
        Some(ratio) => format!("{best} × {}", figure(1.0 / ratio.value)).into(),
        None => best.into(),
    });
    Some(cells)
}
