//! The plan of a run as text: partitions, schedule, sizes of calls and files, memory.

use crate::b_eff_io::config::{call_orders, Partitions};
use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::plan::cache_yardstick::CacheForecast;
use crate::b_eff_io::plan::outlook::{EndedBy, Outlook};
use crate::b_eff_io::plan::preview::{FilePreview, PartitionPreview, PatternPreview, Preview, PreviewInput};
use crate::b_eff_io::plan::space_forecast::SpaceForecast;
use crate::b_eff_io::plan::strict_cost::StrictCost;
use crate::b_eff_io::plan::Role;
use crate::frame::rank_directories::RankDirectories;
use crate::frame::records::AccessMethod;
use crate::frame::units::{format_seconds, format_size};

use super::layout;
use super::layout::chunk_label;
use super::options::variant_text;
use crate::frame::report::render;
use crate::frame::report::table::Table;
use crate::frame::report::text::{count, list, TextPage};

/// Tolerance for warm-up and fill-up, which are not scheduled.
const FIT_TOLERANCE: f64 = 1.01;

/// Formats the T with which each access method moves twenty times the cache.
#[must_use]
pub fn cache_text(all: &[CacheForecast]) -> String {
    let mut page = TextPage::default();
    let Some(first) = all.first() else { return String::new() };
    page.heading("Twenty times the cache of the file system");
    let head = ["ranks", "access", "bytes", "20 x cache", "T needed"];
    let row = |f: &CacheForecast| {
        let time = f.required_time_seconds.map_or_else(|| "not reachable".to_owned(), format_seconds);
        let time = if f.bytes >= f.required_bytes { "met".to_owned() } else { time };
        let [bytes, required] = [f.bytes, f.required_bytes].map(format_size);
        [f.ranks.to_string(), f.access.name().to_owned(), bytes, required, time]
    };
    render::table(&mut page, &Table::new("", 2, head).with_words().with_rows(all.iter().map(row)));
    let basis = match first.is_given {
        true => "The cache is that of --storage cache.",
        false => {
            "The cache is the memory of the hosts, assumed to be as large as this one's or --memory-per-process: the most that page caches \
             hold; --storage cache=SIZE replaces it."
        }
    };
    page.hanging(
        "  ",
        &format!("A yardstick of the paper for data that is to be on disk, not a criterion of validity. {basis}"),
    );
    if first.may_be_direct && !first.is_given {
        page.hanging("  ", "It does not apply to direct I/O, which bypasses the page cache.");
    }
    if all.iter().any(|f| f.required_time_seconds.is_none()) {
        page.hanging("  ", "not reachable: the space ends the first writes before, or the calls are too long; give more --space, or --rate.");
    }
    page.finish()
}

/// Formats the plan of a run with lines of at most [`crate::frame::report::text::WIDTH`]. Calls and bytes are valid at the assumed
/// bandwidth only. `space_basis`: origin of the limit of the space; `short`: the space ends patterns.
#[must_use]
pub fn text(preview: &Preview, space_basis: &str, short: Option<&SpaceForecast>) -> String {
    let mut page = TextPage::default();
    head(&mut page, preview, space_basis, short);
    for partition in &preview.partitions {
        table(&mut page, partition);
        outlook(&mut page, partition, preview.input.rate_bytes_per_second);
    }
    page.finish()
}

fn head(page: &mut TextPage, preview: &Preview, space_basis: &str, short: Option<&SpaceForecast>) {
    let input = &preview.input;
    page.line("Plan of a b_eff_io run; nothing has been measured or written.");
    page.line("sizes in the tables: 1 kB = 1024 bytes, 1 MB = 1024 kB; bandwidth: 1 MB/s = 1 000 000 bytes/s");
    page.blank();
    page.field("definition", &definition(input));
    let how = (input.full_rewrite, input.shared_pointer, input.segment_multiple_bytes);
    page.field("patterns", &layout::pattern_options(&input.types, how));
    page.field(
        "time",
        &format!(
            "{} for one backend, {} for {}; opening, closing and overruns of count-driven patterns are additional",
            format_seconds(preview.scheduled_seconds),
            format_seconds(preview.scheduled_seconds * input.backends as f64),
            count(input.backends, if input.variants.is_empty() { "backend" } else { "contestant" })
        ),
    );
    if preview.orders_seconds > 0.0 {
        let orders: Vec<String> = call_orders(&input.orders, input.mix).iter().map(|order| order.name()).collect();
        let seconds = format_seconds(preview.orders_seconds);
        page.field("other orders", &format!("{}: {seconds} more for one backend", orders.join(", ")));
    }
    if let Some(cost) = &preview.strict_cost {
        page.field("strict", &strict_cost(cost, input));
    }
    if let Some(seconds) = input.limit_seconds {
        let fits = match preview.fitting_time_seconds {
            None => "the run fits".to_owned(),
            Some(fitting) => {
                format!("the run does NOT fit; -T {fitting}s would, with what a run does beside measuring")
            }
        };
        page.field("time limit", &format!("{}: {fits}", format_seconds(seconds)));
    }
    let limit = input.limit_bytes.map_or_else(|| "no limit".to_owned(), |b| format!("limit {}", format_size(b)));
    contestants(page, input);
    page.field(
        "space",
        &format!("{} for all files of the run ({limit}: {space_basis})", format_size(preview.total_bytes)),
    );
    let directories = RankDirectories::new(input.ranks, input.files_per_directory).count();
    if directories > 0 && input.types.contains(&PatternType::Separate) {
        let files = count(input.files_per_directory, "file");
        let text = format!("{directories} for each backend, with up to {files} of type 2 (--files-per-directory)");
        page.field("directories", &text);
    }
    page.field("ends first", &ends_first(preview, short));
    memory(page, preview);
    page.field(
        "assumed",
        &format!(
            "{:.1} MB/s for every pattern, all ranks together: calls, bytes and file sizes of time-driven patterns follow from it",
            input.rate_bytes_per_second / 1e6
        ),
    );
}

/// What ends the first writes: the bytes that they would need, and what would fit.
fn ends_first(preview: &Preview, short: Option<&SpaceForecast>) -> String {
    let Some(short) = short else {
        return "the time and the counts of the definition, not the space".into();
    };
    let what = if short.patterns.is_empty() {
        "the space, which reduces M_PART".to_owned()
    } else {
        format!("the space, in the first writes of patterns {}", ranges(&short.patterns))
    };
    let mut remedies = Vec::new();
    if let Some(bytes) = short.required_bytes {
        remedies.push(format!("--space {} would hold them", space_option(bytes)));
    }
    if let Some(seconds) = short.fitting_time_seconds {
        remedies.push(format!("-T {seconds}s fits into the given space"));
    }
    let without = format_size(short.unlimited_bytes);
    let time = format_seconds(preview.input.time_seconds);
    let remedies = if remedies.is_empty() { String::new() } else { format!("; {}", remedies.join(", ")) };
    format!("{what}: without a limit T = {time} writes {without} at the assumed rate{remedies}")
}

/// As an argument of `--space`, rounded up.
fn space_option(bytes: u64) -> String {
    let (unit, name) = if bytes >= 10 << 40 {
        (1 << 40, 'T')
    } else if bytes >= 1 << 30 {
        (1 << 30, 'G')
    } else {
        (1 << 20, 'M')
    };
    format!("{}{name}", bytes.div_ceil(unit))
}

/// How variants share the space.
fn contestants(page: &mut TextPage, input: &PreviewInput) {
    if !input.variants.is_empty() {
        let variants: Vec<String> = input.variants.iter().map(variant_text).collect();
        page.field("variants", &variants.join("; "));
        let share = "each has files of its own, an equal share of the space, and T of its own";
        page.field("contestants", &format!("{}: {share}", list(&input.contestants)));
    }
}

fn memory(page: &mut TextPage, preview: &Preview) {
    let input = &preview.input;
    page.field(
        "memory",
        &format!(
            "{} per rank for the data (period {}), of {} per rank{}",
            format_size(preview.rank_memory_bytes),
            format_size(preview.period_bytes),
            format_size(input.memory_per_rank_bytes),
            other_memory(preview)
        ),
    );
    page.field(
        "caches",
        &format!(
            "{} is a rank's share, assuming hosts like this one with {} each, distributed over its caches; a run \
             counts its ranks",
            format_size(input.cache_share_bytes),
            count(input.ranks_of_host, "rank")
        ),
    );
}

/// What nothing bounds with `--strict`, and the bounds that can be computed.
fn strict_cost(cost: &StrictCost, input: &PreviewInput) -> String {
    let counted = if cost.counted_bytes == 0 {
        String::new()
    } else {
        format!(
            " First writes of types 3 and 4 make the calls that follow from types 0 to 2, however long they take: {} at the assumed rate, \
             {} ({} scheduled), and N times that if types 3 and 4 are N times slower than types 0 to 2; without --strict at most {}.",
            format_size(cost.counted_bytes),
            format_seconds(cost.counted_seconds),
            format_seconds(cost.counted_scheduled_seconds),
            format_seconds(cost.guarded_seconds)
        )
    };
    format!(
        "the loops of the definition, whose overruns are neither cut nor made up for.{counted} Each of the {} timed first writes and rewrites ends \
         with a sync that no time is kept for: together at most {}, if each of them leaves the memory of its ranks ({} of each) in the page cache. One call that \
         exceeds the time of its pattern is listed below. --time-limit ends the run in any case.",
        cost.syncs,
        format_seconds(cost.sync_seconds),
        format_size(input.memory_per_rank_bytes)
    )
}

/// Mapped memory that a rank does not own.
fn other_memory(preview: &Preview) -> String {
    let neighbours = match preview.neighbours_memory_bytes {
        0 => String::new(),
        bytes => format!("; {} mapped from its neighbours, who own it", format_size(bytes)),
    };
    let files = match preview.file_memory_bytes {
        0 => String::new(),
        bytes => format!("; up to {} of files mapped, in the page cache", format_size(bytes)),
    };
    neighbours + &files
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

fn table(page: &mut TextPage, partition: &PartitionPreview) {
    let reduced = if partition.m_part_bytes < partition.m_part_defined_bytes {
        format!(" (definition: {}, reduced for lack of space)", format_size(partition.m_part_defined_bytes))
    } else {
        String::new()
    };
    page.heading(&format!(
        "{}: {}, M_PART = {}{reduced}",
        count(partition.ranks, "rank"),
        format_seconds(partition.time_seconds),
        format_size(partition.m_part_bytes)
    ));
    let row = |p: &PatternPreview| {
        let [write, rewrite, read] = p.scheduled_seconds.map(|seconds| format!("{seconds:.3}"));
        [
            p.number.to_string(),
            format!("{} {}", p.pattern_type, p.pattern_type.name()),
            chunk_label(p.chunk_bytes),
            chunk_label(p.call_bytes),
            p.time_units.to_string(),
            write,
            rewrite,
            read,
            p.calls.to_string(),
            format_size(p.bytes),
            ended_by(p).to_owned(),
        ]
    };
    let head = ["pat", "type", "l", "L", "U", "write s", "rewrite s", "read s", "calls", "bytes", "ended by"];
    render::table(page, &Table::new("", 2, head).with_words().with_rows(partition.patterns.iter().map(row)));
    for file in &partition.files {
        page.line(format!("  type {} {:<10} {}", file.pattern_type, file.pattern_type.name(), files(file)));
    }
    let space = partition.space_bytes.map_or_else(|| "no limit".to_owned(), |b| format!("of {}", format_size(b)));
    page.line(format!("  first write of one backend: {} ({space})", format_size(partition.first_write_bytes)));
}

fn ended_by(p: &PatternPreview) -> &'static str {
    match (p.role, p.outlook[0]) {
        (Role::WarmUp, _) => "warm-up",
        (Role::FillUp, _) => "fill-up",
        (Role::Timed, Some(o)) if o.has_overlong_call() => "one call",
        (Role::Timed, o) => o.map_or("", |o| ended_by_label(o.ended_by)),
    }
}

fn ended_by_label(ended_by: EndedBy) -> &'static str {
    match ended_by {
        EndedBy::Time => "time",
        EndedBy::Counts => "counts",
        EndedBy::Space => "space",
        EndedBy::Guard => "guard",
    }
}

/// Whether the calls of each access method fit its time at the assumed rate, and why its patterns end.
fn outlook(page: &mut TextPage, partition: &PartitionPreview, rate_bytes_per_second: f64) {
    page.blank();
    for (i, access) in AccessMethod::ALL.into_iter().enumerate() {
        let all: Vec<(u8, Outlook)> =
            partition.patterns.iter().filter_map(|p| p.outlook[i].map(|o| (p.number, o))).collect();
        let (seconds, scheduled): (f64, f64) =
            all.iter().fold((0.0, 0.0), |sum, (_, o)| (sum.0 + o.seconds, sum.1 + o.scheduled_seconds));
        if all.is_empty() {
            continue;
        }
        let verdict = match seconds <= FIT_TOLERANCE * scheduled {
            false => "does NOT fit",
            true if all.iter().any(|(_, o)| o.ended_by == EndedBy::Space) => "does NOT fit the space",
            true => "fits",
        };
        let text = format!(
            "{}: {} at the assumed rate take {}, scheduled are {}",
            verdict,
            // Every pattern has this rate.
            format_size((seconds * rate_bytes_per_second).round() as u64),
            format_seconds(seconds),
            format_seconds(scheduled)
        );
        page.hanging(&format!("  {:<9}", access.name()), &text);
        let with = |is: &dyn Fn(&Outlook) -> bool| {
            let numbers: Vec<u8> = all.iter().filter(|(_, o)| is(o)).map(|(number, _)| *number).collect();
            (!numbers.is_empty()).then(|| ranges(&numbers))
        };
        let ends = [EndedBy::Time, EndedBy::Counts, EndedBy::Space, EndedBy::Guard];
        let ends =
            ends.map(|e| with(&|o| o.ended_by == e).map(|patterns| format!("{}: {patterns}", ended_by_label(e))));
        page.hanging("           ended by ", &ends.into_iter().flatten().collect::<Vec<_>>().join("; "));
        for (patterns, what) in [
            (with(&Outlook::has_overlong_call), "one call alone exceeds the time of"),
            (with(&Outlook::is_short_of_time), "earlier overruns leave less than 90 % of the time of"),
        ] {
            if let Some(patterns) = patterns {
                page.hanging("           ", &format!("{what} {patterns}"));
            }
        }
    }
}

/// Ascending numbers, consecutive ones as `1-4`.
fn ranges(numbers: &[u8]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let shown = |run: &[u8]| match run {
        [first, .., last] => format!("{first}-{last}"),
        one => one.iter().map(u8::to_string).collect(),
    };
    runs.map(shown).collect::<Vec<_>>().join(", ")
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
    use crate::b_eff_io::config::{Release, Variant};
    use crate::b_eff_io::plan::preview::preview;
    use crate::b_eff_io::plan::space_forecast::forecast;
    use crate::frame::report::text::WIDTH;

    fn input(ranks: u64, limit_bytes: Option<u64>) -> PreviewInput {
        PreviewInput {
            ranks,
            release: Release::R2_1,
            strict: false,
            partitions: Partitions::SmallMediumAll,
            time_seconds: 5400.0,
            limit_seconds: None,
            types: PatternType::ALL.to_vec(),
            full_rewrite: false,
            orders: Vec::new(),
            mix: None,
            shared_pointer: true,
            memory_per_rank_bytes: 4 << 30,
            limit_bytes,
            backends: 2,
            contestants: Vec::new(),
            variants: Vec::new(),
            segment_multiple_bytes: 1 << 20,
            files_per_directory: 10_000,
            ranks_of_host: ranks,
            cache_share_bytes: 32 << 20,
            domain_bytes: 24 << 20,
            shares_memory: true,
            maps_files: true,
            reused_reads: None,
            rate_bytes_per_second: 2e9,
        }
    }

    fn shown(input: &PreviewInput) -> String {
        let plan = preview(input).unwrap();
        let short = forecast(input, &plan).unwrap();
        text(&plan, "80 % of the free space", short.as_ref())
    }

    #[test]
    fn golden_plan() {
        insta::assert_snapshot!("plan", shown(&input(2, Some(8 << 30))));
    }

    #[test]
    fn a_plan_says_what_ends_first() {
        let of = |limit_bytes| shown(&input(2, limit_bytes)).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(of(None).contains("(no limit: 80 % of the free space) ends first the time and the counts"));
        let short = of(Some(1 << 40));
        for part in ["ends first the space, in the first writes of patterns ", "would hold them, -T ", "s fits into"] {
            assert!(short.contains(part), "{part}: {short}");
        }
        assert_eq!([(10 << 40) + 1, 5 << 40, (1 << 30) + 1, 1].map(space_option), ["11T", "5120G", "2G", "1M"]);
    }

    #[test]
    fn the_plan_says_how_variants_share_the_space() {
        let variant = Variant { backend: "uring+deep".into(), queue_depth: Some(64), ..Variant::default() };
        let contestants = ["mpiio", "uring", "uring+deep"].map(str::to_owned).to_vec();
        let input = PreviewInput { backends: 3, contestants, variants: vec![variant], ..input(2, Some(8 << 30)) };
        let text = shown(&input);
        for part in
            ["uring+deep (depth 64)", "for 3 contestants", "mpiio, uring and uring+deep: each has files of its own"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    }

    #[test]
    fn the_time_for_twenty_times_the_cache_is_named() {
        let of = |bytes: u64, required_time_seconds, is_given, may_be_direct| CacheForecast {
            ranks: 2,
            access: AccessMethod::Write,
            bytes,
            required_bytes: 20 << 30,
            required_time_seconds,
            is_given,
            may_be_direct,
        };
        assert_eq!(cache_text(&[]), "");
        let shown = |all: &[CacheForecast]| cache_text(all).split_whitespace().collect::<Vec<_>>().join(" ");
        let text = shown(&[
            of(1 << 30, Some(1200.0), false, true),
            of(20 << 30, Some(60.0), false, true),
            of(1, None, false, true),
        ]);
        for part in
            ["2 write 1 GiB 20 GiB 20.0 min", "20 GiB 20 GiB met", "not reachable", "memory of the hosts", "direct I/O"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        let text = shown(&[of(1 << 30, Some(1200.0), true, true)]);
        assert!(
            text.contains("that of --storage cache.")
                && !text.contains("direct I/O")
                && !text.contains("not reachable"),
            "{text}"
        );
    }

    fn plan(rate_bytes_per_second: f64, change: impl Fn(PreviewInput) -> PreviewInput) -> String {
        let input = PreviewInput { rate_bytes_per_second, ..input(2, None) };
        let small = PreviewInput {
            release: Release::R1,
            partitions: Partitions::All,
            full_rewrite: true,
            time_seconds: 60.0,
            ..input
        };
        shown(&change(small)).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_plan_says_whether_the_bytes_fit_the_time() {
        let same = |input: PreviewInput| input;
        let fits = plan(2e9, same);
        assert_eq!((fits.matches(" fits: ").count(), fits.matches("does NOT fit").count()), (3, 0), "{fits}");
        // A call of 32 MiB of both ranks takes 3.4 s of 1.2 s.
        let slow = plan(20e6, same);
        assert!(
            slow.contains("write does NOT fit: 425.8 MiB at the assumed rate take 22.3 s, scheduled are 20.0 s"),
            "{slow}"
        );
        assert!(slow.contains("one call alone exceeds the time of 1, 10, 18, 26, 35"), "{slow}");
        assert!(slow.contains("earlier overruns leave less than 90 % of the time of"), "{slow}");
        // Rewrite and read have only the one call of the first write.
        assert!(slow.contains("read does NOT fit") && slow.contains("ended by counts: 0-42"), "{slow}");
    }

    #[test]
    fn a_plan_says_what_ends_its_patterns() {
        // Types 3 and 4 make ten times the calls of type 1, which has twice the time for some.
        let cut = plan(2e9, |input| PreviewInput { types: vec![PatternType::Shared, PatternType::Segmented], ..input });
        assert!(cut.contains("guard: 26-32"), "{cut}");
        let as_2_1 = plan(2e9, |input| PreviewInput {
            types: vec![PatternType::Shared, PatternType::Segmented],
            release: Release::R2_1,
            ..input
        });
        assert!(as_2_1.contains("does NOT fit") && !as_2_1.contains("guard: "), "{as_2_1}");
        let full = plan(2e9, |input| PreviewInput { limit_bytes: Some(1 << 30), ..input });
        assert!(full.contains("write does NOT fit the space: ") && full.contains("; space: "), "{full}");
    }

    /// Types 3 and 4 have 10 of 64 units of the first writes each.
    #[test]
    fn a_strict_plan_says_what_it_can_cost() {
        let with = |strict| plan(2e9, |input| PreviewInput { strict, ..input });
        assert!(!with(false).contains("strict"));
        let strict = preview(&PreviewInput {
            release: Release::R1,
            strict: true,
            partitions: Partitions::List(vec![1, 2]),
            full_rewrite: true,
            time_seconds: 60.0,
            ..input(2, None)
        });
        let cost = strict.unwrap().strict_cost.unwrap();
        // 60 s / 3 * 20 / 64 for each partition, twice that by the guard.
        assert_eq!((cost.counted_scheduled_seconds, cost.guarded_seconds), (12.5, 25.0));
        assert!((cost.counted_bytes as f64 / cost.counted_seconds / 2e9 - 1.0).abs() < 1e-9, "{cost:?}");
        // 36 timed patterns, written and rewritten, on 1 and 2 ranks of 4 GiB.
        let sync_seconds = 72.0 * 3.0 * (4_u64 << 30) as f64 / 2e9;
        assert!(cost.syncs == 144 && (cost.sync_seconds / sync_seconds - 1.0).abs() < 1e-12, "{cost:?}");
        let text = with(true);
        assert!(text.contains("--time-limit ends the run in any case") && text.contains(" 12.5 s"), "{text}");
    }

    #[test]
    fn the_plan_says_what_fits_into_the_time_limit() {
        let with = |limit_seconds| shown(&PreviewInput { limit_seconds, ..input(2, None) });
        assert!(!with(None).contains("time limit"));
        assert!(with(Some(1e6)).contains("the run fits"));
        let short = with(Some(180.0));
        assert!(short.contains("3.0 min: the run does NOT fit; -T "), "{short}");
    }

    #[test]
    fn numbers_that_follow_each_other_are_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 4, 7, 8]), "0-2, 4, 7-8");
        assert_eq!(ranges(&[5]), "5");
    }

    #[test]
    fn ten_million_ranks_fit_into_the_columns() {
        let text = shown(&PreviewInput { backends: 1, ..input(10_000_000, None) });
        assert!(text.contains("1000 for each backend, with up to 10000 files of type 2"), "{text}");
        assert!(!shown(&PreviewInput { backends: 1, ..input(10_000, None) }).contains("directories"));
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
    }
}
