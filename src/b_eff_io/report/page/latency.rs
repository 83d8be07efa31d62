//! Times of single calls, where they were recorded.

use crate::b_eff_io::plan::PATTERNS;
use crate::b_eff_io::records::PatternRecord;
use crate::b_eff_io::report::layout::chunk_label;
use crate::frame::records::{Access, LatencyRecord};
use crate::frame::report::html::lines::{self, Abscissa, Curve, Look, Point};
use crate::frame::report::html::scale::Log;
use crate::frame::report::html::{slug, Block, Picture, Section, Table};
use crate::frame::units::format_seconds;

use super::shown::{access_label, Shown};

const NAMES: [&str; 4] = ["median", "99 %", "99.9 %", "slowest"];

fn values(l: &LatencyRecord) -> [u64; 4] {
    [l.p50_ns, l.p99_ns, l.p999_ns, l.max_ns]
}

/// None if nothing was recorded.
pub(super) fn section(shown: &Shown) -> Option<Section> {
    let all = shown.result.patterns.iter().filter_map(|p| p.latency.as_ref());
    let scale = Log::around(all.flat_map(values).map(|ns| ns as f64 / 1e3))?;
    let blocks =
        shown.backends.iter().filter_map(|backend| picture(shown, backend, scale)).map(Block::Picture).collect();
    Some(Section {
        name: "latency",
        title: "Latency of single calls".into(),
        note: "Microseconds, logarithmic, over the pattern numbers of the definition (0 to 8 scatter, 9 to 16 shared, 17 to 24 separate, \
               25 to 33 segmented, 34 to 42 seg-coll): half of the calls were not slower than the median, 99 of 100 than 99 %."
            .into(),
        blocks,
    })
}

fn picture(shown: &Shown, backend: &str, scale: Log) -> Option<Picture> {
    let of = |access: Access| {
        let is = move |p: &&PatternRecord| p.backend == backend && p.access == access && p.latency.is_some();
        shown.result.patterns.iter().filter(is)
    };
    Access::ALL.into_iter().flat_map(of).next()?;
    let names: Vec<String> = (0..PATTERNS).map(|n| n.to_string()).collect();
    let head = ["access", "type", "chunk", "timed", "calls"].into_iter().chain(NAMES);
    let mut table = Table::new(backend, 4, head);
    let mut frames = Vec::new();
    for access in Access::ALL {
        let mut curves: Vec<Curve> = (0..NAMES.len()).map(|style| Curve { style, points: Vec::new() }).collect();
        let mut records: Vec<&PatternRecord> = of(access).collect();
        records.sort_by_key(|p| p.pattern);
        for p in records {
            let Some(latency) = &p.latency else { continue };
            let [about, chunk] = [p.pattern_type.label(), chunk_label(p.chunk_bytes)];
            let times = values(latency).map(|ns| format_seconds(ns as f64 / 1e9));
            for (curve, ns) in curves.iter_mut().zip(values(latency)) {
                // Too many to be pointed at: the table has them.
                let (x, y) = (p.pattern.into(), ns as f64 / 1e3);
                curve.points.push(Point { x, y, look: Look::Known, said: String::new() });
            }
            let begin = [access_label(access).to_owned(), about, chunk, latency.of.clone(), latency.count.to_string()];
            table.row(begin.into_iter().chain(times));
        }
        let said = format!("{backend}, {}: microseconds of a call over patterns", access_label(access));
        frames.push(lines::frame(access_label(access), said, "us", &Abscissa::Names(names.clone()), scale, &curves));
    }
    Some(Picture {
        name: format!("{}-{}-ranks-latency", slug(backend), shown.ranks),
        title: backend.to_owned(),
        keys: NAMES.iter().enumerate().map(|(style, name)| lines::key(style, *name)).collect(),
        frames,
        table,
    })
}
