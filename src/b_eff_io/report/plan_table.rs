//! What would run, as text: partitions, schedule, sizes of calls and files, memory.

use crate::b_eff_io::config::Partitions;
use crate::b_eff_io::plan::patterns::type_name;
use crate::b_eff_io::plan::preview::{FilePreview, PartitionPreview, PatternPreview, Preview, PreviewInput};
use crate::b_eff_io::plan::Role;
use crate::frame::units::{format_seconds, format_size};

use super::layout::chunk_label;
use crate::frame::report::text::{count, Page};

/// The plan of a run, no line wider than [`crate::frame::report::text::WIDTH`]. Calls and bytes hold at the assumed bandwidth only.
#[must_use]
pub fn text(preview: &Preview) -> String {
    let mut page = Page::default();
    head(&mut page, preview);
    for partition in &preview.partitions {
        table(&mut page, partition);
    }
    page.finish()
}

fn head(page: &mut Page, preview: &Preview) {
    let input = &preview.input;
    page.line("Plan of a b_eff_io run; nothing has been measured or written.");
    page.line("sizes in the tables: 1 kB = 1024 bytes, 1 MB = 1024 kB; bandwidth: 1 MB/s = 1 000 000 bytes/s");
    page.blank();
    page.field("definition", &definition(input));
    let types: Vec<String> = input.types.iter().map(|&t| format!("{t} {}", type_name(t))).collect();
    page.field(
        "patterns",
        &format!(
            "types {}; {}; type 1 through {}; segments in multiples of {}",
            types.join(", "),
            if input.full_rewrite { "all types rewritten" } else { "only type 0 rewritten" },
            if input.shared_pointer { "the shared file pointer" } else { "a strided view" },
            format_size(input.segment_multiple_bytes)
        ),
    );
    page.field(
        "time",
        &format!(
            "{} for one backend, {} for {}; opening, closing and what count-driven patterns take beyond it come on top",
            format_seconds(preview.scheduled_seconds),
            format_seconds(preview.scheduled_seconds * input.backends as f64),
            count(input.backends, "backend")
        ),
    );
    let limit = input.limit_bytes.map_or_else(|| "no limit".to_owned(), |b| format!("limit {}", format_size(b)));
    page.field("space", &format!("{} for all files of the run ({limit})", format_size(preview.total_bytes)));
    page.field(
        "memory",
        &format!(
            "{} per rank for the data (period {}), of {} per rank",
            format_size(preview.rank_memory_bytes),
            format_size(preview.period_bytes),
            format_size(input.memory_per_rank_bytes)
        ),
    );
    page.field(
        "assumed",
        &format!(
            "{:.1} MB/s for every pattern, all ranks together: calls, bytes and file sizes of time-driven patterns follow from it",
            input.rate_bytes_per_second / 1e6
        ),
    );
}

fn definition(input: &PreviewInput) -> String {
    let partitions = match input.partitions {
        Partitions::All => "one partition of all ranks",
        Partitions::SmallMediumAll => "partitions small, medium, all",
        Partitions::List(_) => "partitions as listed",
    };
    format!(
        "release {}, T = {}, {}, {partitions}",
        input.release.name(),
        format_seconds(input.time_seconds),
        count(input.ranks, "rank")
    )
}

fn table(page: &mut Page, partition: &PartitionPreview) {
    let reduced = if partition.m_part_bytes < partition.m_part_wanted_bytes {
        format!(" (definition: {}, reduced for lack of space)", format_size(partition.m_part_wanted_bytes))
    } else {
        String::new()
    };
    page.heading(&format!(
        "{}: {}, M_PART = {}{reduced}",
        count(partition.ranks, "rank"),
        format_seconds(partition.time_seconds),
        format_size(partition.m_part_bytes)
    ));
    page.line(format!(
        "  {:>3} {:<12} {:>8} {:>9} {:>2} {:>10} {:>10} {:>10} {:>10} {:>12}  {}",
        "pat", "type", "l", "L", "U", "write s", "rewrite s", "read s", "calls", "bytes", "ended by"
    ));
    for pattern in &partition.patterns {
        page.line(row(pattern));
    }
    for file in &partition.files {
        page.line(format!("  type {} {:<10} {}", file.pattern_type, type_name(file.pattern_type), files(file)));
    }
    let space = partition.space_bytes.map_or_else(|| "no limit".to_owned(), |b| format!("of {}", format_size(b)));
    page.line(format!("  first write of one backend: {} ({space})", format_size(partition.first_write_bytes)));
}

fn row(p: &PatternPreview) -> String {
    let [write, rewrite, read] = p.scheduled_seconds;
    let ended = match (p.ended_by_space, p.role, p.pattern_type) {
        (true, ..) => "space",
        (false, Role::WarmUp, _) => "warm-up",
        (false, Role::FillUp, _) => "fill-up",
        (false, Role::Timed, 3 | 4) => "segment",
        (false, Role::Timed, _) => "time",
    };
    format!(
        "  {:>3} {:<12} {:>8} {:>9} {:>2} {write:>10.3} {rewrite:>10.3} {read:>10.3} {:>10} {:>12}  {ended}",
        p.number,
        format!("{} {}", p.pattern_type, type_name(p.pattern_type)),
        chunk_label(p.chunk_bytes),
        chunk_label(p.call_bytes),
        p.time_units,
        p.calls,
        format_size(p.bytes)
    )
}

fn files(file: &FilePreview) -> String {
    let size = format_size(file.file_bytes);
    let segment = file.segment_bytes.map(|b| format!(", segments of {}", format_size(b))).unwrap_or_default();
    if file.files == 1 {
        format!("one file of {size}{segment}")
    } else {
        format!("{} of {size} each{segment}", count(file.files, "file"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::b_eff_io::config::Release;
    use crate::b_eff_io::plan::preview::preview;
    use crate::frame::report::text::WIDTH;

    fn input(ranks: u64, limit_bytes: Option<u64>) -> PreviewInput {
        PreviewInput {
            ranks,
            release: Release::R2_1,
            partitions: Partitions::SmallMediumAll,
            time_seconds: 5400.0,
            types: vec![0, 1, 2, 3, 4],
            full_rewrite: false,
            shared_pointer: true,
            memory_per_rank_bytes: 4 << 30,
            limit_bytes,
            backends: 2,
            segment_multiple_bytes: 1 << 20,
            last_level_cache_bytes: 32 << 20,
            rate_bytes_per_second: 2e9,
        }
    }

    #[test]
    fn golden_plan() {
        insta::assert_snapshot!("plan", text(&preview(&input(2, Some(8 << 30))).unwrap()));
    }

    #[test]
    fn ten_million_ranks_fit_into_the_columns() {
        let text = text(&preview(&PreviewInput { backends: 1, ..input(10_000_000, None) }).unwrap());
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
    }
}
