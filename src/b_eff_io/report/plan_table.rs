//! What would run, as text: partitions, schedule, sizes of calls and files, memory.

use crate::b_eff_io::config::Partitions;
use crate::b_eff_io::plan::patterns::type_name;
use crate::b_eff_io::plan::preview::{FilePreview, PartitionPreview, PatternPreview, Preview, PreviewInput};
use crate::b_eff_io::plan::Role;
use crate::frame::units::{format_seconds, format_size};

use super::layout;
use super::layout::chunk_label;
use crate::frame::report::columns::Columns;
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
    let how = (input.full_rewrite, input.shared_pointer, input.segment_multiple_bytes);
    page.field("patterns", &layout::patterns_asked(&input.types, how));
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
    Columns::<&PatternPreview>::new()
        .right("pat", 3, |p| p.number)
        .gap(1)
        .left("type", 13, |p| format!("{} {}", p.pattern_type, type_name(p.pattern_type)))
        .right("l", 8, |p| chunk_label(p.chunk_bytes))
        .right("L", 10, |p| chunk_label(p.call_bytes))
        .right("U", 3, |p| p.time_units)
        .right("write s", 11, |p| format!("{:.3}", p.scheduled_seconds[0]))
        .right("rewrite s", 11, |p| format!("{:.3}", p.scheduled_seconds[1]))
        .right("read s", 11, |p| format!("{:.3}", p.scheduled_seconds[2]))
        .right("calls", 11, |p| p.calls)
        .right("bytes", 13, |p| format_size(p.bytes))
        .gap(2)
        .left("ended by", 0, ended_by)
        .write(page, &partition.patterns);
    for file in &partition.files {
        page.line(format!("  type {} {:<10} {}", file.pattern_type, type_name(file.pattern_type), files(file)));
    }
    let space = partition.space_bytes.map_or_else(|| "no limit".to_owned(), |b| format!("of {}", format_size(b)));
    page.line(format!("  first write of one backend: {} ({space})", format_size(partition.first_write_bytes)));
}

fn ended_by(p: &PatternPreview) -> &'static str {
    match (p.ended_by_space, p.role, p.pattern_type) {
        (true, ..) => "space",
        (false, Role::WarmUp, _) => "warm-up",
        (false, Role::FillUp, _) => "fill-up",
        (false, Role::Timed, 3 | 4) => "segment",
        (false, Role::Timed, _) => "time",
    }
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
